"""`skerry demo` and `skerry up` from start to end: they run, and leave nothing running."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import yaml

import skerry
from skerry.testing.ports import free_ports
from tests.e2e.processes import START_S, STOP_S, command_of, skerry_command, tree_of, wait_gone
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(1200)]

# To look through all processes of the machine takes 5 ms of a core that those who are waited for need.
LOOK_S = 0.05


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Shared: the second run finds what the first one made."""
    return tmp_path_factory.mktemp("demo")


class Started:
    """A command, and every process it was ever seen to have."""

    def __init__(self, temp: Path, *arguments: object) -> None:
        self.temp = temp
        self.seen: dict[int, psutil.Process] = {}
        self._output = temp / f"output-{time.monotonic_ns()}"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen(
                skerry_command(*arguments),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, "TMPDIR": str(temp), "COLUMNS": "120"},
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def look(self) -> list[psutil.Process]:
        if self.process.poll() is None:
            self.seen |= {each.pid: each for each in tree_of(self.process.pid)}
        return list(self.seen.values())

    def wait_for(self, text: str) -> None:
        def said() -> bool:
            self.look()
            assert self.process.poll() is None, self.output
            return text in self.output

        wait_until(said, f"it says {text!r}", START_S, LOOK_S)

    def wait(self) -> int:
        """Its status, once all it started is gone."""

        def ended() -> bool:
            self.look()
            return self.process.poll() is not None

        wait_until(ended, "it ends", START_S, LOOK_S)
        wait_gone(list(self.seen.values()), "the command")
        return int(self.process.returncode)


@pytest.fixture
def start(tmp_path: Path) -> Iterator[object]:
    """start(*arguments): the command with a temp folder of its own, which is empty in the end."""
    started: list[Started] = []
    temp = tmp_path / "t"
    temp.mkdir()

    def begin(*arguments: object) -> Started:
        started.append(Started(temp, *arguments))
        return started[-1]

    yield begin
    for each in started:
        if each.process.poll() is None:
            each.process.terminate()
            each.process.wait(STOP_S)
    assert [path.name for path in temp.iterdir() if path.name.startswith("skerry")] == []


@pytest.mark.spark
@pytest.mark.slow
class TestDemo:
    def test_shows_plan_rows_and_links(self, start: type[Started], folder: Path) -> None:
        demo = start("demo", "--dir", folder)
        assert demo.wait() == 0, demo.output
        shown = demo.output
        assert "TPC-H scale 0.1 made in" in shown
        assert "(10 rows" in shown
        assert "oslo" in shown.partition("plan")[2].partition("rows")[0]
        assert "revenue" in shown
        assert "bytes that crossed each link" in shown
        assert "→ oslo" in shown
        assert "stopped everything that was started" in shown
        assert "Traceback" not in shown

    def test_ctrl_c_stops_everything(self, start: type[Started], folder: Path) -> None:
        demo = start("demo", "--dir", folder)
        demo.wait_for("(made before)")
        demo.wait_for("starting 3 members")

        def has_three() -> bool:
            return sum("SparkSubmit" in command_of(each) for each in demo.look()) == 3

        wait_until(has_three, "three Sparks start", START_S, LOOK_S)
        demo.process.send_signal(signal.SIGINT)
        assert demo.wait() == 130, demo.output
        assert "interrupted; everything that was started has been stopped" in demo.output
        assert "Traceback" not in demo.output


@pytest.mark.sail
@pytest.mark.slow
def test_demos_that_start_together(start: type[Started], folder: Path) -> None:
    demos = [start("demo", "--sail", "--dir", folder) for _ in range(2)]
    for demo in demos:
        assert demo.wait() == 0, demo.output
        assert re.search(r"([\d,]+) rows, \1 were acknowledged: nothing is lost", demo.output)
        assert "stopped everything that was started" in demo.output
    assert len({path.parent.name for path in folder.glob("*/skerry.yaml")}) >= 2


@pytest.mark.sail
class TestUp:
    """All members of a file, one with Sail and one without a Spark: they start soon."""

    @pytest.fixture
    def file(self, tmp_path: Path, tpch: Path) -> Path:
        ports = free_ports(2)
        members = {
            "oslo": {
                "address": f"127.0.0.1:{ports[0]}",
                "spark": {"sail": True},
                "tables": {"orders": {"format": "parquet", "path": "orders.parquet"}},
            },
            "kiosk": {"address": f"127.0.0.1:{ports[1]}", "role": "lite"},
        }
        path = tmp_path / "skerry.yaml"
        path.write_text(yaml.safe_dump({"cluster": "two", "data_root": str(tpch), "members": members}))
        return path

    @pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
    def test_runs_all_members_until_it_is_stopped(
        self, start: type[Started], file: Path, number: signal.Signals
    ) -> None:
        up = start("up", file)
        up.wait_for("Ctrl-C stops all of them")
        addresses = {name: each["address"] for name, each in yaml.safe_load(file.read_text())["members"].items()}
        shown = [line.split() for line in up.output.splitlines()]
        for name, address in addresses.items():
            (row,) = (words for words in shown if words[:2] == [name, "ready"] and len(words) > 5)
            assert row[-1] == f"skerry://{address}"
        first = next(iter(addresses))
        assert ["skerry", "sql", f"skerry://{addresses[first]}"] in shown
        assert "WARNING" not in up.output, up.output
        with skerry.connect(f"skerry://{addresses['kiosk']}") as connection:
            assert connection.cursor().execute("SELECT count(*) FROM orders").fetchall() == [(15000,)]
        up.process.send_signal(number)
        assert up.wait() == 0, up.output
        assert "Traceback" not in up.output

    def test_a_member_that_dies_ends_it(self, start: type[Started], file: Path) -> None:
        up = start("up", "--debug", file)
        up.wait_for("all members are ready")
        with skerry.connect(
            f"skerry://{yaml.safe_load(file.read_text())['members']['kiosk']['address']}"
        ) as connection:
            assert connection.cursor().execute("SELECT count(*) FROM orders").fetchall() == [(15000,)]
        # Every line says whose it is.
        for line in (r"kiosk  [0-9:.]+ INFO    \S", r"oslo   [0-9:.]+ INFO    \S", r"oslo   [0-9:.]+ DEBUG   \S"):
            wait_until(lambda line=line: re.search(f"^{line}", up.output, re.MULTILINE), f"a line {line}", START_S)
        # Planners are copies of their member.
        (victim,) = [
            each
            for each in up.look()
            if command_of(each).endswith("--member kiosk --until-input-ends") and each.ppid() == up.process.pid
        ]
        victim.kill()
        assert up.wait() == 1
        for left in up.temp.glob("skerry-member-kiosk-*"):  # the next member to start would remove it
            assert [each.name for each in left.iterdir()] == ["lock"]
            shutil.rmtree(left)
        assert "member kiosk ended with status -9; stopping the others" in up.output

    def test_its_death_ends_its_members(self, start: type[Started], file: Path) -> None:
        up = start("up", file)
        up.wait_for("all members are ready")
        up.process.kill()
        assert up.wait() == -signal.SIGKILL
