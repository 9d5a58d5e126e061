"""The SQLAlchemy dialect with members and Sail, and pandas on top of it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from skerry.testing.cluster import LocalCluster
from tests.integration.client.kinds import KINDS
from tests.integration.member.member_sites import FEW, TICKS

sqlalchemy = pytest.importorskip("sqlalchemy", reason="SQLAlchemy is not installed (skerry[sqlalchemy])")

from sqlalchemy import exc, types  # noqa: E402
from sqlalchemy.dialects import registry  # noqa: E402
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column  # noqa: E402

from skerry.sqlalchemy import Nested, SkerryDialect, type_of  # noqa: E402

pytestmark = pytest.mark.sail


@pytest.fixture(scope="module", autouse=True)
def dialect() -> None:
    """What the entry point says, also where the installed package is an older one."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    for name, place in project["entry-points"]["sqlalchemy.dialects"].items():
        registry.register(name, *place.split(":"))


@pytest.fixture
def engine(cluster: LocalCluster) -> Iterator[sqlalchemy.Engine]:
    engine = sqlalchemy.create_engine(f"skerry://{cluster.config.member('oslo').address}")
    yield engine
    engine.dispose()


def reflected(engine: sqlalchemy.Engine, name: str, schema: str | None = None) -> sqlalchemy.Table:
    return sqlalchemy.Table(name, sqlalchemy.MetaData(), autoload_with=engine, schema=schema)


def test_reflects_tables_and_columns(engine: sqlalchemy.Engine) -> None:
    inspector = sqlalchemy.inspect(engine)
    assert inspector.get_schema_names() == ["bergen", "default", "kiosk", "oslo", "tromso"]
    assert inspector.get_table_names() == inspector.get_table_names("default") == ["few", "kinds", "ticks"]
    assert inspector.get_table_names("bergen") == ["few", "ticks"]
    assert (inspector.has_table("FEW"), inspector.has_table("none"), inspector.has_table("kinds", "bergen")) == (
        True,
        False,
        False,
    )
    with pytest.raises(exc.NoSuchTableError):
        inspector.get_columns("none")
    kinds = reflected(engine, "kinds")
    expected = {
        "boolean": types.BOOLEAN,
        "int": types.INTEGER,
        "bigint": types.BIGINT,
        "double": types.DOUBLE,
        "decimal": types.DECIMAL,
        "string": types.String,
        "binary": types.LargeBinary,
        "date": types.DATE,
        "timestamp": types.DateTime,
    }
    assert {column.name: type(column.type) for column in kinds.columns} == expected
    assert (kinds.c.decimal.type.precision, kinds.c.decimal.type.scale) == (10, 2)
    assert kinds.c.timestamp.type.timezone
    assert not kinds.primary_key.columns
    metadata = sqlalchemy.MetaData()
    metadata.reflect(engine)
    assert set(metadata.tables) == {"few", "kinds", "ticks"}


def test_values_come_back_as_they_are(engine: sqlalchemy.Engine) -> None:
    kinds = reflected(engine, "kinds", "oslo")
    with engine.connect() as connection:
        row = connection.execute(sqlalchemy.select(kinds).where(kinds.c.bigint.is_not(None))).one()
        assert tuple(row) == tuple(values[0] for _, values in KINDS.values())
        for name, (_, values) in KINDS.items():
            found = connection.execute(sqlalchemy.select(kinds.c.bigint).where(kinds.c[name] == values[0])).all()
            assert found == [(2**40,)], name


def test_queries_that_sqlalchemy_writes(engine: sqlalchemy.Engine) -> None:
    few, ticks = reflected(engine, "few", "oslo"), reflected(engine, "ticks")
    select, func = sqlalchemy.select, sqlalchemy.func
    with engine.connect() as connection:
        assert connection.scalar(select(func.count()).select_from(ticks)) == 3 * TICKS
        page = select(few.c.id).order_by(few.c.id.desc()).limit(3).offset(2)
        assert connection.scalars(page).all() == [97, 96, 95]
        assert connection.scalars(select(few.c.id).where(few.c.id.in_([3, 1, 200])).order_by(few.c.id)).all() == [1, 3]
        joined = (
            select(ticks.c.kind, func.count().label("n"))
            .join(few, ticks.c.id == few.c.id)
            .group_by(ticks.c.kind)
            .having(func.count() > 14)
            .order_by(ticks.c.kind)
        )
        assert connection.execute(joined).all() == [(0, 15), (1, 15)]
        text = sqlalchemy.text("SELECT name FROM oslo.few WHERE id = :id AND name LIKE 'oslo%'")
        assert connection.scalar(text, {"id": 5}) == "oslo 5"
        cast = select(sqlalchemy.cast(few.c.id, types.String), sqlalchemy.cast("12", types.Integer)).where(
            few.c.id == 4
        )
        assert connection.execute(cast).one() == ("4", 12)
        case = select(sqlalchemy.case((few.c.id > 50, "high"), else_="low")).where(few.c.id.in_([1, 60]))
        assert sorted(connection.scalars(case)) == ["high", "low"]
        both = sqlalchemy.union_all(select(few.c.id).where(few.c.id < 2), select(few.c.id).where(few.c.id > 98))
        assert sorted(connection.scalars(both)) == [0, 1, 99]
        connection.commit()
        connection.rollback()


def test_a_schema_in_the_url_is_where_names_are_looked_up(cluster: LocalCluster) -> None:
    engine = sqlalchemy.create_engine(f"skerry://{cluster.config.member('oslo').address}/bergen?resume_s=5&retry=reads")
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT max(name) FROM few").scalar() == "bergen 99"
        assert connection.dialect.default_schema_name == "bergen"
        raw = connection.connection.dbapi_connection
        assert (raw.resume_s, raw.retry) == (5.0, "reads")  # type: ignore[union-attr]
        connection.exec_driver_sql("USE oslo")
        assert connection.exec_driver_sql("SELECT max(name) FROM few").scalar() == "oslo 99"
    with engine.connect() as connection:  # the same, taken again
        assert connection.connection.dbapi_connection is raw
        assert connection.exec_driver_sql("SELECT max(name) FROM few").scalar() == "bergen 99"
    engine.dispose()


def test_errors_are_wrapped_and_the_engine_goes_on(engine: sqlalchemy.Engine) -> None:
    with engine.connect() as connection, pytest.raises(exc.ProgrammingError, match="nothing"):
        connection.exec_driver_sql("SELECT nothing FROM few")
    with engine.connect() as connection, pytest.raises(exc.DBAPIError):
        connection.execute(sqlalchemy.text("DROP TABLE few"))
    with engine.connect() as connection:
        assert connection.exec_driver_sql("SELECT max(id) FROM few").scalar() == FEW - 1


def test_orm_reads(engine: sqlalchemy.Engine) -> None:
    class Base(DeclarativeBase):
        pass

    class Few(Base):
        __tablename__ = "few"
        __table_args__ = ({"schema": "oslo"},)
        id: Mapped[int] = mapped_column(primary_key=True)
        name: Mapped[str]

    with Session(engine) as session:
        found = session.scalars(sqlalchemy.select(Few).where(Few.id < 3).order_by(Few.id)).all()
        assert [(each.id, each.name) for each in found] == [(n, f"oslo {n}") for n in range(3)]
        assert session.get(Few, 7).name == "oslo 7"  # type: ignore[union-attr]


def test_pandas_read_sql(engine: sqlalchemy.Engine) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.read_sql("SELECT id, name FROM oslo.few WHERE id < ? ORDER BY id", engine, params=(3,))
    assert frame.to_dict("list") == {"id": [0, 1, 2], "name": ["oslo 0", "oslo 1", "oslo 2"]}
    whole = pandas.read_sql("few", engine, columns=["id"])
    assert len(whole) == 3 * FEW
    default = reflected(engine, "few", "default")
    assert len(pandas.read_sql(sqlalchemy.select(default.c.id), engine)) == 3 * FEW
    few = reflected(engine, "few", "tromso")
    parts = list(pandas.read_sql(sqlalchemy.select(few).order_by(few.c.id), engine, chunksize=40))
    assert [len(part) for part in parts] == [40, 40, 20]


def test_types_from_text() -> None:
    nested = type_of("array<struct<a:int>>")
    assert isinstance(nested, Nested)
    assert nested.get_col_spec() == "array<struct<a:int>>"
    assert isinstance(type_of("varchar(10)"), types.NullType | types.String)
    assert isinstance(type_of("something new"), types.NullType)


@pytest.mark.parametrize(
    ("url", "args"),
    [
        ("skerry://h:1/oslo", (["skerry://h:1/oslo"], {})),
        ("skerry://h/oslo", (["skerry://h/oslo"], {})),
        ("skerry://h:1?timeout_s=2", (["skerry://h:1/"], {"timeout_s": 2.0})),
        ("skerry+tls://h:1?authority=ca.pem", (["skerry+tls://h:1/"], {"tls": {"authority": "ca.pem"}})),
    ],
)
def test_urls(url: str, args: object) -> None:
    assert SkerryDialect().create_connect_args(sqlalchemy.make_url(url)) == args


@pytest.mark.parametrize("url", ["skerry:///oslo", "skerry://h:1?color=red", "skerry://h:1?resume_s=long"])
def test_wrong_urls(url: str) -> None:
    with pytest.raises(exc.ArgumentError):
        SkerryDialect().create_connect_args(sqlalchemy.make_url(url))
