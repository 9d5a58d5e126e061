"""`skerry up`: run one member in this process, or all members of a file as processes of this machine."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import click
from rich.console import Console

from skerry.config import load
from skerry.model.errors import SkerryError


@click.command("up")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--member", "name", metavar="NAME", help="Run this member only, in this process.")
@click.option("--until-input-ends", is_flag=True, hidden=True, help="Stop when standard input is closed.")
@click.option("--debug", is_flag=True, help="Log more.")
def up(file: Path, name: str | None, until_input_ends: bool, debug: bool) -> None:
    """Start the members of FILE (a skerry.yaml) and run them until Ctrl-C or SIGTERM.

    Without --member every member of the file is started on this machine, each as a process with its own Spark.
    """
    try:
        config = load(str(file))
        if name is None:
            _run_all(file, tuple(config.members))
            return
        name = config.member(name).name
        from skerry.member.boot import run_member, set_up_log  # Spark takes a while to load

        set_up_log(logging.DEBUG if debug else logging.INFO)
        run_member(config, name, until_input_ends=until_input_ends)
    except SkerryError as error:
        click.echo(click.style("error: ", fg="red", bold=True) + error.message, err=True)
        if error.suggestion:
            click.echo(f"hint: {error.suggestion}", err=True)
        sys.exit(1)


def _run_all(file: Path, names: tuple[str, ...]) -> None:
    from skerry.cli.processes import Members

    stopping = threading.Event()

    def stop(_number: int, _frame: FrameType | None) -> None:
        stopping.set()

    with Members(file, names, on_line=lambda line: click.echo(line, err=True)) as members:
        try:
            members.wait_ready(Console())
            signal.signal(signal.SIGTERM, stop)
            click.echo("all members are ready; Ctrl-C stops them")
            while not stopping.wait(0.5):
                for process in members.processes:
                    if process.has_ended:
                        raise click.ClickException(f"member {process.name} {process.state()}; stopping the others")
        except KeyboardInterrupt:
            pass
        click.echo("stopping", err=True)
