"""`skerry user`: who may ask the members, by name and password."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable
from typing import TypeVar

import click

from skerry.access.passwords import SALT_BYTES, hash_password
from skerry.access.users import UsersFile, listed_name
from skerry.config import load
from skerry.model.errors import SkerryError, UserError
from skerry.model.limits import PASSWORD_BYTES

CONFIG = "skerry.yaml"

T = TypeVar("T")
_file = click.option(
    "--file", metavar="FILE", help=f"The users file.  [default: access.users of {CONFIG} in this folder]"
)


@click.group("user")
def user() -> None:
    """Add, list and remove users of the users file that `access: {users: FILE}` names.

    Members read the file again when it changes. Copy it to every member's host.
    """


@user.command("add")
@click.argument("name")
@_file
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input, its first line.")
@click.option("--replace", is_flag=True, help="Give a user that exists another password without asking.")
def add(name: str, file: str | None, password_stdin: bool, replace: bool) -> None:
    """Add user NAME, or give it another password. The password is asked for twice."""
    name, users = _told(lambda: (listed_name(name), UsersFile(_path(file))))
    if name in _told(users.names) and not replace:
        if password_stdin or not sys.stdin.isatty():
            raise click.ClickException(f"user {name} exists (--replace gives it another password)")
        click.confirm(f"User {name} exists. Give it another password?", abort=True, err=True)
    password = _first_line() if password_stdin else click.prompt("Password", hide_input=True, confirmation_prompt=True)
    hashed = _told(lambda: hash_password(password, secrets.token_bytes(SALT_BYTES)))
    _told(lambda: users.put(name, hashed))
    click.echo(f"user {name} can log in", err=True)


@user.command("list")
@_file
def list_users(file: str | None) -> None:
    """Show the names of all users."""
    for name in _told(lambda: UsersFile(_path(file)).names()):
        click.echo(name)


@user.command("remove")
@click.argument("name")
@_file
def remove(name: str, file: str | None) -> None:
    """Remove user NAME: it cannot log in any more. Its open connections stay."""
    if not _told(lambda: UsersFile(_path(file)).remove(listed_name(name))):
        raise click.ClickException(f"there is no user {name}")
    click.echo(f"user {name} is removed", err=True)


def _path(file: str | None) -> str:
    if file is not None:
        return file
    if not os.path.exists(CONFIG):
        raise UserError(f"which users file? Give it with --file, or call this beside {CONFIG}")
    users = load(CONFIG).access.users
    if not users:
        raise UserError(f"{CONFIG} names no users file: write access: {{users: FILE}}, or give it with --file")
    return users


def _first_line() -> str:
    line = sys.stdin.readline(PASSWORD_BYTES + 2)
    return line.removesuffix("\n").removesuffix("\r")


def _told(work: Callable[[], T]) -> T:
    """What it gives; what is wrong in the words of the command line."""
    try:
        return work()
    except SkerryError as error:
        raise click.ClickException(error.message) from None
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
