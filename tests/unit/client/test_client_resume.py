"""Lost connections and members that die, on real sockets."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import count
from typing import Any

import pyarrow as pa
import pytest

import skerry
from skerry.client import clock
from skerry.client.cursor import DETACH, CursorCore, PageSize, Phase
from skerry.client.reads import only_reads
from skerry.model.errors import Cancelled, OutcomeUnknown, SiteError, SiteStopping
from skerry.model.ids import QueryId
from skerry.model.limits import REPEAT_S
from skerry.model.progress import MemberState
from skerry.model.results import Page, Schema
from skerry.wire.client_messages import ClientAttach, ClientClose, ClientExecute, ClientFetch, ClientPage, ClientResult
from skerry.wire.messages import Failure, Goodbye, Hello, Message
from tests.unit.client.scripted_member import (
    WAIT_S,
    Answers,
    Peer,
    Script,
    member_with,
    page_of,
    schema_of,
)

ROWS = 1000
NUMBERS = pa.table({"n": list(range(ROWS))})
EVERY = [(n,) for n in range(ROWS)]
SIZE = PageSize(10, 1000)


class Breaking:
    """Answers like a member, but ends the connection before or after the messages that `when` picks."""

    def __init__(self, when: Callable[[Message], bool], *, after: bool, breaks: int = 1) -> None:
        self.answers = Answers({"numbers": NUMBERS, "change": 3}, page_rows=64)
        self._when, self._after, self._breaks = when, after, breaks

    def __call__(self, peer: Peer, message: Message) -> None:
        is_due = self._breaks > 0 and self._when(message)
        self._breaks -= is_due
        if is_due and not self._after:
            peer.reset()
            return
        self.answers(peer, message)
        if is_due:
            peer.reset()


FETCHES: list[Callable[[skerry.client.dbapi.Cursor], list[tuple[object, ...]]]] = [
    lambda cursor: cursor.fetchall(),
    lambda cursor: list(cursor),
    lambda cursor: cursor.fetchmany(ROWS),
    lambda cursor: [tuple(row.values()) for row in cursor.fetch_arrow_table().to_pylist()],
    lambda cursor: [tuple(row.values()) for row in cursor.fetch_record_batch_reader().read_all().to_pylist()],
]


@pytest.mark.parametrize("fetch", FETCHES, ids=["fetchall", "iterated", "fetchmany", "arrow", "reader"])
@pytest.mark.parametrize("after", [False, True], ids=["before the answer", "after the answer"])
@pytest.mark.parametrize("kind", [ClientFetch, ClientAttach])
def test_no_row_is_lost_or_doubled(kind: type[Message], after: bool, fetch: Callable[..., object]) -> None:
    breaks = 3 if kind is ClientFetch else 1

    def when(message: Message) -> bool:
        return isinstance(message, kind) and (kind is ClientFetch or bool(member.of(ClientAttach)))

    # An attach comes only after a loss: break a fetch for it first.
    first = Breaking(lambda message: isinstance(message, ClientFetch), after=False)
    script = Breaking(when, after=after, breaks=breaks)

    def both(peer: Peer, message: Message) -> None:
        if kind is ClientAttach and isinstance(message, ClientFetch) and first._breaks:
            first._breaks = 0
            peer.reset()
        else:
            script(peer, message)

    with member_with(both) as member, skerry.connect(member.url, resume_s=20) as connection:
        assert fetch(connection.cursor().execute("numbers")) == EVERY
        attaches = member.of(ClientAttach)
        assert len(attaches) >= (1 if kind is ClientFetch else 2)
        assert {attach.query for attach in attaches} == {member.of(ClientExecute)[0].query}
        assert member.of(ClientExecute)[0].options == {"resume_s": "20.0"}
        member.wait_for(ClientClose)  # such a cursor is kept until its client says that it has the last page


@pytest.mark.parametrize("after", [False, True], ids=["never arrived", "arrived"])
def test_a_connection_lost_while_execute_waits(after: bool) -> None:
    """Whether the execute arrived cannot be known: it is attached to, and said again with the same id if need be."""
    script = Breaking(lambda message: isinstance(message, ClientExecute), after=after)
    with member_with(script) as member, skerry.connect(member.url, resume_s=20) as connection:
        assert connection.cursor().execute("numbers").fetchall() == EVERY
        executes = member.of(ClientExecute)
        assert len({execute.query for execute in executes}) == 1
        assert len(executes) == (1 if after else 2)


def test_a_detached_execute_that_was_lost_is_said_again() -> None:
    for after in (False, True):
        script = Breaking(lambda message: isinstance(message, ClientExecute), after=after)
        with member_with(script) as member, skerry.connect(member.url, resume_s=20) as connection:
            cursor = connection.cursor().execute("numbers", detach=True)
            assert connection.attach(cursor.query_id).fetchall() == EVERY
            assert len({execute.query for execute in member.of(ClientExecute)}) == 1


@pytest.mark.parametrize("detach", [False, True])
def test_a_change_that_was_lost_while_the_client_slept_is_not_said_again(
    monkeypatch: pytest.MonkeyPatch, detach: bool
) -> None:
    slept_s = [0.0]
    monkeypatch.setattr(clock, "now", lambda: slept_s[0])

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute):
            slept_s[0] = 1000.0
            peer.reset()
        else:
            answers(peer, message)

    answers = Answers({"change": 3})
    with member_with(script) as member, skerry.connect(member.url, resume_s=20) as connection:
        with pytest.raises(skerry.OperationalError, match="not known: the connection was lost") as raised:
            connection.cursor().execute("change", detach=detach)
        assert raised.value.member == "oslo"
        assert connection.members()  # the connection itself goes on
        assert len(member.of(ClientExecute)) == 1


def test_an_idle_cursor_is_attached_while_nobody_fetches() -> None:
    """A member keeps a cursor only so long: the link may not wait for the application."""
    script = Breaking(lambda message: isinstance(message, ClientFetch), after=True)
    with member_with(script) as member, skerry.connect(member.url, resume_s=20) as connection:
        idle, busy = connection.cursor().execute("numbers"), connection.cursor().execute("numbers")
        assert idle.fetchone() == (0,)
        assert busy.fetchall() == EVERY
        (attach,) = [each for each in member.wait_for(ClientAttach) if each.query == idle.query_id]
        assert attach.page_number == 1
        assert idle.fetchall() == EVERY[1:]


def test_without_resume_a_lost_connection_is_the_end() -> None:
    script = Breaking(lambda message: isinstance(message, ClientFetch), after=False)
    with member_with(script) as member, skerry.connect(member.url) as connection:
        with pytest.raises(skerry.OperationalError, match="is gone"):
            connection.cursor().execute("numbers").fetchall()
        assert member.of(ClientAttach) == []
        assert len(member.of(Hello)) == 1


def test_a_member_that_was_restarted_has_lost_its_queries() -> None:
    answers = Answers({"numbers": NUMBERS}, page_rows=64)

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientFetch) and answers.epoch == 1:
            answers.epoch = 2
            peer.reset()
        else:
            answers(peer, message)

    with member_with(script) as member, skerry.connect(member.url, resume_s=20) as connection:
        with pytest.raises(skerry.OperationalError, match="was restarted: its queries are lost"):
            connection.cursor().execute("numbers").fetchall()
        assert member.of(ClientAttach) == []
        assert connection.cursor().execute("numbers").fetchall() == EVERY  # the connection itself is well


def test_a_change_whose_member_was_restarted_is_said_again_by_its_id() -> None:
    """By the client itself with `resume_s`, by the application without: only that member knows what came of it."""
    answers, sql = Answers({"DELETE FROM t": 3}), "DELETE FROM t"

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientExecute) and answers.epoch < 3 and not message.options.get("again"):
            answers.epoch += 1
            peer.reset()
        else:
            answers(peer, message)

    with member_with(script) as member:
        with skerry.connect(member.url, resume_s=20) as connection:
            assert connection.cursor().execute(sql).rowcount == 3
        with skerry.connect(member.url) as connection:
            cursor = connection.cursor()
            with pytest.raises(skerry.OutcomeUnknown, match=r"was carried out is not known: member at .* is gone"):
                cursor.execute(sql)
            # A connection that is gone sends nothing, which tells nothing either.
            with pytest.raises(skerry.OutcomeUnknown, match="is gone"):
                connection.cursor().execute(sql, query_id=cursor.query_id)
        with skerry.connect(member.url) as connection:
            assert connection.cursor().execute(sql, query_id=cursor.query_id).rowcount == 3
            assert connection.cursor().executemany(sql, [[], []], query_id=cursor.query_id).rowcount == 3
            with pytest.raises(skerry.InterfaceError, match="query_id is the id of a cursor"):
                connection.cursor().execute(sql, query_id="oslo/1")  # type: ignore[arg-type]
        first, resumed, second, *again = member.of(ClientExecute)
        assert (first.query, first.options.get("again")) == (resumed.query, None)
        assert {each.query for each in again} == {second.query}
        assert [each.options.get("again") for each in (resumed, second, *again)] == ["1", None, "1", "1"]


def test_a_member_that_is_not_there_any_more_ends_the_resuming_at_once() -> None:
    answers = Answers({"numbers": NUMBERS}, page_rows=64)
    with member_with(answers) as member, skerry.connect(member.url, resume_s=1000) as connection:
        cursor = connection.cursor().execute("numbers")
        member.stop()
        with pytest.raises(skerry.OperationalError, match="no member answers"):
            cursor.fetchall()
        assert not connection.usable


def unwelcoming(times: int) -> Script:
    """The member's port takes connections, but so many of them after the first, which is lost, are not welcomed."""
    answers = Answers({"numbers": NUMBERS}, page_rows=64)
    hellos, fetches = count(), count()

    def script(peer: Peer, message: Message) -> None:
        if (isinstance(message, Hello) and 0 < next(hellos) <= times) or (
            isinstance(message, ClientFetch) and next(fetches) == 0
        ):
            peer.end()
        else:
            answers(peer, message)

    return script


def test_a_member_that_does_not_welcome_is_dialled_again_and_again() -> None:
    with member_with(unwelcoming(3)) as member, skerry.connect(member.url, resume_s=1000) as connection:
        assert connection.cursor().execute("numbers").fetchall() == EVERY
        assert len(member.of(Hello)) == 5


def test_resuming_ends_with_its_time() -> None:
    with (
        member_with(unwelcoming(1_000_000)) as member,
        skerry.connect(member.url, resume_s=0.5) as connection,
        pytest.raises(skerry.OperationalError, match=r"dialled again for 0\.5 s \(resume_s\)"),
    ):
        connection.cursor().execute("numbers").fetchall()


def test_cancel_and_close_while_the_connection_is_lost() -> None:
    answers = Answers({"numbers": NUMBERS}, page_rows=64)
    hellos = count()

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, Hello) and next(hellos):
            return  # never welcomed again
        if isinstance(message, ClientFetch):
            peer.reset()
            return
        answers(peer, message)

    with member_with(script) as member, skerry.connect(member.url, resume_s=1000) as connection:
        cursor = connection.cursor().execute("numbers")

        def cancel() -> None:
            member.wait_for(Hello, 2)
            cursor.cancel()

        canceller = threading.Thread(target=cancel)
        canceller.start()
        with pytest.raises(skerry.OperationalError, match="was cancelled"):
            cursor.fetchall()
        canceller.join(WAIT_S)
    member.wait_for_ends(2)  # closing did not wait for the resume to end


# --- other members ---------------------------------------------------------------------------------
@pytest.mark.parametrize("delivered", [False, True], ids=["before the first page", "after it"])
def test_reads_run_again_elsewhere_only_before_the_first_page(delivered: bool) -> None:
    here, there = (
        Answers({"SELECT n": NUMBERS, "DELETE n": 3}, page_rows=64, name=name) for name in ("oslo", "bergen")
    )

    def dies(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientFetch) or (isinstance(message, ClientExecute) and not delivered):
            peer.reset()
        else:
            here(peer, message)

    with member_with(dies) as first, member_with(there) as second:
        here.members = (
            MemberState("oslo", f"127.0.0.1:{first.port}", "data", "up"),
            MemberState("gone", "127.0.0.1:1", "data", "up"),
            MemberState("bergen", f"127.0.0.1:{second.port}", "data", "up"),
        )
        with skerry.connect(first.url, retry="reads") as connection:
            cursor = connection.cursor()
            if delivered:
                with pytest.raises(skerry.OperationalError, match="is gone"):
                    cursor.execute("SELECT n").fetchall()
            else:
                assert cursor.execute("SELECT n").fetchall() == EVERY
                assert cursor.query_id.initiator == connection.member == "bergen"
        with skerry.connect(first.url, retry="reads") as connection:
            if not delivered:
                with pytest.raises(skerry.OperationalError, match="is gone"):
                    connection.cursor().execute("DELETE n")
        with skerry.connect(first.url) as connection:
            if not delivered:
                with pytest.raises(skerry.OperationalError, match="is gone"):
                    connection.cursor().execute("SELECT n")


class Uses(Answers):
    """Answers USE as well, and breaks a connection instead of answering `dies_at`."""

    dies_at = ""

    def _execute(self, peer: Peer, message: ClientExecute) -> None:
        if message.sql == self.dies_at:
            self.dies_at = ""
            peer.reset()
        elif message.sql.startswith("USE "):
            page = page_of(NUMBERS, 0, is_last=True)
            peer.send(ClientResult(message.request, schema_of(NUMBERS), page, schema_name=message.sql[4:]))
        else:
            super()._execute(peer, message)


@pytest.mark.parametrize("dies_at", ["USE tromso", "SELECT n"])
@pytest.mark.parametrize("options", [{"retry": "reads"}, {"resume_s": 30.0}], ids=["elsewhere", "dialled again"])
def test_what_use_said_goes_with_every_statement_wherever_it_runs(options: dict[str, Any], dies_at: str) -> None:
    here, there = (Uses({"SELECT n": NUMBERS}, name=name) for name in ("oslo", "bergen"))
    here.dies_at = dies_at
    with member_with(here) as first, member_with(there) as second:
        here.members = (
            MemberState("oslo", f"127.0.0.1:{first.port}", "data", "up"),
            MemberState("bergen", f"127.0.0.1:{second.port}", "data", "up"),
        )
        with skerry.connect(first.url, **options) as connection:
            connection.cursor().execute("USE tromso")
            assert connection.cursor().execute("SELECT n").fetchall() == EVERY
            assert connection.member == ("bergen" if "retry" in options else "oslo")
        asked = [*first.of(ClientExecute), *second.of(ClientExecute)]
        assert len(asked) == 3
        assert {each.schema_name for each in asked if each.sql == "SELECT n"} == {"tromso"}


def test_a_use_that_is_attached_to_changes_no_connection() -> None:
    """Somebody else's USE, or an own one that was detached: its rows are read, its schema is not taken over."""

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientAttach):
            page = page_of(NUMBERS, 0, is_last=True)
            peer.send(ClientResult(message.request, schema_of(NUMBERS), page, schema_name="tromso"))
        else:
            answers(peer, message)

    answers = Uses({"SELECT n": NUMBERS})
    with member_with(script) as member, skerry.connect(member.url) as connection:
        connection.cursor().execute("USE bergen")
        assert connection.attach(QueryId("oslo", "0" * 32)).fetchall() == EVERY
        assert connection.schema_name == "bergen"
        assert connection.cursor().execute("SELECT n").fetchall() == EVERY
        assert member.of(ClientExecute)[-1].schema_name == "bergen"


@pytest.mark.parametrize(
    ("sql", "reads"),
    [
        ("SELECT 1", True),
        ("  -- a comment\n select 'INSERT'", True),
        ("(SELECT 1) UNION (SELECT 2)", True),
        ("WITH a AS (SELECT 1) SELECT * FROM a", True),
        ("SHOW TABLES", True),
        ("USE oslo", True),
        ("SET VAR x = (SELECT 1)", True),
        ("DROP TEMPORARY VARIABLE x", False),
        ("WITH a AS (SELECT 1) INSERT INTO b SELECT * FROM a", False),
        ("FROM a INSERT INTO b SELECT *", False),
        ("DELETE FROM a", False),
        ("SELECT `update` FROM a", True),
        ("", False),
        ("SELECT 'unterminated", False),
    ],
)
def test_what_only_reads(sql: str, reads: bool) -> None:
    assert only_reads(sql) is reads


def test_a_query_of_another_member_is_asked_about_there() -> None:
    here, there = (Answers({"SELECT n": NUMBERS}, page_rows=64, name=name) for name in ("oslo", "bergen"))
    with member_with(here) as first, member_with(there) as second:
        here.members = (
            MemberState("oslo", f"127.0.0.1:{first.port}", "data", "up"),
            MemberState("bergen", f"127.0.0.1:{second.port}", "data", "up"),
        )
        with skerry.connect(second.url) as other, skerry.connect(first.url) as connection:
            query = other.cursor().execute("SELECT n", detach=True).query_id
            assert connection.status(query).state == "running"
            assert [info.query for info in connection.queries("bergen")] == [query]
            assert connection.queries() == ()
            assert connection.attach(str(query)).fetchall() == EVERY  # its short form, as in logs
            second.wait_for(ClientClose)  # a cursor that was attached to is kept until its client says it has all
            connection.cancel(query)
            assert {close.query for close in second.wait_for(ClientClose, 2)} == {query}
            with pytest.raises(skerry.ProgrammingError, match="there is no member tromso; there are oslo, bergen"):
                connection.status(QueryId("tromso", "a"))
            with pytest.raises(skerry.ProgrammingError, match="member oslo knows no query whose id begins abc"):
                connection.attach("oslo/abc")
            with pytest.raises(skerry.ProgrammingError, match="is no query id"):
                connection.attach("abc")
        second.wait_for(Goodbye, 2)


# --- the core --------------------------------------------------------------------------------------
def test_the_core_attaches_where_its_pages_ended() -> None:
    core = CursorCore(QueryId("oslo", "0"), count(1), resumes=True)
    core.execute("q", [], size=SIZE, now=0.0)
    core.receive(ClientResult(1, Schema((), b""), Page(0, (), 1, False)), 0.0)
    core.take()
    core.ask(4, SIZE)
    core.receive(ClientPage(2, Page(1, (), 1, False)), 0.0)
    core.lost(SiteError("gone"))
    assert core.requests == ()
    assert core.ask(9, SIZE) == []  # nothing can be asked without a connection
    core.receive(ClientPage(2, Page(2, (), 1, False)), 0.0)  # late, from a buffer: it comes again
    attach = core.resume(0.0)
    assert isinstance(attach, ClientAttach)
    assert attach.page_number == 2
    assert core.resume(0.0) is None
    core.receive(ClientResult(attach.request, Schema((), b""), Page(2, (), 1, True)), 0.0)
    assert core.phase is Phase.ENDED
    assert core.rows_received == 3


@pytest.mark.parametrize(
    ("second", "error"),
    [(Failure(100, "used before"), Cancelled), (Failure(300, "site down"), SiteError)],
    ids=["it had arrived", "it had not"],
)
def test_an_execute_said_again_is_refused(second: Failure, error: type[Exception]) -> None:
    core = CursorCore(QueryId("oslo", "0"), count(1), resumes=True)
    core.execute("q", [], size=SIZE, now=0.0)
    core.lost(SiteError("gone"))
    attach = core.resume(0.0)
    assert attach is not None
    (again,) = core.receive(ClientResult(attach.request, error=Failure(103, "not open here")), 0.0)
    assert isinstance(again, ClientExecute)
    assert (again.query, again.sql) == (core.query, "q")
    assert core.receive(ClientResult(again.request, error=second), 0.0) == []
    assert isinstance(core.error, error)


CHANGE, READ = "DELETE FROM orders", "SELECT n FROM orders"


@pytest.mark.parametrize(("sql", "after_s"), [(CHANGE, REPEAT_S), (READ, 10 * REPEAT_S)], ids=["change", "read"])
@pytest.mark.parametrize("options", [{}, {DETACH: "1"}], ids=["attached", "detached"])
def test_an_execute_that_was_lost_is_said_again(sql: str, after_s: float, options: dict[str, str]) -> None:
    """A change only while its member surely knows the id, if it ever had it; what only reads at any time."""
    core = lost_execute(sql, options)
    again: Message | None = core.resume(7.0 + after_s)
    if not options:
        assert isinstance(again, ClientAttach)
        (again,) = core.receive(ClientResult(again.request, error=Failure(103, "not open here")), 7.0 + after_s)
    assert isinstance(again, ClientExecute)
    assert (again.query, again.sql) == (core.query, sql)


@pytest.mark.parametrize("options", [{}, {DETACH: "1"}], ids=["attached", "detached"])
def test_a_change_that_may_have_run_and_been_forgotten_is_not_said_again(options: dict[str, str]) -> None:
    core = lost_execute(CHANGE, options)
    late = 7.0 + REPEAT_S + 1
    attach = core.resume(late)
    if not options:
        assert isinstance(attach, ClientAttach)
        assert core.receive(ClientResult(attach.request, error=Failure(103, "not open here")), late) == []
    else:
        assert attach is None
    assert (core.phase, core.requests, core.ready) == (Phase.FAILED, (), True)
    assert isinstance(core.error, OutcomeUnknown)
    assert "was carried out is not known: the connection was lost" in core.error.message
    assert ("not open here" in core.error.message) is not bool(options)
    assert "query_id=cursor.query_id" in core.error.suggestion


def test_an_attach_that_waited_long_is_not_followed_by_a_change() -> None:
    core = lost_execute(CHANGE, {})
    attach = core.resume(8.0)
    assert attach is not None
    assert core.receive(ClientResult(attach.request, error=Failure(103, "gone")), 8.0 + REPEAT_S) == []
    assert core.phase is Phase.FAILED


def lost_execute(sql: str, options: dict[str, str]) -> CursorCore:
    core = CursorCore(QueryId("oslo", "0"), count(1), resumes=True)
    core.execute(sql, [], size=SIZE, options=options, now=7.0)
    core.lost(SiteError("gone"))
    return core


def test_a_schema_that_changes_between_connections_is_the_members_fault() -> None:
    answers = Answers({"q": NUMBERS}, page_rows=64)

    def script(peer: Peer, message: Message) -> None:
        if isinstance(message, ClientFetch):
            peer.reset()
        elif isinstance(message, ClientAttach):
            other = pa.table({"m": [1.5]})
            peer.send(
                ClientResult(message.request, schema_of(other), page_of(other, message.page_number, is_last=True))
            )
        else:
            answers(peer, message)

    with (
        member_with(script) as member,
        skerry.connect(member.url, resume_s=20) as connection,
        pytest.raises(skerry.OperationalError, match="its columns changed"),
    ):
        connection.cursor().execute("q").fetchall()


def test_reads_run_elsewhere_when_the_member_is_stopping() -> None:
    def stopping(member: str) -> Failure:
        return Failure(SiteStopping.code, f"site {member} is stopping; ask another member", member)

    # A site that the member needs is no reason to ask somebody else.
    here = Answers({"SELECT n": stopping("oslo"), "DELETE n": stopping("oslo"), "SELECT m": stopping("tromso")})
    with member_with(here) as first, member_with(Answers({"SELECT n": NUMBERS}, name="bergen")) as second:
        here.members = (
            MemberState("oslo", f"127.0.0.1:{first.port}", "data", "stopping"),
            MemberState("bergen", f"127.0.0.1:{second.port}", "data", "up"),
        )
        with skerry.connect(first.url, retry="reads") as connection:
            for sql, site in (("DELETE n", "oslo"), ("SELECT m", "tromso")):
                with pytest.raises(skerry.OperationalError, match=f"site {site} is stopping"):
                    connection.cursor().execute(sql)
            cursor = connection.cursor()
            assert cursor.execute("SELECT n").fetchall() == EVERY
            assert cursor.query_id.initiator == connection.member == "bergen"
        with skerry.connect(first.url) as connection, pytest.raises(skerry.OperationalError, match="is stopping"):
            connection.cursor().execute("SELECT n")
