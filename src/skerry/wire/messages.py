"""The messages of members and their Spark tasks, in the field order of docs/protocol.md, and what all messages are of.

Clients' messages are in `client_messages.py`; `kinds.py` has the numbers of all of them.

Messages are msgpack arrays: a peer of a newer release may append fields, which are ignored here.
"""

from __future__ import annotations

import msgspec

from skerry.model.commits import Changed
from skerry.model.fragment import Plan
from skerry.model.ids import ChannelId, QueryId
from skerry.model.progress import FragmentProgress, LinkBytes, Memory
from skerry.model.results import Schema, Value
from skerry.model.table import TablePart

# A connection of these kinds is a member's, and is opened to nobody who has not proven to be one.
MEMBER_KINDS = ("control", "data")
# The versions that are spoken: on control connections, which carry plans, on data connections, and on all others.
CONTROL_VERSIONS = (5,)
DATA_VERSIONS = (2, 3)
NEXT_CHANNEL_VERSION = 3  # of data connections that carry one channel after another
PROTOCOL_VERSIONS = (1,)


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages."""


class Failure(msgspec.Struct, frozen=True, array_like=True):
    """An error on the wire (see errors.py for the codes)."""

    code: int
    message: str
    member: str = ""
    suggestion: str = ""


# --- 1. first frames of any connection -----------------------------------------------------------
class Hello(Message, frozen=True):
    """kind: "client", "control", "data" or "task". `credentials` is the query's token for "task".

    The rest is for control connections. `received_upto`: the next control message expected, for resending.
    `session`: which session of the pair this is; `peer_epoch`, `peer_session`: the counterpart it knows, or 0;
    `links`: how many links the session has had, which tells a new dial from an old one.
    """

    kind: str
    versions: tuple[int, ...]
    cluster: str
    member: str
    epoch: int
    credentials: str = ""
    received_upto: int = 0
    release: str = ""
    session: int = 0
    peer_epoch: int = 0
    peer_session: int = 0
    links: int = 0


class Welcome(Message, frozen=True):
    """The answer to Hello: the version chosen and who answers."""

    version: int
    cluster: str
    member: str
    epoch: int
    received_upto: int = 0
    release: str = ""
    session: int = 0
    links: int = 0


class Refused(Message, frozen=True):
    """The answer to anything that ends the connection; sent before it is closed."""

    error: Failure


class Goodbye(Message, frozen=True):
    """A clean end of the connection."""


class Challenge(Message, frozen=True):
    """The answer to a member's Hello where there is a secret: who asks, and what the proof must be made for."""

    member: str
    epoch: int
    nonce: bytes


class Proof(Message, frozen=True):
    """Knowledge of the secret (see proof.py): the dialler's, then the listener's. `nonce` is the sender's own."""

    nonce: bytes
    proof: bytes


# --- 2. control connections ----------------------------------------------------------------------
class Ping(Message, frozen=True):
    """Heartbeat; also acks control messages: all below `received_upto` arrived."""

    received_upto: int


class Pong(Message, frozen=True):
    received_upto: int


class Execute(Message, frozen=True):
    """Start these fragments now. Never SQL, always `plan_id`. `relays`: channels that pass this member.

    `user`, `roles`: who asks, and what its proof told of; each participant applies its own rules to them.
    `virtual_tables`: rows of the statement itself, by the placeholders of the leaves that read them (10.7).
    `read_ts`: the moment at which all tables of our own are read; 0 if there are none. `changes`: what the transaction
    that the query belongs to has written to tables here, which it sees as well.
    """

    query: QueryId
    request_id: str
    plan_id: str
    sender: str
    fragments: tuple[int, ...]
    parameters: dict[str, Value]
    virtual_tables: dict[str, tuple[bytes, ...]]
    schema_info: dict[str, int]
    options: dict[str, int | str]
    participants: tuple[str, ...]
    timeout_s: float
    relays: tuple[ChannelId, ...] = ()
    user: str = ""
    roles: tuple[str, ...] = ()
    read_ts: int = 0
    changes: tuple[Changed, ...] = ()


class PlanRequest(Message, frozen=True):
    query: QueryId
    request_id: str
    plan_id: str


class PlanReply(Message, frozen=True):
    """`plan` is None when the initiator no longer has it."""

    query: QueryId
    request_id: str
    plan_id: str
    plan: Plan | None


class Cancel(Message, frozen=True):
    query: QueryId
    by: str
    error: Failure


class Started(Message, frozen=True):
    """A fragment runs; `schema` is its output as that site's Spark sees it."""

    query: QueryId
    member: str
    fragment: int
    schema: Schema


class FragmentDone(Message, frozen=True):
    """All of the fragment's rows are in the member's spool, and counted. `jobs`: Spark's own numbers, if asked for."""

    query: QueryId
    member: str
    fragment: int
    rows: int
    size_bytes: int
    seconds: float
    jobs: tuple[int, ...] = ()


class Receipt(Message, frozen=True):
    """Nothing of the query is left at this member, but for what `left` names: jobs that Spark has not ended, …"""

    query: QueryId
    member: str
    left: tuple[str, ...] = ()


class Progress(Message, frozen=True):
    query: QueryId
    member: str
    fragments: tuple[FragmentProgress, ...]
    links: tuple[LinkBytes, ...]
    memory: Memory | None = None


class Check(Message, frozen=True):
    suspected: tuple[QueryId, ...]


class CheckResponse(Message, frozen=True):
    inactive: tuple[QueryId, ...]


class Describe(Message, frozen=True):
    """Which tables have you? Answered with Tables, whatever changed since.

    tables: only these are asked about, and only how they are now: no statistics are wanted. Empty: all of them.
    """

    request_id: str
    tables: tuple[str, ...] = ()


class Tables(Message, frozen=True):
    """`broken` maps a table that cannot be read to the reason. `asked`: the answer is about these tables alone.

    offered: the tables of schemas, `sales.orders`, which are described when they are asked for.
    """

    request_id: str
    member: str
    parts: tuple[TablePart, ...]
    broken: dict[str, str]
    asked: tuple[str, ...] = ()
    offered: tuple[str, ...] = ()


# --- 3. data connections -------------------------------------------------------------------------
class OpenChannel(Message, frozen=True):
    channel: ChannelId
    schema: bytes
    resume_seq: int
    codec: str = ""


class ChannelOk(Message, frozen=True):
    """Send from `next_seq`, within `credit_upto` (total decoded bytes since the channel began)."""

    next_seq: int
    credit_upto: int


class ChannelPending(Message, frozen=True):
    """The query is not known here yet: batches within `credit_upto` are retained."""

    next_seq: int
    credit_upto: int


class ChannelGone(Message, frozen=True):
    """The query ended here: stop."""


class StopSending(Message, frozen=True):
    """Enough: end this channel cleanly."""


class ChannelPort(Message, frozen=True):
    """The channel has a port of its own at this host: open it there."""

    port: int


class Batch(Message, frozen=True):
    """Header of a batch frame; one Arrow IPC message follows it, uncopied (none when rows is 0)."""

    seq: int
    lane: int
    last: bool
    rows: int
    decoded_bytes: int
    remaining_credits: int


class Grant(Message, frozen=True):
    acked_upto: int
    credit_upto: int


# --- 4. task connections (Spark task ↔ its own member) --------------------------------------------
class SinkOpen(Message, frozen=True):
    """A Spark task begins to hand over one partition of a fragment."""

    query: QueryId
    fragment: int
    partition: int
    attempt: int


class SinkEnd(Message, frozen=True):
    """The partition is complete; the same counts return through Spark's driver (D8)."""

    batches: int
    rows: int
    checksum: int


class SinkTaken(Message, frozen=True):
    """The member has all of the partition: the task may end."""

    batches: int


class SourceOpen(Message, frozen=True):
    """A Spark task reads share `partition` of `partitions` of an edge, from its start."""

    query: QueryId
    edge: int
    partition: int
    partitions: int


class SourceEnd(Message, frozen=True):
    """End mark: end of file without it is an error, never an end."""

    batches: int
    rows: int
