"""Every mistake in the tables, sinks, links and limits of skerry.yaml gives one clear message with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.config import parse
from skerry.model.errors import ConfigError
from tests.unit.config.config_texts import limit, link, member, table, told

# (what is wrong, the file, the messages without the file's name)
MISTAKES = {
    # --- tables and sinks ------------------------------------------------------------------------
    "unknown format": (
        table("format: parket, path: x"),
        ["3:52: members.oslo.tables.orders.format: unknown format parket; did you mean parquet?"],
    ),
    "a table that leaves in an unknown way": (
        table("format: parquet, path: x, leaves: agregated"),
        ["3:78: members.oslo.tables.orders.leaves: agregated is no way to leave; did you mean aggregated?"],
    ),
    "unknown format, nothing near": (
        table("format: zip, path: x"),
        ["3:52: members.oslo.tables.orders.format: unknown format zip; use parquet, csv, json, orc, text, avro, delta"],
    ),
    "format not yet": (
        table("format: xml, path: x"),
        [
            "3:52: members.oslo.tables.orders.format: format xml is not supported yet; "
            "use one of parquet, csv, json, orc, text, avro, delta"
        ],
    ),
    "a format without its package": (
        table("format: delta, path: x"),
        [
            "3:52: members.oslo.tables.orders.format: Spark reads delta with a package; add "
            "io.delta:delta-spark_4.2_2.13:4.4.0 to spark.packages of this member, or its jar"
        ],
    ),
    "a catalog's table with a path": (
        table("table: sales.orders, path: x"),
        ["3:65: members.oslo.tables.orders.path: a table of a catalog has no path: the catalog knows it"],
    ),
    "a catalog that is not there": (
        table("table: lake.sales.orders"),
        ["3:51: members.oslo.tables.orders.table: no catalog lake; this member has spark_catalog"],
    ),
    "a name in a catalog without its end": (
        table("table: 'sales.`orders'"),
        [
            "3:51: members.oslo.tables.orders.table: sales.`orders is not the name of a table in a catalog; "
            "write catalog.namespace.table"
        ],
    ),
    "a catalog at Sail": (
        member("spark: {sail: true}, catalogs: {lake: {type: jdbc}}"),
        [
            "3:47: members.oslo.catalogs: Sail has no catalogs that Skerry reads; use Apache Spark at this member, "
            "or name files by path"
        ],
    ),
    "a secret in the file": (
        member("catalogs: {shop: {type: jdbc, secrets: {password: letmein}}}"),
        [
            "3:76: members.oslo.catalogs.shop.secrets.password: a secret does not stand in this file; "
            "write {env: NAME} or {file: path}"
        ],
    ),
    "a metastore under another name": (
        member("catalogs: {lake: {type: hive}}"),
        ["3:37: members.oslo.catalogs.lake: the Hive metastore is Spark's session catalog: call it spark_catalog"],
    ),
    "a package that is none": (
        member("spark: {packages: ['delta-spark']}"),
        ["3:45: members.oslo.spark.packages[0]: delta-spark is no Maven coordinate; write group:artifact:version"],
    ),
    "a package for a cluster": (
        member("spark: {remote: 'sc://h:1', packages: ['a:b:1']}"),
        [
            "3:54: members.oslo.spark.packages: only an embedded Apache Spark (master: local[…]) takes packages; "
            "give a cluster its jars itself"
        ],
    ),
    "a format that Sail cannot read": (
        member("spark: {sail: true}, tables: {orders: {format: orc, path: x}}"),
        [
            "3:73: members.oslo.tables.orders.format: "
            "Sail cannot read ORC; use Apache Spark at this member, or another format"
        ],
    ),
    "options that Sail takes no notice of": (
        member(
            "spark: {sail: true}, tables: {"
            "a: {format: csv, path: x, options: {Sep: ;, nullValue: NA, escape: x, encoding: utf-8}}, "
            "b: {format: json, path: x, options: {primitivesAsString: true}}, "
            "c: {format: parquet, path: x, options: {mergeSchema: true}}}"
        ),
        [
            f"3:{column}: members.oslo.tables.{key}: "
            "Sail does not read it as Apache Spark does; leave it out, or use Apache Spark at this member"
            for column, key in (
                (100, "a.options.nullValue"),
                (115, "a.options.escape"),
                (182, "b.options.primitivesAsString"),
            )
        ],
    ),
    "path outside": (
        table("format: csv, path: ../x"),
        ["3:63: members.oslo.tables.orders.path: ../x leads outside data_root"],
    ),
    "path outside, absolute": (
        table("format: csv, path: /etc/passwd"),
        ["3:63: members.oslo.tables.orders.path: /etc/passwd leads outside data_root"],
    ),
    "path outside behind a wildcard": (
        table("format: csv, path: 'a*/../../x'"),
        ["3:63: members.oslo.tables.orders.path: a*/../../x leads outside data_root"],
    ),
    "path a URL": (
        table("format: csv, path: 's3a://b/../x'"),
        ["3:63: members.oslo.tables.orders.path: s3a://b/../x leads outside its bucket"],
    ),
    "path with a NUL": (
        table(r'format: csv, path: "a\0b"'),
        ["3:63: members.oslo.tables.orders.path: has characters that cannot be printed"],
    ),
    "path empty": (table("format: csv, path: ' '"), ["3:63: members.oslo.tables.orders.path: is empty"]),
    "option of ours": (
        table("format: csv, path: x, options: {recursiveFileLookup: true}"),
        [
            "3:76: members.oslo.tables.orders.options.recursiveFileLookup: "
            "Skerry lists the files itself; say which with path"
        ],
    ),
    "option that loses rows": (
        table("format: csv, path: x, options: {ignoreCorruptFiles: true}"),
        ["3:76: members.oslo.tables.orders.options.ignoreCorruptFiles: rows would be lost silently"],
    ),
    "unknown type": (
        table("format: csv, path: x, columns: {a: bigit}"),
        ["3:79: members.oslo.tables.orders.columns.a: unknown type bigit; did you mean bigint?"],
    ),
    "decimal too wide": (
        table("format: csv, path: x, columns: {a: 'decimal(39,2)'}"),
        ["3:79: members.oslo.tables.orders.columns.a: unknown type decimal(39,2); did you mean decimal?"],
    ),
    "a comma without quotes": (
        table("format: csv, path: x, columns: {a: decimal(15,2), b: int}"),
        ["3:79: members.oslo.tables.orders.columns.a: decimal(15 is cut at a comma; put quotes around the type"],
    ),
    "no columns": (
        table("format: csv, path: x, columns: {}"),
        [
            "3:75: members.oslo.tables.orders.columns: "
            "is empty; name every column, or leave it out and Spark finds them out"
        ],
    ),
    "other columns elsewhere": (
        "cluster: c\nmembers:\n"
        "  a: {address: 'h:1', tables: {t: {format: csv, path: x, columns: {k: int, V: string}}}}\n"
        "  b: {address: 'h:2', tables: {T: {format: csv, path: y, columns: {K: INT, v: date}}}}\n",
        ["4:67: members.b.tables.T.columns: not the columns that a has: v is date here and string there"],
    ),
    "fewer columns elsewhere": (
        "cluster: c\nmembers:\n"
        "  a: {address: 'h:1', tables: {t: {format: csv, path: x, columns: {k: int, v: string}}}}\n"
        "  b: {address: 'h:2', tables: {t: {format: csv, path: y, columns: {k: int}}}}\n",
        ["4:67: members.b.tables.t.columns: not the columns that a has: v is only there"],
    ),
    "sink with a wildcard": (
        member("sinks: {out: {format: csv, path: 'a*'}}"),
        ["3:59: members.oslo.sinks.out.path: a* has a wildcard; name one directory"],
    ),
    "sink outside": (
        member("sinks: {out: {format: csv, path: ..}}"),
        ["3:59: members.oslo.sinks.out.path: .. leads outside data_root"],
    ),
    # --- links -----------------------------------------------------------------------------------
    "link to nobody": (
        link("from: oslo, to: bergem, mbit: 1"),
        ["6:20: links[0].to: no member bergem; did you mean bergen?"],
    ),
    "link with a budget that is none": (
        link("from: oslo, to: bergen, mbit: 1, query_bytes: 5 apples"),
        ["6:50: links[0].query_bytes: expected a whole number of bytes or a size like 64 MiB, not 5 apples"],
    ),
    "link with a budget below zero": (
        link("from: oslo, to: bergen, mbit: 1, query_bytes: -1"),
        ["6:50: links[0].query_bytes: must be at least 0, not -1"],
    ),
    "link with a codec that is none": (
        link("from: oslo, to: bergen, mbit: 1, codec: zst"),
        ["6:44: links[0].codec: unknown codec zst; did you mean zstd?"],
    ),
    "link to itself": (link("from: oslo, to: Oslo, mbit: 1"), ["6:3: links[0]: a link from oslo to itself"]),
    "link twice": (
        link("from: oslo, to: bergen, mbit: 1") + "- {between: [bergen, oslo], mbit: 1}",
        ["7:3: links[1]: duplicate link from oslo to bergen"],
    ),
    "link without bandwidth": (link("from: oslo, to: bergen"), ["6:3: links[0].mbit: missing"]),
    "link without an end": (
        link("from: oslo, mbit: 1"),
        ["6:3: links[0].to: missing; a link has from and to, or between: [a, b]"],
    ),
    "link said twice": (
        link("between: [oslo, bergen], to: oslo, mbit: 1"),
        ["6:3: links[0]: between says both directions; leave out from and to"],
    ),
    "between three": (
        link("between: [oslo, bergen, oslo], mbit: 1"),
        ["6:13: links[0].between: expected two members, not 3"],
    ),
    "no bandwidth": (
        link("from: oslo, to: bergen, mbit: 0"),
        ["6:34: links[0].mbit: must be above 0, not 0"],
    ),
    "negative delay": (
        link("from: oslo, to: bergen, mbit: 1, ms: -1"),
        ["6:41: links[0].ms: must be at least 0, not -1"],
    ),
    "negative price": (
        link("from: oslo, to: bergen, mbit: 1, usd_per_gb: -0.5"),
        ["6:49: links[0].usd_per_gb: must be at least 0, not -0.5"],
    ),
    "endless bandwidth": (
        link("from: oslo, to: bergen, mbit: .inf"),
        ["6:34: links[0].mbit: expected a number, not .inf"],
    ),
    "bandwidth beyond doubles": (
        link("from: oslo, to: bergen, mbit: 1e999"),
        ["6:34: links[0].mbit: must be above 0, not 1e999"],
    ),
    # --- limits ----------------------------------------------------------------------------------
    "unknown limit": (limit("page_row: 1"), ["4:10: limits.page_row: unknown key; did you mean page_rows?"]),
    "limit of zero": (limit("page_rows: 0"), ["4:21: limits.page_rows: must be at least 1, not 0"]),
    "limit text": (limit("page_rows: few"), ["4:21: limits.page_rows: expected a whole number, not few"]),
    "limit true": (limit("page_rows: true"), ["4:21: limits.page_rows: expected a whole number, not true"]),
    "seconds of zero": (limit("heartbeat_s: 0"), ["4:23: limits.heartbeat_s: must be above 0, not 0"]),
    "ids forgotten too soon": (limit("marker_s: 89"), ["4:20: limits.marker_s: must be at least 90, not 89"]),
    "size with a wrong unit": (
        limit("page_bytes: 4 MB"),
        ["4:22: limits.page_bytes: expected a whole number of bytes or a size like 64 MiB, not 4 MB"],
    ),
    "frame over u32": (
        limit("frame_bytes: 4 GiB"),
        ["4:23: limits.frame_bytes: must be at most 4294967295, not 4294967296"],
    ),
    "batch over frame": (
        limit("batch_bytes: 65 MiB"),
        ["4:23: limits.batch_bytes: batch_bytes must not be above frame_bytes"],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_with_its_place(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    assert told(text, tmp_path) == [f"skerry.yaml:{line}" for line in expected]


def test_a_symlink_out_of_the_data_root_is_a_mistake(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "data" / "orders").symlink_to(tmp_path / "secret")
    with pytest.raises(ConfigError, match=r"orders.path: orders/x leads outside data_root$"):
        parse(table("format: csv, path: orders/x") + "\ndata_root: data", base_dir=tmp_path)
