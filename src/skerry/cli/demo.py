"""`skerry demo`: three sites on this machine, a join across all of them, and a table that outlives a kill -9."""

from __future__ import annotations

import fcntl
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from types import FrameType

import click
import yaml
from rich.console import Console
from rich.table import Table

from skerry.cli.plans import plan_text
from skerry.cli.processes import Members
from skerry.cli.progress import LiveLine
from skerry.cli.render import summary
from skerry.cli.screen import Screen, member_lines
from skerry.cli.secret import ensure_secret
from skerry.cli.writers import TableWriter
from skerry.client.dbapi import Connection, Cursor, QueryStatus, connect
from skerry.client.pep249 import Error
from skerry.config import load
from skerry.model.errors import SkerryError

SCALE = "0.1"
# A plan that has not changed for so long is shown; none is waited for longer than the second.
_SETTLED_S = 1.5
_SETTLE_S = 10.0
FIRST_PORT = 7101
STATE = "state"  # of the table of our own
STOCK = "CREATE TABLE stock (id INT, item STRING, pieces INT) PRIMARY KEY (id) DISTRIBUTED BY (id)"
COUNT = "SELECT count(*), sum(pieces) FROM stock"
FIRST_ROWS = 3000
ROWS_EACH = 6  # of a statement: some at each site
KILLED_AFTER = 20  # statements
SITES = {
    "oslo": ("orders", "lineitem"),
    "bergen": ("customer", "nation", "region"),
    "tromso": ("part", "partsupp", "supplier"),
}
QUERY = """\
SELECT n_name AS nation, count(DISTINCT o_orderkey) AS orders,
       sum(l_extendedprice * (1 - l_discount)) AS revenue
FROM lineitem
JOIN orders ON o_orderkey = l_orderkey
JOIN customer ON c_custkey = o_custkey
JOIN nation ON n_nationkey = c_nationkey
JOIN part ON p_partkey = l_partkey
WHERE p_brand = 'Brand#23' AND o_orderdate >= DATE '1996-01-01'
GROUP BY n_name
ORDER BY revenue DESC
LIMIT 10"""


@click.command("demo")
@click.option("--keep", is_flag=True, help="Leave the cluster running and say how to connect.")
@click.option("--sail", is_flag=True, help="Use Sail instead of Apache Spark: no Java needed.")
@click.option(
    "--dir",
    "directory",
    type=click.Path(file_okay=False, path_type=Path),
    help="Where the data and the configuration are kept.  [default: skerry/demo in the user's cache]",
)
def demo(keep: bool, sail: bool, directory: Path | None) -> None:
    """Start three sites on this machine (TPC-H, scale 0.1) and run a join across all of them.

    Shows the plan, the progress, the rows, the time and the bytes that crossed each link. Then it makes a table
    whose rows are spread over the sites, kills one of them while it writes, starts it again, and counts. In the end
    it stops everything it started. The data it makes is kept and used again by the next run.
    """
    console = Console()
    signal.signal(signal.SIGTERM, _interrupt)
    folder = directory or _cache_folder()
    try:
        make_data(folder, console)
        with claimed_ports(len(SITES)) as ports:
            config, url = write_config(folder, ports, sail)
            _run(config, url, keep, console)
    except KeyboardInterrupt:
        console.print("interrupted; everything that was started has been stopped")
        sys.exit(130)
    except (Error, SkerryError) as error:
        raise click.ClickException(error.message) from error


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _cache_folder() -> Path:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(base) / "skerry" / "demo"


def make_data(folder: Path, console: Console) -> None:
    """TPC-H as Parquet, once; a run that was cut off leaves nothing that looks complete."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    with _alone_in(folder):
        _make_data(folder, console)


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Demos that are started together make the data once."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        found = os.fstat(lock)
        if found.st_uid != os.geteuid() or found.st_mode & stat.S_IWOTH:
            # Whoever else writes there decides what the members run.
            raise click.ClickException(f"{folder} is not yours alone; name another with --dir")
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _make_data(folder: Path, console: Console) -> None:
    data = folder / f"tpch-{SCALE}"
    if data.is_dir():
        console.print(f"data: TPC-H scale {SCALE} in {data} (made before)", highlight=False)
        return
    beside = Path(sys.executable).with_name("tpchgen-cli")
    command = str(beside) if beside.exists() else shutil.which("tpchgen-cli")
    if command is None:
        raise click.ClickException("tpchgen-cli is not installed; pip install 'skerry[demo]' or run make demo")
    unfinished = folder / f"tpch-{SCALE}.unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir()
    with console.status(f"making TPC-H data at scale {SCALE}"):
        made = subprocess.run(
            [command, "parquet", "-s", SCALE, "--output-dir", str(unfinished)], capture_output=True, text=True
        )
    if made.returncode:
        raise click.ClickException(f"tpchgen-cli failed: {made.stderr.strip()}")
    unfinished.rename(data)
    console.print(f"data: TPC-H scale {SCALE} made in {data}", highlight=False)


def write_config(folder: Path, ports: Sequence[int], sail: bool) -> tuple[Path, str]:
    """skerry.yaml of the three sites, in a folder for what is at these ports: no other demo writes there."""
    own = folder / str(ports[0])
    own.mkdir(exist_ok=True)
    spark: dict[str, object] = {"sail": True} if sail else {"master": "local[*]"}
    members = {
        site: {
            "address": f"127.0.0.1:{port}",
            "spark": spark,
            "tables": {table: {"format": "parquet", "path": f"{table}.parquet"} for table in tables},
        }
        for (site, tables), port in zip(SITES.items(), ports, strict=True)
    }
    path = own / "skerry.yaml"
    shutil.rmtree(own / STATE, ignore_errors=True)  # tables of an earlier demo at these ports
    settings = {"cluster": "demo", "data_root": f"../tpch-{SCALE}", "state": STATE, "members": members}
    text = yaml.safe_dump(settings, sort_keys=False)
    path.write_text(f"# written by skerry demo\n{text}")
    return path, f"skerry://127.0.0.1:{ports[0]}"


@contextmanager
def claimed_ports(count: int) -> Iterator[list[int]]:
    """Ports that nobody listens at, and that no other demo chooses before this one ends.

    Members listen only after their Sparks have started, so that a free port says little. A UDP socket of the same
    number, which members have no use for, stands for the claim; the system lets go of it however this process ends.
    """
    ports: list[int] = []
    with ExitStack() as claims:
        port = FIRST_PORT
        while len(ports) < count and port < 65536:
            with ExitStack() as tried:
                claim = tried.enter_context(socket.socket(type=socket.SOCK_DGRAM))
                probe = tried.enter_context(socket.socket())
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                with suppress(OSError):
                    claim.bind(("127.0.0.1", port))
                    probe.bind(("127.0.0.1", port))
                    probe.close()
                    ports.append(port)
                    claims.push(tried.pop_all())
            port += 1
        if len(ports) < count:
            raise click.ClickException(f"no {count} free ports from {FIRST_PORT} on")
        yield ports


def _run(file: Path, url: str, keep: bool, console: Console) -> None:
    console.print(f"starting {len(SITES)} members (logs: {file.parent}/<member>.log)", highlight=False)
    screen = Screen(tuple(SITES), out=console)
    config = load(file)
    ensure_secret(config, all_start_here=True)
    with Members(file, config, screen, log_dir=file.parent, keep=keep) as members:
        members.wait_ready()
        for line in member_lines(members.seen()):
            console.print(line, highlight=False, markup=False, soft_wrap=True)
        with connect(url) as connection:
            show_query(connection, url, console)
        show_own(members, {each.name: each.url for each in config.members.values()}, console)
        if keep:
            pids = " ".join(str(process.process.pid) for process in members.processes)
            console.print(
                f"\nThe cluster is left running:\n  skerry sql {url}\nStop it with:\n  kill {pids}", highlight=False
            )
            return
        with console.status("stopping"):
            members.stop()
    console.print("stopped everything that was started")


def show_query(connection: Connection, url: str, console: Console) -> None:
    """The plan, live progress, the rows, the time, and what crossed each link."""
    console.rule("query", align="left")
    console.print(QUERY, highlight=False)
    console.rule("plan", align="left")
    plan = plan_text(_settled_plan(connection), console.width if console.is_terminal else None)
    console.print(plan, highlight=False, markup=False, soft_wrap=True, end="")
    console.rule("rows", align="left")
    started = time.monotonic()
    live = LiveLine(url, console)
    try:
        with connection.cursor() as cursor:
            with live.during(cursor, started):
                cursor.execute(QUERY)
                rows = cursor.fetchall()
            seconds = time.monotonic() - started
            writer = TableWriter(sys.stdout.write, console.is_terminal)
            writer.begin(cursor.description or [])
            writer.rows(rows)
            writer.end()
            console.print(summary(len(rows), seconds), highlight=False)
            _show_links(_final_status(cursor.status), console)
    finally:
        live.close()


def show_own(members: Members, urls: Mapping[str, str], console: Console) -> None:
    """A table of our own: written at one site, read at another, and still whole after a third was killed meanwhile."""
    writer, reader, victim = urls
    console.rule("a table of our own", align="left")

    def tell(member: str, text: str) -> None:
        console.print(f"{member:<8}{text}", highlight=False, markup=False, soft_wrap=True)

    with connect(urls[writer]) as connection, connection.cursor() as cursor:
        cursor.execute(STOCK)
        tell(writer, STOCK)
        started = time.monotonic()
        cursor.executemany("INSERT INTO stock VALUES (?, 'bolt', 1)", [(number,) for number in range(FIRST_ROWS)])
        tell(writer, f"INSERT INTO stock: {cursor.rowcount:,} rows in {time.monotonic() - started:.2f} s")
        tell(reader, f"{COUNT}: {_count(urls[reader]):,} rows")
        held = ", ".join(f"{name} {_count(urls[reader], f'{name}.stock'):,}" for name in urls)
        tell("", f"of these {held}")
        written, said = _write_until_killed(cursor, partial(members.kill, victim))
        failed = cursor.query_id
        tell(victim, f"kill -9, while {writer} writes {ROWS_EACH} rows at a time, some at each site")
        tell(writer, f"{written:,} rows were acknowledged until then: {said}")
    members.start_again(victim)
    members.wait_ready()
    tell(victim, f"is back after {next(each.seconds for each in members.seen() if each.name == victim):.1f} s")
    expected = FIRST_ROWS + written
    with connect(urls[writer]) as connection, connection.cursor() as cursor:
        cursor.execute(_rows_from(expected), query_id=failed)
        tell(writer, f"the statement that failed, again by its id: {cursor.rowcount} rows")
    found, expected = _count(urls[reader]), expected + ROWS_EACH
    lost = "nothing is lost" if found == expected else f"{expected - found} rows are lost: please report this"
    tell(reader, f"{COUNT}: {found:,} rows, {expected:,} were acknowledged: {lost}")


def _rows_from(number: int) -> str:
    rows = ", ".join(f"({each}, 'nut', 1)" for each in range(number, number + ROWS_EACH))
    return f"INSERT INTO stock VALUES {rows}"


def _write_until_killed(cursor: Cursor, kill: Callable[[], None]) -> tuple[int, str]:
    """How many rows were acknowledged, and what the statement said that was not."""
    killer = threading.Thread(target=kill)
    written = 0
    try:
        while True:
            if written == KILLED_AFTER * ROWS_EACH:
                killer.start()
            cursor.execute(_rows_from(FIRST_ROWS + written))
            written += ROWS_EACH
    except Error as error:
        killer.join()
        return written, error.message


def _count(url: str, table: str = "stock") -> int:
    with connect(url) as connection, connection.cursor() as cursor:
        ((count, _),) = cursor.execute(COUNT.replace("FROM stock", f"FROM {table}")).fetchall()
        return int(count)


def _settled_plan(connection: Connection) -> list[str]:
    """Members that have just started still look at their tables: the plan that stays is the one that runs."""
    lines: list[str] = []
    began = since = time.monotonic()
    with connection.cursor() as cursor:
        while time.monotonic() < min(since + _SETTLED_S, began + _SETTLE_S):
            found = [line for (line,) in cursor.execute(f"EXPLAIN {QUERY}").fetchall()]
            if found != lines:
                lines, since = found, time.monotonic()
            time.sleep(0.1)
    return lines


def _final_status(ask: object) -> QueryStatus:
    """What the links carried is complete once every site gave its receipt."""
    assert callable(ask)
    deadline = time.monotonic() + 5.0
    status: QueryStatus = ask()
    while status.state == "running" and time.monotonic() < deadline:
        time.sleep(0.05)
        status = ask()
    return status


def _show_links(status: QueryStatus, console: Console) -> None:
    console.rule("bytes that crossed each link", align="left")
    table = Table(box=None, padding=(0, 2, 0, 0))
    table.add_column("link")
    table.add_column("rows", justify="right")
    table.add_column("bytes", justify="right")
    for link in sorted(status.links, key=lambda link: -link.size_bytes):
        table.add_row(f"{link.sender} → {link.receiver}", f"{link.rows:,}", f"{link.size_bytes:,}")
    total = sum(link.size_bytes for link in status.links)
    table.add_row("total", "", f"{total:,}", end_section=True)
    console.print(table)
