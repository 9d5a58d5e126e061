"""`skerry cancel`: end a query, whoever began it."""

from __future__ import annotations

import click

from skerry.cli.login import Login, login_options
from skerry.cli.render import message_text
from skerry.cli.runner import Runner, told
from skerry.cli.target import Words, read_url_and, target_argument
from skerry.client.pep249 import ProgrammingError
from skerry.model.progress import is_live


@click.command("cancel")
@target_argument("[URL] QUERY_ID")
@login_options
def cancel(words: Words, login: Login) -> None:
    """End the query QUERY_ID (as `skerry ps` shows it) at every site.

    Without URL, SKERRY_URL is asked.
    """
    url, query_id = read_url_and("QUERY_ID", words)
    runner = Runner(url, "table", None, login=login)
    with told(runner):
        connection = runner.connection()
        state = connection.status(query_id).state
        if state == "unknown":
            raise ProgrammingError(f"no query {query_id} is known there: it ended long ago, or never began")
        connection.cancel(query_id)
        click.echo(
            f"{query_id} is cancelled" if is_live(state) else f"{query_id} was not running: {message_text(state)}"
        )
