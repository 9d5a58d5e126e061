"""The configuration as every part of Skerry sees it: frozen, checked, paths resolved."""

from __future__ import annotations

from enum import StrEnum
from urllib.parse import quote

import msgspec

from skerry.model.amounts import listed
from skerry.model.errors import ConfigError, UserError
from skerry.model.limits import MIB, Limits
from skerry.model.nearest import did_you_mean
from skerry.model.sources import PlainFiles, Secret, Source, Storage, is_remote
from skerry.model.table import Column


class Role(StrEnum):
    """A lite member takes queries and gathers results; it has no Spark and no tables."""

    DATA = "data"
    LITE = "lite"


class Leaves(StrEnum):
    """How rows made from a table may go to other members, from the strictest on (plan/egress.py)."""

    NEVER = "never"
    AGGREGATED = "aggregated"
    FILTERED = "filtered"
    FREELY = "freely"


class CatalogConfig(msgspec.Struct, frozen=True):
    """A catalog of a site's Spark. `kind`: "hive", "jdbc", or a class of the user's.

    `settings` and `secrets`: of Spark, without their common beginning `spark.sql.catalog.<name>.`
    """

    name: str
    kind: str
    settings: dict[str, str] = {}
    secrets: dict[str, Secret] = {}


class SchemaConfig(msgspec.Struct, frozen=True):
    """All tables of a namespace of a catalog, each a table `<name>.<table>`."""

    member: str
    name: str
    namespace: tuple[str, ...]  # with its catalog
    leaves: Leaves = Leaves.FREELY


class ViewConfig(msgspec.Struct, frozen=True):
    """A query by a name. `member`: whose tables its plain names mean; "" for those of the cluster."""

    member: str
    name: str
    sql: str


class SparkConfig(msgspec.Struct, frozen=True):
    """A site's Spark: exactly one of `master` (Apache Spark), `remote` (Spark Connect) and `sail` is set."""

    master: str | None = None
    remote: str | None = None
    sail: bool = False
    memory_bytes: int = 0  # of Sail's process; 0: a share of the machine's
    conf: dict[str, str] = {}
    packages: tuple[str, ...] = ()  # Maven coordinates of what an embedded Spark needs beside its own jars
    jars: tuple[str, ...] = ()  # absolute paths
    catalogs: tuple[CatalogConfig, ...] = ()
    storage: Storage = Storage()


class TableConfig(msgspec.Struct, frozen=True):
    """What one member holds of a table. `path` is as written, relative to the data root; "" for one without files.

    `columns` is empty when Spark is to find them out; `shown_path` is for messages: what the source is called.
    """

    member: str
    name: str
    format: str
    path: str
    options: dict[str, str] = {}
    columns: tuple[Column, ...] = ()
    shown_path: str = ""
    leaves: Leaves = Leaves.FREELY
    source: Source = PlainFiles()

    @property
    def key(self) -> str:
        """Where it stands in skerry.yaml."""
        return f"members.{self.member}.tables.{self.name}"

    @property
    def is_listed(self) -> bool:
        """Whether its version is the listing of its files on the member's own disk."""
        return isinstance(self.source, PlainFiles) and not is_remote(self.path)


class SinkConfig(msgspec.Struct, frozen=True):
    """Where a pipeline writes. `path` is as written, relative to the data root."""

    member: str
    name: str
    format: str
    path: str
    options: dict[str, str] = {}


class TlsFiles(msgspec.Struct, frozen=True):
    """Paths of PEM files. `authority` signs everyone's certificates; only a client may have no certificate."""

    authority: str = ""
    certificate: str = ""
    key: str = ""
    client_certificates: bool = False  # a member refuses clients that show none


class TokensConfig(msgspec.Struct, frozen=True):
    """Whose tokens (JWT) name a user. `keys`: path of a public key (PEM) or of a JWKS."""

    keys: str
    issuer: str
    audience: str
    name_claim: str = "sub"
    roles_claim: str = "roles"


class AccessConfig(msgspec.Struct, frozen=True):
    """How callers prove who they are; with none of these ways everybody is let in. Paths are absolute.

    `users`: path of the users file. `certificates`: a client's certificate names its user. `rules`: path of the rules.
    `is_written`: whether skerry.yaml says it.
    """

    users: str = ""
    tokens: TokensConfig | None = None
    certificates: bool = False
    rules: str = ""
    is_written: bool = False

    @property
    def is_open(self) -> bool:
        return not (self.users or self.tokens or self.certificates)

    @property
    def ways(self) -> str:
        """For people."""
        ways = {"user and password": self.users, "a token": self.tokens, "a client certificate": self.certificates}
        return " or ".join(way for way, is_taken in ways.items() if is_taken)


class AuditConfig(msgspec.Struct, frozen=True):
    """`path`: the directory of the members' audit files, absolute. `statements`: "text" or "fingerprint".

    `is_required`: no statement runs whose line cannot be written. A file of `rotate_bytes` moves aside; `keep` do.
    """

    path: str
    statements: str = "text"
    is_required: bool = False
    rotate_bytes: int = 64 * MIB
    keep: int = 10

    def file_of(self, member: str) -> str:
        return f"{self.path}/{member}.jsonl"


class MemberConfig(msgspec.Struct, frozen=True):
    """`address` is `host:port`; `spark` is None exactly for lite members.

    `insecure`: may listen beyond loopback without TLS. `data_ports`: first and last of the range, each channel that
    comes in gets one of its own.
    """

    name: str
    address: str
    role: Role
    spark: SparkConfig | None
    capacity: int
    tables: dict[str, TableConfig]
    sinks: dict[str, SinkConfig]
    tls: TlsFiles | None = None
    insecure: bool = False
    data_ports: tuple[int, int] | None = None
    schemas: dict[str, SchemaConfig] = {}
    views: dict[str, ViewConfig] = {}

    @property
    def url(self) -> str:
        """As clients write it. Those that need a certificate name their own files."""
        if self.tls is None:
            return f"skerry://{self.address}"
        own = "&certificate=…&key=…" if self.tls.client_certificates else ""
        return f"skerry+tls://{self.address}?authority={quote(self.tls.authority)}{own}"


class Link(msgspec.Struct, frozen=True):
    """One direction between two members: bandwidth, delay one way, price, compression (see catalog/topology.py).

    `query_bytes`: what one query may send over it; None for any number.
    """

    sender: str
    receiver: str
    mbit: float
    ms: float = 0.0
    usd_per_gb: float = 0.0
    codec: str = "auto"
    query_bytes: int | None = None


class FaultPolicy(StrEnum):
    """What a lost connection means to a query (docs/protocol.md, 3.4)."""

    FAIL = "fail"  # any lost connection ends the query
    WAIT = "wait"  # silence and resets are waited out for a while
    BUFFER = "buffer"  # they are waited out as long as the query may last, its rows go to disk meanwhile

    @classmethod
    def named(cls, name: str) -> FaultPolicy:
        try:
            return cls(name)
        except ValueError:
            known = ", ".join(policy.value for policy in cls)
            raise UserError(f"no fault policy {name[:100]!r}: there are {known}") from None


class Config(msgspec.Struct, frozen=True):
    """`data_root` is absolute, with symlinks resolved. Members stand in the order of the file.

    `state`: the directory for what members keep over their restarts, absolute; "" for none.
    `access`: how clients of all members say who they are.
    `secret`: the file by which members prove themselves, absolute; "" where TLS alone does that.
    `log_format`: "text" or "json" lines; `log_sql`: whether they may hold statements, with the values in them.
    `audit`: None where nobody asks for one.
    """

    cluster: str
    data_root: str
    members: dict[str, MemberConfig]
    links: tuple[Link, ...] = ()
    limits: Limits = Limits()
    fault_policy: FaultPolicy = FaultPolicy.WAIT
    state: str = ""
    secret: str = ""
    log_format: str = "text"
    log_sql: bool = False
    access: AccessConfig = AccessConfig()
    audit: AuditConfig | None = None
    views: dict[str, ViewConfig] = {}

    def member(self, name: str) -> MemberConfig:
        """The member of that name, whatever its case; ConfigError for an unknown one."""
        for known, member in self.members.items():
            if known.lower() == name.lower():
                return member
        hint = did_you_mean(name, self.members) or f"; there are {listed([*self.members])}"
        raise ConfigError(f"no member {name} in cluster {self.cluster}{hint}")

    def addresses(self) -> dict[str, str]:
        """Where each member listens, as the wire layer writes addresses."""
        return {name: f"tcp:{member.address}" for name, member in self.members.items()}

    def kept_path(self, member: str) -> str:
        """The file of what a member keeps; "" for none. Hidden, as tables see files: it may lie among a table's own."""
        return f"{self.state}/_{self.cluster}.{member}.kept" if self.state else ""

    def tables_path(self, member: str) -> str:
        """The folder of a data member's share of tables of our own; "" if it keeps none."""
        is_lite = self.members[member].spark is None
        return "" if is_lite or not self.state else f"{self.state}/_{self.cluster}.{member}.tables"

    def table_names(self) -> tuple[str, ...]:
        """Logical tables: a name used by several members counts once, whatever its case."""
        names = {name.lower(): name for member in reversed(self.members.values()) for name in member.tables}
        return tuple(sorted(names.values(), key=str.lower))
