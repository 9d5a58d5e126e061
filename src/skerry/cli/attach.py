"""`skerry attach`: the rows of a query that was submitted."""

from __future__ import annotations

import click

from skerry.cli.sql import Runner, format_option, told


@click.command("attach")
@click.argument("url")
@click.argument("query_id")
@format_option
def attach(url: str, query_id: str, output_format: str) -> None:
    """Wait for the query QUERY_ID and show its rows; they can be had once."""
    runner = Runner(url, output_format, None)
    with told(runner):
        runner.attach(query_id)
