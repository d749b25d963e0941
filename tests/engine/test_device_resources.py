"""Devices that pods ask for as extended resources of their own: what they count for queues, by default and as told."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from tests.builders import bound, cluster, codes, node, queue, spec, workload

from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.engine.state.cost import cost, lost_amounts
from tenure.model.accelerators import GPU_PARTS
from tenure.model.checks.cluster import check_cluster
from tenure.model.device_resources import counts_of, vendors_apart
from tenure.model.devices import DeviceClass
from tenure.model.file.load import load_cluster, load_settings
from tenure.model.file.override import apply_overrides
from tenure.model.manifests.device_uses import class_counts
from tenure.model.settings import Settings
from tenure.model.values.problems import InvalidInputError
from tenure.model.values.resources import GPU
from tenure.playthrough import play
from tenure.rescheduler.problem.layout import LayoutTerms, LayoutWorth
from tenure.shields.budget import lost_of

SMALL = "nvidia.com/mig-1g.10gb"


def small(name, **more):
    """A workload that asks for the smallest part of a GPU by its profile."""
    return workload(name, of=spec(extra={SMALL: 1}), queue="q", **more)


def of_parts(*workloads, queues=None, **settings):
    """A node with one GPU in seven parts, and a queue that may have a third of a GPU."""
    return cluster([node("n", extra={SMALL: 7})], workloads, queues or [queue("q", max={"gpu": 0.3})], **settings)


@pytest.mark.parametrize(
    ("resource", "counted"),
    [
        (SMALL, {GPU: 142}),
        ("nvidia.com/mig-2g.20gb", {GPU: 285}),
        ("nvidia.com/mig-7g.80gb", {GPU: 1000}),
        ("nvidia.com/mig-1g.10gb.me", {GPU: 142}),
        ("nvidia.com/mig-8g.80gb", {}),
        ("nvidia.com/mig-1g", {}),
        ("example.com/mig-1g.10gb", {}),
        (GPU, {}),
        ("amd.com/gpu", {GPU: 1000}),
        ("amd.com/dpx_nps2", {GPU: 500}),
        ("amd.com/cpx_nps4", {GPU: 125}),
        ("gpu.intel.com/i915", {GPU: 1000}),
        ("gpu.intel.com/xe", {GPU: 1000}),
        ("google.com/tpu", {GPU: 1000}),
        ("aws.amazon.com/neuron", {GPU: 1000}),
        ("huawei.com/Ascend910", {GPU: 1000}),
        # the same devices once more, in another unit
        ("gpu.intel.com/xe_monitoring", {}),
        ("gpu.intel.com/memory.max", {}),
        ("aws.amazon.com/neuroncore", {}),
        ("huawei.com/Ascend910-memory", {}),
        ("example.com/gpu", {}),
        ("cpu", {}),
    ],
)
def test_a_device_counts_as_a_gpu_or_as_the_part_that_it_is(resource, counted):
    assert dict(counts_of(resource, Settings())) == counted


def test_what_is_told_comes_first():
    told = Settings(device_resources={SMALL: {GPU: 250}, "amd.com/gpu": {GPU: 1000, "amd.com/gpu": 1}})
    assert dict(counts_of(SMALL, told)) == {GPU: 250}
    assert dict(counts_of("amd.com/gpu", told)) == {GPU: 1000}, "a device does not count as itself once more"


@pytest.mark.parametrize(
    ("resource", "milli"),
    [
        ("x.com/gpu", 3),
        ("x.com/gpu-big", 2),
        ("x.com/gpus", 2),
        ("x.com/tpu", 1),
        ("amd.com/gpu", 4),
        ("x.comm/gpu", 0),
    ],
)
def test_a_name_comes_before_a_wildcard_and_a_longer_one_before_a_shorter(resource, milli):
    keys = {"x.com/*": 1, "x.com/gpu*": 2, "x.com/gpu": 3, "amd.com/*": 4}
    told = Settings(device_resources={key: {GPU: found} for key, found in keys.items()})
    assert counts_of(resource, told).get(GPU, 0) == milli


def test_a_queue_gets_no_more_parts_than_its_maximum_of_gpus():
    """Two parts of seven are less than 0.3 of a GPU, three are more."""
    played = play(of_parts(*(small(f"w{i}", age=9 - i) for i in range(3))))
    assert bound(played) == {"w0-0": "n", "w1-0": "n"}
    assert codes(played) == {"w2": ["OverMax"]}


def test_nothing_is_counted_where_the_setting_says_so():
    played = play(of_parts(*(small(f"w{i}") for i in range(3)), device_resources={SMALL: {}}))
    assert len(bound(played)) == 3


def test_parts_of_a_ready_node_are_part_of_what_is_shared():
    """And what runs there holds it, so that all counts agree."""
    session = session_of(of_parts(small("runs", on=["n"])))
    row = session.nodes.row[GPU]
    assert session.occupancy.total()[row] == 7 * 142
    assert session.queues.allocated[session.queues.index["q"]][row] == 142
    audit(session)


def test_what_an_eviction_destroys_is_what_a_budget_counts():
    """The log of evictions and the shield say the same: 142 thousandths of a GPU for each second of a device."""
    session = session_of(of_parts(small("runs", on=["n"])))
    (running,) = session.workloads["default/runs"].tasks
    told = lost_amounts(running.model.spec, 1_000_000, session.settings)
    assert told[GPU] == 142_000
    assert told == {name: amount for name, amount in lost_of(session, running, 1_000_000).items() if name in told}
    assert GPU not in lost_amounts(running.model.spec, 1_000_000, Settings(device_resources={SMALL: {}}))


def test_a_part_of_a_gpu_and_a_profile_add_up():
    """A task that asks for both counts both, where it waits and where it runs."""
    both = workload("both", of=spec(extra={SMALL: 1}, fraction=500), queue="q", on=["n"])
    session = session_of(cluster([node("n", gpu=1, extra={SMALL: 7})], [both], [queue("q")]))
    assert session.queues.allocated[session.queues.index["q"]][session.nodes.row[GPU]] == 642


def test_the_setting_is_read_from_a_file_and_an_error_has_its_place(tmp_path):
    path = tmp_path / "scheduler.yaml"
    head = "kind: SchedulerConfig\nscheduler:\n  deviceResources:\n"
    path.write_text(f"{head}    amd.com/gpu: {{nvidia.com/gpu: 500m}}\n")
    assert load_settings(path).device_resources == {"amd.com/gpu": {GPU: 500}}
    path.write_text(f"{head}    amd.com/gpu: {{nvidia.com/gpu: -1}}\n")
    with pytest.raises(InvalidInputError) as told:
        load_settings(path)
    assert "scheduler.yaml:4" in str(told.value)
    assert "deviceResources" in str(told.value)


@pytest.mark.parametrize(
    "key", ["*", "amd.com*", "*/gpu", "amd.com/*gpu", "amd.com/g*u", "amd.com/**", "a/b/*", "amd.com/"]
)
def test_a_wildcard_stands_at_the_end_after_a_domain(tmp_path, key):
    """So that nobody counts all resources as GPUs by mistake; the error names line and key, and says what is right."""
    path = tmp_path / "scheduler.yaml"
    path.write_text(f"kind: SchedulerConfig\nscheduler:\n  deviceResources:\n    '{key}': {{nvidia.com/gpu: 1}}\n")
    with pytest.raises(InvalidInputError) as told:
        load_settings(path)
    assert "scheduler.yaml:4" in str(told.value)
    assert f"'{key}'" in str(told.value)
    assert "such as gpu.intel.com/*" in str(told.value)


def of_amd(*workloads, many=8, queues=None, **settings):
    """A node with GPUs of AMD, and a queue."""
    return cluster([node("a", cpu=64, extra={"amd.com/gpu": many})], workloads, queues or [queue("q")], **settings)


def amd(name, many=1, **more):
    """A workload that asks for GPUs of AMD."""
    return workload(name, of=spec(extra={"amd.com/gpu": many}), **{"queue": "q", **more})


def test_a_maximum_of_gpus_holds_for_those_of_every_vendor():
    nodes = [node("a", cpu=64, extra={"amd.com/gpu": 8}), node("n", cpu=64, gpu=8)]
    jobs = [amd("amd", 2, age=9), workload("nvidia", of=spec(gpu=1), queue="q", age=8), amd("more", age=7)]
    of = [queue("q", max={"gpu": 3})]
    assert bound(play(cluster(nodes, jobs, of))) == {"amd-0": "a", "nvidia-0": "n"}
    apart = play(cluster(nodes, jobs, of, device_resources={"amd.com/*": {}}))
    assert bound(apart) == {"amd-0": "a", "nvidia-0": "n", "more-0": "a"}


def test_a_guarantee_of_gpus_is_kept_for_those_of_every_vendor():
    """What another queue borrowed is taken back, as with NVIDIA's, though no queue names AMD's."""
    queues = [queue("owed", guaranteed={"gpu": 4}), queue("other")]
    running = [amd(f"w{i}", queue="other", on=["a"], running=60) for i in range(8)]
    made = of_amd(*running, amd("wants", 4, queue="owed"), queues=queues, actions=("allocate", "reclaim"))
    played = play(made)
    assert len([step for step in played.steps if step.action == "evict"]) == 4
    assert "wants" not in {pending.workload for pending in played.pending}


def test_an_eviction_costs_what_the_device_of_any_vendor_costs():
    """A device-second is 1 by default, whoever made the device; a price of its own comes in addition."""
    amounts = {}
    for name, extra in ((GPU, {}), ("amd.com/gpu", {}), ("example.com/gpu", {})):
        made = cluster(
            [node("n", cpu=64, extra={name: 8})],
            [workload("w", of=spec(cpu=0, extra={name: 2}), queue="q", on=["n"], running=100)], [queue("q")], **extra,
        )  # fmt: skip
        session = session_of(made)
        (running,) = session.workloads["default/w"].tasks
        amounts[name] = cost(session, running)
    assert amounts == {GPU: 200_000_000, "amd.com/gpu": 200_000_000, "example.com/gpu": 0}


def test_a_node_is_worth_what_its_devices_are_worth_whoever_made_them():
    """Else the layout of a cluster of AMD's GPUs would be improved by its CPUs alone."""
    nodes = [node("a", extra={"amd.com/gpu": 8}), node("n", gpu=8), node("x", extra={"example.com/gpu": 8})]
    worth = LayoutWorth(session_of(cluster(nodes)), LayoutTerms(packed=1.0)).price
    assert worth.tolist() == pytest.approx([8.4, 8.4, 0.4])


def test_devices_of_a_claim_count_as_their_extended_resource_does():
    """A class that stands for GPUs of AMD counts as one GPU beside; what is said of the class comes first."""
    known = DeviceClass(name="amd", extended_resource="amd.com/gpu")
    assert class_counts([known], Settings()) == {"amd": {"amd.com/gpu": 1, GPU: 1000}}
    told = Settings(device_classes={"amd": {GPU: 500}})
    assert class_counts([known], told) == {"amd": {GPU: 500}}
    assert class_counts([known], Settings(device_resources={"amd.com/gpu": {}})) == {"amd": {"amd.com/gpu": 1}}


@pytest.mark.parametrize(
    ("told", "is_said"),
    [({}, True), ({"amd.com/gpu": {}}, False), ({"amd.com/*": {GPU: 1000}}, False), ({"x.com/gpu": {}}, True)],
)
def test_a_cluster_of_two_vendors_is_told_that_their_gpus_count_together(told, is_said):
    """Where a queue has amounts of NVIDIA's GPUs, until the setting says what is meant."""
    nodes = [node("a", extra={"amd.com/gpu": 8}), node("n", gpu=8)]
    found = list(check_cluster(cluster(nodes, [], [queue("q", max={"gpu": 8})], device_resources=told)))
    assert all(finding.is_warning for finding in found)
    words = (
        "nvidia.com/gpu counts GPUs of all vendors, and nodes have amd.com/gpu beside it; write deviceResources: "
        "{amd.com/gpu: {}} to count these apart, or {amd.com/gpu: {nvidia.com/gpu: 1}} if they are meant"
    )
    assert [finding.message for finding in found if "amd.com/gpu" in finding.message] == ([words] if is_said else [])


TWO_VENDORS = """
apiVersion: tenure.dev/v1beta1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes:
- {name: n, allocatable: {cpu: 64, nvidia.com/gpu: 8}}
- {name: a, allocatable: {cpu: 64, amd.com/gpu: 8}}
queues:
- {name: q, max: {nvidia.com/gpu: 2, amd.com/gpu: 4}}
- {name: other}
workloads:
- {name: nvidia, queue: q, replicas: 2, requests: {nvidia.com/gpu: 1}}
- {name: amd, queue: q, replicas: 2, requests: {amd.com/gpu: 2}}
"""


def test_amounts_of_two_vendors_are_amounts_of_two_things(tmp_path):
    """As in a ClusterQueue with two flavours: GPUs of one vendor are not taken from what is for the other."""
    path = tmp_path / "cluster.yaml"
    path.write_text(TWO_VENDORS)
    loaded = load_cluster(path)
    assert loaded.warnings == ()
    assert loaded.cluster.settings.device_resources == {"amd.com/gpu": {}}
    assert len(bound(play(loaded.cluster))) == 4
    path.write_text(TWO_VENDORS.replace(", amd.com/gpu: 4", ""))
    together = load_cluster(path)
    assert "counts GPUs of all vendors" in together.warnings[0].message
    assert len(bound(play(together.cluster))) == 2
    named = apply_overrides(together.cluster, ["queue.q.max.amd.com/gpu=4"]).cluster
    assert len(bound(play(named))) == 4


@pytest.mark.parametrize("told", [{"amd.com/gpu": {GPU: 500}}, {"amd.com/*": {GPU: 500}}])
def test_what_is_set_of_a_vendor_holds_whatever_queues_name(told):
    queues = [queue("a", max={"gpu": 1}), queue("b", guaranteed={"amd.com/gpu": 1, "nvidia.com/mig-1g.10gb": 1})]
    assert vendors_apart(Settings(device_resources=told), queues).device_resources == told
    assert vendors_apart(Settings(), queues).device_resources == {"amd.com/gpu": {}}, "a part of NVIDIA's stays a part"
    assert vendors_apart(Settings(), queues[1:]) == Settings(), "nothing else is called a GPU"


def test_one_vendor_or_no_amounts_of_gpus_need_no_warning():
    both = [node("a", extra={"amd.com/gpu": 8}), node("n", gpu=8)]
    assert list(check_cluster(cluster(both, [], [queue("q")]))) == []
    assert list(check_cluster(of_amd(queues=[queue("q", guaranteed={"gpu": 8})]))) == [], "8 GPUs are there"
    (short,) = check_cluster(of_amd(queues=[queue("q", guaranteed={"gpu": 9})]))
    assert "guaranteed 9 of nvidia.com/gpu together, more than the 8 that all nodes have" in short.message


def test_the_page_has_every_device_that_counts_by_default():
    """Each row of the table says what a device counts, in parts of a GPU."""
    page = Path("docs/integrations/gpu-parts.md").read_text(encoding="utf-8")
    told = {}
    for row in re.findall(r"^\| (`.*`) \| (1|1/\d|\d/7) \|", page, re.MULTILINE):
        over, _, under = row[1].partition("/")
        told |= {name: int(over) * 1000 // int(under or 1) for name in re.findall(r"`([^`]+)`", row[0])}
    assert told == dict(GPU_PARTS)
