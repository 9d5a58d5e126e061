"""The prompt of `skerry sql`: statements over several lines, history, and a few commands."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

import click
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.lexers import PygmentsLexer

from skerry.cli.completion import Names, SqlCompleter
from skerry.cli.login import Login
from skerry.cli.render import message_text
from skerry.cli.runner import Runner, show_error
from skerry.cli.statements import split
from skerry.cli.writers import FORMATS
from skerry.client.dbapi import connect
from skerry.client.pep249 import Error, ProgrammingError

HELP = """\
Type SQL and end it with a semicolon; it may take several lines.
  \\d                      the tables
  \\d TABLE                a table's columns
  \\x [on|off|auto]        one value a line; auto: where rows are wider than the screen; alone: the other way
  \\format [NAME]          table, vertical, markdown, csv, json or jsonl; alone: which it is
  \\timing [on|off]        show times; alone: the other way
  \\?, \\h, help            this
  \\q, quit, exit, Ctrl-D  leave
A result that does not fit the screen is shown by less, or by your PAGER: arrows scroll, q goes back.
Tab completes tables, columns and words; the arrows bring back what you typed before.
Ctrl-C ends the running query, or drops what you typed."""
# What \\x takes: the format that it stands for, and what it says.
EXPANDED = {
    "on": ("vertical", "Each value has a line of its own."),
    "off": ("table", "Each row has a line of its own."),
    "auto": ("table", "Rows that are wider than the screen have a line for each value."),
}
WORDS = ("help", "quit", "exit")
# Parts of a name are words, or stand in backquotes. Nothing else gets into the statement.
_PART = r"(?:\w+|`(?:[^`]|``)+`)"
_TABLE = re.compile(rf"{_PART}(?:\.{_PART})*")


def is_complete(text: str) -> bool:
    """Whether Enter ends the input: a command, nothing at all, or SQL up to its semicolon."""
    stripped = text.strip()
    if not stripped or stripped.startswith("\\") or stripped.lower() in WORDS:
        return True
    statements, rest = split(text)
    return bool(statements) and not rest


def describe_statement(table: str) -> str:
    """`DESCRIBE table`, from what was typed after \\d."""
    if not _TABLE.fullmatch(table):
        raise ProgrammingError(f"\\d takes a table's name, not {table}")
    return f"DESCRIBE {table}"


def one_of(command: str, word: str, known: Sequence[str]) -> str:
    """The word, if the command takes it."""
    if word.lower() not in known:
        raise ProgrammingError(f"{command} takes {', '.join(known[:-1])} or {known[-1]}, not {word}")
    return word.lower()


def history_path() -> Path:
    """In the user's state folder, as the XDG base directories say."""
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "skerry" / "history"


class Prompt:
    """Reads and runs until the user leaves."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        runner.is_prompt = True
        names = Names(lambda: _tables(runner.url, runner.login))
        names.tables()  # asked for now, to be there at the first Tab
        self._session: PromptSession[str] = PromptSession(
            multiline=True,
            history=_history(),
            key_bindings=_bindings(),
            lexer=PygmentsLexer.from_filename("statement.sql"),
            completer=SqlCompleter(names),
            complete_while_typing=False,
            enable_history_search=True,
            prompt_continuation=lambda width, line, wrapped: "> ".rjust(width),
        )

    def run(self) -> None:
        connection = self._runner.connection()
        click.echo(f"Connected to {message_text(connection.member)}. Type help for help.")
        place = self._runner.place()
        while True:
            try:
                text = self._session.prompt(f"{place}> ").strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if not self.handle(text):
                return
            place = self._runner.place() or place

    def handle(self, text: str) -> bool:
        """Do what was typed; False to leave. Errors are shown, and the prompt goes on."""
        try:
            return self._do(text)
        except KeyboardInterrupt:
            click.echo("cancelled", err=True)
        except Error as error:
            show_error(error)
        return True

    def _do(self, text: str) -> bool:
        command, _, argument = text.rstrip(";").strip().partition(" ")
        match command.lower(), argument.strip():
            case ("", ""):
                pass
            case ("\\q" | "quit" | "exit", ""):
                return False
            case ("help" | "\\?" | "\\h", ""):
                click.echo(HELP)
            case ("\\timing", word):
                wanted = one_of("\\timing", word, ("on", "off")) if word else "off" if self._runner.timing else "on"
                self._runner.timing = wanted == "on"
                click.echo(f"Times are {'shown' if self._runner.timing else 'not shown'}.")
            case ("\\x", word):
                view = self._runner.view
                usual = "off" if view.output_format == "vertical" else "on"
                wanted = one_of("\\x", word, tuple(EXPANDED)) if word else usual
                view.output_format, text = EXPANDED[wanted]
                view.is_auto = wanted == "auto"
                click.echo(text)
            case ("\\format", word):
                if word:
                    self._runner.view.output_format = one_of("\\format", word, FORMATS)
                    self._runner.view.is_auto = False
                click.echo(f"The format is {self._runner.view.output_format}.")
            case ("\\d", ""):
                self._runner.run("SHOW TABLES")
            case ("\\d", table):
                self._runner.run(describe_statement(table))
            case (unknown, _) if unknown.startswith("\\"):
                click.echo(f"error: {unknown} is no command (type help)", err=True)
            case _:
                for statement in split(text)[0]:
                    self._runner.run(statement)
        return True


def _tables(url: str, login: Login) -> dict[str, list[str]]:
    """Every table and part with its columns, over a connection of its own: the prompt's may be busy."""
    found: dict[str, list[str]] = {}
    with connect(url, timeout_s=5.0, **login) as connection, connection.cursor() as cursor:
        for row in cursor.execute("SHOW TABLES").fetchall():
            found.setdefault(str(row[0]), [])
        for table in found:
            cursor.execute(describe_statement(table))
            found[table] = [str(row[0]) for row in cursor.fetchall()]
    return found


def _history() -> History:
    path = history_path()
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        # Statements may hold what is nobody else's business, also in a file that was there before.
        path.touch(mode=0o600, exist_ok=True)
        path.chmod(0o600)
    except OSError:
        return InMemoryHistory()
    return FileHistory(str(path))


def _bindings() -> KeyBindings:
    bindings = KeyBindings()

    @bindings.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_complete(buffer.text):
            buffer.validate_and_handle()
        else:
            buffer.insert_text("\n")

    return bindings
