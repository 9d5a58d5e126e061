"""Rule `colocated`: tables of our own that are spread alike are joined where they are; answers stay the same."""

from __future__ import annotations

from functools import cache
from random import Random
from typing import Any

import msgspec
import pyarrow as pa
import pytest

from metamorphic.in_duckdb import Runner, Tables
from skerry.catalog.catalog import Catalog, own_part
from skerry.catalog.seen import seen_by
from skerry.config import parse
from skerry.member.ownplaces import placed
from skerry.model.fragment import EdgeLeaf, Plan, TableLeaf
from skerry.model.limits import Limits
from skerry.model.rights import Pattern, Rights, Rule, Sight
from skerry.model.sharded import BucketMap, Definition, OwnColumn, OwnTable
from skerry.plan.cut import make_plan
from skerry.plan.explain import explain
from skerry.plan.rules import NO_RULES, Rules
from skerry.plan.site import Site
from skerry.sql.statement import Query, analyse
from skerry.tables.bucket import buckets_of
from skerry.tables.catalogue import first_map
from skerry.tables.columns import arrow_type

MEMBERS = ("oslo", "bergen", "tromso")
CONFIG = parse(
    """
cluster: c
members:
  oslo: {address: 'h:1', tables: {files: {format: parquet, path: f, columns: {id: bigint, word: string}}}}
  bergen: {address: 'h:2'}
  tromso: {address: 'h:3'}
"""
)
# Columns of DISTRIBUTED BY, then the others; by how many buckets, at which members.
SPREAD: dict[str, tuple[str, str, int, tuple[str, ...]]] = {
    "a": ("k bigint", "g int, v double", 64, MEMBERS),
    "b": ("k bigint", "h int, w double", 64, MEMBERS),
    "c": ("k bigint", "x bigint", 64, MEMBERS),
    "p": ("k bigint, d string", "v int", 64, MEMBERS),
    "q": ("k bigint, d string", "w int", 64, MEMBERS),
    "f": ("k double", "v int", 64, MEMBERS),
    "e": ("k double", "w int", 64, MEMBERS),
    "narrow": ("k int", "v int", 64, MEMBERS),
    "few": ("k bigint", "v int", 32, MEMBERS),
    "two": ("k bigint", "v int", 64, MEMBERS[:2]),
    "moved": ("k bigint", "v int", 64, MEMBERS),
    "copy": ("", "id bigint, name string", 64, MEMBERS),
}


def _defined(number: int, name: str) -> Definition:
    by, rest, buckets, members = SPREAD[name]
    keys = [each.split() for each in by.split(", ") if each]
    columns = tuple(OwnColumn(*each) for each in (*keys, *(each.split() for each in rest.split(", "))))
    key = tuple(each.name for each in columns)
    table = OwnTable(number, name, 1, columns, key, key[: len(keys)], members, buckets)
    found = first_map(table)
    if name == "moved":
        turned = tuple((first, upto, MEMBERS[MEMBERS.index(owner) - 1]) for first, upto, owner in found.groups)
        found = BucketMap(number, 2, turned)
    return Definition(table, found)


DEFINED = {name: _defined(number, name) for number, name in enumerate(SPREAD, 1)}


def _catalog(rows: int = 5000) -> Catalog:
    catalog = Catalog(CONFIG)
    catalog.define(DEFINED.values())
    for member in MEMBERS:
        own = [
            own_part(each, member, count, count * 20)
            for name, each in DEFINED.items()
            for count in [rows if name != "c" else 20]
            if member in each.table.members
        ]
        files = (
            []
            if member != "oslo"
            else [
                msgspec.structs.replace(
                    own[0], table="files", columns=CONFIG.members["oslo"].tables["files"].columns, rows=10, own=None
                )
            ]
        )
        catalog.learn(member, [*own, *files], {})
    return catalog


CATALOG, ALL = _catalog(), Rules()


@cache
def planned(sql: str, rules: Rules = ALL, at: str = "oslo", catalog: Catalog = CATALOG) -> Plan:
    query = analyse(sql, None, catalog, Limits())
    assert isinstance(query, Query)
    return make_plan(*placed(query, catalog, at), Site(at, MEMBERS, rules), Limits())


def edges(plan: Plan) -> list[str]:
    """What travels beside the result."""
    return [each.sql for each in plan.fragments for leaf in each.leaves if isinstance(leaf, EdgeLeaf)]


def readers(plan: Plan, table: str) -> list[str]:
    return [
        f.member for f in plan.fragments for each in f.leaves if isinstance(each, TableLeaf) and each.table == table
    ]


# --- rows ------------------------------------------------------------------------------------------
def made_up(random: Random) -> Tables:
    """A few rows of each, where they belong; no member of `two` and of some seeds has any."""
    found: dict[tuple[str, str], pa.Table] = {}
    for name, each in DEFINED.items():
        table = each.table
        names = [column.name for column in table.columns]
        count = random.choice((0, 2, 9, 25))
        rows = {
            tuple(
                _value(random, column, place < len(table.distributed_by)) for place, column in enumerate(table.columns)
            )
            for _ in range(count)
        }
        rows = list({row[: max(1, len(table.distributed_by)) + (name in "abc")]: row for row in rows}.values())
        arrays = [
            pa.array([row[at] for row in rows], arrow_type(column.type)) for at, column in enumerate(table.columns)
        ]
        whole = pa.table(arrays, names=names)
        places = buckets_of(arrays[: len(table.distributed_by)], table.buckets).tolist() if table.distributed_by else []
        for member in table.members:
            ranges = [group[:2] for group in each.buckets.groups if group[2] == member]
            mine = [any(first <= place < upto for first, upto in ranges) for place in places]
            found[member, name] = whole.filter(pa.array(mine, pa.bool_())) if places or table.distributed_by else whole
    found["oslo", "files"] = pa.table({"id": pa.array([1, 2, 2, None], pa.int64()), "word": ["x", "y", None, "z"]})
    return found


def _value(random: Random, column: OwnColumn, is_key: bool) -> Any:
    if not is_key and random.random() < 0.2:
        return None
    number = random.randrange(6)
    if column.type == "double":
        return [0.0, -0.0, float("nan"), 1.5, 2.0, -3.0][number] if column.name == "k" else float(number)
    return "abcdef"[number] if column.type == "string" else number


# --- joined where they are -------------------------------------------------------------------------
JOINED = """
SELECT a.k, a.v, b.w FROM a JOIN b ON a.k = b.k
SELECT * FROM a LEFT JOIN b ON a.k = b.k AND a.g < b.h
SELECT a.k, b.k AS l FROM a RIGHT JOIN b ON b.k = a.k WHERE b.h IS NOT NULL
SELECT a.k AS m, b.k AS l, a.v FROM a FULL JOIN b ON a.k = b.k AND a.g = b.h
SELECT a.v FROM a LEFT SEMI JOIN b ON a.k = b.k AND b.w > a.v
SELECT a.v, a.k FROM a LEFT ANTI JOIN b ON a.k <=> b.k
SELECT a.k, x, w FROM a, b, c WHERE a.k = b.k AND b.k = c.k AND x > 1
SELECT a.k, x, w FROM a, c, b WHERE a.k = b.k AND b.k = c.k
SELECT k, v, w FROM a JOIN b USING (k)
SELECT k, count(*) AS n, sum(v) AS s FROM a FULL JOIN b USING (k) GROUP BY k
SELECT k, w, x FROM a RIGHT JOIN b USING (k) LEFT JOIN c USING (k)
SELECT p.v, q.w FROM p JOIN q ON p.d = q.d AND q.k = p.k
SELECT p.v, q.w FROM p JOIN q ON p.k = q.k JOIN copy ON name = p.d WHERE q.d = p.d
SELECT f.v, e.w FROM f JOIN e ON f.k = e.k
SELECT x.k, count(DISTINCT y.h) AS n FROM a AS x JOIN b AS y ON x.k = y.k GROUP BY x.k HAVING count(*) > 1
SELECT a.k, name FROM a JOIN copy ON g = id
SELECT a.k, name FROM copy RIGHT JOIN a ON g = id AND name > 'b'
SELECT a.k FROM a LEFT ANTI JOIN copy ON g = id
SELECT a.k, name, w FROM a JOIN b ON a.k = b.k LEFT JOIN copy ON id = h
SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND h > g)
SELECT k, v FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a.k = b.k) OR g = 1
SELECT k, v FROM a WHERE k IN (SELECT k FROM b WHERE h > 1)
WITH t AS (SELECT k FROM b) SELECT k, v FROM a WHERE EXISTS (SELECT 1 FROM t WHERE t.k = a.k)
SELECT k, v FROM a WHERE k NOT IN (SELECT k FROM b WHERE h > 1)
SELECT k, v FROM a WHERE (g, k) IN (SELECT h, k FROM b)
SELECT v FROM p WHERE k IN (SELECT k FROM q WHERE q.d = p.d)
SELECT k, (SELECT max(w) FROM b WHERE b.k = a.k) AS m FROM a
SELECT k FROM a WHERE v > (SELECT avg(w) FROM b WHERE b.k = a.k)
SELECT k FROM a WHERE g IN (SELECT id FROM copy WHERE name > 'a')
SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b JOIN c ON b.k = c.k WHERE b.k = a.k AND x > g)
SELECT k, count(*) AS n, count(DISTINCT g) AS d FROM a GROUP BY k
SELECT g, k, max(v) AS m FROM a GROUP BY ALL
SELECT k AS key, g, sum(v) AS s FROM a GROUP BY 1, 2 HAVING sum(v) > 1
SELECT DISTINCT g, k FROM a
SELECT k, v, row_number() OVER (PARTITION BY k ORDER BY v, g) AS r FROM a
SELECT k, g, sum(v) OVER (PARTITION BY g, k) AS s, max(g) OVER (PARTITION BY k) AS m FROM a
SELECT t.k, n, w FROM (SELECT k, count(*) AS n FROM a GROUP BY k) AS t JOIN b ON t.k = b.k
WITH t AS (SELECT k AS i, max(v) AS m FROM a GROUP BY k) SELECT x.m, w FROM t x JOIN t y ON x.i = y.i JOIN b ON k = y.i
SELECT k, m FROM (SELECT k, max(v) AS m FROM a GROUP BY k) AS t WHERE EXISTS (SELECT 1 FROM c WHERE c.k = t.k)
SELECT k FROM a UNION ALL SELECT k FROM b
SELECT k FROM a UNION SELECT k FROM b
SELECT k FROM a EXCEPT SELECT k FROM b
SELECT k, g FROM a INTERSECT SELECT k, h FROM b
SELECT k, count(*) AS n FROM (SELECT k FROM a UNION ALL SELECT k FROM b) AS u GROUP BY k
SELECT a.k, b.w FROM a JOIN b ON a.k = b.k WHERE a.k IN (1, 2, 3)
""".strip().splitlines()
# Only groups and first rows travel.
MERGED = """
SELECT g, count(*) AS n, sum(w) AS s FROM a JOIN b ON a.k = b.k GROUP BY g
SELECT count(*) AS n, max(w) AS m FROM a LEFT JOIN b ON a.k = b.k
SELECT g, count(DISTINCT h) AS n FROM a FULL JOIN b ON a.k = b.k GROUP BY g HAVING count(*) > 1
SELECT name, sum(w) AS s FROM a JOIN b ON a.k = b.k JOIN copy ON id = g GROUP BY name
SELECT DISTINCT g, h FROM a JOIN b ON a.k = b.k
SELECT count(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND h = 1)
SELECT g, sum(v) AS s FROM a WHERE k IN (SELECT k FROM b GROUP BY k HAVING count(*) > 1) GROUP BY g HAVING count(*) > 1
SELECT g, count(*) AS n FROM a JOIN c ON a.k = c.k WHERE v > (SELECT avg(w) FROM b WHERE b.k = a.k) GROUP BY g
SELECT max(n) AS m FROM (SELECT g, count(*) AS n FROM a LEFT ANTI JOIN b ON a.k = b.k GROUP BY g) AS t
""".strip().splitlines()
# Tables that are not alike, joined with two that are: these are not among the edges.
SHIPPED = """
SELECT word, sum(w) AS s FROM a JOIN b ON a.k = b.k JOIN files ON files.id = g GROUP BY word
SELECT g, sum(x) AS s FROM a JOIN b ON a.k = b.k JOIN c ON c.x = a.g GROUP BY g
""".strip().splitlines()
# Rows of several members come together.
APART = {
    "SELECT a.v, b.w FROM a JOIN b ON a.g = b.h": "does not equate",
    "SELECT a.v, b.w FROM a JOIN b ON a.k = b.k + 0": "does not equate",
    "SELECT a.v, b.w FROM a LEFT JOIN b ON a.g = b.h WHERE a.k > 1": "does not equate",
    "SELECT p.v, q.w FROM p JOIN q ON p.k = q.k": "does not equate all columns of DISTRIBUTED BY (k; d)",
    "SELECT a.v, n.v AS y FROM a JOIN narrow AS n ON a.k = n.k": "types (bigint) and (int)",
    "SELECT a.v, p.v AS y FROM a JOIN p ON a.k = p.k": "types (bigint) and (bigint, string)",
    "SELECT a.v, n.v AS y FROM a JOIN few AS n ON a.k = n.k": "64 buckets and few 32",
    "SELECT a.v, n.v AS y FROM a JOIN two AS n ON a.k = n.k": "at different members",
    "SELECT a.v, n.v AS y FROM a JOIN moved AS n ON a.k = n.k": "at different members",
    "SELECT a.k, name FROM copy LEFT JOIN a ON g = id": "keeps rows that every member has",
    "SELECT a.k, name FROM copy FULL JOIN a ON g = id": "keeps rows that every member has",
    "SELECT name FROM copy LEFT ANTI JOIN a ON g = id": "keeps rows that every member has",
    "SELECT name FROM copy WHERE EXISTS (SELECT 1 FROM a WHERE g = id)": "subquery",
    "SELECT k FROM a WHERE g IN (SELECT h FROM b)": "subquery",
    "SELECT k FROM a WHERE k IN (SELECT h FROM b)": "subquery",
    "SELECT k FROM a WHERE v > (SELECT max(w) FROM b)": "groups",
    "WITH t AS (SELECT k FROM b) SELECT k FROM a WHERE EXISTS "
    "(WITH t AS (SELECT h AS k FROM b) SELECT 1 FROM t WHERE t.k = a.k)": "subquery",
    "SELECT k FROM a WHERE k IN (SELECT max(k) FROM b)": "groups",
    "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k OR h = g)": "subquery",
    "SELECT v FROM p WHERE k IN (SELECT k FROM q)": "subquery",
    "SELECT k FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.h > (SELECT max(x) FROM c))": "groups",
    "SELECT z.h, b.w FROM a FULL JOIN b ON a.k = b.k JOIN b AS z ON z.k = a.k": "not known above",
    "SELECT b.w FROM a LEFT JOIN b ON a.k = b.k JOIN b AS z ON z.k = b.k": "does not equate",
    "SELECT a.k, count(*) OVER (PARTITION BY g) AS n FROM a JOIN b ON a.k = b.k": "a window without PARTITION BY k",
    "SELECT t.k FROM (SELECT k FROM a ORDER BY v, k, g LIMIT 3) AS t JOIN b ON t.k = b.k": "LIMIT",
    "SELECT g AS k FROM a INTERSECT SELECT k FROM b": "set operation",
    "SELECT k FROM a UNION ALL SELECT id FROM copy": "set operation",
    "SELECT count(*) AS n FROM a WHERE g IN (SELECT h FROM b)": "a subquery",
    "SELECT g, count(*) AS n FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE h = g) GROUP BY g": "a subquery",
    "SELECT a.k FROM a JOIN b ON a.k = b.k ORDER BY length(CAST(w AS STRING))": "merge by the order",
}


@pytest.mark.parametrize("kind", ["joined", "merged", "shipped", "apart"])
def test_rows_travel_only_where_they_have_to(kind: str) -> None:
    told = {"joined": JOINED, "merged": MERGED, "shipped": SHIPPED, "apart": APART}[kind]
    for sql in told:
        plan = planned(sql)
        lines = "\n".join(explain(plan, "oslo"))
        if kind == "joined":
            assert not edges(plan), lines
            assert "are there" in lines, lines
            assert {each.output.receivers for each in plan.fragments} == {("oslo",)}, lines
        elif kind == "merged":
            sent = [each for each in plan.fragments if each.output.edge != plan.rows.edge]
            assert all("aggregate" in each.facts.operators or "distinct" in each.facts.operators for each in sent), (
                lines
            )
            assert "spread alike" in lines, lines
        elif kind == "shipped":
            assert {tuple(sorted(readers(plan, table))) for table in "ab"} == {tuple(sorted(MEMBERS))}, lines
            assert "spread alike" in lines, lines
        else:
            assert "not joined where they are" in lines or "UNION" in sql, lines
            assert "not joined" not in lines or APART[sql] in lines, lines


@pytest.mark.slow
def test_answers_stay_the_same() -> None:
    runner = Runner()
    rows = [made_up(Random(seed)) for seed in range(2)]
    for sql in (*JOINED, *MERGED, *SHIPPED, *APART):
        plain, ruled = planned(sql, NO_RULES), planned(sql)
        for tables in rows:
            assert runner.run(ruled, tables) == runner.run(plain, tables), "\n".join(explain(ruled, "oslo"))


def test_first_rows_are_chosen_at_the_members() -> None:
    sql = "SELECT a.k, h, v FROM a JOIN b ON a.k = b.k ORDER BY a.k DESC, h, v LIMIT 3 OFFSET 2"
    plan = planned(sql)
    assert [each.sql.rpartition("LIMIT ")[2] for each in plan.fragments] == ["5"] * 3
    assert not edges(plan)
    tables, runner = made_up(Random(1)), Runner()
    assert runner.rows(plan, tables) == runner.rows(planned(sql, NO_RULES), tables)


def test_one_key_asks_one_member_for_all_tables() -> None:
    plan = planned("SELECT v, w, name FROM a JOIN b ON a.k = b.k JOIN copy ON id = g WHERE a.k = 3")
    assert len(plan.fragments) == 1
    assert not edges(plan)
    # A part that is named is one part: rows of others are not its.
    one = planned("SELECT v, w FROM a JOIN bergen.b AS b ON a.k = b.k")
    assert readers(one, "b") == readers(one, "a") == ["bergen"]
    assert set(readers(planned("SELECT v, w FROM a LEFT JOIN bergen.b AS b ON a.k = b.k"), "b")) == {"bergen"}


def test_what_chooses_among_all_rows_is_asked_once() -> None:
    for sql in (
        "SELECT a.k FROM a TABLESAMPLE (3 ROWS) JOIN b ON a.k = b.k",
        "SELECT k FROM (SELECT k FROM a) TABLESAMPLE (3 ROWS) WHERE k IN (SELECT k FROM b)",
        "SELECT a.k, rand() AS r FROM a JOIN b ON a.k = b.k",
        "SELECT k FROM a WHERE g = (SELECT id FROM copy LIMIT 1)",
    ):
        assert [each.output.edge for each in planned(sql).fragments].count(planned(sql).rows.edge) == 1, sql


def test_a_plan_knows_the_versions_of_all_it_reads() -> None:
    plan = planned("SELECT a.k, name FROM a JOIN copy ON g = id")
    assert set(plan.schema_info) == {f"{member}.{table}" for member in MEMBERS for table in ("a", "copy")}
    a = DEFINED["a"]
    later = msgspec.structs.replace(a, buckets=msgspec.structs.replace(a.buckets, version=a.buckets.version + 1))
    assert own_part(later, "oslo").schema_version > own_part(a, "oslo").schema_version


def test_masked_keys_are_not_where_their_buckets_are() -> None:
    for sight, is_joined in ((Sight(masks={"k": "k % 2"}), False), (Sight(), True)):
        pattern = [(Rule(Pattern("", name), Sight() if name != "b" else sight),) for name in ("a", "b")]
        seen = seen_by(CATALOG, Rights("ann", (), ((*pattern[0], *pattern[1]),)))
        assert bool(edges(planned("SELECT v, w FROM a JOIN b ON a.k = b.k", catalog=seen))) is not is_joined
