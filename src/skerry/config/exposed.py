"""Whether a member may listen where it is told to: beyond loopback only with TLS, or if told that it is meant so."""

from __future__ import annotations

from skerry.config.rules import is_loopback
from skerry.config.yaml_nodes import Notes
from skerry.model.config import Config, MemberConfig
from skerry.model.errors import ConfigError

SUGGESTION = (
    "give it tls: {certificate, key, authority} (docs/configuration.md), or say insecure: true in a network that "
    "only members and clients can reach"
)


def is_exposed(member: MemberConfig) -> bool:
    return member.tls is None and not member.insecure and not is_loopback(member.address)


def refuse_exposed(member: MemberConfig) -> None:
    """ConfigError for a member that anyone on the network could connect to."""
    if is_exposed(member):
        raise ConfigError(
            f"member {member.name} listens at {member.address}, beyond loopback, without TLS", suggestion=SUGGESTION
        )


def note_exposed(config: Config, notes: Notes) -> None:
    """The same for all members, each with its place."""
    for member in config.members.values():
        if is_exposed(member):
            notes.note(f"members.{member.name}.address", f"beyond loopback without TLS; {SUGGESTION}")
