"""What a task holds, by resource: GPUs in milli-GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from tenure.model.device_resources import capacity_of, counted_beside
from tenure.model.node import Node
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS
from tenure.model.workload import TaskSpec

UNITS: dict[str, int] = {GPU: MILLI, CPU: 1000}
"""How much of an amount is one whole unit of a resource."""


class Holder:
    """Tells what tasks hold, as lists in the order of ``resources``. Specs are told apart by identity.

    What a task *holds* is what it counts for its queue; what it *asks for* leaves out which part of a GPU a device of
    another resource is, for it takes no GPU of its node.
    """

    def __init__(self, specs: Iterable[TaskSpec], nodes: Sequence[Node], settings: Settings) -> None:
        different = {id(spec): spec for spec in specs}.values()
        named = {name for spec in different for name, amount in spec.requests if amount}
        named |= {name for spec in different for name in counted_beside(spec, settings)}
        named |= {GPU for spec in different if spec.gpu_share is not None}
        first = [name for name in (CPU, MEMORY, GPU) if name in named]
        self.resources = first + sorted(named - {CPU, MEMORY, GPU, PODS})
        self.nodes = nodes
        self.settings = settings
        self._known: dict[tuple[int, int], list[int]] = {}
        self._known_asks: dict[tuple[int, int], list[int]] = {}

    def held(self, spec: TaskSpec, node: int) -> list[int]:
        """Give what a task of such a spec holds on a node (its number, -1: none yet)."""
        key = self._key(spec, node)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = self._amounts(spec, node, counted_beside(spec, self.settings))
        return known

    def asked(self, spec: TaskSpec, node: int) -> list[int]:
        """Give what a task of such a spec asks for on a node (its number, -1: none yet)."""
        key = self._key(spec, node)
        known = self._known_asks.get(key)
        if known is None:
            known = self._known_asks[key] = self._amounts(spec, node, dict(spec.counted))
        return known

    @staticmethod
    def _key(spec: TaskSpec, node: int) -> tuple[int, int]:
        """Give what tells apart what tasks hold: only a share of GPU memory depends on the node."""
        by_memory = spec.gpu_share is not None and spec.gpu_share.memory > 0
        return id(spec), node if by_memory else -1

    def _amounts(self, spec: TaskSpec, node: int, counted: Mapping[str, int]) -> list[int]:
        asked = dict(spec.requests)
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
        """Give what all nodes have, as it counts for queues."""
        there = capacity_of(self.nodes, self.settings)
        return {r: there.get(r, 0) for r in self.resources}

    def named(self, amounts: Sequence[int], times: int = 1) -> dict[str, int]:
        """Give amounts by name, times something, without those that are nothing."""
        return {r: a * times for r, a in zip(self.resources, amounts, strict=True) if a * times}


def weighted(amounts: Mapping[str, int], prices: Mapping[str, float]) -> int:
    """Give resource-µs as millionths of a weighted resource-second."""
    return round(sum(prices.get(r, 0.0) * amount / UNITS.get(r, 1) for r, amount in amounts.items()))
