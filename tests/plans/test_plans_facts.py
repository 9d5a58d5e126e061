"""What the makers of fragments tell of them is what their text says, in every plan of the fixtures."""

from __future__ import annotations

import msgspec
import pytest

from metamorphic.reading import parse_fragment
from skerry.catalog.topology import Topology
from skerry.model.config import Leaves
from skerry.model.fragment import Fragment, Plan
from skerry.plan.admission import admit, home_of, own_tables
from skerry.plan.cut import make_plan
from skerry.plan.egress import EgressRules
from skerry.plan.maker import make_fragment
from skerry.plan.rules import Rules
from tests.plans.plan_cases import CATALOG, CONFIG, LIMITS, Case, all_cases, bound, site

pytestmark = pytest.mark.slow

MARKS = {(member, table.lower()): Leaves.NEVER for member, each in CONFIG.members.items() for table in each.tables}
EGRESS = EgressRules(MARKS, Topology(CONFIG), CATALOG.columns_of)


@pytest.mark.parametrize("case", all_cases(), ids=lambda case: f"{case.file.stem}: {case.title}")
def test_facts_are_those_of_the_text(case: Case) -> None:
    """By the case's own rules, and by all."""
    query = bound(case.sql, case.header.get("parameters"))
    sites = [site(case.at, rules, case.topology, EGRESS) for rules in {case.rules, Rules()}]
    plans = [make_plan(query, CATALOG, each, LIMITS) for each in sites]
    for fragment in {fragment for plan in plans for fragment in plan.fragments}:
        again = read_again(fragment)
        assert fragment.facts is not None
        assert again.facts is not None
        own, read = fragment.facts, again.facts
        if "WHERE FALSE" in fragment.sql:  # who reads the text cannot tell whose branch that is
            assert set(own.operators) <= set(read.operators)
            own, read = (msgspec.structs.replace(each, operators=()) for each in (own, read))
        assert own == read, fragment.sql
        assert fragment.operator_depth == again.operator_depth, fragment.sql
        assert fragment.is_repeatable == again.is_repeatable, fragment.sql
        assert fragment.sql == again.sql or "/*+" in fragment.sql
    for plan in plans:
        for member in {fragment.member for fragment in plan.fragments}:
            check_admitted(plan, case.at, member)


def read_again(fragment: Fragment) -> Fragment:
    tree = parse_fragment(fragment.sql)
    assert tree is not None, fragment.sql
    return make_fragment(fragment.id, fragment.member, tree, fragment.leaves, fragment.output, egress=EGRESS)


def check_admitted(plan: Plan, at: str, member: str) -> None:
    """The member that runs them finds in the texts what their makers said of them."""
    refs = [CATALOG.lookup((member, table)) for table in own_tables(plan, member)]
    parts = {part.table.lower(): part for ref in refs if ref is not None for part in CATALOG.parts(ref)}
    admitted = admit(plan.to_run(), at, home_of(member, CONFIG), parts)
    for made, read in zip(plan.jobs, admitted.jobs, strict=True):
        assert (made.sql, made.operator_depth) == (read.sql, read.operator_depth)
        assert made.is_repeatable == read.is_repeatable
        assert made.output == read.output
