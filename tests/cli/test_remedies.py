"""What ``tenure explain`` says would help is done, and helps."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, cluster, node, queue, spec, workload

from tenure.engine.plan import Reason
from tenure.engine.reserved_start import RESERVED
from tenure.explanation.explain import explain_workload
from tenure.explanation.remedies import what_helps
from tenure.fairness import reclaiming
from tenure.model.duration import parse_time
from tenure.model.quantity import parse_quantity
from tenure.model.workload import Workload
from tenure.playthrough import play
from tenure.requeue.rules import DESERVING
from tenure.shields import opt_out, policy, preemptibility, recreated, short
from tenure.victims import dry_run
from tenure.victims.aftermath import TAKEN_AGAIN
from tenure.victims.rules import PRIORITY

MAX = re.compile(r"a max of (\S+) (cores?) or more for queue (\S+?)(?:,|$)")
LESS = re.compile(r"(\S+) (cores?) less used in queue (\S+), or a max that is higher by as much")
NODE = re.compile(r"one node that admits it and has (.+?) free(?:, and as much for each of the (\d+) tasks)?")
UNTIL = re.compile(r"to wait: from (\S+) on,|to wait until (\S+): until then")
CORES = {"core": "cpu", "cores": "cpu"}


def helps(found, name):
    """What is said of one workload."""
    played = play(found)
    item = next(w for w in found.workloads if w.name == name)
    return played, explain_workload(played, item).helps


def applied(found, said):
    """The cluster with all of it done; how many sentences were understood."""
    queues, nodes, done = {q.name: q for q in found.queues}, list(found.nodes), 0
    for text in said:
        if match := MAX.search(text):
            most, unit, name = match.groups()
            resource = CORES[unit]
            wanted = {**queues[name].max, resource: parse_quantity(most, resource)}
        elif match := LESS.search(text):
            amount, unit, name = match.groups()
            resource = CORES[unit]
            more = parse_quantity(amount, resource)
            wanted = {**queues[name].max, resource: queues[name].max[resource] + more}
        elif match := NODE.search(text):
            free, tasks = match.groups()
            has = {CORES[unit]: amount for amount, unit in (part.split(" ") for part in free.split(" and "))}
            nodes += [
                node(f"new{len(nodes)}", cpu=0, extra={r: parse_quantity(a, r) for r, a in has.items()})
                for _ in range(int(tasks or 1))
            ]
            done += 1
            continue
        else:
            continue
        queues[name] = replace(queues[name], max=wanted)
        done += 1
    return replace(found, queues=tuple(queues.values()), nodes=tuple(nodes)), done


@st.composite
def crowded(draw):
    """A few queues with a max, nodes that are partly full, and some that wait."""
    work, nodes = [], []
    for number in range(draw(st.integers(1, 2))):
        size, name = draw(st.integers(2, 6)), f"n{number}"
        nodes.append(node(name, cpu=size))
        taken = draw(st.integers(0, size))
        if taken:
            work.append(workload(f"r{number}", of=spec(cpu=taken), on=[name], queue=draw(LEAVES), running=60))
    for number in range(draw(st.integers(1, 3))):
        tasks = draw(st.sampled_from((1, 1, 2)))
        of = spec(cpu=draw(st.integers(1, 6)))
        work.append(workload(f"w{number}", tasks=tasks, of=of, queue=draw(LEAVES), age=draw(st.integers(0, 9))))
    top = draw(st.sampled_from((None, 4, 8)))
    below = draw(st.sampled_from((None, 2, 3)))
    queues = [
        queue("top", max=None if top is None else {"cpu": top}),
        queue("a", "top", max=None if below is None else {"cpu": below}),
        queue("b", "top"),
    ]
    return cluster(nodes, work, queues)


LEAVES = st.sampled_from("ab")


@settings(max_examples=200, deadline=None)
@given(crowded())
def test_with_all_that_is_said_done_it_starts_unless_another_comes_before_it(found):
    """Each maximum raised as it says, each node added as it says: nothing of it was too little."""
    waiting = [w.name for w in found.workloads if w.started_at is None]
    before = {s.workload for s in play(found).steps if s.action == "bind"}
    name = waiting[-1]
    assume(f"default/{name}" not in before)
    _, said = helps(found, name)
    changed, done = applied(found, said)
    assume(done == len(said))
    event("tried")
    played = play(changed)
    starts = {s.workload for s in played.steps if s.action == "bind"}
    others = starts - before - {f"default/{name}"}
    assert f"default/{name}" in starts or others, said


def test_a_max_counts_what_the_queue_holds():
    """Not the request alone: with that it would still wait."""
    work = [workload("r", of=spec(cpu=3), on="n", queue="q", running=60), workload("w", of=spec(cpu=5), queue="q")]
    found = cluster([node("n", cpu=9)], work, [queue("q", max={"cpu": 4})])
    _, said = helps(found, "w")
    assert said == (
        "a max of 8 cores or more for queue q, which holds 3, and that no workload before it takes the room",
    )
    changed, _ = applied(found, said)
    assert [s.workload for s in play(changed).steps] == ["default/w"]


def test_waiting_until_then_lifts_what_it_names():
    """A minimum runtime and a preemption delay end when they say."""
    work = [
        workload("r", of=spec(cpu=4), on="n", queue="q", running=60),
        workload("w", of=spec(cpu=4), queue="q", priority=50, preemption_delay=90_000_000),
    ]
    found = cluster(
        [node("n", cpu=4)], work, [queue("q", preempt_min_runtime=300_000_000)], actions=("allocate", "preempt")
    )
    for _ in range(2):
        _, said = helps(found, "w")
        times = [t for text in said for match in UNTIL.finditer(text) for t in match.groups() if t]
        assert times, said
        found = replace(found, now=max(parse_time(t) for t in times))
    assert found.now == NOW + 240 * 1_000_000
    assert {s.workload for s in play(found).steps if s.action == "evict"} == {"default/r"}


NO_END = (
    dry_run.IN_VAIN, dry_run.NO_LANDING, dry_run.NO_ROOM, dry_run.TAKES_BACK, TAKEN_AGAIN, RESERVED, DESERVING,
    PRIORITY, preemptibility.SHIELD, preemptibility.NODE_OWNED, short.SHIELD, recreated.SHIELD, opt_out.SHIELD,
    policy.FENCE, policy.DISABLED, reclaiming.GUARANTEED, reclaiming.FAIR_SHARE, reclaiming.FULLNESS,
)  # fmt: skip
"""What Tenure itself refuses a victim for, with no time at which that ends."""


@pytest.mark.parametrize("shield", NO_END)
def test_of_each_shield_of_its_own_it_is_said_what_would_lift_it(shield):
    entry = {"shield": shield, "workload": "default/victim", "until": None}
    reason = Reason("ShieldedVictims", "…", {"cause": "reclaim", "shields": [entry]})
    (said,) = what_helps((reason,), Workload(name="w", queue="q"))
    assert said.startswith("for reclaim, ")
    assert "plugin" not in said
