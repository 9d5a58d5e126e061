"""Tree nodes for forms of Spark SQL that sqlglot would rewrite; everything else uses sqlglot's own."""

from __future__ import annotations

from sqlglot import exp


class TypedLiteral(exp.Expression):
    """`DATE '2024-01-01'`: `kind` is a Var with the word, `this` the string."""

    arg_types = {"kind": True, "this": True}


class IntervalLiteral(exp.Expression):
    """`INTERVAL 1 YEAR -2 MONTHS` or `INTERVAL '1-2' YEAR TO MONTH`: one IntervalPart each."""

    arg_types = {"expressions": True}


class IntervalPart(exp.Expression):
    """`sign` is a Var (`+` or `-`), `this` a literal, `unit` and `to` are Vars."""

    arg_types = {"sign": False, "this": True, "unit": True, "to": False}


class SpokenCall(exp.Expression, exp.Condition):
    """A call whose arguments are parted by words: `trim(BOTH 'x' FROM s)`.

    `this` is the name as written, `option` a Var, `words[i]` stands before `expressions[i]` when `leading`,
    else between `expressions[i]` and `expressions[i + 1]`.
    """

    arg_types = {
        "this": True,
        "option": False,
        "expressions": True,
        "words": True,
        "leading": False,
    }


class ColonCast(exp.Expression, exp.Condition):
    """`x::int`."""

    arg_types = {"this": True, "to": True}


class UnaryPlus(exp.Expression, exp.Condition):
    arg_types = {"this": True}


class UnsignedShift(exp.Expression, exp.Condition):
    """`a >>> b`."""

    arg_types = {"this": True, "expression": True}


class DistinctFrom(exp.Expression, exp.Condition):
    """`a IS DISTINCT FROM b`."""

    arg_types = {"this": True, "expression": True}


class Quantified(exp.Expression):
    """The right side of `LIKE ANY (…)`: `this` is the word, `expressions` the patterns."""

    arg_types = {"this": True, "expressions": False}


class Collated(exp.Expression, exp.Condition):
    """`x COLLATE name`."""

    arg_types = {"this": True, "expression": True}


class SparkType(exp.Expression):
    """A data type as Spark writes it: `this` is the word; `expressions` are sizes, item types or StructFields."""

    arg_types = {"this": True, "expressions": False, "nested": False, "to": False, "zone": False}


class StructField(exp.Expression):
    """`name [:] type [NOT NULL] [COMMENT 'text']` inside STRUCT<…>."""

    arg_types = {
        "this": True,
        "kind": True,
        "colon": False,
        "not_null": False,
        "comment": False,
    }


class Arguments(exp.Expression):
    """The arguments of an aggregate after DISTINCT or ALL."""

    arg_types = {"this": True, "expressions": True}


class VariantPath(exp.Expression, exp.Condition):
    """`v:a.b[0]['c']`: `expressions` are Identifiers (behind a dot but for the first), or literals in brackets."""

    arg_types = {"this": True, "expressions": True}

    @property
    def output_name(self) -> str:
        """What Spark calls it: the last part that is no number."""
        names = [part.name for part in self.expressions if isinstance(part, exp.Identifier) or part.is_string]
        return names[-1] if names else ""


class Nearest(exp.Expression):
    """`APPROX NEAREST 2 BY DISTANCE this` of a join: `kind` and `direction` are Vars, `number` a literal."""

    arg_types = {"kind": True, "number": False, "direction": True, "this": True}


class Sample(exp.Expression):
    """`TABLESAMPLE (this ROWS) REPEATABLE (seed)`; `this` is a Var where it says the whole: `100 PERCENT`."""

    arg_types = {"this": True, "seed": False}


class Piped(exp.Expression):
    """`query |> operator |> …` as it was written; pipes.py makes SELECTs of it."""

    arg_types = {
        "with_": False,
        "this": True,
        "expressions": True,
        "order": False,
        "sort": False,
        "cluster": False,
        "distribute": False,
        "late_windows": False,
        "limit": False,
        "offset": False,
    }


class Pipe(exp.Expression):
    """One operator: `kind` is a Var with its word; the other parts are those of the clause that it holds.

    `single`: it was written behind `|`. ENDS has what orders and limits; JOIN, PIVOT, UNION … hold a node in `this`.
    """

    arg_types = {
        "kind": True,
        "single": False,
        "this": False,
        "expressions": False,
        "group": False,
        "distinct": False,
        "said_distinct": False,
        "windows": False,
        "order": False,
        "sort": False,
        "cluster": False,
        "distribute": False,
        "late_windows": False,
        "limit": False,
        "offset": False,
    }


class Assignment(exp.Expression):
    """`a = b + 1` of `|> SET`."""

    arg_types = {"this": True, "expression": True}
