"""A plan for people and for programs: which fragment runs where and why, what it reads, where its rows go.

`describe` makes plain dictionaries of it, `explain` lines of text of those.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, assert_never

import msgspec

from skerry.catalog.topology import Topology
from skerry.model.amounts import counted, listed, size_text
from skerry.model.config import Link
from skerry.model.fragment import (
    Count,
    EdgeLeaf,
    Ending,
    Finish,
    Fragment,
    GroupHere,
    Operator,
    OperatorFragment,
    Plan,
    Rows,
    SparkFragment,
    TableLeaf,
    VirtualLeaf,
    Written,
)

_ORDERS = {
    "any": "",
    "lanes": ", in order",
    "merge": ", lanes merged in order",
    "groups": ", each row where its group is",
}


class Ran(msgspec.Struct, frozen=True):
    """What a fragment did."""

    rows: int
    size_bytes: int
    seconds: float
    jobs: tuple[int, ...] = ()


class Grew(msgspec.Struct, frozen=True):
    """What became of an elastic group-by at one member: see `Grown` of the messages."""

    recruits: int
    epoch: int
    splits: int
    rows_forwarded: int
    spilled_bytes: int


class LinkUse(msgspec.Struct, frozen=True):
    """What crossed a link, in one direction, as sent; and how long rows waited for credit."""

    sender: str
    receiver: str
    size_bytes: int
    rows: int
    stalled_s: float


class Actual(msgspec.Struct, frozen=True):
    """A run of the plan: `fragments` by id, the rows of the result and the seconds it took."""

    fragments: Mapping[int, Ran]
    links: tuple[LinkUse, ...]
    rows: int
    seconds: float
    grew: Mapping[int, Grew] = {}


# --- as dictionaries -------------------------------------------------------------------------------
def describe(
    plan: Plan,
    initiator: str,
    topology: Topology | None = None,
    actual: Actual | None = None,
    refused: str = "",
) -> dict[str, Any]:
    """The plan as JSON has it (docs/sql.md). `refused`: the egress rule that it would break."""
    found: dict[str, Any] = {"plan_id": plan.plan_id, "initiator": initiator}
    if topology is not None:
        found |= _topology(topology)
    found["fragments"] = [_fragment(fragment, topology, actual) for fragment in plan.fragments]
    _add_sharers(found["fragments"])
    if plan.left_out:
        found["left_out"] = [{"table": e.table, "member": e.member, "reason": e.reason} for e in plan.left_out]
    found["finish"] = {"member": initiator, **_ending(plan.ends_in)}
    if actual is not None:
        found["links_used"] = [
            {
                "from": link.sender,
                "to": link.receiver,
                "bytes": link.size_bytes,
                "rows": link.rows,
                "stalled_s": round(link.stalled_s, 3),
            }
            for link in actual.links
        ]
        found["rows"], found["seconds"] = actual.rows, round(actual.seconds, 3)
    if refused:
        found["refused"] = refused
    return found


def _ending(ends_in: Ending) -> dict[str, Any]:
    match ends_in:
        case Rows(edge, senders, finish):
            return {"edge": edge, "from": list(senders), "operators": finish_steps(finish)}
        case Count(fragments):
            return {"fragments": list(fragments), "operators": ["count"]}
        case Written(sink, fragments):
            return {"fragments": list(fragments), "sink": sink, "operators": ["count"]}
        case never:
            assert_never(never)


def _topology(topology: Topology) -> dict[str, Any]:
    return {
        "members": [{"name": name, "role": str(member.role)} for name, member in topology.members.items()],
        "links": [_link(each) for sent in topology.links.values() for each in sent.values()],
    }


def _link(link: Link) -> dict[str, Any]:
    found: dict[str, Any] = {"from": link.sender, "to": link.receiver, "mbit": link.mbit, "ms": link.ms}
    if link.usd_per_gb:
        found["usd_per_gb"] = link.usd_per_gb
    if link.query_bytes is not None:
        found["query_bytes"] = link.query_bytes
    return found


def _fragment(fragment: Fragment, topology: Topology | None, actual: Actual | None) -> dict[str, Any]:
    sql = fragment.sql if isinstance(fragment, SparkFragment) else ""
    reads: list[dict[str, Any]] = []
    for leaf in fragment.leaves:
        match leaf:
            case TableLeaf(placeholder, table):
                sql = sql.replace(placeholder, table)
                reads.append({"table": table})
            case EdgeLeaf(placeholder, edge, _, senders):
                sql = sql.replace(placeholder, f"edge_{edge}")
                reads.append({"edge": edge, "from": list(senders)})
            case VirtualLeaf(placeholder):
                name = f"values_{sum('values' in each for each in reads) + 1}"
                sql = sql.replace(placeholder, name)
                rows = dict(fragment.facts.virtual).get(placeholder, ()) if fragment.facts is not None else ()
                reads.append({"values": name, "rows": len(rows)})
            case other:
                assert_never(other)
    found: dict[str, Any] = {"id": fragment.id, "member": fragment.member, "reads": reads}
    match fragment:
        case SparkFragment():
            told = fragment.facts.operators if fragment.facts is not None else ()
            found |= {"operators": list(told), "sql": sql}
        case OperatorFragment():
            found["operators"] = _steps(fragment.operator)
        case never:
            assert_never(never)
    if fragment.reason:
        found["reason"] = fragment.reason
    found["output"] = _output(fragment, topology)
    found["estimated"] = {"rows": fragment.estimated_rows, "bytes": fragment.estimated_bytes}
    ran = actual.fragments.get(fragment.id) if actual is not None else None
    grew = actual.grew.get(fragment.id) if actual is not None else None
    if grew is not None:
        found["grew"] = msgspec.to_builtins(grew)
    if ran is not None:
        found["actual"] = {
            "rows": ran.rows,
            "bytes": ran.size_bytes,
            "seconds": round(ran.seconds, 3),
            "spark_jobs": list(ran.jobs),
        }
    return found


def _add_sharers(fragments: Sequence[dict[str, Any]]) -> None:
    """Which fragments ran in one Spark job: their numbers are those of one member's Spark."""
    ran = [(each, {*each["actual"]["spark_jobs"]}) for each in fragments if "actual" in each]
    for each, jobs in ran:
        sharers = [o["id"] for o, of in ran if o is not each and o["member"] == each["member"] and jobs & of]
        if sharers:
            each["actual"]["shared_with"] = sharers


def _output(fragment: Fragment, topology: Topology | None) -> dict[str, Any]:
    output = fragment.output
    found: dict[str, Any] = {"edge": output.edge, "order": output.order}
    if output.through_driver:
        found["through_driver"] = True
    found["to"] = [_way(fragment.member, receiver, topology) for receiver in output.receivers]
    return found


def _way(sender: str, receiver: str, topology: Topology | None) -> dict[str, Any]:
    if topology is None or sender == receiver:
        return {"member": receiver}
    route = topology.route(sender, receiver)
    codecs = [topology.codec(*hop) or "none" for hop in pairwise(route)]
    return {"member": receiver, "route": list(route), "codecs": codecs}


def _steps(operator: Operator) -> list[str]:
    match operator:
        case Finish():
            return finish_steps(operator)
        case GroupHere(members=members):
            return [f"group, elastic: at {members[0]} first, then among {', '.join(members)}"]
        case never:
            assert_never(never)


def finish_steps(finish: Finish) -> list[str]:
    steps = ["merge" if finish.keys else "gather"]
    if finish.aggregate:
        steps.append("aggregate")
    if finish.offset:
        steps.append(f"offset {finish.offset}")
    if finish.limit is not None:
        steps.append(f"limit {finish.limit}")
    return steps


# --- as text ---------------------------------------------------------------------------------------
def explain(
    plan: Plan,
    initiator: str,
    topology: Topology | None = None,
    actual: Actual | None = None,
    refused: str = "",
) -> list[str]:
    """Lines for people; fragments in the order in which their rows flow."""
    found = describe(plan, initiator, topology, actual, refused)
    lines = [f"plan {plan.plan_id[:12]}, result at {initiator}"]
    for fragment in found["fragments"]:
        lines += _fragment_lines(fragment)
    for each in found.get("left_out", ()):
        lines.append(f"left out: table {each['table']} at {each['member']}, because {each['reason']}")
    lines.append(f"finish at {initiator}: {_finish_text(found['finish'])}")
    for link in found.get("links_used", ()):
        size, waited_s = size_text(link["bytes"]), round(link["stalled_s"], 3)
        stalled = f", {waited_s:.3f} s without credit" if waited_s else ""
        lines.append(f"link {link['from']} → {link['to']}: {counted(link['rows'])}, {size} sent{stalled}")
    if actual is not None:
        lines.append(f"result: {counted(actual.rows)} in {actual.seconds:.3f} s")
    if refused:
        lines.append(f"refused: {refused}")
    return lines


def _finish_text(finish: Mapping[str, Any]) -> str:
    """What the query ends in."""
    if "edge" in finish:
        return f"{', '.join(finish['operators'])} edge {finish['edge']} from {', '.join(finish['from'])}"
    numbers = ", ".join(map(str, finish["fragments"]))
    written = f", written to {finish['sink']}" if "sink" in finish else ""
    return f"count the rows of fragment{'s' if len(finish['fragments']) > 1 else ''} {numbers}{written}"


def _read_text(leaf: Mapping[str, Any]) -> str:
    if "values" in leaf:
        return f"{leaf['rows']} rows of VALUES ({leaf['values']})"
    return f"table {leaf['table']}" if "table" in leaf else f"edge {leaf['edge']} from {', '.join(leaf['from'])}"


def _fragment_lines(fragment: Mapping[str, Any]) -> list[str]:
    reads = [_read_text(each) for each in fragment["reads"]]
    lines = [
        f"fragment {fragment['id']} at {fragment['member']}: reads {'; '.join(reads) or 'nothing'}",
        *([f"    {', '.join(fragment['operators'])}"] if fragment["operators"] else []),
        *([f"    {fragment['sql']}"] if "sql" in fragment else ["    by the member itself"]),
    ]
    if "reason" in fragment:
        lines.append(f"    because {fragment['reason']}")
    output = fragment["output"]
    how = _ORDERS[output["order"]] + (", through the driver" if output.get("through_driver") else "")
    estimate = f"~{counted(fragment['estimated']['rows'])}, {size_text(fragment['estimated']['bytes'])}"
    match [(each["member"], _way_text(each)) for each in output["to"]]:
        case [(receiver, way)]:
            to, each = f"{receiver}{how}{way and f', {way}'}", ""
        case several:
            to = listed([f"{receiver} ({way})" if way else receiver for receiver, way in several]) + how
            each = " to each"
    lines.append(f"    → edge {output['edge']} to {to} ({estimate}{each})")
    if "actual" in fragment:
        lines.append(f"      {_actual_text(fragment['actual'], each)}")
    if "grew" in fragment:
        lines.append(f"      {_grew_text(fragment['grew'])}")
    return lines


def _grew_text(grew: Mapping[str, Any]) -> str:
    if not grew["epoch"]:
        return "was not recruited"
    told = [f"table {grew['epoch']}", f"{counted(grew['rows_forwarded'])} forwarded"]
    if grew["recruits"]:
        told.insert(0, f"recruited {grew['recruits']} members in {grew['splits']} splits")
    if grew["spilled_bytes"]:
        told.append(f"{size_text(grew['spilled_bytes'])} went to disk")
    return ", ".join(told)


def _way_text(to: Mapping[str, Any]) -> str:
    route = to.get("route", [])
    codecs = dict.fromkeys(codec for codec in to.get("codecs", ()) if codec != "none")
    told = [f"by way of {', '.join(route[1:-1])}"] if len(route) > 2 else []
    return ", ".join([*told, *(["/".join(codecs)] if codecs else [])])


def _actual_text(actual: Mapping[str, Any], each: str) -> str:
    jobs = actual["spark_jobs"]
    which = f", Spark job{'s' if len(jobs) > 1 else ''} {', '.join(map(str, jobs))}" if jobs else ""
    sharers = actual.get("shared_with", ())
    if sharers:
        which += f" shared with fragment{'s' if len(sharers) > 1 else ''} {listed([str(each) for each in sharers])}"
    return f"in fact {counted(actual['rows'])}, {size_text(actual['bytes'])}{each}, {actual['seconds']:.3f} s{which}"
