"""Plans of generated queries without any Spark: a cluster's catalog is made of its files, as members make theirs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from metamorphic.in_duckdb import Tables
from skerry.catalog.catalog import Catalog
from skerry.catalog.statistics import gather
from skerry.catalog.topology import Topology
from skerry.config import Config, Role, load
from skerry.model.errors import SkerryError
from skerry.model.fragment import EdgeLeaf, Plan
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.admission import admit, home_of, own_tables
from skerry.plan.cut import Site, make_plan
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
    """One cluster of some shape, of which nothing runs. `files` are those of each member's tables."""

    config: Config
    catalog: Catalog
    topology: Topology
    files: dict[tuple[str, str], list[Path]]

    def plan(self, sql: str, at: str, rules: Rules) -> Plan:
        query = analyse(sql, None, self.catalog, Limits())
        assert isinstance(query, Query)
        data_members = tuple(name for name, each in self.config.members.items() if each.role is Role.DATA)
        return make_plan(query, self.catalog, Site(at, data_members, rules, self.topology), Limits())

    def rows(self) -> Tables:
        """What all files hold."""
        return {place: pa.concat_tables([pq.read_table(file) for file in found]) for place, found in self.files.items()}

    def unsound(self, plan: Plan, at: str) -> list[str]:
        """A receiver's fragments read an edge from exactly those who send it there; rows flow one way."""
        found = []
        senders = {way: {each.member for each in sending} for way, sending in plan.feeding().items()}
        for fragment in plan.fragments:
            if fragment.member not in self.config.members:
                found.append(f"fragment {fragment.id} is at {fragment.member}, which is no member")
        made: set[tuple[int, str]] = set()
        read = {(plan.rows.edge, at)}
        if set(plan.rows.senders) != senders.get((plan.rows.edge, at)):
            found.append("the result is not what the initiator waits for")
        for fragment in plan.jobs:
            for leaf in fragment.leaves:
                if leaf.placeholder not in fragment.sql:
                    found.append(f"fragment {fragment.id} does not use {leaf.placeholder}")
                if isinstance(leaf, EdgeLeaf):
                    way = (leaf.edge, fragment.member)
                    read.add(way)
                    if way not in made:
                        found.append(f"fragment {fragment.id} reads edge {leaf.edge}, which comes later")
                    if set(leaf.senders) != senders.get(way):
                        found.append(f"edge {leaf.edge} is not what fragment {fragment.id} reads")
            made |= {(fragment.output.edge, receiver) for receiver in fragment.output.receivers}
        if read != senders.keys():
            found.append(f"edges {sorted(senders)} are sent, {sorted(read)} are read")
        return [*found, *self._not_admitted(plan, at)]

    def _not_admitted(self, plan: Plan, at: str) -> list[str]:
        """Every member runs the plan, and runs it as it was written."""
        found = []
        for member in {fragment.member for fragment in plan.fragments}:
            refs = (self.catalog.lookup((member, table)) for table in own_tables(plan, member))
            parts = {part.table.lower(): part for ref in refs if ref is not None for part in self.catalog.parts(ref)}
            try:
                admitted = admit(plan.to_run(), at, home_of(member, self.config), parts)
            except SkerryError as error:
                found.append(f"{member} does not admit it: {error.message}")
            else:
                changed = [
                    ours for ours, theirs in zip(plan.jobs, admitted.jobs, strict=True) if ours.sql != theirs.sql
                ]
                found += [f"{member} would write fragment {each.id} otherwise: {each.sql}" for each in changed]
        return found


def planner(files: Files, shape: Shape, *, has_statistics: bool = True, is_slow: bool = False) -> Planner:
    """`is_slow`: where the shape has no links they are so slow that every byte counts."""
    links = shape.links
    if is_slow and not links:
        links = tuple({"between": list(pair), "mbit": 0.001} for pair in combinations(shape.members, 2))
    tables = tuple(files.placed(shape))
    path = write_config(
        files.root / f"{shape.name}-plans.yaml",
        files.root,
        tables,
        sites=shape.data_members,
        lite=shape.lite,
        links=links,
    )
    config = load(str(path))
    catalog = Catalog(config)
    found = {(each.site, each.name): _files(Path(each.path)) for each in tables}
    for member in config.members:
        parts = [_part(each.name, member, found[member, each.name]) for each in tables if each.site == member]
        if has_statistics:
            parts = [_with_statistics(part, found[member, part.table]) for part in parts]
        catalog.learn(member, parts, {})
    return Planner(config, catalog, Topology(config), found)


def _part(table: str, member: str, found: list[Path]) -> TablePart:
    footers = [pq.ParquetFile(file) for file in found]
    columns = tuple(Column(field.name, spark_type(field.type)) for field in footers[0].schema_arrow)
    rows = sum(footer.metadata.num_rows for footer in footers)
    size_bytes = sum(file.stat().st_size for file in found)
    return TablePart(table, member, columns, rows, size_bytes, 1, 1)


def _with_statistics(part: TablePart, found: list[Path]) -> TablePart:
    return msgspec.structs.replace(part, stats=gather([str(file) for file in found], part.columns, Limits()))


def _files(path: Path) -> list[Path]:
    return sorted(path.rglob("*.parquet")) if path.is_dir() else sorted(path.parent.parent.glob(_below(path)))


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
        pa.string_view(): "string",
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
