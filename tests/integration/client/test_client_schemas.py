"""What a newcomer types first: SHOW, DESCRIBE and USE; variables; and a warning where a name became a string."""

from __future__ import annotations

import pytest

import skerry
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.sail


def test_schemas_tables_and_columns_are_shown(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        schemas = [name for (name,) in cursor.execute("SHOW SCHEMAS").fetchall()]
        assert schemas == ["default", "oslo", "bergen", "tromso", "kiosk"]
        assert cursor.execute("SHOW SCHEMAS LIKE 'b*'").fetchall() == [("bergen",)]
        for schema in schemas:
            assert cursor.execute(f"USE {schema}").fetchall() == [(schema,)]
            lines = cursor.execute(f"SHOW TABLES IN {schema}").fetchall()
            if schema not in ("default", "kiosk"):
                assert {members for _, members, *_ in lines} == {schema}
            assert bool(lines) == (schema != "kiosk")
            for table, _, rows, *_ in lines:
                assert cursor.execute(f"SELECT count(*) FROM {schema}.{table}").fetchone() == (rows,)
        assert cursor.execute("SHOW COLUMNS IN few").fetchall()[0] == ("id",)
        with pytest.raises(skerry.ProgrammingError, match="there is no schema bergn; did you mean bergen"):
            cursor.execute("SHOW TABLES IN bergn")


def test_describe_extended_tells_where_the_parts_are(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        plain = cursor.execute("DESCRIBE few").fetchall()
        extended = cursor.execute("DESCRIBE EXTENDED few").fetchall()
        assert extended[: len(plain)] == plain
        told = extended[len(plain) :]
        assert [name for name, _ in told if name.endswith(".few")] == ["oslo.few", "bergen.few", "tromso.few"]
        assert ("  format", "parquet") in told
        assert (
            sum(int(value) for name, value in told if name == "  rows")
            == cursor.execute("SELECT count(*) FROM few").fetchone()[0]
        )


def test_use_changes_what_a_name_means_on_this_connection_alone(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, cluster.connect("oslo") as other:
        cursor, beside = connection.cursor(), other.cursor()
        count = "SELECT count(*) FROM ticks"
        whole = cursor.execute(count).fetchone()
        part = cursor.execute("SELECT count(*) FROM bergen.ticks").fetchone()
        assert whole != part
        assert cursor.execute("USE BERGEN").fetchall() == [("bergen",)]
        assert connection.schema_name == "bergen"
        assert cursor.execute(count).fetchone() == part
        assert connection.cursor().execute(count).fetchone() == part
        where = "SELECT current_schema(), current_database(), current_catalog(), current_user"
        assert cursor.execute(where).fetchall() == [("bergen", "bergen", "spark_catalog", "")]
        assert beside.execute(where).fetchall() == [("default", "default", "spark_catalog", "")]
        named = "SELECT current_user, t.current_date FROM (SELECT id AS current_user, 7 AS current_date FROM few) AS t"
        assert cursor.execute(f"{named} ORDER BY current_user LIMIT 1").fetchall() == [(0, 7)]
        assert beside.execute(count).fetchone() == whole
        with skerry.connect(f"{cluster.config.member('oslo').address}/default") as whole_again:
            assert whole_again.cursor().execute(count).fetchone() == whole
        with pytest.raises(skerry.ProgrammingError, match="no schema nowhere"):
            cursor.execute("USE nowhere")
        assert connection.schema_name == "bergen"
        assert cursor.execute("USE default").fetchall() == [("default",)]
        assert cursor.execute(count).fetchone() == whole


def test_variables_are_of_one_connection(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, cluster.connect("kiosk", resume_s=30.0) as other:
        cursor, beside = connection.cursor(), other.cursor()
        few = "SELECT count(*) FROM few WHERE id < v"
        cursor.execute("DECLARE v BIGINT DEFAULT 2")
        beside.execute("DECLARE v STRING DEFAULT '1'")
        for _ in range(2):  # the second time from a known plan
            assert cursor.execute(few).fetchone() == cursor.execute("SELECT count(*) FROM few WHERE id < 2").fetchone()
            assert beside.execute(few).fetchone() == cursor.execute("SELECT count(*) FROM few WHERE id < 1").fetchone()
        cursor.execute("SET VAR v = (SELECT max(id) FROM few)")
        assert (
            connection.cursor().execute("SELECT v").fetchall() == cursor.execute("SELECT max(id) FROM few").fetchall()
        )
        assert beside.execute("SELECT v").fetchall() == [("1",)]
        assert "few" in str(cursor.execute(f"EXPLAIN ANALYZE {few}").fetchall())
        prepared = connection.prepare("SELECT id FROM few WHERE id = v AND id = ?")
        assert [each.type for each in prepared.parameters] == ["bigint"]
        with pytest.raises(skerry.ProgrammingError, match="is not kept in a variable"):
            cursor.execute("DECLARE OR REPLACE v = map(1, 2)")
        with pytest.raises(skerry.ProgrammingError, match="bytes together"):
            cursor.execute("DECLARE OR REPLACE v = repeat('x', 100000)")
        assert cursor.execute("SELECT typeof(v) AS t").fetchall() == [("bigint",)]
        connection.reset()
        with pytest.raises(skerry.ProgrammingError, match="unknown column v"):
            cursor.execute("SELECT v")
        beside.execute("DROP TEMPORARY VARIABLE v")
        assert other.variables == {}


def test_a_string_that_is_called_like_a_column_is_warned_of(cluster: LocalCluster) -> None:
    with cluster.connect("oslo") as connection, connection.cursor() as cursor:
        assert set(cursor.execute('SELECT "ID" FROM few').fetchall()) == {("ID",)}
        ((kind, warning),) = cursor.messages
        assert kind is skerry.Warning
        assert '"ID" in double quotes is a string in Spark SQL, not column id of few' in str(warning)
        cursor.execute('EXPLAIN SELECT "ID" FROM few')
        assert [str(text) for _, text in cursor.messages] == [str(warning)]
        cursor.execute("SELECT id, 'id', \"other\" FROM few")
        assert cursor.messages == []
