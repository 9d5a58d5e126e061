"""A member of the cluster that was taken over: it has proven itself, and plans what it likes for the others.

Its peers are members as they are. What it plans goes over real sockets: Execute, PlanRequest, PlanReply. A client of an
honest member tries the same statements.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

import skerry
from skerry.config import Leaves, load
from skerry.member.planning import Planned, Planner, Understood, plan_statement
from skerry.member.requests import RunStatement
from skerry.model import trace
from skerry.model.errors import PeerError, UserError
from skerry.model.events.event import Event
from skerry.model.fragment import Leaf, Output, Plan, Rows, SparkFragment, TableLeaf
from skerry.plan.analyze import PLACEHOLDER
from skerry.plan.cache import fingerprint
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster
from tests.attacks.hostile import statements
from tests.integration.member.member_sites import FEW, PATIENT, nothing_left, write_sites

TAKEN, HONEST = "bergen", "oslo"
LEAF = "leaf_1_0123456789abcdef"
KEY = "skerry.canary"
LOW = 1_000_000  # no id of `ticks` is so large


class Forging:
    """How the members understand statements: the one that was taken over has plans ready for some."""

    def __init__(self) -> None:
        self.plans: dict[str, Callable[[Planner], Plan]] = {}

    async def __call__(self, planner: Planner, statement: RunStatement) -> Understood:
        forged = self.plans.get(statement.sql)
        if forged is None or planner.name != TAKEN:
            return await plan_statement(planner, statement)
        return Planned(forged(planner), {})


def forged(sql: str, table: str = "ticks", placeholder: str = LEAF, **changed: Any) -> Callable[[Planner], Plan]:
    """One fragment with this text at the honest member; its rows come to the one that was taken over."""

    def make(planner: Planner) -> Plan:
        leaves: tuple[Leaf, ...] = (TableLeaf(placeholder, table),)
        fragment = SparkFragment(1, HONEST, sql, leaves, Output(1, (TAKEN,), through_driver=True))
        fragment = msgspec.structs.replace(fragment, **changed)
        ref = planner.catalog.lookup((HONEST, table))
        assert ref is not None
        info = {f"{HONEST}.{table}": planner.catalog.parts(ref)[0].schema_version}
        plan = Plan("", (fragment,), Rows(1, (HONEST,)), info)
        return msgspec.structs.replace(plan, plan_id=fingerprint(plan))

    return make


def with_wrong_id(planner: Planner) -> Plan:
    return msgspec.structs.replace(forged(f"SELECT id FROM {LEAF}")(planner), plan_id="0" * 32)


def statistics(low: int) -> str:
    """What ANALYZE TABLE finds, made up: a query by it would leave the part out."""
    found = f'{{"id":{{"nulls":0,"ndv":2,"low":"{low}","high":"{low + 1}"}}}}'
    return f"SELECT 'oslo' AS member, 20000 AS rows, 1 AS bytes, '{found}' AS columns FROM {PLACEHOLDER} LIMIT 1"


@contextmanager
def cluster_of(
    engine: Engine, tables: Mapping[str, Mapping[str, Path]], folder: Path, forging: Forging
) -> Iterator[LocalCluster]:
    config = load(write_sites(folder / "skerry.yaml", tables, limits=PATIENT))
    few = msgspec.structs.replace(config.member(HONEST).tables["few"], leaves=Leaves.NEVER)
    honest = msgspec.structs.replace(config.member(HONEST), tables={**config.member(HONEST).tables, "few": few})
    config = msgspec.structs.replace(config, members={**config.members, HONEST: honest})
    with LocalCluster(config, engine=engine, plan=forging) as cluster:
        yield cluster
        nothing_left(cluster)


def attack(engine: Engine, tables: Mapping[str, Mapping[str, Path]], folder: Path, more: Mapping[str, str]) -> None:
    forging = Forging()
    canary = folder / "canary.txt"
    canary.write_text("a line that nobody may read\n", encoding="utf-8")
    texts = {
        "code": f"SELECT java_method('java.lang.System', 'setProperty', '{KEY}', 'x') AS a FROM {LEAF} LIMIT 1",
        "a setting": f"SET {KEY} = x",
        "a file": f"SELECT * FROM text.`{canary}`",
        "a view": "CREATE TEMPORARY VIEW canary AS SELECT 1 AS a",
        "a table of another": "SELECT * FROM skerry_table_1",
        **{wants: sql.replace("orders", LEAF) for wants, sql in statements()},
        **more,
    }
    forging.plans = {name: forged(sql) for name, sql in texts.items()}
    forging.plans["another id"] = with_wrong_id
    forging.plans["statistics"] = forged(statistics(LOW), placeholder=PLACEHOLDER, analyzes="ticks")
    forging.plans["rows that stay"] = forged(f"SELECT id, name FROM {LEAF}", "few")
    forging.plans["rows"] = forged(f"SELECT id FROM {LEAF} WHERE id < 5")
    seen: list[Event] = []
    trace.listeners.append(seen.append)
    try:
        with cluster_of(engine, tables, folder, forging) as cluster, cluster.connect(TAKEN) as connection:
            cursor = connection.cursor()
            for name in forging.plans:
                if name == "rows":
                    continue
                with pytest.raises(skerry.Error) as caught:
                    cursor.execute(name).fetchall()
                kind = UserError if name == "rows that stay" else PeerError
                assert (caught.value.code, caught.value.member) == (kind.code, HONEST), f"{name}: {caught.value}"
                said = "leaves: never" if kind is UserError else f"the plan of member {TAKEN} is not admitted here"
                assert said in caught.value.message, f"{name}: {caught.value}"
            refused = [event for event in seen if type(event).__name__ == "PlanRefused"]
            assert len(refused) == len(forging.plans) - 1
            with cluster.connect(HONEST) as own:
                for _, sql in statements():
                    with pytest.raises(skerry.ProgrammingError):
                        own.cursor().execute(sql.replace("orders", "ticks"))
            assert not started(seen)
            # The member goes on, and so does what it is asked for rightly.
            assert sorted(cursor.execute("rows").fetchall()) == [(each,) for each in range(5)]
            assert cursor.execute("SELECT count(*) FROM ticks WHERE id < 10").fetchall() == [(10,)]
            with cluster.connect(HONEST) as own:
                assert own.cursor().execute("SELECT count(*) FROM few").fetchall() == [(3 * FEW,)]
                assert own.cursor().execute("SELECT count(*) FROM oslo.ticks WHERE id < 10").fetchall() == [(10,)]
            assert started(seen)
    finally:
        trace.listeners.remove(seen.append)
    session: Any = engine.session  # type: ignore[attr-defined]
    assert session.conf.get(KEY, "nothing") == "nothing"
    assert not session.catalog.tableExists("canary")


def started(seen: list[Event]) -> list[Event]:
    return [event for event in seen if type(event).__name__ == "FragmentStarted"]


@pytest.mark.spark
def test_on_spark_it_runs_nothing_at_others(
    spark_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> None:
    dtd = '<!DOCTYPE a SYSTEM "http://127.0.0.1:1/x"><a>1</a>'
    attack(spark_engine, fault_tables, tmp_path, {"the network": f"SELECT xpath_string('{dtd}', 'a') AS a"})
    jvm: Any = spark_engine.session._jvm  # type: ignore[attr-defined]
    assert jvm.java.lang.System.getProperty(KEY) is None


@pytest.mark.sail
def test_on_sail_it_runs_nothing_at_others(
    sail_engine: Engine, fault_tables: Mapping[str, Mapping[str, Path]], tmp_path: Path
) -> None:
    attack(sail_engine, fault_tables, tmp_path, {})
