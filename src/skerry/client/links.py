"""The members that one connection talks to: its own, and the initiators of queries it attaches to or runs elsewhere."""

from __future__ import annotations

import re
import threading
from dataclasses import replace

from skerry.client.connection import MemberLink
from skerry.client.url import Target, parse_url
from skerry.model.errors import SiteError, SkerryError, UserError
from skerry.model.ids import QueryId
from skerry.model.names import DEFAULT_SCHEMA
from skerry.model.progress import MemberState
from skerry.wire.client_messages import ClientMembers, ClientMembersReply

LOCAL_DIGITS = 32
_LOCAL = re.compile(r"[0-9A-Za-z_-]{1,64}")


class Links:
    """One link a member, opened when it is needed. Threads may share it."""

    def __init__(self, target: Target, timeout_s: float | None, resume_s: float, *, learns_members: bool) -> None:
        self._timeout_s = timeout_s
        self._resume_s = resume_s
        self._lock = threading.Lock()
        self._is_closed = False
        self._members: tuple[MemberState, ...] = ()
        self.home = self._open(target)
        self._links = {self.home.member: self.home}
        try:
            if learns_members or target.schema_name:  # of members: later it may be too late to ask
                self.members()
            self._check_schema(target.schema_name)
        except BaseException:
            self.home.close()
            raise

    def members(self) -> tuple[MemberState, ...]:
        """All members, as the one this connection is to sees them."""
        self._members = self.home.ask(ClientMembers, ClientMembersReply).members
        return self._members

    def to(self, query: QueryId) -> MemberLink:
        """The link to a query's initiator."""
        return self.to_member(query.initiator)

    def to_member(self, name: str) -> MemberLink:
        link = self._links.get(name)
        if link is not None and link.error is None:
            return link
        if name == self.home.member:
            return self.home  # its error says more than a new dial
        known = {state.name: state.address for state in self._members or self.members()}
        if name not in known:
            raise UserError(f"there is no member {name}; there are {', '.join(known)}")
        home = self.home.target
        there = parse_url(known[name])
        there = replace(there, tls=home.tls, credentials=home.credentials, insecure=home.insecure)
        return self._add(self._open(there))

    def move(self, gone: MemberLink) -> MemberLink:
        """Another member to run queries at, now that this one is gone; raises why it is if there is none."""
        reason = gone.error or SiteError(f"member at {gone.target} is gone")
        with self._lock:
            if self.home is not gone:
                return self.home  # another thread was quicker
        for state in self._members:
            if state.name == gone.member:
                continue
            try:
                link = self.to_member(state.name)
            except SkerryError:
                continue  # that one is gone as well
            with self._lock:
                self.home = link
            return link
        raise reason

    def close(self, wait: bool = True) -> None:
        with self._lock:
            self._is_closed = True
            links = {id(link): link for link in (self.home, *self._links.values())}
        for link in links.values():
            link.close(wait)

    def _check_schema(self, schema_name: str) -> None:
        """Schemas are members; a mistyped one must not silently mean the tables of all of them."""
        known = [state.name for state in self._members]
        if schema_name and schema_name.lower() not in map(str.lower, known):
            raise UserError(f"there is no schema {schema_name}; there are {', '.join([DEFAULT_SCHEMA, *known])}")

    def _open(self, target: Target) -> MemberLink:
        return MemberLink.open(target, self._timeout_s, self._resume_s)

    def _add(self, link: MemberLink) -> MemberLink:
        with self._lock:
            if not self._is_closed:
                before = self._links.get(link.member)
                if before is None or before.error is not None:
                    self._links[link.member] = link
                    return link
                kept = before
            else:
                kept = None
        link.close()  # another thread was quicker, or nobody wants it any more
        if kept is None:
            raise UserError("the connection is closed")
        return kept


def parse_query_id(text: str) -> QueryId:
    """`member/local`, as `ps` shows it; it may be cut short."""
    initiator, _, local = text.partition("/")
    if not initiator or _LOCAL.fullmatch(local) is None:
        raise UserError(f"{text!r} is no query id (it has the form member/0123456789ab)")
    return QueryId(initiator, local)
