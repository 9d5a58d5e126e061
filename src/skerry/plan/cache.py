"""Plans kept by plan_id, least recently used first out; bounded in count and bytes."""

from __future__ import annotations

from collections import OrderedDict
from typing import assert_never

import msgspec
import xxhash

from skerry.model.errors import PeerError
from skerry.model.fragment import Fragment, OperatorFragment, Plan, SparkFragment
from skerry.model.limits import Limits


def fingerprint(plan: Plan) -> str:
    """The plan_id that this plan must carry: of all that is run, whatever was guessed and said about it."""
    run = [_run(fragment) for fragment in plan.fragments]
    return xxhash.xxh3_128_hexdigest(msgspec.msgpack.encode(("", run, plan.ends_in, plan.schema_info, plan.parameters)))


def _run(fragment: Fragment) -> tuple[object, ...]:
    match fragment:
        case SparkFragment() as e:
            # As a member that knows no other fields would encode it; those that are missing follow from the text.
            return (e.id, e.member, e.sql, e.leaves, e.output, 0, 0, e.is_narrow, "", e.analyzes)
        case OperatorFragment() as e:
            return (e.id, e.member, e.operator, e.leaves, e.output)
        case never:
            assert_never(never)


def check_fingerprint(plan: Plan) -> None:
    """PeerError for a plan whose content is not what its id says."""
    if fingerprint(plan) != plan.plan_id:
        raise PeerError(f"plan {plan.plan_id[:100]} does not match its fingerprint")


class PlanCache:
    """Eviction never breaks a running query: a query holds on to its own plan.

    By initiator: none can put its plan in the place of another's, whatever it does to have the same id.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._plans: OrderedDict[tuple[str, str], tuple[Plan, int]] = OrderedDict()
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._plans)

    def get(self, plan_id: str, initiator: str) -> Plan | None:
        found = self._plans.get((initiator, plan_id))
        if found is None:
            return None
        self._plans.move_to_end((initiator, plan_id))
        return found[0]

    def put(self, plan: Plan, initiator: str) -> None:
        """A plan of one's own, or one that was admitted here (`admission.py`)."""
        key = (initiator, plan.plan_id)
        if key in self._plans:
            self._plans.move_to_end(key)
            return
        size = len(msgspec.msgpack.encode(plan))
        self._plans[key] = (plan, size)
        self.size_bytes += size
        while len(self._plans) > self._limits.plans or self.size_bytes > self._limits.plans_bytes:
            _, (_, gone_bytes) = self._plans.popitem(last=False)
            self.size_bytes -= gone_bytes
