"""Plan fixtures: SQL with a header, and the explained plan in the comment behind it.

Headers, all may be left out: `at` (the initiator), `rules`, `strategy`, `parameters`, and what the topology has beside
topology.yaml: `links` as the configuration has them, `capacity` of some members.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml

from skerry.catalog.catalog import Catalog, own_part, own_version
from skerry.catalog.topology import Topology
from skerry.config import Config, Role, parse
from skerry.model.fragment import Plan
from skerry.model.limits import Limits
from skerry.model.sharded import Definition, OwnColumn, OwnTable
from skerry.model.table import ColumnStats, PartStats, TablePart
from skerry.plan.cut import Site, make_plan
from skerry.plan.egress import EgressRules
from skerry.plan.explain import explain
from skerry.plan.rules import Rules, read_rules
from skerry.sql.statement import Query, analyse
from skerry.tables.catalogue import first_map

FOLDER = Path(__file__).parent
LIMITS = Limits()
UPDATES = bool(os.environ.get("SKERRY_UPDATE_PLANS"))

ROWS = {
    ("oslo", "orders"): 1_500_000,
    ("oslo", "events"): 1_000,
    ("oslo", "sales"): 50_000_000,
    ("bergen", "customer"): 150_000,
    ("bergen", "nation"): 25,
    ("bergen", "events"): 5_000,
    ("bergen", "sales"): 1_000,
    ("bergen", "Mixed"): 10,
    ("tromso", "lineitem"): 6_000_000,
    ("tromso", "events"): 3_000,
    ("tromso", "mixed"): 10,
    ("oslo", "logs"): 1_000_000,
    ("bergen", "logs"): 2_000_000,
    ("tromso", "logs"): 3_000_000,
    ("bergen", "visits"): 5_000_000,
    ("tromso", "clicks"): 8_000_000,
}
# Least and greatest values of the parts whose statistics are known, as statistics have them; NULLs are in no column
# but `level` of bergen, which has nothing else.
STATS: dict[tuple[str, str], dict[str, tuple[Any, Any]]] = {
    ("oslo", "logs"): {
        "at": (0, 3),
        "id": (0, 3),
        "level": ("NORWAY", "x"),
        "cost": ("0.00", "3.00"),
        "load": (0.0, 3.0),
    },
    ("bergen", "logs"): {"at": (4, 7), "id": (4, 7), "level": (None, None), "cost": ("4.00", "7.00")},
    ("tromso", "logs"): {"at": (6, 11), "id": (8, 11), "level": ("", "y"), "cost": ("8.00", "11.00")},
    # Many values: keys of one are dear to the other, and their ranges hardly meet.
    ("bergen", "visits"): {
        "v_key": (0, 1_000_000),
        "v_day": (0, 1_000_000),
        "v_word": ("", "x"),
        "v_cost": ("0.00", "1000000.00"),
        "v_note": ("", "y"),
    },
    ("tromso", "clicks"): {
        "k_key": (900_000, 2_000_000),
        "k_day": (900_000, 2_000_000),
        "k_word": ("x", "y"),
        "k_cost": ("900000.00", "2000000.00"),
        "k_small": (0, 1_000_000),
        "k_note": ("", "y"),
    },
}
# Tables of our own: DISTRIBUTED BY their first column, but for the last, which is copied.
OWN = {
    name: Definition(table, first_map(table))
    for number, (name, columns) in enumerate(
        {
            "stock": (OwnColumn("item", "bigint"), OwnColumn("kind", "int"), OwnColumn("cost", "decimal(15,2)")),
            "moves": (OwnColumn("item", "bigint"), OwnColumn("day", "int"), OwnColumn("qty", "int")),
            "kinds": (OwnColumn("id", "int"), OwnColumn("label", "string")),
        }.items()
    )
    for keys in [tuple(each.name for each in columns[:2])]
    for by in [keys[:1] if name != "kinds" else ()]
    for table in [OwnTable(number + 1, name, 1, columns, keys, by, ("oslo", "bergen", "tromso"))]
}
OWN_ROWS = {"stock": 20_000, "moves": 900_000, "kinds": 40}
# Of the columns of each part.
VERSIONS = dict.fromkeys(ROWS, 1) | {
    (member, name): own_version(each) for name, each in OWN.items() for member in each.table.members
}
_PLAN_ID = re.compile(r"^plan [0-9a-f]{12}")


def cluster() -> tuple[Config, Catalog]:
    config = parse((FOLDER / "topology.yaml").read_text())
    catalog = Catalog(config)
    for name, member in config.members.items():
        parts = [
            TablePart(table, name, each.columns, rows, rows * 20, 1, 1, known_stats(name, table))
            for table, each in member.tables.items()
            for rows in [ROWS[(name, table)]]
        ]
        parts += [
            own_part(OWN[own], name, rows, rows * 20) for own, rows in OWN_ROWS.items() if member.role is Role.DATA
        ]
        catalog.learn(name, parts, {})
    catalog.define(OWN.values())
    return config, catalog


def known_stats(member: str, table: str) -> PartStats | None:
    known = STATS.get((member, table))
    if known is None:
        return None
    rows = ROWS[member, table]
    columns = [
        ColumnStats(name, low, high, rows if low is None else 0, is_exact=low is not None and name != "load")
        for name, (low, high) in known.items()
    ]
    return PartStats(tuple(columns))


CONFIG, CATALOG = cluster()


def site(initiator: str, rules: Rules, topology: Topology | None = None, egress: EgressRules | None = None) -> Site:
    data = tuple(name for name, member in CONFIG.members.items() if member.role is Role.DATA)
    return Site(initiator, data, rules, topology, egress=egress)


def linked(links: Any, capacity: Mapping[str, int] | None = None) -> Topology:
    """The fixtures' members with these links, and room for so many fragments."""
    config = yaml.safe_load((FOLDER / "topology.yaml").read_text())
    for name, operators in (capacity or {}).items():
        config["members"][name]["capacity"] = operators
    return Topology(parse(yaml.safe_dump(config | {"links": links}, sort_keys=False)))


def bound(sql: str, parameters: Any = None, limits: Limits = LIMITS) -> Query:
    query = analyse(sql, parameters, CATALOG, limits)
    assert isinstance(query, Query)
    return query


def planned(
    sql: str,
    at: str = "oslo",
    parameters: Any = None,
    limits: Limits = LIMITS,
    rules: str = "none",
    egress: EgressRules | None = None,
    topology: Topology | None = None,
) -> Plan:
    where = site(at, Rules(read_rules(rules)), topology, egress=egress)
    return make_plan(bound(sql, parameters, limits), CATALOG, where, limits)


def slow_links() -> Topology:
    """Where no job is worth the bytes that it spares."""
    return linked([{"between": list(pair), "mbit": 1} for pair in combinations(("oslo", "bergen", "tromso"), 2)])


@dataclass
class Case:
    """`said` is the header and the SQL as written; `expected` is empty until the plan is written down."""

    file: Path
    title: str
    sql: str
    expected: str
    said: str
    header: dict[str, Any] = field(default_factory=dict)

    @property
    def at(self) -> str:
        return str(self.header.get("at", "oslo"))

    @cached_property
    def plan(self) -> Plan:
        return self.planned_again()

    @cached_property
    def topology(self) -> Topology | None:
        return linked(self.header["links"], self.header.get("capacity")) if "links" in self.header else None

    @property
    def rules(self) -> Rules:
        return Rules(read_rules(str(self.header.get("rules", "none"))), str(self.header.get("strategy", "cost")))

    def planned_again(self, rules: Rules | None = None) -> Plan:
        """By the rules of its header, or by others."""
        query = bound(self.sql, self.header.get("parameters"))
        return make_plan(query, CATALOG, site(self.at, rules or self.rules, self.topology), LIMITS)

    def explained(self) -> str:
        lines = explain(self.plan, self.at, self.topology)
        lines[0] = _PLAN_ID.sub("plan", lines[0])
        return "\n".join(lines)

    def text(self) -> str:
        return f"-- case: {self.title}\n{self.said}\n/*\n{self.explained()}\n*/\n"


def read_cases(file: Path) -> Iterator[Case]:
    for text in re.split(r"^-- case: ", file.read_text(), flags=re.M)[1:]:
        title, _, rest = text.partition("\n")
        said, _, expected = rest.partition("\n/*\n")
        lines = said.strip().split("\n")
        header = yaml.safe_load("\n".join(line[3:] for line in lines if line.startswith("-- "))) or {}
        sql = "\n".join(line for line in lines if not line.startswith("-- "))
        yield Case(file, title, sql, expected.rpartition("\n*/")[0], said.strip(), header)


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(case for file in sorted(FOLDER.glob("*.sql")) for case in read_cases(file))


def rewrite() -> None:
    """Write every plan down as it is now: SKERRY_UPDATE_PLANS=1, then read the diff."""
    for file in sorted(FOLDER.glob("*.sql")):
        cases = list(read_cases(file))
        file.write_text("\n".join(case.text() for case in cases))
    all_cases.cache_clear()
