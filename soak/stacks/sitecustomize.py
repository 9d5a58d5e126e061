"""On the path of every Python process of a soak: SIGUSR1 writes its threads' stacks, SIGUSR2 its asyncio tasks.

Not by faulthandler: it reads the frames of threads that run, and a member has ended by that.
"""

import os
import signal
import sys

_folder = os.environ.get("SKERRY_SOAK_STACKS", "")


def _write_stacks(_number: int, _frame: object) -> None:
    import traceback

    with open(os.path.join(_folder, f"stacks-{os.getpid()}.txt"), "a", encoding="utf-8") as file:
        for thread, frame in sys._current_frames().items():
            file.write(f"thread {thread}\n{''.join(traceback.format_stack(frame))}\n")


def _write_tasks(_number: int, _frame: object) -> None:
    import asyncio

    with open(os.path.join(_folder, f"tasks-{os.getpid()}.txt"), "a", encoding="utf-8") as file:
        for task in asyncio.all_tasks(asyncio.get_running_loop()):
            task.print_stack(limit=8, file=file)


if _folder:
    signal.signal(signal.SIGUSR1, _write_stacks)
    if "skerry.cli" in sys.orig_argv:
        signal.signal(signal.SIGUSR2, _write_tasks)
