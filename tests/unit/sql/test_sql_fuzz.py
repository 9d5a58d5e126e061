"""Whatever is sent: a statement comes out, or SqlError. What comes out calls admitted functions and scans only."""

from __future__ import annotations

from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st
from sqlglot import exp

from scripts.sql_forms import read_forms
from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.sql.functions import admitted
from skerry.sql.lexer import tokens_of
from skerry.sql.statement import Explain, Query, analyse, render
from tests.unit.sql.sql_catalog import FakeCatalog

HERE = Path(__file__).parent
CATALOG = FakeCatalog({"t": "a int, b string, c int", "u": "a int, d int", "oslo.t": "a int"})
FORMS = [sql for name in ("forms.sql", "refused.sql") for _, sql in read_forms(HERE / name)]


def _words(sql: str) -> list[str]:
    try:
        return [sql[token.start : token.end + 1] for token in tokens_of(sql, 64)]
    except SqlError:
        return sql.split(" ")


POOL = sorted({word for sql in FORMS for word in _words(sql)} | {"reflect", "text.`/etc/passwd`", ";", "/*", "'", "`"})
soup = st.lists(st.sampled_from(POOL), max_size=25).map(" ".join)


@st.composite
def mutated(draw: st.DrawFn) -> str:
    words = _words(draw(st.sampled_from(FORMS)))
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, len(words)))
        match draw(st.sampled_from("delete insert replace graft".split())):
            case "delete":
                words[at : at + 1] = []
            case "insert":
                words.insert(at, draw(st.sampled_from(POOL)))
            case "replace":
                words[at : at + 1] = [draw(st.sampled_from(POOL))]
            case "graft":
                other = _words(draw(st.sampled_from(FORMS)))
                words[at:at] = other[draw(st.integers(0, len(other))) :][:6]
    return " ".join(words)


@given(st.one_of(st.text(), soup, mutated()))
@example("SELECT * FROM VALUES (1), (text.`/etc/passwd` AS u)")
@example("\ud800")
@example("SELECT '\ud800'")
def test_only_sql_errors_come_out(text: str) -> None:
    try:
        found = analyse(text, None, CATALOG, Limits())
    except SqlError:
        return
    query = found.query if isinstance(found, Explain) else found
    if not isinstance(query, Query):
        return
    scans = {scan.node_name for scan in query.tables}
    ctes = {cte.alias.lower() for cte in query.tree.find_all(exp.CTE)}
    for table in query.tree.find_all(exp.Table):
        if isinstance(table.this, exp.Identifier):
            assert not table.db
            assert table.name in scans or table.name.lower() in ctes
    for call in query.tree.find_all(exp.Anonymous):
        name = call.name.lower()
        if isinstance(call.parent, exp.Table) or (
            isinstance(call.parent, exp.Lateral) and not call.parent.args.get("view")
        ):
            assert admitted().table_functions[name] == ""
        else:
            assert admitted().functions[name].refused == ""
    assert tokens_of(render(query.tree), 1000)
