"""Statements of any length, a kind each: what planning them takes must grow as their text does."""

from __future__ import annotations

from collections.abc import Callable

Long = Callable[[int, str, str], str]


def _twice(table: str, column: str) -> str:
    """Over several tables other rules are tried."""
    return f"FROM {table} AS a JOIN {table} AS b ON a.{column} = b.{column}"


# From a number, a table and a column of whole numbers in it.
LONG: dict[str, Long] = {
    "ORs": lambda n, table, column: f"SELECT * FROM {table} WHERE {' OR '.join(f'{column} = {i}' for i in range(n))}",
    "ANDs": lambda n, table, column: (
        f"SELECT * FROM {table} WHERE {' AND '.join(f'{column} <> {i}' for i in range(n))}"
    ),
    "IN": lambda n, table, column: f"SELECT * FROM {table} WHERE {column} IN ({', '.join(map(str, range(n)))})",
    "comments": lambda n, table, column: f"SELECT {column} FROM {table} {'/**/' * n}",
    "UNIONs": lambda n, table, column: " UNION ALL ".join([f"SELECT {column} FROM {table}"] * n),
    "brackets": lambda n, table, column: f"SELECT {', '.join(['(' * 40 + column + ')' * 40] * n)} FROM {table}",
    "equalities": lambda n, table, column: f"SELECT {column} {'= true ' * n} FROM {table}",
    "columns": lambda n, table, column: f"SELECT {', '.join(f'{column} + {i} AS c{i}' for i in range(n))} FROM {table}",
    "CTEs": lambda n, table, column: (
        f"WITH {', '.join(f'q{i} AS (SELECT {column} FROM {table})' for i in range(n))} SELECT * FROM q0"
    ),
    "aggregates": lambda n, table, column: (
        f"SELECT {', '.join(f'sum(a.{column} + {i}) AS s{i}' for i in range(n))} {_twice(table, column)} "
        f"GROUP BY a.{column}"
    ),
    "keys": lambda n, table, column: (
        f"SELECT {', '.join(f'a.{column} + {i} AS c{i}' for i in range(n))}, count(*) {_twice(table, column)} "
        f"GROUP BY {', '.join(f'a.{column} + {i}' for i in range(n))} "
        f"ORDER BY {', '.join(f'a.{column} + {i}' for i in range(n))}"
    ),
    "pairs": lambda n, table, column: (
        f"SELECT a.{column} {_twice(table, column)} "
        f"WHERE {' OR '.join(f'(a.{column} = {i} AND b.{column} = {i})' for i in range(n))}"
    ),
    "concatenations": lambda n, table, column: (
        f"SELECT {' || '.join([f'string(a.{column})'] * n)} AS c {_twice(table, column)}"
    ),
}
