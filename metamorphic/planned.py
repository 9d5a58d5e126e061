"""Plans of generated queries without any Spark: a cluster's catalog is made of its files' schemas and row counts."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from skerry.catalog.catalog import Catalog
from skerry.catalog.table import Column, TablePart
from skerry.catalog.topology import Topology
from skerry.config import Config, Role, load
from skerry.limits import Limits
from skerry.plan.cut import Site, make_plan
from skerry.plan.fragment import EdgeLeaf, Plan
from skerry.plan.rules import NAMES, STRATEGIES, Rules
from skerry.sql.statement import Query, analyse
from skerry.testing.sites import write_config
from skerry.testing.topologies import Files, Shape

# All rules, none, all but one, one alone, and each strategy.
CHOICES = (
    Rules(),
    Rules(frozenset()),
    *(Rules(frozenset(NAMES) - {name}) for name in NAMES),
    *(Rules(frozenset({name})) for name in NAMES),
    *(Rules(strategy=strategy) for strategy in STRATEGIES),
)


@dataclass(frozen=True)
class Planner:
    """One cluster of some shape, of which nothing runs."""

    config: Config
    catalog: Catalog
    topology: Topology

    def plan(self, sql: str, at: str, rules: Rules) -> Plan:
        query = analyse(sql, None, self.catalog, Limits())
        assert isinstance(query, Query)
        data_members = tuple(name for name, each in self.config.members.items() if each.role is Role.DATA)
        return make_plan(query, self.catalog, Site(at, data_members, rules, self.topology), Limits())

    def unsound(self, plan: Plan, at: str) -> list[str]:
        """Every edge has one receiver, which reads it from exactly those who send; rows flow one way."""
        found = []
        senders: dict[int, set[str]] = {}
        receivers: dict[int, set[str]] = {}
        for fragment in plan.fragments:
            senders.setdefault(fragment.output.edge, set()).add(fragment.member)
            receivers.setdefault(fragment.output.edge, set()).add(fragment.output.receiver)
            if fragment.member not in self.config.members:
                found.append(f"fragment {fragment.id} is at {fragment.member}, which is no member")
        found += [f"edge {edge} has receivers {sorted(names)}" for edge, names in receivers.items() if len(names) != 1]
        made: set[int] = set()
        read: list[int] = [plan.finish.edge]
        if set(plan.finish.senders) != senders[plan.finish.edge] or receivers[plan.finish.edge] != {at}:
            found.append("the result is not what the initiator waits for")
        for fragment in plan.fragments:
            for leaf in fragment.leaves:
                if leaf.placeholder not in fragment.sql:
                    found.append(f"fragment {fragment.id} does not use {leaf.placeholder}")
                if isinstance(leaf, EdgeLeaf):
                    read.append(leaf.edge)
                    if leaf.edge not in made:
                        found.append(f"fragment {fragment.id} reads edge {leaf.edge}, which comes later")
                    if set(leaf.senders) != senders.get(leaf.edge) or receivers.get(leaf.edge) != {fragment.member}:
                        found.append(f"edge {leaf.edge} is not what fragment {fragment.id} reads")
            made.add(fragment.output.edge)
        if sorted(read) != sorted(senders):
            found.append(f"edges {sorted(senders)} are sent, {sorted(read)} are read")
        return found


def planner(files: Files, shape: Shape) -> Planner:
    tables = tuple(files.placed(shape))
    path = write_config(
        files.root / f"{shape.name}-plans.yaml",
        files.root,
        tables,
        sites=shape.data_members,
        lite=shape.lite,
        links=shape.links,
    )
    config = load(str(path))
    catalog = Catalog(config)
    for member in config.members:
        catalog.learn(member, [_part(each.name, member, each.path) for each in tables if each.site == member], {})
    return Planner(config, catalog, Topology(config))


def _part(table: str, member: str, path: str) -> TablePart:
    where = Path(path)
    found = sorted(where.rglob("*.parquet")) if where.is_dir() else sorted(where.parent.parent.glob(_below(where)))
    footers = [pq.ParquetFile(file) for file in found]
    columns = tuple(Column(field.name, spark_type(field.type)) for field in footers[0].schema_arrow)
    rows = sum(footer.metadata.num_rows for footer in footers)
    size_bytes = sum(file.stat().st_size for file in found)
    return TablePart(table, member, columns, rows, size_bytes, 1, 1)


def _below(pattern: Path) -> str:
    return f"{pattern.parent.name}/{pattern.name}"


def spark_type(kind: pa.DataType) -> str:
    """Spark's text for the types of our files."""
    plain = {
        pa.bool_(): "boolean",
        pa.int8(): "tinyint",
        pa.int16(): "smallint",
        pa.int32(): "int",
        pa.int64(): "bigint",
        pa.float32(): "float",
        pa.float64(): "double",
        pa.string(): "string",
        pa.large_string(): "string",
        pa.binary(): "binary",
        pa.date32(): "date",
    }
    if kind in plain:
        return plain[kind]
    if pa.types.is_decimal(kind):
        return f"decimal({kind.precision},{kind.scale})"
    if pa.types.is_timestamp(kind):
        return "timestamp" if kind.tz else "timestamp_ntz"
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_map(kind):
        return f"map<{spark_type(kind.key_type)},{spark_type(kind.item_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{','.join(f'{field.name}:{spark_type(field.type)}' for field in kind)}>"
    raise ValueError(f"no Spark type for {kind}")
