"""Tasks on other machines: their TCP port speaks TLS, and they tell their token to nobody but their own member."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import msgspec
import pyarrow as pa
import pytest

from skerry.exchange.intake import Attempt, Intake
from skerry.exchange.spool import Budget, Entry, Spool
from skerry.member.stores import DirectStore
from skerry.member.taskport import TaskPort
from skerry.model.errors import PeerError
from skerry.model.ids import QueryId
from skerry.model.limits import MIB, Limits
from skerry.model.table import Column
from skerry.spark.engine import EdgeInput, SinkOutput
from skerry.spark.sink import SinkSpec, hand_over
from skerry.spark.source import SourceSpec, read_share
from skerry.wire.codec import encode_batch, encode_schema
from skerry.wire.session import Identity
from skerry.wire.tls import Tls
from tests.unit.wire.certificates import files_of, needs_openssl
from tests.unit.wire.looping import QUICK, run

pytestmark = needs_openssl

QUERY = QueryId("oslo", "0" * 32)
SCHEMA = pa.schema([("n", pa.int64())])
TOKEN = "the token of this query"
LIMITS = msgspec.structs.replace(Limits(), login_s=QUICK.login_s)
BATCH = pa.record_batch([pa.array(range(10_000), pa.int64())], schema=SCHEMA)


def send(address: str, fingerprint: str) -> object:
    output = SinkOutput(QUERY, 1, address, TOKEN, "test", fingerprint)
    return hand_over(SinkSpec(output, encode_schema(SCHEMA), LIMITS), 0, 7, iter([BATCH] * 20))


def read(address: str, fingerprint: str) -> list[int]:
    edge = EdgeInput(QUERY, 3, (Column("n", "bigint"),), address, TOKEN, 1, "test", fingerprint)
    batches = read_share(SourceSpec(edge, encode_schema(SCHEMA), LIMITS), 0)
    return [value for batch in batches for value in batch.column(0).to_pylist()]


@pytest.mark.parametrize("wants_certificates", [False, True])
def test_sinks_and_sources_over_tls(tmp_path: Path, wants_certificates: bool) -> None:
    """Clients may have to show certificates; tasks have none, and show their token."""
    tls = Tls(msgspec.structs.replace(files_of("oslo"), client_certificates=wants_certificates))

    async def main() -> None:
        port = TaskPort(LIMITS)
        listener = await port.listen("tcp:127.0.0.1:0", Identity("test", "oslo", 1), tls)
        assert len(port.fingerprint) == 64
        spool, intake = Spool(Budget(64 * MIB, 0), tmp_path, "sink"), Intake(1, False)
        port.register_sink(QUERY, 1, TOKEN, intake, DirectStore(spool, waits=False))
        row = await asyncio.to_thread(send, listener.address, port.fingerprint)
        assert intake.settle([row]) == [Attempt(0, 7)]  # type: ignore[list-item]
        assert intake.rows == 200_000
        edge = Spool(Budget(64 * MIB, 0), tmp_path, "edge")
        edge.append(Entry(encode_batch(BATCH), BATCH.num_rows, BATCH.nbytes))
        edge.finish()
        port.register_edge(QUERY, 3, TOKEN, [edge])
        assert await asyncio.to_thread(read, listener.address, port.fingerprint) == list(range(10_000))
        # Whoever knows neither TLS nor the fingerprint finds nothing that it could read.
        with pytest.raises(PeerError):
            await asyncio.to_thread(read, listener.address, "")
        port.forget(QUERY)
        await listener.stop()
        spool.close()
        edge.close()

    run(main())


def test_another_s_certificate_is_told_no_token() -> None:
    async def main() -> None:
        # Of the same authority, and even with the member's own name: it is not the one certificate that is known.
        for impostor in (files_of("oslo", usage="serverAuth"), files_of("bergen"), files_of("oslo", "strangers")):
            port = TaskPort(LIMITS)
            listener = await port.listen("tcp:127.0.0.1:0", Identity("test", "oslo", 1), Tls(impostor))
            with pytest.raises(PeerError, match="another certificate is shown there than this member's"):
                await asyncio.to_thread(read, listener.address, Tls(files_of("oslo")).fingerprint)
            # Whoever has said Hello would have a connection here until its SourceOpen is refused.
            assert port.connections() == 0
            await listener.stop()

    run(main())


def test_a_port_without_tls_is_told_no_token() -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as listening:
            address = f"tcp:127.0.0.1:{listening.getsockname()[1]}"
            asking = asyncio.create_task(asyncio.to_thread(read, address, Tls(files_of("oslo")).fingerprint))
            accepted, _ = await asyncio.to_thread(listening.accept)
            with accepted:
                said = await asyncio.to_thread(accepted.recv, 65536)
            assert TOKEN.encode() not in said
            with pytest.raises((PeerError, OSError)):
                await asking

    run(main())


def test_a_unix_socket_needs_no_tls(tmp_path: Path) -> None:
    async def main() -> None:
        port = TaskPort(LIMITS)
        listener = await port.listen(f"unix:{tmp_path}/s", Identity("test", "oslo", 1), Tls(files_of("oslo")))
        assert port.fingerprint == ""
        await listener.stop()

    run(main())
