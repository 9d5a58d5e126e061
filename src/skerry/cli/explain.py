"""`skerry explain`: how a query would run, or did run: as text, as JSON, or drawn on the topology."""

from __future__ import annotations

import json
from pathlib import Path

import click

from skerry.cli.drawing import draw
from skerry.cli.login import Login, login_options
from skerry.cli.runner import Runner, told
from skerry.cli.target import Words, read_url_and, target_argument


@click.command("explain")
@target_argument("[URL] SQL")
@login_options
@click.option("--analyze", is_flag=True, help="Run the query, throw its rows away, and tell what each part did.")
@click.option("--json", "as_json", is_flag=True, help="As JSON (docs/sql.md).")
@click.option("--svg", type=click.Path(dir_okay=False, path_type=Path), help="Draw members, links and plan to a file.")
@click.option(
    "--rules",
    default="all",
    show_default=True,
    help="The planner's rules: all, none, all but some (-semijoin,-blocks), some alone. The answer to any other word "
    "lists them.",
)
@click.option(
    "--strategy",
    metavar="cost|bottom-up",
    default="cost",
    show_default=True,
    help="Operators run where the links cost least, or where the rows that they need meet first.",
)
def explain(
    words: Words, login: Login, analyze: bool, as_json: bool, svg: Path | None, rules: str, strategy: str
) -> None:
    """Show the plan of a query at the member at URL: which site does what, why, and what goes over which link.

    Without URL, SKERRY_URL is asked.

    \b
    skerry explain --analyze --svg plan.svg skerry://localhost:7101 "SELECT count(*) FROM orders"
    """
    url, sql = read_url_and("SQL", words)
    statement = "EXPLAIN " + ("ANALYZE " if analyze else "") + ("FORMAT JSON " if as_json or svg else "") + sql
    asked = {"rules": (rules, "all"), "strategy": (strategy, "cost")}
    planning = {name: given for name, (given, usual) in asked.items() if given != usual}
    runner = Runner(url, "table", None, login=login)
    with told(runner), runner.connection().cursor() as cursor:
        lines = [line for (line,) in cursor.execute(statement, planning=planning).fetchall()]
        if svg is not None:
            try:
                svg.write_text(draw(json.loads(lines[0])), encoding="utf-8")
            except OSError as error:
                raise click.ClickException(f"{svg}: {error.strerror}") from None
            click.echo(f"{svg} is drawn", err=True)
        if svg is None or as_json:
            runner.show_plan(lines)
