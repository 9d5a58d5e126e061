"""The package as a zip file, for executors on other machines."""

from __future__ import annotations

import os
import zipfile
from pathlib import Path

from skerry.spark.jvm import package_root


def package_zip(directory: str) -> str:
    """Write skerry.zip and return its path. What skerry depends on must be installed on the executors."""
    root = Path(package_root())
    target = os.path.join(directory, "skerry.zip")
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted((root / "skerry").rglob("*.py")):
            archive.write(path, path.relative_to(root))
    return target
