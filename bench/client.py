"""How long a program waits for the client: its import, beside that of pyarrow, in fresh interpreters."""

from __future__ import annotations

import os
import subprocess
import sys

from bench.frame import WARM_UPS, Bar, Options, Report, ratio

PYARROW, SKERRY, CONNECT = "pyarrow", "skerry", "skerry, ready to connect"
# What `skerry.connect` loads when it is called; with it the import is complete.
IMPORTS = {PYARROW: "import pyarrow", SKERRY: "import skerry", CONNECT: "import skerry, skerry.client.dbapi"}
BOUND = 1.5
# An import is short: more rounds than others take, for the same time.
TIMES = 5

_TIMED = "import time\nbegan = time.perf_counter()\n{}\nprint(time.perf_counter() - began)"


def run(options: Options) -> Report:
    """The bar is for all that a connection needs, not for the few names that `import skerry` loads at first."""
    taken: dict[str, list[float]] = {name: [] for name in IMPORTS}
    for number in range(-WARM_UPS, TIMES * options.rounds):
        for name in list(IMPORTS) if number % 2 == 0 else reversed(list(IMPORTS)):
            taken_s = _seconds(IMPORTS[name])
            if number >= 0:
                taken[name].append(taken_s)
    return Report(
        "client",
        "importing the client",
        "s",
        {"import": taken},
        [Bar("import", ratio(taken, CONNECT, PYARROW), BOUND)],
        options,
        [f"import skerry alone: {ratio(taken, SKERRY, PYARROW):.2f} × import pyarrow"],
    )


def _seconds(statement: str) -> float:
    # Compiled once, as pip does it at installation, and not in every round.
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    ran = subprocess.run(
        [sys.executable, "-c", _TIMED.format(statement)], env=environment, capture_output=True, text=True, check=True
    )
    return float(ran.stdout)
