"""A task's process that stops itself (SIGSTOP) before all that it does at its line. Run by test_task_pauses.py."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence
from typing import Any

import msgspec

from skerry.spark import taskline
from skerry.spark.sink import SinkSpec, hand_over
from skerry.spark.source import decode_spec, read_share
from skerry.wire.blocking import BlockingConnection
from skerry.wire.codec import decode_schema
from skerry.wire.frames import Buffer, Frame
from tests.unit.spark.task_rows import made

MEMBER_TO_TASK, TASK_TO_MEMBER, READS_NOTHING = "source", "sink", "large"


def stop() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


class Pausing(BlockingConnection):
    """Stops after its first dial, before any word; after the second it says Hello at once, and stops from then on."""

    dials = 0

    @classmethod
    def connect(cls, *arguments: Any, **options: Any) -> Pausing:
        found: Any = super().connect(*arguments, **options)
        Pausing.dials += 1
        if Pausing.dials == 1:
            stop()
        return found  # type: ignore[no-any-return]

    def send_parts(self, parts: Sequence[Buffer]) -> None:
        if self.bytes_sent:
            stop()
        super().send_parts(parts)

    def receive(self, timeout_s: float | None = None) -> Frame | None:
        stop()
        return super().receive(timeout_s)


def read(spec: str) -> int:
    return sum(batch.num_rows for batch in read_share(decode_spec(spec), 0))


def read_late(spec: str) -> int:
    """The first batch, a pause, and then all the others."""
    shares = read_share(decode_spec(spec), 0)
    rows = next(shares).num_rows
    stop()
    return rows + sum(batch.num_rows for batch in shares)


def send(spec: str) -> int:
    sink = msgspec.msgpack.decode(bytes.fromhex(spec), type=SinkSpec)
    return hand_over(sink, 0, 7, made(decode_schema(sink.schema))).rows


def main() -> None:
    what, spec = sys.argv[1:]
    if what == READS_NOTHING:
        rows = read_late(spec)
    else:
        taskline.BlockingConnection = Pausing  # type: ignore[misc]
        rows = read(spec) if what == MEMBER_TO_TASK else send(spec)
    print(rows)


if __name__ == "__main__":
    main()
