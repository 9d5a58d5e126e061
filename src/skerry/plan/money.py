"""What of a plan's cost is seconds and what is dollars: the planner adds them up, people want them apart."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from skerry.catalog.topology import S_PER_USD
from skerry.plan.mention import Mention, Shipment
from skerry.plan.place import Costs
from skerry.plan.rules.apart import Apart
from skerry.plan.rules.joined import Joined
from skerry.plan.rules.semijoin import Reducer
from skerry.plan.site import Site
from skerry.plan.source import Source


def cost_text(cost_s: float, seconds: float) -> str:
    """`~1.6 s and $0.01`; `seconds` is the part of the cost that is no money."""
    if math.isinf(cost_s):
        return "for ever"
    usd = (cost_s - seconds) / S_PER_USD
    money = "" if usd < 1e-9 else f" and ${usd:.2f}" if usd >= 0.01 else " and less than $0.01"
    return (f"~{seconds:.2g} s" if seconds < 100 else f"~{seconds:.0f} s") + money


def seconds_of(
    cost_s: float,
    root: str,
    shipments: Sequence[Shipment],
    partials: Sequence[Source],
    result_bytes: float,
    mentions: Mapping[str, Mention],
    site: Site,
) -> float:
    """The cost of a plan with its root there, without what its links' prices add to it."""
    if site.topology is None or not site.topology.has_prices or math.isinf(cost_s):
        return cost_s

    def links_s(costs: Costs) -> float:
        reducer = Reducer(mentions, costs, site.estimator)
        return (
            sum(_shipment_s(reducer, each, root) for each in shipments)
            + costs.ship_s(root, site.initiator, result_bytes)
            + partials_s(partials, root, costs)
        )

    # A difference: what else the cost counts, such as jobs to wait for, is no money.
    money_s = links_s(Costs(site.topology)) - links_s(Costs(site.topology, s_per_usd=0.0))
    return cost_s - min(max(money_s, 0.0), cost_s)


def partials_s(partials: Sequence[Source], receiver: str, costs: Costs) -> float:
    """The cost of partial rows that come to the receiver."""
    return sum(
        costs.ship_s(sender, receiver, size_bytes)
        for source in partials
        for sender, size_bytes in source.sent_bytes().items()
    )


def _shipment_s(reducer: Reducer, shipment: Shipment, receiver: str) -> float:
    block = shipment.node.mention.block
    found_s = reducer.cost_s(shipment.node, receiver, shipment.columns)
    if isinstance(block, Apart):
        # About: a column that only its own conditions name is not sent.
        found_s += sum(reducer.cost_s(each, block.member, each.mention.scan.columns) for each in block.inputs)
    if isinstance(block, Joined):
        found_s += sum(_shipment_s(reducer, each.shipment, block.member) for each in block.inputs)
    return found_s
