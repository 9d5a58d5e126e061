"""Why fragments run where they do, for those that nobody gave a reason: what is there, and what has to come."""

from __future__ import annotations

import msgspec

from skerry.model.amounts import size_text
from skerry.model.fragment import EdgeLeaf, Fragment, Plan, TableLeaf


def with_reasons(plan: Plan) -> Plan:
    """The same plan; its id does not count reasons."""
    fragments = tuple(
        each if each.reason else msgspec.structs.replace(each, reason=_reason(each, plan)) for each in plan.fragments
    )
    return msgspec.structs.replace(plan, fragments=fragments)


def _reason(fragment: Fragment, plan: Plan) -> str:
    tables = list(dict.fromkeys(leaf.table for leaf in fragment.leaves if isinstance(leaf, TableLeaf)))
    edges = {leaf.edge for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf)}
    arriving = sum(
        each.estimated_bytes
        for each in plan.fragments
        if each.output.edge in edges and fragment.member in each.output.receivers
    )
    told = []
    if tables:
        named = " and ".join(tables) if len(tables) < 3 else "its tables"
        told.append(f"{named} {'is' if len(tables) == 1 else 'are'} there")
    if edges:
        about = f"about {size_text(arriving)} arrive" if arriving else "little arrives"
        told.append(f"{about} from {', '.join(_senders(fragment))}")
    return "; ".join(told) or "it reads no table"


def _senders(fragment: Fragment) -> list[str]:
    found = [sender for leaf in fragment.leaves if isinstance(leaf, EdgeLeaf) for sender in leaf.senders]
    return list(dict.fromkeys(found))
