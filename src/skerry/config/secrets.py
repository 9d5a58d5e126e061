"""`{env: NAME}` and `{file: path}`: where skerry.yaml says that a password stands, and what is found there."""

from __future__ import annotations

import os

from skerry.config import rules
from skerry.config.yaml_nodes import Item
from skerry.model.errors import ConfigError
from skerry.model.limits import SECRET_BYTES
from skerry.model.sources import Secret

SECRET = ("env", "file")


def read_place(item: Item, base_dir: str) -> Secret:
    """`{env: NAME}` or `{file: path}`: the file of all members holds no secret."""
    if item.kind() == "text":
        item.wrong("a secret does not stand in this file; write {env: NAME} or {file: path}")
        return Secret()
    fields = item.fields(SECRET)
    if ("env" in fields) == ("file" in fields):
        item.wrong("needs env, the name of an environment variable, or file, a path, and not both")
    file = fields.text("file", rules.local_path, "")
    env = fields.text("env", rules.variable_name, "")
    return Secret(env, os.path.abspath(os.path.join(base_dir, file)) if file else "")


def read_secret(secret: Secret, what: str) -> str:
    """The value itself; `what` it is for stands in the message of a ConfigError."""
    if secret.env:
        value = os.environ.get(secret.env, "")
        if not value:
            raise ConfigError(f"{what}: the environment variable {secret.env} is not set")
        return value
    try:
        with open(secret.file, "rb") as file:
            data = file.read(SECRET_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{what}: {secret.file} cannot be read: {(error.strerror or '').lower()}") from None
    if len(data) > SECRET_BYTES:
        raise ConfigError(f"{what}: {secret.file} is larger than {SECRET_BYTES} bytes")
    try:
        return data.decode().rstrip("\r\n")
    except UnicodeDecodeError:
        raise ConfigError(f"{what}: {secret.file} is no text") from None
