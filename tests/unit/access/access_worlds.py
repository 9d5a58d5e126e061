"""Users, keys and tokens for tests, made as they are made outside: by the command's code and by PyJWT."""

from __future__ import annotations

import functools
import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from skerry.access.passwords import hash_password
from skerry.access.users import UsersFile
from skerry.model.config import TokensConfig

ISSUER, AUDIENCE = "https://login.example", "skerry-fjords"
SECRET = b"0123456789abcdef0123456789abcdef"


def users_file(folder: Path, **passwords: str) -> str:
    path = folder / "users"
    for number, (name, password) in enumerate(passwords.items()):
        UsersFile(str(path)).put(name, hash_password(password, bytes([number]) * 16))
    return str(path)


@functools.cache
def private(kind: str) -> Any:
    match kind:
        case "RS256":
            return rsa.generate_private_key(65537, 2048)
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
        case _:
            return SECRET


def public_pem(kind: str) -> bytes:
    return private(kind).public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def jwk(kind: str, **more: str) -> dict[str, Any]:
    made: Callable[..., str] = {
        "RS256": jwt.algorithms.RSAAlgorithm.to_jwk,
        "ES256": jwt.algorithms.ECAlgorithm.to_jwk,
        "EdDSA": jwt.algorithms.OKPAlgorithm.to_jwk,
        "HS256": jwt.algorithms.HMACAlgorithm.to_jwk,
    }[kind]
    key = private(kind) if kind == "HS256" else private(kind).public_key()
    return {**json.loads(made(key)), **more}


def keys_file(folder: Path, *keys: dict[str, Any]) -> TokensConfig:
    path = folder / "keys.json"
    path.write_text(json.dumps({"keys": keys or [jwk("RS256")]}))
    path.chmod(0o600)
    return TokensConfig(str(path), ISSUER, AUDIENCE)


def token(
    kind: str = "RS256", key: Any = None, headers: dict[str, Any] | None = None, without: str = "", **claims: Any
) -> str:
    usual = {"iss": ISSUER, "aud": AUDIENCE, "sub": "anna", "exp": time.time() + 300}
    claims = {name: value for name, value in (usual | claims).items() if name != without}
    return jwt.encode(claims, key or private(kind), kind, headers)
