"""Names of resources and the units that amounts of them are kept in.

Amounts are integers: ``cpu`` in millicores, ``memory`` in bytes, everything else in whole units, with one
exception: GPUs are *accounted* in milli-GPU, because a task may hold a part of one. ``Node.allocatable`` and
``TaskSpec.requests`` hold whole GPUs; the amounts of queues, and of what is really used, hold milli-GPU
(`spec: resources`).
"""

from __future__ import annotations

from collections.abc import Mapping

CPU = "cpu"
MEMORY = "memory"
PODS = "pods"
GPU = "nvidia.com/gpu"

MILLI = 1000
"""Milli-GPU in one GPU."""

MILLI_GPU = "milliGpu"
"""The name under which JSON has what is beyond whole GPUs, in milli-GPU."""

Resources = Mapping[str, int]
"""Amount by resource name."""

Amounts = tuple[tuple[str, int], ...]
"""Amount by resource name, sorted by name: the hashable form."""

Labels = Mapping[str, str]
"""Value by label (or annotation) key."""

Pairs = tuple[tuple[str, str], ...]
"""Value by key, sorted by key: the hashable form."""


def plain_amounts(held: Resources) -> dict[str, int]:
    """Give accounted amounts as JSON has them: whole GPUs under their own name, what is beyond them in milli-GPU."""
    found = dict(held)
    if GPU in found:
        whole, part = divmod(found[GPU], MILLI)
        found[GPU] = whole
        if part:
            found[MILLI_GPU] = part
    return found
