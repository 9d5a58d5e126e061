"""Members that are killed while they fold groups between them: manager, worker, sender; the others let go of all."""

from __future__ import annotations

import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import skerry
from skerry.testing.ports import free_ports
from tests.e2e.processes import CONNECT_S, Site
from tests.integration.member.member_sites import wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.sail, pytest.mark.timeout(1200)]

# The rows are at these two, the manager is the first; the third folds groups of theirs, the last one is asked.
SITES = ("oslo", "bergen", "tromso", "narvik")
ROWS = 3000
QUERY = "SELECT k, sum(x) AS s FROM t GROUP BY k HAVING sum(x) > 0"
ELASTIC = {"group_by": "elastic"}
KILLS = [
    ("bergen", "groups sent"),
    ("oslo", "groups sent"),
    ("tromso", "recruited"),
    ("oslo", "share handed over"),
    ("tromso", "groups given"),
]


class Cluster:
    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._temp = Path(tempfile.mkdtemp(prefix="g"))  # short: it holds sockets
        self.ports = dict(zip(SITES, free_ports(len(SITES)), strict=True))
        members = {
            name: {"address": f"127.0.0.1:{port}", "spark": {"sail": True}, "tables": {}}
            for name, port in self.ports.items()
        }
        for index, site in enumerate(SITES[:2]):
            (folder / site).mkdir()
            keys = [number % 1000 for number in range(index, ROWS + index)]
            pq.write_table(pa.table({"k": keys, "x": [key - 300 for key in keys]}), folder / site / "t.parquet")
            members[site]["tables"] = {"t": {"format": "parquet", "path": f"{site}/t.parquet"}}
        limits = {"drain_s": 0.1, "group_by_groups": 100, "wait_s": 3.0}
        text = {"cluster": "c", "data_root": str(folder), "members": members, "limits": limits}
        self.file = folder / "skerry.yaml"
        self.file.write_text(yaml.safe_dump(text, sort_keys=False))
        self.sites: dict[str, Site] = {}

    def start(self, *names: str) -> None:
        for name in names:
            self.sites[name] = Site(self.file, name, self._folder, self._temp, self.chaos_of(name))
        for name in names:
            self.sites[name].wait_ready()

    def chaos_of(self, name: str) -> Path:
        return self._folder / f"{name}.chaos"

    def stop(self) -> None:
        for site in self.sites.values():
            if site.process.poll() is None:
                site.end(signal.SIGKILL)
        shutil.rmtree(self._temp)

    def ask(self) -> list[tuple[int, int]]:
        with skerry.connect(f"skerry://127.0.0.1:{self.ports['narvik']}", timeout_s=CONNECT_S) as connection:
            return connection.cursor().execute(QUERY, planning=ELASTIC).fetchall()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    made = Cluster(tmp_path)
    try:
        made.start(*SITES)
        yield made
    finally:
        made.stop()


def test_a_member_that_is_killed_while_groups_are_folded(cluster: Cluster) -> None:
    counts = [(number % 1000) for index in range(2) for number in range(index, ROWS + index)]
    wanted = sorted((key, (key - 300) * counts.count(key)) for key in range(301, 1000))
    for victim, point in KILLS:
        assert sorted(cluster.ask()) == wanted
        armed = cluster.chaos_of(victim)
        armed.write_text(f"{point}|kill|1")
        with pytest.raises(skerry.Error, match=victim):
            cluster.ask()
        assert not armed.exists(), point
        killed = cluster.sites.pop(victim)
        killed.process.wait()
        killed.close()
        for site in cluster.sites.values():
            wait_until(lambda site=site: not (site.queries_under_way() or site.spool_files()), f"{site.name} lets go")
            assert "Traceback" not in site.log
        cluster.start(victim)
    assert sorted(cluster.ask()) == wanted
