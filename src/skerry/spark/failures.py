"""Spark's exceptions as Skerry's errors: whose fault, one sentence, the error class, no Java."""

from __future__ import annotations

import re
from collections.abc import Mapping

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import AnalysisException, ParseException, PySparkException, PythonException
from pyspark.logger import PySparkLogger

from skerry.model.errors import BY_CODE, PeerError, SiteError, SkerryError, SqlError, quoting
from skerry.model.limits import MESSAGE_CHARS
from skerry.spark.views import PREFIX
from skerry.sql.bind import RECURSIVE

try:  # grpc comes with pyspark[connect] only
    from grpc import RpcError
except ImportError:

    class RpcError(Exception):  # type: ignore[no-redef]
        """Never raised without grpc."""


# What talking to a Spark can raise; the last ones when its process is gone.
SPARK_ERRORS = (PySparkException, Py4JError, RpcError, OSError, EOFError)

# Spark's words to the jobs of a JVM that may be about to end: a task of any of them ran out of memory. None of them
# stands in the errors of ordinary statements, which would wait for an end that does not come.
ENDING = re.compile("SparkContext was shut down|java.lang.OutOfMemoryError")

# [DIVIDE_BY_ZERO] Division by zero. Use … SQLSTATE: 22012. It stands where a message begins, an exception's or, after
# its class, that of one within: a value may look like it anywhere else.
CONDITION = re.compile(
    r"(?:\A|\A\([\w.$]+\)|(?:Exception|Error):)\s*"
    r"\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s+(.*?)(?:\s*SQLSTATE: (\w{5})|\n\n|$)",
    re.DOTALL,
)
# The same behind nothing but words that Spark, its client and Py4J put before an error: no value can stand there.
NAMED = re.compile(
    r"\s*(?:An error occurred while calling [\w.$]+\.\s*: [\w.$]+:)?"
    r"\s*(?:Job aborted due to stage failure: Task [\d.]+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\): [\w.$]+:)?"
    r"\s*(?:\([\w.$]+\))?\s*\[([A-Z][A-Z0-9_]+(?:\.[A-Z0-9_]+)*)\]\s"
)
# The last line of a Python worker's traceback: skerry.model.errors.PeerError: the member went away
RAISED = re.compile(r"^\s*([A-Za-z_][\w.]*(?:Error|Exception|Lost|Overloaded|Refused|Invalid)): (.+)$", re.MULTILINE)
# Classes of SQLSTATE that say that the statement or the values it met are wrong: cardinality, data, constraint,
# syntax and names, limits of the language; 0A is a feature that Spark does not have; 38 a function that failed, and
# P0 is raise_error.
STATEMENT_STATES = ("0A", "21", "22", "23", "38", "42", "54", "P0")
# Conditions with such a state that are nonetheless the site's: files that are gone, or not what they should be.
SITE_CONDITIONS = ("PATH_NOT_FOUND", "UNABLE_TO_INFER_SCHEMA", "FAILED_READ_FILE", "CANNOT_READ_FILE_FOOTER")
# Classes of pyspark whose fault is known even where a Spark (Sail) gives neither condition nor state.
STATEMENT_CLASSES = (
    *("ArithmeticException", "NumberFormatException", "DateTimeException", "ArrayIndexOutOfBoundsException"),
    *("ParseException", "AnalysisException"),
)
# The same for Sail's messages, which have no condition either, and for what Java's patterns and formats complain of.
STATEMENT_WORDS = re.compile(
    r"(?i)divi(sion|de) by zero|cast error|overflow|invalid argument|cannot cast|unsupported cast|parse error"
    r"|error during planning|parser error|timestamp out of range|not implemented for type|is not implemented"
    r"|illegal sequence boundaries|PatternSyntaxException|near index \d+|(Illegal|Unknown|Missing)Format\w*Exception"
)
# Java's words about a value that the %d of a format does not take.
_FORMAT = re.compile(r"\A(\w) != (?:[a-z]\w*\.)+(\w+)\Z")
# Words that engines put before a message, which say nothing of it: Py4J's, Spark's of a thread or task, Sail's layers.
_WRAPPED = re.compile(
    r"\A\s*(?:An error occurred while calling [\w.$]+\.\s*:?\s*|Exception thrown in awaitResult:?\s*"
    r"|Job aborted due to stage failure: Task [\d.]+ in stage [\d.]+ failed \d+ times?, most recent failure: "
    r"Lost task [\d.]+ in stage [\d.]+ \(TID \d+\) \([^()\n]*\):\s*"
    r"|(?:[a-z][\w$]*\.){2,}[\w.$]*(?:Exception|Error)(?::\s*|\s+)|(?:Execution|Arrow|External|DataFusion) error:\s*"
    r"|Error during planning:\s*)"
)
# A Java exception within another, and what it says.
_CAUSED = re.compile(r"^Caused by: [\w.$]+(?:Exception|Error): (.+)", re.MULTILINE)
# Sail's words about statements that it cannot run: the form, and why, in a user's words.
_IN_PLACE = "it is correlated and has a LIMIT, or it stands in a list"
_UNRUN = (
    (re.compile("does not support logical expression InSubquery"), "IN (SELECT …)", _IN_PLACE),
    (re.compile("does not support logical expression Exists"), "EXISTS (SELECT …)", _IN_PLACE),
    (
        re.compile("does not support logical expression ScalarSubquery|scalar subquery must be aggregated"),
        "subquery",
        "it is correlated, and no aggregate of the rows with equal keys",
    ),
    (
        re.compile("null_aware anti join only supports"),
        "NOT IN (SELECT …)",
        "it is correlated, or compares several columns",
    ),
    (
        re.compile("does not support logical expression"),
        "aggregate, window or generator",
        "it stands where it computes none, as in WHERE, ORDER BY or the argument of a generator",
    ),
    (re.compile("Aggregate function calls cannot be nested"), "aggregate", "another one is its argument"),
)
# How Sail shows its own values, and what they mean to a user.
_SHOWN = (
    (re.compile(r"failed to call '\w+' "), ""),
    (
        re.compile(
            r"(?:Internal error: )?Function '\w+' failed to match any signature, errors: Error during planning: "
            r"(.+?)(?:,Error during planning: .*)?\Z"
        ),
        r"\1",
    ),
    (re.compile(r"\b(?:Compute|Execution|Arrow|External) error: "), ""),
    (re.compile(r"\b(?:Syntax|CompiledTooBig)\( ~+ (.*) ~+ \)"), r"\1"),
    (re.compile(r'\b(?:Execution|Internal|Plan|NotImplemented)\("([^"]*)"\)'), r"\1"),
    (re.compile(r', metadata: \{"SPARK::[^{}]*(?:\{[^{}]*\})?[^{}]*\}'), ""),
    (re.compile(r":? \[?\w+\(\w+ \{ .* \}\)\]?"), ""),
    (re.compile(r"\b[A-Z]\w+ \{ ([^{}]*) \}"), r"\1"),
    (re.compile(r'\b(?:U?Int(?:8|16|32|64)|Float(?:32|64)|Boolean|Utf8)\("?([^()"]*)"?\)'), r"\1"),
    (re.compile(r"\b\w+\.#\d+\b"), "a column"),
    (re.compile(r'"\), Identifier\("'), "."),
    (re.compile(r'\bObjectName\(\[Identifier\("(.*?)"\)\]\)'), r"\1"),
)
# Sail's parser met a word of Spark's language that it does not know.
_UNREAD = re.compile(r"invalid argument: found (\S+) at \d+:\d+ expected ")
_LACKING = re.compile(r"\Aunknown function: (\w+)\Z")
# Columns are numbers inside Sail.
_UNFOUND = re.compile(r'No field named (?:\S*\.)?"#\d+"')
_BROKEN = re.compile("RST_STREAM")
# A view that the statement does not read is one below: a whole table, whose columns are not all the user's to know.
BELOW = re.compile(rf"\b{PREFIX}\d+\b")
_BELOW = "the engine refused the statement in words about columns that it does not read; write it in another way"


def translate(error: BaseException, names: Mapping[str, str], what: str = "", engine: str = "Spark") -> SkerryError:
    """The error to raise for one of Spark's. `names` maps generated names to those the user knows.

    `what` names a table when no statement is involved: then the fault is the site's. A record that is not as it should
    be stands in Spark's words all the same.
    """
    if isinstance(error, SkerryError):
        return error
    text = _text(error)
    if raised := _python_worker(error, text):
        return _from_worker(*raised, names, engine)
    if unrun := _unrun(text, engine):
        return unrun
    condition, sentence, state = _condition(error, text)
    message = _clean(_plain(f"[{condition}] {sentence}" if condition else sentence, engine), names)
    if what:
        unread = quoting(SiteError(f"{what}: {message}"))
        unread.condition = condition_of(error)
        return unread
    if _is_statements_fault(error, condition, state):
        return SqlError(message)
    if "OutOfMemoryError" in text:
        return SiteError(
            "Spark ran out of memory (java.lang.OutOfMemoryError)",
            suggestion="raise spark.driver.memory in the member's spark.conf",
        )
    return quoting(SiteError(f"{engine} failed: {message}"))


def _unrun(text: str, engine: str) -> SkerryError | None:
    """What Sail cannot run, it says in words about its own plans."""
    if engine == "Spark":
        return None
    for words, form, why in _UNRUN:
        if words.search(text):
            return SqlError(
                f"{engine} cannot run this {form}: {why}",
                suggestion="write it as a join or with a query in FROM, or use Apache Spark at this site",
            )
    if _UNFOUND.search(text):
        return SqlError(
            f"{engine} does not find a column here: one that is not grouped, or an aggregate that only ORDER BY has",
            suggestion="group by it, or list it",
        )
    if lacking := _LACKING.search(text):
        return SqlError(
            f"{engine} does not know the function {lacking[1]} in this place",
            suggestion="a window function needs OVER; for others use Apache Spark at this site",
        )
    unread = _UNREAD.search(text)
    if unread or RECURSIVE in text:
        form = f"what begins at {unread[1]}" if unread else "WITH RECURSIVE"
        return SqlError(f"{engine} does not know {form}", suggestion="use Apache Spark at this site")
    if _BROKEN.search(text):
        return SiteError(f"{engine} broke the statement off, by a fault of its own; its log says where")
    return None


def is_lost(error: BaseException) -> bool:
    """Whether the error says no more than that nobody answers, or soon will."""
    if isinstance(error, PySparkException):
        code = getattr(error, "getGrpcStatusCode", lambda: None)()
        return getattr(code, "name", "") in ("UNAVAILABLE", "UNKNOWN") or ENDING.search(_text(error)) is not None
    return not isinstance(error, SkerryError | Py4JJavaError) or ENDING.search(_text(error)) is not None


def condition_of(error: BaseException) -> str:
    """Spark's name for what went wrong, e.g. DIVIDE_BY_ZERO; "" if it gave none. Never a word of a statement or row."""
    said = NAMED.match(_text(error))
    return _given(error) or (said[1] if said else "")


def silence_spark() -> None:
    """PySpark would write every failed statement, with its trace, to standard error by itself."""
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).disabled = True


def first_words(error: BaseException) -> str:
    """What went wrong, for a log that needs no more."""
    return _clean(_sentences(_text(error)), {})


def _text(error: BaseException) -> str:
    if isinstance(error, RpcError) or type(error).__name__ == "SparkConnectGrpcException":
        details = re.search(r'details = "(.*?)"\n', str(error), re.DOTALL)
        return details[1] if details else str(error)
    if isinstance(error, PySparkException):
        # str() of a captured exception appends the JVM's trace; the message alone does not.
        return str(error.getMessage() or error).removeprefix("[None] ")  # PySpark writes it where it has no condition
    try:
        return str(error) or type(error).__name__
    except Exception:  # py4j asks the JVM for the text, which may be gone
        return f"Spark's process has ended ({type(error).__name__})"


def _condition(error: BaseException, text: str) -> tuple[str, str, str]:
    """Error class, first sentences, SQLSTATE. A failed task wraps the real error: the innermost text wins."""
    matches = [match for match in CONDITION.finditer(text) if match[1] != "SPARK_JOB_CANCELLED"]
    if matches:
        match = matches[-1]
        return match[1], _sentences(match[2]), match[3] or _state(error)
    return "", _sentences(text), _state(error)


def _given(error: BaseException) -> str:
    """The condition that comes apart from the text."""
    if not isinstance(error, PySparkException):
        return ""
    try:
        return error.getCondition() or ""
    except Exception:  # py4j asks the JVM for it, which may be gone
        return ""


def _state(error: BaseException) -> str:
    return (error.getSqlState() or "") if isinstance(error, PySparkException) else ""


def _sentences(text: str) -> str:
    """The first paragraph of the innermost cause, without advice to change settings that a user cannot change."""
    caused = _CAUSED.findall(text)
    text = (caused[-1] if caused else text).strip()
    text = text.partition("This issue was likely caused by a bug in DataFusion")[0]
    text = re.split(r"\n\s*\n|\n== |\n\s+at |\nDriver stacktrace|\nJVM stacktrace|;\n", text)[0]
    while (wrapped := _WRAPPED.match(text)) and text[wrapped.end() :].strip():
        text = text[wrapped.end() :]
    line = _FORMAT.sub(r"%\1 of a format does not take a value of this type (\2)", " ".join(text.split()))
    return re.sub(r" (If necessary set|To return NULL instead|You may set|Set) [^.]*spark\.sql\..*$", "", line)


def _plain(message: str, engine: str) -> str:
    """Without the way in which Sail's code shows its values."""
    for shown, meant in _SHOWN if engine != "Spark" else ():
        message = shown.sub(meant, message)
    return message


def _python_worker(error: BaseException, text: str) -> tuple[str, str] | None:
    """Class and message of what a Python worker raised; None when it was not one."""
    if not isinstance(error, PythonException) and "Traceback (most recent call last)" not in text:
        return None
    raised = RAISED.findall(text)
    return (str(raised[-1][0]), str(raised[-1][1])) if raised else ("", _sentences(text))


def _from_worker(kind: str, message: str, names: Mapping[str, str], engine: str) -> SkerryError:
    """An error of our own code keeps its class; Sail's errors also pass through the worker that pulls its rows."""
    if unrun := _unrun(message, engine):
        return unrun
    is_computed = message.startswith("Execution error") and "Parquet" not in message
    message = _clean(_plain(_sentences(message), engine), names)
    ours = next((ours for ours in BY_CODE.values() if ours.__name__ == kind.rpartition(".")[2]), None)
    if kind == "RuntimeError" and (is_computed or STATEMENT_WORDS.search(message)):
        return SqlError(message)
    if ours is None or issubclass(ours, PeerError):
        return quoting(SiteError(f"a {engine} task failed: {message}"))
    return quoting(ours(message))


def _is_statements_fault(error: BaseException, condition: str, state: str) -> bool:
    if condition.split(".")[0] in SITE_CONDITIONS:
        return False
    if state:
        return state.startswith(STATEMENT_STATES)
    if isinstance(error, AnalysisException | ParseException):
        return True
    return type(error).__name__ in STATEMENT_CLASSES or STATEMENT_WORDS.search(_text(error)) is not None


def _clean(message: str, names: Mapping[str, str]) -> str:
    if names:
        generated = "|".join(re.escape(name) for name in names)
        message = re.sub(rf"\b({generated})\b", lambda match: names[match[1]], message)
        if BELOW.search(message):
            return _BELOW
    return message if len(message) <= MESSAGE_CHARS else message[: MESSAGE_CHARS - 1] + "…"
