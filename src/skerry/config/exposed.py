"""Whether a member may listen where it is told to: beyond loopback only with TLS, and if it is said who may come."""

from __future__ import annotations

from skerry.config.rules import is_loopback
from skerry.config.yaml_nodes import Notes
from skerry.model.config import Config, MemberConfig
from skerry.model.errors import ConfigError

SUGGESTION = (
    "give it tls: {certificate, key, authority} (docs/configuration.md), or say insecure: true in a network that "
    "only members and clients can reach"
)
SUGGESTION_ACCESS = (
    "write access: {users: FILE} (docs/configuration.md), or tls: {client_certificates: true}, or access: open if "
    "everybody who reaches it may ask"
)


def is_exposed(member: MemberConfig) -> bool:
    return member.tls is None and not member.insecure and not is_loopback(member.address)


def is_unguarded(config: Config, member: MemberConfig) -> bool:
    """Nobody said who may come."""
    is_said = config.access.is_written or member.insecure or (member.tls is not None and member.tls.client_certificates)
    return not is_said and not is_loopback(member.address)


def refuse_exposed(config: Config, member: MemberConfig) -> None:
    """ConfigError for a member that anyone on the network could connect to."""
    where = f"member {member.name} listens at {member.address}, beyond loopback,"
    if is_exposed(member):
        raise ConfigError(f"{where} without TLS", suggestion=SUGGESTION)
    if is_unguarded(config, member):
        raise ConfigError(f"{where} and nothing says who may ask it", suggestion=SUGGESTION_ACCESS)


def note_exposed(config: Config, notes: Notes) -> None:
    """The same for all members, each with its place."""
    for member in config.members.values():
        if is_exposed(member):
            notes.note(f"members.{member.name}.address", f"beyond loopback without TLS; {SUGGESTION}")
        elif is_unguarded(config, member):
            what = f"beyond loopback, and nothing says who may ask; {SUGGESTION_ACCESS}"
            notes.note(f"members.{member.name}.address", what)
