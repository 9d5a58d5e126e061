"""Passwords and their hashes: `scrypt$16384$8$1$salt$hash`, so that the parameters can grow. Pure."""

from __future__ import annotations

import base64
import hashlib
import hmac
import unicodedata

import msgspec

from skerry.model.errors import UserError
from skerry.model.limits import PASSWORD_BYTES

# RFC 7914: 16 MiB and some 50 ms for each guess.
N_LEAST, N_MOST = 2**14, 2**20
R, P = 8, 1
SALT_BYTES = 16
HASH_BYTES = 32


class PasswordHash(msgspec.Struct, frozen=True):
    """`n`: what it costs."""

    n: int
    salt: bytes
    key: bytes

    def __str__(self) -> str:
        return "$".join(("scrypt", str(self.n), str(R), str(P), _text(self.salt), _text(self.key)))


# Whoever is unknown takes as long to refuse as whoever is known.
NOBODY = PasswordHash(N_LEAST, bytes(SALT_BYTES), bytes(HASH_BYTES))


def hash_password(password: str, salt: bytes, n: int = N_LEAST) -> PasswordHash:
    """UserError for a password that nobody should have, or could type."""
    if not password:
        raise UserError("the password is empty")
    return PasswordHash(n, salt, _derive(password, salt, n))


def is_right(password: str, known: PasswordHash) -> bool:
    """Takes its time: not for an event loop."""
    try:
        return hmac.compare_digest(_derive(password, known.salt, known.n), known.key)
    except UserError:
        return False


def parse_hash(text: str) -> PasswordHash:
    """ValueError says what is wrong with it, without quoting it."""
    parts = text.split("$")
    if len(parts) != 6 or parts[0] != "scrypt":
        raise ValueError("the password's hash has the form scrypt$n$r$p$salt$hash")
    if not parts[1].isdecimal() or len(parts[1]) > 7 or parts[2:4] != [str(R), str(P)]:
        raise ValueError(f"scrypt's parameters are n, {R} and {P}")
    n = int(parts[1])
    if not N_LEAST <= n <= N_MOST or n & (n - 1):
        raise ValueError(f"scrypt's n is a power of two from {N_LEAST} to {N_MOST}")
    try:
        salt, key = (base64.b64decode(part, validate=True) for part in parts[4:])
    except ValueError:
        raise ValueError("salt and hash are base64") from None
    if len(salt) != SALT_BYTES or len(key) != HASH_BYTES:
        raise ValueError(f"the salt has {SALT_BYTES} bytes, the hash {HASH_BYTES}")
    return PasswordHash(n, salt, key)


def password_bytes(password: str) -> bytes:
    """The same for all keyboards (NFC)."""
    try:
        data = unicodedata.normalize("NFC", password[: 4 * PASSWORD_BYTES]).encode()
    except UnicodeEncodeError:
        raise UserError("the password is not Unicode text") from None
    if len(data) > PASSWORD_BYTES:
        raise UserError(f"a password has at most {PASSWORD_BYTES} bytes")
    if b"\0" in data:  # scrypt takes those at the end for none
        raise UserError("a password has no NUL character")
    return data


def _derive(password: str, salt: bytes, n: int) -> bytes:
    memory = 128 * R * (n + P + 2)
    return hashlib.scrypt(password_bytes(password), salt=salt, n=n, r=R, p=P, maxmem=2 * memory, dklen=HASH_BYTES)


def _text(data: bytes) -> str:
    return base64.b64encode(data).decode()
