"""Which member a command asks: its URL, or SKERRY_URL."""

from __future__ import annotations

import pytest
from click import UsageError
from click.testing import CliRunner

from skerry.cli.main import main
from skerry.cli.target import VARIABLE, read_url, read_url_and, read_url_and_maybe
from skerry.client.url import parse_url

KNOWN = "skerry://known.example"


@pytest.fixture
def known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, KNOWN)


@pytest.fixture
def unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("words", "target"),
    [
        ((), (KNOWN, None)),
        (("SELECT 1",), (KNOWN, "SELECT 1")),
        (("SELECT 'skerry://a:1'",), (KNOWN, "SELECT 'skerry://a:1'")),
        (("skerry://a:1",), ("skerry://a:1", None)),
        (("SKERRY+TLS://a?authority=x y.pem",), ("SKERRY+TLS://a?authority=x y.pem", None)),
        (("a.example:1/oslo",), ("a.example:1/oslo", None)),
        (("[::1]:7100",), ("[::1]:7100", None)),
        (("skerry://a:1", "SELECT 1"), ("skerry://a:1", "SELECT 1")),
        (("http://a", "SELECT 1"), ("http://a", "SELECT 1")),  # the client says what is wrong with it
    ],
)
def test_the_first_word_is_a_url_or_the_variable_is(words: tuple[str, ...], target: tuple[str, str | None]) -> None:
    assert read_url_and_maybe("STATEMENT", words) == target


@pytest.mark.parametrize(
    "place", ["10.0.0.1:7101", "10.0.0.1:7101/oslo", "a.example:1", "[::1]:7100", "localhost:7100/"]
)
def test_a_place_without_a_scheme_is_taken_as_a_word_and_as_the_variable(
    monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    assert parse_url(place)
    monkeypatch.setenv(VARIABLE, place)
    assert read_url_and_maybe("STATEMENT", ("SELECT 1",)) == (place, "SELECT 1")
    monkeypatch.delenv(VARIABLE)
    assert read_url_and_maybe("STATEMENT", (place,)) == (place, None)
    assert read_url_and("STATEMENT", (place, "SELECT 1")) == (place, "SELECT 1")
    assert read_url((place,)) == place


@pytest.mark.usefixtures("known")
def test_what_a_command_needs_beside_the_url() -> None:
    assert read_url(()) == KNOWN
    assert read_url(("a.example",)) == "a.example"
    assert read_url_and("QUERY_ID", ("oslo/1",)) == (KNOWN, "oslo/1")
    with pytest.raises(UsageError, match="Missing argument 'QUERY_ID'"):
        read_url_and("QUERY_ID", ("skerry://a:1",))
    with pytest.raises(UsageError, match=r"'b\.example' is too much"):
        read_url(("a.example", "b.example"))
    with pytest.raises(UsageError, match=r"^one STATEMENT is enough: put quotes around it, or leave out '2'"):
        read_url_and_maybe("STATEMENT", ("skerry://a", "SELECT", "2"))
    with pytest.raises(UsageError, match=r"^'SELECT' is no URL .*, and one STATEMENT is enough: put quotes"):
        read_url_and_maybe("STATEMENT", ("SELECT", "2"))


@pytest.mark.parametrize("url", ["nonsense", "skerry:/x"])
def test_a_variable_that_is_no_url_is_told_with_the_form_of_one(monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    monkeypatch.setenv(VARIABLE, url)
    with pytest.raises(
        UsageError, match=rf"^SKERRY_URL: '{url}' is no Skerry URL: .* \(write skerry://host:port/schema\)"
    ):
        read_url(())


@pytest.mark.usefixtures("unknown")
@pytest.mark.parametrize("words", [["sql", "SELECT 1"], ["explain", "SELECT 1"], ["ps"], ["cancel", "oslo/1"]])
def test_nobody_to_ask_is_an_error_that_says_what_to_do(words: list[str]) -> None:
    result = CliRunner().invoke(main, words)
    assert result.exit_code == 2
    assert "Error: which member? Give its URL (skerry://host:port), or set SKERRY_URL" in result.stderr
