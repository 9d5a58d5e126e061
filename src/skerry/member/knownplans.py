"""Plans of statements that were asked before: the same statement gets the same plan, for as long as nothing that a plan
is made of has changed.
"""

from __future__ import annotations

import pickle
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, TypeVar

import msgspec

from skerry.catalog.catalog import Site
from skerry.member.planning import Planned, Planner, Worker
from skerry.member.requests import RunStatement
from skerry.model.ids import QueryId
from skerry.model.limits import KNOWN_PLAN_CHARS, KNOWN_PLANS
from skerry.sql.fixed import MARKERS

T = TypeVar("T")
_ANY = QueryId("", "")


class _Known(msgspec.Struct, frozen=True):
    planned: Planned
    sites: tuple[Site, ...]
    changes: int  # of the sizes that were seen

    def holds(self, sites: tuple[Site, ...], changes: int) -> bool:
        """By identity: a site that is described anew is another, whether it changed or not."""
        is_same = len(sites) == len(self.sites) and all(a is b for a, b in zip(sites, self.sites, strict=True))
        return is_same and changes == self.changes


class KnownPlans:
    """Stands before whoever plans. A plan is a function of the statement, its values, who asks, the tables and the
    sizes seen: a known one is what would be planned now.
    """

    def __init__(self, planners: Worker) -> None:
        self.planners = planners
        self._plans: OrderedDict[tuple[object, bytes], _Known] = OrderedDict()

    async def run(self, work: Callable[[Any, Any], T], planner: Planner, message: Any) -> T:
        if not isinstance(message, RunStatement) or len(message.sql) > KNOWN_PLAN_CHARS:
            return await self.planners.run(work, planner, message)
        # All but whose it is: two statements of the same bytes are the same, and others are planned again.
        alike = msgspec.structs.replace(message, query=_ANY, share="", seen_ts=0, transaction="", user="", session="")
        key = (work, pickle.dumps(alike))
        observed = planner.site.observed
        sites, changes = tuple(planner.catalog.sites.values()), observed.changes if observed is not None else 0
        known: Any = self._plans.get(key)
        if known is not None and known.holds(sites, changes):
            self._plans.move_to_end(key)
            found: T = known.planned
            return found
        made = await self.planners.run(work, planner, message)
        # The time of now() and the name of who asks are values of their own query.
        if isinstance(made, Planned) and not MARKERS & made.parameters.keys():
            self._plans[key] = _Known(made, sites, changes)
            self._plans.move_to_end(key)
            if len(self._plans) > KNOWN_PLANS:
                self._plans.popitem(last=False)
        return made


def planned_anew(planner: Planner) -> Planner:
    """The same without its memory, for whoever measures what planning takes."""
    workers = planner.workers
    return msgspec.structs.replace(planner, workers=workers.planners) if isinstance(workers, KnownPlans) else planner
