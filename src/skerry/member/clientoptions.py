"""What a client may ask for beside its statement: ClientExecute.options, checked (docs/protocol.md, 5.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from skerry.config import FaultPolicy
from skerry.member.caps import Caps
from skerry.member.cursors import Lease
from skerry.model.errors import UserError
from skerry.model.limits import Limits
from skerry.plan.rules import BASELINES, GROUP_BYS, ROOTS, STRATEGIES, Rules, one_of, read_rules

LOADS = ("", "1", "again")
_KNOWN = (
    *("fault_policy", "resume_s", "again", "detach", "lease_s", "rules", "strategy", "root", "baseline", "load"),
    *("edge_rows", "spark_s", "group_by"),
)
_CAP_MAX = 2**53  # of rows or milliseconds: a number that every client can say exactly


class Options(msgspec.Struct, frozen=True):
    """`timeout_s`: what the query may take. `fault_policy` None: as the cluster is configured.

    `load`: "1" if the client sends rows for the statement, "again" if it asks what became of those; else "".
    `caps`: rows of an edge, and Spark's time.
    """

    fault_policy: FaultPolicy | None = None
    lease: Lease = Lease()
    rules: Rules = Rules()
    timeout_s: float = 0.0
    load: str = ""
    caps: Caps = Caps()


def read_options(given: Mapping[str, str], limits: Limits, timeout_s: float = 0.0) -> Options:
    """Raises UserError on what is not known, so that nobody relies on what does not happen."""
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise UserError(f"no option {unknown[0][:100]!r}: there are {', '.join(_KNOWN)}")
    policy = FaultPolicy.named(given["fault_policy"]) if "fault_policy" in given else None
    is_detached = given.get("detach", "") not in ("", "0")
    kind, default_s = ("lease_s", limits.cursor_lease_s) if is_detached else ("resume_s", 0.0)
    lease = Lease(_seconds(given, kind, default_s, limits.query_timeout_s), is_detached)
    load = one_of("load", given.get("load", ""), LOADS)
    asked = Caps(int(_cap(given, "edge_rows", "rows", 1)), round(_cap(given, "spark_s", "seconds", 1000) * 1000))
    return Options(policy, lease, plan_rules(given), _timeout(timeout_s, limits), load, asked.within(Caps.of(limits)))


def is_again(given: Mapping[str, str]) -> bool:
    """Whether the statement was sent before by the same id: it may be carried out already."""
    return given.get("again", "") not in ("", "0")


def plan_rules(given: Mapping[str, str]) -> Rules:
    """How the client wants its query planned; all rules, by cost, if it says nothing."""
    return Rules(
        read_rules(given.get("rules", "all")),
        one_of("strategy", given.get("strategy", "cost"), STRATEGIES),
        one_of("root", given.get("root", "anywhere"), ROOTS),
        one_of("baseline", given.get("baseline", "scans"), BASELINES),
        group_by=one_of("group_by", given.get("group_by", "merge"), GROUP_BYS),
    )


def _timeout(asked_s: float, limits: Limits) -> float:
    """A query's time: as long as its client asks for, but no longer than the member admits. 0 asks for just that."""
    if not asked_s >= 0:  # NaN too
        raise UserError(f"timeout_s is a number of seconds, 0 for the member's own limit, not {asked_s:g}")
    return min(asked_s or limits.query_timeout_s, limits.query_timeout_s)


def _cap(given: Mapping[str, str], name: str, unit: str, parts: int) -> float:
    """Of so many parts of a unit; 0 for the member's own."""
    text = given.get(name, "0")
    try:
        cap = float(text) if parts > 1 else int(text)
    except ValueError:
        cap = math.nan
    if not 0 <= cap * parts <= _CAP_MAX or 0 < cap * parts < 1:
        raise UserError(f"{name} is a number of {unit}, 0 for the member's own limit, not {text[:100]!r}")
    return cap


def _seconds(given: Mapping[str, str], name: str, default_s: float, most_s: float) -> float:
    if name not in given:
        return default_s
    try:
        seconds = float(given[name])
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds <= most_s:
        raise UserError(f"{name} is a number of seconds from 0 to {most_s:g} (limits.query_timeout_s)")
    return seconds
