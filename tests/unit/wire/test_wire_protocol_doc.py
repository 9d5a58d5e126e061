"""docs/protocol.md lists every message with its fields in order, every error code, and the true defaults."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from skerry.model.errors import BY_CODE
from skerry.model.limits import Limits
from skerry.wire import execution
from skerry.wire.commit_messages import CommitMessage
from skerry.wire.kinds import KINDS
from skerry.wire.messages import Message
from skerry.wire.proof import Side
from skerry.wire.tupletypes import types_of
from tests.unit.wire.test_wire_proof import GOLDEN

TEXT = (Path(__file__).parents[3] / "docs" / "protocol.md").read_text()


@pytest.mark.parametrize("kind", sorted(KINDS))
def test_each_message_is_listed_with_its_fields(kind: int) -> None:
    fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(KINDS[kind]))
    assert f"| {kind} | `{KINDS[kind].__name__}` | {fields or '–'} |" in TEXT


@pytest.mark.parametrize("message", get_args(CommitMessage), ids=lambda message: message.__name__)
def test_each_message_of_commits_is_listed_with_its_fields(message: type[Message]) -> None:
    fields = ", ".join(f"`{field.name}`" for field in msgspec.structs.fields(message))
    assert f" | `{message.__name__}` | {fields} |" in TEXT


def test_no_other_message_is_listed() -> None:
    listed = {int(number) for number in re.findall(r"^\| (\d+) \| `\w+` \| [`–]", TEXT, re.M)}
    assert listed == set(KINDS)


def test_each_error_code_is_listed() -> None:
    for code, error in BY_CODE.items():
        assert code == 1 or re.search(rf"\b{code}\b \|? ?`{error.__name__}`", TEXT), error


def test_the_defaults_are_those_of_the_code() -> None:
    units = {"KiB": 1024, "MiB": 1024**2, "s": 1, "": 1}
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ([^|]+) \| [^|]+ \|$", TEXT[TEXT.index("## 8.") :], re.M)
    checked = set()
    for names, stated in rows:
        values = re.findall(r"([\d.]+(?:,\d{3})*) ?(KiB|MiB|s|)", stated)
        for name, (number, unit) in zip(re.findall(r"`(\w+)`", names), values, strict=True):
            assert getattr(Limits(), name) == float(number.replace(",", "")) * units[unit], name
            checked.add(name)
    assert {"frame_bytes", "login_s", "reconnect_max_s", "control_unacked_messages"} <= checked


@pytest.mark.parametrize("side", list(GOLDEN))
def test_proofs_are_those_of_the_tests(side: Side) -> None:
    assert f"| {side.value} | `{GOLDEN[side]}` |" in TEXT


def test_each_packet_of_the_execution_protocol_is_listed_with_its_fields() -> None:
    chapter = TEXT[TEXT.index("## 10. Execution") :]
    rows = dict(re.findall(r"^\| [^|]*`(\w+)` \| ([^|]+) \|$", chapter, re.M))
    for packet in execution.Packet.__subclasses__():
        if packet.__name__.startswith("_") or packet in (execution.Reference, execution.Fixed):
            continue
        fields = [f"`{field.name}`" for field in msgspec.structs.fields(packet)]
        if packet in (execution.SharedUpdate, execution.LocalUpdate):
            fields.insert(2, "`type`")
        assert rows[packet.__name__] == ", ".join(fields)


def test_the_codes_of_types_are_those_of_the_code() -> None:
    chapter = TEXT[TEXT.index("### 10.3") : TEXT.index("### 10.4")]
    listed = re.findall(r"^\| ([^|]+) \| (\d+) (\w+) \|", chapter, re.M)
    assert {(int(number), name.upper()) for _, number, name in listed} | {(7, "UUID")} == {
        (code.value, code.name) for code in execution.TypeCode
    }
    for words, number, _ in listed:
        for word in re.findall(r"^\w+|(?<=, )(?:tinyint|smallint|int|bigint|double|timestamp_ntz)", words):
            if word not in ("intervals", "decimal", "time"):
                assert word in types_of(execution.TypeCode(int(number))), word
