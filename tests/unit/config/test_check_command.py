"""`skerry check` on real files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from skerry.cli.check import check, checked, remarks
from skerry.config import load
from skerry.member.boot import run_member
from skerry.model.errors import ConfigError
from tests.unit.wire.certificates import files_of, needs_openssl

TEXT = """\
cluster: nordic
data_root: data
members:
  oslo: {address: '[::1]:1', tables: {orders: {format: parquet, path: oslo}, raw: {format: csv, path: 'raw/*.csv'}}}
  bergen: {address: '[::1]:2', tables: {orders: {format: parquet, path: bergen/orders.parquet}}}
links:
  - {from: oslo, to: bergen, mbit: 1}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    for name in ("oslo/a.parquet", "bergen/orders.parquet"):
        write(tmp_path, name, pa.int64())
    (tmp_path / "data" / "raw").mkdir()
    (tmp_path / "data" / "raw" / "a.csv").write_text("1")
    (tmp_path / "skerry.yaml").write_text(TEXT)
    return tmp_path / "skerry.yaml"


def write(base: Path, name: str, kind: pa.DataType) -> None:
    (base / "data" / name).parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"k": pa.array([1], kind)}), base / "data" / name)


def run(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(check, [str(each) for each in arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit)
    return result.exit_code, result.output


def test_ok(file: Path) -> None:
    assert run(file) == (0, f"{file}: ok: cluster nordic, 2 members, 2 tables, 1 link\n")


def test_rules_are_checked_against_the_columns_of_the_files(file: Path) -> None:
    rules = file.parent / "rules.yaml"
    file.write_text(f"{TEXT}access: {{rules: rules.yaml}}\n")
    rules.write_text("roles: {a: [{on: orders, select: [k], where: 'k > 1'}]}\n")
    assert run(file)[0] == 0
    rules.write_text("roles: {a: [{on: orders, select: [kk], where: 'kkk > 1'}]}\n")
    assert run(file) == (
        1,
        f"{rules}:1:35: roles.a[0].select[0]: no column kk; did you mean k?\n"
        f"{rules}:1:47: roles.a[0].where: the table has no column kkk (line 1, column 1)\n",
    )
    assert run(file, "--no-files")[0] == 0
    rules.unlink()
    status, output = run(file)
    assert status == 1
    assert output.startswith(f"{file}:")
    assert output.endswith(f": access.rules: {rules}: cannot be read: no such file or directory\n")


def test_mistakes_of_the_file_and_of_its_rules_are_told_together(file: Path) -> None:
    rules = file.parent / "rules.yaml"
    file.write_text(f"{TEXT}access: {{users: users, rules: rules.yaml}}\n")
    rules.write_text("roles: {a: [{on: ordrs, select: true}]}\n")
    status, output = run(file)
    assert status == 1
    told = output.splitlines()
    assert len(told) == 2
    assert "access.users: " in told[0]
    assert told[1].endswith("roles.a[0].on: no table ordrs; did you mean orders?")


def test_the_default_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(file.parent)
    assert run() == (0, "skerry.yaml: ok: cluster nordic, 2 members, 2 tables, 1 link\n")


def test_missing_files_are_mistakes(file: Path) -> None:
    (file.parent / "data" / "raw" / "a.csv").unlink()
    (file.parent / "data" / "bergen" / "orders.parquet").unlink()
    raw = f"{file}:4:103: members.oslo.tables.raw.path: no file under data/raw/*.csv\n"
    orders = f"{file}:5:73: members.bergen.tables.orders.path: no file under data/bergen/orders.parquet\n"
    assert run(file) == (1, raw + orders)
    assert run(file, "--member", "Oslo") == (1, raw)
    assert run(file, "--no-files")[0] == 0


def test_other_columns_in_the_files_are_a_mistake(file: Path) -> None:
    write(file.parent, "bergen/orders.parquet", pa.int32())
    text = "members.bergen.tables.orders.path: not the columns that oslo has: k is int here and bigint there"
    assert run(file) == (1, f"{file}:5:73: {text}\n")


def test_a_file_that_is_not_parquet_is_a_mistake(file: Path) -> None:
    (file.parent / "data" / "oslo" / "a.parquet").write_text("nonsense, not Parquet")
    code, output = run(file)
    assert code == 1
    assert output.startswith(f"{file}:4:71: members.oslo.tables.orders.path: file a.parquet is not Parquet: ")


def test_files_of_one_table_with_different_columns_are_a_mistake(file: Path) -> None:
    write(file.parent, "oslo/b.parquet", pa.float64())
    text = "k is bigint in a.parquet and double in b.parquet; write one of them anew"
    assert run(file) == (1, f"{file}:4:71: members.oslo.tables.orders.path: {text}\n")


def test_headers_of_one_table_that_differ_are_a_mistake(file: Path) -> None:
    file.write_text(TEXT.replace("'raw/*.csv'", "'raw/*.csv', options: {header: true}"))
    (file.parent / "data" / "raw" / "b.csv").write_text("2")
    code, output = run(file)
    assert code == 1
    assert output.startswith(f"{file}:4:103: members.oslo.tables.raw.path: column 1 of b.csv has another name than ")


def test_columns_that_an_option_merges_are_not_compared(file: Path) -> None:
    pq.write_table(pa.table({"k": [1], "more": [1]}), file.parent / "data" / "oslo" / "b.parquet")
    code, output = run(file)
    assert code == 1
    assert "more is a column of b.parquet and not of a.parquet" in output
    file.write_text(TEXT.replace("path: oslo}", "path: oslo, options: {mergeSchema: true}}"))
    assert run(file)[0] == 0


def test_directories_that_name_values_are_a_mistake_with_sail(file: Path) -> None:
    write(file.parent, "oslo/day=2/a.parquet", pa.int64())
    (file.parent / "data" / "oslo" / "a.parquet").unlink()
    file.write_text(TEXT.replace("'[::1]:1'", "'[::1]:1', spark: {sail: true}"))
    text = "Sail makes no columns of directories such as day=2; use Apache Spark at this member"
    code, output = run(file)
    assert code == 1
    assert f"{file}:4:92: members.oslo.tables.orders.path: {text}" in output.splitlines()


def test_mistakes_in_the_file(file: Path) -> None:
    file.write_text(TEXT.replace("mbit: 1", "mbit: fast").replace("cluster", "clutser"))
    code, output = run(file)
    assert code == 1
    assert output.splitlines() == [
        f"{file}:1:1: cluster: missing",
        f"{file}:1:1: clutser: unknown key; did you mean cluster?",
        f"{file}:7:36: links[0].mbit: expected a number, not fast",
    ]


def test_no_such_file_and_no_such_member(file: Path) -> None:
    nowhere = file.parent / "nowhere.yaml"
    assert run(nowhere) == (1, f"{nowhere}: cannot be read: no such file or directory\n")
    assert run(file, "--member", "osl") == (1, "no member osl in cluster nordic; did you mean oslo?\n")


def test_members_beyond_loopback_need_tls_or_a_word(file: Path) -> None:
    file.write_text(TEXT.replace("[::1]:2", "10.0.0.2:2"))
    code, output = run(file, "--no-files")
    assert code == 1
    assert output.startswith(f"{file}:5:21: members.bergen.address: beyond loopback without TLS; give it tls: ")
    assert "insecure: true" in output
    file.write_text(TEXT.replace("[::1]:2", "10.0.0.2:2") + "insecure: true\n")
    assert run(file)[0] == 0


def test_certificates_that_cannot_be_used_are_mistakes(file: Path) -> None:
    (file.parent / "ca.pem").write_text("no certificate")
    file.write_text(TEXT + "tls: {certificate: c.pem, key: k.pem, authority: ca.pem}\n")
    code, output = run(file)
    assert code == 1
    assert output.splitlines()[0].startswith(f"{file}:4:9: members.oslo.tls: {file.parent}/ca.pem: not usable as PEM")
    assert run(file, "--no-files")[0] == 0


@needs_openssl
def test_a_key_that_others_may_read_is_no_key(file: Path) -> None:
    files = files_of("oslo")
    key = file.parent / "oslo.key"
    key.write_bytes(Path(files.key).read_bytes())
    key.chmod(0o644)
    text = TEXT + f"tls: {{certificate: {files.certificate}, key: {key}, authority: {files.authority}}}\n"
    file.write_text(text)
    code, output = run(file)
    assert code == 1
    assert f"members.oslo.tls: {key} is open to others (mode 644); chmod 600 {key}" in output
    with pytest.raises(ConfigError, match=r"oslo\.key is open to others"):
        run_member(load(file), "oslo")
    key.chmod(0o600)
    assert "open to others" not in run(file)[1]


@needs_openssl
def test_check_shows_each_certificate_to_the_other_members(file: Path) -> None:
    others = {"oslo": files_of("anna", mark=""), "bergen": files_of("bergen", usage="clientAuth")}
    text = TEXT
    for name, files in others.items():
        tls = f"tls: {{certificate: {files.certificate}, key: {files.key}, authority: {files.authority}}}"
        text = text.replace(f"  {name}: {{", f"  {name}: {{{tls}, ")
    file.write_text(text)
    output = run(file)[1]
    assert "members.oslo.tls: other members refuse it: the certificate, of anna, is no member's: it lacks" in output
    assert "members.bergen.tls: other members refuse it: certificate verify failed: unsuitable certificate" in output
    strange = files_of("oslo", signed_by="strangers")
    file.write_text(
        text.replace(others["oslo"].certificate, strange.certificate).replace(others["oslo"].key, strange.key)
    )
    assert "members.oslo.tls: other members refuse it: certificate verify failed: unable to get" in run(file)[1]


def test_a_state_file_that_others_may_write_is_a_mistake(file: Path) -> None:
    file.write_text(TEXT + "state: state\n")
    assert run(file)[0] == 0  # nothing is kept yet
    folder = file.parent / "state"
    folder.mkdir(mode=0o700)
    kept = folder / "_nordic.oslo.kept"
    kept.touch(mode=0o600)
    assert run(file)[0] == 0
    kept.chmod(0o666)
    code, output = run(file)
    assert code == 1
    expected = "what oslo keeps in _nordic.oslo.kept would not be believed: it may be written by others (chmod go-w)\n"
    assert output.endswith(expected)
    kept.chmod(0o600)
    folder.chmod(0o777)
    assert "its directory may be written by others" in run(file)[1]
    # The folder of tables of our own, as a member would find it.
    folder.chmod(0o700)
    (folder / "_nordic.oslo.tables" / "1").mkdir(parents=True)
    assert "tables.sqlite is missing, but files of tables are there" in run(file)[1]
    (folder / "_nordic.oslo.tables" / "tables.sqlite").write_text("no SQLite")
    assert "cannot be used: tables.sqlite is damaged" in run(file)[1]
    (folder / "_nordic.oslo.tables" / "tables.sqlite").write_bytes(b"SQLite format 3\0")
    assert run(file)[0] == 0


def test_an_audit_that_could_not_be_written_is_a_mistake(file: Path) -> None:
    file.write_text(TEXT + "audit: {path: audit}\n")
    assert run(file)[0] == 0  # it is made when a member starts
    (file.parent / "audit").mkdir(mode=0o700)
    assert run(file)[0] == 0
    (file.parent / "audit").chmod(0o777)
    code, output = run(file)
    assert code == 1
    assert "its directory may be written by others (chmod go-w)" in output


def test_sail_where_no_port_can_be_guarded_is_remarked(file: Path) -> None:
    file.write_text(TEXT.replace("oslo: {", "oslo: {spark: {sail: true, memory: 2 GiB}, "))
    config = checked(str(file), no_files=True)
    assert [member.spark.memory_bytes for member in config.members.values() if member.spark] == [2 << 30, 0]
    assert remarks(config, "linux") == []
    (remark,) = remarks(config, "darwin")
    assert remark.startswith("on this system (darwin) every user of the host reaches the port of Sail")
    assert remark.endswith("of the member: oslo")


def test_memory_is_sail_s_alone(file: Path) -> None:
    file.write_text(TEXT.replace("oslo: {", "oslo: {spark: {memory: 2 GiB}, "))
    assert "only Sail's process has a limit of its own" in run(file)[1]
    file.write_text(TEXT.replace("oslo: {", "oslo: {spark: {sail: true, memory: 1 MiB}, "))
    assert "must be at least 268435456" in run(file)[1]


def test_views_jars_secrets_and_logs_that_are_wrong(file: Path) -> None:
    """What a member would say at its start, or to the first query."""
    text = TEXT.replace(
        "data_root: data\n", "data_root: data\nviews: {a: SELECT * FROM b, b: SELECT * FROM a, c: DROP TABLE x}\n"
    )
    more = (
        "{address: '[::1]:1', spark: {jars: [delta-spark.jar]}, catalogs: {shop: {type: jdbc, "
        "secrets: {password: {file: shop.password}}}}, schemas: {bergen: {catalog: shop, namespace: web}}, "
    )
    file.write_text(text.replace("{address: '[::1]:1', ", more, 1))
    code, output = run(file)
    places = [line.partition(": ")[2].partition(": ") for line in output.splitlines() if line.startswith(str(file))]
    assert code == 1
    told = {place: what for place, _, what in places}
    assert told["members.oslo.schemas.bergen"] == "bergen is a member, and so a schema already"
    assert len(told) == 1  # the rest is looked at when the file itself is right
    file.write_text(file.read_text().replace("schemas: {bergen:", "schemas: {web:"))
    lake = (
        "{address: '[::1]:2', spark: {packages: ['io.delta:delta-spark_4.2_2.13:4.4.0']}, "
        "tables: {lake: {format: delta, path: lake}, "
    )
    file.write_text(file.read_text().replace("{address: '[::1]:2', tables: {", lake))
    code, output = run(file)
    assert code == 1
    for line in (
        "members.bergen.tables.lake.path: no Delta table at data/lake: it has no _delta_log",
        "views.a: view a reads itself",
        "views.b: view b reads itself",
        "views.c: a view is a query",
        f"members.oslo.spark.jars[0]: no file {file.parent / 'delta-spark.jar'}",
        f"members.oslo.catalogs.shop.secrets.password: {file.parent / 'shop.password'} cannot be read",
    ):
        assert line in output
