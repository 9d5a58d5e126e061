"""Shell of the rules file: read at the start, and again when it has changed."""

from __future__ import annotations

import os

from skerry.access.files import read_file
from skerry.access.rules import KnownColumns, Rules, parse_rules
from skerry.model import trace
from skerry.model.config import Config
from skerry.model.errors import ConfigError
from skerry.model.limits import RULES_BYTES
from skerry.model.rights import Rights, everything


class Rulebook:
    """Without a file everybody may do everything. A new file with a mistake changes nothing: the log says so."""

    def __init__(self, config: Config) -> None:
        """ConfigError if the file cannot be read, or has a mistake."""
        self._config = config
        self._path = config.access.rules
        self._rules: Rules | None = None
        self._version: object = None
        if self._path:
            self._version = _version(self._path)
            self._rules = read_rules(self._path, config)

    def rights_of(self, user: str, roles: tuple[str, ...] = ()) -> Rights:
        """As the file is now."""
        if self._rules is None:
            return everything(user, roles)
        self._look()
        return self._rules.rights_of(user, roles)

    def names(self, table: str, columns: frozenset[str]) -> str:
        """A role with a rule that names one of these columns of a table of our own; "" if there is none."""
        if self._rules is None:
            return ""
        self._look()
        return self._rules.names(table, columns)

    def _look(self) -> None:
        version = _version(self._path)
        if version == self._version:
            return
        self._version = version  # also of a file with a mistake: it is told once
        try:
            self._rules = read_rules(self._path, self._config)
        except ConfigError as error:
            trace.emit(trace.RulesRefused(error.message.replace("\n", "; ")))
        else:
            trace.emit(trace.RulesRead(self._path))


def read_rules(path: str, config: Config, columns: KnownColumns | None = None) -> Rules:
    """ConfigError has every mistake, one a line. `columns`: what files tell of them, by member and table."""
    data, _ = read_file(path, is_secret=False)
    assert data is not None
    if len(data) > RULES_BYTES:
        raise ConfigError(f"{path}: larger than {RULES_BYTES} bytes")
    try:
        return parse_rules(data.decode(), path, config, columns)
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not YAML: not UTF-8") from None


def _version(path: str) -> object:
    try:
        status = os.stat(path)
    except OSError:  # whoever reads it says so
        return None
    # The time of change: also a file that was refused for its mode alone is read again.
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns
