"""What counts as a GPU: what a device of an extended resource counts for queues beside itself.

The devices of all known vendors count as GPUs, and the parts that a GPU is divided into as those parts
(`tenure.model.accelerators`). The setting ``deviceResources`` says otherwise, and adds other resources. This is the one
place that decides it; shares, maxima, costs, budgets, records and tables take it from here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from tenure.model.accelerators import gpu_part
from tenure.model.fields.kinds import WILDCARD
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import GPU, MILLI
from tenure.model.workload import TaskSpec

_NVIDIA: Final = GPU.partition("/")[0] + "/"
_NOTHING: Final[Mapping[str, int]] = MappingProxyType({})


def counts_of(resource: str, settings: Settings) -> Mapping[str, int]:
    """Give what one device of a resource counts beside itself, by resource, GPUs in milli-GPU.

    What is set comes before the defaults.
    """
    own = as_set(resource, settings)
    if own is not None:
        return {name: amount for name, amount in own.items() if amount and name != resource}
    part = gpu_part(resource)
    return {GPU: part} if part else _NOTHING


def as_set(resource: str, settings: Settings) -> Mapping[str, int] | None:
    """Give what the setting says of a resource, by name, else by the longest wildcard; None where that is nothing."""
    told = settings.device_resources
    if not told or resource in told:
        return told.get(resource)
    wide = [key for key in told if key.endswith(WILDCARD) and resource.startswith(key.removesuffix(WILDCARD))]
    return told[max(wide, key=len)] if wide else None


def vendors_apart(settings: Settings, queues: Iterable[Queue]) -> Settings:
    """Give settings under which devices of other vendors count only as themselves where queues name them beside GPUs.

    Amounts of both are amounts of two things; what the setting says of a resource holds all the same.
    """
    named = {name for queue in queues for amounts in (queue.guaranteed, queue.max) for name in amounts}
    if GPU not in named:
        return settings
    apart = {name for name in named if is_of_another_vendor(name) and as_set(name, settings) is None}
    if not apart:
        return settings
    return replace(settings, device_resources={**settings.device_resources, **{name: {} for name in sorted(apart)}})


def is_of_another_vendor(resource: str) -> bool:
    """Whether devices of a resource count as GPUs by default though they are none of NVIDIA's."""
    return gpu_part(resource) > 0 and not resource.startswith(_NVIDIA)


def counted_beside(spec: TaskSpec, settings: Settings) -> dict[str, int]:
    """Give what a task counts for its queue beside what it asks for, by resource, GPUs in milli-GPU.

    That are the devices of its claims, and what devices of its own resources count.
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


def capacity_of(nodes: Iterable[Node], settings: Settings) -> dict[str, int]:
    """Give what nodes have, all together, as it counts for queues, by resource, GPUs in milli-GPU."""
    many = list(nodes)
    found = parts_of(many, settings)
    for node in many:
        for resource, amount in node.allocatable.items():
            found[resource] = found.get(resource, 0) + amount * (MILLI if resource == GPU else 1)
    return found


def _add(found: dict[str, int], resource: str, many: int, settings: Settings) -> None:
    for name, each in counts_of(resource, settings).items():
        if many * each:
            found[name] = found.get(name, 0) + many * each
