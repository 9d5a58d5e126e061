"""skerry.yaml: the members of a cluster, their tables and sinks, the links between them, the limits."""

from skerry.config.read import load, parse, read_file
from skerry.model.config import (
    Config,
    FaultPolicy,
    Leaves,
    Link,
    MemberConfig,
    Role,
    SinkConfig,
    SparkConfig,
    TableConfig,
)

__all__ = [
    "Config",
    "FaultPolicy",
    "Leaves",
    "Link",
    "MemberConfig",
    "Role",
    "SinkConfig",
    "SparkConfig",
    "TableConfig",
    "load",
    "parse",
    "read_file",
]
