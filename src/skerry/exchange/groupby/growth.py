"""How an elastic group-by grows, at its manager: wishes to split, candidates, the table in force. Pure.

One split is under way at a time, so there is one next table; other wishes wait (docs/protocol.md, 16.2).
"""

from __future__ import annotations

from collections.abc import Mapping

from skerry.exchange.groupby.contract import Instruction, Send
from skerry.exchange.groupby.sayings import Sayings
from skerry.exchange.groupby.splitting import SplitPhase, Splitting
from skerry.model.errors import PeerError
from skerry.model.ids import GroupById
from skerry.model.limits import GroupByLimits
from skerry.model.ranges import first_table
from skerry.wire.groupby_messages import Dismiss, HandOver, Recruit, Redirect, Spill, Split


class Growth:
    """`table` has only workers that are online. `candidates`: who may be recruited, and how much each can take."""

    def __init__(
        self, group: GroupById, me: str, candidates: Mapping[str, int], limits: GroupByLimits, sayings: Sayings
    ) -> None:
        self.table = first_table(me)
        self.split: Splitting | None = None
        self.splits = 0
        self.dismissed: set[str] = set()  # were asked, are not needed, and have not said that nothing is left
        self._group = group
        self._me = me
        self._candidates = {name: room for name, room in candidates.items() if room > 0 and name != me}
        self._limits = limits
        self._sayings = sayings
        self._epochs = self.table.epoch  # numbers that were given out
        self._wishes: dict[str, Split] = {}
        self._answered: dict[str, int] = {}  # the number of each worker's last wish that has its answer
        self._spilled: dict[str, int] = {}  # and of the last one that had no other answer than Spill

    @property
    def workers(self) -> tuple[str, ...]:
        """All that have said to be workers, and this member, which forwards what still comes to it."""
        taken = self.split.taken if self.split is not None else ()
        return tuple(dict.fromkeys((self._me, *self.table.members, *taken)))

    @property
    def asked(self) -> tuple[str, ...]:
        return tuple(self.split.asked) if self.split is not None else ()

    @property
    def handed(self) -> tuple[str, ...]:
        """Recruits that have some of the state, or will."""
        is_handing = self.split is not None and self.split.phase is SplitPhase.HANDING
        return tuple(self.split.taken) if self.split is not None and is_handing else ()

    @property
    def deadline(self) -> float | None:
        return min(self.split.asked.values(), default=None) if self.split is not None else None

    # --- wishes ----------------------------------------------------------------------------------
    def wished(self, sender: str, wish: Split, now: float) -> list[Instruction]:
        """A wish that comes again has its answer, or waits. One of a worker not yet in the table is said again."""
        if wish.number <= self._spilled.get(sender, 0):
            return [Send(sender, Spill(self._group, wish.number))]
        is_under_way = self.split is not None and self.split.splitter == sender
        if wish.number <= self._answered.get(sender, 0) or is_under_way or sender not in self.table.members:
            return []
        if not any(each.first < wish.at < each.upto for each in self.table.of(sender)):
            raise PeerError(f"{self._group}: {sender} wants to split at {wish.at}, which is not inside its range")
        self._wishes[sender] = wish
        return self._next(now)

    def _next(self, now: float) -> list[Instruction]:
        """The oldest wish, if nothing else is under way."""
        if self.split is not None or not self._wishes:
            return []
        splitter, wish = next(iter(self._wishes.items()))
        del self._wishes[splitter]
        if not self._candidates:
            return [*self._refuse(splitter, wish), *self._next(now)]
        self._epochs += 1
        wanted = self._limits.first_recruits if self.table.members == (self._me,) else 1
        self.split = Splitting(splitter, wish, self._epochs, wanted)
        return self._recruit(self.split, now)

    def _refuse(self, splitter: str, wish: Split) -> list[Instruction]:
        self._answered[splitter] = self._spilled[splitter] = wish.number
        return [Send(splitter, Spill(self._group, wish.number))]

    # --- recruits --------------------------------------------------------------------------------
    def _recruit(self, split: Splitting, now: float) -> list[Instruction]:
        """Ask as many as are missing; when all have answered, go on with those that are there."""
        said: list[Instruction] = []
        while split.missing > 0 and self._candidates:
            member = max(self._candidates, key=lambda name: (self._candidates[name], name))
            del self._candidates[member]
            split.ask(member, now + self._limits.recruit_s)
            said.append(self._sayings.say(member, Recruit(self._group, split.epoch, split.splitter), now))
        if split.asked:
            return said
        if not split.taken:
            split.drop()
            self.split = None
            return [*said, *self._refuse(split.splitter, split.wish), *self._next(now)]
        table = split.hand(self.table)
        hand_over = HandOver(self._group, split.wish.number, table, tuple(split.taken))
        return [*said, self._sayings.say(split.splitter, hand_over, now)]

    def recruited(self, sender: str, is_taken: bool, now: float) -> list[Instruction]:
        self._sayings.answered(Recruit, sender)
        if self.split is None or sender not in self.split.asked:
            # It was passed over, and may have heard so before it heard of anything else.
            return [Send(sender, Dismiss(self._group))] if is_taken and sender not in self.workers else []
        if not is_taken:
            return self.strike(sender, now)
        self.split.took(sender)
        return self._recruit(self.split, now)

    def strike(self, member: str, now: float) -> list[Instruction]:
        """Another is asked in the place of one that has nothing yet. It may have heard of all this or not."""
        split = self.split
        if split is None or not split.strike(member):
            return []
        self._sayings.answered(Recruit, member)
        self.dismissed.add(member)
        dismiss = self._sayings.say(member, Dismiss(self._group), now)
        return [dismiss, *self._recruit(split, now)]

    def left(self, member: str) -> None:
        """Nothing is left at one that was dismissed, or it is lost."""
        self.dismissed.discard(member)
        self._sayings.answered(Dismiss, member)

    def online(self, sender: str, epoch: int, now: float) -> list[Instruction]:
        split = self.split
        if split is None or not split.came_online(sender, epoch):
            # It says so until it hears of the table that it is in.
            is_known = epoch <= self.table.epoch
            return [Send(sender, Redirect(self._group, self.table))] if is_known else []
        assert split.table is not None
        self.split, self.table = None, split.table
        self.splits += 1
        self._answered[split.splitter] = split.wish.number
        self._sayings.answered(HandOver, split.splitter)
        return self._next(now)

    def tick(self, now: float) -> list[Instruction]:
        overdue = self.split.overdue(now) if self.split is not None else []
        return [each for member in overdue for each in self.strike(member, now)]
