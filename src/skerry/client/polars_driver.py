"""`polars.read_database` takes Arrow from drivers that stand in a table of its own, and rows one by one from others.

A driver is looked up there by its module's name; there is no other way to say that cursors give Arrow.
"""

from __future__ import annotations

import sys

_PLACE = "polars.io.database._arrow_registry"
_NAME = "skerry"
_PROPERTIES = {
    "fetch_all": "fetch_arrow_table",
    "fetch_batches": "fetch_record_batch_reader",
    "exact_batch_size": False,
    "repeat_batch_calls": False,
    "minimum_version": None,
}


def tell_polars() -> None:
    """Put our cursors into polars' table, if polars is loaded and its table looks as we know it."""
    drivers = getattr(sys.modules.get(_PLACE), "ARROW_DRIVER_REGISTRY", None)
    if not isinstance(drivers, dict) or _NAME in drivers:
        return
    # The table is polars' own. Where it has changed, rows are read as from any PEP 249 driver, and nothing breaks.
    if all(
        isinstance(known, list) and all(each.keys() == _PROPERTIES.keys() for each in known)
        for known in drivers.values()
    ):
        drivers[_NAME] = [_PROPERTIES]
