"""One split of an elastic group-by at its manager: recruit, hand over, online. Pure (docs/protocol.md, 16.2)."""

from __future__ import annotations

from skerry.model.ranges import RoutingTable, divided, halved
from skerry.model.transitions import Machine, Step, staying
from skerry.wire.groupby_messages import Split


class SplitPhase(Step):
    RECRUITING = "recruiting"  # some that were asked have not answered
    HANDING = "handing over"  # the splitter has the new table
    ONLINE = "online"  # all recruits have their shares
    DROPPED = "dropped"  # nobody could be recruited


class SplitEvent(Step):
    TAKEN = "a member became a worker"
    STRUCK = "a member refused, did not answer, or is lost"
    READY = "all that were asked have answered, and one is there"
    NOBODY = "nobody is left to ask"
    ONLINE = "a recruit is online"
    ALL_ONLINE = "all recruits are online"


_P, _E = SplitPhase, SplitEvent
# A recruit that is lost while it is handed its share is no event here: the group-by fails with it.
NEXT: dict[tuple[SplitPhase, SplitEvent], SplitPhase] = {
    **staying((_P.RECRUITING,), _E.TAKEN, _E.STRUCK),
    (_P.RECRUITING, _E.READY): _P.HANDING,
    (_P.RECRUITING, _E.NOBODY): _P.DROPPED,
    (_P.HANDING, _E.ONLINE): _P.HANDING,
    (_P.HANDING, _E.ALL_ONLINE): _P.ONLINE,
}


class Splitting:
    """`wanted` members take the splitter's whole range if they are two or more, or half of it if there is one.

    The first split wants several, so the manager's member folds no more; each later one wants one.
    """

    def __init__(self, splitter: str, wish: Split, epoch: int, wanted: int) -> None:
        self.splitter = splitter
        self.wish = wish
        self.epoch = epoch
        self.wanted = wanted
        self.asked: dict[str, float] = {}  # until when an answer is awaited
        self.taken: list[str] = []
        self.online: set[str] = set()
        self.table: RoutingTable | None = None
        self._life = Machine("split", f"{epoch} of {splitter}", NEXT, SplitPhase.RECRUITING)

    @property
    def phase(self) -> SplitPhase:
        return self._life.phase

    @property
    def missing(self) -> int:
        """How many more members are to be asked."""
        return self.wanted - len(self.asked) - len(self.taken)

    def ask(self, member: str, until: float) -> None:
        self.asked[member] = until

    def took(self, member: str) -> bool:
        """Whether this is its first answer to what was asked."""
        if self.phase is not SplitPhase.RECRUITING or self.asked.pop(member, None) is None:
            return False
        self._life.move(SplitEvent.TAKEN, f"{member} is recruited")
        self.taken.append(member)
        return True

    def strike(self, member: str) -> bool:
        """It shall have no part in this, if nothing was handed to it yet."""
        is_in = member in self.asked or member in self.taken
        if self.phase is not SplitPhase.RECRUITING or not is_in:
            return False
        self._life.move(SplitEvent.STRUCK, f"{member} is passed over")
        self.asked.pop(member, None)
        self.taken = [each for each in self.taken if each != member]
        return True

    def overdue(self, now: float) -> list[str]:
        return [member for member, until in self.asked.items() if now >= until]

    def hand(self, before: RoutingTable) -> RoutingTable:
        """All have answered: the table that will be."""
        self._life.move(SplitEvent.READY)
        at = self.wish.at
        if len(self.taken) == 1:
            self.table = halved(before, self.epoch, self.splitter, at, self.taken[0])
        else:
            self.table = divided(before, self.epoch, at, self.taken)
        return self.table

    def drop(self) -> None:
        self._life.move(SplitEvent.NOBODY)

    def came_online(self, member: str, epoch: int) -> bool:
        """Whether that was the last one."""
        if self.phase is not SplitPhase.HANDING or epoch != self.epoch or member not in self.taken:
            return False
        self._life.move(SplitEvent.ONLINE)
        self.online.add(member)
        return len(self.online) == len(self.taken) and self._life.move(SplitEvent.ALL_ONLINE)
