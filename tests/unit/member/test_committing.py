"""The shell of commits: who is answered when, where the store commits several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from skerry.member.committing import Committing
from skerry.model.commits import Committed, Part, Record, Staged, TransactionId, Write
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.instructions import Found, Looked
from skerry.wire.commit_messages import Decided, Prepare, State, Vote

WAIT_S = 60.0

Told = Callable[[BaseException | None], None]


def made(persist: Callable[[Iterable[Record], int, Told], None], applied: list[bytes]) -> Committing:
    return Committing(
        "oslo",
        CommitLimits(),
        [],
        persist,
        look=lambda *_: Looked((Found(),)),
        apply=lambda _, writes, *__: applied.extend(write.key for write in writes),
        discard=lambda _: None,
        send=lambda *_: None,
        own=lambda work, _: work.close(),
    )


def test_each_is_answered_when_its_own_record_is_on_disk() -> None:
    """Those that the store commits together wake the loop once; none of the others is answered with them."""
    on_disk: list[Told] = []
    applied: list[bytes] = []

    def persist(records: Iterable[Record], _turn: int, told: Told) -> None:
        if any(isinstance(record, Committed) for record in records):
            on_disk.append(told)
        else:
            told(None)  # the clock's mark

    def finish(some: list[Told]) -> None:
        for tell in some:
            tell(None)

    async def story() -> None:
        shell = made(persist, applied)
        tasks = []
        for number in range(6):
            part = Part((Write(1, b"%d" % number, b"row"),))
            txn = TransactionId(QueryId("oslo", str(number)), 1)
            tasks.append(asyncio.ensure_future(shell.submit(txn, shell.now(), {"oslo": part})))
            await asyncio.sleep(0)
        assert len(on_disk) == len(tasks)
        await asyncio.to_thread(finish, on_disk[:3])
        await asyncio.wait_for(asyncio.gather(*tasks[:3]), WAIT_S)
        assert not any(task.done() for task in tasks[3:])
        assert applied == [b"0", b"1", b"2"]
        await asyncio.to_thread(finish, on_disk[3:])
        outcomes = await asyncio.wait_for(asyncio.gather(*tasks), WAIT_S)
        assert {(outcome.state, outcome.rows) for outcome in outcomes} == {(State.COMMITTED, 1)}
        assert applied == [b"%d" % number for number in range(6)]
        shell.stop()

    asyncio.run(story())


def test_the_store_may_tell_whoever_waits_no_longer() -> None:
    """It tells in its own thread, which an error would end: then nothing could be written any more."""
    waiting: list[Told] = []

    def persist(records: Iterable[Record], _turn: int, told: Told) -> None:
        told(None) if records else waiting.append(told)

    async def story() -> None:
        shell = made(persist, [])
        flushing = asyncio.ensure_future(shell.written())
        while not waiting:
            await asyncio.sleep(0)
        flushing.cancel()
        await asyncio.wait({flushing}, timeout=WAIT_S)
        assert flushing.cancelled()
        await asyncio.to_thread(waiting[0], None)
        shell.stop()

    asyncio.run(story())


def test_nothing_goes_before_what_somebody_waits_for() -> None:
    """The way to another member is longer than to this one; who waits for an answer gets it before others are told."""
    story: list[str] = []

    def looked(*_: object) -> Looked:
        story.append("look")
        return Looked((Found(),))

    async def submitted(shell: Committing, txn: TransactionId, part: Part) -> None:
        await shell.submit(txn, shell.now(), {"bergen": part, "oslo": part, "tromso": part})
        story.append("answered")

    async def run() -> None:
        shell = Committing(
            "oslo",
            CommitLimits(),
            [],
            lambda _records, _turn, told: told(None),
            look=looked,
            apply=lambda *_: None,
            discard=lambda _: None,
            send=lambda to, message: story.append(f"{type(message).__name__} to {to}"),
            own=lambda work, _: work.close(),
        )
        txn, part = TransactionId(QueryId("oslo", "1"), 1), Part((Write(1, b"1", b"row"),))
        asking = asyncio.ensure_future(submitted(shell, txn, part))
        await until(lambda: "look" in story)
        assert story == ["Prepare to bergen", "Prepare to tromso", "look"]
        del story[:]
        for member in ("bergen", "tromso"):
            shell.receive(member, Vote(txn, member, shell.now(), shell.now(), 1))
        await until(lambda: len(story) == 3)
        assert story == ["answered", "Decided to bergen", "Decided to tromso"]
        await asking
        del story[:]
        # The same at a member that takes part: it acks when the next vote is out, but it does.
        first, later = (TransactionId(QueryId("bergen", each), 1) for each in "23")
        shell.receive("bergen", Prepare(first, shell.now(), 0, part, shell.now()))
        await until(lambda: "Vote to bergen" in story)
        shell.receive("bergen", Decided(first, shell.now(), 1))
        shell.receive("bergen", Prepare(later, shell.now(), 0, Part((Write(1, b"2", b"row"),)), shell.now()))
        await until(lambda: "Done to bergen" in story)
        assert story == ["look", "Vote to bergen", "look", "Vote to bergen", "Done to bergen"]
        shell.stop()

    async def until(is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_S):
            while not is_so():
                await asyncio.sleep(0.001)  # owner: the timeout

    asyncio.run(run())


def test_staged_rows_are_named_when_their_commit_is_on_disk() -> None:
    """Readers see them before: the commit of what was prepared is written lazily."""
    late: list[Told] = []

    def persist(records: Iterable[Record], _turn: int, told: Told) -> None:
        late.append(told) if any(isinstance(record, Committed) for record in records) else told(None)

    async def story() -> None:
        sent: list[object] = []
        staged = (Staged(1, ("file",)),)
        shell = Committing(
            "oslo",
            CommitLimits(),
            [],
            persist,
            look=lambda *_: Looked(staged=(Found(rows=3),), laid=staged),
            apply=lambda *_: None,
            discard=lambda _: None,
            send=lambda _, message: sent.append(message),
            own=lambda work, _: work.close(),
        )
        txn = TransactionId(QueryId("bergen", "1"), 1)
        shell.receive("bergen", Prepare(txn, shell.now(), 0, Part((), staged), shell.now()))
        async with asyncio.timeout(WAIT_S):
            while not any(isinstance(message, Vote) for message in sent):
                await asyncio.sleep(0.001)  # owner: the timeout
            assert shell.is_held(1)
            await shell.named(1)  # nobody sees them yet
            shell.receive("bergen", Decided(txn, shell.now(), 3))
            assert not shell.is_held(1)
            await shell.named(2)
            naming = asyncio.ensure_future(shell.named(1))
            while not late:
                await asyncio.sleep(0.001)  # owner: the timeout
            await asyncio.sleep(0)
            assert not naming.done()
            late[0](None)
            await naming
        shell.stop()

    asyncio.run(story())
