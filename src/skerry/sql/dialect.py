"""Tree → the text that Spark runs. Every form comes out as it was written; nothing is interpreted."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from sqlglot import exp, generator
from sqlglot.dialects.spark import Spark
from sqlglot.errors import ErrorLevel

from skerry.model.errors import SqlError
from skerry.model.lexemes import escape
from skerry.sql import nodes

# Spark reads some letters beyond ASCII as their upper-case ASCII kin: such names are quoted.
_WORD = re.compile(r"[A-Za-z0-9_]+")
# The clauses of a query after its FROM, in Spark's order.
_CLAUSES = ("where", "group", "having")
_ENDING = ("order", "cluster", "distribute", "sort", "late_windows", "limit", "offset")

Transform = Callable[[Any, Any], str]


def _joined(*pieces: str) -> str:
    return " ".join(piece for piece in pieces if piece)


def _infix(operator: str) -> Transform:
    return lambda self, node: self.chain(node, operator)


class Renderer(generator.Generator):
    """sqlglot's generator with Spark's forms; where it would rewrite, this one does not."""

    TRANSFORMS = {
        **generator.Generator.TRANSFORMS,
        nodes.TypedLiteral: lambda self, e: f"{e.args['kind'].name} {self.sql(e, 'this')}",
        nodes.IntervalLiteral: lambda self, e: _joined("INTERVAL", *(self.sql(part) for part in e.expressions)),
        nodes.IntervalPart: lambda self, e: self.interval_part(e),
        nodes.SpokenCall: lambda self, e: self.spoken_call(e),
        nodes.ColonCast: lambda self, e: f"{self.sql(e, 'this')}::{self.sql(e, 'to')}",
        nodes.UnaryPlus: lambda self, e: f"+ {self.sql(e, 'this')}",
        nodes.DistinctFrom: lambda self, e: self.predicate(e, False),
        nodes.Quantified: lambda self, e: f"{e.this} ({self.items(e.expressions)})",
        nodes.Collated: lambda self, e: f"{self.sql(e, 'this')} COLLATE {self.sql(e, 'expression')}",
        nodes.SparkType: lambda self, e: self.spark_type(e),
        nodes.StructField: lambda self, e: self.struct_field(e),
        nodes.Arguments: lambda self, e: f"{e.this} {self.items(e.expressions)}",
        nodes.VariantPath: lambda self, e: self.variant_path(e),
        nodes.Assignment: lambda self, e: f"{self.sql(e, 'this')} = {self.sql(e, 'expression')}",
        nodes.Nearest: lambda self, e: _joined(
            self.sql(e, "kind"), "NEAREST", self.sql(e, "number"), "BY", self.sql(e, "direction"), self.sql(e, "this")
        ),
        nodes.Sample: lambda self, e: self.sample(e),
        nodes.Pipe: lambda self, e: self.pipe(e),
        nodes.Piped: lambda self, e: self._ended(
            _joined(self.sql(e, "this"), *(self.sql(each) for each in e.expressions)), e
        ),
        exp.BitwiseNot: lambda self, e: f"~ {self.sql(e, 'this')}",
        exp.Neg: lambda self, e: f"- {self.sql(e, 'this')}",
        exp.Between: lambda self, e: self.predicate(e, False),
        exp.In: lambda self, e: self.predicate(e, False),
        exp.Like: lambda self, e: self.predicate(e, False),
        exp.ILike: lambda self, e: self.predicate(e, False),
        exp.RegexpLike: lambda self, e: self.predicate(e, False),
        exp.Escape: lambda self, e: self.predicate(e, False),
        exp.Is: lambda self, e: self.predicate(e, False),
        exp.Not: lambda self, e: self.predicate(e.this, True) if e.args.get("infix") else f"NOT {self.sql(e, 'this')}",
        exp.Cast: lambda self, e: f"CAST({self.sql(e, 'this')} AS {self.sql(e, 'to')})",
        exp.TryCast: lambda self, e: f"TRY_CAST({self.sql(e, 'this')} AS {self.sql(e, 'to')})",
        exp.HexString: lambda self, e: f"X'{e.this}'",
        exp.IgnoreNulls: lambda self, e: f"{self.sql(e, 'this')} IGNORE NULLS",
        exp.RespectNulls: lambda self, e: f"{self.sql(e, 'this')} RESPECT NULLS",
        exp.Tuple: lambda self, e: f"({self.items(e.expressions)})",
        exp.Paren: lambda self, e: f"({self.sql(e, 'this')})",
        exp.Bracket: lambda self, e: f"{self.sql(e, 'this')}[{self.items(e.expressions)}]",
        exp.Exists: lambda self, e: f"EXISTS ({self.sql(e, 'this')})",
        exp.Filter: lambda self, e: f"{self.sql(e, 'this')} FILTER ({self.sql(e, 'expression').strip()})",
        exp.WithinGroup: lambda self, e: f"{self.sql(e, 'this')} WITHIN GROUP ({self.sql(e, 'expression').strip()})",
        exp.Lambda: lambda self, e: self.lambda_(e),
    }

    def __init__(self, **options: Any) -> None:
        options = {
            **options,
            "dialect": Skerry,
            "normalize_functions": False,
            "comments": False,
            "unsupported_level": ErrorLevel.RAISE,
        }
        super().__init__(**options)

    def preprocess(self, expression: exp.Expr) -> exp.Expr:
        return expression

    def items(self, parts: list[exp.Expr]) -> str:
        return ", ".join(self.sql(part) for part in parts)

    def chain(self, node: exp.Expr, operator: str) -> str:
        """`a + b - c`: the left spine of any length, without recursion."""
        pieces = []
        spine: exp.Expr = node
        while True:
            own = _OPERATORS.get(type(spine))
            if own is None:
                pieces.append(self.sql(spine))
                break
            pieces.append(self.sql(spine.args["expression"]))
            pieces.append(own)
            spine = spine.args["this"]
        return " ".join(reversed(pieces))

    def predicate(self, node: exp.Expr, negated: bool) -> str:
        """A predicate with its NOT inside, where it was written."""
        no = "NOT" if negated else ""
        value = self.sql(node, "this")
        match node:
            case exp.Escape():
                return f"{self.predicate(node.this, negated)} ESCAPE {self.sql(node, 'expression')}"
            case exp.Between():
                return _joined(value, no, f"BETWEEN {self.sql(node, 'low')} AND {self.sql(node, 'high')}")
            case exp.In():
                query = node.args.get("query")
                inside = self.sql(query) if query is not None else self.items(node.expressions)
                return _joined(value, no, f"IN ({inside})")
            case exp.Is():
                return _joined(value, "IS", no, self.sql(node, "expression"))
            case nodes.DistinctFrom():
                return _joined(value, "IS", no, "DISTINCT FROM", self.sql(node, "expression"))
            case exp.Like() | exp.ILike() | exp.RegexpLike():
                return _joined(value, no, _LIKES[type(node)], self.sql(node, "expression"))
        raise ValueError(f"no negated form of {node.key}")

    def lambda_(self, node: exp.Lambda) -> str:
        names = self.items(node.expressions)
        return f"{names if len(node.expressions) == 1 else f'({names})'} -> {self.sql(node, 'this')}"

    def interval_part(self, node: nodes.IntervalPart) -> str:
        to = node.args.get("to")
        return _joined(
            self.sql(node, "sign"), self.sql(node, "this"), self.sql(node, "unit"), f"TO {self.sql(to)}" if to else ""
        )

    def spoken_call(self, node: nodes.SpokenCall) -> str:
        words = [self.sql(word) for word in node.args["words"]]
        items = [self.sql(item) for item in node.expressions]
        if node.args.get("leading"):
            items.insert(0, "")
        pieces = [items[0]]
        for word, item in zip(words, items[1:], strict=True):
            pieces += [word, item]
        return f"{node.this}({_joined(self.sql(node, 'option'), *pieces)})"

    def spark_type(self, node: nodes.SparkType) -> str:
        inside = self.items(node.expressions)
        if node.args.get("nested"):
            return f"{node.this}<{inside}>"
        if node.this == "INTERVAL":
            to = node.args.get("to")
            return _joined("INTERVAL", inside, f"TO {self.sql(to)}" if to else "")
        return _joined(f"{node.this}({inside})" if inside else str(node.this), node.args.get("zone") or "")

    def struct_field(self, node: nodes.StructField) -> str:
        comment = self.sql(node, "comment")
        return _joined(
            self.sql(node, "this") + (":" if node.args.get("colon") else ""),
            self.sql(node, "kind"),
            "NOT NULL" if node.args.get("not_null") else "",
            f"COMMENT {comment}" if comment else "",
        )

    def literal_sql(self, expression: exp.Literal) -> str:
        return escape(str(expression.this)) if expression.is_string else str(expression.this)

    def identifier_sql(self, expression: exp.Identifier) -> str:
        if expression.quoted or not _WORD.fullmatch(expression.name):
            return f"`{expression.name.replace('`', '``')}`"
        return expression.name

    def anonymous_sql(self, expression: exp.Anonymous) -> str:
        name = expression.this
        called = self.sql(name) if isinstance(name, exp.Identifier) else str(name)
        return f"{called}({self.items(expression.expressions)})"

    def star_sql(self, expression: exp.Star) -> str:
        dropped = expression.args.get("except_")
        return f"* EXCEPT ({self.items(dropped)})" if dropped else "*"

    def ordered_sql(self, expression: exp.Ordered) -> str:
        desc, nulls_first = expression.args.get("desc"), expression.args.get("nulls_first")
        return _joined(
            self.sql(expression, "this"),
            "" if desc is None else ("DESC" if desc else "ASC"),
            "" if nulls_first is None else f"NULLS {'FIRST' if nulls_first else 'LAST'}",
        )

    def window_sql(self, expression: exp.Window) -> str:
        this, alias = self.sql(expression, "this"), self.sql(expression, "alias")
        word = "OVER" if expression.args.get("over") else "AS"
        if alias and not expression.args.get("wrapped"):
            return f"{this} {word} {alias}"
        partition = expression.args.get("partition_by")
        inside = _joined(
            alias,
            f"PARTITION BY {self.items(partition)}" if partition else "",
            self.sql(expression, "order").strip(),
            self.sql(expression, "spec"),
        )
        return f"{this} {word} ({inside})"

    def windowspec_sql(self, expression: exp.WindowSpec) -> str:
        start = _joined(self.sql(expression, "start"), self.sql(expression, "start_side"))
        end = _joined(self.sql(expression, "end"), self.sql(expression, "end_side"))
        kind = self.sql(expression, "kind")
        return f"{kind} BETWEEN {start} AND {end}" if end else f"{kind} {start}"

    # relations and queries

    def table_sql(self, expression: exp.Table, sep: str = " AS ") -> str:
        parts = [expression.args.get(key) for key in ("catalog", "db", "this")]
        name = ".".join(self.sql(part) for part in parts if part)
        return self._aliased(_joined(name, self.sql(expression, "sample")), expression)

    def sample(self, node: nodes.Sample) -> str:
        said = self.sql(node, "this") + ("" if isinstance(node.this, exp.Var) else " ROWS")
        return _joined(
            f"TABLESAMPLE ({said})", f"REPEATABLE ({self.sql(node, 'seed')})" if node.args.get("seed") else ""
        )

    def _aliased(self, sql: str, node: exp.Expr) -> str:
        alias = self.sql(node, "alias")
        return f"{sql} AS {alias}" if alias else sql

    def tablealias_sql(self, expression: exp.TableAlias) -> str:
        columns = expression.args.get("columns")
        return self.sql(expression, "this") + (f"({self.items(columns)})" if columns else "")

    def lateral_sql(self, expression: exp.Lateral) -> str:
        if not expression.args.get("view"):
            return self._aliased(f"LATERAL {self.sql(expression, 'this')}", expression)
        outer = "OUTER" if expression.args.get("outer") else ""
        alias = expression.args.get("alias")
        name = self.sql(alias, "this") if alias else ""
        columns = alias.args.get("columns") if alias else None
        return _joined(
            "LATERAL VIEW", outer, self.sql(expression, "this"), name, f"AS {self.items(columns)}" if columns else ""
        )

    def join_sql(self, expression: exp.Join, join_op: str | None = None) -> str:
        relation = self.sql(expression, "this")
        if expression.args.get("kind") == "COMMA":
            return f", {relation}"
        words = [expression.args.get(key) or "" for key in ("method", "side", "kind")]
        using = expression.args.get("using")
        on = f"ON {self.sql(expression, 'on')}" if expression.args.get("on") else ""
        nearest = self.sql(expression, "nearest")
        return " " + _joined(*words, "JOIN", relation, on, f"USING ({self.items(using)})" if using else "", nearest)

    def pivot_sql(self, expression: exp.Pivot) -> str:
        unpivot, nulls = expression.args.get("unpivot"), expression.args.get("include_nulls")
        word = _joined(
            "UNPIVOT" if unpivot else "PIVOT", "" if nulls is None else f"{'INCLUDE' if nulls else 'EXCLUDE'} NULLS"
        )
        field = expression.args["fields"][0]
        inside = (
            f"{self.items(expression.expressions)} FOR {self.sql(field, 'this')} IN ({self.items(field.expressions)})"
        )
        return " " + self._aliased(f"{word} ({inside})", expression)

    def values_sql(self, expression: exp.Values, values_as_table: bool = True) -> str:
        return self._ended(self._aliased(f"VALUES {self.items(expression.expressions)}", expression), expression)

    def subquery_sql(self, expression: exp.Subquery, sep: str = " AS ") -> str:
        joins = "".join(self.sql(join) for join in expression.args.get("joins") or [])
        inside = _joined(f"({self.sql(expression, 'this')}{joins})", self.sql(expression, "sample"))
        return self._ended(self._aliased(inside, expression), expression)

    def select_sql(self, expression: exp.Select) -> str:
        args = expression.args
        listed = []
        if expression.expressions:
            words = "DISTINCT" if args.get("distinct") else "ALL" if args.get("said_all") else ""
            listed = ["SELECT", self.sql(args.get("hint")).strip(), words, self.items(expression.expressions)]
        from_ = []
        if args.get("from_"):
            joins = "".join(self.sql(join) for join in args.get("joins") or [])
            from_ = [f"FROM {self.sql(args['from_'], 'this')}{joins}"]
        from_ += [self.sql(view) for view in args.get("laterals") or []]
        from_ += [self.sql(pivot).strip() for pivot in args.get("pivots") or []]
        if args.get("written") == "TABLE":
            return self._ended(f"TABLE {self.sql(args['from_'], 'this')}", expression)
        pieces = from_ + listed if args.get("written") else listed + from_
        pieces += [self.sql(args.get(clause)).strip() for clause in _CLAUSES]
        pieces.append(self._windows(args.get("windows")))
        if args.get("qualify"):
            pieces.append(f"QUALIFY {self.sql(args['qualify'], 'this')}")
        return self._ended(_joined(*pieces), expression)

    def variant_path(self, node: nodes.VariantPath) -> str:
        pieces = [self.sql(node, "this"), ":"]
        for place, part in enumerate(node.expressions):
            is_name = isinstance(part, exp.Identifier)
            pieces.append(("." if place and is_name else "") + (self.sql(part) if is_name else f"[{self.sql(part)}]"))
        return "".join(pieces)

    def pipe(self, node: nodes.Pipe) -> str:
        """`|> WHERE a > 1`; ENDS are ORDER BY, LIMIT and the like, whose words their own nodes bring."""
        kind, sign = node.args["kind"].name, "|" if node.args.get("single") else "|>"
        if kind == "ENDS":
            return self._ended(sign, node)
        word = "" if kind in ("SELECT", "JOIN", "PIVOT", "TABLESAMPLE") else kind
        quantifier = (
            "ALL" if node.args.get("distinct") is False else "DISTINCT" if node.args.get("said_distinct") else ""
        )
        return _joined(
            sign,
            word,
            quantifier,
            self.sql(node, "this").strip(),
            self.items(node.expressions),
            self.sql(node, "group").strip(),
        )

    def _windows(self, windows: list[exp.Expr] | None) -> str:
        return f"WINDOW {self.items(windows)}" if windows else ""

    def group_sql(self, expression: exp.Group) -> str:
        args = expression.args
        if args.get("all"):
            return "GROUP BY ALL"
        with_ = "WITH ROLLUP" if args.get("rollup") else "WITH CUBE" if args.get("cube") else ""
        sets = self.items(args.get("grouping_sets") or [])
        return _joined("GROUP BY", self.items(expression.expressions), with_, sets)

    def groupingsets_sql(self, expression: exp.GroupingSets) -> str:
        return f"GROUPING SETS ({self.items(expression.expressions)})"

    def rollup_sql(self, expression: exp.Rollup) -> str:
        return f"ROLLUP ({self.items(expression.expressions)})"

    def cube_sql(self, expression: exp.Cube) -> str:
        return f"CUBE ({self.items(expression.expressions)})"

    def set_operations(self, expression: exp.SetOperation) -> str:
        """A chain of set operations without recursion along its left side."""
        pieces: list[str] = []
        node: exp.Expr = expression
        while isinstance(node, exp.SetOperation):
            word = node.key.upper()
            quantifier = "" if node.args.get("distinct") else "ALL"
            if node.args.get("said_distinct"):
                quantifier = "DISTINCT"
            name = "BY NAME" if node.args.get("by_name") else ""
            pieces += [self.sql(node, "expression"), _joined(word, quantifier, name)]
            if node is not expression and any(node.args.get(key) for key in (*_ENDING, "with_")):
                raise ValueError("a set operation inside another has an ORDER BY or WITH of its own without brackets")
            node = node.args["this"]
        return self._ended(" ".join(reversed([*pieces, self.sql(node)])), expression)

    def _ended(self, sql: str, node: exp.Expr) -> str:
        """`sql` with what orders and limits it behind, and its WITH before."""
        pieces = [sql]
        for key in _ENDING:
            value = node.args.get(key)
            pieces.append(self._windows(value) if key == "late_windows" else self.sql(value).strip())
        with_ = node.args.get("with_")
        return _joined(self.sql(with_) if with_ else "", *pieces)

    def with_sql(self, expression: exp.With) -> str:
        return _joined(
            "WITH", "RECURSIVE" if expression.args.get("recursive") else "", self.items(expression.expressions)
        )

    def cte_sql(self, expression: exp.CTE) -> str:
        word = "" if expression.args.get("bare") else "AS"
        level = f"MAX RECURSION LEVEL {self.sql(expression, 'level')}" if expression.args.get("level") else ""
        return _joined(self.sql(expression, "alias"), level, word, f"({self.sql(expression, 'this')})")

    def order_sql(self, expression: exp.Order, flat: bool = False) -> str:
        return f"ORDER BY {self.items(expression.expressions)}"

    def sort_sql(self, expression: exp.Sort) -> str:
        return f"SORT BY {self.items(expression.expressions)}"

    def cluster_sql(self, expression: exp.Cluster) -> str:
        return f"CLUSTER BY {self.items(expression.expressions)}"

    def distribute_sql(self, expression: exp.Distribute) -> str:
        return f"DISTRIBUTE BY {self.items(expression.expressions)}"

    def limit_sql(self, expression: exp.Limit, top: bool = False) -> str:
        return f"LIMIT {self.sql(expression, 'expression')}"

    def offset_sql(self, expression: exp.Offset) -> str:
        return f"OFFSET {self.sql(expression, 'expression')}"


_OPERATORS: dict[type[exp.Expr], str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "DIV",
    exp.Mod: "%",
    exp.DPipe: "||",
    exp.BitwiseAnd: "&",
    exp.BitwiseOr: "|",
    exp.BitwiseXor: "^",
    exp.BitwiseLeftShift: "<<",
    exp.BitwiseRightShift: ">>",
    nodes.UnsignedShift: ">>>",
    exp.EQ: "=",
    exp.NEQ: "!=",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.NullSafeEQ: "<=>",
    exp.And: "AND",
    exp.Or: "OR",
}
_LIKES = {exp.Like: "LIKE", exp.ILike: "ILIKE", exp.RegexpLike: "RLIKE"}

Renderer.TRANSFORMS.update({kind: _infix(operator) for kind, operator in _OPERATORS.items()})
Renderer.TRANSFORMS.update(
    {kind: lambda self, e: self.set_operations(e) for kind in (exp.Union, exp.Except, exp.Intersect)}
)


class Skerry(Spark):
    """Spark's dialect for writing; texts are read by `skerry.sql.grammar`."""

    # sqlglot types this by its own Spark's; ours descends from the base generator, which rewrites nothing.
    Generator = Renderer  # type: ignore[assignment]


def render(tree: exp.Expr) -> str:
    """The SQL text of a tree; a node that has no form of its own in Spark raises."""
    try:
        return Renderer().generate(tree, copy=False)  # no method here changes the tree
    except RecursionError:
        raise SqlError("the statement is nested too deeply") from None
