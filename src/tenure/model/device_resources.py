"""What a device counts for queues that a pod asks for as an extended resource of its own, as MIG profiles are.

A profile of NVIDIA's, ``nvidia.com/mig-1g.10gb``, says which part of a GPU it is: one of seven. Such a device counts as
that part of a GPU, beside itself. The setting ``deviceResources`` says otherwise, and adds other resources.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from tenure.model.node import Node
from tenure.model.resources import GPU, MILLI
from tenure.model.settings import Settings
from tenure.model.workload import TaskSpec

SLICES: Final = 7
"""Compute slices of a GPU that is divided by MIG."""

_PROFILE: Final = re.compile(r"nvidia\.com/mig-([1-7])g\.\d{1,4}gb(?:\.[a-z.]{1,20})?")
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


def counts_of(resource: str, settings: Settings) -> Mapping[str, int]:
    """Give what one device of a resource counts beside itself, by resource; rounded down to milli-GPU for a profile."""
    told = settings.device_resources.get(resource)
    if told is not None:
        return {name: amount for name, amount in told.items() if amount and name != resource}
    profile = _PROFILE.fullmatch(resource)
    return {GPU: int(profile[1]) * MILLI // SLICES} if profile else _NOTHING


def counted_beside(spec: TaskSpec, settings: Settings) -> dict[str, int]:
    """Give what a task counts for its queue beside what it asks for, by resource, GPUs in milli-GPU.

    That are the devices of its claims, and the parts that devices of its own resources are.
    """
    found = dict(spec.counted)
    for resource, many in spec.requests:
        _add(found, resource, many, settings)
    return found


def parts_of(nodes: Iterable[Node], settings: Settings) -> dict[str, int]:
    """Give what the devices of nodes count beside themselves, all together, by resource, GPUs in milli-GPU."""
    found: dict[str, int] = {}
    for node in nodes:
        for resource, many in node.allocatable.items():
            _add(found, resource, many, settings)
    return found


def _add(found: dict[str, int], resource: str, many: int, settings: Settings) -> None:
    for name, each in counts_of(resource, settings).items():
        if many * each:
            found[name] = found.get(name, 0) + many * each
