"""Results that do not fit the screen."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from skerry.cli.paging import Fit, Left, Output, cut, pager_command, pager_environment, width_of
from skerry.model.limits import UNPAGED_LINES
from tests.unit.client.scripted_member import WAIT_S


@pytest.mark.parametrize(
    ("pieces", "is_wide", "is_long"),
    [
        (["a" * 10 + "\n"] * 4, False, False),
        (["a" * 10, "\n" * 4], False, False),
        (["\n" * 5], False, True),
        (["\n" * 4, "a"], False, True),
        (["a" * 6, "a" * 6], True, False),
        (["\x1b[1m" + "a" * 10 + "\x1b[0m\n"], False, False),
        (["東" * 6], True, False),
    ],
)
def test_what_fits(pieces: list[str], is_wide: bool, is_long: bool) -> None:
    fit = Fit(columns=10, lines=6)  # two of them are for what stands below
    taken = [fit.take(piece) for piece in pieces]
    assert (fit.is_wide, fit.is_long, taken[-1]) == (is_wide, is_long, not (is_wide or is_long))


def test_a_line_that_is_cut_says_so() -> None:
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert width_of(cut("\x1b[1m東東東東\x1b[0m", 6)) <= 6


@pytest.mark.parametrize(
    ("environ", "there", "command"),
    [
        ({}, {"less"}, "less"),
        ({}, set(), None),
        ({"PAGER": "most -w"}, {"most", "less"}, "most -w"),
        ({"PAGER": "most -w"}, {"less"}, "less"),
        ({"PAGER": "'most"}, {"less"}, "less"),
        ({"PAGER": ""}, {"less"}, None),
    ],
)
def test_the_pager_is_the_users(environ: dict[str, str], there: set[str], command: str | None) -> None:
    find: Callable[[str], str | None] = lambda name: name if name in there else None  # noqa: E731
    assert pager_command(environ, find) == command


def test_less_cuts_lines_unless_the_user_says_otherwise() -> None:
    assert pager_environment({})["LESS"].startswith("-SRX ")
    assert pager_environment({"LESS": "-F"})["LESS"].endswith("$ -F")


@pytest.fixture
def screen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A screen of 20 columns and 6 lines; the file has what the pager gets."""
    file = tmp_path / "paged"
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("LINES", "6")
    monkeypatch.setenv("PAGER", f"cat > {file}")
    return file


def test_what_fits_is_written_in_the_end(screen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with Output(is_paged=True) as output:
        output.write("a\nb\n")
        assert capsys.readouterr().out == ""
    assert capsys.readouterr().out == "a\nb\n"
    assert output.note(is_prompt=True) == ""
    assert not screen.exists()


def test_what_does_not_fit_goes_to_the_pager_as_it_comes(screen: Path, capsys: pytest.CaptureFixture[str]) -> None:
    usual = signal.getsignal(signal.SIGINT)
    with Output(is_paged=True) as output:
        output.write("a\n" * 3)
        assert not output.is_paging
        output.write("b\n" * 3)
        assert output.is_paging
        output.write("c" * 30 + "\n")
        os.kill(os.getpid(), signal.SIGINT)  # meant for the pager
    assert screen.read_text() == "a\n" * 3 + "b\n" * 3 + "c" * 30 + "\n"
    assert capsys.readouterr().out == ""
    assert output.note(is_prompt=True) == ""
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.parametrize(("is_prompt", "how"), [(True, "\\x"), (False, "--format vertical")])
def test_wide_rows_are_never_wrapped(screen: Path, is_prompt: bool, how: str) -> None:
    with Output(is_paged=True) as output:
        output.write("c" * 30 + "\n")
    assert screen.read_text() == "c" * 30 + "\n"
    assert output.note(is_prompt=is_prompt) == f"wider than the screen: {how} shows rows one value a line"


@pytest.mark.usefixtures("screen")
def test_who_leaves_the_pager_wants_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PAGER", "true")
    left = threading.Event()
    with Output(is_paged=True, on_left=left.set) as output:
        with pytest.raises(Left):
            _flood(output)
        assert left.wait(WAIT_S)
        assert output.was_left


def _flood(output: Output) -> None:
    for _ in range(1_000_000):
        output.write("a\n" * 10)


@pytest.mark.usefixtures("screen")
def test_without_a_pager_output_is_cut_and_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PAGER", "")
    with Output(is_paged=True) as output:
        output.write("c" * 30 + "\n")
        assert "shows rows one value a line" in output.note(is_prompt=True)
        with pytest.raises(Left):
            output.write("a\n" * UNPAGED_LINES)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["c" * 19 + "…"] + ["a"] * (UNPAGED_LINES - 1)
    assert output.note(is_prompt=True).startswith(f"cut after {UNPAGED_LINES} lines: set PAGER")


@pytest.mark.usefixtures("screen")
def test_a_file_gets_everything_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    with Output(is_paged=False) as output:
        output.write("c" * 30 + "\n" * 300)
        assert capsys.readouterr().out == "c" * 30 + "\n" * 300
