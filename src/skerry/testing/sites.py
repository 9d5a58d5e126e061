"""Writes a skerry.yaml that places sample tables at sites."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from skerry.testing.nasty import SITES, SampleTable

# Every site has tables, so a join of any two kinds of them crosses a link.
TPCH_SITES = {
    "orders": "oslo",
    "lineitem": "oslo",
    "customer": "bergen",
    "nation": "bergen",
    "region": "bergen",
    "part": "tromso",
    "partsupp": "tromso",
    "supplier": "tromso",
}


def tpch_tables(folders: Mapping[str, Path], site: str = "") -> tuple[SampleTable, ...]:
    """TPC-H's tables where TPCH_SITES puts them, or all at one site."""
    return tuple(SampleTable(name, site or TPCH_SITES[name], str(folder)) for name, folder in folders.items())


def write_config(
    path: Path,
    data_root: Path,
    tables: Iterable[SampleTable],
    *,
    sites: Sequence[str] = SITES,
    spark: Mapping[str, Any] | None = None,
    limits: Mapping[str, int | float] | None = None,
    lite: Sequence[str] = (),
    links: Sequence[Mapping[str, Any]] = (),
    capacity: Mapping[str, int] | None = None,
    access: Mapping[str, Any] | None = None,
) -> Path:
    """The configuration of a cluster of these sites; `lite` are members beside them. Returns `path`."""
    members: dict[str, Any] = {
        # LocalCluster moves members to ports that are free.
        site: {"address": f"127.0.0.1:{7101 + index}", "spark": dict(spark or {"master": "local[*]"}), "tables": {}}
        for index, site in enumerate(sites)
    }
    for index, name in enumerate(lite, len(sites)):
        members[name] = {"address": f"127.0.0.1:{7101 + index}", "role": "lite"}
    for name, operators in (capacity or {}).items():
        members[name]["capacity"] = operators
    for table in tables:
        members[table.site]["tables"][table.name] = _table(table, data_root)
    text: dict[str, Any] = {"cluster": "sample", "data_root": str(data_root), "members": members}
    text["limits"] = dict(limits or {})
    if access:
        text["access"] = dict(access)
    if links:
        text["links"] = [dict(link) for link in links]
    path.write_text(yaml.safe_dump(text, sort_keys=False, allow_unicode=True), encoding="utf-8")
    return path


def _table(table: SampleTable, data_root: Path) -> dict[str, Any]:
    described: dict[str, Any] = {"format": table.format, "path": str(Path(table.path).relative_to(data_root))}
    if table.options:
        described["options"] = dict(table.options)
    if table.columns:
        described["columns"] = dict(table.columns)
    return described
