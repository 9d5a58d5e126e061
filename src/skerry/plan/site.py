"""Who plans a query, for whom and how."""

from __future__ import annotations

import msgspec

from skerry.catalog.topology import Topology
from skerry.plan.egress import EgressRules
from skerry.plan.estimate import Estimator
from skerry.plan.observed import Observed
from skerry.plan.rules import NO_RULES, Rules


class Site(msgspec.Struct, frozen=True):
    """Who plans, who may run fragments, in the configuration's order, and by which rules.

    Without a topology all members reach each other equally well. `observed`: what scans gave before. `egress`: what may
    leave sites; fragments tell what they do to the rows of marked tables.
    """

    initiator: str
    data_members: tuple[str, ...]
    rules: Rules = NO_RULES
    topology: Topology | None = None
    observed: Observed | None = None
    egress: EgressRules | None = None

    @property
    def estimator(self) -> Estimator:
        return Estimator(self.observed)

    @property
    def at_home(self) -> str:
        """The initiator itself, or the first data member when it has no Spark."""
        return self.initiator if self.initiator in self.data_members else self.data_members[0]
