"""Who asks: the same answer through every door, at a bounded cost, and nothing told to whoever guesses."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TypeVar

import pytest

from skerry.access import access as access_module
from skerry.access.access import WRONG, Access
from skerry.access.passwords import hash_password
from skerry.access.users import UsersFile
from skerry.model import trace
from skerry.model.caller import Caller, User
from skerry.model.config import AccessConfig
from skerry.model.credentials import NOTHING, Credentials, decode_credentials, encode_credentials
from skerry.model.errors import AccessDenied, ConfigError, Overloaded, PeerError, SiteError
from skerry.model.limits import LOGIN_FAILURES, LOGIN_FAILURES_KEPT, LOGINS_AT_ONCE, LOGINS_WAITING
from skerry.model.rights import Rights, everything
from tests.unit.access.access_worlds import jwk, keys_file, token, users_file

T = TypeVar("T")
ADDRESS = "10.0.0.1:50000"


class World:
    """Access whose work in threads is counted. `hashes` are those of passwords."""

    def __init__(self, config: AccessConfig) -> None:
        self.hashes = 0
        self.at_once = self.at_once_most = 0
        self.is_quick = False  # every password is wrong, and known to be so at once
        self.access = Access(config, self.run)

    async def run(self, work: Callable[[], T]) -> T:
        if getattr(work, "__name__", "") == "get":
            return work()
        self.hashes += 1
        if self.is_quick:
            return False  # type: ignore[return-value]
        self.at_once += 1
        self.at_once_most = max(self.at_once_most, self.at_once)
        try:
            return await asyncio.get_running_loop().run_in_executor(None, work)
        finally:
            self.at_once -= 1

    async def log_in(self, user: str = "anna", password: str = "fjord", address: str = ADDRESS) -> User:
        return await self.access.identify(Credentials(user, password), address)

    async def is_refused(self, user: str = "anna", password: str = "wrong", address: str = ADDRESS) -> str:
        with pytest.raises(AccessDenied) as caught:
            await self.log_in(user, password, address)
        return caught.value.message


def with_world(config: AccessConfig, test: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        await test(World(config))
        await asyncio.get_running_loop().shutdown_default_executor()

    asyncio.run(run())


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[trace.Event]:
    found: list[trace.Event] = []
    monkeypatch.setattr(access_module.trace, "emit", lambda event, *_: found.append(event))
    return found


def test_open_lets_everybody_in() -> None:
    async def test(world: World) -> None:
        assert await world.access.identify(NOTHING, ADDRESS) == User()
        assert await world.log_in("anna", "whatever") == User()  # nothing was proven
        assert await world.access.identify(NOTHING, ADDRESS, "anna") == User("anna")
        assert world.access.rights_of(Caller("", "test", ADDRESS, "1")) == everything()

    with_world(AccessConfig(), test)


def test_rules_tell_users_apart_and_say_what_they_may_with_queries(tmp_path: Path) -> None:
    async def run(work: Callable[[], T]) -> T:
        return work()

    caller = Caller("anna", "test", ADDRESS, "1")
    assert not Access(AccessConfig(), run).tells_apart
    assert Access(AccessConfig(rules="rules"), run).tells_apart
    assert Access(AccessConfig(rules="rules"), run).rights_of(caller) == Rights("anna")
    access = Access(AccessConfig(users="users"), run, lambda caller: Rights(may_end_queries=caller.name == "anna"))
    assert access.tells_apart
    assert access.rights_of(caller) == Rights(may_end_queries=True)


def test_a_password(tmp_path: Path, events: list[trace.Event]) -> None:
    async def test(world: World) -> None:
        await world.access.load()
        assert await world.log_in() == User("anna")
        assert await world.log_in("A\u030as", "bay") == User("\u00c5s")
        assert await world.is_refused() == WRONG
        assert await world.is_refused("eve") == WRONG
        assert await world.is_refused("", "fjord") == WRONG
        assert await world.is_refused("an\nna") == WRONG
        assert await world.is_refused("anna", "") == WRONG
        assert await world.is_refused("anna", "x" * 3000) == WRONG
        assert world.access.rights_of(Caller("anna", "test", ADDRESS, "1")) == Rights("anna", is_open=True)
        lines = [event.line() for event in events]
        assert lines[0] == f"login of anna from {ADDRESS} refused: {WRONG}"
        assert r"an\nna" in lines[3]
        assert not any("wrong" in line.replace(WRONG, "") or "fjord" in line for line in lines)

    with_world(AccessConfig(users=users_file(tmp_path, anna="fjord", **{"\u00c5s": "bay"})), test)


def test_unknown_users_cost_what_known_ones_do(tmp_path: Path) -> None:
    path = users_file(tmp_path, anna="fjord")
    UsersFile(path).put("dear", hash_password("bay", bytes(16), 2**15))

    async def test(world: World) -> None:
        await world.is_refused("anna")
        assert world.hashes == 1
        await world.is_refused("eve")
        assert world.hashes == 2

    with_world(AccessConfig(users=path), test)


def test_who_connects_again_need_not_wait_for_the_hash(tmp_path: Path) -> None:
    path = users_file(tmp_path, anna="fjord")

    async def test(world: World) -> None:
        for _ in range(5):
            await world.log_in()
        assert world.hashes == 1
        UsersFile(path).put("anna", hash_password("bay", bytes(16)))  # another password: the old one is known no more
        assert await world.is_refused("anna", "fjord") == WRONG
        assert await world.log_in("anna", "bay") == User("anna")
        UsersFile(path).remove("anna")
        assert await world.is_refused("anna", "bay") == WRONG

    with_world(AccessConfig(users=path), test)


def test_ten_thousand_guesses_are_five_and_then_none(tmp_path: Path, events: list[trace.Event]) -> None:
    async def test(world: World) -> None:
        for number in range(10_000):
            message = await world.is_refused("anna", f"guess {number}")
        assert "try again in 1 s" in message
        assert world.hashes == LOGIN_FAILURES == len(events)
        assert "try again" in await world.is_refused("anna", "fjord")  # the right one is no sign to whoever guesses
        assert await world.log_in(address="10.0.0.2:1") == User("anna")  # and elsewhere anna is let in

    with_world(AccessConfig(users=users_file(tmp_path, anna="fjord")), test)


def test_guesses_at_once_are_no_more(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        guesses = [world.is_refused("anna", f"guess {number}") for number in range(LOGINS_WAITING)]
        await asyncio.gather(*guesses)
        assert world.hashes <= LOGIN_FAILURES + LOGINS_AT_ONCE
        assert world.at_once_most <= LOGINS_AT_ONCE

    with_world(AccessConfig(users=users_file(tmp_path, anna="fjord")), test)


def test_ten_thousand_names_take_bounded_memory(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        world.is_quick = True
        for number in range(LOGIN_FAILURES_KEPT + 10):
            await world.is_refused(f"user {number}")
        assert len(world.access._attempts) == LOGIN_FAILURES_KEPT

    with_world(AccessConfig(users=users_file(tmp_path, anna="fjord")), test)


def test_who_waits_is_bounded_too(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        logins = [world.log_in("anna", "fjord", f"10.0.0.{number}:1") for number in range(LOGINS_WAITING + 10)]
        ended = await asyncio.gather(*logins, return_exceptions=True)
        assert sum(isinstance(each, Overloaded) for each in ended) == 10
        assert ended.count(User("anna")) == LOGINS_WAITING
        assert world.hashes <= LOGINS_AT_ONCE  # those that came after knew it

    with_world(AccessConfig(users=users_file(tmp_path, anna="fjord")), test)


def test_a_token_and_its_keys_changing(tmp_path: Path, events: list[trace.Event]) -> None:
    config = AccessConfig(tokens=keys_file(tmp_path, jwk("RS256")))

    async def test(world: World) -> None:
        async def identified(kind: str) -> str:
            return (await world.access.identify(Credentials(token=token(kind, sub="anna")), ADDRESS)).name

        assert await identified("RS256") == "anna"
        with pytest.raises(AccessDenied, match="not one that a key"):
            await identified("ES256")
        keys_file(tmp_path, jwk("ES256"))
        assert await identified("ES256") == "anna"
        with pytest.raises(AccessDenied, match="not one that a key"):
            await identified("RS256")
        keys_file(tmp_path, {"kty": "oct"})  # a mistake lets nobody in by the keys of before
        with pytest.raises(SiteError, match="its log says which"):
            await identified("ES256")
        assert isinstance(events[-1], trace.AccessFileRefused)
        with pytest.raises(AccessDenied, match="passwords are not taken here"):
            await world.log_in()

    with_world(config, test)


def test_secrets_that_sign_are_for_their_owner_alone(tmp_path: Path) -> None:
    config = AccessConfig(tokens=keys_file(tmp_path, jwk("HS256")))
    assert config.tokens is not None

    async def test(world: World) -> None:
        await world.access.load()
        os.chmod(tmp_path / "keys.json", 0o644)
        with pytest.raises(ConfigError, match="chmod 600"):
            await world.access.load()
        (tmp_path / "keys.json").write_text(json.dumps({"keys": [jwk("RS256")]}))
        await world.access.load()

    with_world(config, test)


def test_a_certificate(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        assert await world.access.identify(NOTHING, ADDRESS, "anna") == User("anna")
        for certificate in ("", "an\nna"):
            with pytest.raises(AccessDenied):
                await world.access.identify(NOTHING, ADDRESS, certificate)
        # Who says who it is, is not somebody else by its certificate.
        with pytest.raises(AccessDenied):
            await world.access.identify(Credentials("bob", "wrong"), ADDRESS, "anna")
        with pytest.raises(AccessDenied, match="tokens are not taken here"):
            await world.access.identify(Credentials(token="x"), ADDRESS, "anna")

    with_world(AccessConfig(users=users_file(tmp_path, bob="fjord"), certificates=True), test)


def test_a_token_tells_its_end(tmp_path: Path) -> None:
    async def test(world: World) -> None:
        exp = time.time() + 5
        user = await world.access.identify(Credentials(token=token(exp=exp)), ADDRESS)
        assert user.expires_at == pytest.approx(exp + 60)

    with_world(AccessConfig(tokens=keys_file(tmp_path)), test)


@pytest.mark.parametrize("text", ["{", "[]", "7", '{"user": 7}', "[" * 4000, '{"user": "\\ud800"}'])
def test_credentials_that_are_none(text: str) -> None:
    with pytest.raises(PeerError) as caught:
        decode_credentials(text)
    assert caught.value.message == "the credentials in Hello are not readable"


def test_credentials_travel() -> None:
    shown = Credentials("anna", 'p"\\å\n')
    assert decode_credentials(encode_credentials(shown)) == shown
    assert encode_credentials(NOTHING) == ""
    assert decode_credentials('{"user": "anna", "of_tomorrow": 1}') == Credentials("anna")
