"""What a single value in skerry.yaml may be. A rule takes the text and gives the value, or raises Refused."""

from __future__ import annotations

import ipaddress
import os
import re
from collections.abc import Callable, Sequence

from skerry.config.yaml_nodes import Refused, shown
from skerry.model.columns import NAMES, NESTED, BadType, normal_type
from skerry.model.config import FaultPolicy, Leaves, Role
from skerry.model.errors import UserError
from skerry.model.limits import DEFAULT_PORT
from skerry.model.nearest import did_you_mean
from skerry.model.sources import REMOTE, is_remote, split_url

NAME_CHARS_MAX = 63
FORMATS = ("parquet", "csv", "json", "orc", "text", "avro")
FORMATS_WRITTEN = ("parquet", "csv", "json", "orc", "text")
# Of these a log of their own says which files count, and keeps older versions.
FORMATS_VERSIONED = ("delta",)
FORMATS_NOT_YET = ("binaryfile", "hive", "hudi", "iceberg", "jdbc", "kafka", "xml")
FORMATS_NOT_SAIL = ("avro", "orc")
# By format, the options that Sail reads as Apache Spark does, with the values for which that holds; (): any.
SAIL_OPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "parquet": {"mergeschema": ()},
    "csv": {
        **dict.fromkeys("header sep delimiter quote comment inferschema multiline".split(), ()),
        **dict.fromkeys(("maxcolumns", "maxcharspercolumn"), ()),  # only refuse files
        **dict.fromkeys(("encoding", "charset"), ("utf-8", "utf8")),
        "escape": ('"',),
    },
    "json": {"encoding": ("utf-8", "utf8"), "multiline": ("false",)},
    "text": {"wholetext": ()},
}
# By format, how the name of its jar begins, and the package to name in an error.
PACKAGES = {
    "delta": ("delta-spark", "io.delta:delta-spark_4.2_2.13:4.4.0"),
    "avro": ("spark-avro", "org.apache.spark:spark-avro_2.13:4.1.1"),
}
CATALOG_TYPES = ("hive", "jdbc")
CODECS = ("auto", "none", "lz4", "zstd")
# A member is a schema in SQL: these mean something else to Spark, to Skerry or to a tool.
SCHEMAS = "default global_temp information_schema pg_catalog session skerry spark_catalog sys system temp"
RESERVED_SCHEMAS = frozenset((*SCHEMAS.split(), *FORMATS, *FORMATS_VERSIONED, *FORMATS_NOT_YET))
# Spark's reserved words: a name that needs quoting in every statement is not a plain name.
WORDS = """
    all and anti any as asc authorization between both case cast check collate column constraint create cross cube
    current_date current_time current_timestamp current_user desc distinct div else end escape except execute exists
    false fetch filter first for foreign from full grant group having ilike in inner intersect interval into is join
    lateral leading left like limit minus natural not null offset on only or order outer over overlaps
    percentile_cont percentile_disc pivot primary range recursive references regexp right rlike rollup row rows
    select semi session_user some sql table tablesample then to trailing true union unique unknown unpivot user
    using values when where window with within
"""
KEYWORDS = frozenset(WORDS.split())
MASTER = re.compile(r"local(\[(\*|[1-9][0-9]{0,3})\])?|local-cluster\[[0-9, ]+\]|(spark|k8s)://\S+|yarn")
# A bucket, a host with its port, or `container@account.host` of Azure.
STORE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(@[A-Za-z0-9.-]+)?(:[0-9]{1,5})?")
HOST = re.compile(r"[A-Za-z0-9]([A-Za-z0-9-]{0,62})(\.[A-Za-z0-9][A-Za-z0-9-]{0,62})*")
# A part of a name in a catalog.
_NAME_PART = r"(?:[\w-]+|`(?:[^`]|``)+`)"
TABLE_NAME_CHARS = 1000
SIZE = re.compile(r"([0-9]{1,15}) ?(KiB|MiB|GiB|TiB)")
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40}

# Settings that would make one site answer differently from another, or lose rows silently (a trailing * is a prefix).
CONF_FIXED = (
    "spark.sql.ansi.*",
    "spark.sql.caseSensitive",
    "spark.sql.catalog.*",
    "spark.sql.catalogImplementation",
    "spark.sql.csv.parser.*",
    "spark.sql.decimalOperations.*",
    "spark.sql.defaultCatalog",
    "spark.sql.execution.arrow.useLargeVarTypes",
    "spark.sql.extensions",
    "spark.sql.files.ignoreCorruptFiles",
    "spark.sql.files.ignoreMissingFiles",
    "spark.sql.groupByAliases",
    "spark.sql.groupByOrdinal",
    "spark.sql.hive.*",
    "spark.sql.legacy.*",
    "spark.sql.mapKeyDedupPolicy",
    "spark.sql.orc.mergeSchema",
    "spark.sql.orderByOrdinal",
    "spark.sql.parquet.binaryAsString",
    "spark.sql.parquet.datetimeRebaseMode*",
    "spark.sql.parquet.inferTimestampNTZ.*",
    "spark.sql.parquet.int96*",
    "spark.sql.parquet.mergeSchema",
    "spark.sql.parser.*",
    "spark.sql.restrictedMode.*",
    "spark.sql.session.timeZone",
    "spark.sql.sources.partitionColumnTypeInference.*",
    "spark.sql.storeAssignmentPolicy",
    "spark.sql.timestampType",
    "spark.sql.timeTravel*",
    "spark.sql.variable.*",
    "spark.sql.warehouse.dir",
)
# A task that an embedded Spark runs twice would deliver its rows twice (D8).
CONF_FIXED_EMBEDDED = ("spark.task.maxfailures", "spark.speculation")
CONF_ELSEWHERE = {"spark.master": "master", "spark.remote": "remote", "spark.api.mode": "master or remote"}
# Skerry hands Spark a list of files; an option that chooses files would make the two disagree.
OPTIONS_OURS = ("basepath", "modifiedafter", "modifiedbefore", "path", "pathglobfilter", "paths", "recursivefilelookup")
LOG_FORMATS = ("text", "json")
OPTIONS_LOSING = ("ignorecorruptfiles", "ignoremissingfiles")


def plain_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise Refused(f"{shown(text) or 'an empty text'} is not a plain name (letters, digits and _, no digit first)")
    if len(text) > NAME_CHARS_MAX:
        raise Refused(f"a name has at most {NAME_CHARS_MAX} characters")
    if text.lower() in RESERVED_SCHEMAS:
        raise Refused(f"{text} is a reserved name")
    if text.lower() in KEYWORDS:
        raise Refused(f"{text} is a reserved word of SQL")
    return text


def cluster_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,62}", text):
        raise Refused(f"{shown(text) or 'an empty text'} is not a name for a cluster (letters, digits, - _ .)")
    return text


def address(text: str) -> str:
    """`host:port`; the port is the usual one where it is left out."""
    has_port = ":" in text and not text.endswith("]")
    host, _, port = text.rpartition(":") if has_port else (text, "", str(DEFAULT_PORT))
    if not host:
        raise Refused(f"{shown(text) or 'an empty text'} is not an address; write host:port")
    if not re.fullmatch("[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise Refused(f"{shown(text)} is not an address; the port must be 1 to 65535")
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    try:
        ip = ipaddress.ip_address(bare)
    except ValueError:
        # A dotted number that is no IP address is a mistyped one, not a host's name.
        if bare is not host or not HOST.fullmatch(host) or re.fullmatch("[0-9.]+", host):
            raise Refused(f"{shown(text)} is not an address; {shown(host)} is not a host") from None
        return f"{host.lower()}:{int(port)}"
    if ip.version == 6 and bare is host:
        raise Refused(f"{shown(text)} is not an address; write [{host}]:{port}")
    if ip.is_unspecified:
        raise Refused(f"{shown(text)} is not an address that other members can reach")
    return f"[{ip}]:{int(port)}" if ip.version == 6 else f"{ip}:{int(port)}"


def port_range(text: str) -> tuple[int, int]:
    match = re.fullmatch("([0-9]{1,5})-([0-9]{1,5})", text)
    if not match:
        raise Refused(f"{shown(text)} is not a range of ports; write first-last, like 7200-7299")
    first, last = int(match[1]), int(match[2])
    if not 1 <= first <= last <= 65535:
        raise Refused(f"{shown(text)} is not a range of ports; they are 1 to 65535, the first not above the last")
    return first, last


def is_loopback(address: str) -> bool:
    """Whether nobody on another host can connect to this `host:port`."""
    host = address.rpartition(":")[0].strip("[]")
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def same_endpoint(text: str) -> str:
    """Addresses that are one and the same give the same text."""
    return text.replace("localhost:", "127.0.0.1:").replace("[::1]:", "127.0.0.1:")


def role(text: str) -> Role:
    try:
        return Role(text)
    except ValueError:
        raise Refused(f"{shown(text)} is not a role; write data or lite") from None


def codec(text: str) -> str:
    if text not in CODECS:
        raise Refused(f"unknown codec {shown(text)}{did_you_mean(text, CODECS) or '; use ' + ', '.join(CODECS)}")
    return text


def log_format(text: str) -> str:
    if text not in LOG_FORMATS:
        raise Refused(f"{shown(text)} is no format of a log; write text or json")
    return text


def audited_statements(text: str) -> str:
    if text not in ("text", "fingerprint"):
        raise Refused(f"{shown(text)} is no form of a statement; write text or fingerprint")
    return text


def leaves(text: str) -> Leaves:
    try:
        return Leaves(text)
    except ValueError:
        known = tuple(each.value for each in Leaves)
        raise Refused(
            f"{shown(text)} is no way to leave{did_you_mean(text, known) or '; use ' + ', '.join(known)}"
        ) from None


def fault_policy(text: str) -> FaultPolicy:
    try:
        return FaultPolicy.named(text)
    except UserError as error:
        raise Refused(error.message) from None


def sail_format(text: str) -> str:
    """A format that Sail reads too."""
    name = format_name(text)
    if name in FORMATS_NOT_SAIL:
        raise Refused(f"Sail cannot read {name.upper()}; use Apache Spark at this member, or another format")
    return name


def versioned_path(text: str) -> str:
    if has_glob(text):
        raise Refused(f"{shown(text)} has a wildcard; name the one folder of the table")
    return text


def sail_option(format_: str, key: str, value: str) -> None:
    """Sail says nothing of an option that it does not know, and reads other values than Apache Spark."""
    known = SAIL_OPTIONS.get(format_, {})
    if key.lower() not in known or (known[key.lower()] and value.lower() not in known[key.lower()]):
        raise Refused("Sail does not read it as Apache Spark does; leave it out, or use Apache Spark at this member")


def sink_format(text: str) -> str:
    return format_name(text, FORMATS_WRITTEN)


def format_name(text: str, known: Sequence[str] = (*FORMATS, *FORMATS_VERSIONED)) -> str:
    name = text.lower()
    if name in FORMATS_NOT_YET and name not in known:
        raise Refused(f"format {shown(text)} is not supported yet; use one of {', '.join(known)}")
    if name not in known:
        raise Refused(f"unknown format {shown(text)}{did_you_mean(text, known) or '; use ' + ', '.join(known)}")
    return name


def column_type(text: str) -> str:
    try:
        return normal_type(text)
    except BadType:
        if text.count("(") > text.count(")") or text.count("<") > text.count(">"):
            raise Refused(f"{shown(text)} is cut at a comma; put quotes around the type") from None
        raise Refused(f"unknown type {shown(text)}{did_you_mean(text, (*NAMES, *NESTED))}") from None


def master(text: str) -> str:
    if not MASTER.fullmatch(text):
        raise Refused(f"{shown(text)} is not a master; write local[*], local[4], spark://…, k8s://… or yarn")
    return text


def remote(text: str) -> str:
    if not re.fullmatch(r"sc://\S+", text):
        raise Refused(f"{shown(text)} is not a Spark Connect endpoint; write sc://host:port")
    return text


def conf_key(text: str) -> str:
    """A setting that any site may choose for itself."""
    if text in CONF_ELSEWHERE:
        raise Refused(f"say it with spark.{CONF_ELSEWHERE[text]} of the member")
    for fixed in CONF_FIXED:
        is_fixed = text.lower().startswith(fixed[:-1].lower()) if fixed.endswith("*") else text.lower() == fixed.lower()
        if is_fixed:
            raise Refused("Skerry sets this itself, the same at every site, or answers would differ by site")
    if not re.fullmatch(r"spark\.[A-Za-z0-9_.-]+", text):
        raise Refused("a setting of Spark begins with spark.")
    return text


def conf_key_embedded(text: str) -> str:
    """The same for a Spark inside the member's own process group."""
    if text.lower() in CONF_FIXED_EMBEDDED:
        raise Refused("an embedded Spark runs each task once, or rows would be delivered twice")
    return conf_key(text)


def option_key(text: str) -> str:
    if text.lower() in OPTIONS_OURS:
        raise Refused("Skerry lists the files itself; say which with path")
    if text.lower() in OPTIONS_LOSING:
        raise Refused("rows would be lost silently")
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]*", text):
        raise Refused("not a name of an option")
    return text


def size(text: str) -> int:
    match = SIZE.fullmatch(text)
    if not match:
        raise Refused(f"expected a whole number of bytes or a size like 64 MiB, not {shown(text)}")
    return int(match[1]) * UNITS[match[2]]


def open_access(text: str) -> str:
    if text != "open":
        raise Refused(f"write open, or a mapping with users, tokens or certificates, not {shown(text)}")
    return text


def some_text(text: str) -> str:
    if not text.strip():
        raise Refused("is empty")
    return text


def has_glob(text: str) -> bool:
    return any(c in text for c in "*?[")


def dotted_name(text: str) -> tuple[str, ...]:
    """`lake.sales.orders`; a part with other characters stands in backticks, `` ` `` in it twice."""
    parts = re.fullmatch(rf"{_NAME_PART}(\.{_NAME_PART})*", text)
    if parts is None or len(text) > TABLE_NAME_CHARS:
        raise Refused(f"{shown(text)} is not the name of a table in a catalog; write catalog.namespace.table")
    found = (match[0] for match in re.finditer(_NAME_PART, text))
    return tuple(each[1:-1].replace("``", "`") if each.startswith("`") else each for each in found)


def catalog_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text) or len(text) > NAME_CHARS_MAX:
        raise Refused(f"{shown(text)} is not a name for a catalog (letters, digits and _, no digit first)")
    if text.lower() in ("system", "session", "builtin", "global_temp"):
        raise Refused(f"{text} is a name of Spark's own")
    return text


def catalog_type(text: str) -> str:
    if text not in CATALOG_TYPES:
        known = ", ".join(CATALOG_TYPES)
        raise Refused(f"unknown type {shown(text)}{did_you_mean(text, CATALOG_TYPES) or f'; use {known}'}")
    return text


def java_class(text: str) -> str:
    if not re.fullmatch(r"([A-Za-z_$][\w$]*\.)+[A-Za-z_$][\w$]*", text):
        raise Refused(f"{shown(text)} is not the name of a class")
    return text


def catalog_key(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_./-]*", text):
        raise Refused("not the name of a setting")
    return text


def variable_name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", text):
        raise Refused(f"{shown(text)} is not the name of an environment variable")
    return text


def coordinate(text: str) -> str:
    """group:artifact:version, of Maven."""
    if not re.fullmatch(r"[\w.-]+:[\w.-]+:[\w.+-]+", text):
        raise Refused(f"{shown(text)} is no Maven coordinate; write group:artifact:version")
    return text


def local_path(text: str) -> str:
    """A path as it stands, but no URL: `s3a://bucket` would be a folder of that name."""
    if not text.strip():
        raise Refused("is empty")
    if text.startswith("file:/"):
        raise Refused(f"{shown(text)}: write the path without file:")
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        raise Refused(f"{shown(text)} is not a path on the member's own disk: mount it there")
    return text


def any_path(text: str) -> str:
    """A path on the member's own disk, or the URL of a store."""
    if is_remote(text):
        return store_path(text, is_below=False, globs=False)
    if re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) and not text.startswith("file:/"):
        known = ", ".join(f"{scheme}://" for scheme in REMOTE)
        raise Refused(f"{shown(text)} is neither a path on the member's own disk nor one of {known}")
    return local_path(text)


def store_path(text: str, *, is_below: bool, globs: bool) -> str:
    """A URL, or what stands below one; nothing in it leads up."""
    rest = text
    if is_remote(text):
        scheme, bucket, rest = split_url(text)
        if not STORE.fullmatch(bucket) and (bucket or scheme != "hdfs"):
            raise Refused("names no bucket, or holds a password; write s3a://bucket/folder")
    elif text.startswith("/") or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:/", text):
        raise Refused(f"{shown(text)} leads outside data_root")
    if not text.strip() or ".." in rest.split("/") or "\\" in rest or not text.isprintable():
        raise Refused(f"{shown(text)} leads outside {'data_root' if is_below else 'its bucket'}")
    if has_glob(rest) and not globs:
        raise Refused(f"{shown(text)} has a wildcard; name one directory")
    return text


def path_inside(root: str, *, globs: bool) -> Callable[[str], str]:
    """A rule: a path whose real place is inside `root`, also where symlinks lead."""

    def rule(text: str) -> str:
        if is_remote(text) or is_remote(root):
            return store_path(text, is_below=is_remote(root), globs=globs)
        any_path(text)
        if has_glob(text) and not globs:
            raise Refused(f"{shown(text)} has a wildcard; name one directory")
        if not is_inside(root, fixed_prefix(text)) or (has_glob(text) and ".." in text.split("/")):
            raise Refused(f"{shown(text)} leads outside data_root")
        return text

    return rule


def fixed_prefix(path: str) -> str:
    """The part of a path before its first wildcard."""
    steps = path.split("/")
    wild = next((i for i, step in enumerate(steps) if has_glob(step)), len(steps))
    return "/".join(steps[:wild]) or ("/" if path.startswith("/") and wild else ".")


def is_inside(root: str, path: str) -> bool:
    """Whether the real place of `path` (relative to `root`, a real path) is `root` or under it."""
    real = os.path.realpath(os.path.join(root, path))
    return real == root or real.startswith(root.rstrip("/") + "/")
