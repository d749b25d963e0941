"""Random values of every kind of field, found by reflection: a new field is covered without a word here."""

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from tenure.model.cluster import Cluster, DisruptionBudget, Eviction
from tenure.model.devices import (
    AlternativeDevices,
    Device,
    DeviceAttribute,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceInventory,
    DeviceRequest,
    DeviceSlice,
    ExactDevices,
)
from tenure.model.entries import PortKind
from tenure.model.fields import containers, kinds
from tenure.model.fields.containers import AmountsKind
from tenure.model.fields.records import RecordKind, check_value, fields_of
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.selectors import HostPort
from tenure.model.settings import Settings
from tenure.model.values.report import ProblemReport
from tenure.model.volumes import Storage, StorageCapacity, StorageClass, StorageDriver, Volume, VolumeClaim
from tenure.model.workload import GpuShare, Phase, SubGroup, Task, TaskSpec, Workload

GPU = "nvidia.com/gpu"
FIRST_TIME, LAST_TIME = -62_135_596_800_000_000, 253_402_300_799_999_999

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["off", "no", "010", "1_000", "1e3", "null", "~", "2026-11-20T10:00:00Z", "a: b", "- x", "<<", "=", "\x85", "\t"]
)
names = st.text("abc-.19é", min_size=1, max_size=4)
resources = st.sampled_from(["cpu", "memory", "pods", GPU, "example.com/fpga"])
amounts = st.integers(0, 2**63 - 1) | st.integers(0, 10_000)


def values_of(kind):
    """Give a strategy for the values of a kind."""
    for cls, make in MAKERS.items():
        if type(kind) is cls:
            return make(kind)
    raise AssertionError(f"no strategy for {kind}")


def _amounts(kind):
    whole = st.dictionaries(resources, amounts, max_size=3)
    if kind.pairs:
        return whole.map(lambda found: tuple(sorted((r, n) for r, n in found.items() if n)))
    return whole


def _one_or_map(kind):
    return values_of(kind.one) | values_of(kind.many)


def _tuples(kind):
    return st.lists(values_of(kind.items), max_size=2, unique=kind.distinct).map(tuple)


MAKERS = {
    kinds.TextKind: lambda _: texts,
    kinds.NameKind: lambda _: names,
    kinds.ResourceNamesKind: lambda _: st.sampled_from(["amd.com/gpu", "gpu.intel.com/*", "example.com/fpga-*", "x"]),
    kinds.BooleanKind: lambda _: st.booleans(),
    kinds.IntegerKind: lambda kind: st.integers(kind.low, kind.high),
    kinds.NumberKind: lambda kind: st.floats(kind.low, min(kind.high, 1e300), exclude_min=kind.open_low).map(abs),
    kinds.ChoiceKind: lambda kind: st.sampled_from(list(kind.values.values())),
    kinds.DurationKind: lambda kind: st.integers(-(2**63) + 1 if kind.signed else int(kind.positive), 2**63 - 1),
    kinds.TimeKind: lambda _: st.integers(FIRST_TIME, LAST_TIME),
    kinds.ShareKind: lambda _: st.floats(0, 1).map(abs),
    kinds.CountOrPercent: lambda _: st.integers(0, 2**31 - 1) | st.integers(0, 100).map("{}%".format),
    kinds.ConstantKind: lambda _: st.booleans(),
    containers.QuantityKind: lambda _: amounts,
    containers.NanoQuantityKind: lambda _: amounts,
    AmountsKind: _amounts,
    containers.PairsKind: lambda _: st.dictionaries(texts, texts, max_size=2).map(lambda d: tuple(sorted(d.items()))),
    containers.MapKind: lambda kind: st.dictionaries(values_of(kind.keys), values_of(kind.values), max_size=2),
    containers.ListKind: _tuples,
    containers.OneOrMap: _one_or_map,
    containers.WrappedKind: lambda kind: values_of(kind.inner),
    PortKind: lambda _: objects(HostPort),
    RecordKind: lambda kind: objects(kind.cls),
}


def objects(cls, **given):
    """Give a strategy for valid objects of a dataclass: a few fields at random, the others by default."""
    return _plain_objects(cls) if not given else _objects(cls, given).filter(_is_valid)


@cache
def _plain_objects(cls):
    return _objects(cls, {}).filter(_is_valid)


@cache
def _fields(cls):
    """Give the fields of a dataclass: to read its types takes longer than to draw values of them."""
    return tuple(fields_of(cls))


@cache
def _values(cls, attribute):
    return values_of(next(field.kind for field in _fields(cls) if field.attribute == attribute))


@cache
def _places(count):
    return st.sets(st.integers(0, count - 1), max_size=4)


@st.composite
def _objects(draw, cls, given):
    listed = [field for field in _fields(cls) if field.attribute not in given]
    optional = [field for field in listed if not field.required]
    places = draw(_places(len(optional))) if optional else ()
    chosen = {optional[place].key for place in places}
    made = {
        field.attribute: draw(_values(cls, field.attribute))
        for field in listed
        if field.required or field.key in chosen
    }
    return cls(**made, **{name: draw(values) for name, values in given.items()})


def _is_valid(value):
    report = ProblemReport()
    check_value(value, None, report)
    return not report.problems


settings = st.deferred(lambda: objects(Settings))
shares = st.none() | st.builds(GpuShare, milli=st.integers(1, 1000), devices=st.integers(1, 8))
shares |= st.builds(GpuShare, memory=st.integers(1, 2**40), devices=st.integers(1, 8))


shared_specs = objects(
    TaskSpec, gpu_share=shares, mounts=st.just(()), device_uses=st.just(()), counted=st.just(()), extended=st.just(())
)


@st.composite
def specs(draw):
    """Draw what a task asks for: whole GPUs or a part of some."""
    spec = draw(shared_specs)
    if spec.gpu_share is not None:
        spec = replace(spec, requests=tuple(pair for pair in spec.requests if pair[0] != GPU))
    return spec


machines = st.lists(objects(Node), max_size=3, unique_by=lambda node: node.name)
named = st.lists(st.tuples(names, names), max_size=3, unique=True)
budgets = st.lists(objects(DisruptionBudget), max_size=2, unique_by=lambda b: (b.namespace, b.name))
evictions = st.lists(objects(Eviction), max_size=2)


@st.composite
def clusters(draw):
    """Draw a cluster that a file can describe."""
    nodes = draw(machines)
    there = [node for node in nodes if node.awaited_until is None]
    queues = draw(queue_trees())
    keys = draw(named)
    parents = {queue.parent for queue in queues}
    leaves = [queue.name for queue in queues if queue.name not in parents] or ["default"]
    return Cluster(
        now=draw(values_of(kinds.TimeKind())),
        settings=draw(settings),
        nodes=tuple(nodes),
        queues=tuple(queues),
        workloads=tuple(draw(workloads(key, leaves, there)) for key in keys),
        disruption_budgets=tuple(_one_bound(budget) for budget in draw(budgets)),
        evictions=tuple(draw(evictions)),
        storage=draw(stores()),
        devices=draw(inventories()),
    )


@cache
def stores():
    """Give a strategy for the storage of a cluster."""

    def some(kind, key):
        return st.lists(objects(kind), max_size=2, unique_by=key).map(tuple)

    return st.builds(
        Storage,
        volumes=some(Volume, lambda v: v.name),
        claims=some(VolumeClaim, lambda c: c.key),
        storage_classes=some(StorageClass, lambda c: c.name),
        drivers=some(StorageDriver, lambda d: d.name),
        capacities=some(StorageCapacity, str),
    )


@cache
def inventories():
    """Give a strategy for slices and classes of devices, and claims on these."""
    attribute = st.sampled_from(("text", "number", "flag", "version")).flatmap(_attribute)
    device = objects(Device, attributes=st.dictionaries(texts, attribute, max_size=2))
    place = {"node": names, "nodes": st.none()} | dict.fromkeys(
        ("on_all_nodes", "is_per_device"), st.sampled_from([False])
    )
    slices = objects(DeviceSlice, devices=st.lists(device, max_size=2).map(tuple), **place)
    alternatives = st.lists(objects(AlternativeDevices), min_size=1, max_size=2).map(tuple)
    request = objects(DeviceRequest, exactly=objects(ExactDevices), first_available=st.just(()))
    request |= objects(DeviceRequest, exactly=st.none(), first_available=alternatives)
    requests = st.lists(request, max_size=2).map(tuple)
    alike = st.builds(DeviceConstraint, match_attribute=st.just("a/b"), requests=st.just(("r",)))
    claims = objects(DeviceClaim, requests=requests, constraints=st.lists(alike, max_size=1).map(tuple))
    return st.builds(
        DeviceInventory,
        slices=st.lists(slices, max_size=2, unique_by=lambda s: s.name).map(tuple),
        classes=st.lists(objects(DeviceClass), max_size=2, unique_by=lambda c: c.name).map(tuple),
        claims=st.lists(claims, max_size=2, unique_by=lambda c: c.key).map(tuple),
    )


def _attribute(name):
    kind = next(field.kind for field in fields_of(DeviceAttribute) if field.attribute == name)
    return st.builds(DeviceAttribute, **{name: values_of(kind)})


def _one_bound(budget):
    if budget.min_available is None and budget.max_unavailable is None:
        return replace(budget, min_available=1)
    return replace(budget, max_unavailable=None) if budget.min_available is not None else budget


some_queues = st.lists(objects(Queue, parent=st.none()), max_size=4, unique_by=lambda queue: queue.name)


@st.composite
def queue_trees(draw):
    """Draw queues, each below an earlier one or none, that guarantee nothing and allow no more than those above."""
    queues = draw(some_queues)
    tree = []
    for queue in queues:
        parent = draw(st.none() | st.sampled_from(tree)) if tree else None
        limits = {} if parent is None else parent.max
        allowed = {**limits, **{r: min(n, limits.get(r, n)) for r, n in queue.max.items()}}
        tree.append(replace(queue, parent=parent and parent.name, guaranteed={}, max=allowed))
    return tree


specs_or_none = st.none() | specs()


@st.composite
def workloads(draw, key, leaves, nodes):
    """Draw a workload of one queue, with tasks on the nodes."""
    namespace, name = key
    shared = draw(specs_or_none)
    in_groups = draw(st.booleans())
    ordered = draw(st.booleans())
    tasks = []
    for number in range(draw(st.integers(0, 3))):
        spec = draw(specs()) if shared is None else shared
        task = draw(tasks_of(spec, nodes))
        tasks.append(
            replace(
                task,
                name=f"{name}-{number}",
                sub_group="a" if in_groups else None,
                order=number if ordered else None,
            )
        )
    own = objects(
        Workload,
        name=st.just(name),
        namespace=st.just(namespace),
        queue=st.sampled_from(leaves),
        tasks=st.just(tuple(tasks)),
        sub_groups=st.just((SubGroup(name="a"),) if in_groups else ()),
        min_sub_group=st.none(),
    )
    return draw(own)


@st.composite
def tasks_of(draw, spec, nodes):
    """Draw a task: placed where it can be, else pending."""
    plain = draw(st.booleans())
    if plain:
        return Task(name="x", spec=spec)
    task = draw(
        objects(Task, spec=st.just(spec), devices=st.just(()), nominated=st.none(), phase=st.just(Phase.PENDING))
    )
    if nodes and spec.gpu_share is None:
        phase = draw(st.sampled_from(list(Phase)))
        is_placed = phase in (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
        return replace(task, phase=phase, node=draw(st.sampled_from(nodes)).name if is_placed else None)
    return replace(task, node=None)
