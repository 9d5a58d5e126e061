"""Starting and ending the JVM of an Apache Spark whose driver lives beside the member.

The JVM reads its stdin, a pipe that only the member holds: however the member ends, kill -9 included, the JVM
sees the end of the pipe and exits, its Python workers with it, and deletes its directory on the way.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import pyspark
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from skerry.model.errors import InternalError, SiteError
from skerry.spark.catalogs import one_at_a_time, unresolved

JAVA_RELEASE = 17
INSTALL_JAVA = (
    f"install Java {JAVA_RELEASE} or newer (Debian, Ubuntu: apt-get install openjdk-17-jre-headless) "
    "or set JAVA_HOME to one"
)
LOG_TAIL_CHARS = 2000
WORKER_DAEMON = "skerry_worker_daemon"
STOP_S = 10.0
# The exit status of a JVM that ran out of memory: its own, and Spark's where a task found out first.
OUT_OF_MEMORY_CODES = (3, 52)
REMOVED = "its cluster removed its application"
OUT_OF_MEMORY = "it ran out of memory: raise spark.driver.memory in the member's spark.conf"

# Spark's own log, bounded: a member runs for months.
LOG4J = """\
rootLogger.level = error
rootLogger.appenderRef.file.ref = file
appender.file.type = RollingFile
appender.file.name = file
appender.file.fileName = {directory}/spark.log
appender.file.filePattern = {directory}/spark.log.%i
appender.file.layout.type = PatternLayout
appender.file.layout.pattern = %d{{yyyy-MM-dd HH:mm:ss}} %p %c{{1}}: %m%n%ex{{5}}
appender.file.policies.type = Policies
appender.file.policies.size.type = SizeBasedTriggeringPolicy
appender.file.policies.size.size = 4MB
appender.file.strategy.type = DefaultRolloverStrategy
appender.file.strategy.max = 1
"""


class Jvm:
    """One JVM with a Spark session; a process has at most one, because Spark says so."""

    def __init__(
        self, conf: Mapping[str, str], directory: str, *, is_embedded: bool, secrets: Mapping[str, str] | None = None
    ) -> None:
        """`secrets`: settings as well, but nobody finds them on the JVM's command line."""
        if SparkContext._active_spark_context is not None:
            raise InternalError("this process has a Spark already: members of one process share its engine")
        check_java()
        self._directory = directory
        self._is_embedded = is_embedded
        self._is_stopping = False
        spark_conf = SparkConf(loadDefaults=False)
        for key, value in {**conf, **_java_options(conf, directory)}.items():
            spark_conf.set(key, value)
        with _environment(conf, directory, is_embedded):
            with one_at_a_time(conf):
                self._gateway = self._launch(spark_conf, conf)
            for key, value in (secrets or {}).items():
                spark_conf.set(key, value)
            try:
                self.context = SparkContext(conf=spark_conf, gateway=self._gateway)
                self.session = SparkSession(self.context)
            except Exception as error:
                said = str(error).splitlines()[0]  # py4j asks the JVM for it
                self._end_process()
                raise SiteError(f"Spark did not start: {said}") from error
        hooks = self._gateway.jvm.org.apache.spark.util.ShutdownHookManager
        hooks.registerShutdownDeleteDir(self._gateway.jvm.java.io.File(directory))

    @property
    def pid(self) -> int:
        pid: int = self._gateway.proc.pid
        return pid

    @property
    def is_alive(self) -> bool:
        return self._gateway.proc.poll() is None and not self._is_removed()

    def _is_removed(self) -> bool:
        """A cluster may end an application, e.g. when its executors died ten times in a row. Its JVM goes on."""
        if self._is_embedded:  # nobody but its member ends it, and asking costs each job a call
            return False
        try:
            return bool(self.context._jsc.sc().isStopped())
        except Exception:  # the JVM ends now, or its context never was
            return False

    def how_ended(self, wait_s: float) -> str:
        """Why it is no more; "" if it is alive after so long."""
        try:
            code = self._gateway.proc.wait(wait_s)
        except subprocess.TimeoutExpired:
            return REMOVED if self._is_removed() else ""
        return OUT_OF_MEMORY if code in OUT_OF_MEMORY_CODES else ending_of(code)

    def watch(self, on_end: Callable[[], None]) -> None:
        """Have this called, in a thread of its own, if the JVM ends before `stop`."""

        def wait() -> None:
            self._gateway.proc.wait()
            if not self._is_stopping:
                on_end()

        Thread(target=wait, name="skerry-jvm", daemon=True).start()

    def stop(self) -> None:
        self._is_stopping = True
        # The JVM may be gone already: then pyspark warns, and stops half-way.
        with warnings.catch_warnings(), suppress(Exception):
            warnings.simplefilter("ignore")
            self.session.stop()
        accumulators: Any = getattr(self.context, "_accumulatorServer", None)
        if accumulators is not None:
            accumulators.shutdown()
        SparkSession._instantiatedSession = None
        SparkSession._activeSession = None
        SparkContext._active_spark_context = None
        with suppress(Exception):
            self._gateway.shutdown()
        self._end_process()

    def _launch(self, conf: SparkConf, settings: Mapping[str, str]) -> Any:
        with open(os.path.join(self._directory, "jvm.log"), "wb") as log:
            try:
                return launch_gateway(conf, {"stdout": log, "stderr": log})
            except (PySparkException, OSError) as error:
                text = Path(log.name).read_text(errors="replace")
                if (missing := unresolved(text, settings)) is not None:
                    raise missing from None
                tail = text[-LOG_TAIL_CHARS:].strip()
                raise SiteError(f"Spark's JVM did not start: {tail or error}", suggestion=INSTALL_JAVA) from None

    def _end_process(self) -> None:
        # SparkContext keeps the gateway for the next session; that one shall start a JVM of its own.
        SparkContext._gateway = None
        SparkContext._jvm = None
        process: subprocess.Popen[bytes] = self._gateway.proc
        if process.stdin is not None:
            with suppress(OSError):
                process.stdin.close()
        try:
            process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def ending_of(code: int) -> str:
    """How a process ended, in words."""
    if code >= 0:
        return f"exit status {code}"
    with suppress(ValueError):
        return f"signal {-code}, {signal.Signals(-code).name}"
    return f"signal {-code}"


def new_directory() -> str:
    """Where Spark keeps its log, shuffle files and all else; gone when the JVM is."""
    directory = tempfile.mkdtemp(prefix="skerry-spark-")
    Path(directory, "log4j2.properties").write_text(LOG4J.format(directory=directory))
    return directory


def worker_conf(directory: str) -> dict[str, str]:
    """Python workers that can import this package, of a daemon whose end is not theirs (`worker_daemon.py`)."""
    shutil.copy(Path(__file__).with_name("worker_daemon.py"), Path(directory, f"{WORKER_DAEMON}.py"))
    return {
        "spark.executorEnv.PYTHONPATH": os.pathsep.join((package_root(), directory)),
        "spark.python.daemon.module": WORKER_DAEMON,
    }


def remove_directory(directory: str) -> None:
    shutil.rmtree(directory, ignore_errors=True)


def check_java() -> None:
    """A SiteError that says what to install, instead of a launcher's complaint."""
    home = os.environ.get("JAVA_HOME")
    java = os.path.join(home, "bin", "java") if home else shutil.which("java")
    if java is None:
        raise SiteError("Spark needs Java, and there is none on this machine", suggestion=INSTALL_JAVA)
    try:
        said = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=True).stderr
    except (OSError, subprocess.SubprocessError) as error:
        raise SiteError(f"Spark needs Java, but {java} does not run: {error}", suggestion=INSTALL_JAVA) from None
    release = _java_release(said)
    if release is not None and release < JAVA_RELEASE:
        raise SiteError(f"Spark needs Java {JAVA_RELEASE} or newer; {java} is {release}", suggestion=INSTALL_JAVA)


def _java_release(said: str) -> int | None:
    """`openjdk version "17.0.15"` gives 17, `java version "1.8.0_392"` gives 8."""
    parts = said.split('"')
    numbers = parts[1].replace("-", ".").split(".") if len(parts) > 1 else []
    with suppress(ValueError, IndexError):
        return int(numbers[1]) if numbers[0] == "1" else int(numbers[0])
    return None


def _java_options(conf: Mapping[str, str], directory: str) -> dict[str, str]:
    """A JVM without memory ends at once: Spark's own end of it comes seconds after the job's error, if at all.

    In UTC: what a driver of JDBC makes of a time passes the JVM's own zone, where some hours are missing or come twice.
    """
    key = "spark.driver.extraJavaOptions"
    # Hive's metastore in a Derby of its own would write its log to where the member was started.
    ours = (
        f"-Dderby.system.home={directory} -XX:+ExitOnOutOfMemoryError -Duser.timezone=UTC -Djava.io.tmpdir={directory}"
    )
    return {key: f"{conf.get(key, '')} {ours}".strip()}


def package_root() -> str:
    """The directory that has to be on a Python worker's path for `import skerry`."""
    return str(Path(__file__).resolve().parents[2])


@contextmanager
def _environment(conf: Mapping[str, str], directory: str, is_embedded: bool) -> Iterator[None]:
    """The environment Spark's launcher sees. Spark reads much from it, so a user's shell could change answers."""
    wanted: dict[str, str | None] = {
        "PYSPARK_SUBMIT_ARGS": None,
        "SPARK_REMOTE": None,
        # Without it an unactivated virtual environment would run the system's Python. On a cluster it may be elsewhere.
        "PYSPARK_PYTHON": sys.executable if is_embedded else _executors_python(conf),
    }
    if is_embedded:
        wanted |= {
            "SPARK_HOME": str(Path(pyspark.__file__).parent),
            "SPARK_CONF_DIR": directory,
            "SPARK_LOCAL_DIRS": None,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
    before = {name: os.environ.get(name) for name in wanted}
    _put(wanted)
    try:
        yield
    finally:
        _put(before)


def _executors_python(conf: Mapping[str, str]) -> str:
    """As spark-submit would choose it; it asks pyspark alone, which looks at the environment."""
    return conf.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON", sys.executable)


def _put(variables: Mapping[str, str | None]) -> None:
    for name, value in variables.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value
