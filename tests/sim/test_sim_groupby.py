"""Elastic group-bys in simulated clusters (docs/simulation.md): some seeds, and that one runs the same way again."""

from __future__ import annotations

from sim.groupby.world import World, run_seed


def test_seeds_of_group_bys_without_a_violation() -> None:
    outcomes = [run_seed(seed) for seed in range(60)]
    assert [f"seed {outcome.seed}: {outcome.violation}" for outcome in outcomes if outcome.violation] == []
    # A simulation in which nothing is complete, or nothing fails, would prove little.
    assert sum(outcome.complete for outcome in outcomes) > 30
    assert sum(outcome.failed for outcome in outcomes) > 5


def test_most_group_bys_that_are_complete_have_split_three_times() -> None:
    worlds = [World(seed) for seed in range(60, 80)]
    for world in worlds:
        world.run()
    complete = [world for world in worlds if world.answer is None and not world.is_scarce]
    assert len(complete) > 5
    assert len([world for world in complete if world.splits >= 3]) >= 0.9 * len(complete)


def test_a_seed_of_group_bys_replays_exactly() -> None:
    assert run_seed(7) == run_seed(7)
