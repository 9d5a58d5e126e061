"""Spark names fields of a struct after what stands in their places: no rule may put another name there."""

from __future__ import annotations

import pytest
from sqlglot import exp

from metamorphic.reading import parse_fragment
from skerry.model.fragment import Plan
from skerry.plan.cut import make_plan
from skerry.plan.rules import NAMES, NO_RULES, Rules
from skerry.sql.functions import call_name
from tests.plans.plan_cases import CATALOG, LIMITS, bound
from tests.plans.test_plans_executed import site

SUBTREE = "FROM bergen.mixed AS m LEFT JOIN bergen.events AS e ON e.id = m.id JOIN lineitem ON l_order = m.id"
JOINED = SUBTREE.replace("LEFT JOIN", "JOIN").replace("e.id = m.id", "e.kind = m.note")
SPARED = [Rules(), Rules(frozenset(NAMES) - {"semijoin"}), Rules(strategy="bottom-up")]


def fields(plan: Plan) -> set[tuple[str, ...]]:
    """What the structs of its fragments call their fields; what has no name is called by its place."""
    found: set[tuple[str, ...]] = set()
    for fragment in plan.fragments:
        tree = parse_fragment(fragment.sql)
        assert tree is not None
        for node in tree.walk():
            if isinstance(node, exp.Tuple) or call_name(node) in ("struct", "arrays_zip"):
                each = enumerate(part.unnest() for part in node.expressions)
                found.add(tuple(part.name if isinstance(part, exp.Column) else f"col{at}" for at, part in each))
    return found


@pytest.mark.parametrize(
    "sql",
    [
        f"SELECT to_json(struct(m.id, e.id)) AS j, l_qty {SUBTREE}",
        f"SELECT max(struct(e.id, m.id)) AS m, l_qty {SUBTREE} GROUP BY l_qty",
        f"SELECT arrays_zip(array(m.id), (e.tags)) AS j, m.id AS i, e.id AS k {SUBTREE}",
        f"SELECT l_qty, e.id AS k {SUBTREE} WHERE struct(e.id) <> struct(m.id)",
        f"SELECT struct(m.id, e.id) AS j {JOINED}",
        f"SELECT to_json((m.id, (e.id))) AS j {JOINED}",
        "SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE to_json(struct(c_id)) = '{\"c_id\":1}'",
        "SELECT o_id FROM orders JOIN customer ON o_cust = c_id WHERE (c_id, 1) IN ((1, 1), (2, 1))",
        "SELECT struct(upper(c_name), o_id) AS j FROM orders JOIN customer ON o_cust = c_id",
        "SELECT max(struct((c_name LIKE 'x%'), o_id)) AS j FROM orders JOIN customer ON o_cust = c_id",
        "SELECT struct(kind) AS k, count(*) AS n FROM events GROUP BY kind HAVING count(*) > 1",
        "SELECT to_json(struct(upper(kind), max(id))) AS k FROM events GROUP BY upper(kind)",
        "SELECT kind, max(id) + 1 AS m FROM events GROUP BY kind HAVING struct(kind).kind > 'x'",
        "SELECT struct(kind, grouping(kind)) AS k FROM events GROUP BY ROLLUP (kind)",
        "SELECT o_id FROM orders WHERE o_note > (SELECT to_json(struct(max(c_id))) FROM customer WHERE c_id = o_cust)",
        """SELECT o_id FROM orders WHERE EXISTS (SELECT 1 FROM customer JOIN nation ON c_nation = n_id WHERE
            c_id = o_cust AND to_json(struct(n_name)) > o_note)""",
    ],
)
def test_fields_keep_their_names(sql: str) -> None:
    expected = fields(make_plan(bound(sql), CATALOG, site(100.0, "oslo", NO_RULES), LIMITS))
    assert expected
    for at in ("oslo", "bergen", "tromso"):
        for rules in SPARED:
            plan = make_plan(bound(sql), CATALOG, site(0.001, at, rules), LIMITS)
            assert fields(plan) <= expected, [each.sql for each in plan.fragments]
