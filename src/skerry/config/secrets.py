"""`{env: NAME}` and `{file: PATH}`: where skerry.yaml says that a password stands, and what is read there."""

from __future__ import annotations

import os
import re

from skerry.config.private import refuse_public
from skerry.config.rules import local_path
from skerry.config.yaml_nodes import Item, Refused, shown
from skerry.model.errors import ConfigError
from skerry.model.limits import SECRET_FILE_BYTES
from skerry.model.sources import Secret

KINDS = ("env", "file")


def read_place(item: Item, base_dir: str) -> Secret:
    """Where the secret is; a secret itself is refused, and not shown."""
    if item.kind() != "a mapping":
        item.wrong("write {env: NAME} or {file: PATH}: everybody who reads this file would know it")
        return Secret()
    fields = item.fields(KINDS)
    chosen = [kind for kind in KINDS if kind in fields]
    if len(chosen) != 1:
        item.wrong("expected one of env and file")
    path = fields.text("file", local_path, "")
    return Secret(env=fields.text("env", _variable, ""), file=os.path.join(base_dir, path) if path else "")


def _variable(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise Refused(f"{shown(text) or 'an empty text'} is not a name of an environment variable")
    return text


def value_of(secret: Secret, what: str) -> str:
    """The secret itself, as it is now; ConfigError, which says `what`, if it is not there."""
    if secret.env:
        value = os.environ.get(secret.env, "")
        if not value:
            raise ConfigError(
                f"{what}: the environment variable {secret.env} is not set",
                suggestion="set it where the member is started",
            )
        return value
    refuse_public(secret.file, what)
    try:
        with open(secret.file, "rb") as file:
            value = file.read(SECRET_FILE_BYTES + 1).decode().rstrip("\r\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = (error.strerror or "").lower() if isinstance(error, OSError) else "not UTF-8"
        raise ConfigError(f"{what}: {secret.file} cannot be read: {reason}") from None
    if not value or len(value) > SECRET_FILE_BYTES:
        raise ConfigError(f"{what}: {secret.file} is {'too large' if value else 'empty'}")
    return value
