"""A plan as text: which fragment runs where, what it reads, where its rows go."""

from __future__ import annotations

from skerry.plan.fragment import EdgeLeaf, Fragment, Plan, TableLeaf

_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")


def size_text(size_bytes: float) -> str:
    """1536 → "1.5 KiB"."""
    unit = 0
    while size_bytes >= 1024 and unit < len(_UNITS) - 1:
        size_bytes /= 1024
        unit += 1
    return f"{size_bytes:.0f} {_UNITS[unit]}" if unit == 0 else f"{size_bytes:.1f} {_UNITS[unit]}"


def explain(plan: Plan, initiator: str) -> list[str]:
    """Lines for people; fragments in the order in which their rows flow."""
    lines = [f"plan {plan.plan_id[:12]}, result at {initiator}"]
    for fragment in plan.fragments:
        lines += _fragment_lines(fragment)
    lines.append(_finish_line(plan, initiator))
    return lines


def _fragment_lines(fragment: Fragment) -> list[str]:
    sql = fragment.sql
    reads = []
    for leaf in fragment.leaves:
        match leaf:
            case TableLeaf(placeholder, table):
                sql = sql.replace(placeholder, table)
                reads.append(f"table {table}")
            case EdgeLeaf(placeholder, edge, _, senders):
                sql = sql.replace(placeholder, f"edge_{edge}")
                reads.append(f"edge {edge} from {', '.join(senders)}")
    output = fragment.output
    how = {"any": "", "lanes": ", in order", "merge": ", lanes merged in order"}[output.order]
    through = ", through the driver" if output.through_driver else ""
    estimate = (
        f"~{fragment.estimated_rows} rows, {size_text(fragment.estimated_bytes)}" if fragment.estimated_rows else ""
    )
    return [
        f"fragment {fragment.id} at {fragment.member}: reads {'; '.join(reads) or 'nothing'}",
        f"    {sql}",
        f"    → edge {output.edge} to {output.receiver}{how}{through}" + (f" ({estimate})" if estimate else ""),
    ]


def _finish_line(plan: Plan, initiator: str) -> str:
    finish = plan.finish
    steps = ["merge" if finish.keys else "gather"]
    if finish.aggregate:
        steps.append("aggregate")
    if finish.offset:
        steps.append(f"offset {finish.offset}")
    if finish.limit is not None:
        steps.append(f"limit {finish.limit}")
    return f"finish at {initiator}: {', '.join(steps)} edge {finish.edge} from {', '.join(finish.senders)}"
