"""Commits in simulated clusters (docs/simulation.md): some seeds, and that a seed runs the same way again."""

from __future__ import annotations

from sim.tables.world import run_seed


def test_fifty_seeds_of_commits_without_a_violation() -> None:
    outcomes = [run_seed(seed) for seed in range(50)]
    assert [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation] == []
    # A simulation in which nothing is committed, or nothing fails, would prove little.
    assert sum(outcome.complete for outcome in outcomes) > 300
    assert sum(outcome.failed for outcome in outcomes) > 100


def test_a_seed_of_commits_replays_exactly() -> None:
    assert run_seed(7) == run_seed(7)
