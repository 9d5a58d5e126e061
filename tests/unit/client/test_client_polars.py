"""`polars.read_database` gets what the cursor has: Arrow, with every type as it is."""

from __future__ import annotations

import datetime
import subprocess
import sys
from decimal import Decimal

import polars
import pyarrow as pa
import pytest
from polars.io.database import _arrow_registry, _executor

import skerry
from skerry.client.polars_driver import tell_polars
from tests.unit.client.scripted_member import Answers, member_with

NOON = datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC)
TABLE = pa.table(
    {
        "small": pa.array([1, None, 3], pa.int8()),
        "price": pa.array([Decimal("1.50"), None, Decimal("-0.01")], pa.decimal128(38, 2)),
        "at": pa.array([NOON, None, NOON], pa.timestamp("us", "UTC")),
        "tags": pa.array([[1, None], [], None], pa.list_(pa.int32())),
        "place": pa.array(
            [{"x": 1.5, "day": NOON.date()}, None, {"x": None, "day": None}],
            pa.struct({"x": pa.float32(), "day": pa.date32()}),
        ),
    }
)
SCHEMA = {
    "small": polars.Int8(),
    "price": polars.Decimal(38, 2),
    "at": polars.Datetime("us", "UTC"),
    "tags": polars.List(polars.Int32()),
    "place": polars.Struct({"x": polars.Float32(), "day": polars.Date()}),
}
ANSWERS = {"SELECT all": TABLE, "SELECT none": TABLE.slice(0, 0)}


@pytest.fixture(autouse=True)
def no_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("polars reads rows one by one")

    monkeypatch.setattr(_executor.ConnectionExecutor, "_from_rows", refuse)


def test_a_frame_has_the_types_of_the_result() -> None:
    with member_with(Answers(ANSWERS, page_rows=2)) as member, skerry.connect(member.url) as connection:
        frame = polars.read_database("SELECT all", connection)
        assert dict(frame.schema) == SCHEMA
        assert frame.rows() == [tuple(row.values()) for row in TABLE.to_pylist()]
        assert polars.read_database("SELECT all", connection.cursor()).equals(frame)
        none = polars.read_database("SELECT none", connection)
        assert (dict(none.schema), none.height) == (SCHEMA, 0)


def test_frames_come_page_by_page() -> None:
    with member_with(Answers(ANSWERS, page_rows=2)) as member, skerry.connect(member.url) as connection:
        frames = list(polars.read_database("SELECT all", connection, iter_batches=True))
        assert [frame.height for frame in frames] == [2, 1]
        assert [dict(frame.schema) for frame in frames] == [SCHEMA, SCHEMA]


def test_a_table_of_drivers_that_looks_otherwise_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    other = {"duckdb": [{"fetch_all": "fetch_arrow_table"}]}
    monkeypatch.setattr(_arrow_registry, "ARROW_DRIVER_REGISTRY", other)
    tell_polars()
    assert other == {"duckdb": [{"fetch_all": "fetch_arrow_table"}]}


def test_the_client_does_not_load_polars() -> None:
    code = "import sys, skerry.client.dbapi, skerry.client.polars_driver as driver; driver.tell_polars()"
    ran = subprocess.run([sys.executable, "-c", f"{code}; print('polars' in sys.modules)"], capture_output=True)
    assert ran.stdout.strip() == b"False", ran.stderr
