"""The rules file: what a user may do by its roles, and the place of every mistake."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from skerry.access.rulebook import Rulebook
from skerry.access.rules import Rules, parse_rules
from skerry.config import Config, parse
from skerry.model import trace
from skerry.model.config import AccessConfig
from skerry.model.errors import ConfigError
from skerry.model.rights import Rights, Seen

CONFIG = parse("""
cluster: c
members:
  oslo:
    address: 'h:1'
    tables:
      orders: {format: parquet, path: o}
      customers: {format: parquet, path: c, columns: {id: int, name: string, email: string, region: string}}
  bergen:
    address: 'h:2'
    tables:
      orders: {format: parquet, path: o}
      salaries: {format: parquet, path: s}
""")

GOOD = """
roles:
  public: []
  analyst:
    - {on: orders, select: true}
    - {on: oslo.*, select: [id, total]}
    - on: customers
      select: true
      where: "region = 'north' AND name = session_user()"
      masks: {email: "'***'", name: "left(name, 1)"}
  clerk:
    - {on: "*", select: true, insert: true}
    - {on: salaries}
    - {on: bergen.orders, select: [id]}
    - {queries: see}
  boss:
    - {queries: end}
users: {ann: [analyst], bob: [analyst, clerk], eve: [boss]}
everybody: [public]
"""


def rules(text: str = GOOD) -> Rules:
    return parse_rules(text, "rules.yaml", CONFIG)


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        rules(text)
    return caught.value.message.split("\n")


def test_what_no_rule_grants_nobody_may() -> None:
    for user, roles in (("nobody", ()), ("", ("clerk",)), ("carl", ("no such role",))):
        rights = rules().rights_of(user, roles)
        assert rights.seen("oslo", "orders").is_hidden
        assert not rights.may_see_queries
    assert rules().rights_of("ann").seen("bergen", "salaries").is_hidden


def test_a_rule_about_fewer_tables_counts_before_one_about_more() -> None:
    ann = rules().rights_of("ann")
    assert ann.seen("OSLO", "Orders").is_whole  # orders before oslo.*
    assert ann.seen("oslo", "customers").is_veiled  # customers before oslo.*
    clerk = rules().rights_of("x", ("clerk",))
    assert clerk.seen("oslo", "orders").is_whole
    assert clerk.seen("bergen", "orders").sights[0].columns == {"id"}  # bergen.orders before *
    assert clerk.seen("bergen", "salaries").is_hidden  # a rule without select shows nothing


def test_a_table_of_our_own_has_rules_before_it_is_made() -> None:
    ledger = rules("roles: {a: [{on: '*', select: true}, {on: oslo.ledger, own: true, select: [id]}]}")
    rights = ledger.rights_of("x", ("a",))
    assert rights.seen("oslo", "Ledger").sights[0].columns == {"id"}
    assert rights.seen("bergen", "ledger").is_whole


def test_roles_add_up() -> None:
    bob = rules().rights_of("bob")
    assert bob.seen("oslo", "customers").is_whole
    assert bob.seen("bergen", "orders").is_whole
    assert bob.seen("bergen", "salaries").is_hidden
    # A token's roles beside those of the file.
    assert rules().rights_of("ann", ("clerk",)).seen("oslo", "customers").is_whole


def test_queries_of_others() -> None:
    found = {user: rules().rights_of(user) for user in ("ann", "bob", "eve")}
    assert {user: (each.may_see_queries, each.may_end_queries) for user, each in found.items()} == {
        "ann": (False, False),
        "bob": (True, False),
        "eve": (True, True),
    }


def test_changes_are_kept_for_the_statements_that_will_ask() -> None:
    assert [each.changes for each in rules().roles["clerk"].rules][:2] == [frozenset({"insert"}), frozenset()]


def test_without_a_rules_file_everybody_may_do_everything() -> None:
    rights = Rulebook(CONFIG).rights_of("")
    assert rights.seen("oslo", "salaries") == Seen(Rights(is_open=True).seen("a", "b").sights)
    assert rights.may_end_queries


@pytest.mark.parametrize(
    ("line", "place", "words"),
    [
        ("{on: order, select: true}", "4:12", "no table order; did you mean orders?"),
        ("{on: bergen.customers, select: true}", "4:12", "no table bergen.customers"),
        ("{on: bergn.ledger, own: true, select: true}", "4:12", "no member bergn; did you mean bergen?"),
        ("{on: orders, own: true, select: true}", "4:12", "orders is not one table of our own: leave out own"),
        ("{on: oslo2.orders, select: true}", "4:12", "no member oslo2; did you mean oslo?"),
        ("{select: true}", "4:7", "on: missing"),
        ("{on: orders, selct: true}", "4:20", "unknown key; did you mean select?"),
        ("{on: orders, where: 'a = 1'}", "4:20", "select does not show them"),
        ("{on: customers, select: [ids]}", "4:32", "no column ids; did you mean id?"),
        ("{on: customers, select: [id], masks: {name: \"''\"}}", "4:45", "select does not show this column"),
        ("{on: customers, select: true, masks: {nam: \"''\"}}", "4:45", "no column nam"),
        ('{on: customers, select: true, where: "regio = 1"}', "4:44", "no column regio; did you mean region? (line 1"),
        ("{on: customers, select: true, masks: {id: \"'***'\"}}", "4:49", "cannot be cast to int, the type of id"),
        ('{on: orders, select: true, where: "id IN (SELECT 1)"}', "4:41", "no select in it"),
        ('{on: orders, select: true, where: "sum(id) > 1"}', "4:41", "sum is no function of one row"),
        ('{on: orders, select: true, where: "row_number() OVER (ORDER BY id) = 1"}', "4:41", "one row of its table"),
        ('{on: orders, select: true, where: "rand() > 0"}', "4:41", "another value each time"),
        ('{on: orders, select: true, where: "now() > d"}', "4:41", "another value each time"),
        ("{on: orders, select: true, where: \"java_method('a', 'b')\"}", "4:41", "not admitted"),
        ('{on: orders, select: true, where: "user = name"}', "4:41", "write session_user()"),
        ('{on: orders, select: true, where: "a = ?"}', "4:41", "a rule has no parameters"),
        ('{on: orders, select: true, where: "a = 1 FROM x"}', "4:41", "the expression should end here"),
        ('{on: orders, select: true, where: "a = 1; DROP"}', "4:41", ""),
        ("{queries: all}", "4:17", "expected see or end"),
    ],
)
def test_mistakes_have_places(line: str, place: str, words: str) -> None:
    (found,) = mistakes(f"\nroles:\n  a:\n    - {line}\n")
    assert found.startswith(f"rules.yaml:{place}: roles.a[0]"), found
    assert words in found


def test_one_rule_a_pattern_and_only_known_roles() -> None:
    text = "roles: {a: [{on: orders, select: true}, {on: ORDERS, select: [id]}]}\nusers: {ann: [b]}\neverybody: [c]\n"
    found = mistakes(text)
    assert [each.partition(": ")[2] for each in found] == [
        "roles.a[1]: the role has a rule about these tables already; write one",
        "users.ann[0]: no role b",
        "everybody[0]: no role c",
    ]


# --- the file --------------------------------------------------------------------------------------
def configured(path: Path) -> Config:
    return Config(CONFIG.cluster, CONFIG.data_root, CONFIG.members, access=AccessConfig(rules=str(path)))


def write(path: Path, text: str, tick: int) -> None:
    path.write_text(text)
    os.utime(path, (tick, tick))


def test_a_changed_file_is_read_again_and_a_wrong_one_is_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[trace.Event] = []
    monkeypatch.setattr(trace, "listeners", [events.append])
    path = tmp_path / "rules.yaml"
    write(path, "roles: {a: [{on: orders, select: true}]}\nusers: {ann: [a]}", 1)
    book = Rulebook(configured(path))
    assert book.rights_of("ann").seen("oslo", "orders").is_whole
    write(path, "roles: {a: [{on: ordrs, select: true}]}\nusers: {ann: [a], bob: [a]}", 2)
    for _ in range(3):
        assert book.rights_of("ann").seen("oslo", "orders").is_whole
        assert book.rights_of("bob").seen("oslo", "orders").is_hidden
    path.unlink()
    assert book.rights_of("ann").seen("oslo", "orders").is_whole
    write(path, "roles: {a: []}\nusers: {ann: [a]}", 3)
    assert book.rights_of("ann").seen("oslo", "orders").is_hidden
    assert [type(each).__name__ for each in events] == ["RulesRefused", "RulesRefused", "RulesRead"]
    assert f"{path}:1:18" in str(events[0])


def test_rules_that_others_could_write_are_read_when_they_no_longer_can(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    write(path, "roles: {a: [{on: orders, select: true}]}\nusers: {ann: [a]}", 1)
    book = Rulebook(configured(path))
    write(path, "roles: {a: []}\nusers: {ann: [a]}", 2)
    path.chmod(0o666)
    assert book.rights_of("ann").seen("oslo", "orders").is_whole
    path.chmod(0o644)
    assert book.rights_of("ann").seen("oslo", "orders").is_hidden


def test_a_member_does_not_start_with_rules_that_it_cannot_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        Rulebook(configured(tmp_path / "missing.yaml"))
