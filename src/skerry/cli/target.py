"""Which member a command talks to: its first word, where that is a URL, or SKERRY_URL."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import TypeVar

import click

from skerry.client.url import SCHEME, SCHEME_TLS

VARIABLE = "SKERRY_URL"
_URL = re.compile(rf"({re.escape(SCHEME)}|{re.escape(SCHEME_TLS)})://.*", re.IGNORECASE | re.DOTALL)
_PLACE = re.compile(r"[^\s'\"`();/]+:[0-9]+(/\S*)?")  # host:port; no SQL looks like it

Words = tuple[str, ...]
Command = TypeVar("Command", bound=Callable[..., object])


def target_argument(form: str) -> Callable[[Command], Command]:
    """The argument `words`, to be read by one of the functions below."""
    return click.argument("words", nargs=-1, metavar=form)


def read_url(words: Words) -> str:
    """`[URL]`"""
    url, more = _read(words, "")
    if more:
        raise click.UsageError(f"one URL is enough: {more[0]!r} is too much")
    return url


def read_url_and(what: str, words: Words) -> tuple[str, str]:
    """`[URL] WHAT`"""
    url, rest = read_url_and_maybe(what, words)
    if rest is None:
        raise click.UsageError(f"Missing argument '{what}'.")
    return url, rest


def read_url_and_maybe(what: str, words: Words) -> tuple[str, str | None]:
    """`[URL] [WHAT]`"""
    url, rest = _read(words, what)
    if len(rest) > 1:
        raise click.UsageError(f"one {what} is enough: {rest[1]!r} is too much (put quotes around the {what})")
    return url, rest[0] if rest else None


def is_url(word: str) -> bool:
    return bool(_URL.fullmatch(word) or _PLACE.fullmatch(word))


def _read(words: Words, what: str) -> tuple[str, Words]:
    # Two words are a URL and the rest, however the URL is written: a host's name alone is one too.
    if words and (is_url(words[0]) or len(words) > bool(what)):
        return words[0], words[1:]
    url = os.environ.get(VARIABLE, "").strip()
    if not url:
        raise click.UsageError(f"which member? Give its URL ({SCHEME}://host:port), or set {VARIABLE}")
    return url, words
