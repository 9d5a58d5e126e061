"""SHOW TABLE STATUS: what each member holds of our own tables. One that does not answer in time is a line too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime

from skerry.member.own import OwnTables
from skerry.member.questions import Questions
from skerry.model.amounts import counted
from skerry.model.errors import SiteError, SkerryError
from skerry.model.limits import STATUS_WAIT_S
from skerry.model.rights import CHANGES, Rights
from skerry.model.sharded import OwnTable, TableStatus
from skerry.wire.definition_messages import AskStatus, StatusOf
from skerry.wire.messages import Message


class Statuses:
    """Belongs to the member's loop."""

    def __init__(
        self,
        member: str,
        own: OwnTables,
        send: Callable[[str, Message], None],
        rights_of: Callable[[str, tuple[str, ...]], Rights],
    ) -> None:
        self._member = member
        self._own = own
        self._send = send
        self._rights_of = rights_of
        self._questions = Questions[StatusOf | str]()

    async def ask(self, tables: Iterable[OwnTable], rights: Rights) -> Mapping[str, Sequence[object]]:
        """A line for each table and member, as columns."""
        tables = sorted(tables, key=lambda table: table.name.lower())
        members = sorted({member for table in tables for member in table.members})
        asked = {member: self._questions.put(member) for member in members}
        for member, (request_id, answer) in asked.items():
            numbers = tuple(table.id for table in tables if member in table.members)
            try:
                self._send(member, AskStatus(request_id, numbers, rights.user, rights.roles))
            except SkerryError as error:
                answer.set_result(error.message)
        try:
            if asked:
                await asyncio.wait([answer for _, answer in asked.values()], timeout=STATUS_WAIT_S)
        finally:
            self._questions.forget(request_id for request_id, _ in asked.values())
        told = {member: _told(member, answer) for member, (_, answer) in asked.items()}
        lines = [(table, member, _status(table.id, told[member])) for table in tables for member in table.members]
        return _columns(lines)

    def here(self, message: AskStatus) -> StatusOf:
        """By this member's own rules: numbers are for who sees the whole table, or changes it."""
        rights = self._rights_of(message.user, message.roles)
        names = {each.table.id: each.table.name for each in self._own.definitions.values()}
        found = []
        for number in {*message.tables} & {*names}:
            is_told = rights.seen(self._member, names[number]).is_whole or any(
                rights.may(action, self._member, names[number]) for action in CHANGES
            )
            found.append(self._own.status_of(number) if is_told else TableStatus(number, problem=_NOT_TOLD))
        return StatusOf(message.request_id, self._member, tuple(found))

    def told(self, sender: str, message: StatusOf) -> None:
        self._questions.answered(sender, message.request_id, message)

    def lost(self, peer: str, error: SiteError) -> None:
        for answer in self._questions.open_at(peer):
            answer.set_result(error.message)


_NOT_TOLD = "numbers are for those who may read the whole table, or change it"


def _told(member: str, answer: asyncio.Future[StatusOf | str]) -> StatusOf | str:
    return answer.result() if answer.done() else f"no answer from {member} within {STATUS_WAIT_S:g} s"


def _status(table: int, told: StatusOf | str) -> TableStatus:
    if isinstance(told, str):
        return TableStatus(table, problem=told)
    unknown = TableStatus(table, problem="the table is not known there: it was just made, or dropped")
    return next((each for each in told.tables if each.table == table), unknown)


def _columns(lines: Sequence[tuple[OwnTable, str, TableStatus]]) -> Mapping[str, Sequence[object]]:
    found = [status for _, _, status in lines]
    return {
        "table": [table.name for table, _, _ in lines],
        "member": [member for _, member, _ in lines],
        "buckets": [each.buckets for each in found],
        "rows": [each.rows for each in found],
        "overlay_rows": [each.overlay_rows for each in found],
        "overlay_bytes": [each.overlay_bytes for each in found],
        "files": [each.files for each in found],
        "file_bytes": [each.file_bytes for each in found],
        "last_flush": [_moment(each.flushed_us) for each in found],
        "flush_did": [_flush(each) for each in found],
        "last_cleanup": [_moment(each.cleaned_us) for each in found],
        "cleanup_did": [_cleanup(each) for each in found],
        "history_from": [_moment(each.history_us) for each in found],
        "moving": [each.moving or None for each in found],
        "problem": [each.problem or None for each in found],
    }


def _flush(status: TableStatus) -> str | None:
    if not status.files_written and not status.files_replaced:
        return None
    return f"{counted(status.files_written, 'file')} written, {status.files_replaced} replaced"


def _cleanup(status: TableStatus) -> str | None:
    return f"{counted(status.files_removed, 'file')} removed" if status.cleaned_us else None


def _moment(us: int) -> str | None:
    """A peer may say any number."""
    if not 0 < us < _YEAR_9999_US:
        return None
    return datetime.fromtimestamp(us / 1e6, UTC).replace(tzinfo=None).isoformat(" ", "milliseconds")


_YEAR_9999_US = 253_370_764_800_000_000
