"""Row filters, masks and columns by the rules of each site, whichever member is asked and however it plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import skerry
from skerry.access.passwords import hash_password
from skerry.access.users import UsersFile
from skerry.config import load
from skerry.member.requests import PrepareStatement
from skerry.model.caller import Caller
from skerry.model.errors import SiteError, SkerryError, SqlError, UserError
from skerry.spark.engine import Engine
from skerry.testing.asking import ask
from skerry.testing.cluster import LocalCluster

pytestmark = pytest.mark.sail

RULES = """
roles:
  analyst:
    - {on: orders, select: [id, customer, total], where: "region = 'north'"}
    - {on: customers, select: true, masks: {email: "'***'", score: "-1"}}
    - {on: ledger, own: true, select: [id, total], where: "region = 'north'", masks: {total: "total * 10"}}
  north: [{on: orders, select: true, where: "region = 'north'"}, {on: customers, select: [id, name]}]
  own: [{on: orders, select: true, where: "owner = session_user()"}]
  part: [{on: oslo.orders, select: true}]
  mixed:
    - {on: orders, select: true}
    - {on: oslo.orders, select: true, masks: {note: "'x'", total: "1"}}
  steward: [{on: "*", select: true, insert: true, define: true}]
users: {ann: [analyst], nora: [north], "o'hara": [own], pat: [part], max: [mixed], sue: [steward]}
"""
# The rows of the south are hidden from ann. One of them divides by zero, one is no number, one joins with nobody.
NORTH = [(1, 10, 5, "1", "north", "ann"), (2, 20, 7, "2", "north", "o'hara"), (3, 10, 9, "3", "north", "ann")]
SOUTH = [(4, 10, 0, "4", "south", "bob"), (5, 99, 100, "none", "south", "o'hara"), (6, 20, -3, "6", "south", "bob")]
CUSTOMERS = [(10, "Ada", "ada@x", 3), (20, "Bo", "bo@x", 8), (99, "Cy", "cy@x", 1)]


def orders(rows: list[tuple[Any, ...]]) -> pa.Table:
    names = ("id", "customer", "total", "note", "region", "owner")
    types = (pa.int32(), pa.int32(), pa.int32(), pa.string(), pa.string(), pa.string())
    columns = zip(*rows, strict=True)
    return pa.table({name: pa.array(each, kind) for name, kind, each in zip(names, types, columns, strict=True)})


def customers() -> pa.Table:
    ids, names, emails, scores = zip(*CUSTOMERS, strict=True)
    return pa.table(
        {"id": pa.array(ids, pa.int32()), "name": names, "email": emails, "score": pa.array(scores, pa.int32())}
    )


@pytest.fixture(scope="module")
def ruled(sail_engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalCluster]:
    """Orders in two parts, with hidden rows in both; customers at a third site; a lite member."""
    root = tmp_path_factory.mktemp("ruled")
    (root / "rules.yaml").write_text(RULES)
    members: dict[str, Any] = {}
    everywhere = {"address": "127.0.0.1:7101", "spark": {"sail": True}}
    for site, rows in (("oslo", [*NORTH[:2], *SOUTH[:2]]), ("bergen", [NORTH[2], SOUTH[2]])):
        (root / site).mkdir()
        pq.write_table(orders(rows), root / site / "o.parquet")
        members[site] = {**everywhere, "tables": {"orders": {"format": "parquet", "path": site}}}
    (root / "c").mkdir()
    pq.write_table(customers(), root / "c" / "c.parquet")
    members["tromso"] = {**everywhere, "tables": {"customers": {"format": "parquet", "path": "c"}}}
    members["lite"] = {"address": "127.0.0.1:7101", "role": "lite"}
    for number, each in enumerate(members.values()):
        each["address"] = f"127.0.0.1:{7101 + number}"
    state = root / "state"
    text = {"cluster": "ruled", "data_root": str(root), "members": members, "access": {"rules": "rules.yaml"}}
    text["state"] = str(state)
    (root / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    with LocalCluster(load(root / "skerry.yaml"), engine=sail_engine) as cluster:
        for each in ("oslo", "bergen", "tromso", "lite"):
            ask(cluster, each, "sue", "SHOW TABLES")  # all have told their tables
        yield cluster


def rows(cluster: LocalCluster, user: str, sql: str, at: str = "oslo", **planning: str) -> list[tuple[Any, ...]]:
    return sorted((tuple(row.values()) for row in ask(cluster, at, user, sql, **planning).to_pylist()), key=repr)


def test_tables_of_our_own_are_seen_by_the_same_rules(ruled: LocalCluster) -> None:
    columns = "id INT, total INT, region STRING, note STRING"
    ask(ruled, "bergen", "sue", f"CREATE TABLE ledger ({columns}) PRIMARY KEY (id) DISTRIBUTED BY (id)")
    values = ", ".join(f"({n}, {n}, '{'north' if n % 3 else 'south'}', 'n')" for n in range(9))
    ask(ruled, "tromso", "sue", f"INSERT INTO ledger VALUES {values}")
    assert rows(ruled, "sue", "SELECT count(*), sum(total) FROM ledger") == [(9, 36)]
    for at in ("oslo", "lite"):
        assert rows(ruled, "ann", "SELECT count(*), sum(total) FROM ledger", at) == [(6, 270)]
        assert rows(ruled, "ann", "SELECT * FROM ledger WHERE total >= 70", at) == [(7, 70), (8, 80)]
        assert rows(ruled, "ann", "DESCRIBE ledger", at) == [("id", "int"), ("total", "int")]
        assert not [row for row in rows(ruled, "nora", "SHOW TABLES", at) if "ledger" in row]
    for user, sql in (("nora", "SELECT * FROM ledger"), ("ann", "SELECT note FROM ledger")):
        with pytest.raises(SqlError, match="unknown"):
            rows(ruled, user, sql)
    with pytest.raises(UserError, match="one of our own"):
        ask(ruled, "oslo", "sue", "ANALYZE TABLE ledger")
    ask(ruled, "oslo", "sue", "DROP TABLE ledger")


QUERIES = [
    ("SELECT count(*) AS n, min(total) AS a, max(total) AS b, sum(total) AS c FROM orders", [(3, 5, 9, 21)]),
    ("SELECT * FROM orders", [(1, 10, 5), (2, 20, 7), (3, 10, 9)]),
    ("SELECT id FROM orders WHERE total < 5 OR total > 50", []),
    ("SELECT customer, count(*) AS n FROM orders GROUP BY customer", [(10, 2), (20, 1)]),
    ("SELECT id FROM orders ORDER BY total DESC LIMIT 1", [(3,)]),
    ("SELECT name FROM customers c WHERE EXISTS (SELECT 1 FROM orders o WHERE o.customer = c.id)", [("Ada",), ("Bo",)]),
    ("SELECT name FROM customers WHERE id NOT IN (SELECT customer FROM orders)", [("Cy",)]),
    (
        "SELECT c.name, o.id FROM customers c JOIN orders o ON o.customer = c.id AND o.total > 5",
        [("Ada", 3), ("Bo", 2)],
    ),
    ("SELECT count(*) AS n FROM orders WHERE 100 / total > 0", [(3,)]),
    ("SELECT a.id FROM orders a JOIN orders b ON a.id = b.id WHERE 100 / a.total > 12", [(1,), (2,)][:2]),
    ("SELECT email, score, count(*) AS n FROM customers GROUP BY email, score", [("***", -1, 3)]),
    ("SELECT name FROM customers WHERE score > 5 OR email = 'ada@x'", []),
    ("SELECT max(score) AS m, typeof(max(score)) AS t FROM customers", [(-1, "int")]),
]


@pytest.mark.parametrize(("sql", "expected"), QUERIES)
def test_a_user_gets_what_its_rules_show(ruled: LocalCluster, sql: str, expected: list[tuple[Any, ...]]) -> None:
    for at, planning in (
        ("oslo", {}),
        ("tromso", {"rules": "none"}),
        ("lite", {}),
        ("bergen", {"strategy": "bottom-up"}),
    ):
        assert rows(ruled, "ann", sql, at, **planning) == sorted(expected, key=repr), (at, planning)


def test_the_user_who_asks_is_a_value_in_a_filter(ruled: LocalCluster) -> None:
    assert rows(ruled, "o'hara", "SELECT id FROM orders") == [(2,), (5,)]


def test_everybody_is_told_their_own_name(ruled: LocalCluster) -> None:
    sql = "SELECT id, current_user() AS me FROM orders WHERE owner = session_user"
    for at in ("oslo", "lite", "oslo"):
        assert rows(ruled, "o'hara", sql, at) == [(2, "o'hara"), (5, "o'hara")]
        assert rows(ruled, "nora", sql, at) == []
        assert rows(ruled, "max", "SELECT current_user, user(), count(*) AS n FROM orders", at) == [("max", "max", 6)]


def test_whoever_may_read_all_reads_all(ruled: LocalCluster) -> None:
    assert rows(ruled, "sue", "SELECT count(*) AS n, max(total) AS m FROM orders") == [(6, 100)]
    assert rows(ruled, "sue", "SELECT max(email) AS m FROM customers") == [("cy@x",)]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT count(*) AS n FROM orders WHERE 1 / total > -9",
        "SELECT id FROM orders WHERE CAST(note AS INT) > 0",
        "SELECT id FROM orders WHERE id = customer - 9 AND 1 / total > -9",
        "SELECT a.id FROM orders a JOIN customers c ON a.customer = c.id AND CAST(a.note AS INT) > 0",
    ],
)
def test_a_hidden_row_raises_no_error(ruled: LocalCluster, sql: str) -> None:
    """Sail computes a query's own conditions before the filter: those of hidden rows are of NULL."""
    with pytest.raises(SkerryError):
        rows(ruled, "sue", sql)
    rows(ruled, "nora", sql)


# Sail refuses it, and names all columns of the table below the user's view.
LATERAL = (
    "SELECT c.id, l.t FROM customers c, LATERAL (SELECT max(o.total) t FROM oslo.orders o WHERE o.customer = c.id) l"
)


@pytest.mark.parametrize(
    ("user", "sql", "error", "words"),
    [
        ("ann", "SELECT region FROM orders", SqlError, "unknown column region"),
        ("ann", "SELECT o.owner FROM orders o", SqlError, "has no column owner"),
        ("nobody", "SELECT * FROM orders", SqlError, "unknown table orders"),
        ("nobody", "SELECT * FROM oslo.orders", SqlError, "unknown table oslo.orders"),
        ("", "SELECT * FROM customers", SqlError, "unknown table customers"),
        ("nobody", "DESCRIBE orders", SqlError, "unknown table orders"),
        ("nobody", "SHOW TABLES IN oslo", UserError, "there is no schema oslo"),
        ("pat", "SELECT * FROM orders", UserError, "ask for those you may read by name: oslo.orders"),
        ("pat", "SELECT * FROM customer", SqlError, "unknown table customer"),
        ("ann", LATERAL, SqlError, "in words about columns that it does not read"),
        ("ann", "ANALYZE TABLE orders", UserError, "needs the right to read all of oslo.orders"),
        ("ann", "ANALYZE TABLE customers", UserError, "needs the right to read all of tromso.customers"),
    ],
)
def test_what_is_hidden_is_unknown(ruled: LocalCluster, user: str, sql: str, error: type, words: str) -> None:
    with pytest.raises(error, match=words) as caught:
        ask(ruled, "oslo", user, sql)
    said = caught.value.message + caught.value.suggestion
    assert "did you mean" not in said
    assert "bergen" not in said


def test_a_mask_of_one_part_alone(ruled: LocalCluster) -> None:
    """A constant is never NULL; the parts of a table have one schema all the same."""
    for at in ("tromso", "oslo"):
        for planning in ({}, {"rules": "none"}):
            found = rows(ruled, "max", "SELECT id, note, total FROM orders WHERE id <> 4", at, **planning)
            assert found == [(1, "x", 1), (2, "x", 1), (3, "3", 9), (5, "x", 1), (6, "6", -3)]
    assert rows(ruled, "max", "SELECT note, sum(total) AS t FROM orders GROUP BY note") == [
        ("3", 9),
        ("6", -3),
        ("x", 4),
    ]


def test_a_door_that_asks_without_sql_gets_no_more(ruled: LocalCluster) -> None:
    service, caller = ruled.members["lite"].service, Caller("ann", "test", "here", "s")
    assert [line.table for line in ruled.call(service.tables(caller))] == ["customers", "orders"]
    assert [each.name for each in ruled.call(service.describe(caller, ("orders",)))] == ["id", "customer", "total"]
    (parameter,) = ruled.call(service.prepare(caller, PrepareStatement("SELECT 1 FROM orders WHERE total = ?")))
    assert parameter.type == "int"
    with pytest.raises(SqlError, match="unknown column region"):
        ruled.call(service.prepare(caller, PrepareStatement("SELECT 1 FROM orders WHERE region = ?")))
    nobody = Caller("nobody", "test", "here", "t")
    assert ruled.call(service.tables(nobody)) == ()
    with pytest.raises(SqlError, match="unknown table orders"):
        ruled.call(service.describe(nobody, ("orders",)))


def test_one_part_by_its_name(ruled: LocalCluster) -> None:
    assert rows(ruled, "pat", "SELECT count(*) AS n FROM oslo.orders") == [(4,)]


def test_show_and_describe_tell_what_one_may_see(ruled: LocalCluster) -> None:
    shown = {user: ask(ruled, "lite", user, "SHOW TABLES").to_pylist() for user in ("ann", "pat", "sue", "nobody")}
    assert shown["nobody"] == []
    assert [(each["table"], each["members"], each["rows"], each["bytes"]) for each in shown["ann"]] == [
        ("customers", "tromso", None, None),
        ("orders", "oslo, bergen", None, None),
    ]
    assert [(each["table"], each["members"]) for each in shown["pat"]] == [("orders", "oslo")]
    assert [each["rows"] for each in shown["sue"]] == [3, 6]
    assert rows(ruled, "ann", "SHOW COLUMNS IN orders") == [("customer",), ("id",), ("total",)]
    assert rows(ruled, "pat", "SHOW SCHEMAS") == [("default",), ("oslo",)]
    told = dict(ask(ruled, "oslo", "ann", "DESCRIBE EXTENDED orders").to_pydict().items())
    assert "region" not in told["col_name"]
    assert [kind for name, kind in zip(*told.values(), strict=True) if name.strip() in ("rows", "bytes")] == [
        "unknown"
    ] * 4


def test_explain_analyze_counts_the_users_own_rows(ruled: LocalCluster) -> None:
    told = ask(ruled, "tromso", "ann", "EXPLAIN ANALYZE SELECT id FROM orders")["plan"].to_pylist()
    assert any("2 rows" in line for line in told), told  # from oslo, which has four
    assert not any("4 rows" in line for line in told), told


def test_an_execute_in_the_name_of_a_user_gets_that_users_rows_at_most(ruled: LocalCluster) -> None:
    """A member that plans as it likes, and says who asks: the others go by their own rules."""
    oslo = ruled.members["oslo"]
    rights = oslo.rulebook.rights_of("sue")

    def claimed(user: str) -> Any:
        # The initiator believes that whoever asks may read all, and says `user` to the participants.
        return lambda _name, _roles=(): msgspec.structs.replace(rights, user=user)

    kept = oslo.rulebook.rights_of
    try:
        for user, expected in (("sue", [(2,)]), ("nora", [(1,)])):
            oslo.rulebook.rights_of = claimed(user)  # type: ignore[method-assign]
            assert rows(ruled, "x", "SELECT count(*) AS n FROM bergen.orders") == expected
        for user in ("nobody", ""):
            oslo.rulebook.rights_of = claimed(user)  # type: ignore[method-assign]
            with pytest.raises(SiteError, match="site bergen: no table orders here"):
                rows(ruled, "x", "SELECT count(*) AS n FROM bergen.orders")
        oslo.rulebook.rights_of = claimed("ann")  # type: ignore[method-assign]
        with pytest.raises(SkerryError, match="owner"):  # hidden there, whatever the plan says
            rows(ruled, "x", "SELECT owner FROM bergen.orders")
        with pytest.raises(UserError, match="needs the right to read all"):
            ask(ruled, "oslo", "x", "ANALYZE TABLE bergen.orders")
    finally:
        oslo.rulebook.rights_of = kept  # type: ignore[method-assign]


def test_a_client_logs_in_and_gets_its_own_rows(sail_engine: Engine, tmp_path: Path) -> None:
    """From the password to the rows; new rules hold for the next statement of a connection that is there."""
    users = UsersFile(str(tmp_path / "users"))
    for salt, name in enumerate(("ann", "bob")):
        users.put(name, hash_password("fjord", bytes([salt]) * 16))
    (tmp_path / "o").mkdir()
    pq.write_table(orders(NORTH + SOUTH), tmp_path / "o" / "o.parquet")
    rules = tmp_path / "rules.yaml"
    rules.write_text(
        "roles: {own: [{on: orders, select: [id], where: owner = session_user()}]}\nusers: {ann: [own], bob: [own]}"
    )
    oslo = {
        "address": "127.0.0.1:7101",
        "spark": {"sail": True},
        "tables": {"orders": {"format": "parquet", "path": "o"}},
    }
    access = {"users": "users", "rules": "rules.yaml"}
    text = {"cluster": "ruled", "data_root": ".", "members": {"oslo": oslo}, "access": access}
    (tmp_path / "skerry.yaml").write_text(yaml.safe_dump(text, sort_keys=False))
    with LocalCluster(str(tmp_path / "skerry.yaml"), engine=sail_engine) as cluster:
        asked = [cluster.connect(user=name, password="fjord").cursor() for name in ("ann", "bob")]
        found = [sorted(cursor.execute("SELECT * FROM orders").fetchall()) for cursor in asked]
        assert found == [[(1,), (3,)], [(4,), (6,)]]
        rules.write_text("roles: {own: []}\nusers: {ann: [own]}")
        for cursor in asked:
            with pytest.raises(skerry.ProgrammingError, match="unknown table orders"):
                cursor.execute("SELECT * FROM orders")
