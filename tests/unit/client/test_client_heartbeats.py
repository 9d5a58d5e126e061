"""Heartbeats, and members that fall silent, on real sockets."""

from __future__ import annotations

import socket
import threading

import pyarrow as pa
import pytest

from skerry.client.connection import MemberLink
from skerry.client.cursor import CursorCore, PageSize
from skerry.client.dial import dial
from skerry.client.url import parse_url
from skerry.model.errors import SiteError
from skerry.model.limits import Limits
from skerry.wire.client_messages import (
    ClientExecute,
    ClientFetch,
    ClientResult,
)
from skerry.wire.messages import Message, Ping
from tests.unit.client.scripted_member import (
    WAIT_S,
    Answers,
    Peer,
    ScriptedMember,
    member_with,
)

ROWS = 1000
NUMBERS = pa.table({"n": list(range(ROWS))})
SIZE = PageSize(10, 1000)


def link_to(member: ScriptedMember, limits: Limits, resume_s: float = 0.0) -> MemberLink:
    target = parse_url(member.url)
    connection, welcome = dial(target, WAIT_S, limits)
    return MemberLink(connection, target, welcome, limits, resume_s)


def execute(link: MemberLink, core: CursorCore, sql: str) -> None:
    link.execute(core, sql, [], size=SIZE, timeout_s=0, schema_name="", expected="any", options={})


def test_a_member_that_pings_and_falls_silent_is_lost() -> None:
    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute):
            peer.send(Ping(0))
        elif not isinstance(message, Ping):
            answers(peer, message)

    answers = Answers({})
    with member_with(script) as member:
        link = link_to(member, Limits(heartbeat_s=0.02, wait_s=0.2))
        with pytest.raises(SiteError, match="silent for too long"):
            execute(link, link.new_cursor(), "numbers")
        member.wait_for_ends(1)
        # One for each silence but the last, which ends it; how many are sent before the end is up to the writer.
        assert len(member.of(Ping)) <= 9
        link.close()


def test_who_cannot_resume_waits_longer_for_a_member_that_is_silent() -> None:
    """Being wrong would cost the query."""
    answers = Answers({})

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute):
            peer.send(Ping(0))
        elif isinstance(message, Ping):
            if len(member.of(Ping)) == 2 * limits.heartbeats_missed:
                peer.send(ClientResult(member.of(ClientExecute)[0].request, update_count=1))
        else:
            answers(peer, message)

    limits = Limits(heartbeat_s=0.02, wait_s=WAIT_S)
    with member_with(script) as member:
        link = link_to(member, limits)
        core = link.new_cursor()
        execute(link, core, "numbers")
        assert core.update_count == 1
        link.close()


@pytest.mark.skipif(not hasattr(socket, "TCP_USER_TIMEOUT"), reason="this system has no such option")
def test_a_host_that_takes_no_bytes_is_lost_after_three_heartbeats() -> None:
    """Seen with a link that was cut: lost 4.0 s later, one until the first ping and three until it had to be taken."""
    with member_with(Answers({})) as member:
        link = link_to(member, Limits(heartbeat_s=2.0))
        sock = link._connection._socket
        assert isinstance(sock, socket.socket)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 6000
        link.close()


def test_a_member_that_never_pinged_may_be_silent() -> None:
    answers = Answers({})
    release = threading.Event()

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute):
            release.wait(WAIT_S)
            peer.send(ClientResult(message.request, update_count=1))
        else:
            answers(peer, message)

    with member_with(script) as member:
        link = link_to(member, Limits(heartbeat_s=0.001))
        core = link.new_cursor()
        timer = threading.Timer(0.1, release.set)  # a hundred heartbeats
        timer.start()
        execute(link, core, "numbers")
        timer.join(WAIT_S)
        assert core.update_count == 1
        assert member.of(Ping) == []
        link.close()


def test_a_silent_member_is_dialled_again() -> None:
    answers = Answers({"numbers": NUMBERS}, page_rows=64)
    stuck = []

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientFetch) and not stuck:
            stuck.append(peer)
            peer.send(Ping(0))
        elif peer not in stuck:
            answers(peer, message)

    with member_with(script) as member:
        link = link_to(member, Limits(heartbeat_s=0.02), resume_s=20)
        core = link.new_cursor()
        execute(link, core, "numbers")
        pages = []
        while page := link.next_page(core, SIZE, ahead=4):
            pages.append(page)
        assert sum(page.rows for page in pages) == ROWS
        assert [page.number for page in pages] == list(range(len(pages)))
        link.close()
