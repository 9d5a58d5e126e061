"""A listener that sends every frame back, and what it refuses a connection with."""

from __future__ import annotations

import contextlib

from skerry.model.errors import Overloaded, PeerError
from skerry.model.limits import Limits
from skerry.wire.frames import ConnectionLost, decode, encode_frame
from skerry.wire.listener import Listener
from skerry.wire.messages import Hello, Refused
from skerry.wire.tcp import Connection
from tests.unit.wire.looping import OSLO, QUICK


async def echo(connection: Connection, hello: Hello) -> None:
    while (frame := await connection.receive()) is not None:
        connection.send_parts(encode_frame(frame.kind, frame.payload))
        await connection.drain()


async def start(address: str = "tcp:127.0.0.1:0", limits: Limits = QUICK) -> Listener:
    return await Listener.start(address, limits, OSLO, {"data": echo, "client": echo})


async def refusal(connection: Connection) -> PeerError | Overloaded:
    """What a raw connection is refused with; it must be closed afterwards."""
    frame = await connection.receive()
    assert frame is not None
    message = decode(frame)
    assert isinstance(message, Refused)
    # Who had no time to read the rest of what was sent ends it with a reset.
    with contextlib.suppress(ConnectionLost):
        assert await connection.receive() is None
    await connection.wait_closed()
    from skerry.wire.values import error_of

    error = error_of(message.error)
    assert isinstance(error, PeerError | Overloaded)
    return error
