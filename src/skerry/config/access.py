"""`access:` in skerry.yaml: how callers prove who they are."""

from __future__ import annotations

import os

from skerry.config import rules
from skerry.config.yaml_nodes import Fields, Item
from skerry.model.config import AccessConfig, MemberConfig, TokensConfig

ACCESS = ("users", "tokens", "certificates", "rules")
TOKENS = ("keys", "issuer", "audience", "name_claim", "roles_claim")


def read_access(top: Fields, base_dir: str, members: dict[str, MemberConfig]) -> AccessConfig:
    """`open`, or the ways in which callers prove who they are."""
    item = top.get("access")
    if item is None:
        return AccessConfig()
    if item.kind() != "a mapping":
        item.text(rules.open_access, "")
        return AccessConfig(is_written=True)
    fields = item.fields(ACCESS)
    certificates, tokens = fields.get("certificates"), fields.get("tokens")
    access = AccessConfig(
        users=_beside(fields, "users", base_dir),
        tokens=_tokens(tokens, base_dir) if tokens else None,
        certificates=certificates.flag() if certificates else False,
        rules=_beside(fields, "rules", base_dir),
        is_written=True,
    )
    if access.is_open and not ("users" in fields or "rules" in fields):
        item.wrong_key("says of nobody who it is; give it users, tokens or certificates, or write access: open")
    if certificates and access.certificates and any(member.tls is None for member in members.values()):
        certificates.wrong("clients show a certificate only to members with tls")
    return access


def _tokens(item: Item, base_dir: str) -> TokensConfig:
    fields = item.fields(TOKENS, required=TOKENS[:3])
    return TokensConfig(
        keys=_beside(fields, "keys", base_dir),
        issuer=fields.text("issuer", rules.some_text, ""),
        audience=fields.text("audience", rules.some_text, ""),
        name_claim=fields.text("name_claim", rules.some_text, "sub"),
        roles_claim=fields.text("roles_claim", rules.some_text, "roles"),
    )


def _beside(fields: Fields, key: str, base_dir: str) -> str:
    """A path relative to the file; "" if there is none."""
    path = fields.text(key, rules.local_path, "")
    return os.path.abspath(os.path.join(base_dir, path)) if path else ""
