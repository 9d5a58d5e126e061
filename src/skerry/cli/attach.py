"""`skerry attach`: the rows of a query that was submitted."""

from __future__ import annotations

import click

from skerry.cli.sql import Runner, told


@click.command("attach")
@click.argument("url")
@click.argument("query_id")
@click.option(
    "--format",
    "output_format",
    type=click.Choice(["table", "csv", "json"]),
    default="table",
    show_default=True,
    help="How rows are written to standard output.",
)
def attach(url: str, query_id: str, output_format: str) -> None:
    """Wait for the query QUERY_ID and show its rows; they can be had once."""
    runner = Runner(url, output_format, None)
    with told(runner):
        runner.attach(query_id)
