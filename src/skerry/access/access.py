"""Who asks: the one place where every door learns which user its caller is, and what it may do with queries."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

from skerry.access.attempts import Attempts
from skerry.access.files import AccessFile, check_owner
from skerry.access.known import KnownPasswords
from skerry.access.names import shown_name, user_name
from skerry.access.passwords import NOBODY, PasswordHash, is_right, password_bytes
from skerry.access.users import parse_users
from skerry.model import trace
from skerry.model.caller import Caller, User
from skerry.model.config import AccessConfig
from skerry.model.credentials import Credentials
from skerry.model.errors import AccessDenied, ConfigError, Overloaded, SiteError, UserError
from skerry.model.limits import LOGINS_AT_ONCE, LOGINS_WAITING
from skerry.model.rights import Rights

if TYPE_CHECKING:
    from skerry.access.tokens import TokenKey

T = TypeVar("T")

WRONG = "user or password is wrong"


class Access:
    """Knows no door and no wire: credentials go in, a user comes out, or AccessDenied."""

    def __init__(
        self,
        config: AccessConfig,
        run: Callable[[Callable[[], T]], Awaitable[T]],
        rules: Callable[[Caller], Rights] | None = None,
    ) -> None:
        """`run`: in a thread. A hash takes 50 ms, in which the loop serves others. `rules`: where there are any."""
        self._config = config
        self._rules = rules
        self._run: Callable[[Callable[[], object]], Awaitable[object]] = run  # type: ignore[assignment]
        self._users = users_file(config.users) if config.users else None
        self._keys = keys_file(config.tokens.keys) if config.tokens is not None else None
        self._attempts = Attempts()
        self._known = KnownPasswords(secrets.token_bytes(32))
        self._turns = asyncio.Semaphore(LOGINS_AT_ONCE)
        self._waiting = 0

    @property
    def is_open(self) -> bool:
        """Everybody is let in."""
        return self._config.is_open

    @property
    def tells_apart(self) -> bool:
        """Whether a query is one user's own. Where all are let in, and all may do the same, it is everybody's."""
        return not self.is_open or bool(self._config.rules)

    def rights_of(self, caller: Caller) -> Rights:
        """By the rules. Without any it may read every table, and do nothing with others' queries."""
        if self._rules is not None:
            return self._rules(caller)
        is_shared, is_open = not self.tells_apart, not self._config.rules
        return Rights(caller.name, caller.roles, (), is_shared, is_shared, is_open=is_open)

    async def load(self) -> None:
        """Look at the files before anybody needs them; ConfigError says what is wrong with one."""
        for file in (self._users, self._keys):
            if file is not None:
                await self._run(file.get)

    async def identify(self, credentials: Credentials, address: str, certificate: str = "") -> User:
        """`address`: host:port of who asks. `certificate`: whom its certificate names, if its door has checked one."""
        if self.is_open:
            return User(certificate)
        if credentials.token:
            return await self._by_token(credentials.token, address)
        if credentials.user or credentials.password:
            return await self._by_password(credentials, address)
        if certificate and self._config.certificates:
            try:
                return User(user_name(certificate))
            except UserError as error:
                raise self._refused(certificate, address, f"the certificate names nobody: {error.message}") from None
        raise self._refused("", address, "nothing was shown that says who asks")

    # --- tokens ------------------------------------------------------------------------------------
    async def _by_token(self, token: str, address: str) -> User:
        config, file = self._config.tokens, self._keys
        if config is None or file is None:
            raise self._refused("", address, "tokens are not taken here")
        from skerry.access.tokens import read_token

        async with self._turn():
            keys = await self._read(file)
            try:
                return read_token(token, keys, config)
            except AccessDenied as error:
                raise self._refused("", address, error.message) from None

    # --- passwords ---------------------------------------------------------------------------------
    async def _by_password(self, credentials: Credentials, address: str) -> User:
        host, password = address.rpartition(":")[0] or address, credentials.password
        if self._users is None:
            raise self._refused(credentials.user, address, "passwords are not taken here")
        try:
            name = user_name(credentials.user)
            password_bytes(password)
        except UserError:  # nobody is called so
            raise self._refused(credentials.user, address, WRONG) from None
        self._check_wait(host, name)
        async with self._turn():
            self._check_wait(host, name)  # others of the same user had their turns meanwhile
            users = await self._read(self._users)
            if await self._is_right(name, users, password):
                self._attempts.succeeded(host, name)
                return User(name)
            wait_s = self._attempts.failed(host, name, _now())
            until = f"; it has to wait {wait_s:g} s" if wait_s else ""
            trace.emit(trace.LoginRefused(name, address, WRONG + until))
            raise AccessDenied(WRONG)

    async def _is_right(self, name: str, users: dict[str, PasswordHash], password: str) -> bool:
        known = users.get(name)
        if known is not None and self._known.has(name, known, password, _now()):
            return True
        # An unknown name costs what the dearest known one does: time tells nobody who exists.
        dearest = max(users.values(), key=lambda each: each.n, default=NOBODY)
        is_it = bool(await self._run(lambda: is_right(password, known or dearest)))
        if known is None or not is_it:
            return False
        self._known.add(name, known, password, _now())
        return True

    def _check_wait(self, host: str, name: str) -> None:
        wait_s = self._attempts.wait_s(host, name, _now())
        if wait_s > 0:  # not told to the log: whoever guesses would fill it
            raise AccessDenied(
                f"too many logins of this user from this address have failed; try again in {max(1, round(wait_s))} s"
            )

    # --- both --------------------------------------------------------------------------------------
    async def _read(self, file: AccessFile[T]) -> T:
        try:
            return await self._run(file.get)  # type: ignore[return-value]
        except ConfigError as error:
            trace.emit(trace.AccessFileRefused(error.message))
            raise SiteError(
                "this member cannot tell who asks: it cannot believe a file of its own (its log says which)"
            ) from None

    def _refused(self, user: str, address: str, reason: str) -> AccessDenied:
        trace.emit(trace.LoginRefused(shown_name(user), address, reason))
        return AccessDenied(reason, suggestion="" if reason == WRONG else f"log in with {self._config.ways}")

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """One of the few logins that are looked at now; whoever is too many is sent away."""
        if self._waiting >= LOGINS_WAITING:
            raise Overloaded(f"{self._waiting} logins wait for their turn; try again shortly")
        self._waiting += 1
        try:
            async with self._turns:
                yield
        finally:
            self._waiting -= 1


def access_files(config: AccessConfig) -> dict[str, AccessFile[Any]]:
    """The files of `access`, by where skerry.yaml names them; `get` says what is wrong with one."""
    files: dict[str, AccessFile[Any]] = {"users": users_file(config.users)} if config.users else {}
    return files if config.tokens is None else {**files, "tokens.keys": keys_file(config.tokens.keys)}


def users_file(path: str) -> AccessFile[dict[str, PasswordHash]]:
    return AccessFile(path, parse_users, is_secret=True)


def keys_file(path: str) -> AccessFile[tuple[TokenKey, ...]]:
    """The keys that sign tokens. Members without tokens need no library for them."""

    def read(data: bytes, path: str) -> tuple[TokenKey, ...]:
        try:
            from skerry.access.tokens import has_secret, parse_keys
        except ModuleNotFoundError as error:
            raise ConfigError(f'tokens need the package {error.name}: pip install "skerry[tokens]"') from None
        keys = parse_keys(data, path)
        if has_secret(keys):
            check_owner(path, os.stat(path), is_secret=True)
        return keys

    return AccessFile(path, read, is_secret=False)


def _now() -> float:
    return asyncio.get_running_loop().time()
