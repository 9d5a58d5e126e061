"""Prints the caller's pip settings as uv's, for scripts/setup: uv reads neither pip's variables nor its files.

`python scripts/uv_settings.py` prints lines for a shell. Only the standard library is imported.
"""

from __future__ import annotations

import ast
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

# Later ones win, as in pip.
SECTIONS = ("global", "install", ":env:")
# uv's variable for each setting of pip's, and what stands between two values there (pip has spaces or lines).
NAMES: dict[str, tuple[str, str]] = {
    "index-url": ("UV_DEFAULT_INDEX", " "),
    "extra-index-url": ("UV_EXTRA_INDEX_URL", " "),
    "find-links": ("UV_FIND_LINKS", ","),
    "trusted-host": ("UV_INSECURE_HOST", " "),
    "no-index": ("UV_NO_INDEX", " "),
    "no-cache-dir": ("UV_NO_CACHE", " "),
    "timeout": ("UV_HTTP_TIMEOUT", " "),
    "default-timeout": ("UV_HTTP_TIMEOUT", " "),
    "retries": ("UV_HTTP_RETRIES", " "),
    "proxy": ("ALL_PROXY", " "),
    "cert": ("SSL_CERT_FILE", " "),
    "client-cert": ("SSL_CLIENT_CERT", " "),
}
# pip looks for a package at every index. Hashes say which file it may be.
ALWAYS = {"UV_INDEX_STRATEGY": "unsafe-best-match"}


def uv_settings(listed: str, environ: Mapping[str, str]) -> dict[str, str]:
    """uv's variables for what `pip config list` says; those that the caller has set for uv stay as they are."""
    pip: dict[str, str] = {}
    for section in SECTIONS:
        for line in listed.splitlines():
            name, _, value = line.partition("=")
            if name.startswith(f"{section}."):
                pip[name.removeprefix(f"{section}.")] = str(ast.literal_eval(value))
    if bundle := environ.get("REQUESTS_CA_BUNDLE") or environ.get("CURL_CA_BUNDLE"):
        pip.setdefault("cert", bundle)
    settings = dict(ALWAYS)
    for name, value in pip.items():
        if name in NAMES:
            variable, between = NAMES[name]
            settings[variable] = between.join(value.split())
    return {name: value for name, value in settings.items() if not (name.startswith("UV_") and name in environ)}


def main() -> None:
    listing = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(listing, stdout=subprocess.PIPE, text=True, check=True).stdout
    for name, value in uv_settings(listed, os.environ).items():
        # pip passes over a folder that is not there.
        if name == "UV_FIND_LINKS":
            value = ",".join(place for place in value.split(",") if "://" in place or Path(place).exists())
        if value:
            print(f"export {name}={shlex.quote(value)}")


if __name__ == "__main__":
    main()
