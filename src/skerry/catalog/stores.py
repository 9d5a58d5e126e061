"""Files of object stores and of HDFS: listed, looked at and opened with the site's own credentials.

A file is called by its URL here as everywhere; Arrow's file systems do the rest. They are asked by threads that may
wait, and every request of theirs has an end.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.fs as fs

from skerry.catalog.listing import Listing, ListingError, is_hidden, version_of
from skerry.config.rules import fixed_prefix, has_glob
from skerry.config.secrets import read_secret
from skerry.model.config import TableConfig
from skerry.model.errors import ConfigError, SiteError, SkerryError
from skerry.model.limits import STORE_ANSWER_S, STORE_CONNECT_S, STORE_THREADS
from skerry.model.sources import S3Store, Storage, split_url

Answer = TypeVar("Answer")
_SYSTEMS = 32
# Arrow's words for what a store answered, and what they mean to whoever wrote skerry.yaml.
_REASONS = (
    (re.compile(r"NO_SUCH_BUCKET|NoSuchBucket"), "there is no bucket {bucket}"),
    (
        re.compile(r"EXPIRED_TOKEN|ExpiredToken|TokenRefreshRequired|REQUEST_EXPIRED"),
        "the store says that the credentials have expired",
    ),
    (
        re.compile(
            r"ACCESS_DENIED|SIGNATURE_DOES_NOT_MATCH|INVALID_ACCESS_KEY|UNRECOGNIZED_CLIENT|HTTP status 40[13]"
            r"|AccessDenied|SignatureDoesNotMatch|InvalidAccessKeyId|Status Code: 40[13]"
            r"|40[13] (Forbidden|Unauthorized)"
        ),
        "the store refuses the credentials",
    ),
    (
        re.compile(
            r"NETWORK_CONNECTION|curlCode|Could not connect|REQUEST_TIMEOUT|Couldn't resolve"
            r"|Unable to execute HTTP request|error sending request"
        ),
        "the store does not answer",
    ),
    (
        re.compile(r"S3AFileSystem not found|No FileSystem for scheme"),
        "this Spark has no jars for such files (spark.packages; org.apache.hadoop:hadoop-aws:3.5.0 for s3a)",
    ),
)
_DO = "check members.{member}.storage, the store's own rights, and the path"


def system_of(url: str, storage: Storage) -> tuple[Any, str]:
    """Arrow's file system for a URL, and what the file is called there. SiteError without its credentials."""
    scheme, bucket, key = split_url(url)
    match scheme:
        case "s3a":
            return _s3(storage.s3, *_values(storage.s3)), f"{bucket}/{key}"
        case "gs":
            return _gs(), f"{bucket}/{key}"
        case "abfs" | "abfss":
            container, _, host = bucket.partition("@")
            return _azure(host.partition(".")[0]), f"{container}/{key}"
        case "hdfs":
            return _hdfs(bucket), f"/{key}"
    raise SiteError(f"{scheme}:// is not read here")


def _values(store: S3Store) -> tuple[str, ...]:
    """Read each time: they may be others now."""
    pairs = {"access_key": store.access_key, "secret_key": store.secret_key, "session_token": store.session_token}
    return tuple(read_secret(each, f"storage.s3.{name}") if each else "" for name, each in pairs.items())


@lru_cache(maxsize=_SYSTEMS)
def _s3(store: S3Store, access_key: str, secret_key: str, session_token: str) -> Any:
    scheme, _, host = store.endpoint.rpartition("://")
    options: dict[str, Any] = {"request_timeout": STORE_ANSWER_S, "connect_timeout": STORE_CONNECT_S}
    if store.endpoint:
        options |= {"endpoint_override": host.rstrip("/"), "scheme": scheme or "https"}
        options["force_virtual_addressing"] = not store.path_style
    if store.region or store.endpoint:
        options["region"] = store.region or "us-east-1"
    if store.anonymous:
        options["anonymous"] = True
    elif access_key:
        options |= {"access_key": access_key, "secret_key": secret_key, "session_token": session_token or None}
    return fs.S3FileSystem(**options)


@lru_cache(maxsize=_SYSTEMS)
def _gs() -> Any:
    return fs.GcsFileSystem()


@lru_cache(maxsize=_SYSTEMS)
def _azure(account: str) -> Any:
    return fs.AzureFileSystem(account)


@lru_cache(maxsize=_SYSTEMS)
def _hdfs(address: str) -> Any:
    host, _, port = address.partition(":")
    return fs.HadoopFileSystem(host or "default", int(port) if port else 8020)


def opened(file: str, storage: Storage | None) -> Any:
    """What Arrow reads a file by: its path, or an open file of a store. Raises what Arrow raises."""
    if storage is None:
        return file
    system, name = system_of(file, storage)
    return system.open_input_file(name)


def at_once(
    look: Callable[[str, tuple[int, int]], Answer], files: Sequence[str], stamps: Sequence[tuple[int, int]]
) -> list[Answer]:
    """What each file gives, in their order: each takes as long as the way to the store."""
    with ThreadPoolExecutor(STORE_THREADS) as threads:
        return list(threads.map(look, files, stamps))


def list_store(table: TableConfig, storage: Storage, files_max: int) -> Listing:
    """The table's files, in one request for each thousand; ListingError where that cannot be."""
    url = table.path
    base = fixed_prefix(url) if has_glob(url) else url
    try:
        system, name = system_of(base, storage)
        found = {f"{base}/{rest}": stamp for rest, stamp in _under(system, name)}
        if not found:
            one = system.get_file_info(name)
            if one.type == fs.FileType.File and not has_glob(url):
                found, base = {url: (one.size, one.mtime_ns or 0)}, url.rpartition("/")[0]
            elif one.type == fs.FileType.NotFound:
                system.get_file_info(fs.FileSelector(name.rstrip("/")))  # says whether it is the bucket that is missing
    except FileNotFoundError:
        found = {}
    except ConfigError as error:  # where a key should be
        raise ListingError(table, f"{error.message} (members.{table.member}.storage)") from None
    except (OSError, pa.ArrowException) as error:
        raise ListingError(
            table, f"{table.shown_path}: {reason_of(error, url)} ({_DO.format(member=table.member)})"
        ) from None
    kept = {file: stamp for file, stamp in found.items() if _is_named(file, url, base)}
    if not kept:
        raise ListingError(table, f"no file under {table.shown_path} (check {table.key}.path)")
    if len(kept) > files_max:
        raise ListingError(table, f"more than {files_max} files under {table.shown_path} (see limits.table_files)")
    files = tuple(sorted(kept))
    stamps = tuple(kept[file] for file in files)
    return Listing(files, sum(size for size, _ in stamps), version_of(base, files, stamps), base, stamps, storage)


def _under(system: Any, name: str) -> Iterator[tuple[str, tuple[int, int]]]:
    """Each file below, by what follows `name/`."""
    name = name.rstrip("/")
    for each in system.get_file_info(fs.FileSelector(name, recursive=True, allow_not_found=True)):
        if each.type == fs.FileType.File:
            yield each.path[len(name) + 1 :], (each.size, each.mtime_ns or 0)


def _is_named(file: str, url: str, base: str) -> bool:
    """Whether the path names the file, or a folder above it, and nothing on the way is hidden."""
    steps = file[len(base) + 1 :].split("/")
    if any(is_hidden(step) for step in steps):
        return False
    pattern = url[len(base) + 1 :].split("/") if has_glob(url) else []
    return not pattern or any(_matches(steps[:count], pattern) for count in range(1, len(steps) + 1))


def _matches(steps: list[str], pattern: list[str]) -> bool:
    if not pattern:
        return not steps
    if pattern[0] == "**":
        return any(_matches(steps[count:], pattern[1:]) for count in range(len(steps) + 1))
    return bool(steps) and fnmatch.fnmatchcase(steps[0], pattern[0]) and _matches(steps[1:], pattern[1:])


def reason_of(error: BaseException, url: str) -> str:
    """What is wrong, in our words where they are known: a store's may quote what it was sent."""
    return _known(str(error), url) or str(error).splitlines()[0][:300].lower()


def _known(text: str, url: str) -> str:
    return next((reason.format(bucket=split_url(url)[1]) for words, reason in _REASONS if words.search(text)), "")


def store_fault(told: SkerryError, table: str, member: str, root: str) -> SkerryError:
    """The error of an engine that read a table of a store; in our words if it is the store's."""
    reason = _known(told.message, root) if isinstance(told, SiteError) else ""
    if not reason:
        return told
    return SiteError(f"table {table}: {root}: {reason} ({_DO.format(member=member)})", member=told.member)


def spark_conf(storage: Storage) -> dict[str, str]:
    """What Hadoop needs to read the same files, without the secrets."""
    store = storage.s3
    timeouts = {
        "fs.s3a.connection.establish.timeout": f"{STORE_CONNECT_S}s",
        "fs.s3a.connection.timeout": f"{STORE_ANSWER_S}s",
        "fs.s3a.attempts.maximum": "3",
        "fs.s3a.retry.limit": "3",
    }
    conf = timeouts if store != S3Store() else {}
    if store.endpoint:
        conf |= {"fs.s3a.endpoint": store.endpoint, "fs.s3a.endpoint.region": store.region or "us-east-1"}
        conf["fs.s3a.connection.ssl.enabled"] = str(not store.endpoint.startswith("http://")).lower()
    elif store.region:
        conf["fs.s3a.endpoint.region"] = store.region
    if store.path_style:
        conf["fs.s3a.path.style.access"] = "true"
    if store.anonymous:
        conf["fs.s3a.aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"
    elif store.session_token:
        conf["fs.s3a.aws.credentials.provider"] = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
    return {f"spark.hadoop.{key}": value for key, value in conf.items()}


def spark_secrets(storage: Storage) -> dict[str, str]:
    """The secrets, read now."""
    names = ("access.key", "secret.key", "session.token")
    return {
        f"spark.hadoop.fs.s3a.{name}": value for name, value in zip(names, _values(storage.s3), strict=True) if value
    }


def sail_environment(storage: Storage) -> Mapping[str, str]:
    """What Sail needs to read the same files, as its process takes it."""
    store = storage.s3
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    found = {name: value for name, value in zip(names, _values(store), strict=True) if value}
    if store.endpoint:
        found |= {"AWS_ENDPOINT": store.endpoint, "AWS_ENDPOINT_URL": store.endpoint}
        found["AWS_ALLOW_HTTP"] = str(store.endpoint.startswith("http://")).lower()
        found["AWS_VIRTUAL_HOSTED_STYLE_REQUEST"] = str(not store.path_style).lower()
    if store.region or store.endpoint:
        found |= dict.fromkeys(("AWS_REGION", "AWS_DEFAULT_REGION"), store.region or "us-east-1")
    if store.anonymous:
        found["AWS_SKIP_SIGNATURE"] = "true"
    return found
