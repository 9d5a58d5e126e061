"""Whether a query only copies and shortens what its tables hold, or may build rows of any width."""

from __future__ import annotations

from sqlglot import exp

from skerry.sql.functions import call_name

# Their results have a fixed width, or are no longer than an argument. What is not named here may widen a row.
_NO_WIDER = frozenset(
    """
    abs ceil ceiling floor round bround rint sign signum sqrt cbrt exp ln log log10 log2 pow power mod pmod div
    negative positive greatest least hash xxhash64 crc32 nanvl try_add try_subtract try_multiply try_divide
    cast bigint int smallint tinyint float double decimal boolean date timestamp string
    coalesce ifnull nvl nvl2 nullif nullifzero zeroifnull if isnull isnotnull isnan equal_null
    lower upper lcase ucase initcap trim ltrim rtrim btrim substr substring left right split_part substring_index
    length char_length character_length octet_length bit_length ascii instr locate position startswith endswith
    contains like ilike rlike regexp regexp_like regexp_extract regexp_substr md5 sha1 sha2
    date_add date_sub datediff date_diff dateadd date_trunc trunc add_months months_between last_day next_day
    year quarter month day dayofmonth dayofweek dayofyear weekday weekofyear hour minute second extract date_part
    to_date to_timestamp unix_timestamp unix_date unix_seconds date_format now current_date current_timestamp
    count sum avg mean min max any_value first last first_value last_value min_by max_by mode median
    count_if bool_and bool_or every some any bit_and bit_or bit_xor try_sum try_avg
    variance var_pop var_samp stddev std stddev_pop stddev_samp corr covar_pop covar_samp skewness kurtosis
    approx_count_distinct percentile percentile_cont percentile_disc grouping grouping_id
    row_number rank dense_rank percent_rank cume_dist ntile lag lead nth_value
    explode explode_outer posexplode posexplode_outer element_at get size cardinality range
    """.split()
)
# What decides which rows there are says nothing of their width.
_CONDITIONS = (exp.Where, exp.Having, exp.Group, exp.Order, exp.Hint)


def only_copies(tree: exp.Expr) -> bool:
    """No row of the result is wider than one row of each of its tables, but for numbers, dates and literals."""
    for node in tree.walk(prune=lambda node: isinstance(node, _CONDITIONS)):
        if isinstance(node, exp.DPipe | exp.Pivot):
            return False
        name = call_name(node)
        if name is not None and name not in _NO_WIDER:
            return False
    return True
