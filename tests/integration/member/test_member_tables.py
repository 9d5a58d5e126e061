"""Files that come, go and change under a table while members run."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import skerry
from skerry.client.dbapi import Cursor
from skerry.config import MemberConfig, TableConfig
from tests.integration.member.conftest import StartCluster

pytestmark = pytest.mark.spark


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "oslo" / "stock"
    path.mkdir(parents=True)
    write(path / "a.parquet", {"id": [1, 2], "item": ["net", "buoy"]})
    return path


@pytest.fixture(params=["oslo", "bergen"], ids=["own table", "table of another site"])
def cursor(request: pytest.FixtureRequest, folder: Path, tmp_path: Path, start_members: StartCluster) -> Cursor:
    other = tmp_path / "bergen" / "price"
    other.mkdir(parents=True)
    write(other / "a.parquet", {"id": [1, 2, 3], "price": [10, 20, 30]})
    cluster = start_members(tables={"oslo": {"stock": folder}, "bergen": {"price": other}})
    return cluster.connect(request.param).cursor()


def write(path: Path, columns: dict[str, list[object]]) -> None:
    pq.write_table(pa.table(columns), path)


def test_a_file_is_added_and_removed(cursor: Cursor, folder: Path) -> None:
    count = "SELECT count(*) FROM stock"
    assert cursor.execute(count).fetchall() == [(2,)]
    write(folder / "b.parquet", {"id": [3], "item": ["oar"]})
    assert cursor.execute(count).fetchall() == [(3,)]
    assert sorted(cursor.execute("SELECT item FROM stock").fetchall()) == [("buoy",), ("net",), ("oar",)]
    (folder / "a.parquet").unlink()
    assert cursor.execute("SELECT * FROM stock").fetchall() == [(3, "oar")]


def test_other_columns(cursor: Cursor, folder: Path) -> None:
    """A query planned with the old columns is planned again."""
    everything = "SELECT * FROM stock"
    joined = "SELECT s.item, p.price FROM stock s JOIN price p ON p.id = s.id"
    assert sorted(cursor.execute(everything).fetchall()) == [(1, "net"), (2, "buoy")]
    assert sorted(cursor.execute(joined).fetchall()) == [("buoy", 20), ("net", 10)]
    write(folder / "a.parquet", {"id": ["1"], "item": ["net"], "colour": ["red"]})
    assert cursor.execute(everything).fetchall() == [("1", "net", "red")]
    assert [column[:2] for column in cursor.description or []] == [
        ("id", "string"),
        ("item", "string"),
        ("colour", "string"),
    ]
    assert cursor.execute(joined).fetchall() == [("net", 10)]


def test_other_columns_at_all_sites(start_sail: StartCluster, tmp_path: Path) -> None:
    """Each part differs from what is known of the others until all have been asked."""
    parts: list[Path] = []

    def with_part(member: MemberConfig) -> MemberConfig:
        parts.append(tmp_path / member.name / "a.parquet")
        parts[-1].parent.mkdir()
        write(parts[-1], {"id": [1], "item": ["net"]})
        table = TableConfig(member.name, "stock", "parquet", str(parts[-1].parent))
        return msgspec.structs.replace(member, tables={"stock": table})

    cursor = start_sail(more={"data_root": str(tmp_path)}, each=with_part).connect("bergen").cursor()
    assert cursor.execute("SELECT * FROM stock").fetchall() == [(1, "net")] * 3
    for part in parts:
        write(part, {"id": [1]})
    assert cursor.execute("SELECT * FROM stock").fetchall() == [(1,)] * 3


def test_a_new_column_can_be_named_at_once(cursor: Cursor, folder: Path) -> None:
    assert cursor.execute("SELECT count(item) FROM stock").fetchall() == [(2,)]
    write(folder / "a.parquet", {"id": [1], "colour": ["red"]})
    assert cursor.execute("SELECT colour FROM stock").fetchall() == [("red",)]


def test_a_column_that_is_gone_is_named(cursor: Cursor, folder: Path) -> None:
    assert cursor.execute("SELECT item FROM stock").fetchall() == [("net",), ("buoy",)]
    write(folder / "a.parquet", {"id": [1], "colour": ["red"]})
    with pytest.raises(skerry.ProgrammingError, match="item"):
        cursor.execute("SELECT item FROM stock")
    assert cursor.execute("SELECT colour FROM stock").fetchall() == [("red",)]


def test_no_file_is_left(cursor: Cursor, folder: Path) -> None:
    assert cursor.execute("SELECT count(*) FROM stock").fetchall() == [(2,)]
    (folder / "a.parquet").unlink()
    with pytest.raises(skerry.OperationalError, match=r"site oslo.*stock.*no file"):
        cursor.execute("SELECT count(*) FROM stock")
    assert cursor.execute("SELECT count(*) FROM price").fetchall() == [(3,)]
    write(folder / "a.parquet", {"id": [7], "item": ["net"]})
    assert cursor.execute("SELECT id FROM stock").fetchall() == [(7,)]


def test_a_damaged_file_is_named(cursor: Cursor, folder: Path) -> None:
    path = folder / "a.parquet"
    pq.write_table(pa.table({"id": range(1000), "item": [f"item {each * 7919}" for each in range(1000)]}), path)
    content = bytearray(path.read_bytes())
    content[4 : len(content) // 2] = b"\xff" * (len(content) // 2 - 4)  # the footer, which says all is well, stays
    path.write_bytes(content)
    with pytest.raises(skerry.OperationalError, match=r"site oslo: .*a\.parquet") as caught:
        cursor.execute("SELECT s.item, p.price FROM stock s JOIN price p ON p.id = s.id").fetchall()
    assert caught.value.member == "oslo"
    assert "\n" not in caught.value.message
    assert "org.apache" not in caught.value.message
    assert cursor.execute("SELECT count(*) FROM price").fetchall() == [(3,)]
