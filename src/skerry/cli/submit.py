"""`skerry submit`: start a query that needs nobody to wait for it."""

from __future__ import annotations

import click

from skerry.cli.sql import Runner, told


@click.command("submit")
@click.argument("url")
@click.argument("statement")
@click.option(
    "--lease",
    "lease_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="How long its result is kept for somebody to attach.  [default: the member's own limit]",
)
@click.option(
    "--timeout", "timeout_s", type=click.FloatRange(min=0, min_open=True), metavar="SECONDS", help="End it after that."
)
def submit(url: str, statement: str, lease_s: float | None, timeout_s: float | None) -> None:
    """Start STATEMENT at the member at URL, print its id and return; `skerry attach URL ID` shows its rows.

    \b
    id=$(skerry submit skerry://localhost:7101 "SELECT count(*) FROM lineitem")
    skerry attach skerry://localhost:7101 $id
    """
    runner = Runner(url, "table", None)
    with told(runner):
        cursor = runner.connection().cursor()
        cursor.execute(statement, timeout_s=timeout_s, detach=True, lease_s=lease_s)
        click.echo(f"{cursor.query_id.initiator}/{cursor.query_id.local}")
