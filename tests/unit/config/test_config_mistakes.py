"""Every mistake in skerry.yaml gives one clear message with its place: the text, its keys, members and their Spark."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from skerry.config import parse
from skerry.model.errors import ConfigError
from tests.unit.config.config_texts import member, table, told

# (what is wrong, the file, the messages without the file's name)
MISTAKES = {
    # --- the text --------------------------------------------------------------------------------
    "not YAML": ("cluster: [", ["1:11: not YAML: expected the node content, but found '<stream end>'"]),
    "not YAML, indented wrongly": ("a: b\n c: d", ["2:3: not YAML: mapping values are not allowed here"]),
    "not YAML, a tab": ("cluster:\n\tx: 1", ["2:1: not YAML: found character '\\t' that cannot start any token"]),
    "not YAML, a control character": ("cluster: \x07", ["1:10: not YAML: special characters are not allowed"]),
    "two documents": ("a: 1\n---\nb: 2", ["2:1: not YAML: but found another document"]),
    "undefined alias": ("a: *b", ["1:4: not YAML: found undefined alias 'b'"]),
    "empty": ("", ["1:1: the file is empty"]),
    "only a comment": ("# nothing\n", ["1:1: the file is empty"]),
    "a list": ("- a", ["1:1: expected a mapping, not a list"]),
    "text": ("hello", ["1:1: expected a mapping, not text"]),
    "missing all": ("{}", ["1:1: cluster: missing", "1:1: members: missing"]),
    # --- keys ------------------------------------------------------------------------------------
    "unknown key": (
        table("fromat: parquet, format: csv, path: x"),
        ["3:44: members.oslo.tables.orders.fromat: unknown key; did you mean format?"],
    ),
    "unknown key at the top": (member("", "memebrs: 1"), ["4:1: memebrs: unknown key; did you mean members?"]),
    "unknown key, nothing near": (member("zzz: 1"), ["3:26: members.oslo.zzz: unknown key"]),
    "duplicate key": (
        "cluster: c\ncluster: d\nmembers: {oslo: {address: 'h:1'}}",
        ["2:1: cluster: duplicate key; first at line 1"],
    ),
    "duplicate member": (
        "cluster: c\nmembers:\n  oslo: {address: 'h:1'}\n  Oslo: {address: 'h:2'}",
        ["4:3: members.Oslo: duplicate key (the same name as oslo); first at line 3"],
    ),
    "duplicate table": (
        member("tables: {a: {format: csv, path: x}, A: {format: csv, path: x}}"),
        ["3:62: members.oslo.tables.A: duplicate key (the same name as a); first at line 3"],
    ),
    "duplicate column": (
        table("format: csv, path: x, columns: {a: int, A: int}"),
        ["3:84: members.oslo.tables.orders.columns.A: duplicate key (the same name as a); first at line 3"],
    ),
    "merge key": (
        "cluster: c\nmembers:\n  a: &a {address: 'h:1'}\n  b: {<<: *a}",
        ["4:3: members.b.address: missing", "4:7: members.b.<<: merge keys are not supported"],
    ),
    "a list as key": ("cluster: c\nmembers: {[a]: 1}", ["2:11: members: a key must be plain text"]),
    "a tag": ("cluster: !x c\nmembers: {o: {address: 'h:1'}}", ["1:10: cluster: expected text, not the tag !x"]),
    # --- types and what is missing ---------------------------------------------------------------
    "members a list": ("cluster: c\nmembers: [oslo]", ["2:10: members: expected a mapping, not a list"]),
    "member empty": ("cluster: c\nmembers:\n  oslo:", ["3:8: members.oslo: expected a mapping, not nothing"]),
    "address missing": ("cluster: c\nmembers:\n  oslo: {role: data}", ["3:3: members.oslo.address: missing"]),
    "address a list": (
        "cluster: c\nmembers: {oslo: {address: [h, 1]}}",
        ["2:27: members.oslo.address: expected text, not a list"],
    ),
    "format and path missing": (
        table(""),
        ["3:35: members.oslo.tables.orders.format: missing", "3:35: members.oslo.tables.orders.path: missing"],
    ),
    "capacity text": (member("capacity: many"), ["3:36: members.oslo.capacity: expected a whole number, not many"]),
    "capacity quoted": (member("capacity: '4'"), ["3:36: members.oslo.capacity: expected a whole number, not text"]),
    "capacity a fraction": (member("capacity: 1.5"), ["3:36: members.oslo.capacity: expected a whole number, not 1.5"]),
    "capacity zero": (member("capacity: 0"), ["3:36: members.oslo.capacity: must be at least 1, not 0"]),
    "capacity huge": (member("capacity: 99999"), ["3:36: members.oslo.capacity: must be at most 10000, not 99999"]),
    "tables empty": (member("tables: "), ["3:33: members.oslo.tables: expected a mapping, not nothing"]),
    "links a mapping": (member("", "links: {}"), ["4:8: links: expected a list, not a mapping"]),
    "cluster with a space": (
        "cluster: a b\nmembers: {o: {address: 'h:1'}}",
        ["1:10: cluster: a b is not a name for a cluster (letters, digits, - _ .)"],
    ),
    "data root empty": (member("", "data_root: ''"), ["4:12: data_root: is empty"]),
    "data root a URL": (
        member("", "data_root: s3://bucket/tables"),
        [
            "4:12: data_root: s3://bucket/tables is neither a path on the member's own disk nor one of s3a://, "
            "abfss://, abfs://, gs://, hdfs://"
        ],
    ),
    "data root a URL of a file": (
        member("", "data_root: file:///data"),
        ["4:12: data_root: file:///data: write the path without file:"],
    ),
    "state a URL": (
        member("", "state: hdfs://h/s"),
        ["4:8: state: hdfs://h/s is not a path on the member's own disk: mount it there"],
    ),
    "state empty": (member("", "state: ''"), ["4:8: state: is empty"]),
    # --- members ---------------------------------------------------------------------------------
    "no members": ("cluster: c\nmembers: {}", ["2:1: members: no data member; at least one member needs role: data"]),
    "only lite members": (
        member("role: lite"),
        ["2:1: members: no data member; at least one member needs role: data"],
    ),
    "two members, one address": (
        "cluster: c\nmembers:\n  a: {address: 'localhost:1'}\n  b: {address: '127.0.0.1:1'}",
        ["4:16: members.b.address: 127.0.0.1:1 is the address of a too"],
    ),
    "member name with a dash": (
        "cluster: c\nmembers:\n  os-lo: {address: 'h:1'}",
        ["3:3: members.os-lo: os-lo is not a plain name (letters, digits and _, no digit first)"],
    ),
    "member name reserved": (
        "cluster: c\nmembers:\n  information_schema: {address: 'h:1'}",
        ["3:3: members.information_schema: information_schema is a reserved name"],
    ),
    "member named like a format": (
        "cluster: c\nmembers:\n  Parquet: {address: 'h:1'}",
        ["3:3: members.Parquet: Parquet is a reserved name"],
    ),
    "member name too long": (
        f"cluster: c\nmembers:\n  {'x' * 64}: {{address: 'h:1'}}",
        [f"3:3: members.{'x' * 64}: a name has at most 63 characters"],
    ),
    "table name a keyword": (
        member("tables: {order: {format: csv, path: x}}"),
        ["3:35: members.oslo.tables.order: order is a reserved word of SQL"],
    ),
    "table name with a dot": (
        member("tables: {a.b: {format: csv, path: x}}"),
        ["3:35: members.oslo.tables.a.b: a.b is not a plain name (letters, digits and _, no digit first)"],
    ),
    "unknown role": (member("role: heavy"), ["3:32: members.oslo.role: heavy is not a role; write data or lite"]),
    "lite with tables and Spark": (
        "cluster: c\nmembers:\n  a: {address: 'h:1'}\n  b: {address: 'h:2', role: lite, spark: {}, tables: {}}",
        [
            "4:35: members.b.spark: a lite member has no spark; use role: data",
            "4:46: members.b.tables: a lite member has no tables; use role: data",
        ],
    ),
    "tls without a key": (
        member("", "tls: {certificate: a, authority: b}"),
        ["4:1: tls.key: missing"],
    ),
    "insecure as text": (member("insecure: maybe"), ["3:36: members.oslo.insecure: expected true or false, not text"]),
    "tls of one member": (
        "cluster: c\nmembers:\n  a: {address: 'h:1', tls: {certificate: c, key: k, authority: a}}\n"
        "  b: {address: 'h:2'}",
        ["4:6: members.b: has no tls, and others have; give it to all, or none, of them"],
    ),
    "data ports that are none": (
        member("data_ports: 7200"),
        ["3:38: members.oslo.data_ports: 7200 is not a range of ports; write first-last, like 7200-7299"],
    ),
    "data ports the wrong way round": (
        member("data_ports: 7299-7200"),
        [
            "3:38: members.oslo.data_ports: 7299-7200 is not a range of ports; they are 1 to 65535, the first not"
            " above the last"
        ],
    ),
    # --- Spark -----------------------------------------------------------------------------------
    "two Sparks": (
        member("spark: {master: yarn, remote: 'sc://h'}"),
        ["3:33: members.oslo.spark: more than one of master, remote; keep one"],
    ),
    "sail and master": (
        member("spark: {sail: true, master: 'local[*]'}"),
        ["3:33: members.oslo.spark: more than one of master, sail; keep one"],
    ),
    "sail false": (
        member("spark: {sail: false}"),
        ["3:40: members.oslo.spark.sail: write sail: true, or leave it out"],
    ),
    "sail text": (
        member("spark: {sail: maybe}"),
        ["3:40: members.oslo.spark.sail: expected true or false, not text"],
    ),
    "bad master": (
        member("spark: {master: mesos}"),
        [
            "3:42: members.oslo.spark.master: mesos is not a master; "
            "write local[*], local[4], spark://…, k8s://… or yarn"
        ],
    ),
    "bad remote": (
        member("spark: {remote: 'http://h'}"),
        ["3:42: members.oslo.spark.remote: http://h is not a Spark Connect endpoint; write sc://host:port"],
    ),
    "conf not of Spark": (
        member("spark: {conf: {driver.memory: 1g}}"),
        ["3:41: members.oslo.spark.conf.driver.memory: a setting of Spark begins with spark."],
    ),
    "conf says master": (
        member("spark: {conf: {spark.master: yarn}}"),
        ["3:41: members.oslo.spark.conf.spark.master: say it with spark.master of the member"],
    ),
    "conf a mapping": (
        member("spark: {conf: {spark.x: {a: 1}}}"),
        ["3:50: members.oslo.spark.conf.spark.x: expected text, not a mapping"],
    ),
    "conf of retries": (
        member("spark: {conf: {spark.task.maxFailures: 4}}"),
        [
            "3:41: members.oslo.spark.conf.spark.task.maxFailures: "
            "an embedded Spark runs each task once, or rows would be delivered twice"
        ],
    ),
}


@pytest.mark.parametrize("case", MISTAKES)
def test_a_mistake_is_told_with_its_place(case: str, tmp_path: Path) -> None:
    text, expected = MISTAKES[case]
    assert told(text, tmp_path) == [f"skerry.yaml:{line}" for line in expected]


ADDRESSES = {
    "": "an empty text is not an address; write host:port",
    "[h]": "[h] is not an address; [h] is not a host",
    ":7101": ":7101 is not an address; write host:port",
    "h:0": "h:0 is not an address; the port must be 1 to 65535",
    "h:65536": "h:65536 is not an address; the port must be 1 to 65535",
    "h:x": "h:x is not an address; the port must be 1 to 65535",
    "127.0.0.256:1": "127.0.0.256:1 is not an address; 127.0.0.256 is not a host",
    "tcp://h:1": "tcp://h:1 is not an address; tcp://h is not a host",
    "a b:1": "a b:1 is not an address; a b is not a host",
    "::1:7101": "::1:7101 is not an address; write [::1]:7101",
    "[h]:1": "[h]:1 is not an address; [h] is not a host",
    "0.0.0.0:7101": "0.0.0.0:7101 is not an address that other members can reach",
}


@pytest.mark.parametrize("address", ADDRESSES)
def test_bad_addresses(address: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(f"cluster: c\nmembers: {{oslo: {{address: '{address}'}}}}")
    assert caught.value.message == f"skerry.yaml:2:27: members.oslo.address: {ADDRESSES[address]}"


@pytest.mark.parametrize(
    "key",
    [
        "spark.sql.session.timeZone",
        "spark.sql.ansi.enabled",
        "spark.sql.ANSI.enabled",
        "spark.sql.variable.substitute",
        "spark.sql.legacy.timeParserPolicy",
        "spark.sql.files.ignoreMissingFiles",
        "spark.sql.caseSensitive",
        "spark.sql.extensions",
        "spark.sql.restrictedMode.enabled",
    ],
)
def test_settings_that_change_answers_are_refused(key: str) -> None:
    with pytest.raises(ConfigError, match="Skerry sets this itself") as caught:
        parse(member(f"spark: {{conf: {{{key}: x}}}}"))
    assert caught.value.message.startswith(f"skerry.yaml:3:41: members.oslo.spark.conf.{key}: ")


def test_all_mistakes_are_told_in_the_order_of_the_file() -> None:
    text = """\
clutser: nordic
members:
  oslo:
    address: 127.0.0.1:x
    capacity: 0
  bergen:
    adress: 127.0.0.1:7102
links:
  - {from: oslo, to: bergen, mbit: -1}
limits: {page_rows: 0}
"""
    with pytest.raises(ConfigError) as caught:
        parse(text)
    lines = caught.value.message.split("\n")
    assert [re.sub(r"^skerry.yaml:(\d+):.*?: (\S+): .*", r"\1 \2", line) for line in lines] == [
        "1 cluster",
        "1 clutser",
        "4 members.oslo.address",
        "5 members.oslo.capacity",
        "6 members.bergen.address",
        "7 members.bergen.adress",
        "9 links[0].mbit",
        "10 limits.page_rows",
    ]
