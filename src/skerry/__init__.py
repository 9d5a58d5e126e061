"""Skerry: one SQL over many Spark sites. `skerry.connect(url)` gives a PEP 249 connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from skerry.client.pep249 import (
    BINARY,
    DATETIME,
    NUMBER,
    ROWID,
    STRING,
    Binary,
    DatabaseError,
    DataError,
    Date,
    DateFromTicks,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    OutcomeUnknown,
    ProgrammingError,
    Time,
    TimeFromTicks,
    Timestamp,
    TimestampFromTicks,
    Warning,
    apilevel,
    paramstyle,
    threadsafety,
)
from skerry.model.version import __version__

if TYPE_CHECKING:
    from collections.abc import Mapping

    from skerry.client.dbapi import Connection

__all__ = [
    "BINARY",
    "DATETIME",
    "NUMBER",
    "ROWID",
    "STRING",
    "Binary",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "OutcomeUnknown",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "__version__",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def connect(
    url: str,
    *,
    timeout_s: float | None = None,
    fault_policy: str | None = None,
    resume_s: float = 0.0,
    retry: str = "never",
    autocommit: bool = True,
    tls: Mapping[str, str] | None = None,
    user: str | None = None,
    password: str | None = None,
    token: str | None = None,
    insecure: bool = False,
) -> Connection:
    """A connection to the member at `skerry://host:port[/schema]`; `timeout_s` bounds the connecting (5 s).

    `fault_policy` ("fail", "wait", "buffer"; None: as the cluster has it) is for sites that lose each other;
    `resume_s` for a lost connection to the member, which is dialled again so long; `retry="reads"` runs a statement
    that only reads at another member if this one dies before the first page.
    `autocommit=False`: a transaction begins with the first statement, and ends with `commit()` or `rollback()`.
    With TLS: `skerry+tls://host:port?authority=ca.pem`, or `tls={"authority": …}`; `certificate` and `key` too,
    where members ask clients for one.
    `user` and `password`, or `token`, say who asks; so do `skerry://user:password@host` and the variables SKERRY_USER,
    SKERRY_PASSWORD and SKERRY_TOKEN. Without TLS they go to this host only, unless `insecure`.
    """
    # Imported late: members and Spark tasks import this package too, and need no client.
    from skerry.client.dbapi import connect as connect_client

    return connect_client(
        url,
        timeout_s=timeout_s,
        fault_policy=fault_policy,
        resume_s=resume_s,
        retry=retry,
        autocommit=autocommit,
        tls=tls,
        user=user,
        password=password,
        token=token,
        insecure=insecure,
    )
