"""Random trees of queues with work running in them, on one machine that is large enough for all of it."""

from __future__ import annotations

from hypothesis import assume
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload

from tenure.model.checks.cluster import check_cluster
from tenure.model.settings import QuotaPreemptionSettings

MINUTE = 60 * SECOND


@st.composite
def trees(draw, *, levels, most, delays=(None, None, 0, 60 * SECOND)):
    """Draw a tree below one queue at the top; gives queues as plain keywords by name, parents first."""
    found = {"top": {"parent": None}}
    last = ["top"]
    for _ in range(draw(st.integers(1, levels - 1)) if levels > 1 else 0):
        following = []
        for parent in last:
            for number in range(draw(st.integers(0 if following else 1, 3))):
                if len(found) < most:
                    name = f"{parent}.{number}"
                    found[name] = {"parent": parent}
                    following.append(name)
        last = following
    for own in found.values():
        own["quota_preemption_delay"] = draw(st.sampled_from(delays))
    return found


@st.composite
def running(draw, name, leaves, *, memory):
    """Draw a workload that runs, as a whole or in part."""
    count = draw(st.sampled_from((1, 1, 1, 2, 3)))
    sizes = [spec(cpu=draw(st.integers(1, 6)), memory=draw(st.integers(1, 4)) if memory else 0)]
    sizes += [spec(cpu=draw(st.integers(1, 6)), memory=1) for _ in range(draw(st.integers(0, 2)) if memory else 0)]
    tasks = [
        task(
            f"{name}-{i}", sizes[i % len(sizes)], on="big", started_at=NOW - 30 * MINUTE,
            role=draw(st.sampled_from((None,) * 6 + ("originator",))),
            annotations=draw(st.sampled_from(({},) * 6 + ({"yunikorn.apache.org/allow-preemption": "false"},))),
            grace_period=draw(st.sampled_from((0, 30 * SECOND, 90 * SECOND))),
            never_terminates=draw(st.integers(0, 25)) == 0,
        )
        for i in range(count)
    ]  # fmt: skip
    return workload(
        name,
        tasks=tasks,
        queue=draw(st.sampled_from(leaves)),
        priority=draw(st.sampled_from((0, 0, 10, 50))),
        preemptible=draw(st.sampled_from((None, None, None, None, False))),
        min_member=draw(st.integers(1, count)),
        owner_kind=draw(st.sampled_from((None,) * 9 + ("DaemonSet",))),
        allow_preemption=draw(st.integers(0, 3)) > 0,
        allow_preemption_until=draw(st.sampled_from((None, NOW - SECOND, NOW + MINUTE, NOW + 10 * MINUTE))),
        running=draw(st.sampled_from((60, 600, 3000))),
        age=4000,
    )


@st.composite
def clusters(draw, *, levels=5, most=12, work=8, memory=True, delays=(None, None, 0, 60 * SECOND), **settings):
    """Draw a cluster in which some queues use more than their max."""
    tree = draw(trees(levels=levels, most=most, delays=delays))
    leaves = sorted(set(tree) - {own["parent"] for own in tree.values()})
    both = draw(st.booleans()) if memory else False
    made = [draw(running(f"w{i}", leaves, memory=both)) for i in range(draw(st.integers(1, work)))]
    uses = {name: _uses(name, tree, made) for name in tree}
    for name, own in tree.items():
        own["max"], own["guaranteed"] = draw(_limits(uses[name], tree, name)), {}
    for name in reversed(list(tree)):  # leaves first: a queue is guaranteed no less than those below it together
        own, below = tree[name], [n for n in tree if tree[n]["parent"] == name]
        for resource, held in uses[name].items():
            floor = sum(tree[n]["guaranteed"].get(resource, 0) for n in below)
            most_here = _bound(tree, name, resource)
            if draw(st.integers(0, 2)) == 0:
                drawn = draw(st.integers(0, held + 2))
                floor = max(floor, drawn if most_here is None else min(drawn, most_here))
                own["guaranteed"][resource] = floor
        own["reclaim_min_runtime"] = draw(st.sampled_from((None,) * 7 + (20 * MINUTE,)))
        own["max_opt_out"] = draw(st.sampled_from((None,) * 5 + (20 * MINUTE,)))
    found = cluster(
        [node("big", cpu=1000, memory=1000)],
        made,
        [queue(name, **own) for name, own in tree.items()],
        actions=("quota", "allocate"),
        quota_preemption=QuotaPreemptionSettings(
            enabled=True,
            inherit=draw(st.booleans()),
            overshoot=draw(st.sampled_from(("minimal", "minimal", "never"))),
            max_evictions_per_cycle=settings.pop("cap", None),
        ),
        **settings,
    )
    assume(all(finding.is_warning for finding in check_cluster(found)))
    return found


def _uses(name, tree, made):
    def inside(leaf):
        while leaf is not None and leaf != name:
            leaf = tree[leaf]["parent"]
        return leaf == name

    tasks = [t for w in made if inside(w.queue) for t in w.tasks]
    found = {"cpu": sum(dict(t.spec.requests)["cpu"] for t in tasks) // 1000}
    if any("memory" in dict(t.spec.requests) for t in tasks):
        found["memory"] = sum(dict(t.spec.requests)["memory"] for t in tasks) >> 30
    return found


@st.composite
def _limits(draw, uses, tree, name):
    found = {}
    for resource, held in uses.items():
        above = _bound(tree, tree[name]["parent"], resource)
        if draw(st.integers(0, 2)) != 1:
            drawn = draw(st.integers(0, held + 1))
            found[resource] = drawn if above is None else min(drawn, above)
    return found


def _bound(tree, name, resource):
    while name is not None:
        if resource in tree[name].get("max", {}):
            return tree[name]["max"][resource]
        name = tree[name]["parent"]
    return None
