"""No device of a node holds more than one GPU, and every share of a GPU says which device it is of."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain

import numpy as np

from tenure.model.node import Node
from tenure.model.values.resources import GPU, MILLI
from tenure.model.workload import TaskSpec
from tenure.simulator.checks.capacity import released_positions, seconds
from tenure.simulator.checks.columns import CheckedLog, Ints
from tenure.simulator.checks.findings import ViolationCollector
from tenure.simulator.checks.sums import Timeline, timeline

OVER_DEVICE = "device over capacity"
WRONG_DEVICES = "wrong devices"


def check_devices(history: CheckedLog, nodes: Sequence[Node], findings: ViolationCollector) -> None:
    """Sum the shares on each device, and count devices in use with whole GPUs whose devices are not named."""
    holdings = history.holdings
    specs = history.tasks.specs
    spec = history.tasks.spec[holdings.task]
    wants = np.array([_device_count(one) for one in specs], dtype=np.int64)[spec]
    shared = np.array([one.gpu_share is not None for one in specs], dtype=np.bool_)[spec]
    named = np.fromiter(map(len, holdings.devices), dtype=np.int64, count=len(holdings.devices))
    wrong = (named != wants) & ((named > 0) | shared)
    count = np.array([node.allocatable.get(GPU, 0) for node in nodes], dtype=np.int64)
    entry = np.repeat(np.arange(len(named)), named)
    device = np.fromiter(chain.from_iterable(holdings.devices), dtype=np.int64, count=int(named.sum()))
    inside = (device >= 0) & (device < count[holdings.node[entry]])
    wrong[entry[~inside]] = True
    findings.add(
        WRONG_DEVICES,
        np.flatnonzero(wrong),
        int(wrong.sum()),
        lambda index: (
            f"{history.name(int(holdings.task[index]))} asks for {int(wants[index])} devices of "
            f"{nodes[int(holdings.node[index])].name} and was given {list(holdings.devices[index])}"
        ),
    )
    entry, device = entry[inside], device[inside]
    in_use = _check_each_device(history, nodes, entry, device, findings)
    _check_unnamed(history, nodes, np.where(named == 0, wants, 0), in_use, findings)


def _device_count(spec: TaskSpec) -> int:
    return dict(spec.requests).get(GPU, 0) if spec.gpu_share is None else spec.gpu_share.devices


def _check_each_device(
    history: CheckedLog, nodes: Sequence[Node], entry: Ints, device: Ints, findings: ViolationCollector
) -> tuple[Ints, Ints, Ints, Ints]:
    """Compare each device with one GPU; give the changes of "in use": node, time, position, +1 or -1."""
    holdings = history.holdings
    widest = max((node.allocatable.get(GPU, 0) for node in nodes), default=0) + 1
    released = released_positions(history)
    times = timeline(
        holdings.node[entry] * widest + device,
        holdings.since[entry],
        holdings.until[entry],
        holdings.bound[entry],
        released[entry],
    )
    # The unit divides both a thousandth of a GPU and a byte of its memory, so that shares of both kinds add exactly.
    unit = np.array([MILLI * (node.gpu_memory or 1) for node in nodes], dtype=np.int64)
    weights = _weights(history, nodes, unit)
    node = times.group // widest
    used = times.running(weights[entry])
    over = times.rises(used > unit[node])
    findings.add(
        OVER_DEVICE,
        over,
        len(over),
        lambda index: (
            f"device {int(times.group[index] % widest)} of {nodes[int(node[index])].name} holds "
            f"{used[index] / unit[node[index]]:.3f} GPUs, at {seconds(int(times.at[index]))}"
        ),
    )
    busy = (used > 0).astype(np.int64)
    before = np.zeros_like(busy)
    before[1:] = np.where(times.first[1:], 0, busy[:-1])
    change = busy - before
    changed = np.flatnonzero(change)
    return node[changed], times.at[changed], times.position[changed], change[changed]


def _weights(history: CheckedLog, nodes: Sequence[Node], unit: Ints) -> Ints:
    """How much of one device each holding takes, in the node's unit."""
    holdings = history.holdings
    spec = history.tasks.spec[holdings.task]
    specs = history.tasks.specs
    milli = np.array([MILLI if one.gpu_share is None else one.gpu_share.milli for one in specs], dtype=np.int64)[spec]
    memory = np.array([0 if one.gpu_share is None else one.gpu_share.memory for one in specs], dtype=np.int64)[spec]
    known = np.array([node.gpu_memory is not None for node in nodes], dtype=np.bool_)
    of_node = unit[holdings.node]
    by_memory = np.where(known[holdings.node], memory * MILLI, of_node + 1)  # without gpuMemory it fits nowhere
    return np.where(memory > 0, by_memory, milli * (of_node // MILLI))


def _check_unnamed(
    history: CheckedLog,
    nodes: Sequence[Node],
    whole: Ints,
    in_use: tuple[Ints, Ints, Ints, Ints],
    findings: ViolationCollector,
) -> None:
    """Whole GPUs whose devices are not named, and devices in use, together are no more than a node has."""
    holders = np.flatnonzero(whole)
    if not len(holders):
        return
    holdings = history.holdings
    released = released_positions(history)
    stops = holders[holdings.until[holders] >= 0]
    node = np.concatenate((in_use[0], holdings.node[holders], holdings.node[stops]))
    at = np.concatenate((in_use[1], holdings.since[holders], holdings.until[stops]))
    position = np.concatenate((in_use[2], holdings.bound[holders], released[stops]))
    change = np.concatenate((in_use[3], whole[holders], -whole[stops]))
    order = np.lexsort((position, at, node))
    group, at, position, change = node[order], at[order], position[order], change[order]
    first = np.ones(len(group), dtype=np.bool_)
    first[1:] = group[1:] != group[:-1]
    times = Timeline(group, np.arange(len(group)), at, position, np.ones_like(group), first)
    used = times.running(change)
    count = np.array([one.allocatable.get(GPU, 0) for one in nodes], dtype=np.int64)
    over = times.rises(used > count[group])
    findings.add(
        OVER_DEVICE,
        over,
        len(over),
        lambda index: (
            f"{nodes[int(group[index])].name} has {int(used[index])} of {int(count[group[index]])} devices "
            f"in use, at {seconds(int(at[index]))}"
        ),
    )
