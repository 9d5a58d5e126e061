"""Bearer tokens (JWT): whose key has signed them, for whom, until when, and which user they name."""

from __future__ import annotations

import json
import math
from typing import Any

import jwt
import msgspec
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePublicKey
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import load_pem_public_key

from skerry.access.names import user_name
from skerry.model.caller import User
from skerry.model.config import TokensConfig
from skerry.model.errors import AccessDenied, ConfigError, UserError
from skerry.model.limits import TOKEN_KEYS, TOKEN_LEEWAY_S, TOKEN_ROLES, USER_CHARS

_RSA_BITS = 2048
_SECRET_BYTES = 32
# Whatever PyJWT and json raise at a token that is none, also in ways that nobody thought of.
_UNREADABLE = (jwt.PyJWTError, ValueError, TypeError, KeyError, OverflowError, RecursionError)


class TokenKey(msgspec.Struct, frozen=True):
    """The key's own type says which algorithm it is for, never the token."""

    algorithm: str
    key: Any
    kid: str = ""

    def __repr__(self) -> str:
        return f"TokenKey({self.algorithm}, {self.kid!r})"


# --- keys ----------------------------------------------------------------------------------------
def parse_keys(data: bytes, path: str) -> tuple[TokenKey, ...]:
    """The keys of a PEM file with one public key, or of a JWKS; ConfigError without a word of what they are."""
    keys = (_pem(data, path),) if data.lstrip().startswith(b"-----BEGIN") else _jwks(data, path)
    if not keys:
        raise ConfigError(f"{path}: no key in it is for RS256, ES256, EdDSA or HS256 signatures")
    return keys


def has_secret(keys: tuple[TokenKey, ...]) -> bool:
    """Whoever reads such a key can sign with it."""
    return any(key.algorithm == "HS256" for key in keys)


def _pem(data: bytes, path: str) -> TokenKey:
    if b"PRIVATE KEY" in data:
        raise ConfigError(f"{path}: a private key; members need the public one (openssl pkey -pubout)")
    try:
        key = load_pem_public_key(data)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise ConfigError(f"{path}: neither the PEM of a public key nor a JWKS") from None
    algorithm = _algorithm_of(key)
    if not algorithm:
        raise ConfigError(f"{path}: not a key for tokens: RSA from {_RSA_BITS} bits, EC P-256 or Ed25519")
    return TokenKey(algorithm, key)


def _jwks(data: bytes, path: str) -> tuple[TokenKey, ...]:
    try:
        read = json.loads(data)
    except (ValueError, RecursionError):
        raise ConfigError(f"{path}: neither the PEM of a public key nor a JWKS") from None
    entries = read.get("keys", [read]) if isinstance(read, dict) else None
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise ConfigError(f'{path}: a JWKS has the form {{"keys": [{{…}}, …]}}')
    if len(entries) > TOKEN_KEYS:
        raise ConfigError(f"{path}: more than {TOKEN_KEYS} keys")
    found = (_jwk(entry, f"{path}: key {number}") for number, entry in enumerate(entries, 1))
    return tuple(key for key in found if key is not None)


def _jwk(entry: dict[str, Any], where: str) -> TokenKey | None:
    """None for a key that is for something else: sets of large issuers hold some."""
    if entry.get("use", "sig") != "sig":
        return None
    kid = entry.get("kid", "")
    kid = kid if isinstance(kid, str) else ""
    kind = {"RSA": "RS256", "EC": "ES256", "OKP": "EdDSA", "oct": "HS256"}.get(str(entry.get("kty")))
    if kind is None or entry.get("alg", kind) != kind:
        return None
    if "d" in entry:
        raise ConfigError(f"{where}: a private key; members need the public one")
    try:
        key = jwt.PyJWK(entry, algorithm=kind).key
    except _UNREADABLE:
        raise ConfigError(f"{where}: not a key of type {entry.get('kty')}") from None
    if kind == "HS256":
        if len(key) < _SECRET_BYTES:
            raise ConfigError(f"{where}: a secret for HS256 has {_SECRET_BYTES} bytes or more")
        return TokenKey(kind, key, kid)
    algorithm = _algorithm_of(key)
    if not algorithm:
        raise ConfigError(f"{where}: not a key for tokens: RSA from {_RSA_BITS} bits, EC P-256 or Ed25519")
    return TokenKey(algorithm, key, kid)


def _algorithm_of(key: object) -> str:
    match key:
        case RSAPublicKey() if key.key_size >= _RSA_BITS:
            return "RS256"
        case EllipticCurvePublicKey() if isinstance(key.curve, SECP256R1):
            return "ES256"
        case Ed25519PublicKey():
            return "EdDSA"
        case _:
            return ""


# --- tokens --------------------------------------------------------------------------------------
def read_token(token: str, keys: tuple[TokenKey, ...], config: TokensConfig) -> User:
    """The user that a token names; AccessDenied says what is wrong with it."""
    try:
        claims = _claims(token, _fitting(token, keys), config)
        roles = claims.get(config.roles_claim, ())
        expires_at = float(claims["exp"]) + TOKEN_LEEWAY_S
    except jwt.ExpiredSignatureError:
        raise AccessDenied("the token has expired; ask its issuer for a new one") from None
    except jwt.ImmatureSignatureError:
        raise AccessDenied("the token is not valid yet; do the clocks agree?") from None
    except jwt.InvalidAudienceError:
        raise AccessDenied("the token is for somebody else: its audience is not this cluster's") from None
    except jwt.InvalidIssuerError:
        raise AccessDenied("the token is of an issuer that this cluster does not know") from None
    except jwt.MissingRequiredClaimError as error:
        raise AccessDenied(f"the token has no {error.claim}") from None
    except _UNREADABLE:
        raise AccessDenied("the token is not one that a key of this cluster has signed") from None
    if not math.isfinite(expires_at):
        raise AccessDenied("the token has no exp that is a time")
    return User(_name(claims, config.name_claim), _roles(roles, config.roles_claim), expires_at)


def _fitting(token: str, keys: tuple[TokenKey, ...]) -> list[TokenKey]:
    header = jwt.get_unverified_header(token)
    if "crit" in header:  # it asks for what is not understood here (RFC 7515, 4.1.11)
        raise jwt.InvalidTokenError
    kid = header.get("kid")
    return [key for key in keys if key.algorithm == header["alg"] and (kid is None or key.kid in ("", kid))]


def _claims(token: str, keys: list[TokenKey], config: TokensConfig) -> dict[str, Any]:
    """Without a key that fits there is nothing to believe: `none` fits no key."""
    for key in keys:
        try:
            return jwt.decode(
                token,
                key.key,
                algorithms=[key.algorithm],
                audience=config.audience,
                issuer=config.issuer,
                leeway=TOKEN_LEEWAY_S,
                options={"require": ["exp"]},
            )
        except jwt.InvalidSignatureError:
            continue
    raise jwt.InvalidSignatureError


def _name(claims: dict[str, Any], claim: str) -> str:
    name = claims.get(claim)
    if not isinstance(name, str):
        raise AccessDenied(f"the token names nobody: it has no text as {claim}")
    try:
        return user_name(name)
    except UserError as error:
        raise AccessDenied(f"the token's {claim}: {error.message}") from None


def _roles(roles: Any, claim: str) -> tuple[str, ...]:
    """A list of texts, or one text with spaces between them."""
    found = roles.split() if isinstance(roles, str) else roles
    is_list = isinstance(found, list | tuple) and all(isinstance(role, str) for role in found)
    if not is_list or len(found) > TOKEN_ROLES or any(len(role) > USER_CHARS for role in found):
        raise AccessDenied(f"the token's {claim} is not a list of at most {TOKEN_ROLES} roles")
    return tuple(found)
