"""Settings, slots, tags and the search for Java: all that needs no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.model.errors import Cancelled, ConfigError, InternalError, SiteError, SqlError
from skerry.spark.base import escape_glob, with_views
from skerry.spark.jvm import check_java
from skerry.spark.operators import operators_in_a_row
from skerry.spark.order import orders_result, with_total_order
from skerry.spark.sail import SailEngine
from skerry.spark.settings import FIXED, SparkSettings, embedded_conf, slot_count, sql_conf
from skerry.spark.slots import Slots
from skerry.spark.tags import Tags


def test_an_embedded_spark_has_four_slots_a_core_and_one_scan_task_a_core() -> None:
    for settings in (SparkSettings(cores=3), SparkSettings(master="local[3]")):
        conf = embedded_conf(settings, "/tmp/x")
        assert conf["spark.master"] == "local[12]"
        assert conf["spark.sql.leafNodeDefaultParallelism"] == conf["spark.sql.files.maxPartitionNum"] == "3"
    assert slot_count(SparkSettings(master="spark://host:7077")) is None
    assert slot_count(SparkSettings(sail=True)) is None


def test_the_user_s_settings_come_last_but_answers_stay_the_same() -> None:
    assert sql_conf(SparkSettings(conf={"spark.sql.shuffle.partitions": "7"}))["spark.sql.shuffle.partitions"] == "7"
    for key in FIXED:
        with pytest.raises(ConfigError, match=key):
            sql_conf(SparkSettings(conf={key: "something else"}))
    assert sql_conf(SparkSettings(conf={"spark.sql.ansi.enabled": "TRUE"}))
    # A cluster may retry tasks: its rows are kept per attempt.
    assert sql_conf(SparkSettings(master="yarn", conf={"spark.task.maxFailures": "4"}))


def test_a_machine_without_java_is_told_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(SiteError, match="needs Java") as caught:
        check_java()
    assert "openjdk-17-jre-headless" in caught.value.suggestion
    assert "JAVA_HOME" in caught.value.suggestion
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(SiteError, match="does not run"):
        check_java()
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\n")
    old.chmod(0o755)
    with pytest.raises(SiteError, match="is 11"):
        check_java()


def test_slots_are_taken_all_or_none() -> None:
    slots = Slots(4)
    assert slots.try_take(3)
    assert not slots.try_take(2)
    assert slots.try_take(1)
    slots.give_back(4)
    assert slots.free == 4
    with pytest.raises(InternalError):
        slots.give_back(1)


def test_a_cancelled_tag_never_runs() -> None:
    tags = Tags(remembered=2)
    with tags.running("a"):
        assert tags.names() == ["a"]
        tags.cancel("a")
        with pytest.raises(Cancelled):
            tags.refuse_cancelled("a")
    with pytest.raises(Cancelled), tags.running("a"):
        raise AssertionError("it ran")
    tags.cancel("b")
    tags.cancel("c")  # a is forgotten
    with tags.running("a"):
        assert tags.names() == ["a"]
    assert tags.names() == []


def test_placeholders_are_replaced_as_whole_words() -> None:
    views = {"leaf_1": "skerry_table_9", "leaf_12": "skerry_edge_1"}
    sql = "SELECT leaf_1.a, `leaf_12`.b FROM leaf_1 JOIN leaf_12 ON leaf_123"
    assert with_views(sql, views) == (
        "SELECT skerry_table_9.a, `skerry_edge_1`.b FROM skerry_table_9 JOIN skerry_edge_1 ON leaf_123"
    )
    assert with_views("SELECT 1", {}) == "SELECT 1"


def test_patterns_in_file_names_are_escaped() -> None:
    assert escape_glob("/data/a [1]*{x}?.parquet") == r"/data/a \[1\]\*\{x\}\?.parquet"


@pytest.mark.parametrize(
    ("sql", "total"),
    [
        ("SELECT a FROM t SORT BY a", "SELECT a FROM t ORDER BY a"),
        ("SELECT a FROM t\norder  by a LIMIT 3", "SELECT a FROM t\nORDER BY a LIMIT 3"),
        ("SELECT 'x (' FROM t SORT BY `(`", "SELECT 'x (' FROM t ORDER BY `(`"),
    ],
)
def test_a_result_in_order_is_seen(sql: str, total: str) -> None:
    assert orders_result(sql)
    assert with_total_order(sql) == total


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT sum(a) OVER (PARTITION BY b ORDER BY a) FROM t",
        "SELECT ' ORDER BY ' FROM t",
        "SELECT `SORT BY` FROM (SELECT 1 ORDER BY 1)",
        "SELECT a AS order_by FROM t",
    ],
)
def test_a_result_in_any_order_is_seen(sql: str) -> None:
    assert not orders_result(sql)
    assert with_total_order(sql) == sql


@pytest.mark.parametrize(
    ("sql", "most"),
    [
        ("SELECT a", 0),
        ("SELECT a FROM t WHERE " + " OR ".join("a = 1" for _ in range(400)), 399),
        ("SELECT a FROM t WHERE x AND (" + " OR ".join("(a = 1 AND b = 2)" for _ in range(10)) + ")", 11),
        ("SELECT a FROM t WHERE a IN (" + ", ".join("1 + 1" for _ in range(400)) + ")", 1),
        ("SELECT " + ", ".join("a + 1" for _ in range(400)) + " FROM t", 1),
        ("SELECT CASE " + " ".join("WHEN a AND b THEN 1" for _ in range(400)) + " END + 1 + 2 FROM t", 2),
        ("SELECT a FROM t WHERE a BETWEEN 1 AND 2 AND b BETWEEN 1 AND 2", 1),
        ("SELECT 'a OR b OR c', `x OR y` FROM t", 0),
        (" UNION ALL ".join("SELECT a FROM t WHERE a OR b" for _ in range(400)), 399),
        ("SELECT " + " || ".join("a" for _ in range(400)) + " FROM t", 399),
    ],
)
def test_operators_in_a_row(sql: str, most: int) -> None:
    assert operators_in_a_row(sql) == most


def test_sail_gets_no_expression_that_its_stack_has_no_room_for() -> None:
    engine = SailEngine(SparkSettings(sail=True))
    row = "SELECT a FROM t WHERE " + " OR ".join("a = 1" for _ in range(300))
    assert engine._text(row) == row
    with pytest.raises(SqlError, match="more than 300 operators in a row"):
        engine._text(f"{row} OR a = 1 OR a = 2")
