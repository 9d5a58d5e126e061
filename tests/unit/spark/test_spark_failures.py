"""Spark's exceptions as errors a user can read."""

from __future__ import annotations

import pytest
from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException, PythonException
from pyspark.errors.exceptions.connect import SparkConnectGrpcException

from skerry.model.errors import Overloaded, SiteError, SkerryError, SqlError
from skerry.model.trace import cause_of
from skerry.spark.failures import condition_of, first_words, is_lost, translate
from skerry.spark.session import ClassicEngine
from skerry.spark.settings import SparkSettings

DIVISION = (
    "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead. "
    'If necessary set "spark.sql.ansi.enabled" to "false" to bypass this error. SQLSTATE: 22012\n'
    "== SQL (line 1, position 8) ==\nselect 1/0\n       ^^^\n"
)
ABORTED = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 1 times, most recent failure: Lost task 0.0 in stage "
    "3.0 (TID 9) (localhost executor driver): org.apache.spark.SparkArithmeticException: " + DIVISION + "\n\tat org.x.y"
)
WORKER = """An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "sink.py", line 58, in hand_over
    for batch in batches:
{raised}
"""


@pytest.mark.parametrize("text", [DIVISION, ABORTED])
def test_a_wrong_value_is_the_statement_s_fault_wherever_it_was_met(text: str) -> None:
    error = translate(PySparkException(text), {})
    assert type(error) is SqlError
    assert error.message == (
        "[DIVIDE_BY_ZERO] Division by zero. Use `try_divide` to tolerate divisor being 0 and return NULL instead."
    )


LOOKS_LIKE_ONE = "Cannot cast string '[ACME] 12' to value of Int32 type"
QUOTED = "[X_Y] The value '[ACME] 12' is wrong. SQLSTATE: 42000\n== SQL ==\nselect '[ACME] 12'"
CALLED = "An error occurred while calling o12.count.\n: org.apache.spark.SparkException: "
LOST = ABORTED.partition("[")[0]
OF_CONNECT = "(org.apache.spark.SparkException) [JOIN_TOO_DEEP] Too deep. SQLSTATE: 54000"


@pytest.mark.parametrize(
    ("error", "condition", "message"),
    [
        (SparkConnectGrpcException(LOOKS_LIKE_ONE), "", LOOKS_LIKE_ONE),  # Sail
        (AnalysisException(LOOKS_LIKE_ONE), "", LOOKS_LIKE_ONE),
        (Py4JError(LOOKS_LIKE_ONE), "", LOOKS_LIKE_ONE),
        (SparkConnectGrpcException(OF_CONNECT), "JOIN_TOO_DEEP", "[JOIN_TOO_DEEP] Too deep."),
        (
            SparkConnectGrpcException("No.", errorClass="TOO_DEEP", messageParameters={}),
            "TOO_DEEP",
            "Spark failed: No.",
        ),
        (AnalysisException("\n[PARSE_ERROR] Wrong. SQLSTATE: 42601"), "PARSE_ERROR", "[PARSE_ERROR] Wrong."),
        (AnalysisException(QUOTED), "X_Y", "[X_Y] The value '[ACME] 12' is wrong."),
        (PySparkException(f"Task failed: org.x.SparkException: {QUOTED}"), "", "[X_Y] The value '[ACME] 12' is wrong."),
        (Py4JError(CALLED + LOST + QUOTED), "X_Y", "[X_Y] The value '[ACME] 12' is wrong."),
        (PySparkException(LOST + QUOTED), "X_Y", "[X_Y] The value '[ACME] 12' is wrong."),
        (PySparkException(LOST + LOOKS_LIKE_ONE), "", LOOKS_LIKE_ONE),
    ],
)
def test_a_condition_is_spark_s_name_and_never_a_value(error: Exception, condition: str, message: str) -> None:
    assert condition_of(error) == condition
    assert translate(error, {}).message == message


def test_generated_names_become_the_user_s() -> None:
    text = "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `skerry_table_1`.`x` or `skerry_table_12` … SQLSTATE: 42703"
    error = translate(AnalysisException(text), {"skerry_table_1": "orders", "skerry_table_12": "lineitem"})
    assert type(error) is SqlError
    assert error.message == "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column `orders`.`x` or `lineitem` …"


def test_what_lies_below_a_user_s_view_is_in_no_error() -> None:
    text = "No field named x. Valid fields are skerry_table_3.id, skerry_table_3.region."
    error = translate(AnalysisException(text), {"skerry_table_4": "orders"})
    assert type(error) is SqlError
    assert "region" not in error.message


@pytest.mark.parametrize(
    "text",
    [
        "[FAILED_READ_FILE.FILE_NOT_EXIST] Error while reading file x. File does not exist. SQLSTATE: KD001",
        "[PATH_NOT_FOUND] Path does not exist: file:/data/x. SQLSTATE: 42K03",
        "Connection refused",
    ],
)
def test_files_and_connections_are_the_site_s_fault(text: str) -> None:
    assert type(translate(PySparkException(text), {})) is SiteError


def test_a_table_that_cannot_be_read_is_named() -> None:
    error = translate(AnalysisException("[X_Y] Bad. SQLSTATE: 42000"), {}, what="table orders")
    assert cause_of(error).may_quote  # a record may stand in Spark's words: none for the log
    assert type(error) is SiteError
    assert error.message == "table orders: [X_Y] Bad."


@pytest.mark.parametrize(
    ("raised", "kind", "message"),
    [
        ("skerry.model.errors.Overloaded: spool full", Overloaded, "spool full"),
        ("skerry.wire.frames.ConnectionLost: gone", SiteError, "a Spark task failed: gone"),
        ("RuntimeError: Execution error: Division by zero", SqlError, "Division by zero"),
        (
            "RuntimeError: Execution error: Month value '13' is out of range",
            SqlError,
            "Month value '13' is out of range",
        ),
        ("RuntimeError: Arrow error: Parquet error: EOF", SiteError, "a Spark task failed: Parquet error: EOF"),
        ("pyarrow.lib.ArrowInvalid: it does not fit", SiteError, "a Spark task failed: it does not fit"),
        ("ConnectionRefusedError: [Errno 111] refused", SiteError, "a Spark task failed: [Errno 111] refused"),
    ],
)
def test_what_a_python_worker_raised(raised: str, kind: type[SkerryError], message: str) -> None:
    error = translate(PythonException(WORKER.format(raised=raised)), {})
    assert type(error) is kind
    assert error.message == message


AWAITED = (
    "An error occurred while calling o169.getResult.\n: org.apache.spark.SparkException: "
    "Exception thrown in awaitResult: "
    "\n\tat org.apache.spark.util.SparkThreadUtils$.awaitResult(SparkThreadUtils.scala:53)\n"
)


@pytest.mark.parametrize(
    ("text", "engine", "message"),
    [
        (AWAITED + "Caused by: java.io.IOException: disk full\n\tat a.b\n\t... 12 more", "Spark", "disk full"),
        (AWAITED + "Caused by: org.x.AException: one\n\tat a\nCaused by: java.io.BError: two\n\tat b", "Spark", "two"),
        ("An error occurred while calling o1.x.\n: java.lang.IllegalStateException: no\n\tat a.b", "Spark", "no"),
        ("Internal error: odd.\nThis issue was likely caused by a bug in DataFusion's code. Please", "Sail", "odd."),
    ],
)
def test_a_failure_is_its_innermost_cause_in_one_sentence(text: str, engine: str, message: str) -> None:
    for error in (Py4JError(text), PySparkException(text)):
        found = translate(error, {}, engine=engine)
        assert type(found) is SiteError
        assert found.message.removeprefix(f"{engine} failed: ").removeprefix("Internal error: ") == message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Physical plan does not support logical expression InSubquery(InSubquery { expr: …", "this IN (SELECT …)"),
        ("null_aware anti join only supports single column join key, got 2 columns", "this NOT IN (SELECT …)"),
        ("null_aware anti join only supports single column join key, got 2 columns", "is correlated, or compares"),
        ("Correlated scalar subquery must be aggregated to return at most one row", "no aggregate of the rows"),
        ("unknown function: rank", "does not know the function rank in this place"),
        ('No field named t."#4". Valid fields are "#15", "#16".', "does not find a column here"),
    ],
)
def test_what_sail_cannot_run_is_said_in_a_user_s_words(text: str, said: str) -> None:
    for error in (SparkConnectGrpcException(text), PythonException(WORKER.format(raised=f"RuntimeError: {text}"))):
        found = translate(error, {}, engine="Sail")
        assert type(found) is SqlError
        assert said in found.message
        assert found.suggestion
        assert "#" not in found.message


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("java.util.regex.PatternSyntaxException: Unclosed character class near index 1\n[a\n ^", "Unclosed character"),
        ("java.lang.IllegalArgumentException: Illegal sequence boundaries: 1 to 9 by 0", "Illegal sequence boundaries"),
        (
            "java.util.IllegalFormatConversionException: d != org.apache.spark.unsafe.types.UTF8String",
            "%d of a format does not take a value of this type (UTF8String)",
        ),
        ("org.x.SparkRuntimeException: [USER_RAISED_EXCEPTION] mine SQLSTATE: P0001", "[USER_RAISED_EXCEPTION] mine"),
        ("org.x.SparkException: [FAILED_FUNCTION_CALL] Failed. SQLSTATE: 38000", "[FAILED_FUNCTION_CALL] Failed."),
    ],
)
def test_what_a_function_is_given_is_the_statement_s_fault(text: str, message: str) -> None:
    for error in (
        PySparkException(LOST.rpartition("org.")[0] + text),
        Py4JError(AWAITED + f"Caused by: {text}\n\tat a"),
    ):
        found = translate(error, {})
        assert type(found) is SqlError
        assert found.message.startswith(message)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("'events.#0 < Int32(0)' is not true!", "'a column < 0' is not true!"),
        ('ambiguous attribute: ObjectName([Identifier("t"), Identifier("id")])', "ambiguous attribute: t.id"),
        (
            'one value expected: [Column(Column { relation: Some(Bare { table: "e" }), name: "#2" })]',
            "one value expected",
        ),
        (
            "failed to call 'f' Compute error: Regular expression did not compile: Syntax(\n~~~~\n"
            "regex parse error: [a\n~~~~\n)",
            "Regular expression did not compile: regex parse error: [a",
        ),
        (
            'Unsupported CAST from Struct("id": Int64, metadata: {"SPARK::metadata::json": "{}"}) to Int32',
            'Unsupported CAST from Struct("id": Int64) to Int32',
        ),
        (
            'Execution("Invalid argument type: Utf8"), format string: "%d"',
            'Invalid argument type: Utf8, format string: "%d"',
        ),
        (
            "Internal error: Function 'f' failed to match any signature, errors: Error during planning: "
            "Function 'f' expects 1 arguments,Error during planning: Function 'f' expects 1 arguments",
            "Function 'f' expects 1 arguments",
        ),
        (
            "Date overflow: 1 + IntervalDayTime { days: 2, milliseconds: 0 }",
            "Date overflow: 1 + days: 2, milliseconds: 0",
        ),
        (
            "invalid argument: found EXACT at 250:255 expected '(', 'ON', or end",
            "Sail does not know what begins at EXACT",
        ),
        ("Table or view not found: skerry_recursive_0", "Sail does not know WITH RECURSIVE"),
    ],
)
def test_what_sail_shows_of_its_own_values_is_left_out(text: str, message: str) -> None:
    assert translate(AnalysisException(text), {}, engine="Sail").message == message
    raised = f"RuntimeError: Execution error: {' '.join(text.split())}"
    assert translate(PythonException(WORKER.format(raised=raised)), {}, engine="Sail").message == message


def test_what_sail_finds_while_it_plans_is_the_statement_s_fault() -> None:
    found = translate(SparkConnectGrpcException("Error during planning: no common type in LIKE"), {}, engine="Sail")
    assert (type(found), found.message) == (SqlError, "no common type in LIKE")


def test_memory_has_a_suggestion() -> None:
    error = translate(PySparkException("Job aborted: java.lang.OutOfMemoryError: Java heap space\n\tat a.b.c"), {})
    assert type(error) is SiteError
    assert "spark.driver.memory" in error.suggestion


def test_a_warm_up_of_a_spark_that_is_stopped_says_so_in_one_line(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level("INFO"):
        ClassicEngine(SparkSettings()).warm_up()
    (line,) = [record for record in caplog.records if record.name.startswith("skerry")]
    assert line.getMessage() == "warm-up ended early: this member's Spark is not running"
    assert line.exc_info is None
    failed = Py4JError("An error occurred while calling o1.getResult.\n\tat org.x.y\n\tat a.b.c")
    assert first_words(failed) == "An error occurred while calling o1.getResult."


def test_an_ordinary_failure_does_not_wait_for_an_engine_that_lives() -> None:
    said = "Exception thrown in awaitResult: Job aborted due to stage failure: [DIVIDE_BY_ZERO] Division by zero."
    assert not is_lost(PySparkException(said))
    assert is_lost(PySparkException("Lost task 0.0 in stage 0.0: java.lang.OutOfMemoryError: Java heap space"))
    assert is_lost(ConnectionResetError("Connection reset by peer"))
