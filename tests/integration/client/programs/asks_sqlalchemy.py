"""Asks a member through SQLAlchemy, 1.4 or 2.x, beside a sqlglot of another release; prints the answers."""

from __future__ import annotations

import json
import sys

import sqlalchemy
import sqlglot
from sqlalchemy import case, cast, func, inspect, select, text, types

engine = sqlalchemy.create_engine(sys.argv[1], pool_pre_ping=True)
inspector = inspect(engine)
few = sqlalchemy.Table("few", sqlalchemy.MetaData(), autoload_with=engine, schema="oslo")
kinds = sqlalchemy.Table("kinds", sqlalchemy.MetaData(), autoload_with=engine)
metadata = sqlalchemy.MetaData()
metadata.reflect(engine)
try:
    inspector.get_columns("none")
except sqlalchemy.exc.NoSuchTableError as error:
    missing = str(error)
with engine.connect() as connection:
    page = select(few.c.id).order_by(few.c.id.desc()).limit(3).offset(2)
    among = select(few.c.id).where(few.c.id.in_([3, 1, 200])).order_by(few.c.id)
    casts = select(cast(few.c.id, types.String), cast("12", types.Integer), cast("1.5", types.Float))
    levels = select(case((few.c.id > 50, "high"), else_="low"), func.count()).group_by(text("1")).order_by(text("1"))
    answers = {
        "sqlalchemy": sqlalchemy.__version__,
        "sqlglot": sqlglot.__version__,
        "parsed": sqlglot.parse_one("SELECT a FROM b").sql(),
        "schemas": inspector.get_schema_names(),
        "tables": inspector.get_table_names(),
        "at_bergen": inspector.get_table_names("bergen"),
        "has": [inspector.has_table("FEW"), inspector.has_table("none"), inspector.has_table("kinds", "bergen")],
        "missing": missing,
        "reflected": sorted(metadata.tables),
        "columns": {column.name: repr(column.type) for column in kinds.columns},
        "keys": [len(kinds.primary_key.columns), inspector.get_indexes("few"), inspector.get_foreign_keys("few")],
        "row": repr(tuple(connection.execute(select(kinds).where(kinds.c.bigint.is_not(None))).one())),
        "page": connection.scalars(page).all(),
        "among": connection.scalars(among).all(),
        "text": connection.scalar(text("SELECT name FROM oslo.few WHERE id = :id"), {"id": 5}),
        "casts": list(connection.execute(casts.where(few.c.id == 4)).one()),
        "levels": [list(row) for row in connection.execute(levels)],
        "default_schema": engine.dialect.default_schema_name,
    }
    try:
        connection.execute(text("SELECT nothing FROM few"))
    except sqlalchemy.exc.ProgrammingError as error:
        answers["refused"] = str(error.orig)
with engine.connect() as connection:
    answers["after"] = connection.scalar(text("SELECT max(id) FROM few"))
engine.dispose()
print(json.dumps(answers))
