"""Settings of Spark for catalogs and packages; secrets, and what is said when a package cannot be had."""

from __future__ import annotations

from pathlib import Path

import pytest

from skerry.model.config import CatalogConfig, Secret
from skerry.model.errors import ConfigError
from skerry.spark.catalogs import catalog_conf, hidden, read_secret, secret_conf, unresolved
from skerry.spark.settings import SparkSettings, embedded_conf

DELTA = "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_catalogs_become_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_PASSWORD", "letmein")
    told = {"url": "jdbc:x", "pushDownLimit": "true"}
    shop = CatalogConfig("shop", "jdbc", told, {"password": Secret(env="SHOP_PASSWORD")})
    metastore = CatalogConfig("spark_catalog", "hive", {"hive.metastore.uris": "thrift://m:9083", "warehouse": "/w"})
    settings = SparkSettings(catalogs=(shop, metastore, CatalogConfig("unity", "io.unity.Catalog")), packages=(DELTA,))
    conf = embedded_conf(settings, "/tmp/x")
    assert conf["spark.sql.catalog.shop"] == "org.apache.spark.sql.execution.datasources.v2.jdbc.JDBCTableCatalog"
    assert conf["spark.sql.catalog.shop.url"] == "jdbc:x"
    assert conf["spark.sql.catalog.shop.pushDownPredicate"] == "false"
    assert conf["spark.sql.catalog.shop.pushDownLimit"] == "true"
    assert conf["spark.sql.catalog.unity"] == "io.unity.Catalog"
    assert (conf["spark.sql.catalogImplementation"], conf["spark.sql.warehouse.dir"]) == ("hive", "/w")
    assert conf["spark.hadoop.hive.metastore.uris"] == "thrift://m:9083"
    assert conf["spark.sql.catalog.spark_catalog"] == "org.apache.spark.sql.delta.catalog.DeltaCatalog"
    assert "letmein" not in str(conf)
    assert secret_conf(settings.catalogs) == {"spark.sql.catalog.shop.password": "letmein"}


def test_without_any_the_session_catalog_stays_in_memory() -> None:
    conf = embedded_conf(SparkSettings(), "/tmp/x")
    assert conf["spark.sql.catalogImplementation"] == "in-memory"
    assert not any("spark.jars" in key or key.startswith("spark.sql.catalog.") for key in conf)


def test_a_jar_of_delta_switches_it_on() -> None:
    assert "spark.sql.extensions" in catalog_conf((), (), ("/jars/delta-spark_4.2_2.13-4.4.0.jar",))
    assert "spark.sql.extensions" not in catalog_conf((), ("org.x:y:1",), ("/jars/other.jar",))


def test_a_secret_that_is_not_there_is_named_with_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOPE", raising=False)
    with pytest.raises(ConfigError, match="catalog shop: password: the environment variable NOPE is not set"):
        read_secret(Secret(env="NOPE"), "catalog shop: password")
    with pytest.raises(ConfigError, match=r"gone cannot be read: no such file"):
        read_secret(Secret(file=str(tmp_path / "gone")), "catalog shop: password")
    (tmp_path / "there").write_text("s3cret\n")
    assert read_secret(Secret(file=str(tmp_path / "there")), "x") == "s3cret"


def test_no_message_has_a_secret() -> None:
    assert hidden("user x with letmein, letmein2", ("letmein", "letmein2", "")) == "user x with ***, ***"


@pytest.mark.parametrize(
    ("log", "message"),
    [
        ("[unresolved dependency: org.x#y;1.0: not found]", "spark.packages: no repository has org.x:y:1.0"),
        (
            "Host jars.example.org not found.\n[unresolved dependency: org.x#y;1.0: not found]",
            "spark.packages: org.x:y:1.0 cannot be fetched: a repository is not reached, or it has no such package",
        ),
        ("[download failed: org.x#y;1.0!y.jar]", "spark.packages: no repository has org.x:y:1.0"),
    ],
)
def test_a_package_that_cannot_be_had_is_named(log: str, message: str) -> None:
    error = unresolved(log, {"spark.jars.packages": "org.x:y:1.0"})
    assert error is not None
    assert error.message == message
    assert unresolved("java.lang.OutOfMemoryError", {"spark.jars.packages": "org.x:y:1.0"}) is None
    assert unresolved(log, {}) is None
