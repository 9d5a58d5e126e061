"""Checks of a configuration against the files on this machine: what `skerry check` does beyond reading."""

from __future__ import annotations

import os
from collections.abc import Collection

from skerry.catalog.agreement import asked_of, disagreement, is_merged
from skerry.catalog.deltalog import look as look_at_delta
from skerry.catalog.footers import Footers, columns_of
from skerry.catalog.headers import header_difference
from skerry.catalog.listing import ListingError, list_table, unread_by_sail
from skerry.catalog.stores import list_store
from skerry.config.yaml_nodes import Notes
from skerry.model.columns import difference
from skerry.model.config import Config, SparkConfig, TableConfig
from skerry.model.errors import SiteError
from skerry.model.sources import PlainFiles, VersionedFolder, is_remote
from skerry.model.table import Column


def check_files(
    config: Config, notes: Notes, members: Collection[str] | None = None
) -> dict[tuple[str, str], tuple[Column, ...]]:
    """Notes tables without files, files that the member cannot read, and parts of one table with different columns.

    `members` names those whose files are on this machine; None: all. Answers the columns that are known, by member and
    table.
    """
    found: dict[tuple[str, str], tuple[Column, ...]] = {}
    footers = Footers(config.limits.footers)
    first: dict[str, tuple[str, tuple[Column, ...]]] = {}
    for member in config.members.values():
        if members is not None and member.name not in members:
            continue
        for table in member.tables.values():
            if not isinstance(table.source, PlainFiles):  # only the site's Spark can tell
                _check_folder(config, table, notes)
                continue
            assert member.spark is not None, "lite members have no tables"
            columns = _columns(config, table, member.spark, footers, notes)
            if not columns:
                continue
            found[member.name, table.name] = columns
            known_member, known = first.setdefault(table.name.lower(), (member.name, columns))
            how = difference(columns, known)
            if how:
                text = f"not the columns that {known_member} has: {how}"
                notes.note(f"{table.key}.{'columns' if table.columns else 'path'}", text)
    return found


def _check_folder(config: Config, table: TableConfig, notes: Notes) -> None:
    if isinstance(table.source, VersionedFolder) and not is_remote(table.path):
        try:
            look_at_delta(os.path.normpath(os.path.join(config.data_root, table.path)), table, None)
        except ListingError as error:
            notes.note(f"{table.key}.path", error.reason.removesuffix(f" (check {table.key}.path)"))


def _columns(
    config: Config, table: TableConfig, spark: SparkConfig, footers: Footers, notes: Notes
) -> tuple[Column, ...]:
    """The columns as far as they can be known without Spark; () when they cannot."""
    is_sail, files_max = spark.sail, config.limits.table_files
    try:
        if table.is_listed:
            listing = list_table(config.data_root, table, files_max)
        else:
            listing = asked_of(list_store(table, spark.storage, files_max))
        is_parquet = table.format == "parquet"
        read = footers.each(listing.files, listing.stamps, listing.storage) if is_parquet else []
        wrong = (
            unread_by_sail(listing.root, listing.files) if is_sail else "",
            disagreement(table, listing, read, is_sail) if read else header_difference(table, listing, is_sail),
        )
    except ListingError as error:
        notes.note(f"{table.key}.path", error.reason.removesuffix(f" (check {table.key}.path)"))
        return table.columns
    except SiteError as error:
        notes.note(f"{table.key}.path", error.message)
        return table.columns
    for how in filter(None, wrong):
        notes.note(f"{table.key}.path", how)
    return table.columns or (() if is_merged(table) else columns_of(listing, read))
