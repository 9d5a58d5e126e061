"""Who a command asks as: its options, a file that only its user may read, or a question on the terminal."""

from __future__ import annotations

import functools
import os
import stat
import sys
from collections.abc import Callable
from typing import Any, TypedDict

import click

from skerry.client.arguments import PASSWORD
from skerry.client.url import parse_url
from skerry.model.errors import UserError
from skerry.model.limits import KIB


class Login(TypedDict, total=False):
    """Arguments of `connect`."""

    user: str
    password: str
    token: str


_FILE_BYTES = 64 * KIB


def login_options(command: Callable[..., object]) -> Callable[..., object]:
    """Gives the command what to read with `login_of`, as its argument `login`."""

    @click.option("--user", metavar="NAME", help="Ask as this user; the password is asked for on a terminal.")
    @click.option("--password-file", metavar="FILE", help="The password is this file's first line.")
    @click.option("--token-file", metavar="FILE", help="Ask with the token in this file.")
    @functools.wraps(command)
    def with_login(
        *arguments: Any, user: str | None, password_file: str | None, token_file: str | None, **options: Any
    ) -> object:
        if password_file and token_file:
            raise click.UsageError("--password-file and --token-file: one of them says who asks")
        login: Login = {"user": user} if user else {}
        if password_file:
            login["password"] = _first_line(password_file)
        if token_file:
            login["token"] = _first_line(token_file)
        return command(*arguments, login=login, **options)

    return with_login


def complete(login: Login, url: str) -> Login:
    """With the password, if a user is named and nothing says it yet: asked for on the terminal."""
    try:
        named = parse_url(url).credentials
    except UserError:
        return login  # whoever connects says what is wrong with it
    user = login.get("user") or named.user
    has_secret = login.keys() & {"password", "token"} or named.password or os.environ.get(PASSWORD)
    if not user or has_secret or not sys.stderr.isatty():
        return login
    from getpass import getpass

    return {**login, "password": getpass(f"Password of {user}: ")}


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            status = os.fstat(file.fileno())
            if stat.S_ISREG(status.st_mode) and status.st_mode & 0o077:
                raise click.UsageError(f"{path}: others may read or write it (chmod 600 {path})")
            text = file.read(_FILE_BYTES)
    except OSError as error:
        raise click.UsageError(f"{path}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise click.UsageError(f"{path}: not UTF-8") from None
    line = text.partition("\n")[0].rstrip("\r")
    if not line:
        raise click.UsageError(f"{path}: its first line is empty")
    return line
