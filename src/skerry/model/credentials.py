"""What somebody shows to be let in, and how it is written into a Hello."""

from __future__ import annotations

import msgspec

from skerry.model.errors import PeerError


class Credentials(msgspec.Struct, frozen=True, omit_defaults=True):
    """A user with a password, or a token; nothing for whoever shows a certificate, or has nothing to show."""

    user: str = ""
    password: str = ""
    token: str = ""

    def __repr__(self) -> str:
        """Without what nobody may see."""
        secrets = [name for name in ("password", "token") if getattr(self, name)]
        return f"Credentials({', '.join([repr(self.user), *(f'{name}=…' for name in secrets)])})"

    @property
    def is_secret(self) -> bool:
        """Whoever reads it could use it."""
        return bool(self.password or self.token)


NOTHING = Credentials()


def encode_credentials(credentials: Credentials) -> str:
    """As `Hello.credentials` carries it; "" for nothing, as clients of the first release said."""
    return msgspec.json.encode(credentials).decode() if credentials != NOTHING else ""


def decode_credentials(text: str) -> Credentials:
    """PeerError, which does not quote it, for what is none."""
    if not text:
        return NOTHING
    try:
        return msgspec.json.decode(text, type=Credentials)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        raise PeerError("the credentials in Hello are not readable") from None
