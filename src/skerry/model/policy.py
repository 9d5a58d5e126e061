"""What an INSERT does with a key that is there already."""

from __future__ import annotations

import enum


class Policy(enum.IntEnum):
    """The numbers are those of the execution protocol."""

    FAIL = 0
    NOTHING = 1
    REPLACE = 2
