"""A right skerry.yaml becomes the Config it says."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from skerry.config import Config, Link, Role, SparkConfig, load, parse
from skerry.config import rules as config_rules
from skerry.model.errors import ConfigError
from skerry.model.limits import Limits
from skerry.model.sources import CatalogTable, VersionedFolder
from skerry.model.table import Column
from skerry.sql.statement import read_view
from skerry.sql.views import mistakes, views_of

TOP = Path(__file__).parents[3]
CLUSTERS = TOP / "docs" / "spark-clusters.md"
EXAMPLE = TOP / "examples" / "three-sites.yaml"
REFERENCE = TOP / "docs" / "configuration.md"
LAKEHOUSE = TOP / "docs" / "lakehouse.md"

FULL = """\
cluster: nordic
data_root: data
state: kept/here
log_format: json
log_sql: true
members:
  no:
    address: Localhost:7101
    spark: {master: "local[2]", conf: {spark.driver.memory: 1g, spark.ui.enabled: no}}
    capacity: 4
    tables:
      orders:
        format: CSV
        path: orders/*.csv
        options: {header: yes, sep: ";", maxColumns: 10, nullValue: "\\t"}
        columns: {o_orderkey: LONG, o_total: "Decimal( 15, 2 )", tags: "array<struct<a:int,b:map<string,byte>>>"}
      single: {format: parquet, path: 2024}
    sinks: {archive: {format: parquet, path: out/archive}}
  bergen: {address: "[::1]:7102", spark: {remote: "sc://spark.bergen:15002"}, tables: {Orders: {format: json, path: o}}}
  sail: {address: "127.0.0.1:7103", spark: {sail: true}}
  front: {address: "front.example.com:7104", role: lite}
links:
  - {from: no, to: bergen, mbit: 1000, ms: 5, usd_per_gb: 0.02}
  - {between: [sail, BERGEN], mbit: 1.5e2}
limits:
 {page_rows: 1_000, page_bytes: 2 MiB, heartbeat_s: .5, drain_s: 0, broadcast_bytes: 0, spool_disk_bytes_of_user: 2 MiB}
"""


def test_everything_is_read(tmp_path: Path) -> None:
    config = parse(FULL, "skerry.yaml", tmp_path)
    assert config.cluster == "nordic"
    assert config.data_root == str(tmp_path.resolve() / "data")
    assert config.state == str(tmp_path / "kept" / "here")
    assert (config.log_format, config.log_sql) == ("json", True)
    assert list(config.members) == ["no", "bergen", "sail", "front"]
    assert config.addresses() == {
        "no": "tcp:localhost:7101",
        "bergen": "tcp:[::1]:7102",
        "sail": "tcp:127.0.0.1:7103",
        "front": "tcp:front.example.com:7104",
    }
    oslo = config.member("NO")
    assert oslo.spark == SparkConfig(master="local[2]", conf={"spark.driver.memory": "1g", "spark.ui.enabled": "false"})
    assert (oslo.role, oslo.capacity) == (Role.DATA, 4)
    orders = oslo.tables["orders"]
    assert (orders.format, orders.path, orders.shown_path) == ("csv", "orders/*.csv", "data/orders/*.csv")
    assert orders.options == {"header": "true", "sep": ";", "maxColumns": "10", "nullValue": "\t"}
    assert orders.columns == (
        Column("o_orderkey", "bigint"),
        Column("o_total", "decimal(15,2)"),
        Column("tags", "array<struct<a:int,b:map<string,tinyint>>>"),
    )
    assert oslo.tables["single"].path == "2024"
    assert oslo.sinks["archive"].path == "out/archive"
    assert config.members["bergen"].spark == SparkConfig(remote="sc://spark.bergen:15002")
    assert config.members["bergen"].capacity == 16
    assert config.members["sail"].spark == SparkConfig(sail=True)
    assert config.members["front"].spark is None
    assert config.links == (
        Link("no", "bergen", 1000, 5, 0.02),
        Link("sail", "bergen", 150),
        Link("bergen", "sail", 150),
    )
    assert config.limits == msgspec.structs.replace(
        Limits(),
        page_rows=1000,
        page_bytes=2 * 2**20,
        heartbeat_s=0.5,
        drain_s=0,
        broadcast_bytes=0,
        spool_disk_bytes_of_user=2 * 2**20,
    )
    assert config.table_names() == ("orders", "single")


def test_defaults() -> None:
    config = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}}", base_dir="/nowhere")
    assert config.data_root == "/nowhere"
    assert config.members["oslo"].spark == SparkConfig(master="local[*]")
    assert config.limits == Limits()
    assert config.links == ()
    assert config.state == ""


def test_the_config_is_frozen() -> None:
    config = parse("cluster: c\nmembers: {oslo: {address: 'h:1'}}")
    with pytest.raises(AttributeError):
        config.cluster = "d"  # type: ignore[misc]


def test_every_limit_can_be_set() -> None:
    for name in Limits.__struct_fields__:
        value = getattr(Limits(), name)
        config = parse(f"cluster: c\nmembers: {{o: {{address: 'h:1'}}}}\nlimits: {{{name}: {value}}}")
        assert config.limits == Limits(), name


def test_an_unknown_member_is_named_with_the_nearest() -> None:
    config = parse(FULL)
    with pytest.raises(ConfigError, match=r"^no member bergn in cluster nordic; did you mean bergen\?$"):
        config.member("bergn")


def test_an_anchor_may_be_shared() -> None:
    text = """\
cluster: c
members:
  a: {address: 'h:1', tables: {t: {format: csv, path: a, columns: &k {x: int}}}}
  b: {address: 'h:2', tables: {t: {format: csv, path: b, columns: *k}}}
"""
    config = parse(text)
    assert config.members["b"].tables["t"].columns == (Column("x", "int"),)


def test_the_example_is_right() -> None:
    config = load(EXAMPLE)
    assert (config.cluster, len(config.members), len(config.table_names())) == ("nordic", 3, 8)


def test_the_page_of_catalogs_has_a_right_example(tmp_path: Path) -> None:
    text = LAKEHOUSE.read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    config = parse(text, base_dir=tmp_path)
    oslo = config.members["oslo"]
    assert oslo.spark is not None
    assert [each.kind for each in oslo.spark.catalogs] == ["hive", "jdbc"]
    assert oslo.spark.catalogs[1].secrets["password"].file == str(tmp_path / "shop.password")
    assert oslo.schemas["sales"].namespace == ("spark_catalog", "sales")
    assert oslo.tables["visits"].source == CatalogTable(("spark_catalog", "web", "visits"))
    assert oslo.tables["carts"].source == CatalogTable(("shop", "public", "carts"))
    assert oslo.tables["stock"].source == VersionedFolder()
    assert mistakes(views_of(config), read_view) == []


def test_the_reference_has_a_right_example_and_every_limit() -> None:
    text = REFERENCE.read_text()
    example_in_docs = text.split("```yaml\n")[1].split("```")[0]
    assert len(parse(example_in_docs).members) == 3
    assert [name for name in Limits.__struct_fields__ if f"| `{name}` |" not in text] == []


def test_each_example_of_a_spark_cluster_is_right() -> None:
    examples = [
        each for each in re.findall(r"```yaml\n(.*?)```", CLUSTERS.read_text(), re.DOTALL) if "members:" in each
    ]
    sparks = [parse(each).members["oslo"].spark for each in examples]
    assert all(sparks)
    assert [(spark.master or spark.remote or "").partition(":")[0] for spark in sparks if spark] == [
        *("spark", "sc", "yarn", "k8s")
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "cannot be read: no such file or directory"),
        (b"cluster: \xff", "1:10: not YAML: not UTF-8"),
        (b"#" * (2**20 + 1), "larger than 1048576 bytes"),
    ],
)
def test_a_file_that_cannot_be_read(content: bytes | None, message: str, tmp_path: Path) -> None:
    file = tmp_path / "skerry.yaml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        load(file)
    assert message in caught.value.message
    assert caught.value.message.startswith(str(file))


def test_a_directory_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read: is a directory"):
        load(tmp_path)


def test_names_that_the_lexer_keeps_for_itself_are_refused() -> None:
    words = pytest.importorskip("skerry.sql.words")
    assert {word.lower() for word in words.KEYWORDS} <= config_rules.KEYWORDS


# --- any text ------------------------------------------------------------------------------------
def parse_or_refuse(text: str) -> None:
    """A Config, or one ConfigError with a place on every line that any terminal can print."""
    refusal = ""
    try:
        config = parse(text, "f")
    except ConfigError as error:
        refusal = error.message
    if not refusal:
        assert isinstance(config, Config)
        assert any(member.role is Role.DATA for member in config.members.values())
    else:
        assert all(re.match(r"f:[0-9]+:[0-9]+: \S", line) for line in refusal.split("\n"))
        assert refusal.encode()


@given(st.text())
@example("[" * 500)
@example('"\\UFFFFFFFF"')
@example('cluster: "\\uD800"')
@example("%YAML 99999999999999999999.1\n---\na")
@example("members: &a {oslo: *a}")
@example("&a [*a]")
@example("members: {oslo: &a {tables: *a, spark: *a, sinks: *a}}")
@example("!!set {a, b}")
@example("capacity: " + "9" * 5000)
@example("? ")
@example("=: =")
def test_any_text_is_a_config_or_a_config_error(text: str) -> None:
    parse_or_refuse(text)


WORDS = (
    "cluster members links limits oslo address role spark tables orders format path columns conf sail master mbit "
    "between from to page_rows true no 1 -1 1e999 ~ .nan [] {} : - , [ ] { } & * ! | > ' \" # \n \n\n \t"
)


@given(st.lists(st.sampled_from(WORDS.split(" ")), max_size=40).map(" ".join))
def test_any_words_of_yaml_are_a_config_or_a_config_error(text: str) -> None:
    parse_or_refuse(text)


@given(data=st.data())
@settings(max_examples=200)
def test_a_right_file_with_a_change_is_a_config_or_a_config_error(data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(FULL)))
    length = data.draw(st.integers(0, 12))
    parse_or_refuse(FULL[:start] + data.draw(st.text(max_size=6)) + FULL[start + length :])


@pytest.mark.parametrize(
    ("given", "address"),
    [("Oslo.example", "oslo.example:7100"), ("10.0.0.1", "10.0.0.1:7100"), ("[::1]", "[::1]:7100")],
)
def test_a_port_that_is_left_out_is_the_usual_one(given: str, address: str) -> None:
    config = parse(f"cluster: c\nmembers: {{oslo: {{address: '{given}'}}}}")
    assert config.member("oslo").address == address
