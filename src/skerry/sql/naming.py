"""What Spark calls a column that has no alias, for the expressions of which that is proven."""

from __future__ import annotations

from collections.abc import Callable

from sqlglot import exp

from skerry.sql.nodes import SparkType, SpokenCall

# Spark writes these as they were called. tests/integration/sql/test_sql_answers.py compares each.
NAMED_AS_CALLED = frozenset(
    "add_months coalesce concat date_add date_format date_sub date_trunc datediff day dayname dayofmonth dayofweek"
    " dayofyear from_utc_timestamp greatest hour last_day least lower minute month monthname"
    " next_day nullif nvl quarter second to_date to_timestamp to_utc_timestamp trunc typeof unix_date"
    " unix_micros unix_millis unix_seconds upper weekday weekofyear year".split()
)
_COMPARISONS: dict[type[exp.Expr], str] = {
    exp.EQ: "=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
PLAIN_TYPES = frozenset(
    "BOOLEAN TINYINT SMALLINT INT BIGINT FLOAT DOUBLE DATE TIMESTAMP TIMESTAMP_NTZ STRING BINARY".split()
)


def spark_name(node: exp.Expr, known: Callable[[exp.Expr], str | None]) -> str | None:
    """`known` names some expressions itself; None where nothing is proven."""
    name = known(node)
    if name is not None:
        return name
    if isinstance(node, exp.Paren):
        return spark_name(node.this, known)
    if isinstance(node, exp.Column):
        return None if node.is_star else node.name
    if isinstance(node, exp.Literal):
        return node.name if node.is_string or node.name.isdecimal() else None
    if isinstance(node, exp.Anonymous) and isinstance(node.this, str) and node.this.lower() in NAMED_AS_CALLED:
        parts = [spark_name(part, known) for part in node.expressions]
        return None if None in parts else f"{node.this.lower()}({', '.join(part or '' for part in parts)})"
    if isinstance(node, SpokenCall) and str(node.this).lower() == "extract":
        field, source = node.expressions[0].name, spark_name(node.expressions[1], known)
        return None if source is None else f"extract({field} FROM {source})"
    if isinstance(node, exp.Cast) and isinstance(node.args["to"], SparkType):
        to, inner = node.args["to"], spark_name(node.this, known)
        # A column's cast is called after the column.
        is_column = isinstance(node.this, exp.Column | exp.Paren) and known(node.this) is None
        is_plain = to.this in PLAIN_TYPES and not to.expressions and not is_column
        return f"CAST({inner} AS {to.this})" if inner is not None and is_plain else None
    word = _COMPARISONS.get(type(node))
    if word is None:
        return None
    left, right = spark_name(node.this, known), spark_name(node.args["expression"], known)
    return None if left is None or right is None else f"({left} {word} {right})"


def item_of(node: exp.Expr) -> exp.Expr | None:
    """The item of a select list without alias that holds `node`; None when it has one, or stands elsewhere."""
    child, parent = node, node.parent
    while parent is not None:
        if isinstance(parent, exp.Select):
            return child if child.arg_key == "expressions" and not isinstance(child, exp.Alias | exp.Aliases) else None
        if isinstance(parent, exp.Query):
            return None
        child, parent = parent, parent.parent
    return None


def names_matter(item: exp.Expr) -> bool:
    """Nobody sees the column names of EXISTS (…), IN (…), of a subquery that is a value, or of one that gets others."""
    select = item.parent
    assert select is not None
    around = select.parent
    if isinstance(around, exp.SetOperation) and select.arg_key == "expression" and not around.args.get("by_name"):
        return False
    alias = around.args.get("alias") if isinstance(around, exp.Subquery | exp.CTE) else None
    if alias is not None and alias.args.get("columns"):
        return False
    if isinstance(around, exp.Exists | exp.In):
        return False
    if not isinstance(around, exp.Subquery):
        return True
    return isinstance(
        around.parent, exp.From | exp.Join | exp.Lateral | exp.CTE | exp.SetOperation | exp.Subquery | None
    )
