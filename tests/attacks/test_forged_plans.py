"""A plan of a member that was taken over: whatever it says, another member runs only what its own rules allow."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from skerry.exchange.kernels import KERNELS
from skerry.model.config import Leaves
from skerry.model.errors import PeerError, SkerryError, StaleSchema, UserError
from skerry.model.fragment import (
    MERGED_FROM,
    Count,
    EdgeLeaf,
    Facts,
    Finish,
    Leaf,
    MergeStep,
    OperatorFragment,
    Output,
    Plan,
    Rows,
    SortKey,
    SparkFragment,
    TableLeaf,
)
from skerry.model.limits import Limits
from skerry.model.table import Column
from skerry.plan.admission import Home, admit, check_keys
from skerry.plan.analyze import PLACEHOLDER, analysis_of
from skerry.spark.views import EDGE_PREFIX, PREFIX
from skerry.sql import gate
from skerry.sql.policy import FIXED_FUNCTIONS
from tests.attacks.hostile import COLUMNS, HONEST, LEAF, PART, TAKEN, admitted, forged, sealed

SCAN = f"SELECT o_id FROM {LEAF}"
TABLE = TableLeaf(LEAF, "orders")
EDGE = EdgeLeaf("leaf_2", 2, COLUMNS, (TAKEN,))


# --- texts -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM VALUES (1), text.`/etc/passwd`",
        "SELECT * FROM (VALUES (1), text.`/etc/passwd` JOIN (SELECT 1))",
        f"SELECT * FROM {LEAF} JOIN VALUES (1), text.`/etc/passwd`",
        # Other relations, under any name that Spark might know.
        "SELECT * FROM orders",
        f"SELECT * FROM {LEAF.upper()}",
        f"SELECT * FROM {LEAF}x",
        f"SELECT * FROM default.{LEAF}",
        "SELECT * FROM skerry_table_1",
        "SELECT * FROM skerry_edge_1",
        f"SELECT * FROM {LEAF} WHERE o_id IN (SELECT a FROM x)",
        "WITH x AS (SELECT * FROM x) SELECT * FROM x",
        "SELECT * FROM (WITH x AS (SELECT 1 AS a) SELECT a FROM x) UNION ALL SELECT a FROM x",
        # A leaf's name is put in by text: it is nothing else.
        f"WITH {LEAF} AS (SELECT 1 AS a) SELECT a FROM {LEAF}",
        f"WITH {LEAF.upper()} AS (SELECT 1 AS a) SELECT o_id FROM {LEAF}",
        f"SELECT '{LEAF}' AS a FROM {LEAF}",
        f"SELECT `{LEAF}` AS a FROM {LEAF}",
        f"SELECT {LEAF}.o_id FROM {LEAF}",
        f"SELECT o_id AS {LEAF} FROM {LEAF}",
        "SELECT '\\u006ceaf_1_0123456789abcdef' AS a",
        # Initiators fix who asks: a site's own account and schema are nobody's business.
        *(f"SELECT {name}() AS a FROM {LEAF}" for name in FIXED_FUNCTIONS),
        f"SELECT current_user AS a FROM {LEAF}",
        f"SELECT current_path AS a FROM {LEAF}",
        # Hints are those that planners make.
        f"SELECT /*+ COALESCE(1) */ o_id FROM {LEAF}",
        f"SELECT /*+ BROADCAST(`a*/b`) */ o_id FROM {LEAF}",
        f"SELECT /*+ BROADCAST(reflect('a', 'b')) */ o_id FROM {LEAF}",
        f"SELECT o_id FROM {LEAF} /*+ BROADCAST(a) */",
        # Texts that are none.
        "",
        ";",
        "/* */",
        f"{SCAN};",
        f"{SCAN}; {SCAN}",
        "(" * 300 + "SELECT 1" + ")" * 300,
        "SELECT " + "(" * 300 + "1" + ")" * 300,
        "SELECT ?",
    ],
)
def test_a_text_that_no_planner_makes(sql: str) -> None:
    with pytest.raises(PeerError, match="the plan of member bergen is not admitted here"):
        admitted(forged(sql))


def test_spark_gets_the_text_as_this_member_writes_it() -> None:
    plan = admitted(forged(f"select   O_ID /* x */ from\n{LEAF}  as t -- y"))
    assert plan.jobs[0].sql == f"SELECT O_ID FROM {LEAF} AS t"


def test_its_depth_is_counted_here() -> None:
    told = forged(f"SELECT {' + '.join(['o_id'] * 400)} AS s FROM {LEAF}", operator_depth=1)
    assert admitted(told).jobs[0].operator_depth == 399


def test_whether_its_plan_may_serve_twice_is_found_here() -> None:
    told = forged(f"SELECT rand() AS r FROM {LEAF}", is_repeatable=True)
    assert not admitted(told).jobs[0].is_repeatable


def test_a_column_that_is_called_user_is_a_column() -> None:
    edge = EdgeLeaf("leaf_2", 2, (*COLUMNS, msgspec.structs.replace(COLUMNS[0], name="user")), (TAKEN,))
    sending = SparkFragment(2, TAKEN, "SELECT 1", (), Output(2, (HONEST,)))
    reading = SparkFragment(1, HONEST, "SELECT user FROM leaf_2", (edge,), Output(1, (TAKEN,)))
    admitted(sealed(Plan("", (sending, reading), Rows(1, (HONEST,)), {})))
    without = msgspec.structs.replace(reading, leaves=(msgspec.structs.replace(edge, columns=COLUMNS),))
    with pytest.raises(PeerError, match="user"):
        admitted(sealed(Plan("", (sending, without), Rows(1, (HONEST,)), {})))


def test_names_of_views_are_known_to_the_gate() -> None:
    assert all(re.fullmatch(gate._VIEWS, f"{prefix}1") for prefix in (PREFIX, EDGE_PREFIX))


# --- plans -----------------------------------------------------------------------------------------
def two(reading: Any, sending: Output | None = None, **changed: Any) -> Plan:
    """A fragment of the taken member feeds edge 2, which one of the honest member reads."""
    first = SparkFragment(2, TAKEN, "SELECT 1", (), sending or Output(2, (HONEST,)))
    plan = Plan("", (first, reading), Rows(1, (HONEST,)), {})
    return msgspec.structs.replace(plan, **changed)


def finish(operator: Finish, *leaves: EdgeLeaf) -> OperatorFragment:
    edges = leaves or (msgspec.structs.replace(EDGE, placeholder=""),)
    return OperatorFragment(1, HONEST, operator, edges, Output(1, (TAKEN,)))


READS = SparkFragment(1, HONEST, "SELECT * FROM leaf_2", (EDGE,), Output(1, (TAKEN,)))
WRONG: dict[str, Plan] = {
    "one number twice": two(msgspec.structs.replace(READS, id=2)),
    "at nobody": two(msgspec.structs.replace(READS, member="nobody")),
    "to nobody": two(msgspec.structs.replace(READS, output=Output(3, ("nobody",)))),
    "a result for another": two(msgspec.structs.replace(READS, output=Output(1, (HONEST,)))),
    "a result of nobody": two(READS, ends_in=Rows(1, ("nobody",))),
    "a count of nothing": two(READS, ends_in=Count((7,))),
    "senders that do not send": two(
        msgspec.structs.replace(READS, leaves=(msgspec.structs.replace(EDGE, senders=(HONEST,)),))
    ),
    "an edge that nobody sends": two(msgspec.structs.replace(READS, leaves=(msgspec.structs.replace(EDGE, edge=5),))),
    "an edge for another": two(READS, Output(2, (TAKEN,))),
    "a result for another too": two(msgspec.structs.replace(READS, output=Output(1, (TAKEN, HONEST)))),
    "one member twice": two(READS, Output(2, (HONEST, HONEST))),
    "for nobody": two(READS, Output(2, ())),
    "a job that reads what stays": two(
        msgspec.structs.replace(READS, leaves=(msgspec.structs.replace(EDGE, senders=(HONEST,)),)),
        fragments=(
            SparkFragment(2, HONEST, "SELECT 1", (), Output(2, (HONEST,))),
            msgspec.structs.replace(READS, leaves=(msgspec.structs.replace(EDGE, senders=(HONEST,)),)),
        ),
    ),
    "to nobody too": two(READS, Output(2, (HONEST, "nobody"))),
    "a circle": two(msgspec.structs.replace(READS, output=Output(3, (TAKEN,))), ends_in=Rows(9, ())),
    "an unknown order": two(msgspec.structs.replace(READS, output=Output(1, (TAKEN,), "random"))),
    "a key before the first column": two(
        msgspec.structs.replace(READS, output=Output(1, (TAKEN,), "merge", (SortKey(-1, False, False),)))
    ),
    "less than no rows": two(msgspec.structs.replace(READS, output=Output(1, (TAKEN,), rows_max=-1))),
    "one leaf twice": two(msgspec.structs.replace(READS, leaves=(EDGE, EDGE))),
    "a leaf with a name that is none": two(
        msgspec.structs.replace(READS, leaves=(msgspec.structs.replace(EDGE, placeholder="leaf_2|SELECT"),))
    ),
    "an operator without edges": two(msgspec.structs.replace(finish(Finish()), leaves=())),
    "an operator over edges of two kinds": two(
        finish(Finish(), EDGE, msgspec.structs.replace(EDGE, columns=COLUMNS[:1]))
    ),
    "a key beyond the last column": two(finish(Finish((SortKey(len(COLUMNS), False, False),)))),
    "an offset below 0": two(finish(Finish(offset=-1))),
    "a limit below 0": two(finish(Finish(limit=-1))),
    "a limit beyond 64 bits": two(finish(Finish(limit=2**63))),
    "a merge that is none": two(finish(Finish(aggregate=(MergeStep(0, "reflect"),)))),
    "a merge of too few columns": two(finish(Finish(aggregate=(MergeStep(0, "avg"),)))),
    "a merge of a column that is not there": two(finish(Finish(aggregate=(MergeStep(99, "sum"),)))),
    "a merge of columns that are not there": two(finish(Finish(aggregate=(MergeStep(0, "avg", (0, -1)),)))),
    "too many fragments": two(
        READS, fragments=tuple(msgspec.structs.replace(READS, id=number) for number in range(10_001))
    ),
}
# The taken member's fragment waits for the honest one's, and the other way round.
_WAITS = msgspec.structs.replace(EDGE, edge=3, senders=(HONEST,))
WRONG["a circle"] = msgspec.structs.replace(
    WRONG["a circle"],
    fragments=(
        msgspec.structs.replace(WRONG["a circle"].jobs[0], leaves=(_WAITS,)),
        WRONG["a circle"].fragments[1],
    ),
)


@pytest.mark.parametrize("what", WRONG)
def test_a_plan_whose_parts_do_not_fit_together(what: str) -> None:
    with pytest.raises(PeerError, match="the plan of member bergen is not admitted here"):
        admitted(sealed(WRONG[what]))


def test_what_is_wrong_with_them_is_nothing_else() -> None:
    admitted(sealed(two(READS)))
    admitted(sealed(two(finish(Finish((SortKey(0, False, False),), 1, 2, (MergeStep(0, "avg", (0, 1)),))))))


def test_another_plan_than_its_id_says() -> None:
    with pytest.raises(PeerError, match="fingerprint"):
        admitted(msgspec.structs.replace(forged(SCAN), plan_id=forged("SELECT 1").plan_id))


def test_columns_that_have_changed() -> None:
    plan = msgspec.structs.replace(forged(SCAN), schema_info={f"{HONEST}.orders": 6})
    with pytest.raises(StaleSchema):
        admitted(sealed(plan))


def test_a_text_of_any_size() -> None:
    home = Home(HONEST, frozenset((HONEST, TAKEN)), {}, Limits(plan_sql_bytes=10))
    with pytest.raises(PeerError, match="plan_sql_bytes"):
        admit(forged(SCAN), TAKEN, home, {"orders": PART})


def test_an_order_by_a_column_that_spark_does_not_give() -> None:
    plan = admitted(forged(SCAN, output=Output(1, (TAKEN,), "merge", (SortKey(1, False, False),))))
    check_keys(plan.fragments[0], 2)
    with pytest.raises(PeerError, match="a column that it does not have"):
        check_keys(plan.fragments[0], 1)


def test_merges_are_those_that_there_are() -> None:
    assert MERGED_FROM.keys() == KERNELS.keys()


@pytest.mark.parametrize(
    ("sql", "rows_max", "fits"),
    [
        (SCAN, 0, False),
        (SCAN, 100, True),
        (SCAN, 2**40, False),
        (f"SELECT o_id FROM {LEAF} LATERAL VIEW explode(sequence(1, o_id)) v AS x", 100, False),
        (f"{SCAN} LIMIT 10", 0, True),
        (f"{SCAN} LIMIT 1000000", 0, False),
        (f"{SCAN} LIMIT {'9' * 400}", 0, False),
        (f"SELECT count(*) AS n FROM {LEAF}", 0, True),
        (f"SELECT o_id, count(*) AS n FROM {LEAF} GROUP BY o_id", 0, False),
        ("SELECT 1 AS a", 0, True),
        ("SELECT explode(sequence(1, 1000000)) AS a", 0, False),
    ],
)
def test_only_few_rows_go_through_the_driver(sql: str, rows_max: int, fits: bool) -> None:
    plan = admitted(forged(sql, output=Output(1, (TAKEN,), through_driver=True, rows_max=rows_max)))
    assert plan.jobs[0].output.through_driver is fits


JOINED = f"SELECT /*+ BROADCAST(b) */ a.o_id FROM {LEAF} AS a JOIN leaf_2 AS b ON a.o_id = b.o_id"
NAMES = msgspec.structs.replace(EDGE, columns=(*COLUMNS, Column("name", "string")))


@pytest.mark.parametrize(
    ("sql", "leaves", "held_bytes", "is_narrow"),
    [
        (SCAN, (TABLE,), 100, True),
        (SCAN, (TABLE,), 100_000, False),
        (JOINED, (TABLE, EDGE), 100, True),
        (JOINED, (TABLE, NAMES), 100, False),
        (f"SELECT repeat('x', 9) AS x FROM {LEAF}", (TABLE,), 100, False),
    ],
)
def test_rows_are_short_if_this_member_says_so(
    sql: str, leaves: tuple[Leaf, ...], held_bytes: int, is_narrow: bool
) -> None:
    sending = SparkFragment(2, TAKEN, "SELECT 1", (), Output(2, (HONEST,)))
    plan = forged(sql, leaves, is_narrow=True)
    plan = sealed(msgspec.structs.replace(plan, fragments=(*plan.fragments, *([sending] * (len(leaves) - 1)))))
    part = msgspec.structs.replace(PART, size_bytes=held_bytes)
    home = Home(HONEST, frozenset((HONEST, TAKEN)), {}, Limits())
    assert admit(plan, TAKEN, home, {"orders": part}).jobs[0].is_narrow is is_narrow


# --- statistics ------------------------------------------------------------------------------------
ANALYSIS = analysis_of(PART, COLUMNS[:2])
ANALYZED = (TableLeaf(PLACEHOLDER, "orders"),)


def analysis(sql: str, table: str = "orders", leaves: tuple[TableLeaf, ...] = ANALYZED) -> Plan:
    return forged(sql, leaves, analyzes=table)


def test_statistics_are_those_of_the_table() -> None:
    admitted(analysis(ANALYSIS))
    admitted(analysis(analysis_of(msgspec.structs.replace(PART, size_bytes=5), COLUMNS)))
    for plan in (
        analysis(ANALYSIS.replace("count(*)", "7")),
        analysis(ANALYSIS.replace("MIN(", "MAX(").replace("min(", "max(")),
        analysis(f"{ANALYSIS} WHERE o_id > 5"),
        analysis(f"SELECT 'oslo' AS member, 1 AS rows, 2 AS bytes, '{{}}' AS columns FROM {PLACEHOLDER}"),
        analysis(SCAN, leaves=(TABLE,)),
        analysis("SELECT 1", leaves=()),
        analysis(ANALYSIS, "others"),
    ):
        with pytest.raises(PeerError, match="does not do what ANALYZE TABLE does"):
            admitted(plan)


# --- what may leave --------------------------------------------------------------------------------
COUNTED = f"(SELECT count(*) AS o_id FROM {LEAF})"
LEAVES = {
    SCAN: Leaves.FREELY,
    f"SELECT o_id FROM {LEAF} WHERE o_total > 5": Leaves.FILTERED,
    f"SELECT count(*) AS n FROM {LEAF}": Leaves.AGGREGATED,
    # One mention is aggregated, and another one hides.
    f"WITH x AS {COUNTED} SELECT o_id FROM x UNION ALL SELECT o_id FROM {LEAF}": Leaves.FREELY,
    f"WITH x AS ({SCAN}) SELECT o_id FROM (WITH x AS {COUNTED} SELECT o_id FROM x) AS y UNION ALL SELECT o_id FROM x": (
        Leaves.FREELY
    ),
    f"WITH x AS ({SCAN}) SELECT count(*) AS o_id FROM x UNION ALL "
    f"SELECT o_id FROM (WITH x AS {COUNTED} SELECT o_id FROM x) AS y UNION ALL SELECT o_id FROM x": Leaves.FREELY,
    f"SELECT z.o_id FROM {COUNTED} AS y, (range(1) AS r JOIN {LEAF} AS z)": Leaves.FREELY,
    f"SELECT col FROM {COUNTED} AS y, explode((SELECT array(max(o_id), max(o_cust)) FROM {LEAF}))": Leaves.FREELY,
    f"SELECT col FROM {COUNTED} AS y, LATERAL explode((SELECT collect_list(o_id) FROM {LEAF}))": Leaves.FREELY,
}
MARKS = (Leaves.FILTERED, Leaves.AGGREGATED, Leaves.NEVER)


@pytest.mark.parametrize("mark", MARKS)
@pytest.mark.parametrize("sql", LEAVES)
def test_its_own_marks_decide_what_leaves(sql: str, mark: Leaves) -> None:
    order = [Leaves.FREELY, *MARKS]
    if order.index(LEAVES[sql]) >= order.index(mark):
        admitted(forged(sql), mark)
        return
    with pytest.raises(UserError, match=f"marked leaves: {mark}") as caught:
        admitted(forged(sql), mark)
    assert not isinstance(caught.value, PeerError)


def test_what_an_initiator_says_of_it_is_not_believed() -> None:
    told = forged(SCAN, facts=Facts(done=(Leaves.AGGREGATED,)))
    with pytest.raises(UserError, match="rows of orders"):
        admitted(told, Leaves.AGGREGATED)


def test_rows_that_go_through_an_operator_first() -> None:
    """The table's rows stay, are limited, and leave then."""
    stays = SparkFragment(2, HONEST, SCAN, (TABLE,), Output(2, (HONEST,)))
    passes = finish(Finish(limit=10), EdgeLeaf("", 2, COLUMNS[:1], (HONEST,)))
    plan = sealed(Plan("", (stays, passes), Rows(1, (HONEST,)), {f"{HONEST}.orders": 7}))
    admitted(plan)
    for mark in MARKS:
        with pytest.raises(UserError, match="rows of orders"):
            admitted(plan, mark)
    # They may stay and leave at once: what is limited leaves here, and what is counted.
    both = msgspec.structs.replace(stays, output=Output(2, (HONEST, TAKEN)))
    counts = finish(Finish(aggregate=(MergeStep(0, "count"),)), EdgeLeaf("", 2, COLUMNS[:1], (HONEST,)))
    for reads in (passes, counts):
        with pytest.raises(UserError, match=f"rows of orders .*from {HONEST} to {TAKEN} .fragment 2"):
            admitted(sealed(msgspec.structs.replace(plan, fragments=(both, reads))), Leaves.AGGREGATED)
    lied = finish(Finish(limit=10), EdgeLeaf("", 2, COLUMNS[:1], (TAKEN,)))
    with pytest.raises(PeerError, match="whose senders are others"):
        admitted(sealed(msgspec.structs.replace(plan, fragments=(stays, lied))), Leaves.NEVER)


@pytest.mark.parametrize(
    ("levels", "why"), [(11, "rows of orders"), (59, "queries of a WITH name each other so often")]
)
def test_with_queries_that_double_are_looked_at_once(levels: int, why: str) -> None:
    ctes = ", ".join(f"x{n} AS (SELECT a.o_id FROM x{n - 1} AS a, x{n - 1} AS b)" for n in range(1, levels + 1))
    sql = f"WITH x0 AS ({SCAN}), {ctes} SELECT o_id FROM x{levels}"
    with pytest.raises(SkerryError, match=why):
        admitted(forged(sql), Leaves.NEVER)
