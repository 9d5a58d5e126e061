"""Definitions in a world where messages are lost, doubled and late, and members lose what was not written."""

from __future__ import annotations

from random import Random

import msgspec
import pytest

from skerry.model.errors import PeerError, SiteError, UserError
from skerry.model.ids import QueryId
from skerry.model.limits import DEFINE_WAIT_S
from skerry.model.sharded import (
    Alter,
    BucketMap,
    Catalogue,
    Create,
    Definition,
    Drop,
    OwnColumn,
    OwnTable,
    Wish,
    numbered,
)
from skerry.tables.catalogue import Follower, Instruction, Keep, Keeper, Kept, Send, altered, check_catalogue, first_map
from skerry.wire.definition_messages import Define, Defined, Definitions, KnownDefinitions

MEMBERS = ("oslo", "bergen", "tromso")


def table(name: str, number: int = 0, **changed: object) -> OwnTable:
    made = OwnTable(number, name, number, (OwnColumn("id", "bigint", False),), ("id",), ("id",), MEMBERS)
    return msgspec.structs.replace(made, **changed)


def keeper(kept: Kept = Kept()) -> Keeper:  # noqa: B008 (frozen)
    return Keeper("oslo", kept, frozenset({"orders"}), frozenset(MEMBERS))


class World:
    """oslo keeps, the others follow; each has a disk, and what it was told to write is there some time later."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now = 0.0
        self.disks = dict.fromkeys(MEMBERS, Kept())
        self.writing: list[tuple[str, int, Kept]] = []
        self.mail: list[tuple[str, str, object]] = []
        self.lives = dict.fromkeys(MEMBERS, 0)
        self.answers: dict[QueryId, list[Defined]] = {}
        self.start("oslo")
        self.followers: dict[str, Follower] = {}
        for name in MEMBERS[1:]:
            self.start(name)

    def start(self, name: str) -> None:
        self.lives[name] += 1
        if name == "oslo":
            self.keeper = keeper(self.disks["oslo"])
        else:
            self.followers[name] = Follower(name, "oslo", self.disks[name])
            self.do(name, self.followers[name].up())

    def do(self, name: str, instructions: list[Instruction]) -> None:
        for each in instructions:
            if isinstance(each, Keep):
                self.writing.append((name, self.lives[name], each.kept))
            elif isinstance(each.message, Defined):
                self.answers.setdefault(each.message.query, []).append(each.message)
            else:
                self.mail.append((name, each.to, each.message))

    def define(self, query: QueryId, wish: Wish) -> None:
        up = [name for name in MEMBERS if self.random.random() < 0.8]
        self.do("oslo", self.keeper.define("bergen", Define(query, wish), up, self.now))

    def step(self) -> None:
        self.now += self.random.choice((0.01, 0.1, 2.0))
        if self.writing and self.random.random() < 0.5:
            # A disk writes in the order in which it was asked.
            name, life, kept = self.writing.pop(0)
            if life == self.lives[name]:
                if kept.catalogue.version >= self.disks[name].catalogue.version:
                    self.disks[name] = kept
                is_keeper = name == "oslo"
                told = self.keeper.kept(kept.catalogue, MEMBERS, self.now) if is_keeper else []
                self.do(name, told if is_keeper else self.followers[name].kept(kept.catalogue))
        if self.mail:
            sender, to, message = self.mail[place := self.random.randrange(len(self.mail))]
            if self.random.random() < 0.8:  # else it comes again
                del self.mail[place]
            if self.random.random() < 0.8:  # else it is lost
                self.deliver(sender, to, message)
        if self.random.random() < 0.03:
            self.start(self.random.choice(MEMBERS))
        if self.random.random() < 0.1:
            peer = self.random.choice(MEMBERS[1:])
            self.do("oslo", self.keeper.lost(peer, self.now))
            self.do(peer, self.followers[peer].up())
        self.do("oslo", self.keeper.tick(self.now))

    def deliver(self, sender: str, to: str, message: object) -> None:
        if isinstance(message, KnownDefinitions):
            self.do("oslo", self.keeper.known(sender, message, self.now))
        elif isinstance(message, Definitions):
            self.do(to, self.followers[to].told(sender, message))

    def quiet(self) -> None:
        """Nothing is lost any more, and everybody looks for the keeper."""
        while self.writing or self.mail:
            self.mail = self.mail[:50]
            for entry in self.mail:
                self.deliver(*entry)
            self.mail = []
            for name, life, kept in self.writing:
                if life == self.lives[name] and kept.catalogue.version >= self.disks[name].catalogue.version:
                    self.disks[name] = kept
            done, self.writing = self.writing, []
            for name, life, kept in done:
                if life == self.lives[name]:
                    is_keeper = name == "oslo"
                    told = self.keeper.kept(kept.catalogue, MEMBERS, self.now) if is_keeper else []
                    self.do(name, told if is_keeper else self.followers[name].kept(kept.catalogue))


def changed(before: OwnTable, random: Random) -> Alter:
    """A column comes, one that is not the key goes, all have other names."""
    key, *others = numbered(before).columns
    added = OwnColumn(f"c{random.randrange(99)}", random.choice(("int", "string", "date")))
    names = random.sample("defgh", min(2, len(others)))
    left = [msgspec.structs.replace(each, name=name) for each, name in zip(others[-2:], names, strict=True)]
    return Alter(msgspec.structs.replace(numbered(before), columns=(key, *left, added)))


@pytest.mark.parametrize("seed", range(40))
def test_what_was_answered_is_kept_once_and_everybody_learns_it(seed: int) -> None:
    world = World(seed)
    random = world.random
    wishes: dict[QueryId, Wish] = {}
    numbers: dict[int, str] = {}
    columns: dict[tuple[int, int], str] = {}
    versions = dict.fromkeys(MEMBERS, 0)
    for step in range(150):
        if step % 6 == 0:
            known = world.disks["oslo"].catalogue.definitions
            query = QueryId("bergen", f"q{step}")
            wishes[query] = Create(table(random.choice("abcd")))
            if known and random.random() < 0.4:
                gone = random.choice(known).table
                wishes[query] = Drop(gone.id, gone.name)
            elif known and random.random() < 0.6:
                wishes[query] = changed(random.choice(known).table, random)
        query = random.choice(list(wishes))  # said for the first time, or again
        world.define(query, wishes[query])
        world.step()
        for name, kept in world.disks.items():
            assert kept.catalogue.version >= versions[name]
            versions[name] = kept.catalogue.version
            check_catalogue(kept.catalogue)
            for each in kept.catalogue.definitions:
                # A number means one table for ever, and one column of it.
                made = f"{each.table.name} {each.table.made or each.table.version}"
                assert numbers.setdefault(each.table.id, made) == made
                for column in each.table.columns if each.table.next_column else ():
                    assert columns.setdefault((each.table.id, column.id), column.type) == column.type
        for answers in world.answers.values():
            # What was answered is on the keeper's disk.
            assert all(answer.version <= versions["oslo"] for answer in answers)
        # Each statement was obeyed once, however often it was said.
        creates = sum(isinstance(wish, Create) for wish in wishes.values())
        assert versions["oslo"] <= len(wishes)
        assert world.disks["oslo"].catalogue.next_id - 1 <= creates
    for name in MEMBERS[1:]:
        world.do(name, world.followers[name].up(asks=True))
    world.quiet()
    world.do("bergen", world.followers["bergen"].up())
    world.quiet()
    assert len({msgspec.msgpack.encode(kept.catalogue) for kept in world.disks.values()}) == 1
    # Nobody's disk was ever another one. One that is now is told so, and remembers it.
    assert {kept.lost_upto for kept in world.disks.values()} == {0}
    upto = world.disks["oslo"].catalogue.version
    assert dict(world.disks["oslo"].had) == {"bergen": upto, "tromso": upto}
    world.disks["bergen"] = Kept()
    for _ in range(2):
        world.start("oslo")
        world.start("bergen")
        world.quiet()
        world.define(QueryId("bergen", f"late {world.lives['oslo']}"), Create(table(f"late{world.lives['oslo']}")))
        world.quiet()
        assert (world.disks["bergen"].lost_upto, world.disks["tromso"].lost_upto) == (upto, 0)
    assert any(answer.failure is None for answers in world.answers.values() for answer in answers)


def answer_of(instructions: list[Instruction]) -> Defined:
    (answer,) = (each.message for each in instructions if isinstance(each, Send) and isinstance(each.message, Defined))
    return answer


def test_what_the_keeper_refuses() -> None:
    core = keeper()
    forged = table("Events", next_column=7, made=9)
    (kept,) = core.define("bergen", Define(QueryId("bergen", "1"), Create(forged)), (), 0.0)
    assert isinstance(kept, Keep)
    assert kept.kept.catalogue.definitions[0].table == table("Events", 1)
    assert [each.buckets for each in kept.kept.catalogue.definitions] == [
        BucketMap(1, 1, ((0, 5461, "oslo"), (5461, 10922, "bergen"), (10922, 16384, "tromso")))
    ]
    wrong = {
        "exists already": table("eVENTS"),
        "is in the configuration": table("ORDERS"),
        "no PRIMARY KEY": table("t", primary_key=()),
        "printable": table("a\nb"),
        "not among": table("t", members=("oslo", "nowhere")),
        "fewer buckets": table("t", buckets=2),
    }
    for words, made in wrong.items():
        answer = answer_of(core.define("bergen", Define(QueryId("bergen", words), Create(made)), (), 0.0))
        assert answer.failure is not None
        assert (answer.failure.code, words in answer.failure.message) == (UserError.code, True), answer
    events = numbered(kept.kept.catalogue.definitions[0].table)
    (key,) = events.columns
    renamed, added = msgspec.structs.replace(key, name="no"), OwnColumn("x", "int")
    for words, wanted in {
        "has changed, or is gone": msgspec.structs.replace(events, version=9),
        "a number that is none": msgspec.structs.replace(events, columns=(key, OwnColumn("x", "int", id=5))),
        "only the name can change": msgspec.structs.replace(events, columns=(OwnColumn("id", "int", False, id=1),)),
        "PRIMARY KEY, and stays": msgspec.structs.replace(events, columns=(added,)),
        "give it a DEFAULT": msgspec.structs.replace(events, columns=(key, OwnColumn("x", "int", False))),
        "no constant of its type": msgspec.structs.replace(events, columns=(key, OwnColumn("x", "int", True, "now()"))),
        "named twice": msgspec.structs.replace(events, columns=(key, added, added)),
    }.items():
        answer = answer_of(core.define("bergen", Define(QueryId("bergen", words), Alter(wanted)), (), 0.0))
        assert answer.failure is not None
        assert words in answer.failure.message
    alter = Alter(msgspec.structs.replace(events, columns=(renamed, added)))
    (kept,) = core.define("bergen", Define(QueryId("bergen", "alter"), alter), (), 0.0)
    assert isinstance(kept, Keep)
    (found,) = (each.table for each in kept.kept.catalogue.definitions)
    assert (found.primary_key, found.distributed_by, found.version, found.made) == (("no",), ("no",), 2, 1)
    assert ([column.id for column in found.columns], found.next_column) == ([1, 2], 3)
    # The number of one that goes is never another's.
    without = altered(found, msgspec.structs.replace(found, columns=found.columns[:1]))
    again = altered(without, msgspec.structs.replace(without, columns=(*without.columns, added)))
    assert [column.id for column in again.columns] == [1, 3]
    # A member that knows more than the keeper: its disk is not the newest, and it would number tables twice.
    core.known("tromso", KnownDefinitions("tromso", 9), 0.0)
    late = answer_of(core.define("bergen", Define(QueryId("bergen", "2"), Create(table("t"))), (), 0.0))
    assert late.failure is not None
    assert (late.failure.code, "tromso knows later" in late.failure.message) == (SiteError.code, True)
    # Until it says otherwise; and no number that cannot be is believed.
    core.known("tromso", KnownDefinitions("tromso", 1), 0.0)
    with pytest.raises(PeerError, match="cannot be"):
        core.known("bergen", KnownDefinitions("bergen", 1 << 60), 0.0)
    (kept,) = core.define("bergen", Define(QueryId("bergen", "3"), Create(table("t"))), (), 0.0)
    assert isinstance(kept, Keep)


def test_who_is_slow_is_not_waited_for_for_ever_and_others_are_not_believed() -> None:
    core, query = keeper(), QueryId("bergen", "1")
    (kept,) = core.define("bergen", Define(query, Create(table("t"))), MEMBERS, 0.0)
    assert isinstance(kept, Keep)
    catalogue = kept.kept.catalogue
    told = core.kept(catalogue, MEMBERS, 0.0)
    assert told == [Send(name, Definitions(catalogue)) for name in ("bergen", "tromso")]
    (noted,) = core.known("bergen", KnownDefinitions("bergen", 1), 0.1)
    assert isinstance(noted, Keep)
    assert noted.kept.had == (("bergen", 1),)
    assert core.known("bergen", KnownDefinitions("bergen", 1), 0.1) == []
    assert core.tick(DEFINE_WAIT_S - 0.1) == []
    assert answer_of(core.tick(DEFINE_WAIT_S)).version == 1
    with pytest.raises(PeerError, match="speaks for"):
        core.known("bergen", KnownDefinitions("tromso", 1), 0.1)
    with pytest.raises(PeerError, match="only oslo keeps"):
        Follower("bergen", "oslo", Kept()).told("tromso", Definitions(catalogue))
    good = catalogue.definitions[0].table
    for wrong in (
        Definition(good, BucketMap(1, 1, ((0, 10, "oslo"), (11, good.buckets, "bergen")))),
        Definition(table("u", 5), first_map(table("u", 5))),
        Definition(table("t", 1, primary_key=()), first_map(good)),
    ):
        with pytest.raises(PeerError, match="definition of table"):
            check_catalogue(Catalogue(1, 2, (wrong,)))
