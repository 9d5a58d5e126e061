"""Files of stores, as far as no store is needed: which are named, and what is said and given to whom."""

from __future__ import annotations

import pytest

from skerry.catalog.listing import ListingError
from skerry.catalog.stores import (
    _is_named,
    list_store,
    reason_of,
    sail_environment,
    spark_conf,
    spark_secrets,
    store_fault,
)
from skerry.model.config import TableConfig
from skerry.model.errors import SiteError
from skerry.model.sources import S3Store, Secret, Storage, url_of

NAMED = {
    ("s3a://b/t", "s3a://b/t", "day=1/a.parquet"): True,
    ("s3a://b/t", "s3a://b/t", "_SUCCESS"): False,
    ("s3a://b/t", "s3a://b/t", "_temporary/0/a.parquet"): False,
    ("s3a://b/t", "s3a://b/t", "_day=1/a.parquet"): True,
    ("s3a://b/t/2024-*/*.csv", "s3a://b/t", "2024-01/a.csv"): True,
    ("s3a://b/t/2024-*/*.csv", "s3a://b/t", "2023-01/a.csv"): False,
    ("s3a://b/t/2024-*/*.csv", "s3a://b/t", "2024-01/x/a.csv"): False,
    ("s3a://b/t/2024-*", "s3a://b/t", "2024-01/x/a.csv"): True,
    ("s3a://b/**/a?.csv", "s3a://b", "x/y/a1.csv"): True,
    ("s3a://b/**/a?.csv", "s3a://b", "a1.csv"): True,
    ("s3a://b/**/a?.csv", "s3a://b", "x/ab1.csv"): False,
}


@pytest.mark.parametrize("case", NAMED)
def test_which_files_a_path_names(case: tuple[str, str, str]) -> None:
    url, base, rest = case
    assert _is_named(f"{base}/{rest}", url, base) is NAMED[case]


def test_where_a_table_is() -> None:
    assert url_of("s3a://lake/x/", "orders/./a//b/") == "s3a://lake/x/orders/a/b"
    assert url_of("/data", "s3a://lake/x") == "s3a://lake/x"


REASONS = {
    "AWS Error NO_SUCH_BUCKET during ListObjectsV2 operation: it does not exist": "there is no bucket b",
    "AWS Error EXPIRED_TOKEN during ListObjectsV2 operation: it has expired.": "credentials have expired",
    "AWS Error UNKNOWN (HTTP status 400) during HeadObject: ExceptionName: ExpiredToken": "credentials have expired",
    "AWS Error ACCESS_DENIED during HeadObject operation: No response body.": "refuses the credentials",
    "AWS Error INVALID_ACCESS_KEY_ID during ListObjectsV2: the key AKIA": "refuses the credentials",
    "AWS Error NETWORK_CONNECTION during HeadObject operation: curlCode: 7, Could not connect": "does not answer",
}


def test_what_an_engine_says_of_a_store_names_the_table() -> None:
    said = SiteError("Spark failed: s3a://b/t/a: getFileStatus: (Service: S3, Status Code: 403, Request ID: 46)")
    told = store_fault(said, "orders", "oslo", "s3a://b/t")
    assert told.message.startswith("table orders: s3a://b/t: the store refuses the credentials (check members.oslo.")
    other = SiteError("Spark ran out of memory")
    assert store_fault(other, "orders", "oslo", "s3a://b/t") is other


def test_a_key_that_is_not_there_is_said_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("K", raising=False)
    where = S3Store("http://127.0.0.1:1", access_key=Secret(env="K"), secret_key=Secret(env="K"))
    table = TableConfig("oslo", "orders", "parquet", "s3a://b/t", shown_path="s3a://b/t")
    with pytest.raises(ListingError, match=r"site oslo: table orders: storage.s3.access_key: .*K is not") as caught:
        list_store(table, Storage(where), 10)
    assert "members.oslo.storage" in caught.value.message


@pytest.mark.parametrize("said", REASONS)
def test_what_a_store_says_is_told_in_other_words(said: str) -> None:
    told = reason_of(OSError(said), "s3a://b/t")
    assert REASONS[said] in told
    assert "AKIA" not in told


def test_settings_of_engines_follow_from_one_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("K", "key")
    monkeypatch.setenv("S", "secret")
    where = S3Store("http://h:9000", path_style=True, access_key=Secret(env="K"), secret_key=Secret(env="S"))
    conf = spark_conf(Storage(where))
    assert conf["spark.hadoop.fs.s3a.endpoint"] == "http://h:9000"
    assert conf["spark.hadoop.fs.s3a.path.style.access"] == "true"
    assert "secret" not in repr(list(conf.values()))
    assert spark_secrets(Storage(where)) == {
        "spark.hadoop.fs.s3a.access.key": "key",
        "spark.hadoop.fs.s3a.secret.key": "secret",
    }
    assert sail_environment(Storage(where))["AWS_SECRET_ACCESS_KEY"] == "secret"
    assert (spark_conf(Storage()), spark_secrets(Storage()), sail_environment(Storage())) == ({}, {}, {})
