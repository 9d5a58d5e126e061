"""Tokens: whoever the cluster's keys have signed for, and nobody else."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat

from skerry.access.tokens import parse_keys, read_token
from skerry.model.caller import User
from skerry.model.config import TokensConfig
from skerry.model.errors import AccessDenied, ConfigError
from tests.unit.access.access_worlds import AUDIENCE, ISSUER, SECRET, jwk, private, public_pem, token

CONFIG = TokensConfig("keys", ISSUER, AUDIENCE)
KINDS = ("RS256", "ES256", "EdDSA", "HS256")


def keys(*kinds: str) -> Any:
    return parse_keys(json.dumps({"keys": [jwk(kind, kid=f"{kind} key") for kind in kinds]}).encode(), "keys")


def refused(text: str, *kinds: str) -> str:
    with pytest.raises(AccessDenied) as caught:
        read_token(text, keys(*(kinds or ("RS256",))), CONFIG)
    assert text not in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_key(kind: str) -> None:
    exp = time.time() + 100
    user = read_token(token(kind, exp=exp, roles=["reader", "clerk"]), keys(*KINDS), CONFIG)
    assert user == User("anna", ("reader", "clerk"), exp + 60)
    assert read_token(token(kind, headers={"kid": f"{kind} key"}), keys(*KINDS), CONFIG).name == "anna"
    refused(token(kind, headers={"kid": "other"}), *KINDS)


@pytest.mark.parametrize("kind", KINDS[:3])
def test_a_public_key_as_pem(kind: str) -> None:
    assert read_token(token(kind), parse_keys(public_pem(kind), "keys"), CONFIG).name == "anna"


def test_claims_are_named_by_the_configuration() -> None:
    config = TokensConfig("keys", ISSUER, AUDIENCE, "email", "scope")
    user = read_token(token(email="A\u030as@example.com", scope="reader clerk"), keys("RS256"), config)
    assert (user.name, user.roles) == ("\u00c5s@example.com", ("reader", "clerk"))


@pytest.mark.parametrize(
    ("claims", "says"),
    [
        ({"exp": time.time() - 61}, "expired"),
        ({"without": "exp"}, "no exp"),
        ({"exp": "never"}, "signed"),
        ({"exp": 1e400}, "signed"),
        ({"nbf": time.time() + 3600}, "not valid yet"),
        ({"aud": "other"}, "audience"),
        ({"without": "aud"}, "no aud"),
        ({"iss": "https://evil.example"}, "issuer"),
        ({"without": "iss"}, "no iss"),
        ({"sub": ""}, "empty"),
        ({"sub": "an\nna"}, "cannot be seen"),
        ({"without": "sub"}, "names nobody"),
        ({"roles": {"admin": True}}, "roles"),
        ({"roles": [1]}, "roles"),
        ({"roles": ["x"] * 65}, "roles"),
        ({"headers": {"crit": ["b64"], "b64": False}}, "signed"),
    ],
)
def test_claims_that_are_not_believed(claims: dict[str, Any], says: str) -> None:
    assert says in refused(token(**claims))


def test_clocks_may_differ_a_little() -> None:
    assert read_token(token(exp=time.time() - 50, nbf=time.time() + 50), keys("RS256"), CONFIG).name == "anna"


def unsigned(header: dict[str, Any], signature: bytes = b"") -> str:
    claims = jwt.decode(token(), options={"verify_signature": False})
    parts = (json.dumps(header).encode(), json.dumps(claims).encode(), signature)
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts)


@pytest.mark.parametrize("algorithm", ["none", "None", "NONE", "", "RS256", "HS256", None, 7, ["RS256"]])
def test_a_token_that_nobody_signed(algorithm: Any) -> None:
    refused(unsigned({"alg": algorithm, "typ": "JWT"}), *KINDS)


def hmac_signed(secret: bytes, header: dict[str, Any]) -> str:
    """PyJWT itself refuses to sign with a public key."""
    body = unsigned(header).rpartition(".")[0]
    signature = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256).sign(body.encode(), secret)
    return f"{body}.{base64.urlsafe_b64encode(signature).rstrip(b'=').decode()}"


def test_a_public_key_is_no_secret() -> None:
    der = private("RS256").public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    for secret in (public_pem("RS256"), public_pem("RS256").strip(), der, b""):
        refused(hmac_signed(secret, {"alg": "HS256"}), "RS256")
        refused(hmac_signed(secret, {"alg": "RS256"}), "RS256")
        refused(hmac_signed(secret, {"alg": "HS256", "kid": "RS256 key"}), *KINDS)
    assert read_token(hmac_signed(SECRET, {"alg": "HS256"}), keys("HS256"), CONFIG).name == "anna"


def test_a_key_in_the_token_s_own_header_is_not_taken() -> None:
    other = rsa.generate_private_key(65537, 2048)
    own = json.loads(jwt.algorithms.RSAAlgorithm.to_jwk(other.public_key()))
    for header in ({"jwk": own}, {"jku": "https://evil.example/keys"}, {"x5u": "https://evil.example"}):
        refused(token(key=other, headers=header))


@pytest.mark.parametrize(
    "text",
    [
        *("x", "..", "a.b.c", "." * 4000, "x" * 4000, "\u00e9.\ud800.\0"),
        base64.urlsafe_b64encode(b"[" * 3000).decode() + ".e30.e30",
        base64.urlsafe_b64encode(b'{"alg":"RS256","x":' + b"[" * 2900).decode() + ".e30.e30",
    ],
)
def test_garbage(text: str) -> None:
    refused(text, *KINDS)


def test_a_token_that_was_changed() -> None:
    good = token()
    for at in range(0, len(good), 7):
        refused(good[:at] + ("A" if good[at] != "A" else "B") + good[at + 1 :])


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (b"", "neither the PEM"),
        (b"-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", "neither the PEM"),
        (b"{}", "no key in it"),
        (b"[1]", "has the form"),
        (b'{"keys": [1]}', "has the form"),
        (b'{"keys": ' + b"[" * 100_000, "neither the PEM"),
        (json.dumps({"keys": [{"kty": "oct", "k": "c2hvcnQ"}]}).encode(), "32 bytes"),
        (json.dumps({"keys": [{"kty": "RSA", "n": "AQAB", "e": "AQAB"}]}).encode(), "key 1"),
        (json.dumps({"keys": [jwk("RS256", alg="RSA-OAEP", use="enc")]}).encode(), "no key in it"),
        (json.dumps({"keys": [jwk("RS256")] * 101}).encode(), "more than 100"),
        (json.dumps(json.loads(jwt.algorithms.ECAlgorithm.to_jwk(private("ES256")))).encode(), "private key"),
        (
            private("ES256").private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()),
            "private key",
        ),
        (
            ec.generate_private_key(ec.SECP384R1())
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
            "EC P-256",
        ),
    ],
)
def test_keys_that_are_none(data: bytes, says: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=says):
        parse_keys(data, "keys")


def test_keys_for_something_else_are_passed_over() -> None:
    mixed = {"keys": [jwk("RS256", use="enc"), jwk("ES256", alg="ES512"), {"kty": "new"}, jwk("EdDSA")]}
    found = parse_keys(json.dumps(mixed).encode(), "keys")
    assert [key.algorithm for key in found] == ["EdDSA"]
    assert "EdDSA" in repr(found)
