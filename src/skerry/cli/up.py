"""`skerry up`: run one member in this process, or all members of a file as processes of this machine."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

import click

from skerry.cli.logs import set_up_log
from skerry.cli.processes import Members
from skerry.cli.screen import Screen
from skerry.cli.secret import ensure_secret
from skerry.config import Config, load
from skerry.member.loglines import JsonLines, record_of
from skerry.model import trace
from skerry.model.errors import SkerryError

_LOOK_S = 0.5


@click.command("up")
@click.argument("file", default="skerry.yaml", type=click.Path(dir_okay=False, path_type=Path))
@click.option("--member", "name", metavar="NAME", help="Run this member only, in this process.")
@click.option("--until-input-ends", is_flag=True, hidden=True, help="Stop when standard input is closed.")
@click.option("--json-log", is_flag=True, hidden=True, help="Log JSON lines, for whoever started this process.")
@click.option("--debug", is_flag=True, help="Log more, also while members start.")
def up(file: Path, name: str | None, until_input_ends: bool, json_log: bool, debug: bool) -> None:
    """Start the members of FILE (default: skerry.yaml) and run them until Ctrl-C or SIGTERM.

    Without --member every member of the file is started on this machine, each as a process with its own Spark.
    Shows how they start, and at the end where to connect. Then their warnings and errors follow.
    """
    config: Config | None = None
    try:
        config = load(str(file))
        name = config.member(name).name if name is not None else None
        ensure_secret(config, all_start_here=name is None)
        if name is None:
            _run_all(file, config, debug)
            return
        from skerry.member.boot import run_member  # Spark takes a while to load

        set_up_log(name, is_debug=debug, is_json=json_log or config.log_format == "json", logs_sql=config.log_sql)
        try:
            run_member(config, name, until_input_ends=until_input_ends)
        except SkerryError:
            raise
        except Exception as error:  # Python would write the trace as it is
            trace.emit(trace.WorkFailed(f"member {name}"), error)
            sys.exit(1)
    except SkerryError as error:
        if config is not None and config.log_format == "json":
            _tell(trace.StartFailed(error.message, error.suggestion), name or "")
            sys.exit(1)
        click.echo(click.style("error: ", fg="red", bold=True) + error.message, err=True)
        if error.suggestion:
            click.echo(f"hint: {error.suggestion}", err=True)
        sys.exit(1)


def _run_all(file: Path, config: Config, is_debug: bool) -> None:
    screen = Screen(tuple(config.members), shows_all=is_debug, is_json=config.log_format == "json")
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        _run_members(file, config, screen, is_debug)
    except click.ClickException as error:
        if config.log_format != "json":
            raise
        _tell(trace.StartFailed(error.message))
        sys.exit(error.exit_code)


def _tell(event: trace.Event, member: str = "") -> None:
    click.echo(JsonLines(member).format(record_of(event)), err=True)


def _run_members(file: Path, config: Config, screen: Screen, is_debug: bool) -> None:
    with Members(file, config, screen, is_debug=is_debug) as members:
        try:
            members.wait_ready()
            screen.ready(config, members.seen())
            while True:
                time.sleep(_LOOK_S)
                members.refuse_ended()
        except KeyboardInterrupt:
            pass  # they are stopped on the way out, and a second signal is heard there
        finally:
            screen.stopping()


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
