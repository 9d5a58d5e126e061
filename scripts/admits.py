"""How many of Spark's own test queries the gate admits: `python scripts/admits.py sql-tests/results [REASONS]`.

The folder is sql/core/src/test/resources/sql-tests/results of Spark's source: each file has statements and what Spark
answered. Counted are the different texts of plain queries outside of udf/. A function that the tests define is taken
for one that exists, as every table is; its columns are all names of the statement, or all but those that it gives by
AS: `|> EXTEND 1 AS z |> SET z = 2` is right only where the table has no column z. A session variable is known where an
earlier statement of the same file DECLAREs it, until one DROPs it; each is taken for the INT 1.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from skerry.model.errors import SqlError
from skerry.model.limits import Limits
from skerry.model.names import TableRef
from skerry.model.results import Value
from skerry.model.table import Column
from skerry.model.variables import Variable
from skerry.sql.statement import analyse

_PARTS = re.compile(r"^-- !query(?: (schema|output|analysis|other))?\n", re.M)
_STARTS = ("SELECT", "WITH", "VALUES", "FROM", "TABLE")
_BEFORE = re.compile(r"(?:\s|\(|--[^\n]*\n|/\*(?!\+).*?\*/)*", re.S)
_INSERTS = re.compile(r"\bINSERT\s+(INTO|OVERWRITE)\b", re.I)
_ERROR = re.compile(r"(org\.apache\.spark|java)\.")
_OWN = re.compile(r"unknown (table )?function|TABLE arguments")


_NAME = r"(?:(?:system\.)?session\.)?(\w+)"
_DECLARES = re.compile(rf"DECLARE\s+(?:OR\s+REPLACE\s+)?(?:VAR(?:IABLE)?\s+)?{_NAME}((?:\s*,\s*\w+)*)\s", re.I)
_DROPS = re.compile(rf"DROP\s+TEMP(?:ORARY)?\s+VAR(?:IABLE)?\s+(?:IF\s+EXISTS\s+)?{_NAME}$", re.I)
_ONE = Variable("int", Value("int", 1))


class _Anything:
    """A catalog that has every table, with names of the statement for columns."""

    def __init__(self, text: str, given: str = "") -> None:
        words = {match.lower() for match in re.findall(r"\w+", text)}
        words -= {match.lower() for match in re.findall(given, text, re.I)} if given else set()
        self._columns = tuple(Column(word, "string") for word in sorted(words))

    def lookup(self, parts: tuple[str, ...]) -> TableRef | None:
        # Tables of two schemas are two.
        return TableRef(parts[-1], parts[-2] if len(parts) > 1 else None, self._columns)

    def names(self) -> list[str]:
        return []


def queries(folder: Path) -> Iterator[tuple[str, str, dict[str, Variable]]]:
    """Each plain query, what Spark answered, and the variables that are declared before it; once."""
    seen: set[str] = set()
    for path in sorted(folder.rglob("*.sql.out")):
        if path.relative_to(folder).parts[0] == "udf":
            continue
        parts = _PARTS.split(path.read_text(encoding="utf-8"))
        sql = ""
        variables: dict[str, Variable] = {}
        for kind, body in zip(parts[1::2], parts[2::2], strict=True):
            if kind is None:
                sql = body.strip()
            elif kind == "output" and sql not in seen and _is_plain(sql):
                seen.add(sql)
                yield sql, body.strip(), dict(variables)
            elif kind == "output" and not _ERROR.match(body.strip()):
                _keep(sql, variables)


def _keep(sql: str, variables: dict[str, Variable]) -> None:
    """What DECLARE and DROP make of the session's variables."""
    if declared := _DECLARES.match(sql):
        variables.update(dict.fromkeys(re.findall(r"\w+", f"{declared[1]} {declared[2]}".lower()), _ONE))
    elif dropped := _DROPS.match(sql):
        variables.pop(dropped[1].lower(), None)


def _is_plain(sql: str) -> bool:
    start = _BEFORE.sub("", sql, count=1)
    return re.split(r"\W", start, maxsplit=1)[0].upper() in _STARTS and not _INSERTS.search(start)


def refusal(sql: str, variables: dict[str, Variable]) -> str:
    """Why the statement is refused; empty if it is not."""
    why = ""
    for given in ("", r"\bAS\s+(\w+)"):
        try:
            analyse(sql, None, _Anything(sql, given), Limits(), variables)
        except SqlError as error:
            why = why or error.message.split("\n")[0]
        else:
            return ""
    return why


def main(folder: Path, most: int) -> None:
    count = Counter[str]()
    reasons = Counter[str]()
    for sql, answer, variables in queries(folder):
        why = refusal(sql, variables)
        first = answer.split("\n")[0]
        kind = "not parsed by Spark" if "ParseException" in first else "parsed"
        is_own = bool(_OWN.match(why))
        count[kind] += 1
        count[f"{kind}, admitted"] += is_own or not why
        count[f"{kind}, with functions of the tests' own"] += is_own
        if why and not is_own:
            count[f"{kind}, refused, and an error in Spark too"] += bool(_ERROR.match(first))
        if why and not is_own and kind == "parsed":
            reasons[re.sub(r"'[^']*'", "'…'", why)] += 1
    for name, number in sorted(count.items()):
        print(f"{number:6} {name}")
    print("refused though Spark parses them:")
    for name, number in reasons.most_common(most):
        print(f"{number:6} {name[:140]}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 40)
