"""`skerry submit`: start a query that needs nobody to wait for it."""

from __future__ import annotations

import click

from skerry.cli.login import Login, login_options
from skerry.cli.runner import Runner, told
from skerry.cli.target import Words, read_url_and, target_argument


@click.command("submit")
@target_argument("[URL] STATEMENT")
@login_options
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
def submit(words: Words, login: Login, lease_s: float | None, timeout_s: float | None) -> None:
    """Start STATEMENT at the member at URL, print its id and return; `skerry attach URL ID` shows its rows.

    Without URL, SKERRY_URL is asked.

    \b
    id=$(skerry submit skerry://localhost:7101 "SELECT count(*) FROM lineitem")
    skerry attach skerry://localhost:7101 $id
    """
    url, statement = read_url_and("STATEMENT", words)
    runner = Runner(url, "table", None, login=login)
    with told(runner):
        cursor = runner.connection().cursor()
        cursor.execute(statement, timeout_s=timeout_s, detach=True, lease_s=lease_s)
        click.echo(f"{cursor.query_id.initiator}/{cursor.query_id.local}")
