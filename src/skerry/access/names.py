"""Names of users: one form for those that look the same, and none that could write a false line."""

from __future__ import annotations

import unicodedata

from skerry.model.errors import UserError
from skerry.model.limits import USER_CHARS

_SHOWN_CHARS = 100


def user_name(text: str) -> str:
    """The name in the form that counts (NFC); UserError for what is no name."""
    name = unicodedata.normalize("NFC", text[: 4 * USER_CHARS])
    if not name:
        raise UserError("a user's name is empty")
    if len(name) > USER_CHARS:
        raise UserError(f"a user's name has at most {USER_CHARS} characters")
    if not name.isprintable() or name != name.strip():
        raise UserError("a user's name has no spaces around it and no characters that cannot be seen")
    return name


def shown_name(text: str) -> str:
    """Whatever somebody called itself, as one line of a log may hold it."""
    short = text if len(text) <= _SHOWN_CHARS else text[: _SHOWN_CHARS - 1] + "…"
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in short)
