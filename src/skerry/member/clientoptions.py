"""What a client may ask for beside its statement: ClientExecute.options, checked (docs/protocol.md, 5.4)."""

from __future__ import annotations

import math
from collections.abc import Mapping

import msgspec

from skerry.config import FaultPolicy
from skerry.errors import UserError
from skerry.limits import Limits
from skerry.member.cursors import Lease

_KNOWN = ("fault_policy", "resume_s", "detach", "lease_s")


class Options(msgspec.Struct, frozen=True):
    """`fault_policy` None: as the cluster is configured."""

    fault_policy: FaultPolicy | None = None
    lease: Lease = Lease()


def read_options(given: Mapping[str, str], limits: Limits) -> Options:
    """Raises UserError on what is not known, so that nobody relies on what does not happen."""
    unknown = [name for name in given if name not in _KNOWN]
    if unknown:
        raise UserError(f"no option {unknown[0][:100]!r}: there are {', '.join(_KNOWN)}")
    policy = FaultPolicy.named(given["fault_policy"]) if "fault_policy" in given else None
    is_detached = given.get("detach", "") not in ("", "0")
    kind, default_s = ("lease_s", limits.cursor_lease_s) if is_detached else ("resume_s", 0.0)
    return Options(policy, Lease(_seconds(given, kind, default_s, limits.query_timeout_s), is_detached))


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
