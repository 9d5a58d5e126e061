"""`skerry rebalance` against a scripted member: one move after the other, and what is shown of them."""

from __future__ import annotations

import pyarrow as pa
from click.testing import CliRunner

from skerry.cli.main import main
from skerry.wire.client_messages import ClientExecute
from skerry.wire.messages import Message
from tests.unit.client.scripted_member import Answers, Peer, member_with

LEFT = ("left", "stock", "oslo", "tromso", 2730, None, None)
MOVED = ("moved", "stock", "oslo", "tromso", 2730, 3289, 43_000)
NAMES = ("step", "table", "source", "target", "buckets", "rows", "bytes")
TYPES = (*[pa.string()] * 4, *[pa.int64()] * 3)


def told(*steps: tuple[object, ...]) -> pa.Table:
    columns = list(zip(*steps, strict=True)) if steps else [()] * len(NAMES)
    arrays = [pa.array(list(values), kind) for values, kind in zip(columns, TYPES, strict=True)]
    return pa.table(dict(zip(NAMES, arrays, strict=True)))


def test_what_is_shown_of_moves() -> None:
    """Bergen leaves: its name is a member's, whatever letters it has."""
    answers = {f"{what} WITHOUT (`bergen`)": told(LEFT) for what in ("SHOW REBALANCE", "REBALANCE TABLES")}
    before, after = Answers(answers), Answers(answers | {"REBALANCE TABLES WITHOUT (`bergen`)": told()})
    first = Answers(answers | {"REBALANCE TABLES WITHOUT (`bergen`)": told(MOVED)})
    moves = iter((first, after))

    def script(peer: Peer, message: Message) -> None:
        is_move = isinstance(message, ClientExecute) and message.sql.startswith("REBALANCE")
        (next(moves) if is_move else before)(peer, message)

    with member_with(script) as member:
        planned = CliRunner().invoke(main, ["rebalance", member.url, "--leave", "bergen", "--plan"])
        assert planned.stdout == "stock: 2,730 buckets, oslo → tromso\n(2,730 buckets to move)\n"
        moved = CliRunner().invoke(main, ["rebalance", member.url, "--leave", "bergen"])
    lines = moved.stdout.splitlines()
    assert (moved.exit_code, len(lines)) == (0, 2)
    assert lines[0] == "stock: 2,730 buckets, oslo → tromso, 3,289 rows, 42.0 KiB; 0 buckets are left"
    assert lines[1].startswith("(1 move, 3,289 rows, 42.0 KiB, ")


def test_nothing_to_move() -> None:
    with member_with(Answers({"SHOW REBALANCE": told(), "REBALANCE TABLES": told()})) as member:
        assert CliRunner().invoke(main, ["rebalance", member.url]).stdout == "(nothing to move)\n"
        assert CliRunner().invoke(main, ["rebalance", member.url, "more"]).exit_code == 2
