"""Where to connect: `skerry://[user:password@]host[:port][/schema]`, or `skerry+tls://…?authority=…` with TLS."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import parse_qsl, unquote, urlsplit

from skerry.model.config import TlsFiles
from skerry.model.credentials import NOTHING, Credentials
from skerry.model.errors import UserError
from skerry.model.limits import DEFAULT_PORT
from skerry.model.names import DEFAULT_SCHEMA

SCHEME = "skerry"
SCHEME_TLS = "skerry+tls"
FILES = ("authority", "certificate", "key")
# From the first colon of what may be a user to the last @ that may end a password.
_PASSWORD = re.compile(r"^((?:[^:/?#]*://)?[^:@/]*:).*(@)", re.DOTALL)
FORM = f"{SCHEME}://host:port/schema"


@dataclass(frozen=True)
class Target:
    """A member's address, who asks it, and the schema that unqualified names are looked up in ("" is all sites)."""

    host: str
    port: int
    schema_name: str = ""
    tls: TlsFiles | None = None
    credentials: Credentials = NOTHING
    insecure: bool = False  # credentials may go to other hosts without TLS

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_url(text: str) -> Target:
    """The target a URL names, with `DEFAULT_PORT` where it has no port. `host:port[/schema]` alone will do too."""
    has_scheme = "://" in text
    url = text if has_scheme else f"{SCHEME}://{text}"
    text = without_password(text)
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        why = "its port is no number" if "@" in url else error  # Python's words may quote a password
        raise UserError(f"{text!r} is no Skerry URL: {why} (write {FORM})") from None
    if parts.scheme not in (SCHEME, SCHEME_TLS):
        raise UserError(f"{text!r} is no Skerry URL: the scheme is {SCHEME}:// (write {FORM})")
    if not parts.hostname:
        raise UserError(f"{text!r} is no Skerry URL: it names no host (write {FORM})")
    if not has_scheme and port is None:  # any word may be a host
        raise UserError(f"{text!r} is no Skerry URL: it has neither {SCHEME}:// nor a port (write {FORM})")
    is_tls = parts.scheme == SCHEME_TLS
    if (parts.query and not is_tls) or parts.fragment:
        raise UserError(f"{text!r} is no Skerry URL: nothing may follow the schema (write {FORM})")
    schema_name = unquote(parts.path.strip("/"))
    if "@" in schema_name:  # else a part of a password would be looked for, and told, as a schema
        raise UserError(f"{text!r} is no Skerry URL: in a user or password write / as %2F and @ as %40 (write {FORM})")
    if "/" in schema_name:
        raise UserError(f"{text!r} is no Skerry URL: {schema_name!r} is not one schema (write {FORM})")
    if schema_name.lower() == DEFAULT_SCHEMA:
        schema_name = ""
    files = _files(text, parts.query) if is_tls else None
    credentials = Credentials(unquote(parts.username or ""), unquote(parts.password or ""))
    return Target(parts.hostname, DEFAULT_PORT if port is None else port, schema_name, files, credentials)


def without_password(text: str) -> str:
    """A URL as it may be shown: with the user, if it names one."""
    return _PASSWORD.sub(r"\1…\2", text)


def tls_files(given: Mapping[str, str]) -> TlsFiles:
    """Files by their names; UserError for what is none."""
    unknown = sorted(set(given) - set(FILES))
    if unknown:
        raise UserError(f"{unknown[0]!r} is nothing that TLS needs (write {', '.join(FILES)})")
    if bool(given.get("certificate")) != bool(given.get("key")):
        raise UserError("TLS: a certificate needs its key, and a key its certificate")
    return TlsFiles(given.get("authority", ""), given.get("certificate", ""), given.get("key", ""))


def _files(text: str, query: str) -> TlsFiles:
    try:
        return tls_files(dict(parse_qsl(query, keep_blank_values=True, strict_parsing=bool(query))))
    except ValueError as error:
        raise UserError(f"{text!r} is no Skerry URL: {error} (write {SCHEME_TLS}://host:port?authority=file)") from None
