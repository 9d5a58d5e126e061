"""`skerry check`: is this skerry.yaml right? Every mistake, each with its place."""

from __future__ import annotations

import os
import sys

import click
from rich.console import Console
from rich.text import Text

from skerry.access.access import access_files
from skerry.access.rulebook import read_rules
from skerry.access.rules import KnownColumns
from skerry.catalog.check import check_files
from skerry.config import Config, read_file
from skerry.config.exposed import note_exposed
from skerry.config.ownfiles import reason, why_not_ours
from skerry.config.private import all_run_here, read_secret, refuse_public
from skerry.config.yaml_nodes import Notes
from skerry.model.errors import ConfigError, PeerError, SkerryError
from skerry.sql.statement import read_view
from skerry.sql.views import mistakes as mistakes_of_views
from skerry.sql.views import views_of
from skerry.wire.tls import Tls


@click.command()
@click.argument("file", default="skerry.yaml", type=click.Path())
@click.option("--member", "members", multiple=True, metavar="NAME", help="Look only for the files of this member.")
@click.option("--no-files", is_flag=True, help="Check FILE and its rules alone: no tables, keys or users.")
def check(file: str, members: tuple[str, ...], no_files: bool) -> None:
    """Check FILE (default: skerry.yaml) and the files that it names: tables, certificates, users, rules, secret.

    Prints every mistake with its place and exits with 1, or one line that says ok.
    """
    try:
        config = checked(file, members, no_files=no_files)
    except ConfigError as error:
        for line in error.message.split("\n"):
            _print(line, "red")
        sys.exit(1)
    _print(summary(file, config), "green")
    for line in remarks(config, sys.platform):
        _print(line, "yellow")


def remarks(config: Config, platform: str) -> list[str]:
    """What is no mistake, and worth knowing."""
    sails = [member.name for member in config.members.values() if member.spark is not None and member.spark.sail]
    if not sails or platform == "linux":
        return []
    return [
        f"on this system ({platform}) every user of the host reaches the port of Sail, and could run Python as the "
        f"user of the member: {', '.join(sails)}"
    ]


def checked(file: str, members: tuple[str, ...] = (), *, no_files: bool = False) -> Config:
    """The configuration, if nothing is wrong with it and its files; ConfigError otherwise."""
    config, notes = read_file(file)
    note_exposed(config, notes)
    local = [config.member(name).name for name in members] or None
    for place, text in mistakes_of_views(views_of(config), read_view):
        notes.note(place, text)
    columns: KnownColumns = {}
    if not no_files:
        columns = check_files(config, notes, local)
        _check_certificates(config, notes, local)
        _check_access(config, notes)
        _check_secret(config, notes, is_here=local is not None)
        _check_kept(config, notes, local)
        _check_engines(config, notes, local)
    placed = _check_rules(config, notes, columns)
    if mistakes := [*notes.messages(), *placed]:
        raise ConfigError("\n".join(mistakes))
    return config


def _check_certificates(config: Config, notes: Notes, members: list[str] | None) -> None:
    for member in config.members.values():
        if member.tls is not None and (members is None or member.name in members):
            try:
                tls = Tls(member.tls)
                refuse_public(member.tls.key, "tls")
                if len(config.members) > 1:  # one alone shows it to clients, which may trust another authority
                    tls.check_as(member.name)
            except (ConfigError, PeerError) as error:
                notes.note(f"members.{member.name}.tls", _told(error, "tls"))


def _check_secret(config: Config, notes: Notes, *, is_here: bool) -> None:
    """One that is missing is made by `up`, unless another host has it; who looks at one host alone wants to know."""
    if config.secret and (os.path.lexists(config.secret) or (is_here and not all_run_here(config))):
        try:
            read_secret(config.secret)
        except ConfigError as error:
            notes.note("secret", _told(error, "secret"))


def _told(error: SkerryError, key: str) -> str:
    return "; ".join(filter(None, (error.message.removeprefix(f"{key}: "), error.suggestion)))


def _check_access(config: Config, notes: Notes) -> None:
    """Every line of the files that is wrong, at the place that names the file."""
    for key, file in access_files(config.access).items():
        try:
            file.get()
        except ConfigError as error:
            for line in error.message.split("\n"):
                notes.note(f"access.{key}", line)


def _check_rules(config: Config, notes: Notes, columns: KnownColumns) -> list[str]:
    """Mistakes with a place in the rules file. One of the file as a whole is noted where skerry.yaml names it."""
    path = config.access.rules
    if not path:
        return []
    try:
        read_rules(path, config, columns)
    except ConfigError as error:
        lines = error.message.split("\n")
        for line in lines:
            if line.startswith(f"{path}: "):
                notes.note("access.rules", line)
        return [line for line in lines if not line.startswith(f"{path}: ")]
    return []


def _check_kept(config: Config, notes: Notes, members: list[str] | None) -> None:
    """A member that this user runs would leave such a file aside, and say so in its log alone, or not start."""
    for member in config.members if members is None else members:
        path = config.kept_path(member)
        if path and (why := why_not_ours(path)):
            notes.note("state", f"what {member} keeps in {os.path.basename(path)} would not be believed: {why}")
        folder = config.tables_path(member)
        if folder and (why := _why_no_tables(folder)):
            notes.note("state", f"the folder of {member}'s tables, {folder}, cannot be used: {why}")
        if config.audit is not None and (why := why_not_ours(config.audit.file_of(member))):
            notes.note("audit.path", f"{member} could not write {config.audit.file_of(member)}: {why}")


def _check_engines(config: Config, notes: Notes, members: list[str] | None) -> None:
    """What a member's Spark is given at its start: jars, and the files of secrets."""
    for member in config.members.values():
        if member.spark is None or (members is not None and member.name not in members):
            continue
        for number, jar in enumerate(member.spark.jars):
            if not os.path.isfile(jar):
                notes.note(f"members.{member.name}.spark.jars[{number}]", f"no file {jar}")
        for catalog in member.spark.catalogs:
            for key, secret in catalog.secrets.items():
                if secret.file and not os.access(secret.file, os.R_OK):
                    place = f"members.{member.name}.catalogs.{catalog.name}.secrets.{key}"
                    notes.note(place, f"{secret.file} cannot be read")


def _why_no_tables(folder: str) -> str:
    """What a member would say that opens the folder; "" for one that is not there yet, too."""
    if not os.path.lexists(folder):
        return ""
    if not os.path.isdir(folder):
        return "it is no folder"
    file = os.path.join(folder, "tables.sqlite")
    try:
        if os.path.exists(file):
            with open(file, "rb") as opened:
                head = opened.read(16)
            return "" if head in (b"", b"SQLite format 3\0") else "tables.sqlite is damaged, or no SQLite file"
        has_rows = any(name.isdigit() for name in os.listdir(folder))
    except OSError as error:
        return reason(error)
    return "tables.sqlite is missing, but files of tables are there: restore it from a copy" if has_rows else ""


def summary(file: str, config: Config) -> str:
    counts = (
        _count(len(config.members), "member"),
        _count(len(config.table_names()), "table"),
        _count(len(config.links), "link"),
    )
    return f"{file}: ok: cluster {config.cluster}, {', '.join(counts)}"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _print(line: str, colour: str) -> None:
    """Colours on a terminal; the bare line for a pipe, whatever its width."""
    if not sys.stdout.isatty():
        click.echo(line)
        return
    place, colon, rest = line.partition(": ")
    text = Text(place, style="bold") + Text(colon) + Text(rest, style=colour)
    Console(highlight=False, soft_wrap=True).print(text)
