"""`storage:` of a member: how it reads files that are not on its disk."""

from __future__ import annotations

import re

from skerry.config import rules
from skerry.config.secrets import read_place
from skerry.config.yaml_nodes import Fields, Refused
from skerry.model.sources import S3Store, Storage

STORAGE = ("s3",)
S3 = ("endpoint", "region", "path_style", "access_key", "secret_key", "session_token", "anonymous")
_KEYS = ("access_key", "secret_key", "session_token")


def read_storage(fields: Fields, base_dir: str) -> Storage:
    item = fields.get("storage")
    found = item.fields(STORAGE).get("s3") if item is not None else None
    if found is None:
        return Storage()
    inside = found.fields(S3)
    keys = {key: read_place(each, base_dir) for key in _KEYS if (each := inside.get(key)) is not None}
    if ("access_key" in keys) != ("secret_key" in keys) or (keys.keys() == {"session_token"}):
        found.wrong("access_key and secret_key go together")
    flags = {key: each.flag() for key in ("path_style", "anonymous") if (each := inside.get(key)) is not None}
    if flags.get("anonymous") and keys:
        found.wrong("anonymous goes without keys")
    return Storage(
        S3Store(
            endpoint=inside.text("endpoint", _endpoint, ""),
            region=inside.text("region", rules.some_text, ""),
            path_style=flags.get("path_style", False),
            access_key=keys.get("access_key"),
            secret_key=keys.get("secret_key"),
            session_token=keys.get("session_token"),
            anonymous=flags.get("anonymous", False),
        )
    )


def _endpoint(text: str) -> str:
    if not re.fullmatch(r"https?://[^\s/@?#]+/?", text):
        raise Refused("is not an endpoint; write https://host:port")
    return text.rstrip("/")
