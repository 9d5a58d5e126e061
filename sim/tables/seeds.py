"""A seed of `--tables`: commits by their cores, and in every fifth seed large writes by members' own shells as well."""

from __future__ import annotations

import msgspec

import sim.staged.world
import sim.tables.world
from sim.world import Outcome

STAGED_EVERY = 5  # such a seed takes ten times as long


def run_seed(seed: int) -> Outcome:
    outcome = sim.tables.world.run_seed(seed)
    if outcome.violation or seed % STAGED_EVERY:
        return outcome
    staged = sim.staged.world.run_seed(seed)
    return msgspec.structs.replace(
        staged,
        digest=outcome.digest ^ staged.digest,
        steps=outcome.steps + staged.steps,
        virtual_s=outcome.virtual_s + staged.virtual_s,
        complete=outcome.complete + staged.complete,
        failed=outcome.failed + staged.failed,
        story=(*outcome.story, *staged.story),
    )
