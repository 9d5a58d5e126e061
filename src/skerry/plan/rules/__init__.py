"""Which rules a plan may use, and how it is placed. One rule a file beside this one."""

from __future__ import annotations

from enum import Enum

import msgspec

from skerry.model.errors import UserError


class GivenUp(Enum):
    """Which rules go, and when, if a query reads tables whose rows may not leave freely."""

    AT_ONCE = "at once"  # it sends as groups what the client sees as rows: egress would take them for aggregates
    FIRST = "first"  # it takes whole parts of the query to other members
    NEXT = "next"  # values of a table leave by it that would stay
    LAST = "last"  # by it nothing leaves that would not leave without it


class Rule(msgspec.Struct, frozen=True):
    """Each is the module of its name; `given_up` is for planning under egress rules (plan/lawful.py)."""

    name: str
    given_up: GivenUp


# Fixtures of each are tests/plans/rules_NAME.sql (tests/plans/test_plans_executed.py sees to that); what it does stands
# in docs/planning.md. A rule that is not named here cannot be switched.
RULES = (
    Rule("filters", GivenUp.LAST),
    Rule("disjunctions", GivenUp.LAST),
    Rule("equalities", GivenUp.LAST),
    Rule("subqueries", GivenUp.NEXT),
    Rule("answers", GivenUp.NEXT),
    Rule("lookups", GivenUp.NEXT),
    Rule("sets", GivenUp.LAST),
    Rule("computed", GivenUp.LAST),
    Rule("semijoin", GivenUp.NEXT),
    Rule("blocks", GivenUp.NEXT),
    Rule("joined", GivenUp.NEXT),
    Rule("subtrees", GivenUp.NEXT),
    Rule("grouped", GivenUp.AT_ONCE),
    Rule("apart", GivenUp.FIRST),
    Rule("aggregates", GivenUp.LAST),
    Rule("topn", GivenUp.NEXT),
    Rule("colocated", GivenUp.NEXT),
    Rule("prune", GivenUp.LAST),
    Rule("ranges", GivenUp.NEXT),
)
NAMES = tuple(rule.name for rule in RULES)
STRATEGIES = ("cost", "bottom-up")
ROOTS = ("anywhere", "initiator")
BASELINES = ("scans", "tables")
GROUP_BYS = ("merge", "elastic")


class Rules(msgspec.Struct, frozen=True):
    """`on` are the rules that may fire. `root` and `baseline` serve comparisons.

    baseline: "scans" (columns and filters are pushed to the tables) or "tables" (whole tables travel).
    Where egress rules forbid what costs least, `aggregates_always` groups at every part whatever that costs, and
    `root_at` names the member that runs the part of the query that is not cut.
    group_by: how groups of several parts are merged: at one place ("merge"), or by a group-by that grows over members
    ("elastic"), wherever there can be one.
    """

    on: frozenset[str] = frozenset(NAMES)
    strategy: str = "cost"
    root: str = "anywhere"
    baseline: str = "scans"
    aggregates_always: bool = False
    root_at: str = ""
    group_by: str = "merge"

    def has(self, name: str) -> bool:
        assert name in NAMES, f"no rule {name}"
        return name in self.on

    def without(self, *when: GivenUp) -> Rules:
        """Those that are left when rules of these kinds are given up."""
        gone = {rule.name for rule in RULES if rule.given_up in when}
        return msgspec.structs.replace(self, on=self.on - gone)


NO_RULES = Rules(frozenset())


def read_rules(given: str) -> frozenset[str]:
    """`all`, `none`, `-semijoin,-blocks` (all but these) or `filters,semijoin` (these alone)."""
    words = [word.strip() for word in given.split(",") if word.strip()]
    if words in (["all"], []):
        return frozenset(NAMES)
    if words == ["none"]:
        return frozenset()
    unknown = [word for word in words if word.lstrip("-") not in NAMES]
    if unknown:
        raise UserError(f"no rule {unknown[0][:100]!r}: there are {', '.join(NAMES)}, and all and none")
    without = {word[1:] for word in words if word.startswith("-")}
    if without and len(without) < len(words):
        raise UserError("rules are either all but some (-semijoin) or some alone (filters,semijoin), not both")
    return frozenset(NAMES) - without if without else frozenset(words)


def one_of(option: str, given: str, known: tuple[str, ...]) -> str:
    """The word, if it is known."""
    if given not in known:
        raise UserError(f"{option} is one of {', '.join(known)}, not {given[:100]!r}")
    return given
