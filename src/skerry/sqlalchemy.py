"""SQLAlchemy dialect, for 1.4 and 2.x: `create_engine("skerry://host:port/schema")`, or `skerry+tls://…?authority=ca.pem`.

Schemas are members: `Table("orders", …)` is the table with all its parts, `schema="oslo"` the part at one member;
`schema="default"` is all parts again.
Each statement commits by itself, so commit and rollback do nothing; `isolation_level="SNAPSHOT"` gives transactions.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

from sqlalchemy import event, exc, pool
from sqlalchemy.engine import URL, Connection, Engine
from sqlalchemy.engine.default import DefaultDialect
from sqlalchemy.sql import compiler, sqltypes
from sqlalchemy.sql.compiler import GenericTypeCompiler, IdentifierPreparer, SQLCompiler
from sqlalchemy.types import TypeEngine, UserDefinedType

from skerry.model.names import DEFAULT_SCHEMA

if TYPE_CHECKING:  # 1.4 has no types of its own
    from sqlalchemy.engine.interfaces import ConnectArgsType, DBAPIConnection, ReflectedColumn

__all__ = ["Nested", "SkerryDialect"]

CONNECT_OPTIONS: dict[str, Callable[[str], Any]] = {
    "timeout_s": float,
    "fault_policy": str,
    "resume_s": float,
    "retry": str,
    "insecure": lambda text: text.lower() in ("true", "1", "yes"),
}
TLS_FILES = ("authority", "certificate", "key")

_DECIMAL = re.compile(r"decimal\((\d+),\s*(-?\d+)\)", re.IGNORECASE)


class Nested(UserDefinedType):  # type: ignore[type-arg]  # 1.4 takes none
    """An array, map or struct: values are lists and dicts. `spark_type` is Spark's text for it."""

    cache_ok = True

    def __init__(self, spark_type: str = "") -> None:
        self.spark_type = spark_type

    def get_col_spec(self, **_: Any) -> str:
        return self.spark_type


TYPES: dict[str, type[TypeEngine[Any]]] = {
    "boolean": sqltypes.BOOLEAN,
    "tinyint": sqltypes.SMALLINT,
    "smallint": sqltypes.SMALLINT,
    "int": sqltypes.INTEGER,
    "bigint": sqltypes.BIGINT,
    "float": sqltypes.REAL,
    "double": getattr(sqltypes, "DOUBLE", sqltypes.FLOAT),  # 1.4 has no other
    "string": sqltypes.String,
    "binary": sqltypes.LargeBinary,
    "date": sqltypes.DATE,
    "timestamp_ntz": sqltypes.DateTime,
    "void": sqltypes.NullType,
}


def type_of(text: str) -> TypeEngine[Any]:
    """SQLAlchemy's type for Spark's text of one."""
    if match := _DECIMAL.fullmatch(text):
        return sqltypes.DECIMAL(int(match[1]), int(match[2]))
    if text == "timestamp":
        return sqltypes.DateTime(timezone=True)
    if text.startswith(("array<", "map<", "struct<")):
        return Nested(text)
    return TYPES.get(text.partition("(")[0], sqltypes.NullType)()


def _reset(dbapi_connection: Any, _record: Any) -> None:
    """A connection goes back to its pool: USE must not reach whoever takes it next."""
    if dbapi_connection is not None:  # else it was invalidated
        dbapi_connection.reset()


class SkerryCompiler(SQLCompiler):
    """Spark's SQL, as the gate admits it."""

    def limit_clause(self, select: Any, **kw: Any) -> str:
        text = ""
        # Numbers in the text: the plan depends on them.
        if select._limit_clause is not None:
            text += "\n LIMIT " + self.process(select._limit_clause.render_literal_execute(), **kw)
        if select._offset_clause is not None:
            text += "\n OFFSET " + self.process(select._offset_clause.render_literal_execute(), **kw)
        return text

    def render_literal_value(self, value: Any, type_: Any, *arguments: Any) -> str:
        """SQLAlchemy doubles quotes, but a backslash escapes in Spark's strings: it could hide the closing quote."""
        if isinstance(value, bytes | bytearray | memoryview):
            return f"X'{bytes(value).hex()}'"
        return str(super().render_literal_value(value, type_, *arguments)).replace("\\", "\\\\")

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"{self.process(binary.left, **kw)} RLIKE {self.process(binary.right, **kw)}"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        return f"NOT ({self.visit_regexp_match_op_binary(binary, operator, **kw)})"


class SkerryTypes(GenericTypeCompiler):
    """Names of types in casts."""

    def visit_string(self, type_: Any, **kw: Any) -> str:
        return "STRING"

    visit_VARCHAR = visit_CHAR = visit_NVARCHAR = visit_TEXT = visit_CLOB = visit_text = visit_unicode = visit_string
    visit_unicode_text = visit_enum = visit_string

    def visit_large_binary(self, type_: Any, **kw: Any) -> str:
        return "BINARY"

    visit_BLOB = visit_BINARY = visit_VARBINARY = visit_large_binary

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "INT"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "DOUBLE"

    visit_DOUBLE_PRECISION = visit_DOUBLE = visit_double = visit_float = visit_FLOAT

    def visit_REAL(self, type_: Any, **kw: Any) -> str:
        return "FLOAT"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        precision, scale = type_.precision or 38, type_.scale or 0
        return f"DECIMAL({precision}, {scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_datetime(self, type_: Any, **kw: Any) -> str:
        return "TIMESTAMP" if getattr(type_, "timezone", False) else "TIMESTAMP_NTZ"

    visit_DATETIME = visit_TIMESTAMP = visit_datetime


class SkerryIdentifiers(IdentifierPreparer):
    # Words that Spark's ANSI mode keeps for itself are quoted, and what is not plain lower case.
    reserved_words = compiler.RESERVED_WORDS | {"anti", "cross", "except", "intersect", "lateral", "minus", "semi"}

    def __init__(self, dialect: Any) -> None:
        super().__init__(dialect, initial_quote="`", escape_quote="`")


class SkerryDialect(DefaultDialect):
    """Reads, and knows tables and columns; Skerry has no keys, indexes or transactions."""

    name = "skerry"
    driver = "skerry"
    default_paramstyle = "qmark"
    statement_compiler = SkerryCompiler
    type_compiler_cls = SkerryTypes
    type_compiler: Any = SkerryTypes  # 1.4's name for it, which 2.x takes as well
    preparer: type[IdentifierPreparer] = SkerryIdentifiers
    poolclass = pool.QueuePool

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_alter = False
    supports_default_values = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    supports_identity_columns = False
    requires_name_normalize = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        import skerry

        return skerry

    # 1.4's name for it; in 2.x an attribute of each dialect hides it.
    dbapi: Any = import_dbapi

    def create_connect_args(self, url: URL) -> ConnectArgsType:
        if not url.host:
            raise exc.ArgumentError("write skerry://host:port/schema")
        host = f"[{url.host}]" if ":" in url.host else url.host
        scheme = "skerry+tls" if url.drivername.endswith("+tls") else "skerry"
        unknown = set(url.query) - set(CONNECT_OPTIONS) - set(TLS_FILES)
        if unknown:
            raise exc.ArgumentError(f"a Skerry URL has no option {', '.join(sorted(unknown))}")
        given = {name: value for name, value in url.query.items() if isinstance(value, str)}
        try:
            options: dict[str, Any] = {
                name: read(given[name]) for name, read in CONNECT_OPTIONS.items() if name in given
            }
        except ValueError as error:
            raise exc.ArgumentError(f"an option of the Skerry URL is no number: {error}") from None
        files = {name: given[name] for name in TLS_FILES if name in given}
        if files:
            options["tls"] = files
        # Beside the URL: it may be shown, they may not.
        if url.username:
            options["user"] = url.username
        if url.password:
            options["password"] = str(url.password)
        place = host if url.port is None else f"{host}:{url.port}"
        return [f"{scheme}://{place}/{url.database or ''}"], options

    @classmethod
    def engine_created(cls, engine: Engine) -> None:
        event.listen(engine.pool, "checkin", _reset)

    # --- transactions, which there are with isolation_level="SNAPSHOT" -----------------------------
    def do_begin(self, dbapi_connection: Any) -> None:
        """Its first statement begins it."""

    def do_rollback(self, dbapi_connection: Any) -> None:
        if not dbapi_connection.autocommit or dbapi_connection.transaction:
            dbapi_connection.rollback()

    def do_commit(self, dbapi_connection: Any) -> None:
        dbapi_connection.commit()

    def do_ping(self, dbapi_connection: Any) -> bool:
        dbapi_connection.members()
        return True

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        return connection is not None and not connection.usable

    def get_isolation_level_values(self, dbapi_conn: Any) -> list[Any]:
        return ["AUTOCOMMIT", "SNAPSHOT"]

    def get_isolation_level(self, dbapi_connection: DBAPIConnection) -> Any:
        connection: Any = dbapi_connection
        return "AUTOCOMMIT" if connection.autocommit else "SNAPSHOT"

    def get_default_isolation_level(self, dbapi_conn: Any) -> Any:
        return "AUTOCOMMIT"

    def set_isolation_level(self, dbapi_connection: DBAPIConnection, level: Any) -> None:
        connection: Any = dbapi_connection
        connection.autocommit = level == "AUTOCOMMIT"

    # --- reflection --------------------------------------------------------------------------------
    def _get_server_version_info(self, connection: Connection) -> None:
        return None

    def _get_default_schema_name(self, connection: Connection) -> Any:
        pooled: Any = connection.connection
        # While 1.4 learns about a member, it holds our connection itself.
        return getattr(pooled, "dbapi_connection", pooled).schema_name or None

    def get_schema_names(self, connection: Connection, **_: Any) -> list[str]:
        """`default`, which is all tables with all their parts, and the members."""
        return sorted(connection.exec_driver_sql("SHOW SCHEMAS").scalars())

    def get_table_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        is_whole = schema in (None, DEFAULT_SCHEMA)
        return [name for name, members in self._tables(connection).items() if is_whole or schema in members]

    def get_view_names(self, connection: Connection, schema: str | None = None, **_: Any) -> list[str]:
        return []

    def has_table(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> bool:
        names = self.get_table_names(connection, schema)
        return table_name.lower() in {name.lower() for name in names}

    def get_columns(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[ReflectedColumn]:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(f"{schema}.{table_name}" if schema else table_name)
        quote = self.identifier_preparer.quote_identifier
        name = quote(table_name) if schema is None else f"{quote(schema)}.{quote(table_name)}"
        rows = connection.exec_driver_sql(f"DESCRIBE {name}")
        return [{"name": column, "type": type_of(kind), "nullable": True, "default": None} for column, kind in rows]

    def get_pk_constraint(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> Any:
        self._check_table(connection, table_name, schema)
        return {"constrained_columns": [], "name": None}

    def get_foreign_keys(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        self._check_table(connection, table_name, schema)
        return []

    def get_indexes(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> list[Any]:
        self._check_table(connection, table_name, schema)
        return []

    def get_unique_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        return []

    def get_check_constraints(
        self, connection: Connection, table_name: str, schema: str | None = None, **_: Any
    ) -> list[Any]:
        return []

    def get_table_comment(self, connection: Connection, table_name: str, schema: str | None = None, **_: Any) -> Any:
        return {"text": None}

    def _check_table(self, connection: Connection, table_name: str, schema: str | None) -> None:
        if not self.has_table(connection, table_name, schema):
            raise exc.NoSuchTableError(table_name)

    def _tables(self, connection: Connection) -> dict[str, Sequence[str]]:
        rows = connection.exec_driver_sql("SHOW TABLES").mappings()
        return {row["table"]: row["members"].split(", ") for row in rows}
