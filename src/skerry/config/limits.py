"""`limits:` in skerry.yaml: bounds, and amounts of bytes."""

from __future__ import annotations

from typing import Any

import msgspec

from skerry.config import rules
from skerry.config.yaml_nodes import Fields, Item
from skerry.model.limits import MARKER_LEAST_S, Limits

FRAME_BYTES_MAX = 2**32 - 1  # a frame's length is u32
MAY_BE_ZERO = (
    *("broadcast_bytes", "drain_s", "driver_rows", "driver_bytes", "history_queries", "look_again_s", "merge_groups"),
    *(
        "edge_rows",
        "queued_queries",
        "result_rows",
        "result_rows_of_user",
        "small_edge_bytes",
        "small_edge_wait_s",
        "small_job_bytes",
        "spark_s",
        "spark_s_of_user",
    ),
    *("spool_disk_bytes", "spool_disk_bytes_in_all", "spool_disk_bytes_of_user", "spool_memory_bytes_in_all"),
    *("spool_memory_bytes_of_user", "stats_put_off", "stats_scan_bytes"),
)
LIMITS_ORDERED = (
    ("frame_bytes_before_login", "frame_bytes"),
    ("batch_bytes", "frame_bytes"),
    ("reconnect_first_s", "reconnect_max_s"),
)


def read_limits(top: Fields) -> Limits:
    item = top.get("limits")
    if item is None:
        return Limits()
    types: dict[str, Any] = {field.name: field.type for field in msgspec.structs.fields(Limits)}
    fields = item.fields(tuple(types))
    values: dict[str, int | float] = {}
    for name, kind in types.items():
        each = fields.get(name)
        if each is not None:
            values[name] = _limit(each, name, is_whole=kind is int)
    limits = Limits(**values)  # type: ignore[arg-type]
    for small, large in LIMITS_ORDERED:
        if getattr(limits, small) > getattr(limits, large):
            item.notes.note(f"limits.{small if small in values else large}", f"{small} must not be above {large}")
    return limits


def _limit(item: Item, name: str, *, is_whole: bool) -> int | float:
    if name == "marker_s":
        return item.number(MARKER_LEAST_S)
    if not is_whole:
        return item.number(0, above=name not in MAY_BE_ZERO)
    most = FRAME_BYTES_MAX if name.startswith("frame_bytes") else 2**63 - 1
    least = 0 if name in MAY_BE_ZERO else 1
    return read_bytes(item, least, most) if "_bytes" in name else item.whole(least, most)


def read_bytes(item: Item, least: int, most: int) -> int:
    """A number of bytes, or a size like 64 MiB."""
    if item.kind() != "text" or item.scalar() is None:
        return item.whole(least, most)
    value = item.text(rules.size, max(1, least))
    if value < least:
        item.wrong(f"must be at least {least}, not {value}")
    if value > most:
        item.wrong(f"must be at most {most}, not {value}")
    return value
