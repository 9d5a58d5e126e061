"""`skerry ps`: who runs what, where and since when, over all members that can be reached."""

from __future__ import annotations

import io
import shutil
import sys

import click

from skerry.cli.login import Login, login_options
from skerry.cli.paging import cut
from skerry.cli.runner import Runner, show_error, told
from skerry.cli.target import Words, read_url, target_argument
from skerry.cli.writers import TableWriter
from skerry.client.dbapi import Connection
from skerry.client.pep249 import Description, Error
from skerry.model.amounts import size_text
from skerry.model.progress import QueryInfo, is_live

_TITLES = ("id", "state", "seconds", "rows", "client", "sql", "sites", "bytes", "links")
_NUMBERS = ("seconds", "rows")
_SQL_SHOWN = 50
_RECENT = 10


@click.command("ps")
@target_argument("[URL]")
@login_options
@click.option("--all", "shows_all", is_flag=True, help="All that ended and are remembered, not only the latest.")
def ps(words: Words, login: Login, shows_all: bool) -> None:
    """List the queries of all members that run, and the latest that ended, asked at the member at URL.

    `skerry cancel URL ID` ends one. Without URL, SKERRY_URL is asked.

    \b
    skerry ps skerry://localhost:7101
    """
    runner = Runner(read_url(words), "table", None, login=login)
    with told(runner):
        known = _queries(runner.connection())
        ended = [info for info in known if not is_live(info.state)]
        queries = [info for info in known if is_live(info.state)] + (ended if shows_all else ended[-_RECENT:])
        columns: list[Description] = [
            (title, "bigint" if title in _NUMBERS else "string", None, None, None, None, None) for title in _TITLES
        ]
        text = io.StringIO()
        writer = TableWriter(text.write, sys.stdout.isatty())
        writer.begin(columns)
        if queries:
            writer.rows([_row(info) for info in queries])
        writer.end()
        click.echo(_on_screen(text.getvalue()), nl=False)


def _on_screen(text: str) -> str:
    """On a terminal no line is wider than it: what matters most stands first."""
    if not sys.stdout.isatty():
        return text
    columns = shutil.get_terminal_size().columns
    return "".join(cut(line, columns) + "\n" for line in text.splitlines())


def _queries(connection: Connection) -> list[QueryInfo]:
    """The queries of every member; one that does not answer is told of, the others are listed."""
    found: list[QueryInfo] = []
    for member in connection.members():
        try:
            found += connection.queries(member.name)
        except Error as error:
            show_error(error)
    return found


def _row(info: QueryInfo) -> tuple[object, ...]:
    links = ", ".join(f"{link.sender}→{link.receiver} {size_text(link.size_bytes)}" for link in info.links)
    sql = " ".join(info.sql.split())
    return (
        str(info.query),
        info.state,
        round(info.seconds, 1),
        info.rows,
        info.client,
        sql if len(sql) <= _SQL_SHOWN else sql[: _SQL_SHOWN - 1] + "…",
        ", ".join(info.members),
        size_text(info.size_bytes),
        links,
    )
