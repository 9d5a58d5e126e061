"""Large writes and copies in simulated clusters (docs/simulation.md): some seeds, and that one runs the same again."""

from __future__ import annotations

from sim.staged.world import run_seed


def test_seeds_of_large_writes_without_a_violation() -> None:
    outcomes = [run_seed(seed) for seed in range(6)]
    assert [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation] == []
    assert sum(outcome.complete for outcome in outcomes) > 30
    assert sum(outcome.failed for outcome in outcomes) > 20


def test_a_seed_of_large_writes_replays_exactly() -> None:
    assert run_seed(3) == run_seed(3)
