"""Files of one table with different columns: Apache Spark and Sail give the same rows, or the same error."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.config import parse
from skerry.spark.engine import Engine
from skerry.testing.cluster import LocalCluster

INT, LONG, TEXT = pa.int32(), pa.int64(), pa.string()
NONE = pa.null()
PAIR, RIAP = pa.struct({"x": LONG, "y": LONG}), pa.struct({"y": LONG, "x": LONG})
Rows = list[tuple[Any, ...]]


class Case(NamedTuple):
    """Parquet files of one table, each as columns of (type, values), and what a query has of them."""

    files: tuple[dict[str, tuple[pa.DataType, list[Any]]], ...]
    names: str = ""
    rows: Rows = []  # noqa: RUF012 - nobody changes it
    error: str = ""
    table: dict[str, Any] = {}  # noqa: RUF012 - more of the table's configuration


AB: dict[str, tuple[pa.DataType, list[Any]]] = {"a": (LONG, [1]), "b": (TEXT, ["x"])}
CASES = {
    "missing": Case((AB, {"a": (LONG, [2])}), "a b", [(1, "x"), (2, None)]),
    "another_order": Case((AB, {"b": (TEXT, ["y"]), "a": (LONG, [2])}), "a b", [(1, "x"), (2, "y")]),
    "another_case": Case((AB, {"A": (LONG, [2]), "b": (TEXT, ["y"])}), "a b", [(1, "x"), (2, "y")]),
    "shorter": Case((AB, {"a": (INT, [2]), "b": (pa.large_string(), ["y"])}), "a b", [(1, "x"), (2, "y")]),
    "shortest": Case(({"a": (INT, [1])}, {"a": (pa.int8(), [2])}), "a", [(1,), (2,)]),
    "doubles": Case(({"a": (pa.float64(), [0.5])}, {"a": (INT, [2])}), "a", [(0.5,), (2.0,)]),
    "decimals": Case(
        (
            {"a": (pa.decimal128(14, 2), [Decimal("1.5")])},
            {"a": (INT, [2])},
            {"a": (pa.decimal128(9, 1), [Decimal(3)])},
        ),
        "a",
        [(Decimal("1.50"),), (Decimal("2.00"),), (Decimal("3.00"),)],
    ),
    "no_type": Case((AB, {"a": (pa.null(), [None]), "b": (TEXT, ["y"])}), "a b", [(1, "x"), (None, "y")]),
    "lists": Case(({"a": (pa.list_(LONG), [[1]])}, {"a": (pa.list_(INT), [[2]])}), "a", [([1],), ([2],)]),
    "vectors": Case(({"a": (pa.list_(LONG, 2), [[1, 2], None])},), "a", [([1, 2],), (None,)]),
    "vectors_and_lists": Case(
        ({"a": (pa.list_(LONG, 2), [[1, 2]])}, {"a": (pa.list_(LONG), [[3]])}, {"a": (pa.list_(INT, 1), [[4]])}),
        "a",
        [([1, 2],), ([3],), ([4],)],
    ),
    "unsigned": Case(({"a": (pa.uint32(), [2**32 - 1])}, {"a": (LONG, [2**40])}), "a", [(2**32 - 1,), (2**40,)]),
    "structs": Case(
        ({"a": (pa.struct({"x": LONG, "y": TEXT}), [{"x": 1, "y": "z"}])}, {"a": (pa.struct({"x": INT}), [{"x": 2}])}),
        "a",
        [({"x": 1, "y": "z"},), ({"x": 2, "y": None},)],
    ),
    "swapped": Case(
        (
            {"a": (LONG, [1]), "s": (PAIR, [{"x": 1, "y": 2}]), "l": (pa.list_(PAIR), [[{"x": 1, "y": 2}]])},
            {"a": (INT, [2]), "s": (RIAP, [{"x": 3, "y": 4}]), "l": (pa.list_(RIAP), [[{"x": 3, "y": 4}]])},
        ),
        "a s l",
        [(1, {"x": 1, "y": 2}, [{"x": 1, "y": 2}]), (2, {"x": 3, "y": 4}, [{"x": 3, "y": 4}])],
    ),
    "declared_swapped": Case(
        ({"a": (LONG, [1]), "s": (PAIR, [{"x": 1, "y": 2}])}, {"a": (INT, [2]), "s": (RIAP, [{"x": 3, "y": 4}])}),
        "a s",
        [(1, {"y": 2, "x": 1}), (2, {"y": 4, "x": 3})],
        table={"columns": {"a": "bigint", "s": "struct<y:bigint,x:bigint>"}},
    ),
    "declared_inside": Case(
        ({"s": (PAIR, [{"x": 1, "y": 2}])}, {"s": (pa.struct({"x": LONG, "y": pa.float64()}), [{"x": 1, "y": 2.5}])}),
        error="s is struct<y:bigint> in members.oslo.tables.declared_inside.columns and "
        "struct<x:bigint,y:double> in 1.parquet; write one",
        table={"columns": {"s": "struct<y:bigint>"}},
    ),
    "vectors_inside": Case(({"s": (pa.struct({"v": pa.list_(LONG, 2)}), [{"v": [1, 2]}])},), "s", [({"v": [1, 2]},)]),
    "one_more": Case(({"a": (LONG, [2])}, AB), error="b is a column of 1.parquet and not of 0.parquet; name the"),
    "longer": Case(
        ({"a": (INT, [2])}, AB), error="a is int in 0.parquet and bigint in 1.parquet; declare it as bigint"
    ),
    "number_and_text": Case(
        (AB, {"a": (TEXT, ["2"])}), error="a is bigint in 0.parquet and string in 1.parquet; write one"
    ),
    "merged": Case(({"a": (LONG, [2])}, AB), "a b", [(1, "x"), (2, None)], table={"options": {"mergeSchema": True}}),
    "merged_late": Case(
        (
            {"s": (pa.struct({"x": INT}), [{"x": 1}])},
            {"s": (pa.struct({"y": INT}), [{"y": 2}])},
            {"s": (pa.struct({"y": TEXT}), [{"y": "007"}])},
        ),
        error="s is struct<y:int> in 1.parquet and struct<y:string> in 2.parquet; write one",
        table={"options": {"mergeSchema": True}},
    ),
    "merged_cases": Case(
        ({"s": (pa.struct({"A": INT}), [{"A": 1}])}, {"s": (pa.struct({"a": INT}), [{"a": 2}])}),
        error="s is struct<A:int> in 0.parquet and struct<a:int> in 1.parquet; write one",
        table={"options": {"mergeSchema": True}},
    ),
    "merged_apart": Case(
        (
            {"a": (TEXT, ["1"]), "s": (pa.struct({"x": INT}), [{"x": 1}])},
            {"a": (pa.large_string(), ["2"]), "s": (pa.struct({"y": TEXT}), [{"y": "007"}])},
        ),
        "a s",
        [("1", {"x": 1, "y": None}), ("2", {"x": None, "y": "007"})],
        table={"options": {"mergeSchema": True}},
    ),
    "merged_maps": Case(
        (
            {"m": (pa.map_(TEXT, pa.struct({"x": INT})), [[("k", {"x": 1})]])},
            {"m": (pa.map_(TEXT, pa.struct({"y": INT})), [[("k", {"y": 2})]])},
        ),
        "m",
        [({"k": {"x": 1, "y": None}},), ({"k": {"x": None, "y": 2}},)],
        table={"options": {"mergeSchema": True}},
    ),
    "no_type_inside": Case(
        (
            {"s": (pa.struct({"x": NONE, "y": LONG}), [{"x": None, "y": 1}])},
            {"s": (pa.struct({"x": INT}), [{"x": 2}])},
        ),
        "s",
        [({"x": None, "y": 1},), ({"x": 2, "y": None},)],
    ),
    "declared": Case(
        ({"a": (INT, [2])}, AB, {"B": (TEXT, ["y"]), "c": (LONG, [3])}),
        "B a",
        [("x", 1), ("y", None), (None, 2)],
        table={"columns": {"B": "string", "a": "bigint"}},
    ),
    "declared_otherwise": Case(
        (AB,),
        error="b is bigint in members.oslo.tables.declared_otherwise.columns and string in 0.parquet",
        table={"columns": {"b": "bigint"}},
    ),
}
# Sail takes a column without a type for any; Apache Spark takes it for an int.
SAIL = {
    "untyped_longer": Case(
        ({"a": (NONE, [None])}, {"a": (INT, [1])}, {"a": (LONG, [2**40])}),
        error="a is int in 1.parquet and bigint in 2.parquet; declare it as bigint",
    ),
    "untyped_texts": Case(
        ({"a": (NONE, [None])}, {"a": (INT, [1])}, {"a": (TEXT, ["007"])}),
        error="a is int in 1.parquet and string in 2.parquet; write one",
    ),
    "untyped_inside": Case(
        (
            {"s": (pa.struct({"x": NONE}), [{"x": None}])},
            {"s": (pa.struct({"x": INT}), [{"x": 1}])},
            {"s": (pa.struct({"x": TEXT}), [{"x": "007"}])},
        ),
        error="s is struct<x:int> in 1.parquet and struct<x:string> in 2.parquet; write one",
    ),
    "untyped_text": Case(
        ({"s": (pa.struct({"x": NONE}), [{"x": None}])}, {"s": (pa.struct({"x": TEXT}), [{"x": "007"}])}),
        "s",
        [({"x": None},), ({"x": "007"},)],
    ),
    "untyped_apart": Case(
        (
            {"a": (INT, [1]), "b": (NONE, [None]), "s": (pa.struct({"x": NONE}), [{"x": None}])},
            {"A": (INT, [2]), "b": (TEXT, ["007"]), "s": (pa.struct({"x": TEXT}), [{"x": "008"}])},
        ),
        "a b s",
        [(1, None, {"x": None}), (2, "007", {"x": "008"})],
    ),
    "untyped_shorter": Case(
        (
            {"a": (NONE, [None]), "b": (INT, [1])},
            {"a": (LONG, [2**40]), "B": (INT, [2])},
            {"a": (INT, [3]), "b": (INT, [3])},
        ),
        "a b",
        [(None, 1), (2**40, 2), (3, 3)],
    ),
}
TEXTS = {
    "ordered.csv": ("a,b\n1,x\n", "b,a\ny,2\n"),
    "tabs.csv": ("a\tb\n1\tx\n", "a\tb\n2\ty\n"),
    "mixed.json": ('{"a": 1}', '{"a": "x"}'),
    "numbers.json": ('{"a": 1}', '{"a": 2.5}'),
    "cased.json": ('{"a": {"x": 1}}', '{"a": {"X": 2}}'),
    "unsorted.json": ('{"b": 1, "a": {"z": 2, "y": null}, "n": null}', '{"c": [{"f": 3, "e": 4}], "b": 5}'),
}
# What Sail says of them, for it makes no strings of such values, and knows no names in any case.
UNREAD = {
    "mixed": "a is bigint in 0.json and string in 1.json; write one of them anew, or use Apache Spark at this member",
    "numbers": "a is bigint in 0.json and double in 1.json; declare its type in members.oslo.tables.numbers.columns",
    "cased": "a is struct<x:bigint> in 0.json and struct<X:bigint> in 1.json; write one of them anew, or use Apache",
}
HEADERS = "the columns of 1.csv stand in another order than those of 0.csv"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("files")
    for name, case in (CASES | SAIL).items():
        (folder / name).mkdir()
        for number, columns in enumerate(case.files):
            table = pa.table({key: pa.array(values, kind) for key, (kind, values) in columns.items()})
            pq.write_table(table, folder / name / f"{number}.parquet")
    for name, texts in TEXTS.items():
        (folder / name).mkdir()
        for number, text in enumerate(texts):
            (folder / name / f"{number}{Path(name).suffix}").write_text(text)
    return folder


@pytest.fixture
def cursor(engine: Engine, request: pytest.FixtureRequest, folder: Path) -> Iterator[Cursor]:
    is_sail = "sail" in request.node.callspec.id
    cases = CASES | SAIL if is_sail else CASES
    tables: dict[str, Any] = {name: {"format": "parquet", "path": name, **case.table} for name, case in cases.items()}
    tables["ordered"] = {"format": "csv", "path": "ordered.csv", "options": {"header": True}}
    for name, tab in (("tabs", "\t"), ("escaped", "\\t")):
        tables[name] = {"format": "csv", "path": "tabs.csv", "options": {"header": True, "sep": tab}}
    for name in ("mixed", "numbers", "cased", "unsorted"):
        tables[name] = {"format": "json", "path": f"{name}.json"}
    oslo = {"address": "127.0.0.1:1", "tables": tables, "spark": {"sail": True} if is_sail else {"master": "local[2]"}}
    text = json.dumps({"cluster": "files", "data_root": str(folder), "members": {"oslo": oslo}})
    with LocalCluster(parse(text), engine=engine) as cluster:
        yield cluster.connect().cursor()


def test_the_same_rows_or_the_same_error(cursor: Cursor, request: pytest.FixtureRequest) -> None:
    for name, case in (CASES | SAIL if "sail" in request.node.callspec.id else CASES).items():
        if case.error:
            with pytest.raises(skerry.OperationalError) as caught:
                cursor.execute(f"SELECT * FROM {name}")
            assert f"site oslo: table {name}: {case.error}" in str(caught.value), name
            continue
        found = cursor.execute(f"SELECT * FROM {name}").fetchall()
        assert sorted(found, key=repr) == sorted(case.rows, key=repr), name
        assert " ".join(column[0] for column in cursor.description or ()) == case.names, name
    # Conditions go down to the files, whatever these call their columns.
    for condition, count in (("a = 2", 1), ("a > 1 AND b = 'y'", 1), ("b IS NULL", 0)):
        for name in ("another_order", "another_case", "shorter"):
            assert cursor.execute(f"SELECT count(*) FROM {name} WHERE {condition}").fetchall() == [(count,)], name
    assert cursor.execute("SELECT a FROM missing WHERE b IS NULL").fetchall() == [(2,)]


def test_csv_and_json(cursor: Cursor, request: pytest.FixtureRequest) -> None:
    with pytest.raises(skerry.OperationalError, match=f"table ordered: {HEADERS}"):
        cursor.execute("SELECT * FROM ordered")
    for name in ("tabs", "escaped"):
        assert sorted(cursor.execute(f"SELECT a, b FROM {name}").fetchall()) == [("1", "x"), ("2", "y")]
    cursor.execute("SELECT * FROM unsorted WHERE b = 1")
    assert cursor.fetchall() == [({"y": None, "z": 2}, 1, None, None)]
    assert cursor.execute("DESCRIBE unsorted").fetchall() == [
        ("a", "struct<y:string,z:bigint>"),
        ("b", "bigint"),
        ("c", "array<struct<e:bigint,f:bigint>>"),
        ("n", "string"),
    ]
    if "sail" in request.node.callspec.id:
        for name, words in UNREAD.items():
            with pytest.raises(skerry.OperationalError, match=re.escape(words)):
                cursor.execute(f"SELECT * FROM {name}")
    else:
        assert sorted(cursor.execute("SELECT * FROM mixed").fetchall()) == [("1",), ("x",)]
