"""Keys and secrets are for their owner alone; the secret is made whole, once."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from skerry.config import parse
from skerry.config.private import all_run_here, make_secret, read_secret, refuse_public
from skerry.model.errors import ConfigError

KEY = "k" * 64
AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
MEMBERS = "cluster: c\nmembers:\n  oslo: {address: '127.0.0.1:7101'}\n"
TLS = "tls: {certificate: c.pem, key: k.pem, authority: a.pem}\n"


def test_a_secret_is_made_for_its_owner_and_never_twice(tmp_path: Path) -> None:
    path = str(tmp_path / "skerry.secret")
    assert make_secret(path, KEY)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert not make_secret(path, "o" * 64)
    assert read_secret(path) == (KEY.encode(),)
    assert os.listdir(tmp_path) == ["skerry.secret"]


def test_of_many_that_make_it_at_once_one_does(tmp_path: Path) -> None:
    path, made = str(tmp_path / "skerry.secret"), []
    start = threading.Barrier(8)

    def make(number: int) -> None:
        start.wait()
        if make_secret(path, f"{number}" * 64):
            made.append(number)
        assert len(read_secret(path)) == 1

    threads = [threading.Thread(target=make, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert read_secret(path) == (f"{made[0]}".encode() * 64,)
    assert os.listdir(tmp_path) == ["skerry.secret"]


def test_a_file_may_have_several_keys(tmp_path: Path) -> None:
    path = tmp_path / "skerry.secret"
    path.touch(0o600)
    path.write_text(f"# since May\n{KEY}\n\n  {'o' * 32}  \r\n")
    assert read_secret(str(path)) == (KEY.encode(), b"o" * 32)


@pytest.mark.parametrize("text", ["", "# nothing\n", "short\n", f"{KEY}\nshort\n"])
def test_short_secrets_are_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "skerry.secret"
    path.touch(0o600)
    path.write_text(text)
    with pytest.raises(ConfigError, match="needs a line of at least 32 characters"):
        read_secret(str(path))
    path.write_text("x" * 100_000)
    with pytest.raises(ConfigError, match="larger than 65536 bytes"):
        read_secret(str(path))


def test_a_missing_secret_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"skerry\.secret cannot be read: no such file") as caught:
        read_secret(str(tmp_path / "skerry.secret"))
    assert "copy the file from a host" in caught.value.suggestion
    with pytest.raises(ConfigError, match="cannot be written: no such file"):
        make_secret(str(tmp_path / "nowhere" / "skerry.secret"), KEY)


@pytest.mark.parametrize("mode", [0o604, 0o644, 0o660, 0o602, 0o620, 0o601])
def test_files_that_are_open_to_others_are_refused(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "oslo.key"
    path.write_text(KEY)
    path.chmod(mode)
    for read in (lambda: refuse_public(str(path), "tls"), lambda: read_secret(str(path))):
        with pytest.raises(ConfigError, match=rf"oslo\.key is open to others \(mode {mode:o}\)") as caught:
            read()
        assert caught.value.suggestion == f"chmod 600 {path}"
    path.chmod(0o400)
    refuse_public(str(path), "tls")


@AS_ROOT
def test_files_of_others_are_refused_and_root_may_let_a_group_read(tmp_path: Path) -> None:
    path = tmp_path / "oslo.key"
    path.write_text(KEY)
    path.chmod(0o640)
    refuse_public(str(path), "tls")
    path.chmod(0o600)
    os.chown(path, 65534, 0)
    for read in (lambda: refuse_public(str(path), "tls"), lambda: read_secret(str(path))):
        with pytest.raises(ConfigError, match=r"belongs to another user \(uid 65534\)"):
            read()


def test_where_the_secret_is(tmp_path: Path) -> None:
    assert parse(MEMBERS, "nordic.yaml", tmp_path).secret == str(tmp_path / "nordic.secret")
    assert parse(f"{MEMBERS}secret: ../own.secret\n", base_dir=tmp_path).secret == str(tmp_path.parent / "own.secret")
    assert parse(MEMBERS + TLS, base_dir=tmp_path).secret == ""
    assert parse(f"{MEMBERS}{TLS}secret: s\n", base_dir=tmp_path).secret == str(tmp_path / "s")


def test_who_has_to_copy_it() -> None:
    assert all_run_here(parse(MEMBERS.replace("127.0.0.1", "10.0.0.1")))
    assert all_run_here(parse(f"{MEMBERS}  bergen: {{address: 'localhost:7102'}}"))
    assert not all_run_here(parse(f"{MEMBERS}  bergen: {{address: '10.0.0.2:7102'}}"))
