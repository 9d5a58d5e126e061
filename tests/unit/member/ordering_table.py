"""The states of a query at one participant, the events that can reach it, and what each does to each."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class State(Enum):
    """The query's state at tromso."""

    UNKNOWN = "nothing was heard of it"
    PENDING = "rows are here, the Execute is not"
    ARRIVED = "all rows are here, the Execute is not"
    RUNNING = "begun, and rows are still to come"
    GONE = "over; a marker says so"


class Event(Enum):
    EXECUTE = "E"
    BATCH = "B"  # bergen opens its channel if it has none, and sends one batch
    LAST = "L"  # the end of bergen's stream
    CANCEL = "C"
    ORPHANED = "K"  # a period passes; oslo is asked if anything is here, and says that it does not know the query
    ALIVE = "A"  # the same, and oslo knows it
    STRAY = "S"  # oslo says that it does not know the query, and nobody has asked


class Row(NamedTuple):
    """`answers`: to oslo on the control connection, to bergen on its channel."""

    then: State
    answers: tuple[str, ...] = ()


RESULT = ("Started", "FragmentDone", "Receipt")
E, B, L, C, K, A, S = Event
U, P, V, R, G = State
TABLE = {
    # A query that nobody spoke of: rows are kept and asked about, a cancel leaves a marker.
    (U, E): Row(R, ("Started",)),  # staged: Spark begins, and says Started, when all rows are here
    (U, B): Row(P, ("ChannelPending",)),
    (U, L): Row(V, ("ChannelPending",)),
    (U, C): Row(G, ("Receipt",)),
    (U, K): Row(U),
    (U, S): Row(U),
    (U, A): Row(U),
    # Rows before their Execute: kept until it comes, and acked only then, for a tromso that restarts has lost them;
    # the cancel that overtook it, and the orphan's end, drop them.
    (P, E): Row(R, ("Grant", "Started")),
    (P, B): Row(P),
    (P, L): Row(V),
    (P, C): Row(G, ("Receipt",)),
    (P, K): Row(G, ("Check",)),
    (P, S): Row(P),
    (P, A): Row(P, ("Check",)),
    # All rows before their Execute: it finds them, and the query is over at once.
    (V, E): Row(G, ("Grant", *RESULT)),
    (V, B): Row(V, ("ChannelPending",)),  # bergen lost its connection, and resumes
    (V, L): Row(V, ("ChannelPending",)),
    (V, C): Row(G, ("Receipt",)),
    (V, K): Row(G, ("Check",)),
    (V, S): Row(V),
    (V, A): Row(V, ("Check",)),
    # Begun: a second Execute is the first one, resent.
    (R, E): Row(R),
    (R, B): Row(R, ("Grant",)),
    (R, L): Row(G, ("Grant", *RESULT)),
    (R, C): Row(G, ("Receipt",)),
    (R, K): Row(G, ("Check", "Receipt")),
    (R, S): Row(R),
    (R, A): Row(R, ("Check",)),
    # Over: nothing starts again, rows are turned away, whoever asks for a receipt gets one.
    (G, E): Row(G, ("Receipt",)),
    (G, B): Row(G, ("ChannelGone",)),
    (G, L): Row(G, ("ChannelGone",)),
    (G, C): Row(G, ("Receipt",)),
    (G, K): Row(G),
    (G, S): Row(G),
    (G, A): Row(G),
}
