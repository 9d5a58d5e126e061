"""Searches with Atheris (libFuzzer for Python) from the corpus: `python -m fuzz --seconds 60`.

Inputs that reach new code stay in fuzz/.found. One that crashed is written there too, as crash-…: it belongs into
fuzz/corpus, with the fix.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

HERE = Path(__file__).parent
TOOLS = HERE / ".tools"
FOUND = HERE / ".found"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m fuzz")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0, help="0: another search each time")
    chosen = parser.parse_args()
    sys.path.append(str(TOOLS))
    try:
        import atheris
    except ImportError:
        sys.exit(f"Atheris is missing: pip install --target {TOOLS} -r fuzz/requirements.txt (make fuzz does it)")
    # Only what is imported here is watched: the decoders, and the target that calls them.
    with atheris.instrument_imports(include=["skerry.wire", "skerry.model.errors", "fuzz.target"]):
        from fuzz.target import check

    FOUND.mkdir(exist_ok=True)
    options = [
        f"-max_total_time={chosen.seconds}",
        f"-seed={chosen.seed}",
        f"-artifact_prefix={FOUND}/",
        "-max_len=20000",
        "-timeout=10",
        "-rss_limit_mb=4096",
        "-print_final_stats=1",
    ]
    # The first folder takes new inputs, the second is only read.
    atheris.Setup([sys.argv[0], *options, str(FOUND), str(HERE / "corpus")], check)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
