"""What servers of the tests need and this machine may lack: fetched once to build/, or a reason why not."""

from __future__ import annotations

import fcntl
import functools
import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "servers"
# 686 MB of Amazon's SDK for all its services, of which S3 needs the two that stand below.
BUNDLE = "software.amazon.awssdk:bundle"
PACKAGES = (
    "org.postgresql:postgresql:42.7.7",
    "org.apache.hadoop:hadoop-aws:3.5.0",
    "software.amazon.awssdk:s3-transfer-manager:2.35.4",
    "software.amazon.awssdk:sts:2.35.4",
)
FETCH_S = 240
READY_S = 60


@contextmanager
def alone(name: str) -> Iterator[None]:
    """Several runs of tests begin at once: one fetches, the others wait for it."""
    BUILD.mkdir(parents=True, exist_ok=True)
    with open(BUILD / f"{name}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def run(*command: str, **environment: str) -> str:
    """Its output; a test that needs it is skipped, with its last words, if it fails."""
    try:
        ran = subprocess.run(
            command, capture_output=True, text=True, timeout=FETCH_S, env=os.environ | environment, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        pytest.skip(f"{command[0]} cannot be had here: {error}")
    if ran.returncode:
        pytest.skip(f"{Path(command[0]).name} failed here: {(ran.stderr or ran.stdout).strip()[-300:]}")
    return ran.stdout


class Missing(Exception):
    """What cannot be had here, and why."""


@functools.cache
def jars() -> str:
    """Drivers for Spark, as `spark.jars` takes them, resolved by Spark's own Ivy; Missing without a registry."""
    folder = BUILD / "ivy"
    wanted = "\n".join(PACKAGES)
    with alone("jars"):
        mark = folder / "packages"
        if not mark.exists() or mark.read_text() != wanted:
            home = Path(pyspark.__file__).parent
            # There is no such class: nothing is to run once the packages are there.
            command = [str(home / "bin" / "spark-submit"), "--packages", ",".join(PACKAGES), "--exclude-packages"]
            command += [
                f"{BUNDLE},org.slf4j:slf4j-api",
                "--conf",
                f"spark.jars.ivy={folder}",
                "--class",
                "none",
                "none",
            ]
            environment = os.environ | {"SPARK_HOME": str(home)}
            try:
                ran = subprocess.run(
                    command, capture_output=True, text=True, timeout=FETCH_S, env=environment, check=False
                )
            except (OSError, subprocess.TimeoutExpired) as error:
                raise Missing(f"no jars from Maven's registry: {error}") from None
            if "unresolved dependencies" in ran.stderr or len(list(folder.glob("jars/*.jar"))) < len(PACKAGES):
                raise Missing(f"no jars from Maven's registry: {ran.stderr.strip()[-300:]}")
            mark.write_text(wanted)
    return ",".join(map(str, sorted(folder.glob("jars/*.jar"))))


def installed(program: str, package: str, places: Callable[[], list[Path]]) -> Path:
    """A program of Debian's, installed where this is Debian and we are root."""
    if not (found := places()):
        if os.geteuid() or shutil.which("apt-get") is None:
            pytest.skip(f"no {program} here (Debian: apt-get install {package})")
        with alone("apt"):
            if not places():
                quiet = {"DEBIAN_FRONTEND": "noninteractive"}
                run("apt-get", "-o", "DPkg::Lock::Timeout=120", "update", **quiet)
                run(
                    "apt-get",
                    "-o",
                    "DPkg::Lock::Timeout=120",
                    "install",
                    "-y",
                    "--no-install-recommends",
                    package,
                    **quiet,
                )
        found = places()
    assert found, f"{package} was installed, and there is no {program}"
    return found[-1]


def tool(name: str) -> Path:
    """A program of tests/servers/requirements.txt."""
    folder = BUILD / "tools"
    program = folder / "bin" / name
    with alone("tools"):
        if not program.exists():
            pip = (sys.executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--only-binary", ":all:")
            run(*pip, "--target", str(folder), "--upgrade", "-r", str(Path(__file__).with_name("requirements.txt")))
    return program


def free_port() -> int:
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        port: int = listening.getsockname()[1]
        return port


def wait_for(port: int, process: subprocess.Popen[bytes], log: Path) -> None:
    """Until somebody answers there."""
    give_up = time.monotonic() + READY_S
    while time.monotonic() < give_up:
        assert process.poll() is None, log.read_text()[-2000:]
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError(f"nobody answers at {port}: {log.read_text()[-2000:]}")
