"""Which member a command talks to: its first word, where that is a URL, or SKERRY_URL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TypeVar

import click

from skerry.client.url import SCHEME, SCHEME_TLS, parse_url
from skerry.model.errors import UserError

VARIABLE = "SKERRY_URL"
_URL = re.compile(rf"({re.escape(SCHEME)}|{re.escape(SCHEME_TLS)})://.*", re.IGNORECASE | re.DOTALL)
# No SQL looks like these. One with another scheme is no URL of ours, and the client says so.
_PLACE = re.compile(r"[^\s'\"`();/]+:[0-9]+(/\S*)?|[A-Za-z][A-Za-z0-9+.-]*://\S*")

Words = tuple[str, ...]
Command = TypeVar("Command", bound=Callable[..., object])


def target_argument(form: str) -> Callable[[Command], Command]:
    """The argument `words`, to be read by one of the functions below."""
    return click.argument("words", nargs=-1, metavar=form)


def read_url(words: Words) -> str:
    """`[URL]`"""
    if len(words) > 1:
        raise click.UsageError(f"one URL is enough: {words[1]!r} is too much")
    return words[0] if words else _known()


def read_url_and(what: str, words: Words) -> tuple[str, str]:
    """`[URL] WHAT`"""
    url, rest = read_url_and_maybe(what, words)
    if rest is None:
        raise click.UsageError(f"Missing argument '{what}'.")
    return url, rest


def read_url_and_maybe(what: str, words: Words) -> tuple[str, str | None]:
    """`[URL] [WHAT]`"""
    has_url = bool(words) and is_url(words[0])
    rest = words[1:] if has_url else words
    if len(rest) > 1:
        named = "" if has_url else f"{words[0]!r} is no URL ({SCHEME}://host:port), and "
        raise click.UsageError(f"{named}one {what} is enough: put quotes around it, or leave out {rest[1]!r}")
    return words[0] if has_url else _known(), rest[0] if rest else None


def is_url(word: str) -> bool:
    return bool(_URL.fullmatch(word) or _PLACE.fullmatch(word))


def _known() -> str:
    url = os.environ.get(VARIABLE, "").strip()
    if not url:
        raise click.UsageError(f"which member? Give its URL ({SCHEME}://host:port), or set {VARIABLE}")
    try:
        parse_url(url)
    except UserError as error:
        raise click.UsageError(f"{VARIABLE}: {error.message}") from None
    return url
