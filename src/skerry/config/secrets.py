"""`{env: NAME}` and `{file: path}`: where skerry.yaml says that a password stands."""

from __future__ import annotations

import os

from skerry.config import rules
from skerry.config.yaml_nodes import Item
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
