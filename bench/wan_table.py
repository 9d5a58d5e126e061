"""`python -m bench.wan_table`: the last run of `wan`, a line a query, as docs/benchmarks.md has it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

ALL, CHEAPEST, INITIATOR, TABLES = "all rules", "(a) cheapest root", "(b) root at initiator", "(c) whole tables"
# Less than this is not told, nor less than this share of what the query sends without any rule.
TOLD_MB, TOLD_SHARE = 0.0005, 0.01

# Megabytes by query, then by side or by rule, of each initiator.
Megabytes = Mapping[str, Mapping[str, Sequence[float]]]


def as_markdown(sent: Megabytes, more: Megabytes) -> list[str]:
    """Markdown. Megabytes of all initiators together; `more` is what a query sends more when one rule is off."""
    lines = [
        "| query | all rules | (a) | (b) | (c) | more without a rule |",
        "| --- | ---: | ---: | ---: | ---: | --- |",
    ]
    for query, sides in sent.items():
        if query not in more:
            continue  # times on shaped links, not bytes
        total = {side: sum(megabytes) for side, megabytes in sides.items()}
        numbers = [f"{total[ALL]:.3f}", *(_number(total[side]) for side in (CHEAPEST, INITIATOR, TABLES))]
        lines.append(f"| {query} | {' | '.join(numbers)} | {_saved(more[query], total[CHEAPEST])} |")
    return lines


def _saved(more: Mapping[str, Sequence[float]], plain: float) -> str:
    totals = sorted(((sum(megabytes), rule) for rule, megabytes in more.items()), reverse=True)
    told = [f"`{rule}` {_number(total)}" for total, rule in totals if abs(total) >= max(TOLD_MB, TOLD_SHARE * plain)]
    return ", ".join(told) or "no rule alone"


def _number(megabytes: float) -> str:
    if abs(megabytes) >= 100:
        return f"{megabytes:.0f}"
    return f"{megabytes:.3g}" if abs(megabytes) >= 1 else f"{megabytes:.3f}"


def main() -> None:
    """Prints what the last run has left in bench/results."""
    written = json.loads((Path(__file__).parent / "results" / "wan.json").read_text(encoding="utf-8"))
    print(written["title"], f"({written['made_at']}), megabytes of all initiators together:\n")
    print("\n".join(as_markdown(written["samples"], written["more"]["more without a rule"])))


if __name__ == "__main__":
    main()
