"""Asks a member in every way the client has, and prints the answers. For an environment without a member's packages."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import sys
from typing import Any

import skerry
import skerry.aio

MEMBERS_OWN = ("numpy", "pandas", "pyspark", "sqlglot", "uvloop", "yaml")


async def asked_by_asyncio(url: str) -> list[Any]:
    async with skerry.aio.connect(url) as connection, connection.cursor() as cursor:
        await cursor.execute("SELECT id FROM oslo.few WHERE id < 3 ORDER BY id")
        return [row async for row in cursor]


def asked(url: str) -> dict[str, Any]:
    with skerry.connect(url, retry="reads") as connection, connection.cursor() as cursor:
        count = cursor.execute("SELECT count(*) FROM ticks").fetchone()
        kinds = cursor.execute("SELECT * FROM kinds WHERE `int` = ?", [-1])
        row, types = kinds.fetchone(), [column[1] for column in kinds.description or ()]
        table = cursor.execute("SELECT * FROM kinds").fetch_arrow_table()
        prepared = connection.prepare("SELECT name FROM oslo.few WHERE id = :id")
        try:
            prepared.execute({"id": "no number"})
        except skerry.ProgrammingError as error:
            refused = str(error)
        try:
            cursor.execute("SELECT id FROM oslo.few").fetch_pandas()
        except skerry.NotSupportedError as error:
            without_pandas = str(error)
        return {
            "count": count,
            "row": repr(row),
            "types": types,
            "arrow": [str(field.type) for field in table.schema],
            "prepared": prepared.execute({"id": 5}).fetchall(),
            "refused": refused,
            "without_pandas": without_pandas,
            "members": sorted(member.name for member in connection.members()),
        }


answers = asked(sys.argv[1])
answers["asyncio"] = asyncio.run(asked_by_asyncio(sys.argv[1]))
answers["found"] = [name for name in MEMBERS_OWN if importlib.util.find_spec(name) is not None]
answers["place"] = skerry.__file__
print(json.dumps(answers))
