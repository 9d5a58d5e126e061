"""On the path of every Python process of a soak: SIGUSR1 writes its threads' stacks, SIGUSR2 its asyncio tasks."""

import faulthandler
import os
import signal
import sys

_folder = os.environ.get("SKERRY_SOAK_STACKS", "")


def _write_tasks(_number: int, _frame: object) -> None:
    import asyncio

    with open(os.path.join(_folder, f"tasks-{os.getpid()}.txt"), "a", encoding="utf-8") as file:
        for task in asyncio.all_tasks(asyncio.get_running_loop()):
            task.print_stack(limit=8, file=file)


if _folder:
    faulthandler.register(signal.SIGUSR1, open(os.path.join(_folder, f"stacks-{os.getpid()}.txt"), "a"))  # noqa: SIM115
    if "skerry.cli" in sys.orig_argv:
        signal.signal(signal.SIGUSR2, _write_tasks)
