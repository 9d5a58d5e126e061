"""What is refused whatever the differential test says, and why. `admitted.json` is made from this and from Spark."""

from __future__ import annotations

_CODE = "it runs Java code at the site"
_FILES = "it shows the files of a site"
_WHO = "it names the account that Skerry runs under"
_WHERE = "it names what Spark itself calls current at the site"
_LAYOUT = "its value depends on how a site splits the table"
_PATHS = "it reads files of the site"
_FETCHES = "it fetches what its XML names, files of the site and addresses on the network; use from_xml"

REFUSED_FUNCTIONS: dict[str, str] = {
    "reflect": _CODE,
    "java_method": _CODE,
    "try_reflect": _CODE,
    "input_file_name": _FILES,
    "input_file_block_start": _FILES,
    "input_file_block_length": _FILES,
    "monotonically_increasing_id": _LAYOUT,
    "spark_partition_id": _LAYOUT,
    "from_avro": "it needs a Spark package that a site may lack",
    "to_avro": "it needs a Spark package that a site may lack",
    "schema_of_avro": "it needs a Spark package that a site may lack",
    "from_protobuf": _PATHS,
    "to_protobuf": _PATHS,
    # Java's XML parser as it comes: a DOCTYPE makes it fetch. Those of from_xml and schema_of_xml take none.
    "xpath": _FETCHES,
    "xpath_boolean": _FETCHES,
    "xpath_double": _FETCHES,
    "xpath_float": _FETCHES,
    "xpath_int": _FETCHES,
    "xpath_long": _FETCHES,
    "xpath_number": _FETCHES,
    "xpath_short": _FETCHES,
    "xpath_string": _FETCHES,
    "current_time": "the time of a query is fixed by its initiator, and TIME is not among the types it can fix",
}

# The initiator fixes them in clients' statements (`fixed.py`). Anywhere else they would tell of the site's own Spark.
FIXED_FUNCTIONS: dict[str, str] = {
    "current_user": _WHO,
    "user": _WHO,
    "session_user": _WHO,
    "current_catalog": _WHERE,
    "current_database": _WHERE,
    "current_schema": _WHERE,
    "current_path": _WHERE,
}

# Functions that Spark's grammar knows and its list does not, with a call of each.
OF_THE_GRAMMAR: dict[str, str] = {
    "timestampadd": "SELECT timestampadd(MONTH, -1, TIMESTAMP '2022-02-28 00:00:00')",
    "timestampdiff": "SELECT timestampdiff(HOUR, TIMESTAMP '2022-02-11 20:30:00', TIMESTAMP '2022-02-12 04:30:00')",
    "timediff": "SELECT timediff(DAY, DATE '2022-02-11', DATE '2022-02-12')",
}

REFUSED_TABLE_FUNCTIONS: dict[str, str] = {
    "python_worker_logs": "it shows the logs of a site",
}

# Beyond those that Spark itself calls nondeterministic.
NONDETERMINISTIC: frozenset[str] = frozenset(
    {"aes_encrypt", "now", "current_timestamp", "current_date", "curdate", "localtimestamp", "raise_error"}
)

# Spark makes rows of their own for these: never part of a filter that moves.
NOT_SCALAR: frozenset[str] = frozenset({"window", "session_window", "window_time", "grouping", "grouping_id"})
