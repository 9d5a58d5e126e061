"""`skerry rebalance`: rows of Skerry's own tables move until each member has its share, or none."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import click

from skerry.cli.login import Login, login_options
from skerry.cli.runner import INTERRUPTED, Runner, told
from skerry.cli.target import Words, read_url, target_argument
from skerry.model.amounts import counted, size_text


@click.command("rebalance")
@target_argument("[URL]")
@login_options
@click.option("--plan", "is_plan", is_flag=True, help="Only show what would move.")
@click.option("--leave", "leaving", multiple=True, metavar="MEMBER", help="A member that shall have no rows any more.")
def rebalance(words: Words, login: Login, is_plan: bool, leaving: Sequence[str]) -> None:
    """Move rows of tables that CREATE TABLE made, so that all members have as many.

    Say it when a member was added to the configuration and all members run with it; and with --leave before one is
    taken out. Tables are read and written meanwhile. Ctrl-C ends it after any move: what has moved stays where it is,
    and the same command goes on from there. Without URL, SKERRY_URL is asked.

    \b
    skerry rebalance skerry://localhost:7101
    skerry rebalance skerry://localhost:7101 --leave bergen
    """
    if len(words) > 1:
        raise click.UsageError("Too many arguments: there is one URL.")
    runner = Runner(read_url(words), "table", None, login=login)
    with told(runner), runner.connection().cursor() as cursor:
        without = f" WITHOUT ({', '.join(_quoted(each) for each in leaving)})" if leaving else ""
        left = _steps(cursor.execute(f"SHOW REBALANCE{without}").fetchall(), "left")
        if is_plan:
            for _, table, source, target, buckets, *_ in left:
                click.echo(f"{table}: {buckets:,} buckets, {source} → {target}")
        if is_plan or not left:
            click.echo(f"({_buckets(left):,} buckets to move)" if left else "(nothing to move)")
        if not is_plan:  # also if no rows move: a member that has none any more is forgotten
            _move(cursor, f"REBALANCE TABLES{without}")


def _move(cursor: Any, statement: str) -> None:
    """One group after the other."""
    moves = rows = size_bytes = 0
    started = time.monotonic()
    try:
        while True:
            steps = cursor.execute(statement).fetchall()
            moved, left = _steps(steps, "moved"), _steps(steps, "left")
            for _, table, source, target, buckets, count, moved_bytes in moved:
                moves, rows, size_bytes = moves + 1, rows + count, size_bytes + moved_bytes
                what = f"{buckets:,} buckets, {source} → {target}, {counted(count)}, {size_text(moved_bytes)}"
                click.echo(f"{table}: {what}; {_buckets(left):,} buckets are left")
            if not moved:
                break
    except KeyboardInterrupt:
        click.echo("stopped: what has moved stays where it is; say it again to go on", err=True)
        raise click.exceptions.Exit(INTERRUPTED) from None
    finally:
        if moves:
            seconds = max(time.monotonic() - started, 0.001)
            rate = f"{size_text(size_bytes / seconds)}/s"
            groups = "1 move" if moves == 1 else f"{moves:,} moves"
            click.echo(f"({groups}, {counted(rows)}, {size_text(size_bytes)}, {seconds:.1f} s, {rate})")


def _steps(steps: Sequence[tuple[Any, ...]], what: str) -> list[tuple[Any, ...]]:
    return [step for step in steps if step[0] == what]


def _buckets(steps: Sequence[tuple[Any, ...]]) -> int:
    return sum(step[4] for step in steps)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
