"""Settings of Spark that follow from a member's catalogs, packages and jars. Imports no pyspark."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from skerry.config.secrets import read_secret
from skerry.model.config import CatalogConfig
from skerry.model.errors import SiteError

DELTA = "delta-spark"  # the artifact, and how its jar's name begins
CLASSES = {
    "jdbc": "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog",
}
# Spark 4.2 hands a database casts, averages and orders that mean something else there (ADR 80).
UNPUSHED = ("Predicate", "Aggregate", "Limit", "Offset", "TableSample", "Join")
# Its own words for what is set for all of Spark, not under the catalog's name.
WAREHOUSE = "warehouse"
_UNRESOLVED = re.compile(r"unresolved dependency: ([\w.-]+)#([\w.-]+);([\w.+-]+)")
_DOWNLOAD_FAILED = re.compile(r"download failed: ([\w.-]+)#([\w.-]+);([\w.+-]+?)!")
_UNREACHABLE = re.compile(
    r"Host [\w.-]+ not found|server through a proxy|Connection (refused|timed out)|Server access error"
)


def has_delta(packages: Iterable[str], jars: Iterable[str]) -> bool:
    names = (*(package.split(":")[1] for package in packages), *(os.path.basename(jar) for jar in jars))
    return any(name.startswith(DELTA) for name in names)


def catalog_conf(catalogs: Sequence[CatalogConfig], packages: Sequence[str], jars: Sequence[str]) -> dict[str, str]:
    """All but the secrets."""
    conf: dict[str, str] = {}
    if packages:
        conf["spark.jars.packages"] = ",".join(packages)
    if jars:
        conf["spark.jars"] = ",".join(jars)
    if has_delta(packages, jars):
        conf["spark.sql.extensions"] = "io.delta.sql.DeltaSparkSessionExtension"
        conf["spark.sql.catalog.spark_catalog"] = "org.apache.spark.sql.delta.catalog.DeltaCatalog"
        # What the log of a table is made of is read by so many tasks; Delta's 50 suit a cluster.
        conf["spark.databricks.delta.snapshotPartitions"] = "2"
    for catalog in catalogs:
        if catalog.kind == "hive":
            conf["spark.sql.catalogImplementation"] = "hive"
        else:
            conf[f"spark.sql.catalog.{catalog.name}"] = CLASSES.get(catalog.kind, catalog.kind)
        if catalog.kind == "jdbc":
            conf |= {_key(catalog, f"pushDown{what}"): "false" for what in UNPUSHED}
        conf |= {_key(catalog, key): value for key, value in catalog.settings.items()}
    return conf


def _key(catalog: CatalogConfig, key: str) -> str:
    if catalog.kind != "hive":
        return f"spark.sql.catalog.{catalog.name}.{key}"
    return "spark.sql.warehouse.dir" if key == WAREHOUSE else f"spark.hadoop.{key}"


def secret_conf(catalogs: Sequence[CatalogConfig]) -> dict[str, str]:
    """The secrets, read now: they belong on no command line, in no log and in no message."""
    return {
        _key(catalog, key): read_secret(secret, f"catalog {catalog.name}: {key}")
        for catalog in catalogs
        for key, secret in catalog.secrets.items()
    }


def hidden(text: str, secrets: Iterable[str]) -> str:
    """The text without the secrets that may stand in it."""
    for secret in sorted(secrets, key=len, reverse=True):
        if secret:
            text = text.replace(secret, "***")
    return text


# --- packages --------------------------------------------------------------------------------------
def packages_directory() -> str:
    """Where jars are kept that have been fetched once, for all members of this user."""
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(Path.home(), ".cache")
    return os.path.join(base, "skerry", "packages")


@contextmanager
def one_at_a_time(conf: Mapping[str, str]) -> Iterator[None]:
    """A block in which Spark may fetch packages: two that fetch into one directory would read each other's halves."""
    if "spark.jars.packages" not in conf:
        yield
        return
    directory = conf["spark.jars.ivy"]
    os.makedirs(directory, exist_ok=True)
    with open(os.path.join(directory, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def unresolved(log: str, conf: Mapping[str, str]) -> SiteError | None:
    """Why packages could not be had, by what Spark's launcher wrote; None if that is not what is wrong."""
    found = _UNRESOLVED.findall(log) or _DOWNLOAD_FAILED.findall(log)
    if not found or "spark.jars.packages" not in conf:
        return None
    missing = ", ".join(dict.fromkeys(":".join(each) for each in found))
    if _UNREACHABLE.search(log):
        return SiteError(
            f"spark.packages: {missing} cannot be fetched: a repository is not reached, or it has no such package",
            suggestion="check the coordinate; without a network, put the jars on this machine and name them in jars",
        )
    return SiteError(
        f"spark.packages: no repository has {missing}",
        suggestion="check group, artifact and version; other repositories: spark.conf, spark.jars.repositories",
    )
