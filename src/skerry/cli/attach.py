"""`skerry attach`: the rows of a query that was submitted."""

from __future__ import annotations

import click

from skerry.cli.login import Login, login_options
from skerry.cli.runner import Runner, format_option, told
from skerry.cli.target import Words, read_url_and, target_argument


@click.command("attach")
@target_argument("[URL] QUERY_ID")
@login_options
@format_option
def attach(words: Words, login: Login, output_format: str) -> None:
    """Wait for the query QUERY_ID and show its rows; they can be had once.

    Without URL, SKERRY_URL is asked.
    """
    url, query_id = read_url_and("QUERY_ID", words)
    runner = Runner(url, output_format, None, login=login)
    with told(runner):
        runner.attach(query_id)
