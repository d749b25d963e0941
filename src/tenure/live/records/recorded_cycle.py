"""What of a cycle is recorded: a picture that no later cycle changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.live.loop import CycleOutcome
from tenure.live.records.proof_inquiries import FoundProof
from tenure.live.records.queue_levels import QueueLevels, levels_of


@dataclass(frozen=True, slots=True)
class RecordedCycle:
    """A cycle as it is recorded: what was seen and planned, what came of it, and what queues hold.

    ``paused_until``: until when evictions are paused (µs); a time that has passed where they are not. ``proofs``: what
    was found out, since the last cycle, of evictions of which it was not known what came of them.
    """

    plan: Plan
    observed: Observed
    queues: QueueLevels
    outcomes: tuple[Outcome, ...]
    paused_until: int
    proofs: Sequence[FoundProof] = ()


def recorded(cycle: CycleOutcome, paused_until: int, proofs: Sequence[FoundProof] = ()) -> RecordedCycle:
    """Give what of a cycle is recorded."""
    outcomes = (cycle.outcome,) if cycle.external is None else (cycle.outcome, cycle.external.outcome)
    return RecordedCycle(cycle.plan, cycle.observed, levels_of(cycle.session.queues), outcomes, paused_until, proofs)
