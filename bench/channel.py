"""How fast rows cross a channel on loopback, beside Flight's do_put with the same check and beside a bare socket.

Sender and receiver are two processes in all three. A run begins with rows in the sender's memory and ends when the
receiver has checked the last of them; connecting and logging in are inside. A member's spool and the bare socket begin
with encoded batches, because Spark's tasks encode them in processes of their own; Flight begins with Arrow batches,
whose buffers it sends without copying them.
"""

from __future__ import annotations

import asyncio
import itertools
import secrets
import socket
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from bench.frame import Bar, Options, Report, Samples, interleaved, tpch_files
from bench.receivers import (
    CLUSTER,
    LIMITS,
    RECEIVER,
    SECRET,
    SENDER,
    Expect,
    Receiver,
    receiver_process,
    serve_channels,
    serve_flight,
    serve_raw,
)
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.boot import new_event_loop
from skerry.model.ids import ChannelId, QueryId
from skerry.model.limits import GIB, MIB
from skerry.wire.channels import ChannelOut
from skerry.wire.codec import decoded_bytes, encode_batch, encode_schema, plain_schema
from skerry.wire.session import Identity

CHANNEL, FLIGHT, RAW = "channel", "Flight", "raw TCP"
RUN_BYTES = 256 * MIB
BOUNDS = {"orders": {FLIGHT: 1.0, RAW: 0.25}, "numeric": {FLIGHT: 1.5, RAW: 0.6}}
MANY, MANY_BATCHES, MANY_ROUNDS, FAIR = 200, 12, 3, 0.5
HELD, HELD_BATCHES = 50, 8

Batches = list[pa.RecordBatch]


class Rows:
    """The same rows as Flight wants them, and as a spool holds them."""

    def __init__(self, batches: Batches) -> None:
        self.batches = batches
        self.schema = encode_schema(batches[0].schema)
        # The rows repeat: each batch is encoded once.
        encoded = {id(batch): Entry(encode_batch(batch), batch.num_rows, decoded_bytes(batch)) for batch in batches}
        self.entries = [encoded[id(batch)] for batch in batches]
        self.rows = sum(batch.num_rows for batch in batches)
        self.size_mb = sum(batch.nbytes for batch in batches) / 1e6

    def first(self, count: int) -> Rows:
        return Rows(self.batches[:count])


class Channels:
    """The sending member: its loop, and a spool for each channel, as Spark's tasks would have filled it."""

    def __init__(self, receiver: Receiver, scratch: str) -> None:
        self._receiver = receiver
        self._scratch = scratch
        self._loop = new_event_loop()
        self.peaks: list[float] = []  # the receiver's counter, in parts of what it may be

    def send(self, rows: Rows, channels: int = 1, *, holding: bool = False) -> list[float]:
        """Seconds until the receiver had each channel's last batch."""
        run = Expect(secrets.token_hex(16), channels, holding)
        self._receiver.expect(run)
        started = time.perf_counter()
        self._loop.run_until_complete(self._send_all(run, rows))
        received = self._receiver.received()
        if received.rows != channels * rows.rows:
            raise AssertionError(f"{received.rows} rows arrived on {channels} channels")
        largest = max(max(entry.decoded_bytes, len(entry.body)) for entry in rows.entries)
        self.peaks.append(received.memory_peak / (channels * (LIMITS.first_credits_bytes + largest)))
        return [ended - started for ended in received.ended_at]

    async def _send_all(self, run: Expect, rows: Rows) -> None:
        async with asyncio.TaskGroup() as group:
            for edge in range(run.channels):
                spool = Spool(Budget(64 * GIB, 0), self._scratch, f"edge {edge}")
                for entry in rows.entries:
                    spool.append(entry)
                spool.finish()
                channel = ChannelId(QueryId(SENDER, run.query), edge, SENDER, RECEIVER)
                me, address = Identity(CLUSTER, SENDER, 1, secret=SECRET), self._receiver.address
                group.create_task(ChannelOut(me, channel, address, rows.schema, spool, LIMITS, Random(edge)).run())

    def close(self) -> None:
        self._loop.close()


def send_flight(receiver: Receiver, rows: Rows) -> None:
    from pyarrow import flight

    receiver.expect(Expect(""))
    with flight.connect(receiver.address) as client:
        writer, _ = client.do_put(flight.FlightDescriptor.for_path("bench"), rows.batches[0].schema)
        with writer:
            for batch in rows.batches:
                writer.write_batch(batch)
    received = receiver.received()
    if received.rows != rows.rows:
        raise AssertionError(f"{received.rows} rows arrived over Flight")


def send_raw(receiver: Receiver, rows: Rows) -> None:
    receiver.expect(Expect(""))
    host, _, port = receiver.address.rpartition(":")
    with socket.create_connection((host, int(port))) as connection:
        for entry in rows.entries:
            connection.sendall(memoryview(entry.body))
    receiver.received()


def run(options: Options) -> Report:
    """Both kinds of rows over all three, then many channels at once, then many that nobody reads."""
    cases = rows_of_tpch(options)
    samples: Samples = {}
    bars: list[Bar] = []
    with tempfile.TemporaryDirectory() as scratch, _receivers() as (to_channels, to_flight, to_raw):
        channels = Channels(to_channels, scratch)
        try:
            for case, rows in cases.items():
                works: dict[str, Callable[[], object]] = {
                    CHANNEL: partial(channels.send, rows),
                    FLIGHT: partial(send_flight, to_flight, rows),
                    RAW: partial(send_raw, to_raw, rows),
                }
                taken = interleaved(works, options.rounds)
                samples[case] = {name: [rows.size_mb / seconds for seconds in many] for name, many in taken.items()}
                bars += [
                    Bar(f"{case}_to_{_word(peer)}", _ratio(samples[case], peer), bound, at_most=False)
                    for peer, bound in BOUNDS[case].items()
                ]
            fair, rates = _fairness(channels, cases["orders"])
            samples[f"{MANY} at once"] = {CHANNEL: rates}
            bars.append(Bar("fair", fair, FAIR, at_most=False))
            channels.send(cases["orders"].first(HELD_BATCHES), HELD, holding=True)
            bars.append(Bar("memory", max(channels.peaks), 1.0))
        finally:
            channels.close()
    return Report(
        "channel",
        f"{RUN_BYTES // MIB} MiB in batches of 1 MiB over loopback, two processes",
        "MB/s",
        samples,
        bars,
        options,
        [
            f"{MANY} at once: all channels together; fair is the slowest channel's rate by the mean rate",
            f"memory: the receiver's counter at its highest, by credits + one batch a channel; {HELD} channels "
            "were not read until every one had used up its credit",
        ],
    )


def rows_of_tpch(options: Options) -> dict[str, Rows]:
    """Rows of orders as they are, and the numbers of lineitem as integers and doubles."""
    files = tpch_files(options.scale)
    lineitem = pq.read_table(files["lineitem"])
    keys = ["l_orderkey", "l_partkey", "l_suppkey", "l_linenumber"]
    doubles = ["l_quantity", "l_extendedprice", "l_discount", "l_tax"]
    numbers = {name: lineitem[name] for name in keys} | {name: lineitem[name].cast(pa.float64()) for name in doubles}
    return {"orders": Rows(batches_of(pq.read_table(files["orders"]))), "numeric": Rows(batches_of(pa.table(numbers)))}


def batches_of(table: pa.Table) -> Batches:
    """Batches of a mebibyte, as often as it takes to make a run."""
    table = table.cast(plain_schema(table.schema)).combine_chunks()
    rows = max(1, int(table.num_rows * LIMITS.batch_bytes / table.nbytes))
    # Spark hands over batches of their own memory, not slices of a large one.
    cut = [batch.take(pa.array(range(batch.num_rows))) for batch in table.to_batches(max_chunksize=rows)]
    count = RUN_BYTES // LIMITS.batch_bytes
    return list(itertools.islice(itertools.cycle(cut), count))


@contextmanager
def _receivers() -> Iterator[tuple[Receiver, Receiver, Receiver]]:
    with (
        receiver_process(serve_channels) as channels,
        receiver_process(serve_flight) as flight,
        receiver_process(serve_raw) as raw,
    ):
        yield channels, flight, raw


def _fairness(channels: Channels, rows: Rows) -> tuple[float, list[float]]:
    """The worst round's slowest channel by the mean one; and all channels' speed together."""
    shares, speeds = [], []
    some = rows.first(MANY_BATCHES)
    for _ in range(MANY_ROUNDS):
        taken = channels.send(some, MANY)
        rates = [some.size_mb / seconds for seconds in taken]
        shares.append(min(rates) / statistics.mean(rates))
        speeds.append(MANY * some.size_mb / max(taken))
    return min(shares), speeds


def _ratio(samples: dict[str, list[float]], peer: str) -> float:
    return statistics.median(samples[CHANNEL]) / statistics.median(samples[peer])


def _word(peer: Any) -> str:
    return {FLIGHT: "flight", RAW: "raw"}[peer]
