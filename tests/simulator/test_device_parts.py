"""A part of a GPU that is a device of its own: what it counts in histories, in summaries and for the checker."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tests.builders import SECOND, cluster, node, queue, spec, workload
from tests.history.worlds import records_of, simulated

from tenure.model.values.resources import GPU
from tenure.model.workload import Checkpoint
from tenure.simulator.checker import check
from tenure.simulator.metrics import summarize
from tenure.simulator.traces.records import Trace, TraceJob

SMALL = "nvidia.com/mig-1g.10gb"
PART = 142
RUNTIME = 1_000


def of_parts(**settings):
    """A node with one GPU in seven parts; queue ``owed`` is owed five sevenths of it."""
    queues = [queue("owed", guaranteed={"gpu": 0.72}), queue("other")]
    made = cluster([node("n", cpu=64, extra={SMALL: 7})], [], queues, actions=("allocate", "reclaim"), **settings)
    return replace(made, now=0)


def trace():
    """Queue ``other`` takes all parts, each in a pod of its own; 100 s later the other asks for what it is owed."""
    jobs = [(f"w{i}", "other", 0) for i in range(7)] + [(f"v{i}", "owed", 100 * SECOND) for i in range(5)]
    return Trace("parts", tuple(_job(*job) for job in jobs))


def _job(name, whose, at):
    saves = Checkpoint(interval=None, restart_overhead=0)
    model = workload(name, of=spec(extra={SMALL: 1}), queue=whose, checkpoint=saves)
    return TraceJob(replace(model, created_at=at), RUNTIME * SECOND, name)


def held(records, queue_name):
    """What a queue held of GPUs and of parts, in resource-µs."""
    payloads = [json.loads(r.payload) for r in records if r.kind == "usage" and r.queue == queue_name]
    return {r: sum(p["held"].get(r, 0) for p in payloads) for r in (GPU, SMALL)}


@pytest.mark.parametrize(("told", "part"), [({}, PART), ({SMALL: {GPU: 250}}, 250), ({SMALL: {}}, 0)])
def test_usage_and_losses_count_a_part_as_a_part_of_a_gpu(told, part):
    """As many milli-GPU for each device as the setting says, of what is held and of what an eviction destroys."""
    records = records_of(of_parts(device_resources=told), trace())
    for name in ("owed", "other"):
        found = held(records, name)
        assert found[SMALL] > 0
        assert found[GPU] == part * found[SMALL]
    evicted = [json.loads(r.payload) for r in records if r.kind == "evicted"]
    assert bool(evicted) is bool(part), "what counts as no GPU is not owed to anybody"
    for payload in evicted:
        assert payload["lost"][SMALL] > 0
        assert payload["lost"].get(GPU, 0) == part * payload["lost"][SMALL]


def test_a_submission_says_what_it_counts_and_what_its_pods_ask_for():
    """The pods of a past cluster are made of the second: they take no GPU."""
    records = records_of(of_parts(), trace())
    payload = json.loads(next(r for r in records if r.kind == "submitted").payload)
    assert payload["ask"][GPU] == PART
    assert payload["specs"] == [[1, {name: amount for name, amount in payload["ask"].items() if name != GPU}]]


def test_the_capacity_of_a_history_has_the_parts():
    records = records_of(of_parts(), trace())
    usage = [json.loads(r.payload) for r in records if r.kind == "usage" and not r.queue]
    assert all(p["level"][GPU][2] == 7 * PART for p in usage)


def test_the_checker_counts_a_part_for_queues_and_not_for_nodes():
    """A queue with less than it holds is found; a node without a whole GPU is not over its capacity."""
    made = of_parts()
    log, _, _ = simulated(made, trace())
    assert not check(log, made.nodes, queues=made.queues, settings=made.settings).total
    low = (queue("owed"), queue("other", max={"gpu": 0.9}))
    found = check(log, made.nodes, queues=low, settings=made.settings)
    assert found.by_kind == {"queue over max": 1}
    uncounted = of_parts(device_resources={SMALL: {}})
    assert not check(log, made.nodes, queues=low, settings=uncounted.settings).total


def test_a_summary_has_the_parts_as_gpus():
    """Shares are of what all parts are; what is lost is 142 thousandths of a GPU for each second of a device."""
    made = of_parts()
    _, outcomes, _ = simulated(made, trace())
    told = summarize(outcomes, trace(), made.nodes, violations=0, wall_s=0.5)
    lost = told["lost"]
    gpu, parts = (next(v for k, v in lost.items() if k.startswith(name)) for name in (GPU, SMALL))
    assert parts > 0
    assert gpu == pytest.approx(parts * PART / 1000)


def test_devices_of_another_vendor_are_gpus_in_a_summary_and_for_the_checker():
    """A cluster of AMD's GPUs is told of as one of NVIDIA's would be."""
    spec_of = {"nvidia.com/gpu": spec(gpu=2), "amd.com/gpu": spec(extra={"amd.com/gpu": 2})}
    node_of = {"nvidia.com/gpu": {"gpu": 4}, "amd.com/gpu": {"extra": {"amd.com/gpu": 4}}}
    told = {}
    for name, asked in spec_of.items():
        queues = [queue("owed", guaranteed={"gpu": 4}), queue("other")]
        made = cluster([node("n", cpu=64, **node_of[name])], [], queues, actions=("allocate", "reclaim"))
        made = replace(made, now=0)
        models = [workload(f"w{n}", of=asked, queue="owed" if n else "other") for n in range(2)]
        jobs = [
            TraceJob(replace(m, created_at=n * 100 * SECOND), RUNTIME * SECOND, m.name) for n, m in enumerate(models)
        ]
        jobs.append(TraceJob(replace(models[1], name="w2", created_at=100 * SECOND), RUNTIME * SECOND, "w2"))
        run = Trace("vendor", tuple(jobs))
        log, outcomes, _ = simulated(made, run)
        assert not check(log, made.nodes, queues=made.queues, settings=made.settings).total
        low = (queue("owed", max={"gpu": 1}), queue("other"))
        assert check(log, made.nodes, queues=low, settings=made.settings).by_kind == {"queue over max": 1}
        found = summarize(outcomes, run, made.nodes, violations=0, wall_s=0.5)
        told[name] = found["lost"][GPU], found["goodput"][GPU], found["jain"]
    assert told["amd.com/gpu"] == told[GPU]
    assert told[GPU][0] > 0
