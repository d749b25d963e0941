"""Devices that pods ask for as extended resources of their own: what they count for queues, by default and as told."""

from __future__ import annotations

import pytest
from tests.builders import bound, cluster, codes, node, queue, spec, workload

from tenure.engine.audit import audit
from tenure.engine.cost import lost_amounts
from tenure.engine.snapshot import session_of
from tenure.model.device_resources import counts_of
from tenure.model.load import load_settings
from tenure.model.problems import InvalidInputError
from tenure.model.resources import GPU
from tenure.model.settings import Settings
from tenure.playthrough import play
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
        ("amd.com/gpu", {}),
    ],
)
def test_a_profile_counts_as_its_part_of_seven(resource, counted):
    assert dict(counts_of(resource, Settings())) == counted


def test_what_is_told_comes_first():
    told = Settings(device_resources={SMALL: {GPU: 250}, "amd.com/gpu": {GPU: 1000, "amd.com/gpu": 1}})
    assert dict(counts_of(SMALL, told)) == {GPU: 250}
    assert dict(counts_of("amd.com/gpu", told)) == {GPU: 1000}, "a device does not count as itself once more"


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
    assert session.total()[row] == 7 * 142
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
