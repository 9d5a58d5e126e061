"""Long VALUES leave the text and travel as tuples, where their types are sure; all else stays as it is written."""

from __future__ import annotations

import msgspec
import pytest

from metamorphic.reading import parse_fragment
from skerry.model.fragment import Output, Plan, Rows, SparkFragment, TableLeaf, VirtualLeaf, virtual_name
from skerry.model.limits import VIRTUAL_ROWS_LEAST, WRITE_TUPLES, Limits
from skerry.model.table import Column, TablePart
from skerry.plan.admission import Home, admit
from skerry.plan.cache import fingerprint
from skerry.plan.explain import describe, explain
from skerry.plan.maker import make_fragment
from skerry.sql.dialect import render
from skerry.wire.tuples import decode_tuples

TABLE = TableLeaf("leaf_1_x", "orders")
LEAST = VIRTUAL_ROWS_LEAST


def listed(row: str, count: int = LEAST) -> str:
    return ", ".join(row.replace("#", str(number)) for number in range(count))


def made(sql: str) -> SparkFragment:
    tree = parse_fragment(sql)
    assert tree is not None, sql
    before = render(tree)
    fragment = make_fragment(1, "oslo", tree, (TABLE,), Output(1, ("oslo",)))
    assert render(tree) == before, "others may write the tree as well"
    return fragment


def virtual(fragment: SparkFragment) -> list[VirtualLeaf]:
    return [leaf for leaf in fragment.leaves if isinstance(leaf, VirtualLeaf)]


HOME = Home("oslo", frozenset({"oslo", "bergen"}), {}, Limits())
PARTS = {"orders": TablePart("orders", "oslo", (Column("id", "bigint"),), 5, 50, 7, 1)}


def plan_of(fragment: SparkFragment) -> Plan:
    plan = Plan("", (fragment,), Rows(1, ("oslo",)), {"oslo.orders": 7})
    return msgspec.structs.replace(plan, plan_id=fingerprint(plan))


IN_FROM = "SELECT v.a FROM leaf_1_x AS t JOIN (VALUES {}) AS v(a, b) ON t.id = v.a"


@pytest.mark.parametrize(
    ("sql", "text"),
    [
        (IN_FROM, "SELECT v.a FROM leaf_1_x AS t JOIN {} AS v(a, b) ON t.id = v.a"),
        ("SELECT a FROM leaf_1_x AS t, (VALUES {} AS v(a, b))", "SELECT a FROM leaf_1_x AS t, {} AS v(a, b)"),
        (
            "SELECT id FROM leaf_1_x AS t WHERE id IN (SELECT col1 FROM (VALUES {}))",
            "SELECT id FROM leaf_1_x AS t WHERE id IN (SELECT col1 FROM {})",
        ),
        (
            "WITH v AS (VALUES {}) SELECT col1 FROM v, leaf_1_x AS t",
            "WITH v AS (SELECT * FROM {}) SELECT col1 FROM v, leaf_1_x AS t",
        ),
    ],
)
def test_where_they_stand(sql: str, text: str) -> None:
    fragment = made(sql.format(listed("(#, 'n#')")))
    (leaf,) = virtual(fragment)
    assert fragment.sql == text.format(leaf.placeholder)
    assert leaf.columns == (Column("col1", "int"), Column("col2", "string"))
    assert fragment.facts is not None
    assert fragment.facts.scan is None
    (told,) = fragment.facts.virtual
    assert told == (leaf.placeholder, tuple(msgspec.msgpack.encode((n, f"n{n}")) for n in range(LEAST)))
    assert admit(plan_of(fragment).to_run(), "oslo", HOME, PARTS).jobs[0].sql == fragment.sql


@pytest.mark.parametrize(
    ("row", "types"),
    [
        ("(#, -#)", ["int", "int"]),
        ("(#, 21474836#)", ["int", "bigint"]),  # one of them is larger than an int
        ("(TRUE, NULL), (FALSE, '#')", ["boolean", "string"]),
        ("#", ["int"]),
        ("('it''s \\\\n #')", ["string"]),
    ],
)
def test_types_are_spark_s(row: str, types: list[str]) -> None:
    fragment = made(f"SELECT col1 FROM leaf_1_x AS t JOIN (VALUES {listed(row)}) AS v ON t.id = col1")
    (leaf,) = virtual(fragment)
    assert [column.type for column in leaf.columns] == types


@pytest.mark.parametrize(
    "row",
    [
        *("(1.5, #)", "(1L, #)", "(1e0, #)", "(NULL, #)", "(1, '#'), ('#', '1')", "(TRUE, #), (1, #)", "(:a, #)"),
        *("(1 + 1, #)", "(DATE '2024-01-01', #)", "(X'00', #)", "(9999999999999999999, #)", "(1, #), (1)", "(+1, #)"),
    ],
)
def test_what_only_spark_is_sure_of_stays_in_the_text(row: str) -> None:
    fragment = made(f"SELECT col1 FROM leaf_1_x AS t JOIN (VALUES {listed(row)}) AS v ON t.id = col1")
    assert virtual(fragment) == []
    assert "VALUES" in fragment.sql


@pytest.mark.parametrize(
    "sql",
    [
        IN_FROM.format(listed("(#, 1)", LEAST - 1)),
        IN_FROM.format(listed("(#, 1)", WRITE_TUPLES + 1)),
        IN_FROM.format(listed(f"(#, '{'x' * 4000}')")),
        f"VALUES {listed('(#, 1)')}",
        f"SELECT a FROM leaf_1_x AS t JOIN (VALUES {listed('(#, 1)')} ORDER BY col1 LIMIT 3) AS v ON a = col1",
        f"SELECT a FROM leaf_1_x AS t UNION ALL VALUES {listed('(#)')}",
    ],
    ids=["few", "many", "large", "a query", "ordered", "a set"],
)
def test_what_is_no_table_or_not_worth_it_stays(sql: str) -> None:
    assert virtual(made(sql)) == []


def test_a_participant_admits_the_leaf_and_never_sees_the_rows_in_the_plan() -> None:
    plan = plan_of(made(IN_FROM.format(listed("(#, 'n#')"))))
    assert len(plan.virtual_tables("oslo")) == 1
    assert plan.virtual_tables("bergen") == {}
    sent = msgspec.msgpack.decode(msgspec.msgpack.encode(plan.to_run()), type=Plan)
    assert b"n99" not in msgspec.msgpack.encode(sent)
    assert sent.plan_id == plan.plan_id
    admitted = admit(sent, "oslo", HOME, PARTS)
    assert admitted.jobs[0].sql == plan.jobs[0].sql
    # Who may not remember sizes runs with the same rows.
    assert plan.veiled().virtual_tables("oslo") == plan.virtual_tables("oslo")


def test_the_plan_is_another_for_other_rows() -> None:
    one, other = (plan_of(made(IN_FROM.format(listed(row)))) for row in ("(#, 'a')", "(#, 'b')"))
    assert one.plan_id != other.plan_id
    assert one.plan_id == plan_of(made(IN_FROM.format(listed("(#, 'a')")))).plan_id


def test_rows_are_what_was_written() -> None:
    fragment = made(IN_FROM.format(listed("(#, 'it''s #')")))
    (leaf,) = virtual(fragment)
    rows = plan_of(fragment).virtual_tables("oslo")[leaf.placeholder]
    assert virtual_name(leaf.columns, rows) == leaf.placeholder
    assert decode_tuples(rows, leaf.columns).to_pylist()[7] == {"col1": 7, "col2": "it's 7"}


def test_explain_says_so() -> None:
    plan = plan_of(made(IN_FROM.format(listed("(#, 'n#')"))))
    assert "reads table orders; 100 rows of VALUES (values_1)" in "\n".join(explain(plan, "oslo"))
    assert describe(plan, "oslo")["fragments"][0]["reads"] == [{"table": "orders"}, {"values": "values_1", "rows": 100}]
