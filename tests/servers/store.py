"""An object store that speaks S3, as a process of the tests: SeaweedFS, of PyPI."""

from __future__ import annotations

import json
import random
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.fs as fs
import pyarrow.parquet as pq

from tests.servers.found import READY_S, tool, wait_for

KEY, SECRET = "site-key", "site-secret/with+signs="
_PORTS = range(20_000, 40_000)
_RPC = 10_000  # each of its ports has another one for its own calls, so far above


class Store:
    """Buckets are made by `bucket`; `system` writes to them."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="store"))
        self.log = self.folder / "log"
        self.ports = [_free() for _ in range(4)]
        self._program = tool("weed")
        self._process: subprocess.Popen[bytes] | None = None
        site = {"name": "site", "credentials": [{"accessKey": KEY, "secretKey": SECRET}], "actions": ["Admin"]}
        (self.folder / "s3.json").write_text(json.dumps({"identities": [site]}))
        self.start()
        where = {"endpoint_override": f"127.0.0.1:{self.ports[3]}", "scheme": "http", "region": "us-east-1"}
        self.system = fs.S3FileSystem(access_key=KEY, secret_key=SECRET, allow_bucket_creation=True, **where)

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.ports[3]}"

    def start(self) -> None:
        master, volume, filer, s3 = self.ports
        where = (f"-master.port={master}", f"-volume.port={volume}", f"-filer.port={filer}", f"-s3.port={s3}")
        size = ("-volume.max=50", "-master.volumeSizeLimitMB=64", f"-s3.config={self.folder / 's3.json'}")
        bound = ("-s3.port.iceberg=0", "-s3.port.lance=0", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={self.folder}")
        with open(self.log, "ab") as log:
            command = [str(self._program), "server", "-s3", *where, *size, *bound]
            self._process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.folder)
        wait_for(s3, self._process, self.log)

    def stop(self) -> None:
        if self._process is not None:
            self._process.kill()  # in order it takes half a minute, and what was answered is kept
            self._process.wait(60)
            self._process = None

    def remove(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)

    def bucket(self, name: str) -> None:
        """The store answers a while before it can keep anything."""
        give_up = time.monotonic() + READY_S
        while True:
            try:
                self.system.create_dir(name)
                self.put(f"{name}/_ready", b"x")
                return
            except OSError:
                assert time.monotonic() < give_up, self.log.read_text()[-2000:]
                time.sleep(0.2)

    def put(self, path: str, content: bytes | pa.Table) -> None:
        """`bucket/key`."""
        if isinstance(content, pa.Table):
            pq.write_table(content, path, filesystem=self.system)
            return
        with self.system.open_output_stream(path) as stream:
            stream.write(content)

    def delete(self, path: str) -> None:
        self.system.delete_file(path)


def _free() -> int:
    while True:
        port = random.choice(_PORTS)
        try:
            for each in (port, port + _RPC):
                with socket.socket() as bound:
                    bound.bind(("127.0.0.1", each))
            return port
        except OSError:
            continue
