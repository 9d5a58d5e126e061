"""The corpus of `make fuzz`, replayed: seeds are accepted, and what once was a find is refused or usable."""

from __future__ import annotations

from pathlib import Path

import pytest

from fuzz.seeds import CORPUS, seeds
from fuzz.target import FRAME, check
from skerry.wire.kinds import KINDS

SEEDS = seeds()
FINDS = sorted(path for path in CORPUS.iterdir() if path.name not in SEEDS)


def test_the_corpus_is_what_the_messages_are_today() -> None:
    written = {name: (CORPUS / name).read_bytes() for name in SEEDS if (CORPUS / name).exists()}
    assert written.keys() == SEEDS.keys(), "run `python -m fuzz.seeds`"
    kinds = {content[1] for name, content in written.items() if content[0] == FRAME}
    assert kinds == set(KINDS)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_seed_is_accepted(name: str) -> None:
    assert check((CORPUS / name).read_bytes()) != []


@pytest.mark.parametrize("path", FINDS, ids=lambda path: path.name)
def test_a_find_stays_harmless(path: Path) -> None:
    assert isinstance(check(path.read_bytes()), list)


@pytest.mark.parametrize("name", sorted(SEEDS))
def test_a_seed_that_is_cut_short_anywhere_is_harmless(name: str) -> None:
    content = SEEDS[name]
    whole = len(check(content))
    for length in range(0, len(content), max(1, len(content) // 200)):
        assert len(check(content[:length])) <= whole
