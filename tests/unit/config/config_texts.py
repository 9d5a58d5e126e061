"""Texts of skerry.yaml, right but for what a test puts in, and what is said of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.config import parse
from skerry.model.errors import ConfigError


def member(body: str, rest: str = "") -> str:
    """A cluster of one member, oslo, with these keys beside its address; `rest` stands at the top level."""
    return f"cluster: c\nmembers:\n  oslo: {{address: 'h:1', {body}}}\n{rest}"


def table(body: str) -> str:
    return member(f"tables: {{orders: {{{body}}}}}")


def link(body: str) -> str:
    members = "cluster: c\nmembers:\n  oslo: {address: 'h:1'}\n  bergen: {address: 'h:2'}\n"
    return f"{members}links:\n- {{{body}}}\n"


def limit(body: str) -> str:
    return member("", f"limits: {{{body}}}")


def told(text: str, folder: Path) -> list[str]:
    """The messages about a text with mistakes, one a line."""
    with pytest.raises(ConfigError) as caught:
        parse(text, "skerry.yaml", folder)
    return caught.value.message.split("\n")
