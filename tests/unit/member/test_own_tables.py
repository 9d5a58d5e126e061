"""A member's tables without a Spark: what its files alone decide."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from skerry.config import parse
from skerry.member.server import Member
from skerry.model.errors import SiteError


async def _with_member(text: str, act: str, *arguments: str) -> None:
    member = Member(parse(text), "oslo", None)
    try:
        part, method = act.split(".")
        await getattr(getattr(member, part), method)(*arguments)
    finally:
        await member.stop()


def test_a_cluster_without_tables_has_nobody_to_ask() -> None:
    text = "cluster: c\nmembers: {oslo: {address: 'h:1'}}"
    assert asyncio.run(_with_member(text, "peer_tables.refresh")) is None


def test_the_bound_on_files_is_the_configurations(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.csv").write_text("1\n")
    text = (
        f"cluster: c\ndata_root: {tmp_path}\nlimits: {{table_files: 1}}\n"
        "members: {oslo: {address: 'h:1', tables: {t: {format: csv, path: '*.csv'}}}}"
    )
    with pytest.raises(SiteError, match="more than 1 files"):
        asyncio.run(_with_member(text, "tables.snapshot", "t"))
