"""Nodes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated

from tenure.model.fields.vocabulary import Bytes, Duration, FieldKey, MilliAmounts, NameText, Time, WholeAmounts
from tenure.model.selectors import Taint
from tenure.model.values.resources import Labels
from tenure.model.volumes import NodeDriver


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine with allocatable resources.

    ``allocatable`` is in the units of `tenure.model.values.resources` (GPUs whole), ``gpu_memory`` in bytes for each of
    its GPUs, ``created_at`` in microseconds since the epoch, ``usage_for`` in microseconds; ``usage`` counts GPUs in
    milli-GPU. ``allocatable`` without
    ``pods`` means that the number of pods is not limited. ``outside``: it belongs to another node pool; nothing is
    placed there, and what stands there counts for constraints that look at other tasks. ``features`` are those that
    its kubelet declares, ``drivers`` the CSI drivers that are there. ``awaited_until``: the node is on its
    way; nothing is bound there, its room may be promised, and from that time (µs since the epoch) on it does not count.
    """

    name: NameText
    allocatable: WholeAmounts = field(default_factory=dict)
    labels: Labels = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    ready: bool = True
    created_at: Time | None = None
    gpu_memory: Bytes | None = None
    usage: MilliAmounts | None = None
    usage_for: Duration | None = None
    drain: bool = False
    outside: bool = False
    awaited_until: Time | None = None
    features: tuple[str, ...] = ()
    drivers: Annotated[tuple[NodeDriver, ...], FieldKey("csiDrivers")] = ()
