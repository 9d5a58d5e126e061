"""A member speaks for itself alone, whatever its messages say; over real sockets too."""

from __future__ import annotations

import asyncio
from random import Random

import msgspec
import pytest

from skerry.config import parse
from skerry.member.claims import refuse_forged, refuse_unfit_question
from skerry.member.server import Member
from skerry.model.commits import Changed, FoundAt, Part, Policy, Staged, Versions, Write
from skerry.model.errors import PeerError
from skerry.model.ids import QueryId
from skerry.testing.ports import free_ports
from skerry.wire.finding_messages import FindRows, RowsFound
from skerry.wire.messages import (
    Cancel,
    Execute,
    Failure,
    FragmentDone,
    Message,
    PlanReply,
    Progress,
    Receipt,
    Started,
    Tables,
)
from skerry.wire.peers import Peers
from skerry.wire.session import Identity
from tests.unit.wire.looping import QUICK, SECRET, run, until

OSLO_S, BERGEN_S = QueryId("oslo", "0" * 32), QueryId("bergen", "1" * 32)


def execute(query: QueryId, sender: str) -> Execute:
    return Execute(query, query.local, "plan", sender, (1,), {}, {}, {}, {}, ("tromso",), 10.0)


def cancel(query: QueryId, by: str) -> Cancel:
    return Cancel(query, by, Failure(103, "because"))


@pytest.mark.parametrize(
    "message",
    [
        execute(BERGEN_S, "bergen"),
        cancel(BERGEN_S, "bergen"),
        cancel(QueryId("tromso", "2" * 32), "bergen"),
        PlanReply(BERGEN_S, "", "plan", None),
        FragmentDone(OSLO_S, "bergen", 1, 0, 0, 0.0),
        Progress(OSLO_S, "bergen", (), ()),
        Receipt(OSLO_S, "bergen"),
        Tables("", "bergen", (), {}),
        FindRows("", BERGEN_S, Part(), 1),
        RowsFound("", "bergen"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_bergens_to_say_is_believed(message: Message) -> None:
    refuse_forged("bergen", message, "tromso")


@pytest.mark.parametrize(
    "message",
    [
        execute(OSLO_S, "oslo"),
        execute(OSLO_S, "bergen"),
        execute(BERGEN_S, "oslo"),
        cancel(OSLO_S, "oslo"),
        cancel(OSLO_S, "bergen"),
        cancel(QueryId("tromso", "2" * 32), "oslo"),
        PlanReply(OSLO_S, "", "plan", None),
        Started(OSLO_S, "oslo", 1, None),  # type: ignore[arg-type]
        FragmentDone(OSLO_S, "oslo", 1, 0, 0, 0.0),
        Progress(OSLO_S, "oslo", (), ()),
        Receipt(OSLO_S, "oslo"),
        Tables("", "oslo", (), {}),
        FindRows("", OSLO_S, Part(), 1),
        RowsFound("", "oslo"),
    ],
    ids=lambda message: type(message).__name__,
)
def test_what_is_anothers_to_say_is_not(message: Message) -> None:
    with pytest.raises(PeerError, match="came from bergen, and only 'oslo' may say it"):
        refuse_forged("bergen", message, "tromso")


WRITE = Write(7, b"k", b"\x91\x01", Policy.NOTHING)


def test_questions_of_transactions_have_their_bytes_and_their_bounds() -> None:
    """Worked out by hand from docs/protocol.md, 14."""
    golden = {
        FindRows("r", QueryId("oslo", "a"), Part((WRITE,), versions=(Versions(7, 1, 2),), user="anna"), 9): (
            "94 a172 92 a46f736c6f a161  95 91 96 07 c4016b c4029101 01 c2 c3  90  91 93 07 01 02  a4616e6e61 90  09"
        ),
        RowsFound("r", "oslo", (FoundAt(False), FoundAt(True, b"\x91\x02"))): (
            "94 a172 a46f736c6f 92 92 c2 c0 92 c3 c4029102 c0"
        ),
        Changed(7, 1, b"\x92"): "93 07 01 c40192",
    }
    for message, said in golden.items():
        assert msgspec.msgpack.encode(message).hex() == said.replace(" ", "")
    refuse_unfit_question(FindRows("", OSLO_S, Part((WRITE,)), 1))
    bad = (Part(staged=(Staged(7, ("0",)),)), Part((msgspec.structs.replace(WRITE, table=0),)))
    for message in (*(FindRows("", OSLO_S, part, 1) for part in bad), FindRows("", OSLO_S, Part(), 0)):
        with pytest.raises(PeerError):
            refuse_unfit_question(message)


def test_a_member_that_was_taken_over_begins_and_ends_no_query_of_another() -> None:
    async def main() -> None:
        ports = free_ports(3)
        names = ("tromso", "bergen", "oslo")
        members = "".join(
            f"  {name}: {{address: '127.0.0.1:{port}', role: {'data' if name == 'oslo' else 'lite'}}}\n"
            for name, port in zip(names, ports, strict=True)
        )
        config = msgspec.structs.replace(parse(f"cluster: c\nmembers:\n{members}"), limits=QUICK)
        tromso = Member(config, "tromso", None, secret=SECRET)
        heard: list[Message] = []
        bergen = Peers(
            Identity("c", "bergen", 7, secret=SECRET),
            {"tromso": config.addresses()["tromso"]},
            QUICK,
            on_message=lambda _peer, message: heard.append(message),
            on_peer_lost=lambda _peer, _error: None,
            on_peer_up=lambda _peer, _epoch: None,
            random=Random(1),
        )
        try:
            await tromso.start()
            for forged in (execute(OSLO_S, "oslo"), execute(OSLO_S, "bergen"), cancel(OSLO_S, "oslo")):
                bergen.send("tromso", forged)
            # Its own is taken, and answered: this lite member has no Spark.
            bergen.send("tromso", execute(BERGEN_S, "bergen"))
            await until(lambda: any(isinstance(message, Receipt) for message in heard))
            about = {message.query for message in heard if isinstance(message, Cancel | Receipt)}
            assert about == {BERGEN_S}
            assert OSLO_S not in tromso.participants
            assert not tromso.inputs.is_gone(OSLO_S), "no marker keeps oslo's own Execute out"
        finally:
            await bergen.stop()
            await tromso.stop()

    run(main(), asyncio.new_event_loop)
