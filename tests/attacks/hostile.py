"""The statements of statements.sql, and plans as somebody forges them who has a member of the cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from skerry.model.config import Leaves
from skerry.model.fragment import Leaf, Output, Plan, Rows, SparkFragment, TableLeaf
from skerry.model.limits import Limits
from skerry.model.table import Column, TablePart
from skerry.plan.admission import Home, admit
from skerry.plan.cache import fingerprint

# The member that was taken over begins queries; the other one runs their fragments.
TAKEN, HONEST = "bergen", "oslo"
COLUMNS = (
    Column("o_id", "bigint"),
    Column("o_cust", "bigint"),
    Column("o_total", "decimal(15,2)"),
    Column("o_date", "date"),
)
PART = TablePart("orders", HONEST, COLUMNS, 10, 100, 7, 1)
LEAF = "leaf_1_0123456789abcdef"
LEAVES = (TableLeaf(LEAF, "orders"),)


def statements() -> list[tuple[str, str]]:
    """What each wants, and its text."""
    text = (Path(__file__).parent / "statements.sql").read_text(encoding="utf-8")
    blocks = (block.partition("\n") for block in text.split("\n### ")[1:])
    return [(wants, sql) for wants, _, sql in blocks]


def sealed(plan: Plan) -> Plan:
    return msgspec.structs.replace(plan, plan_id=fingerprint(plan))


def forged(sql: str, leaves: tuple[Leaf, ...] = LEAVES, **changed: Any) -> Plan:
    """One fragment with this text at the honest member, whose rows go to the one that was taken over."""
    fragment = SparkFragment(1, HONEST, sql, leaves, Output(1, (TAKEN,)))
    fragment = msgspec.structs.replace(fragment, **changed)
    return sealed(Plan("", (fragment,), Rows(1, (HONEST,)), {f"{HONEST}.orders": 7}))


def admitted(plan: Plan, mark: Leaves = Leaves.FREELY) -> Plan:
    """As the honest member does it."""
    marks = {} if mark is Leaves.FREELY else {(HONEST, "orders"): mark}
    return admit(plan, TAKEN, Home(HONEST, frozenset((HONEST, TAKEN)), marks, Limits()), {"orders": PART})
