"""Whatever is sent: a statement comes out, and a way if it writes, or SqlError. What comes out reads scans only."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.sql.changes import analyse_change
from skerry.sql.dialect import render
from skerry.sql.functions import admitted
from skerry.sql.lexer import tokens_of
from skerry.sql.owntables import Change, CreateTable
from skerry.tables.ways import BySpark, ByTuples, way_of
from skerry.wire.execution import Request
from skerry.wire.execution_codec import decode_request, encode_request
from tests.unit.sql.change_cases import KNOWN, cases

TEXTS = [
    case.text
    for path in (Path(__file__).with_name("ways.sql"), Path(__file__).parents[1] / "sql" / "changes.sql")
    for case in cases(path)
    if len(case.text) < 500
]
WORDS = [[text[token.start : token.end + 1] for token in tokens_of(text, 64)] for text in TEXTS]
POOL = sorted(
    {word for words in WORDS for word in words} | {"reflect(1)", "text.`/etc/passwd`", ";", "'", "`", "'\\uD800'"}
)
VALUES = st.sampled_from([None, [1], [1, "x"], [None, 2.5], {"x": b"\xff"}, [[1, None]]])


@st.composite
def mutated(draw: st.DrawFn) -> str:
    words = list(draw(st.sampled_from(WORDS)))
    for _ in range(draw(st.integers(1, 3))):
        at = draw(st.integers(0, len(words)))
        match draw(st.sampled_from(["delete", "insert", "replace", "graft"])):
            case "delete":
                words[at : at + 1] = []
            case "insert":
                words.insert(at, draw(st.sampled_from(POOL)))
            case "replace":
                words[at : at + 1] = [draw(st.sampled_from(POOL))]
            case "graft":
                words[at:at] = draw(st.sampled_from(WORDS))[:6]
    return " ".join(words)


@given(text=st.one_of(mutated(), st.text(max_size=20)), values=VALUES)
@example("INSERT INTO reading (k, d) VALUES (1, 1e99999)", None)
@example("DELETE FROM reading WHERE k = ?", [[1]])
@example("CREATE TABLE `\ud800` (a INT) PRIMARY KEY (a) DISTRIBUTED BY (a)", None)
def test_only_sql_errors_come_out(text: str, values: object) -> None:
    try:
        found = analyse_change(text, values, KNOWN, Limits())  # type: ignore[arg-type]
        way = way_of(found) if isinstance(found, Change) else None
    except SqlError:
        return
    if isinstance(way, ByTuples):
        assert repr(decode_request(encode_request(Request("r", way.packet))).body) == repr(way.packet)
    if isinstance(way, BySpark):
        assert way.reason
    if isinstance(found, CreateTable):
        assert set(found.table.distributed_by) <= set(found.table.primary_key)
    query = found.query if isinstance(found, Change) else None
    if query is None:
        return
    scans = {scan.node_name for scan in query.tables}
    ctes = {cte.alias.lower() for cte in query.tree.find_all(exp.CTE)}
    for table in query.tree.find_all(exp.Table):
        assert not table.db
        assert not isinstance(table.this, exp.Identifier) or table.name in scans or table.name.lower() in ctes
    for call in query.tree.find_all(exp.Anonymous):
        if not isinstance(call.parent, exp.Table | exp.Lateral):
            assert admitted().functions[call.name.lower()].refused == ""
    assert tokens_of(render(query.tree), 1000)
