"""The shell of commits: who is answered when, where the store commits several at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable

from skerry.member.committing import Committing
from skerry.model.commits import Committed, Part, Record, TransactionId, Write
from skerry.model.ids import QueryId
from skerry.model.limits import CommitLimits
from skerry.tables.instructions import Found, Looked
from skerry.wire.commit_messages import State

WAIT_S = 60.0


def test_each_is_answered_when_its_own_record_is_on_disk() -> None:
    """Those that the store commits together wake the loop once; none of the others is answered with them."""
    on_disk: list[Callable[[BaseException | None], None]] = []
    applied: list[bytes] = []

    def persist(records: Iterable[Record], _turn: int, told: Callable[[BaseException | None], None]) -> None:
        if any(isinstance(record, Committed) for record in records):
            on_disk.append(told)
        else:
            told(None)  # the clock's mark

    def finish(some: list[Callable[[BaseException | None], None]]) -> None:
        for tell in some:
            tell(None)

    async def story() -> None:
        shell = Committing(
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
