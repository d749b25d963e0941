"""What nodes hold, counted the plain way: sums over tasks, nothing of the engine."""

from __future__ import annotations

from collections import Counter

from tenure.model.values.resources import CPU, GPU, MEMORY, PODS

__all__ = ["CPU", "GPU", "MEMORY", "NodeLedger", "milli_on"]


def milli_on(spec, node):
    """Milli-GPU of each device that a part of a GPU is on this node, rounded up; None if it fits none of them."""
    share = spec.gpu_share
    if not node.allocatable.get(GPU):
        return None
    if share.milli:
        return share.milli
    if not node.gpu_memory or share.memory > node.gpu_memory:
        return None
    return -(-share.memory * 1000 // node.gpu_memory)


class NodeLedger:
    """What one node has and what is taken of it. Devices in milli-GPU."""

    def __init__(self, node):
        self.node = node
        self.used = Counter()
        self.devices = [0] * node.allocatable.get(GPU, 0)

    def take(self, spec, devices):
        """Count a task in, whether it fits or not."""
        self.used[PODS] += 1
        for name, amount in spec.requests:
            if name != GPU:
                self.used[name] += amount
        for device in devices:
            self.devices[device] += 1000 if spec.gpu_share is None else milli_on(spec, self.node)

    def over(self):
        """Give what more is taken of than there is, with how much is taken."""
        there = {PODS: 1 << 40, **self.node.allocatable}
        found = {name: amount for name, amount in self.used.items() if amount > there.get(name, 0)}
        return found | {f"device {i}": milli for i, milli in enumerate(self.devices) if milli > 1000}

    def choose(self, spec):
        """Give devices for a task that fits, None if it does not."""
        there = {PODS: 1 << 40, **self.node.allocatable}
        wanted = {name: amount for name, amount in spec.requests if amount and name != GPU}
        wanted[PODS] = wanted.get(PODS, 0) + 1
        if any(self.used[name] + amount > there.get(name, 0) for name, amount in wanted.items()):
            return None
        whole = dict(spec.requests).get(GPU, 0)
        count, milli = (whole, 1000) if spec.gpu_share is None else (spec.gpu_share.devices, milli_on(spec, self.node))
        if milli is None:
            return None
        fits = [i for i, taken in enumerate(self.devices) if taken + milli <= 1000][:count]
        return tuple(fits) if len(fits) == count else None
