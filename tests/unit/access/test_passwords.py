"""Hashes of passwords, the users file that holds them, and whose file it has to be."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from skerry.access import files
from skerry.access.files import read_file
from skerry.access.known import KnownPasswords
from skerry.access.names import shown_name, user_name
from skerry.access.passwords import PasswordHash, hash_password, is_right, parse_hash
from skerry.access.users import UsersFile, listed_name, parse_users
from skerry.model.errors import ConfigError, UserError
from skerry.model.limits import PASSWORDS_KNOWN, PASSWORDS_KNOWN_S
from tests.unit.access.access_worlds import users_file

SALT = bytes(range(16))
HASH = hash_password("fjord", SALT)


def test_a_hash_is_written_and_read_back() -> None:
    assert str(HASH).startswith("scrypt$16384$8$1$")
    assert "fjord" not in str(HASH)
    assert parse_hash(str(HASH)) == HASH
    assert is_right("fjord", HASH)
    assert not is_right("Fjord", HASH)
    assert not is_right("", HASH)
    assert not is_right("x" * 100_000, HASH)
    assert not is_right("\ud800", HASH)


def test_a_password_is_the_same_however_its_letters_are_composed() -> None:
    assert is_right("A\u030a", hash_password("\u00c5", SALT))


def test_parameters_may_grow() -> None:
    dear = hash_password("fjord", SALT, 2**15)
    assert parse_hash(str(dear)).n == 2**15
    assert is_right("fjord", dear)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "form scrypt"),
        ("md5$16384$8$1$AA==$AA==", "form scrypt"),
        ("scrypt$1024$8$1$AA==$AA==", "power of two"),
        ("scrypt$16385$8$1$AA==$AA==", "power of two"),
        ("scrypt$99999999999$8$1$AA==$AA==", "parameters"),
        ("scrypt$16384$64$1$AA==$AA==", "parameters"),
        ("scrypt$16384$8$1$AA==$!", "base64"),
        ("scrypt$16384$8$1$AA==$AA==", "salt has 16"),
    ],
)
def test_a_hash_that_is_none_is_told(text: str, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        parse_hash(text)


@pytest.mark.parametrize("name", ["anna", "anna.berg@example.com", "Ås", "张伟", "two words"])
def test_names(name: str) -> None:
    assert user_name(name) == name


@pytest.mark.parametrize(
    "name", ["", " ", " anna", "anna ", "an\nna", "an\0na", "a\u202enna", "a\u200bnna", "x" * 129, "\ud800"]
)
def test_what_is_no_name(name: str) -> None:
    with pytest.raises(UserError):
        user_name(name)
    assert shown_name(name).isprintable()


def test_names_that_look_the_same_are_the_same() -> None:
    assert user_name("A\u030as") == user_name("\u00c5s")


def test_the_users_file(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("# of oslo\n\n")
    path.chmod(0o600)
    users = UsersFile(str(path))
    users.put("anna", HASH)
    users.put("bob", HASH)
    users.put("anna", hash_password("skerry", SALT))
    assert sorted(users.names()) == ["anna", "bob"]
    assert path.read_text().startswith("# of oslo\n\nbob:scrypt$")
    assert path.stat().st_mode & 0o777 == 0o600
    assert is_right("skerry", parse_users(path.read_bytes(), "users")["anna"])
    assert users.remove("bob")
    assert not users.remove("bob")
    assert users.names() == ["anna"]
    assert os.listdir(tmp_path) == ["users"]


def test_a_new_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        path = users_file(tmp_path, anna="fjord")
    finally:
        os.umask(before)
    assert os.stat(path).st_mode & 0o777 == 0o600


def test_two_who_write_at_once_lose_nobody(tmp_path: Path) -> None:
    path = str(tmp_path / "users")
    threads = [threading.Thread(target=UsersFile(path).put, args=(f"user{n}", HASH)) for n in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(UsersFile(path).names()) == sorted(f"user{n}" for n in range(20))


def test_every_wrong_line_is_told_with_its_place_and_without_its_hash() -> None:
    text = f"anna:{HASH}\nbob\nanna:{HASH}\n:{HASH}\neve:{str(HASH)[:-3]}\na\x07b:{HASH}\n\xff:".encode("latin-1")
    with pytest.raises(ConfigError) as caught:
        parse_users(text, "users")
    lines = caught.value.message.split("\n")
    assert [line.split(":")[1] for line in lines] == ["2", "3", "4", "5", "6", "7"]
    assert "scrypt$16384" not in caught.value.message


@pytest.mark.parametrize("name", ["a:b", "#anna", "an\nna"])
def test_names_that_no_line_can_hold(name: str) -> None:
    with pytest.raises(UserError):
        listed_name(name)


def test_nothing_is_written_over_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    path = tmp_path / "users"
    path.write_text("bob\n")
    path.chmod(0o600)
    with pytest.raises(ConfigError, match=r"users:1: expected name:hash"):
        UsersFile(str(path)).put("anna", HASH)
    assert path.read_text() == "bob\n"


@pytest.mark.parametrize(("mode", "says"), [(0o644, "chmod 600"), (0o660, "chmod 600"), (0o602, "chmod 600")])
def test_a_file_that_others_may_touch_is_not_believed(tmp_path: Path, mode: int, says: str) -> None:
    path = users_file(tmp_path, anna="fjord")
    os.chmod(path, mode)
    with pytest.raises(ConfigError, match=says):
        read_file(path, is_secret=True)


def test_a_file_of_another_user_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = users_file(tmp_path, anna="fjord")
    if os.geteuid() == 0:
        os.chown(path, 4711, -1)
    else:
        monkeypatch.setattr(files.os, "geteuid", lambda: 4711)
    with pytest.raises(ConfigError, match="belongs to another user"):
        read_file(path, is_secret=True)


def test_what_is_no_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "users", 0o600)
    for name, says in (("users", "not a file"), ("none", "no such file"), (".", "is a directory|not a file")):
        with pytest.raises(ConfigError, match=says):
            read_file(str(tmp_path / name), is_secret=True)


def test_right_passwords_are_known_for_a_while() -> None:
    known = KnownPasswords(b"k" * 32)
    known.add("anna", HASH, "fjord", 0.0)
    assert known.has("anna", HASH, "fjord", 1.0)
    assert not known.has("anna", HASH, "Fjord", 1.0)
    assert not known.has("bob", HASH, "fjord", 1.0)
    assert not known.has("anna", PasswordHash(HASH.n, HASH.salt, bytes(32)), "fjord", 1.0)  # it was changed
    assert not known.has("anna", HASH, "fjord", PASSWORDS_KNOWN_S)
    for number in range(2 * PASSWORDS_KNOWN):
        known.add(f"user{number}", HASH, "fjord", 0.0)
    assert len(known) == PASSWORDS_KNOWN


def test_a_password_with_nul_at_its_end_is_another_one() -> None:
    assert not is_right("secret\0", hash_password("secret", bytes(16)))
