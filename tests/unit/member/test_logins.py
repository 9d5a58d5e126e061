"""Users of a running member: who gets in over a real socket, whose queries one sees, and what nobody is told."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import ssl
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sqlalchemy

import skerry
import skerry.aio
from skerry.access.access import WRONG
from skerry.config import parse
from skerry.model.config import AccessConfig, AuditConfig, TlsFiles
from skerry.model.ids import QueryId
from skerry.model.limits import LOGIN_FAILURES
from skerry.testing.cluster import LocalCluster
from skerry.wire.client_messages import ClientQueries
from skerry.wire.frames import encode_message
from skerry.wire.messages import PROTOCOL_VERSIONS, Hello
from skerry.wire.tls import user_of
from tests.integration.member.member_sites import wait_until
from tests.unit.access.access_worlds import jwk, keys_file, token, users_file
from tests.unit.member.table_world import Spark
from tests.unit.wire.certificates import authority, files_of, needs_openssl

# What the cluster answers without a Spark.
SQL = "SHOW SCHEMAS"
CONFIG = parse("cluster: c\nmembers: {oslo: {address: 'localhost:1'}, bergen: {address: 'localhost:2'}}")


@contextmanager
def members(access: AccessConfig, tls: bool = False, audit: AuditConfig | None = None) -> Iterator[LocalCluster]:
    each = {
        name: msgspec.structs.replace(member, tls=files_of(name) if tls else None)
        for name, member in CONFIG.members.items()
    }
    config = msgspec.structs.replace(CONFIG, members=each, access=access, audit=audit)
    with LocalCluster(config, engine=Spark()) as cluster:
        yield cluster


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[LocalCluster]:
    users = users_file(tmp_path, anna="p@ss/:wörd", bob="bay")
    with members(AccessConfig(users=users, tokens=keys_file(tmp_path, jwk("RS256")))) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def _nobody_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SKERRY_USER", "SKERRY_PASSWORD", "SKERRY_TOKEN"):
        monkeypatch.delenv(name, raising=False)


def answers(connection: skerry.Connection) -> bool:
    return ("oslo",) in connection.cursor().execute(SQL).fetchall()


def url(cluster: LocalCluster, user: str = "", member: str = "oslo") -> str:
    return f"skerry://{user}{cluster.config.member(member).address}"


def test_every_way_to_say_who_asks(cluster: LocalCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    encoded = "anna:p%40ss%2F%3Aw%C3%B6rd@"
    assert answers(cluster.connect(user="anna", password="p@ss/:wörd"))
    assert answers(cluster.connect(token=token()))
    with skerry.connect(url(cluster, encoded)) as connection:
        assert answers(connection)
        assert [info.client.split(" at ")[0] for info in connection.queries()] == ["anna"] * 3
    engine = sqlalchemy.create_engine(url(cluster, encoded))
    assert "p@ss" not in repr(engine)
    with engine.connect() as bound:
        assert "oslo" in bound.exec_driver_sql(SQL).scalars().all()
    engine.dispose()

    async def ask() -> bool:
        async with skerry.aio.connect(url(cluster), user="bob", password="bay") as connection:
            return ("oslo",) in await (await connection.cursor().execute(SQL)).fetchall()

    assert asyncio.run(ask())
    monkeypatch.setenv("SKERRY_USER", "bob")
    monkeypatch.setenv("SKERRY_PASSWORD", "bay")
    assert answers(cluster.connect())
    with pytest.raises(skerry.OperationalError, match=WRONG):
        cluster.connect(user="anna")  # the environment's password is bob's
    monkeypatch.delenv("SKERRY_USER")
    monkeypatch.delenv("SKERRY_PASSWORD")
    monkeypatch.setenv("SKERRY_TOKEN", token(sub="eve"))
    assert answers(cluster.connect())


def test_who_is_not_let_in(cluster: LocalCluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    expired = token(exp=time.time() - 1000)
    secret = "open " + "sesame"
    for options, says in (
        ({}, "nothing was shown"),
        ({"user": "anna", "password": secret}, WRONG),
        ({"user": "eve", "password": secret}, WRONG),
        ({"user": "anna"}, WRONG),
        ({"token": expired}, "expired"),
        ({"token": "x" * 3000}, "not one that a key"),
        ({"token": "x" * 4100}, "too long"),
        ({"user": "anna", "password": "\udce9"}, "Unicode"),
    ):
        with pytest.raises((skerry.OperationalError, skerry.ProgrammingError), match=says) as caught:
            cluster.connect(**options)
        shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
        assert expired not in shown
        assert secret not in shown
    assert caught.type is skerry.ProgrammingError
    told = caplog.text
    assert "login of anna from 127.0.0.1" in told
    assert secret not in told
    assert expired not in told
    with pytest.raises(skerry.OperationalError) as refused:
        cluster.connect()
    assert refused.value.code == 104
    assert refused.value.suggestion == "log in with user and password or a token"
    for _ in range(LOGIN_FAILURES):
        with suppress(skerry.OperationalError):
            cluster.connect(user="bob", password=secret)
    with pytest.raises(skerry.OperationalError, match="too many logins of this user"):
        cluster.connect(user="bob", password="bay")
    assert answers(cluster.connect(user="anna", password="p@ss/:wörd"))


def test_nothing_is_asked_before_the_login(cluster: LocalCluster) -> None:
    host, _, port = cluster.config.member("oslo").address.partition(":")
    hello = Hello("client", PROTOCOL_VERSIONS, "", "", 0, '{"user": "anna", "password": "sesame"}')
    with socket.create_connection((host, int(port))) as sock:  # both in one breath
        sock.sendall(b"".join(bytes(part) for message in (hello, ClientQueries(1)) for part in encode_message(message)))
        received = b""
        with suppress(ConnectionResetError):
            while more := sock.recv(65536):
                received += more
    assert WRONG.encode() in received
    assert b"bergen" not in received


def own_address() -> str:
    """Of this host, but not loopback; nothing is sent to find it out."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return "127.0.0.1"


def test_a_secret_leaves_this_host_only_with_tls_or_when_told_to() -> None:
    address = own_address()
    if address.startswith("127."):
        pytest.skip("this host has no address but loopback")
    with socket.create_server((address, 0)) as listener:
        where = f"skerry://{address}:{listener.getsockname()[1]}"

        def received(**options: Any) -> bytes:
            """What comes to a member that says nothing."""
            with pytest.raises(skerry.OperationalError) as caught:
                skerry.connect(where, timeout_s=0.05, **options)
            assert ("without TLS" in caught.value.message) == ("insecure" not in options and "user" not in options)
            with listener.accept()[0] as sock:
                sock.settimeout(30)
                return b"".join(iter(lambda: sock.recv(65536), b""))

        assert received(token="sesame") == b""
        assert b"sesame" in received(token="sesame", insecure=True)
        assert b"anna" in received(user="anna")  # a name alone is no secret
    with pytest.raises(skerry.OperationalError, match="no member answers"):
        skerry.connect(where, user="anna", password="sesame")


def test_one_sees_and_ends_one_s_own_queries(cluster: LocalCluster) -> None:
    anna, bob = (cluster.connect(token=token(sub=name)) for name in ("anna", "bob"))
    cursor = anna.cursor()
    cursor.execute(SQL, detach=True, lease_s=600)
    query = cursor.query_id
    unknown = QueryId("oslo", "f" * 32)
    assert [info.query for info in anna.queries()] == [query]
    assert bob.queries() == ()
    assert bob.status(query).state == bob.status(unknown).state == "unknown"
    told = []
    for each in (query, unknown):
        with pytest.raises(skerry.OperationalError) as caught:
            bob.attach(each)
        told.append(caught.value.message.replace(str(each), "ID"))
    assert told[0] == told[1]
    bob.cancel(query)  # as for any id that nobody began: nothing happens
    wait_until(lambda: anna.status(query).state == "done", "it goes on to its end")
    again = cluster.connect(user="anna", password="p@ss/:wörd")  # the same user by another proof
    assert ("oslo",) in again.attach(query).fetchall()
    again.cancel(query)
    with pytest.raises(skerry.OperationalError) as ended:
        bob.attach(query)
    assert ended.value.message.replace(str(query), "ID") == told[1]
    assert bob.status(query).state == "unknown"


def test_nobody_closes_what_another_is_about_to_begin(cluster: LocalCluster) -> None:
    anna, bob = (cluster.connect(token=token(sub=name)) for name in ("anna", "bob"))
    cursor = anna.cursor()
    link = anna._links.home
    core = link.new_cursor()
    bob.cancel(core.query)
    link.execute(core, SQL, [], size=cursor._size, timeout_s=0.0, schema_name="", expected="any", options={})
    assert core.error is None


def test_other_members_are_told_the_same_user(cluster: LocalCluster) -> None:
    anna = cluster.connect("oslo", user="anna", password="p@ss/:wörd")
    there = cluster.connect("bergen", token=token(sub="anna"))
    cursor = there.cursor()
    cursor.execute(SQL, detach=True, lease_s=600)
    assert ("oslo",) in anna.attach(cursor.query_id).fetchall()


@pytest.mark.slow
def test_a_token_that_expires_begins_nothing_more(cluster: LocalCluster) -> None:
    # Its leeway is almost over.
    connection = cluster.connect(token=token(exp=time.time() - 58))
    assert answers(connection)
    cursor = connection.cursor()
    cursor.execute(SQL, detach=True, lease_s=600)

    def ask_on() -> None:
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            connection.cursor().execute(SQL)

    with pytest.raises(skerry.OperationalError, match="has expired; connect again with a new one") as caught:
        ask_on()
    assert caught.value.code == 104
    with pytest.raises(skerry.OperationalError, match="has expired"):
        connection.prepare("SELECT 1")
    assert connection.status(cursor.query_id).state == "done"
    connection.cancel(cursor.query_id)


def test_a_lost_connection_logs_in_again(cluster: LocalCluster) -> None:
    connection = cluster.connect(user="anna", password="p@ss/:wörd", resume_s=60)
    cursor = connection.cursor()
    cursor.execute(SQL, detach=True, lease_s=600)
    connection._links.home._connection._socket.shutdown(socket.SHUT_RDWR)
    assert connection.attach(cursor.query_id).fetchall()
    assert [info.query for info in connection.queries()] == [cursor.query_id]


@needs_openssl
def test_a_certificate_names_its_user(tmp_path: Path) -> None:
    access = AccessConfig(users=users_file(tmp_path, bob="bay"), certificates=True)
    ca = {"authority": str(authority() / "ca.pem")}

    def of(files: TlsFiles) -> dict[str, str]:
        return ca | {"certificate": files.certificate, "key": files.key}

    with members(access, tls=True) as cluster:
        anna = cluster.connect(tls=of(files_of("anna", mark="")))
        anna.cursor().execute(SQL)
        assert [info.client.split(" at ")[0] for info in anna.queries()] == ["anna"]
        bob = cluster.connect(tls=of(files_of("anna", mark="")), user="bob", password="bay")
        assert bob.queries() == ()
        with pytest.raises(skerry.OperationalError, match="nothing was shown"):
            cluster.connect(tls=ca)
        with pytest.raises(skerry.OperationalError, match="nothing was shown"):
            cluster.connect(tls=of(files_of("bergen")))


@needs_openssl
def test_a_password_is_told_to_members_alone(tmp_path: Path) -> None:
    """Another client of the same authority listens where a member should."""
    eve = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    files = files_of("oslo", mark="")
    eve.load_cert_chain(files.certificate, files.key)
    heard: list[bytes] = []

    def listen() -> None:
        with eve.wrap_socket(listener.accept()[0], server_side=True) as sock, suppress(OSError):
            heard.append(sock.recv(65536))

    with socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=listen)
        thread.start()
        ca = {"authority": str(authority() / "ca.pem")}
        with pytest.raises(skerry.OperationalError, match="no member's: the password was not sent"):
            skerry.connect(f"skerry+tls://127.0.0.1:{listener.getsockname()[1]}", tls=ca, user="bob", password="bay")
        thread.join()
    assert heard in ([], [b""])


def test_a_member_s_certificate_names_no_user() -> None:
    subject = ((("commonName", "oslo"),),)
    assert user_of({"subject": subject}) == "oslo"
    assert user_of({"subject": subject, "subjectAltName": (("URI", "skerry:member:oslo"),)}) == ""
    assert user_of(None) == ""


def test_the_audit_knows_the_user_and_who_was_refused(tmp_path: Path) -> None:
    access = AccessConfig(users=users_file(tmp_path, anna="fjord"), tokens=keys_file(tmp_path))
    audit = AuditConfig(str(tmp_path / "audit"))
    with members(access, audit=audit) as cluster:
        cluster.connect(token=token(roles=["clerk"])).cursor().execute(SQL)
        with pytest.raises(skerry.OperationalError):
            cluster.connect(user="eve\n", password="sesame")
    lines = [json.loads(line) for line in Path(audit.file_of("oslo")).read_text().splitlines()]
    asked, refused = (next(line for line in lines if line["event"] == event) for event in ("statement", "refused"))
    assert (asked["user"], asked["roles"]) == ("anna", ["clerk"])
    assert (refused["user"], refused["code"]) == (r"eve\n", 104)


def test_open_members_are_as_they_were() -> None:
    with members(AccessConfig()) as cluster:
        one, other = cluster.connect(), cluster.connect(user="anna", password="sesame")
        cursor = one.cursor()
        cursor.execute(SQL, detach=True, lease_s=600)
        assert [info.query for info in other.queries()] == [cursor.query_id]
        assert other.attach(cursor.query_id).fetchall()
