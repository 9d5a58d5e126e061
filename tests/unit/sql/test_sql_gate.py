"""What is refused is refused by name; the committed lists agree with the policy and with the document."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from scripts.sql_forms import DOCS, JSON, document, read_forms, refused
from skerry.model.errors import SqlError
from skerry.sql import policy
from skerry.sql.functions import admitted
from skerry.sql.statement import Query
from tests.unit.sql.sql_cases import statement

HERE = Path(__file__).parent
REFUSED = read_forms(HERE / "refused.sql")


@pytest.mark.parametrize(("name", "sql"), REFUSED, ids=[name for name, _ in REFUSED])
def test_refused(name: str, sql: str) -> None:
    with pytest.raises(SqlError) as caught:
        statement(sql.replace(" t", " orders").replace("(t)", "(orders)"))
    assert caught.value.message


@pytest.mark.parametrize(
    "sql",
    [
        # Where Spark could end the list of rows early and read a relation after the comma.
        "SELECT * FROM VALUES (1), (text.`/etc/passwd` AS u)",
        "SELECT * FROM VALUES (1), (text.`/etc/passwd` u)",
        "SELECT * FROM t, text.`/etc/passwd`",
        "SELECT * FROM orders JOIN text.`/etc/passwd`",
        "SELECT * FROM (text.`/etc/passwd`)",
        "SELECT * FROM LATERAL text.`/etc/passwd`",
        "SELECT (TABLE text.`/etc/passwd`)",
        "SELECT 1 IN (TABLE text.`/etc/passwd`)",
        "SELECT EXISTS (FROM text.`/etc/passwd`)",
        # Raw text must not pass through a name.
        "SELECT EXTRACT('a) FROM x), reflect(' FROM o_date) FROM orders",
        "SELECT EXTRACT(`a` FROM o_date) FROM orders",
        "SELECT :`x), reflect(`",
        "SELECT CAST(1 AS `int), reflect(`)",
        # Spark's lexer reads ſ as S.
        "SELECT refle\u0441t('a')",
        "SELECT 1 un\u0131on \u017felect reflect('a')",
        # A name in quotes is a name.
        "SELECT `reflect`('a', 'b')",
        "SELECT `system`.`builtin`.`reflect`('a', 'b')",
        "SELECT transform(array(1), x -> reflect('a', 'b'))",
        "SELECT sum(o_id) FILTER (WHERE reflect('a', 'b')) FROM orders",
        "SELECT rank() OVER (ORDER BY reflect('a', 'b')) FROM orders",
        "SELECT 1 FROM orders GROUP BY CUBE (reflect('a', 'b'))",
        "SELECT 1 FROM orders LATERAL VIEW reflect('a', 'b') t AS x",
        "SELECT * FROM reflect('a', 'b')",
        "SELECT 1 LIMIT reflect('a', 'b')",
        "VALUES (reflect('a', 'b'))",
        "SELECT o_id FROM orders PIVOT (max(reflect('a', 'b')) FOR o_id IN (1))",
        "SELECT * FROM orders WHERE o_id IN (SELECT reflect('a', 'b'))",
        "SELECT _METADATA.file_name FROM orders",
        "SELECT orders.`_metadata` FROM orders",
        "SELECT timestamp('now')",
        "SELECT 'today'::date",
        "SELECT schema_of_xml('<a/>', map('rowValidationXSDPath', '/etc/passwd'))",
        # A call without brackets, where Spark may take it for something else that has its name.
        "SELECT o_id AS user, count(*) FROM orders GROUP BY o_id HAVING user = 'root'",
        "SELECT transform(array('a'), user -> user)",
        "SELECT * FROM range(1) ORDER BY user",
        "SELECT current_user FROM VALUES (1)",
        "SELECT 1 LIMIT length(user)",
        "SELECT 1 LIMIT length(user())",
        # Spark refuses an argument; Sail would answer with its own user.
        "SELECT current_user(1)",
        "SELECT current_schema(DISTINCT 1)",
        "SELECT `system`.`builtin`.`current_user`()",
        "SELECT * FROM current_user()",
    ],
)
def test_attempts_to_slip_through(sql: str) -> None:
    with pytest.raises(SqlError):
        statement(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT user FROM (SELECT 'a' AS user)",
        "SELECT upper(x.user) FROM (SELECT 'a' AS user) x WHERE user = 'a' GROUP BY user",
        "WITH x AS (SELECT 'a' AS user) SELECT user FROM orders JOIN x ON o_note = user",
        "SELECT o_note AS user FROM orders ORDER BY user",
        "SELECT o_note AS user FROM orders ORDER BY user, rank() OVER (ORDER BY o_id)",
    ],
)
def test_columns_that_are_named_like_a_call(sql: str) -> None:
    assert isinstance(statement(sql), Query)


def test_substitution_never_sees_a_string() -> None:
    from tests.unit.sql.sql_cases import rendered

    assert rendered("SELECT '${env:HOME}', r'${system:user.home}'") == (
        "SELECT '\\u0024{env:HOME}', '\\u0024{system:user.home}'"
    )


def test_the_committed_list_follows_the_policy() -> None:
    functions = admitted().functions
    assert len(functions) > 500
    for name, reason in policy.REFUSED_FUNCTIONS.items():
        assert functions[name].refused == reason
    for name in policy.NONDETERMINISTIC:
        assert not functions[name].deterministic
    assert {name for name, why in admitted().table_functions.items() if why} == set(policy.REFUSED_TABLE_FUNCTIONS)
    assert not [name for name, wrong in admitted().forms.items() if wrong]


def test_the_kinds_of_functions_are_known() -> None:
    kinds = {name: function.kind for name, function in admitted().functions.items()}
    for name in (
        "sum",
        "count",
        "avg",
        "min",
        "max",
        "first",
        "collect_list",
        "percentile_cont",
        "listagg",
        "any",
        "hll_sketch_agg",
        "hll_union_agg",
    ):
        assert kinds[name] == "aggregate"
    for name in ("explode", "posexplode_outer", "inline", "stack", "json_tuple"):
        assert kinds[name] == "generator"
    for name in ("rank", "row_number", "lag", "ntile"):
        assert kinds[name] == "window"
    for name in ("abs", "concat", "substring", "year", "coalesce", "cast"):
        assert kinds[name] == "scalar"
    random = {name for name, function in admitted().functions.items() if not function.deterministic}
    assert {"rand", "randn", "uuid", "shuffle", "random"} <= random


def test_the_document_is_the_list() -> None:
    made = json.loads(JSON.read_text(encoding="utf-8"))
    said = refused()
    assert [name for name, message in said.items() if not message] == []
    assert document(made, said) in DOCS.read_text(encoding="utf-8")
