"""`skerry sql`: one statement, a script from standard input, or a prompt."""

from __future__ import annotations

import sys

import click

from skerry.cli.login import Login, login_options
from skerry.cli.runner import Runner, format_option, told
from skerry.cli.statements import split
from skerry.cli.target import Words, read_url_and_maybe, target_argument
from skerry.model.config import FaultPolicy


@click.command("sql")
@target_argument("[URL] [STATEMENT]")
@login_options
@format_option
@click.option(
    "--timeout",
    "timeout_s",
    type=click.FloatRange(min=0, min_open=True),
    metavar="SECONDS",
    help="End a query that runs longer.  [default: the member's own limit]",
)
@click.option(
    "--fault-policy",
    type=click.Choice([policy.value for policy in FaultPolicy]),
    help="When sites lose their connection: end the query, wait for them a while, or as long as the query may last."
    "  [default: as the cluster is configured]",
)
def sql(words: Words, login: Login, output_format: str, timeout_s: float | None, fault_policy: str | None) -> None:
    """Run SQL at the member at URL, which has the form skerry://host:port or skerry://host:port/schema.

    The port may be left out if it is 7100. Without URL, SKERRY_URL is asked.

    With a schema, which is a member's name, a table means the part of it there; a table that is not there is the whole
    one, with its parts at all members.

    With TLS it is skerry+tls://host:port?authority=ca.pem; add certificate and key where members ask for them.

    STATEMENT may be several, separated by semicolons; the first that fails ends the run, with exit code 1.
    Without STATEMENT, SQL is read from standard input; on a terminal there is a prompt (type help there).

    \b
    skerry sql skerry://localhost:7101 "SHOW TABLES"
    skerry sql skerry://localhost:7101 --format csv "SELECT * FROM orders" > orders.csv
    skerry sql skerry://localhost:7101 < script.sql
    """
    url, statement = read_url_and_maybe("STATEMENT", words)
    runner = Runner(url, output_format, timeout_s, fault_policy, login=login)
    with told(runner):
        runner.connection()
        if statement is None and sys.stdin.isatty() and sys.stdout.isatty():
            from skerry.cli.prompt import Prompt  # prompt_toolkit takes a while to load

            Prompt(runner).run()
        else:
            _run_script(runner, sys.stdin.read() if statement is None else statement)


def _run_script(runner: Runner, text: str) -> None:
    statements, rest = split(text)
    statements = [*statements, rest] if rest else statements
    if runner.is_binary and len(statements) > 1:
        raise click.UsageError(f"one statement at a time: {len(statements)} results would not be one file")
    for statement in statements:
        runner.run(statement)
