"""Statements that are no queries: SHOW, DESCRIBE, USE, ANALYZE TABLE; for DROP TEMPORARY VARIABLE see declare.py."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot.tokens import Token, TokenType

from skerry.model.limits import PATTERN_CHOICES
from skerry.model.names import Catalog, TableRef, unknown_table
from skerry.model.nearest import did_you_mean
from skerry.model.position import sql_error
from skerry.sql.patterns import choices_of

_SCHEMAS = ("SCHEMAS", "DATABASES", "NAMESPACES")
_SCHEMA = ("SCHEMA", "DATABASE", "NAMESPACE")
_IN = ("IN", "FROM")


@dataclass(frozen=True)
class ShowSchemas:
    """`pattern` is SQL's LIKE of Spark's SHOW: `*` for any text, `|` for or; None for all."""

    pattern: str | None


@dataclass(frozen=True)
class ShowTables:
    """Tables of one schema, or all; `pattern` as in ShowSchemas."""

    pattern: str | None
    schema: str | None = None


@dataclass(frozen=True)
class ShowColumns:
    ref: TableRef


@dataclass(frozen=True)
class UseSchema:
    """`default` is no member: with it names mean whole tables again."""

    schema: str


@dataclass(frozen=True)
class DescribeTable:
    ref: TableRef
    is_extended: bool = False


@dataclass(frozen=True)
class AnalyzeTable:
    """`columns` as the table spells them; all of them when empty."""

    ref: TableRef
    columns: tuple[str, ...]


@dataclass(frozen=True)
class DropVariable:
    """`name` None: there is none, and IF EXISTS says that this is right."""

    name: str | None


Command = ShowSchemas | ShowTables | ShowColumns | UseSchema | DescribeTable | AnalyzeTable | DropVariable


def read_command(tokens: list[Token], text: str, catalog: Catalog) -> Command | None:
    """None when these tokens begin no command."""
    match words_of(tokens[:2]):
        case ["SHOW", kind] if kind in _SCHEMAS:
            return ShowSchemas(_pattern(tokens[2:], text, f"SHOW {kind}"))
        case ["SHOW", "TABLES"]:
            return _show_tables(tokens[2:], text)
        case ["SHOW", "COLUMNS"]:
            return _show_columns(tokens[2:], text, catalog)
        case ["SHOW", *kinds]:
            shown = " ".join(["SHOW", *kinds]).strip()[:40]
            message = (
                f"{shown} is not admitted: write SHOW SCHEMAS, SHOW TABLES [IN schema], SHOW COLUMNS IN table, "
                "SHOW CREATE TABLE table or SHOW TABLE STATUS"
            )
            raise sql_error(message, text, tokens[0].start, tokens[:2][-1].end)
        case ["USE", kind] if kind in _SCHEMA and len(tokens) > 2:
            return UseSchema(_schema(tokens[2:], text, "USE"))
        case ["USE", *_]:
            return UseSchema(_schema(tokens[1:], text, "USE"))
        case ["DESCRIBE" | "DESC", *_]:
            return _describe(tokens[1:], text, catalog)
        case ["ANALYZE", "TABLE"]:
            return _analyze(tokens[2:], text, catalog)
    return None


def words_of(tokens: list[Token]) -> list[str]:
    """Upper-case; what is in quotes is no word."""
    quoted = (TokenType.STRING, TokenType.IDENTIFIER)
    return [token.text.upper() if token.token_type not in quoted else "" for token in tokens]


def _pattern(rest: list[Token], text: str, statement: str) -> str | None:
    if rest and rest[0].token_type == TokenType.LIKE:
        rest = rest[1:]
        if not rest:
            raise sql_error(f"{statement} LIKE takes a 'pattern'", text, len(text.rstrip()))
    if not rest:
        return None
    if len(rest) > 1 or rest[0].token_type != TokenType.STRING:
        raise sql_error(f"{statement} takes [LIKE] 'pattern' only", text, rest[0].start, rest[-1].end)
    choices = len(choices_of(rest[0].text))
    if choices > PATTERN_CHOICES:
        message = f"the pattern has {choices} choices; at most {PATTERN_CHOICES} are admitted"
        raise sql_error(message, text, rest[0].start, rest[0].end)
    return rest[0].text


def _show_tables(rest: list[Token], text: str) -> ShowTables:
    schema = None
    if words_of(rest[:1]) in (["IN"], ["FROM"]):
        schema, rest = _schema(rest[1:2], text, "SHOW TABLES IN"), rest[2:]
        return ShowTables(_pattern(rest, text, f"SHOW TABLES IN {schema}"), schema)
    return ShowTables(_pattern(rest, text, "SHOW TABLES [IN schema]"))


def _show_columns(rest: list[Token], text: str, catalog: Catalog) -> ShowColumns:
    """`IN t`, `IN oslo.t`, or `IN t IN oslo` as Spark has it."""
    if words_of(rest[:1])[:1] not in (["IN"], ["FROM"]):
        raise sql_error("write SHOW COLUMNS IN table", text, rest[0].start if rest else len(text.rstrip()))
    rest = rest[1:]
    if len(rest) > 2 and words_of(rest[-2:-1])[0] in _IN:
        schema = _schema(rest[-1:], text, "SHOW COLUMNS IN table IN")
        if len(rest) != 3:
            raise sql_error("the schema is named twice", text, rest[0].start, rest[-1].end)
        return ShowColumns(_look_up((schema, rest[0].text), rest, text, catalog))
    return ShowColumns(_table(rest, text, catalog, "SHOW COLUMNS IN"))


def _schema(rest: list[Token], text: str, statement: str) -> str:
    if len(rest) != 1 or not _is_name(rest[0]):
        raise sql_error(f"{statement} takes one schema's name", text, rest[0].start if rest else len(text.rstrip()))
    return rest[0].text


def _describe(rest: list[Token], text: str, catalog: Catalog) -> DescribeTable:
    """A table may be called like a word of the statement: what a name must follow is a word only before one."""
    is_extended = False
    for words in (("TABLE",), ("EXTENDED", "FORMATTED")):
        if len(rest) > 1 and rest[1].token_type != TokenType.DOT and words_of(rest[:1])[0] in words:
            is_extended, rest = words != ("TABLE",), rest[1:]
    return DescribeTable(_table(rest, text, catalog, "DESCRIBE"), is_extended)


def _table(rest: list[Token], text: str, catalog: Catalog, statement: str) -> TableRef:
    """The table that these tokens, all of them, name."""
    dots = all(token.token_type == TokenType.DOT for token in rest[1::2])
    names = all(_is_name(token) for token in rest[::2])
    if not rest or not dots or not names or len(rest) % 2 == 0:
        raise sql_error(f"{statement} takes a table's name", text, rest[0].start if rest else len(text.rstrip()))
    return _look_up(tuple(token.text for token in rest[::2]), rest, text, catalog)


def _look_up(parts: tuple[str, ...], rest: list[Token], text: str, catalog: Catalog) -> TableRef:
    ref = catalog.lookup(parts)
    if ref is None:
        raise sql_error(unknown_table(parts, catalog.names()), text, rest[0].start, rest[-1].end)
    return ref


def _is_name(token: Token) -> bool:
    return token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)


def _analyze(rest: list[Token], text: str, catalog: Catalog) -> AnalyzeTable:
    """`name [COMPUTE STATISTICS] [FOR ALL COLUMNS | FOR COLUMNS a, b]`."""
    words = [token.text.upper() if token.token_type != TokenType.IDENTIFIER else "" for token in rest]
    end = len(rest)
    if "FOR" in words:
        end = words.index("FOR")
    asked = rest[end:]
    if words[max(0, end - 2) : end] == ["COMPUTE", "STATISTICS"]:
        end -= 2
    ref = _table(rest[:end], text, catalog, "ANALYZE TABLE")
    asked_words = words[len(rest) - len(asked) :]
    if not asked or asked_words == ["FOR", "ALL", "COLUMNS"]:
        return AnalyzeTable(ref, ())
    names, commas = asked[2::2], asked[3::2]
    is_list = len(names) == len(commas) + 1 and all(token.token_type == TokenType.COMMA for token in commas)
    if asked_words[:2] != ["FOR", "COLUMNS"] or not is_list:
        shown = "ANALYZE TABLE name [COMPUTE STATISTICS] [FOR ALL COLUMNS | FOR COLUMNS a, b, …]"
        raise sql_error(f"write {shown}", text, asked[0].start, asked[-1].end)
    spelled = {column.name.lower(): column.name for column in ref.columns}
    for token in names:
        if token.text.lower() not in spelled:
            message = f"table {ref.name} has no column {token.text[:100]}{did_you_mean(token.text, spelled.values())}"
            raise sql_error(message, text, token.start, token.end)
    return AnalyzeTable(ref, tuple(dict.fromkeys(spelled[token.text.lower()] for token in names)))
