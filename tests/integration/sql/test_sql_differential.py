"""Spark's own parser is the judge: what we render means to it what was written."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from sqlglot import exp

from scripts.sql_forms import DOCS, FIXTURES, JSON, document, read_forms, refused
from skerry.model.errors import SqlError
from skerry.model.lexemes import escape
from skerry.model.limits import Limits
from skerry.sql.dialect import render
from skerry.sql.lexer import tokens_of
from skerry.sql.nodes import SpokenCall
from skerry.sql.parse import parse_query
from skerry.sql.statement import Query, analyse
from skerry.testing.oracle import tpch_queries
from tests.integration.sql.make_admitted import build, to_text
from tests.integration.sql.sql_fidelity import Fidelity, reads, tree_of
from tests.unit.sql.sql_catalog import FakeCatalog

pytestmark = pytest.mark.spark

FORMS = [sql for _, sql in read_forms(FIXTURES / "forms.sql")]
CATALOG = FakeCatalog({"t": "a int, b string, c int", "u": "a int, d array<int>", "oslo.t": "a int, b string"})
PASSWD = "text.`/etc/passwd`"
# Pieces from which a FROM could be pieced together that Spark reads otherwise than we do.
PIECES = (
    f"VALUES;VALUES;(1);(1);{PASSWD};{PASSWD};({PASSWD});({PASSWD});AS;AS u;u;x(a);array(a);TRUE;NULL;NULL AS x;(;(;);)"
    ";,;,;,;JOIN;LEFT JOIN;CROSS JOIN;ON;true;LATERAL;TABLE;t;t;oslo.t;WHERE;a;1;'s';range(1);explode(d);SELECT;FROM;"
    "UNION ALL;EXISTS;IN;NATURAL JOIN;USING (a);first;DATE;INTERVAL;CASE;EXCEPT;* EXCEPT;reflect('a','b');AS reflect;"
    "LATERAL VIEW;PIVOT;FOR;UNPIVOT;WITH x AS;GROUP BY;ORDER BY;LIMIT;ALL;DISTINCT;any;=;-;.;::int;[0];->;=>"
).split(";")


@pytest.mark.timeout(600)  # hundreds of statements
def test_the_committed_list_is_what_spark_says(sql_spark: Any) -> None:
    """Both ways: nothing is admitted that differs, and nothing refused as different that no longer does."""
    made, committed = json.loads(to_text(build(sql_spark))), json.loads(JSON.read_text(encoding="utf-8"))
    for key in committed:
        assert made[key] == committed[key], key
    assert document(made, refused()) in DOCS.read_text(encoding="utf-8")


@pytest.mark.parametrize("number", range(1, 23))
def test_tpch_keeps_its_meaning(fidelity: Fidelity, number: int) -> None:
    sql = tpch_queries()[number].strip().rstrip(";")
    _, wrong = fidelity.roundtrip(sql)
    assert wrong == ""


def test_our_tree_groups_as_spark_does(fidelity: Fidelity) -> None:
    """With brackets around every operand of our tree Spark makes the same plan, so precedence is the same."""
    compared = 0
    for sql in FORMS:
        if "?" in sql:
            continue
        tree = parse_query(tokens_of(sql, 64), sql)
        if _bracket(tree):
            compared += 1
            assert fidelity.same(fidelity.parse(sql), fidelity.parse(render(tree))), render(tree)
    assert compared > 15


def _bracket(tree: exp.Expr) -> int:
    operators = (exp.Binary, exp.Unary, exp.Between, exp.In)
    found = [node for node in tree.walk() if isinstance(node, operators) and not isinstance(node, exp.Paren | exp.Dot)]
    count = 0
    for node in reversed(found):
        parent = node.parent
        # Spark balances long chains of AND and OR, and reads `- 1` as one literal.
        chained = (
            isinstance(node, exp.Connector) or isinstance(parent, exp.Escape) or isinstance(node, exp.Neg | exp.Kwarg)
        )
        infix = isinstance(parent, exp.Not) and parent.args.get("infix")
        if isinstance(parent, operators) and not chained and not infix and not isinstance(parent, exp.Kwarg | exp.Dot):
            node.replace(exp.Paren(this=node.copy()))
            count += 1
    return count


def test_strings_of_any_kind_keep_their_value(fidelity: Fidelity, sql_spark: Any) -> None:
    chance = random.Random(7)
    alphabet = "'\"\\`\n\r\t\0\b\x1a%_ abnrtuUZ01789${}é日😀"
    values = ["".join(chance.choices(alphabet, k=chance.randrange(12))) for _ in range(300)]
    row = sql_spark.sql("SELECT " + ", ".join(escape(value) for value in values)).collect()[0]
    assert list(row) == values


def test_literals_of_any_kind_read_as_in_spark(fidelity: Fidelity) -> None:
    chance = random.Random(11)
    pieces = [
        "'",
        "''",
        '"',
        '""',
        "\\",
        "\\\\",
        "\\'",
        "\\u00e9",
        "\\U0001F600",
        "\\101",
        "\\n",
        "\\%",
        "r",
        "R",
        "x",
        "X",
        "a",
        "0",
        "41",
        " ",
        "\n",
        "é",
    ]
    compared = 0
    for _ in range(1000):
        sql = "SELECT " + "".join(chance.choices(pieces, k=chance.randrange(1, 9))) + chance.choice(["'", '"', ""])
        tree, theirs = tree_of(sql), fidelity.try_parse(sql)
        if tree is None or theirs is None:
            continue
        compared += 1
        assert fidelity.same(theirs, fidelity.parse(render(tree))), sql
    assert compared > 50


def test_mutated_forms_are_read_alike_or_refused(fidelity: Fidelity) -> None:
    """Where both parsers accept a text they see the same plan, the same relations, the same functions."""
    chance = random.Random(3)
    forms = [[sql[token.start : token.end + 1] for token in tokens_of(sql, 64)] for sql in FORMS if "?" not in sql]
    pool = [word for words in forms for word in words]
    compared = 0
    for _ in range(1500):
        words = list(chance.choice(forms))
        for _ in range(chance.choice((1, 1, 2, 3))):
            at = chance.randrange(len(words) + 1)
            words[at : at + chance.randrange(2)] = chance.choices(pool, k=chance.randrange(3))
        sql = " ".join(words)
        tree = tree_of(sql)
        theirs = fidelity.try_parse(sql) if tree is not None else None
        if tree is None or theirs is None:
            continue
        compared += 1
        assert fidelity.same(theirs, fidelity.parse(render(tree))), sql
        _assert_agrees(theirs, tree, sql)
    assert compared > 50


def test_spark_finds_no_relation_that_the_gate_did_not_see(fidelity: Fidelity) -> None:
    chance = random.Random(5)
    starts = ["SELECT * FROM ", "SELECT * FROM ", "SELECT 1 FROM t, ", "SELECT a FROM t WHERE ", "SELECT "]
    passed = 0
    for _ in range(25_000):
        sql = chance.choice(starts) + " ".join(chance.choices(PIECES, k=chance.randrange(2, 10)))
        try:
            query = analyse(sql, None, CATALOG, Limits())
        except SqlError:
            continue
        assert isinstance(query, Query)
        passed += 1
        theirs = fidelity.try_parse(render(query.tree))
        if theirs is not None:
            _assert_agrees(theirs, query.tree, sql)
    assert passed > 50


def _assert_agrees(plan: Any, tree: exp.Expr, sql: str) -> None:
    relations, functions = reads(plan)
    tables = [table for table in tree.find_all(exp.Table) if isinstance(table.this, exp.Identifier)]
    assert relations <= {".".join(part.name.lower() for part in table.parts) for table in tables}, sql
    called = {call.name.lower() for call in tree.find_all(exp.Anonymous)}
    called |= {str(call.this).lower() for call in tree.find_all(SpokenCall)}
    # Spark makes a function of its own of BETWEEN.
    assert functions - {"between"} <= called, sql


def test_a_path_is_no_table_when_spark_says_so(sql_spark: Any, tmp_path: Path) -> None:
    """The second lock: with this setting a path that slipped through would not be read."""
    file = tmp_path / "secret.txt"
    file.write_text("secret")
    sql_spark.conf.set("spark.sql.runSQLOnFiles", "false")
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        sql_spark.sql(f"SELECT * FROM text.`{file}`").collect()
