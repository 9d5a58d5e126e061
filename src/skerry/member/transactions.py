"""Transactions of several statements that are open at this member: whose they are, what they hold, when they end.

All of one is here, in memory: other members hear of it when it reads, and when it commits. Nothing is locked before.
"""

from __future__ import annotations

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Callable, Iterator

from skerry.member import clock
from skerry.member.initiator import Reading
from skerry.member.requests import CountAnswer, RunStatement
from skerry.model import trace
from skerry.model.amounts import counted
from skerry.model.errors import Overloaded, RolledBack, SiteError, SqlError, UserError
from skerry.model.fragment import Plan, TableLeaf
from skerry.model.ids import QueryId
from skerry.model.limits import (
    COMPUTED_BYTES,
    COMPUTED_ROWS,
    TRANSACTION_COUNTS,
    TRANSACTIONS_BYTES,
    TRANSACTIONS_DOUBTED,
    TRANSACTIONS_ENDED,
    Limits,
)
from skerry.model.progress import QueryInfo
from skerry.tables.transaction import Transaction


class Open:
    """One that has begun. `turn`: its writes, and its end, come one after the other.

    `tables_upto`: the number that the next table would have had when it began.
    """

    def __init__(
        self,
        query: QueryId,
        begun_by: RunStatement,
        client: str,
        resume_s: float,
        held: Transaction,
        tables_upto: int,
    ) -> None:
        self.query = query
        self._tables_upto = tables_upto
        self.begun_by = begun_by.query
        self.user = begun_by.user
        self.share = begun_by.share
        self.session = begun_by.session
        self.client = client
        self.resume_s = resume_s
        self.held = held
        self.turn = asyncio.Lock()
        self.began_at = self.idle_since = clock.now()
        self.gone_until: float | None = None  # its client's connection is lost
        self.running = 0
        self.commit: tuple[QueryId, asyncio.Future[CountAnswer]] | None = None
        self.counts: OrderedDict[QueryId, CountAnswer] = OrderedDict()
        self.is_doubted = False  # a COMMIT of it was sent, and nobody has told what came of it
        self.over: RolledBack | None = None  # why nothing comes of it any more

    @property
    def state(self) -> str:
        """For lists of what runs."""
        return "committing" if self.commit is not None else f"in transaction ({counted(self.held.rows)} changed)"

    def check(self) -> None:
        """RolledBack if it is over."""
        if self.over is not None:
            raise RolledBack(self.over.message, suggestion=self.over.suggestion)

    def check_made(self, table: int, name: str) -> None:
        """SiteError for a table that was not known when it began: at its moment another may have had this name.

        By number, for the clocks of who made the table and of who began the transaction may differ.
        """
        if table >= self._tables_upto:
            raise SiteError(
                f"table {name} cannot be read or written in this transaction: it was made later than that began",
                suggestion="ROLLBACK, and begin it again",
            )

    def counted(self, query: QueryId, answer: CountAnswer) -> None:
        """For a client that lost the answer, and says the statement again."""
        self.counts[query] = answer
        if len(self.counts) > TRANSACTION_COUNTS:
            self.counts.popitem(last=False)


class Transactions:
    """Belongs to the member's loop."""

    def __init__(self, member: str, limits: Limits, now_ts: Callable[[], int], tables_upto: Callable[[], int]) -> None:
        """`tables_upto`: the number of the next table, as far as it is known here."""
        self._member = member
        self._limits = limits
        self._now_ts = now_ts
        self._tables_upto = tables_upto
        self._open: dict[str, Open] = {}
        self._ended: OrderedDict[str, tuple[str, str]] = OrderedDict()  # whose it was, and why it ended
        self._commits: OrderedDict[QueryId, tuple[str, CountAnswer]] = OrderedDict()
        self._doubted: OrderedDict[QueryId, Open] = OrderedDict()

    def __len__(self) -> int:
        return len(self._open)

    # --- life ---------------------------------------------------------------------------------------------------------
    def begin(self, statement: RunStatement, client: str, resume_s: float) -> Open:
        """Said again, it is the one that has begun."""
        for each in self._open.values():
            if each.begun_by == statement.query:
                return each
        limits = self._limits
        if len(self._open) >= limits.transactions:
            raise Overloaded(
                f"{len(self._open)} transactions are open at {self._member} (limits.transactions)",
                suggestion="try again shortly",
            )
        of_user = sum(each.share == statement.share for each in self._open.values())
        if of_user >= limits.transactions_of_user:
            raise Overloaded(
                f"you have {of_user} transactions open at {self._member} (limits.transactions_of_user)",
                suggestion="COMMIT or ROLLBACK some of them; skerry ps shows them",
            )
        held = Transaction(self._now_ts(), COMPUTED_ROWS, min(COMPUTED_BYTES, limits.frame_bytes // 2))
        query = QueryId(self._member, uuid.uuid4().hex)
        begun = Open(query, statement, client, resume_s, held, self._tables_upto())
        self._open[begun.query.local] = begun
        return begun

    def find(self, statement: RunStatement) -> Open | None:
        """The one that the statement belongs to, if it is open, and of the user who asks."""
        found = self._open.get(statement.transaction)
        return found if found is not None and found.user == statement.user else None

    def of(self, statement: RunStatement) -> Open:
        """RolledBack if there is none."""
        found = self.find(statement)
        if found is None:
            user, why = self._ended.get(statement.transaction, ("", ""))
            known = f": {why}" if why and user == statement.user else ", or the member was restarted"
            raise RolledBack(
                f"the transaction is not open at {self._member}: it was rolled back{known}",
                suggestion="ROLLBACK, and begin it again",
            )
        found.check()
        return found

    def committed(self, statement: RunStatement) -> CountAnswer | Open | None:
        """What became of this very COMMIT, which was said before; or the transaction, while it is under way."""
        for each in self._open.values():
            if each.commit is not None and each.commit[0] == statement.query and each.user == statement.user:
                return each
        if (doubted := self._doubted.get(statement.query)) is not None and doubted.user == statement.user:
            return doubted
        user, answer = self._commits.get(statement.query, ("", None))
        return answer if user == statement.user else None

    def doubt(self, ended: Open) -> None:
        """What came of its COMMIT is not known: said again, that commits the same rows, if it has not done so."""
        assert ended.commit is not None
        query, ended.commit = ended.commit[0], None
        self.end(ended, "what came of its COMMIT is not known")
        ended.is_doubted = True
        self._doubted[query] = ended
        if len(self._doubted) > TRANSACTIONS_DOUBTED:
            self._doubted.popitem(last=False)

    def end(self, ended: Open, why: str, answer: CountAnswer | None = None) -> None:
        """What it held is forgotten. `answer`: to its COMMIT."""
        if ended.commit is not None:
            self._doubted.pop(ended.commit[0], None)
            if answer is not None:
                self._commits[ended.commit[0]] = ended.user, answer
                if len(self._commits) > TRANSACTIONS_ENDED:
                    self._commits.popitem(last=False)
        if self._open.pop(ended.query.local, None) is None:
            return
        ended.over = RolledBack(f"transaction {ended.query} is over: {why}", suggestion="begin it again")
        self._ended[ended.query.local] = ended.user, why
        while len(self._ended) > TRANSACTIONS_ENDED:
            self._ended.popitem(last=False)

    def roll_back(self, ended: Open, why: str) -> None:
        """Unless it is being committed: that goes on."""
        if ended.commit is None and ended.query.local in self._open:
            trace.emit(
                trace.WorkGivenUp(f"transaction {ended.query}", trace.Cause(why, RolledBack.code, may_quote=False))
            )
            self.end(ended, why)

    # --- who is there -------------------------------------------------------------------------------------------------
    def enter(self, statement: RunStatement) -> Open | None:
        """A statement of it begins: its client is there."""
        if (found := self.find(statement)) is not None:
            found.running += 1
            found.session, found.gone_until = statement.session, None
        return found

    def leave(self, left: Open | None) -> None:
        if left is not None:
            left.running -= 1
            left.idle_since = clock.now()

    def gone(self, session: str, *, is_goodbye: bool) -> None:
        """The connection has ended. A client that may come back has its time for that."""
        for each in list(self._open.values()):
            if each.session == session:
                if is_goodbye or each.resume_s <= 0:
                    self.roll_back(each, "its client went away")
                else:
                    each.gone_until = clock.now() + each.resume_s

    def expire(self, now: float) -> None:
        limits = self._limits
        for each in list(self._open.values()):
            if each.gone_until is not None and now >= each.gone_until:
                self.roll_back(each, "its client went away")
            elif now - each.began_at >= limits.transaction_s:
                self.roll_back(each, f"it was open for {limits.transaction_s:g} s (limits.transaction_s)")
            elif not each.running and now - each.idle_since >= limits.transaction_idle_s:
                idle = f"no statement came for {limits.transaction_idle_s:g} s (limits.transaction_idle_s)"
                self.roll_back(each, idle)

    def stop(self) -> None:
        for each in list(self._open.values()):
            self.roll_back(each, f"site {self._member} is stopping")

    # --- what is told -------------------------------------------------------------------------------------------------
    def named(self, query: QueryId) -> Open | None:
        found = self._open.get(query.local)
        return found if found is not None and found.query == query else None

    def infos(self, user: str | None) -> Iterator[QueryInfo]:
        """Those of one user, or (None) of all."""
        now = clock.now()
        for each in self._open.values():
            if user is None or each.user == user:
                held = each.held
                members = tuple(sorted(held.parts("", ())))
                seconds = now - each.began_at
                yield QueryInfo(each.query, "BEGIN", each.client, each.state, seconds, 0, held.size_bytes, (), members)

    def room(self, besides: Open) -> int:
        """Bytes of memory that this one may hold."""
        return TRANSACTIONS_BYTES - sum(each.held.memory_bytes for each in self._open.values() if each is not besides)

    def reading(self, statement: RunStatement, plan: Plan, as_of: int, tables: dict[str, int]) -> Reading:
        """How a query of the transaction reads tables of our own, whose numbers are `tables`, by name in lower case."""
        if as_of:
            raise SqlError("AS OF is not there within a transaction", suggestion="COMMIT or ROLLBACK first")
        found = self.of(statement)
        leaves = (leaf for fragment in plan.fragments for leaf in fragment.leaves if isinstance(leaf, TableLeaf))
        read = set[int]()
        for name in {leaf.table.lower(): leaf.table for leaf in leaves if leaf.table.lower() in tables}.values():
            read.add(tables[name.lower()])
            found.check_made(tables[name.lower()], name)
        if not read:
            return Reading()
        return Reading(found.held.read_ts, found.held.changes(read.__contains__))


def refuse_within(what: str) -> UserError:
    return SqlError(
        f"{what} cannot be part of a transaction", suggestion="COMMIT or ROLLBACK first: it commits by itself"
    )
