"""The edge of the client: what raises SkerryError inside raises its PEP 249 class outside, mapped here only."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from skerry.client.pep249 import translate
from skerry.model.errors import SkerryError

P = ParamSpec("P")
T = TypeVar("T")


def edge(method: Callable[P, T]) -> Callable[P, T]:
    @functools.wraps(method)
    def outside(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            return method(*args, **kwargs)
        except SkerryError as error:
            raise translate(error) from error

    return outside
