"""Arguments of a caller, looked at before anything is sent: a member takes a wrong message for a broken client."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from typing import Any

import msgspec

from skerry.client.pep249 import InterfaceError
from skerry.model.credentials import Credentials
from skerry.model.limits import KIB
from skerry.model.results import Value
from skerry.wire.values import quick_value, to_value

Parameters = Sequence[Any] | Mapping[str, Any]

# The variables of the environment that say who asks, where nothing else does.
USER, PASSWORD, TOKEN = "SKERRY_USER", "SKERRY_PASSWORD", "SKERRY_TOKEN"

# What a message has beside its statement and parameters, and more.
_REST_BYTES = 4 * KIB
# A year. Clocks of some systems count no further than a few decades.
_SECONDS_MAX = 366 * 86400
_PLAIN = (list, tuple)
# They travel beside the planner's options, but have arguments of their own.
_NOT_PLANNING = {"fault_policy", "resume_s", "detach", "lease_s", "edge_rows", "spark_s"}


def statement_text(operation: Any, values: Any, bytes_max: int) -> str:
    """A statement that can be sent, with the values of its parameters."""
    if not isinstance(operation, str):
        raise InterfaceError(f"a statement is text, not {type(operation).__name__}")
    try:
        size_bytes = len(operation.encode())
    except UnicodeEncodeError as error:
        raise InterfaceError(f"a statement is Unicode text: {error.reason} at character {error.start}") from None
    if values:
        size_bytes += len(msgspec.msgpack.encode(values))
    if size_bytes > bytes_max - _REST_BYTES:
        raise InterfaceError(f"the statement and its parameters have {size_bytes} bytes, a member takes {bytes_max}")
    return operation


def values(parameters: Parameters | None) -> list[Value] | dict[str, Value]:
    """The values of parameters as they are sent."""
    if parameters is None:
        return []
    if type(parameters) not in _PLAIN:  # whether it is a Mapping takes Python as long to say as all that follows
        if isinstance(parameters, Mapping):
            for name in parameters:
                if not text(name, "a parameter's name").isprintable():
                    raise InterfaceError(f"a parameter's name has letters, digits and underscores, unlike {name!r}")
            return {name: to_value(value, f"parameter :{name}") for name, value in parameters.items()}
        if isinstance(parameters, str | bytes | Set) or not isinstance(parameters, Iterable):
            raise InterfaceError(f"parameters are a sequence or a mapping, not one {type(parameters).__name__}")
    return [quick_value(value) or to_value(value, f"parameter {index}") for index, value in enumerate(parameters, 1)]


def seconds(value: Any, name: str, *, may_be_0: bool = False) -> float:
    """A duration; 0 for the member's own."""
    if value is None and not may_be_0:
        return 0.0
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if not is_number or value < 0 or (value == 0 and not may_be_0):
        raise InterfaceError(f"{name} is a number of seconds{'' if may_be_0 else ' above 0'}, not {value!r}")
    if value > _SECONDS_MAX:
        raise InterfaceError(f"{name} is at most a year ({_SECONDS_MAX} seconds), not {value!r}")
    return float(value)


def rows(value: Any, name: str) -> int:
    """A number of rows."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise InterfaceError(f"{name} is a number of rows, 0 or more, not {value!r}")
    return value


def choice(value: Any, name: str, choices: Collection[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in choices:
        raise InterfaceError(f"{name} is one of {', '.join(choices)}, not {value!r}")
    return value


def text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise InterfaceError(f"{what} is text, not {value!r}")
    return value


def texts(value: Any, name: str, example: str) -> dict[str, str]:
    """A mapping of texts; None is an empty one."""
    if value is None:
        return {}
    if not isinstance(value, Mapping) or any(not isinstance(each, str) for pair in value.items() for each in pair):
        raise InterfaceError(f"{name} is a mapping of texts, as in {example}, not {value!r}")
    return dict(value)


def credentials(
    of_url: Credentials, user: Any, password: Any, token: Any, environment: Mapping[str, str]
) -> Credentials:
    """Who asks: as the arguments say, else the URL, else the environment. One of them says all of it."""
    given = {"user": user, "password": password, "token": token}
    for name, value in given.items():
        if value is not None and not isinstance(value, str):  # and it is not shown
            raise InterfaceError(f"{name} is text, not {type(value).__name__}")
    if password or token:
        shown = Credentials(user or of_url.user or environment.get(USER, ""), password or "", token or "")
    elif user or of_url.user or of_url.password:
        # A name alone: its password may stand in the environment, where no list of processes shows it.
        secret = of_url.password or environment.get(PASSWORD, "")
        shown = Credentials(user or of_url.user, secret)
    else:
        shown = Credentials(environment.get(USER, ""), environment.get(PASSWORD, ""), environment.get(TOKEN, ""))
    if shown.token and shown.password:
        raise InterfaceError("a password and a token: one of them says who asks")
    return Credentials(token=shown.token) if shown.token else shown


def planning_options(planning: Any) -> dict[str, str]:
    """Options for the planner, names and values as text."""
    options = texts(planning, "planning", '{"rules": "-semijoin"}')
    for name in _NOT_PLANNING & options.keys():
        raise InterfaceError(f"{name} is no option for the planner: give it to connect or execute by its name")
    return options
