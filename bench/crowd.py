"""Many clients at once: threads, each with a connection of its own, in as many processes as there are cores.

In one process all clients would wait for one interpreter, and more processes than cores add nothing but starts.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Protocol

START_S = 300.0


class Client(Protocol):
    """Made, used and closed in a process of the crowd."""

    def work(self, number: int) -> None:
        """One piece of work, the next number each time; an error ends the benchmark."""

    def close(self) -> None:
        """The end of the session."""


# Picklable. The number tells clients apart.
MakeClient = Callable[[int], Client]


class Crowd:
    """The clients of one side, in their processes."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    def run(self, clients: int, work_s: float) -> list[float]:
        """Seconds of each piece of work that so many clients began within `work_s`."""
        shares = [clients // len(self._pipes) + (n < clients % len(self._pipes)) for n in range(len(self._pipes))]
        for pipe, share in zip(self._pipes, shares, strict=True):
            pipe.send((share, work_s))
        return [taken for pipe in self._pipes for taken in _answer(pipe, work_s + START_S)]

    def ready(self) -> None:
        for pipe in self._pipes:
            _answer(pipe, START_S)


def _answer(pipe: Connection, wait_s: float) -> list[float]:
    if not pipe.poll(wait_s):
        raise TimeoutError(f"the clients said nothing for {wait_s:.0f} s")
    answer = pipe.recv()
    if isinstance(answer, str):
        raise RuntimeError(f"a client failed: {answer}")
    taken: list[float] = answer
    return taken


def serve(make: MakeClient, numbers: range, pipe: Connection) -> None:
    """A process of clients: (how many, seconds) comes in, the seconds of all their work go out; None ends it."""
    try:
        clients = [make(number) for number in numbers]
        pipe.send([])
        while (asked := pipe.recv()) is not None:
            count, work_s = asked
            pipe.send(_together(clients[:count], work_s))
        for client in clients:
            client.close()
    except Exception as error:
        pipe.send(f"{type(error).__name__}: {error}")


def _together(clients: Sequence[Client], work_s: float) -> list[float]:
    taken: list[float] = []
    errors: list[BaseException] = []

    def work(number: int, client: Client) -> None:
        try:
            until = time.perf_counter() + work_s
            while (started := time.perf_counter()) < until:
                client.work(number)
                taken.append(time.perf_counter() - started)
                number += 1
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(number, client)) for number, client in enumerate(clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return taken


@contextmanager
def crowd(make: MakeClient, clients: int) -> Iterator[Crowd]:
    """At most so many clients."""
    context = multiprocessing.get_context("spawn")
    count = min(os.cpu_count() or 1, clients)
    each = math.ceil(clients / count)
    ends = [context.Pipe() for _ in range(count)]
    processes = [
        context.Process(target=serve, args=(make, range(n * each, (n + 1) * each), theirs), daemon=True)
        for n, (_, theirs) in enumerate(ends)
    ]
    for process in processes:
        process.start()
    try:
        made = Crowd([ours for ours, _ in ends])
        made.ready()
        yield made
    finally:
        for process, (ours, _) in zip(processes, ends, strict=True):
            if process.is_alive():
                ours.send(None)
            process.join(START_S)
            process.kill()
