"""The `skerry` command. Its commands are loaded when they are used, so that none waits for another's imports."""

from __future__ import annotations

import errno
import importlib
import importlib.util
import os
import sys
from typing import Any

import click

from skerry.model.version import __version__

# name → one line for `skerry --help`; the command is skerry.cli.<name>'s attribute of that name.
COMMANDS = {
    "attach": "Show the rows of a query that was submitted.",
    "cancel": "End a query at every site.",
    "check": "Check a configuration file, and say what is wrong where.",
    "demo": "Start a small cluster on this machine, with tables to query.",
    "explain": "Show how a query would run, or did: text, JSON, or a drawing.",
    "load": "Load Parquet files into a table of Skerry's own.",
    "ps": "List the queries that run, and those that ended lately.",
    "rebalance": "Move rows of Skerry's own tables to members that came, or away from one that goes.",
    "secret": "Make the file by which members without TLS know each other.",
    "sql": "Run SQL on a cluster: one statement, a script, or a prompt.",
    "submit": "Start a query that runs on by itself; prints its id.",
    "up": "Start the members of a configuration file.",
    "user": "Add, list and remove users who log in with a password.",
}


# These run members, or read their configuration; the others only talk to one (docs/client.md).
NEEDING_MEMBER = ("check", "demo", "secret", "up", "user")
MEMBER_PACKAGES = ("numpy", "pandas", "pyspark", "sqlglot", "uvloop", "yaml")

BROKEN_PIPE = 141  # the shell's exit code for SIGPIPE
UNWRITTEN = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a user's share of it or a file is full


class LazyGroup(click.Group):
    """Loads a command's module when it is called for."""

    def list_commands(self, context: click.Context) -> list[str]:
        return [name for name in COMMANDS if importlib.util.find_spec(f"skerry.cli.{name}") is not None]

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in self.list_commands(context):
            return None
        if name in NEEDING_MEMBER and not all(map(importlib.util.find_spec, MEMBER_PACKAGES)):
            raise click.ClickException(f'skerry {name} needs the member\'s packages: pip install "skerry[member]"')
        module = importlib.import_module(f"skerry.cli.{name}")
        command = getattr(module, name, None) or getattr(module, "command", None)
        if not isinstance(command, click.Command):
            raise click.ClickException(f"skerry.cli.{name} holds no command")
        return command

    def invoke(self, context: click.Context) -> Any:
        """Whoever reads our output may stop (`| head`): end like other tools, without a word."""
        if sys.stdout is None:  # closed by who started us (`>&-`)
            sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - for the rest of the process
        try:
            try:
                return super().invoke(context)
            finally:
                sys.stdout.flush()
        except BrokenPipeError:
            _drop_output()
            sys.exit(BROKEN_PIPE)
        except OSError as error:
            if error.errno not in UNWRITTEN:
                raise
            _drop_output()
            raise click.ClickException(f"cannot write the output: {os.strerror(error.errno)}") from None

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name]) for name in self.list_commands(context)])


def _drop_output() -> None:
    """What is left in the buffer would fail again at the end of the process."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="skerry", message="%(prog)s %(version)s")
def main() -> None:
    """One SQL over many Spark sites.

    \b
    skerry sql skerry://localhost:7101 "SELECT count(*) FROM orders"
    """
