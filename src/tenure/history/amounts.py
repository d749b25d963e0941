"""What a task holds, by resource: GPUs in milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tenure.model.node import Node
from tenure.model.resources import CPU, GPU, MEMORY, MILLI, PODS
from tenure.model.workload import TaskSpec

UNITS: dict[str, int] = {GPU: MILLI, CPU: 1000}
"""How much of an amount is one whole unit of a resource."""


class Holder:
    """Tells what tasks hold, as lists in the order of ``resources``. Specs are told apart by identity."""

    def __init__(self, specs: Iterable[TaskSpec], nodes: Sequence[Node]) -> None:
        named = {name for spec in specs for name, amount in spec.requests if amount}
        named |= {name for spec in specs for name, _ in spec.counted}
        named |= {GPU for spec in specs if spec.gpu_share is not None}
        first = [name for name in (CPU, MEMORY, GPU) if name in named]
        self.resources = first + sorted(named - {CPU, MEMORY, GPU, PODS})
        self.nodes = nodes
        self._known: dict[tuple[int, int], list[int]] = {}

    def held(self, spec: TaskSpec, node: int) -> list[int]:
        """Give what a task of such a spec holds on a node (its number, -1: none yet)."""
        share = spec.gpu_share
        by_memory = share is not None and share.memory > 0
        key = id(spec), node if by_memory else -1
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._amounts(spec, node)
        return known

    def _amounts(self, spec: TaskSpec, node: int) -> list[int]:
        asked, counted = dict(spec.requests), dict(spec.counted)
        own = [self._gpu(spec, asked.get(GPU, 0), node) if r == GPU else asked.get(r, 0) for r in self.resources]
        return [amount + counted.get(r, 0) for amount, r in zip(own, self.resources, strict=True)]

    def _gpu(self, spec: TaskSpec, whole: int, node: int) -> int:
        share = spec.gpu_share
        if share is None:
            return whole * MILLI
        if not share.memory:
            return share.milli * share.devices
        memory = self.nodes[node].gpu_memory if node >= 0 else None
        return (MILLI if not memory else share.memory * MILLI // memory) * share.devices

    def capacity(self) -> dict[str, int]:
        """Give what all nodes have."""
        return {
            r: sum(n.allocatable.get(r, 0) for n in self.nodes) * (MILLI if r == GPU else 1) for r in self.resources
        }

    def named(self, amounts: Sequence[int], times: int = 1) -> dict[str, int]:
        """Give amounts by name, times something, without those that are nothing."""
        return {r: a * times for r, a in zip(self.resources, amounts, strict=True) if a * times}


def weighted(amounts: Mapping[str, int], prices: Mapping[str, float]) -> int:
    """Give resource-µs as millionths of a weighted resource-second."""
    return round(sum(prices.get(r, 0.0) * amount / UNITS.get(r, 1) for r, amount in amounts.items()))
