"""Names for what travels, so that sizes seen once are found again: the same for the same rows, wherever they go.

A name is made of tables with the versions of their files, the conditions on them, and the same of all that reduces
them; so another plan of the query, or of another query, finds what this one has seen. "" stands for rows that depend on
values of parameters. `observed.py` keeps the sizes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from skerry.model.table import TablePart
from skerry.plan.block import Block
from skerry.plan.observed import digest


def block_key(block: Block, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    """A query in FROM, before conditions on its rows."""
    return name_of("block", block.known_as, *reads(block.names, parts_of), "where")


def reads(names: Iterable[str], parts_of: Mapping[str, Sequence[TablePart]]) -> tuple[str, ...]:
    """What stands for each of these scans."""
    return tuple(f"{name}={table_text(part)}" for name in names for part in parts_of[name])


def table_text(part: TablePart) -> str:
    return f"{part.member}.{part.table.lower()}@{part.files_version}"


def width_key(key: str, columns: Sequence[str]) -> str:
    """Rows with what is sent of them where the plan takes these columns to be."""
    return f"{key} with {' '.join(sorted(columns)).lower()}"


def join_key(plain: Sequence[str], conjuncts: Sequence[str]) -> str:
    """Tables joined with nothing else: `plain` are the names of their rows, `conjuncts` what joins them."""
    return name_of("join", *plain, "on", *conjuncts)


def groups_key(part: TablePart, text: str, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    """Groups that one part sends, by this text; `parts_of` are those of the tables that it is joined with."""
    return name_of("groups", table_text(part), text, *reads(sorted(parts_of), parts_of))


def result_key(text: str, parts_of: Mapping[str, Sequence[TablePart]]) -> str:
    return name_of("result", text, *reads(sorted(parts_of), parts_of))


def name_of(*texts: str) -> str:
    # A parameter, or a text that might be taken for one: forgetting is safe, remembering for all values is not.
    return "" if any(not text or ":" in text for text in texts) else digest(texts)
