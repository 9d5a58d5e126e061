"""The servers that ship inside pyspark, started beside Skerry's Spark with the same settings: what people use today."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyspark

from bench.frame import Options
from skerry.spark.jvm import LOG4J
from skerry.spark.settings import SparkSettings, embedded_conf

START_S = 120.0
STOP_S = 20.0

CONNECT_CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
THRIFT_CLASS = "org.apache.spark.sql.hive.thriftserver.HiveThriftServer2"


class Server:
    """A JVM of its own; `address` is host:port."""

    def __init__(self, address: str, process: subprocess.Popen[bytes]) -> None:
        self.address = address
        self.process = process


@contextmanager
def connect_server(options: Options) -> Iterator[Server]:
    """Spark Connect. Its address is for `SparkSession.builder.remote("sc://…")`."""
    port = _free_port()
    conf = {"spark.connect.grpc.binding.address": "127.0.0.1", "spark.connect.grpc.binding.port": str(port)}
    with _server(CONNECT_CLASS, options, port, conf) as server:
        yield server


@contextmanager
def thrift_server(options: Options) -> Iterator[Server]:
    """Spark's Thrift server without SASL, giving rows on while it still collects."""
    port = _free_port()
    conf = {
        "spark.sql.thriftServer.incrementalCollect": "true",
        "spark.hadoop.hive.server2.authentication": "NOSASL",
        "spark.hadoop.hive.server2.thrift.bind.host": "127.0.0.1",
        "spark.hadoop.hive.server2.thrift.port": str(port),
        # In memory: a metastore is all that it would keep, and nobody asks for one.
        "spark.hadoop.javax.jdo.option.ConnectionURL": "jdbc:derby:memory:metastore;create=true",
        "spark.hadoop.datanucleus.schema.autoCreateAll": "true",
        "spark.hadoop.hive.metastore.schema.verification": "false",
        "spark.sql.catalogImplementation": "hive",
    }
    with _server(THRIFT_CLASS, options, port, conf) as server:
        yield server


@contextmanager
def _server(main: str, options: Options, port: int, conf: Mapping[str, str]) -> Iterator[Server]:
    directory = tempfile.mkdtemp(prefix="skerry-bench-")
    log = Path(directory, "server.log")
    try:
        Path(directory, "log4j2.properties").write_text(LOG4J.format(directory=directory), encoding="utf-8")
        # As Skerry's own Spark has them: slots, partitions, time zone, heap. Only what is measured shall differ.
        settings = SparkSettings(conf={"spark.driver.memory": options.heap})
        home = Path(pyspark.__file__).parent
        command = [str(home / "bin" / "spark-submit"), "--class", main]
        for key, value in (embedded_conf(settings, directory) | dict(conf)).items():
            command += ["--conf", f"{key}={value}"]
        environment = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
        environment |= {
            "SPARK_HOME": str(home),
            "SPARK_CONF_DIR": directory,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "PYSPARK_PYTHON": sys.executable,
        }
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*command, "spark-internal"], cwd=directory, env=environment, stdout=output, stderr=output
            )
        try:
            _until_open(port, process, log)
            yield Server(f"127.0.0.1:{port}", process)
        finally:
            _end(process)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _until_open(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    give_up = time.monotonic() + START_S
    while time.monotonic() < give_up:
        if process.poll() is not None:
            break
        try:
            socket.create_connection(("127.0.0.1", port), 1.0).close()
            return
        except OSError:
            time.sleep(0.2)
    raise RuntimeError(f"the server did not start: {log.read_text(errors='replace')[-2000:]}")


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(STOP_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
        return port
