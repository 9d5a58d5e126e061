"""Prints the tables of the life cycles into docs/protocol.md, each between its marks."""

from __future__ import annotations

import re
from pathlib import Path

from skerry.client import cursor
from skerry.exchange.groupby import manager, router, splitting, worker
from skerry.member import query, task
from skerry.model.transitions import as_markdown
from skerry.tables import decider, participant
from skerry.wire import channel, session

DOCUMENT = Path(__file__).resolve().parents[1] / "docs" / "protocol.md"
TABLES = {
    "session": as_markdown(session.NEXT),
    "query": as_markdown(query.NEXT),
    "task": as_markdown(task.NEXT),
    "sending channel": as_markdown(channel.NEXT),
    "receiving channel": as_markdown(channel.RECEIVER_NEXT),
    "cursor": as_markdown(cursor.NEXT),
    "participant": as_markdown(participant.NEXT),
    "decider": as_markdown(decider.NEXT),
    "group-by manager": as_markdown(manager.NEXT),
    "group-by split": as_markdown(splitting.NEXT),
    "group-by worker": as_markdown(worker.NEXT),
    "group-by sender": as_markdown(router.NEXT),
}
_MARKED = re.compile(r"(?<=<!-- transitions: )([\w -]+?)( -->\n).*?(?=\n<!-- end -->)", re.S)


def names_in(text: str) -> list[str]:
    return [match[1] for match in _MARKED.finditer(text)]


def printed(text: str) -> str:
    """The document with every table as the code has it."""
    return _MARKED.sub(lambda match: f"{match[1]}{match[2]}{TABLES[match[1]]}", text)


if __name__ == "__main__":
    DOCUMENT.write_text(printed(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
