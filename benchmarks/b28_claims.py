"""B28: 4,000 claims on devices are allocated in one cycle, on 1,000 nodes with 8 devices each.

Each pod has a claim of its own, as a template makes them, for one device or two; the selectors are expressions, and no
two devices are equal (each has its uuid). In the second row the devices of a claim have to be alike in an attribute, so
that they are searched for node by node. What is measured is the whole of it: the session, the cycle, the plan.

    python benchmarks/b28_claims.py [--nodes 1000] [--claims 4000]
"""

from __future__ import annotations

import argparse

from common import measure, print_table
from results import Results
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.devices import (
    CelExpression,
    Device,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceInventory,
    DevicePoolName,
    DeviceRequest,
    DeviceSelector,
    DeviceSlice,
    ExactDevices,
)
from tenure.model.manifests.device_uses import with_device_uses
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Task, TaskSpec, Workload

NOW = 1_795_200_000_000_000
DEVICES = 8
DRIVER = "gpu.example.com"
GIB = (1 << 30) * 10**9


def device_slice(number: int) -> DeviceSlice:
    """Give the devices of a node."""
    devices = tuple(
        Device(
            name=f"gpu-{i}",
            attributes={
                "model": DeviceAttribute(text="h100" if number % 4 else "a100"),
                "numa": DeviceAttribute(number=i // 4),
                "uuid": DeviceAttribute(text=f"{number}-{i}"),
            },
            capacity={"memory": DeviceCapacity(value=80 * GIB)},
        )
        for i in range(DEVICES)
    )
    name = f"node-{number:04}"
    return DeviceSlice(name=name, driver=DRIVER, pool=DevicePoolName(name=name), node=name, devices=devices)


def selector(expression: str) -> DeviceSelector:
    """Give a selector."""
    return DeviceSelector(cel=CelExpression(expression=expression))


def cluster_of(nodes: int, claims: int, *, is_alike: bool) -> Cluster:
    """Give nodes, and pods that wait with a claim each."""
    large = selector(f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0')
    constraints = (DeviceConstraint(match_attribute=f"{DRIVER}/numa"),) if is_alike else ()
    made = tuple(
        DeviceClaim(
            name=f"claim-{i:05}",
            requests=(
                DeviceRequest(name="gpus", exactly=ExactDevices(class_name="gpu", selectors=(large,), count=1 + i % 2)),
            ),
            constraints=constraints,
        )
        for i in range(claims)
    )
    found = DeviceClass(name="gpu", selectors=(selector(f'device.driver == "{DRIVER}"'),))
    workloads = tuple(
        Workload(
            name=f"w-{i:05}",
            queue="q",
            created_at=NOW,
            min_member=1,
            tasks=(Task(name="t", spec=TaskSpec(requests=(("cpu", 1000),), resource_claims=(claim.name,))),),
        )
        for i, claim in enumerate(made)
    )
    inventory = DeviceInventory(slices=tuple(map(device_slice, range(nodes))), classes=(found,), claims=made)
    shape = {"cpu": 64_000, "pods": 110}
    there = tuple(Node(name=f"node-{i:04}", allocatable=shape) for i in range(nodes))
    return with_device_uses(
        Cluster(now=NOW, nodes=there, queues=(Queue(name="q"),), workloads=workloads, devices=inventory)
    )


def run(results: Results, title: str, nodes: int, claims: int, *, is_alike: bool) -> list[object]:
    """Time a cycle; every claim gets its devices, and no device is given out twice."""
    cluster = cluster_of(nodes, claims, is_alike=is_alike)
    plans: list[Plan] = []
    taken = measure(lambda: plans.append(Scheduler(session_of(cluster)).cycle(NOW)))
    given = [d.key for s in plans[0].steps for c in s.claims for d in c.allocation.devices]
    assert len(plans[0].steps) == claims, f"{len(plans[0].steps)} of {claims} pods were placed"
    assert len(given) == len(set(given)) == sum(1 + i % 2 for i in range(claims))
    results.add(f"{claims:,} claims on {8 * nodes:,} devices, {title}", taken.cpu, "s", at_most=5)
    return [title, f"{taken.wall:.2f} s", f"{taken.cpu:.2f} s", "5 s", claims, len(given)]


def main() -> None:
    """Print one line for each kind of claims."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--claims", type=int, default=4000)
    asked = parser.parse_args()
    results = Results("B28")
    rows = [
        run(results, "counts", asked.nodes, asked.claims, is_alike=False),
        run(results, "alike in an attribute", asked.nodes, asked.claims, is_alike=True),
    ]
    results.write()
    print_table("B28 claims on devices: one cycle", ["", "wall", "processor", "goal", "claims", "devices"], rows)


if __name__ == "__main__":
    main()
