"""The process that starts an embedded Spark's Python workers: PySpark's own, but its end is not theirs.

Spark 4.2 takes a task that is interrupted while its worker starts (a cancelled query's) for a daemon that is lost, ends
the daemon and starts another. PySpark's takes all its workers with it, and so ends other people's queries. A worker
needs no such end: it reads a socket that its JVM holds.

A copy of this file runs as a module of its own. Inside the package it would import pyarrow, whose threads must not be
there when it forks.
"""

from __future__ import annotations

import os
import socket

from pyspark import daemon

_worker = daemon.worker


def _in_a_group_of_its_own(sock: socket.socket, authenticated: bool) -> int:
    os.setpgid(0, 0)  # a daemon that ends sends its group a SIGHUP
    return _worker(sock, authenticated)


if __name__ == "__main__":
    daemon.worker = _in_a_group_of_its_own
    daemon.manager()
