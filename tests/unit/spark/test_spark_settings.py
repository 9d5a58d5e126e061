"""Settings, slots, tags and the search for Java: all that needs no Spark."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from skerry.model.errors import Cancelled, ConfigError, InternalError, SiteError, SqlError
from skerry.spark.connect import place_of
from skerry.spark.engine import Job
from skerry.spark.jvm import check_java
from skerry.spark.sail import SailEngine
from skerry.spark.settings import FIXED, SparkSettings, embedded_conf, slot_count, sql_conf
from skerry.spark.slots import Slots
from skerry.spark.tags import Tags
from skerry.spark.views import escape_glob, with_views


def test_an_embedded_spark_has_four_slots_a_core_and_one_scan_task_a_core() -> None:
    for settings in (SparkSettings(cores=3), SparkSettings(master="local[3]")):
        conf = embedded_conf(settings, "/tmp/x")
        assert conf["spark.master"] == "local[12]"
        assert conf["spark.authenticate"] == "true", "its ports are open to all users of the host"
        assert conf["spark.sql.leafNodeDefaultParallelism"] == conf["spark.sql.files.maxPartitionNum"] == "3"
    assert slot_count(SparkSettings(master="spark://host:7077")) is None
    assert slot_count(SparkSettings(sail=True)) is None


@pytest.mark.parametrize(
    ("heap", "page_bytes"), [("1g", 2**20 - 16), ("512m", 2**20 - 16), ("8G", 2**20 - 16), ("20gb", 4 * 2**20 - 16)]
)
def test_a_page_is_small_and_8192_of_them_are_the_heap(heap: str, page_bytes: int) -> None:
    conf = embedded_conf(SparkSettings(conf={"spark.driver.memory": heap}), "/tmp/x")
    assert conf["spark.buffer.pageSize"] == str(page_bytes)


def test_a_page_is_spark_s_own_choice_where_the_heap_is_not_known_and_the_user_s_where_there_is_one() -> None:
    assert "spark.buffer.pageSize" not in embedded_conf(SparkSettings(conf={"spark.driver.memory": "lots"}), "/tmp/x")
    assert embedded_conf(SparkSettings(conf={"spark.buffer.pageSize": "2m"}), "/tmp/x")["spark.buffer.pageSize"] == "2m"


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


def test_sail_gets_no_expression_that_its_stack_has_no_room_for() -> None:
    engine = SailEngine(SparkSettings(sail=True))
    job = Job("deep", "SELECT 1", {}, {}, {}, None, operator_depth=301)
    with pytest.raises(SqlError, match="more than 300 operators in a row"):
        engine._run(job, lambda schema: None, {})
    with pytest.raises(SiteError, match="Spark is not running"):
        engine._run(msgspec.structs.replace(job, operator_depth=300), lambda schema: None, {})


def test_a_token_in_a_url_comes_to_no_error() -> None:
    assert place_of("sc://spark.example:15002/;use_ssl=true;token=secret") == "sc://spark.example:15002"
    assert place_of("sc://spark.example") == "sc://spark.example"
