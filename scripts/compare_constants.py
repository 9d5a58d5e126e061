"""Asks Apache Spark for what `sql/constants.py` is sure of: `python scripts/compare_constants.py` (a minute or more).

Each literal in each type of column, rows of VALUES together, and keys that a WHERE names. Prints every difference, of
which there must be none. Run it after a form was added there.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Sequence
from decimal import Decimal
from random import Random
from typing import Any

from skerry.sql.constants import Misfit, Unsure, assigned, check_together, constant, matched
from skerry.sql.parse import parse_expression

NUMBERS = (
    "1 0 -1 007 +5 127 128 -128 -129 32767 32768 2147483647 2147483648 -2147483648 9223372036854775807"
    " -9223372036854775808 9223372036854775808 12345678901234567890123 16777217 9007199254740993 1L 2S 3Y -3Y 1.5 -1.5"
    " .5 5. 0.0 -0.0 1.005 -1.005 99.995 0.001 999.994 1.50 2BD 2.5BD 123456789012345678.123456789 1e0 1e3 1.5e-3 2D"
    " 0.1D -0D 1e300 1e38"
).split()
OTHERS = (
    *("'x'", "'1'", "''", "'it''s'", "X'00ff'", "X''", "true", "FALSE", "NULL"),
    *("DATE '2024-02-29'", "DATE '0001-01-01'", "DATE '9999-12-31'", "TIMESTAMP '2024-01-01 00:00:00'"),
    *("TIMESTAMP '1969-12-31T23:59:59.999999'", "TIMESTAMP_NTZ '2024-01-01 00:00:00.5'"),
    *("TIMESTAMP_LTZ '1582-10-05 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00+02:00'"),
    *("TIMESTAMP '2024-01-01T00:00:00.25-18:00'", "TIMESTAMP_LTZ '1969-12-31 23:59:59Z'"),
    *("TIMESTAMP '0001-01-01 00:00:00+00:30'", "TIMESTAMP_NTZ '2024-01-01 00:00:00+02:00'"),
    *("TIMESTAMP '2024-01-01 00:00:00+19:00'", "TIMESTAMP '2024-01-01 00:00:00-17:59'"),
)
LITERALS = (*NUMBERS, *OTHERS)
TYPES = (
    *("boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "decimal(5,2)", "decimal(38,18)"),
    *("decimal(20,0)", "decimal(38,37)", "string", "binary", "date", "timestamp", "timestamp_ntz"),
)
# Values that a key's column has, of which a WHERE takes some.
KEYS: dict[str, tuple[str, ...]] = {
    "boolean": ("true", "false"),
    "tinyint": ("1", "2", "127", "-128", "0"),
    "int": ("1", "2", "2147483647", "0", "5"),
    "bigint": ("1", "2", "9223372036854775807", "5", "-1"),
    "decimal(5,2)": ("1", "1.5", "1.01", "0", "99.99", "5", "-1.5", "-1.01"),
    "decimal(38,18)": ("1", "1.5", "0.5", "2.5", "1.005", "5"),
    "decimal(20,0)": ("1", "2", "5", "9223372036854775808"),
    "string": ("'x'", "'1'", "''", "'it''s'"),
    "binary": ("X'00ff'", "X''"),
    "date": ("DATE '2024-02-29'", "DATE '0001-01-01'"),
    "timestamp": ("TIMESTAMP '2024-01-01 00:00:00'", "TIMESTAMP '1969-12-31T23:59:59.999999'"),
    "timestamp_ntz": ("TIMESTAMP_NTZ '2024-01-01 00:00:00.5'",),
}
REFUSED = "refused"
Ask = Callable[[str], list[Any]]


def main(trials: int) -> int:
    ask = _spark()
    random = Random(1)
    cases = [_stored([literal], kind) for kind in TYPES for literal in LITERALS]
    for _ in range(trials):
        pool = NUMBERS if random.random() < 0.8 else LITERALS
        cases.append(_stored(random.sample(pool, random.randint(2, 3)), random.choice(TYPES)))
        kind = random.choice(list(KEYS))
        near = [*KEYS[kind], *random.sample(LITERALS, 8), "NULL"]
        cases.append(_keyed([random.choice(near) for _ in range(random.randint(1, 3))], kind))
    sure = [case for case in cases if case is not None]
    differences = 0
    for text, ours in sure:
        theirs = ask(text)
        if theirs != ours:
            differences += 1
            print(f"{text}\n  here {ours}\n  Spark {theirs}")
    print(f"{len(sure)} of {len(cases)} are sure, {differences} of them differ")
    return 1 if differences else 0


def _value(literal: str) -> Any:
    return constant(parse_expression(literal), {})


def _stored(literals: Sequence[str], kind: str) -> tuple[str, list[Any]] | None:
    """A query, and what it must give; None where nobody is sure."""
    rows = ", ".join(f"({literal})" for literal in literals)
    text = f"SELECT CAST(col1 AS {kind}) FROM VALUES {rows}"
    try:
        values = [_value(literal) for literal in literals]
        check_together(values)
        return text, [_shown(assigned(value, kind)) for value in values]
    except Unsure:
        return None
    except Misfit:
        return text, [REFUSED]


def _keyed(literals: Sequence[str], kind: str) -> tuple[str, list[Any]] | None:
    condition = f"c = {literals[0]}" if len(literals) == 1 else f"c IN ({', '.join(literals)})"
    rows = ", ".join(f"(CAST({literal} AS {kind}))" for literal in KEYS[kind])
    try:
        keys = {_shown(assigned(each, kind)) for each in matched([_value(literal) for literal in literals], kind)}
    except Unsure:
        return None
    here = [_shown(assigned(_value(literal), kind)) for literal in KEYS[kind]]
    return f"SELECT c FROM VALUES {rows} AS v(c) WHERE {condition}", [each for each in here if each in keys]


def _shown(value: Any) -> str:
    """Tells -0.0 from 0.0, and 1.0 from 1.00."""
    if isinstance(value, dt.datetime):
        value = value.astimezone(dt.UTC).replace(tzinfo=None) if value.tzinfo else value
    return str(value if not isinstance(value, bytearray) else bytes(value)) + f" {isinstance(value, Decimal)}"


def _spark() -> Ask:
    import os
    import time

    os.environ["TZ"] = "UTC"  # pyspark gives timestamps in the zone of the process
    time.tzset()
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = builder.config("spark.sql.session.timeZone", "UTC").config("spark.sql.ansi.enabled", "true").getOrCreate()
    session.sparkContext.setLogLevel("OFF")

    def ask(text: str) -> list[Any]:
        try:
            return [_shown(row[0]) for row in session.sql(text).collect()]
        except PySparkException:
            return [REFUSED]

    return ask


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 300))
