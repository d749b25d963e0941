"""What runs below its core is not sent elsewhere: it would not start again before the core is whole (spec 7).

A place is certain for the tasks that move, and for none of those that the core lacks.
"""

from __future__ import annotations

from typing import Final

from tenure.engine.refusal import Refusal
from tenure.engine.state.workloads import WorkloadState

SHIELD: Final = "below-core"


def below_core(victim: WorkloadState) -> Refusal | None:
    """Refuse to move a workload that has lost part of its core and has not got it back."""
    if victim.root.satisfied(nominated=False):
        return None
    return Refusal(SHIELD, f"{victim.key} runs below its core, and would not start again until that is whole")
