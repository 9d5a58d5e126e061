"""Where to connect: `skerry://host:port[/schema]`."""

from __future__ import annotations

from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from skerry.errors import UserError

SCHEME = "skerry"
FORM = f"{SCHEME}://host:port/schema"


@dataclass(frozen=True)
class Target:
    """A member's address, and the schema that unqualified names are looked up in ("" is all sites)."""

    host: str
    port: int
    schema_name: str = ""

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_url(text: str) -> Target:
    """The target a URL names; `host:port` alone will do too."""
    url = text if "://" in text else f"{SCHEME}://{text}"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UserError(f"{text!r} is no Skerry URL: {error} (write {FORM})") from error
    if parts.scheme != SCHEME:
        raise UserError(f"{text!r} is no Skerry URL: the scheme is {SCHEME}:// (write {FORM})")
    if not parts.hostname:
        raise UserError(f"{text!r} is no Skerry URL: it names no host (write {FORM})")
    if port is None:
        raise UserError(f"{text!r} is no Skerry URL: it names no port (write {FORM})")
    if "@" in parts.netloc:
        raise UserError(f"a Skerry URL holds no user or password (write {FORM})")
    if parts.query or parts.fragment:
        raise UserError(f"{text!r} is no Skerry URL: nothing may follow the schema (write {FORM})")
    schema_name = unquote(parts.path.strip("/"))
    if "/" in schema_name:
        raise UserError(f"{text!r} is no Skerry URL: {schema_name!r} is not one schema (write {FORM})")
    return Target(parts.hostname, port, schema_name)
