"""A PostgreSQL server of Debian's packages, as a process of the tests."""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv

from tests.servers.found import READY_S, free_port, installed, run, wait_for

USER, PASSWORD = "keeper", "pa'ss wörd"


class Postgres:
    """One cluster of databases, in a folder of its own. Statements are logged: `asked` tells what it was asked."""

    def __init__(self) -> None:
        self.bin = installed(
            "postgres", "postgresql", lambda: sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
        ).parent
        # Not under a private temp folder: the server's user must reach it.
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._as_user: list[str] = []
        if not os.geteuid():  # it refuses to run as root
            owner = pwd.getpwnam("postgres")
            os.chown(self.folder, owner.pw_uid, owner.pw_gid)
            self._as_user = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups"]
        self.log = self.folder / "log"
        word = self.folder / "password"
        word.write_text(f"{PASSWORD}\n")
        word.chmod(0o644)
        # The tests' own client asks by the socket, whatever the password is now.
        made = ("-D", str(self.folder / "base"), "-U", USER, "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
        run(
            *self._as_user,
            str(self.bin / "initdb"),
            *made,
            "--auth-local=trust",
            "--auth-host=scram-sha-256",
            f"--pwfile={word}",
        )
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        settings = (
            "listen_addresses=127.0.0.1",
            "fsync=off",
            "log_statement=all",
            "log_line_prefix=",
            "max_connections=50",
        )
        command = [*self._as_user, str(self.bin / "postgres"), "-D", str(self.folder / "base"), "-p", str(self.port)]
        command += ["-k", str(self.folder), *(part for each in settings for part in ("-c", each))]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd="/")
        wait_for(self.port, self.process, self.log)
        give_up = time.monotonic() + READY_S
        while not self._answers():  # it takes connections before it takes logins
            assert time.monotonic() < give_up, self.log.read_text()[-2000:]
            time.sleep(0.1)

    def _answers(self) -> bool:
        ran = subprocess.run(
            self._client("postgres"),
            input="SELECT 1",
            capture_output=True,
            text=True,
            env=self._environment(),
            check=False,
        )
        return ran.returncode == 0

    def stop(self) -> None:
        if self.process is not None:
            self.process.send_signal(2)  # at once, and in order
            self.process.wait(60)
            self.process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def url(self, database: str) -> str:
        return f"jdbc:postgresql://127.0.0.1:{self.port}/{database}"

    def run(self, database: str, sql: str) -> str:
        """Several statements; the first mistake is an error."""
        ran = subprocess.run(
            self._client(database), input=sql, capture_output=True, text=True, env=self._environment(), check=False
        )
        assert not ran.returncode, ran.stderr
        return ran.stdout

    def load(self, database: str, table: str, rows: pa.Table) -> None:
        """Into a table that is there."""
        text = pa.BufferOutputStream()
        pyarrow.csv.write_csv(rows, text, pyarrow.csv.WriteOptions(include_header=False))
        copy = [*self._client(database), "-c", f"\\copy {table} from stdin with (format csv)"]
        ran = subprocess.run(copy, input=text.getvalue().to_pybytes(), capture_output=True, env=self._environment())
        assert not ran.returncode, ran.stderr

    def asked(self, since: int, but: Sequence[str] = ("pg_catalog", " SET ", "BEGIN", "fetch from")) -> list[str]:
        """Queries after that place in the log (`mark`), in its own words."""
        with open(self.log, "rb") as log:
            log.seek(since)
            lines = log.read().decode(errors="replace").splitlines()
        queries = [line.partition(": ")[2].partition(": ")[2] for line in lines if line.startswith("LOG:  execute")]
        return [query for query in queries if query.startswith("SELECT") and not any(each in query for each in but)]

    def mark(self) -> int:
        return self.log.stat().st_size

    def _client(self, database: str) -> list[str]:
        where = ("-h", str(self.folder), "-p", str(self.port), "-U", USER, "-d", database)
        return [str(self.bin / "psql"), *where, "-q", "-v", "ON_ERROR_STOP=1", "-X", "-A", "-t"]

    def _environment(self) -> dict[str, str]:
        return os.environ | {"PGCLIENTENCODING": "UTF8"}
