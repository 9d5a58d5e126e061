"""Who plans a query, for whom and how."""

from __future__ import annotations

import msgspec

from skerry.catalog.topology import Topology
from skerry.model.config import Config, Role
from skerry.plan.egress import ColumnsOf, EgressRules, egress_rules
from skerry.plan.estimate import Estimator
from skerry.plan.observed import Observed
from skerry.plan.rules import NO_RULES, Rules


class Site(msgspec.Struct, frozen=True):
    """Who plans, who may run fragments, in the configuration's order, and by which rules.

    Without a topology all members reach each other equally well. `observed`: what scans gave before. `egress`: what may
    leave sites; fragments tell what they do to the rows of marked tables. `has_sail`: some members' engine is Sail.
    """

    initiator: str
    data_members: tuple[str, ...]
    rules: Rules = NO_RULES
    topology: Topology | None = None
    observed: Observed | None = None
    egress: EgressRules | None = None
    has_sail: bool = False

    @property
    def estimator(self) -> Estimator:
        return Estimator(self.observed)

    @property
    def at_home(self) -> str:
        """The initiator itself, or the first data member when it has no Spark."""
        return self.initiator if self.initiator in self.data_members else self.data_members[0]


def site_of(initiator: str, config: Config, topology: Topology, observed: Observed, columns_of: ColumnsOf) -> Site:
    """A member as its configuration has it. `columns_of`: what is known of the columns of all members' tables."""
    data_members = tuple(name for name, each in config.members.items() if each.role is Role.DATA)
    egress = egress_rules(config, topology, columns_of)
    has_sail = any(each.spark is not None and each.spark.sail for each in config.members.values())
    return Site(initiator, data_members, topology=topology, observed=observed, egress=egress, has_sail=has_sail)
