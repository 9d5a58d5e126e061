"""`skerry user`, and who the other commands ask as."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from skerry.access.passwords import is_right
from skerry.access.users import parse_users
from skerry.cli import login as login_module
from skerry.cli.main import main
from skerry.cli.runner import Runner
from skerry.client.arguments import credentials
from skerry.client.pep249 import InterfaceError
from skerry.model.credentials import NOTHING, Credentials
from skerry.wire.messages import Hello
from tests.unit.client.scripted_member import Answers, member_with

CONFIG = "cluster: c\nmembers: {oslo: {address: 'localhost:1'}}\naccess: {users: secret/users}\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "skerry.yaml").write_text(CONFIG)
    (tmp_path / "secret").mkdir()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def user(*words: str, given: str = "") -> Result:
    return CliRunner().invoke(main, ["user", *words], input=given)


def test_users_come_and_go(folder: Path) -> None:
    assert user("add", "anna", given="fjord\nfjord\n").exit_code == 0
    assert user("add", "bob", "--password-stdin", given="bay\r\n").exit_code == 0
    assert user("list").stdout == "anna\nbob\n"
    path = folder / "secret/users"
    assert path.stat().st_mode & 0o777 == 0o600
    users = parse_users(path.read_bytes(), "users")
    assert is_right("fjord", users["anna"])
    assert is_right("bay", users["bob"])
    assert "fjord" not in path.read_text()
    assert user("remove", "anna").exit_code == 0
    gone = user("remove", "anna")
    assert (gone.exit_code, "no user anna" in gone.output) == (1, True)
    assert user("list", "--file", "secret/users").stdout == "bob\n"


def test_a_password_is_not_shown_and_asked_for_twice(folder: Path) -> None:
    asked = user("add", "anna", given="fjord\nfjörd\nbay\nbay\n")
    assert "fjord" not in asked.output
    assert is_right("bay", parse_users((folder / "secret/users").read_bytes(), "users")["anna"])


def test_another_password_is_asked_about(folder: Path) -> None:
    user("add", "anna", "--password-stdin", given="fjord")
    refused = user("add", "anna", "--password-stdin", given="bay")
    assert (refused.exit_code, "--replace" in refused.output) == (1, True)
    assert user("add", "anna", "--password-stdin", "--replace", given="bay").exit_code == 0
    assert is_right("bay", parse_users((folder / "secret/users").read_bytes(), "users")["anna"])


@pytest.mark.parametrize(
    ("words", "given", "says"),
    [
        (("add", "an\nna", "--password-stdin"), "x", "cannot be seen"),
        (("add", "a:b", "--password-stdin"), "x", "no colon"),
        (("add", "", "--password-stdin"), "x", "empty"),
        (("add", "anna", "--password-stdin"), "", "password is empty"),
        (("add", "anna", "--password-stdin"), "x" * 5000, "at most 1024"),
        (("add", "anna", "--password-stdin", "--file", "none/users"), "x", "No such file"),
    ],
)
def test_what_is_no_user(folder: Path, words: tuple[str, ...], given: str, says: str) -> None:
    result = user(*words, given=given)
    assert (result.exit_code, says in result.output) == (1, True), result.output
    assert os.listdir(folder / "secret") == []


def test_without_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert "--file" in user("list").output
    (tmp_path / "skerry.yaml").write_text(CONFIG.replace("access", "#"))
    assert "names no users file" in user("list").output


# --- the other commands ------------------------------------------------------------------------------
def hello_of(*words: str, **environment: str) -> tuple[Credentials, Result]:
    usual = {"SKERRY_USER": None, "SKERRY_PASSWORD": None, "SKERRY_TOKEN": None}
    with member_with(Answers({})) as member:
        words = tuple(word.replace("MEMBER", member.url.removeprefix("skerry://")) for word in words)
        result = CliRunner(env=usual | environment).invoke(main, list(words))
        hellos = [message for message in member.received if isinstance(message, Hello)]
    import msgspec

    shown = hellos[0].credentials if hellos else ""
    return (msgspec.json.decode(shown, type=Credentials) if shown else NOTHING), result


def test_commands_ask_as_a_user(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("p@ss word\n# more\n")
    secret.chmod(0o600)
    ps = ("ps", "skerry://MEMBER")
    assert hello_of(*ps)[0] == NOTHING
    assert hello_of(*ps, "--user", "anna", "--password-file", str(secret))[0] == Credentials("anna", "p@ss word")
    assert hello_of(*ps, "--token-file", str(secret))[0] == Credentials(token="p@ss word")
    assert hello_of("ps", "skerry://anna:b%40y@MEMBER")[0] == Credentials("anna", "b@y")
    assert hello_of(*ps, SKERRY_USER="anna", SKERRY_PASSWORD="bay")[0] == Credentials("anna", "bay")
    assert hello_of(*ps, "--user", "bob", SKERRY_USER="anna", SKERRY_PASSWORD="bay")[0] == Credentials("bob", "bay")
    assert hello_of(*ps, SKERRY_TOKEN="x.y.z")[0] == Credentials(token="x.y.z")
    for command in ("sql", "submit", "explain", "cancel", "attach"):
        words = (command, "skerry://MEMBER", "oslo/1", "--user", "anna", "--password-file", str(secret))
        assert hello_of(*words)[0] == Credentials("anna", "p@ss word"), command


def test_files_that_hold_no_secret(tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("bay")
    secret.chmod(0o644)
    for words, says in (
        (("--password-file", str(secret)), "chmod 600"),
        (("--token-file", str(tmp_path / "none")), "No such file"),
        (("--token-file", "x", "--password-file", "y"), "one of them"),
    ):
        shown, result = hello_of("ps", "skerry://MEMBER", *words)
        assert (shown, result.exit_code) == (NOTHING, 2)
        assert says in result.output
        assert "bay" not in result.output


def test_a_terminal_is_asked_for_the_password(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    monkeypatch.setattr("getpass.getpass", lambda text: asked.append(text) or "fjord")
    monkeypatch.delenv("SKERRY_PASSWORD", raising=False)
    assert Runner("skerry://anna@localhost", "table", None).login == {}
    monkeypatch.setattr(login_module.sys.stderr, "isatty", lambda: True)
    assert Runner("skerry://anna@localhost", "table", None).login == {"password": "fjord"}
    login = Runner("skerry://localhost", "table", None, login={"user": "bob"}).login
    assert login == {"user": "bob", "password": "fjord"}
    assert asked == ["Password of anna: ", "Password of bob: "]
    for url in ("skerry://anna:bay@localhost", "skerry://localhost", "nonsense"):
        assert "password" not in Runner(url, "table", None).login
    assert len(asked) == 2


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ((NOTHING, None, None, None, {}), NOTHING),
        ((Credentials("anna", "a"), None, None, None, {"SKERRY_TOKEN": "t"}), Credentials("anna", "a")),
        ((Credentials("anna", "a"), "bob", "b", None, {}), Credentials("bob", "b")),
        ((Credentials("anna", "a"), None, None, "t", {}), Credentials(token="t")),
        ((Credentials("anna"), None, None, None, {"SKERRY_PASSWORD": "a"}), Credentials("anna", "a")),
        ((NOTHING, None, "a", None, {"SKERRY_USER": "anna"}), Credentials("anna", "a")),
    ],
)
def test_who_says_it(given: tuple[object, ...], shown: Credentials) -> None:
    assert credentials(*given) == shown  # type: ignore[arg-type]


def test_what_says_two_things() -> None:
    with pytest.raises(InterfaceError, match="a password and a token"):
        credentials(NOTHING, "anna", "a", "t", {})
    with pytest.raises(InterfaceError, match="password is text, not bytes") as caught:
        credentials(NOTHING, "anna", b"sesame", None, {})
    assert "sesame" not in caught.value.message
