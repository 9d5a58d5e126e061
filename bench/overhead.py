"""What a query at one site costs through Skerry, beside the same text in the same Spark."""

from __future__ import annotations

import statistics

from bench.frame import BARE, SKERRY, Bar, Options, Report, Samples, interleaved, one_site, ratio
from skerry.testing.checkers import same_table
from skerry.testing.oracle import tpch_queries

HEAVY = (1, 6, 18)
GEOMEAN_BOUND = 1.10

SMALL = "SELECT count(*) FROM region"
SMALL_BOUND = 1.3
SMALL_ROUNDS = 3  # times the rounds of the heavy ones: a small query's time scatters more


def run(options: Options) -> Report:
    """TPC-H 1, 6 and 18, and the smallest query there is."""
    texts = {f"Q{number}": tpch_queries()[number] for number in HEAVY} | {"count": SMALL}
    samples: Samples = {}
    with one_site(options) as site, site.cluster.connect("oslo") as connection, connection.cursor() as cursor:
        for case, text in texts.items():
            # A quick wrong answer is no answer.
            same_table(cursor.execute(text).fetch_arrow_table(), site.session.sql(text).toArrow(), ordered=False)
            works = {
                BARE: lambda text=text: site.session.sql(text).toArrow(),
                SKERRY: lambda text=text: cursor.execute(text).fetch_arrow_table(),
            }
            rounds = options.rounds * (SMALL_ROUNDS if case == "count" else 1)
            samples[case] = interleaved(works, rounds)
    ratios = {case: ratio(taken) for case, taken in samples.items()}
    geomean = statistics.geometric_mean(ratios[f"Q{number}"] for number in HEAVY)
    return Report(
        "overhead",
        f"one site, TPC-H scale {options.scale:g}",
        "seconds",
        samples,
        [Bar("geomean", geomean, GEOMEAN_BOUND), Bar("count", ratios["count"], SMALL_BOUND)],
        options,
        ["ratios: " + ", ".join(f"{case} {value:.2f}" for case, value in ratios.items())],
    )
