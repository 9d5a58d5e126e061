"""Certificates for tests, made with the openssl command once a run."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from skerry.model.config import TlsFiles

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl command to make certificates")


def _openssl(*arguments: str) -> None:
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def authority(name: str = "fjords") -> Path:
    """A folder with the authority's `ca.pem` and `ca.key`."""
    return _authority(name)


@cache
def _authority(name: str) -> Path:
    folder = Path(tempfile.mkdtemp(prefix="certificates-"))
    _openssl(
        *("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"),
        *("-subj", f"/CN={name} authority", "-keyout", str(folder / "ca.key"), "-out", str(folder / "ca.pem")),
    )
    return folder


@cache
def files_of(
    subject: str, signed_by: str = "fjords", names: str = "", usage: str = "", mark: str | None = None
) -> TlsFiles:
    """A certificate with that common name, further DNS names, and its key; signed by that authority.

    `mark`: the member whose mark it has: the subject, unless said; "" for none, as of a client.
    """
    folder = authority(signed_by)
    mark = subject if mark is None else mark
    stem = folder / f"{subject}-{names}-{usage}-{mark}".strip("-").replace(",", "+")
    alternatives = [f"DNS:{name}" for name in filter(None, names.split(","))]
    alternatives += [f"URI:skerry:member:{mark}"] if mark else []
    extensions = [f"subjectAltName={','.join(alternatives)}"] if alternatives else []
    extensions += [f"extendedKeyUsage={usage}"] if usage else []
    (folder / "extensions").write_text("\n".join(["[v]", "basicConstraints=CA:FALSE", *extensions]))
    _openssl(
        *("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
        *("-subj", f"/CN={subject}", "-keyout", f"{stem}.key", "-out", f"{stem}.csr"),
    )
    _openssl(
        *("x509", "-req", "-in", f"{stem}.csr", "-CA", str(folder / "ca.pem"), "-CAkey", str(folder / "ca.key")),
        *("-CAcreateserial", "-days", "2", "-extfile", str(folder / "extensions"), "-extensions", "v"),
        *("-out", f"{stem}.pem"),
    )
    return TlsFiles(str(folder / "ca.pem"), f"{stem}.pem", f"{stem}.key")
