"""What is said would help where random clusters seldom say it: reservations, nodes to come, claims, who comes first."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload
from tests.cli.trying_remedies import try_all
from tests.engine.test_devices import GPU, asked, device, local
from tests.engine.test_devices import claim as device_claim
from tests.engine.test_devices import cluster as with_devices
from tests.engine.test_devices import workload as using_devices
from tests.engine.test_volumes import claim, mounting, stored, volume, zones
from tests.shields.test_breaker import contended, outcome

from tenure.explanation.explain import explain_workload
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.selectors import Topology
from tenure.model.settings import DEFAULT_ACTIONS, QuotaPreemptionSettings
from tenure.model.values.resources import CPU
from tenure.playthrough import play

MINUTE = 60 * SECOND
FULL = workload("r", of=spec(cpu=4), on="n", running=9000)


def told(found, name):
    """Why a workload waits, by code, and what it is told would help, all of which is tried that can be."""
    played = play(found)
    item = next(w for w in found.workloads if w.name == name)
    story = explain_workload(played, item)
    return {r.code: r for r in story.reasons}, story.helps, tuple(try_all(found, played, item))


def test_who_waits_for_a_reservation_of_another_may_end_before_it():
    """It names who has it, and from when on; what ends by then may start."""
    work = [
        workload("r", of=spec(cpu=2), on="n", running=60, expected_runtime=100),
        workload("large", of=spec(cpu=4), age=20, expected_runtime=50),
        workload("small", of=spec(cpu=2), age=10, expected_runtime=50),
    ]
    reasons, helps, done = told(cluster([node("n", cpu=4)], work, backfill="easy"), "small")
    begins = "2027-01-15T08:00:40Z"
    assert reasons["Reserved"].numbers == {"workload": "default/large", "from": begins}
    assert helps == done == (f"an end by {begins} (a shorter expectedRuntime), or room that is not reserved",)


@pytest.mark.parametrize(("asks", "helps"), [
    (3, "a max of 7 cores or more for queue q, which holds 4"),
    (1, "3 cores less used in queue q, or a max that is higher by as much"),
])  # fmt: skip
def test_under_a_higher_max_stays_what_a_quota_takes(asks, helps):
    """What goes because the max is exceeded counts for a max that would not be."""
    armed = QuotaStatus(armed_at=NOW - 2 * MINUTE, delay=MINUTE, deadline=NOW - MINUTE, max={CPU: 2000})
    over = queue("q", max={"cpu": 2}, quota_preemption_delay=MINUTE, status=QueueStatus(quota_preemption=armed))
    runs = workload("r", tasks=2, of=spec(cpu=2), on=["n", "n"], queue="q", running=600, min_member=1)
    work = [runs, workload("w", of=spec(cpu=asks), queue="q", age=5)]
    quota = QuotaPreemptionSettings(enabled=True)
    found = cluster([node("n", cpu=8)], work, [over], actions=("quota", "allocate"), quota_preemption=quota)
    assert [s.task for s in play(found).steps if s.action == "evict"] == ["r-1"]
    assert told(found, "w")[2][0] == f"{helps}, and that no workload before it takes the room"


def test_nodes_for_a_gang_with_a_topology_are_under_one_value():
    """Under several they would not help."""
    nodes = [node(f"{rack}0", cpu=4, labels={"rack": rack}) for rack in "ab"]
    work = [workload(f"r{n.name}", of=spec(cpu=4), on=[n.name], running=9) for n in nodes]
    work.append(workload("g", tasks=2, of=spec(cpu=3), age=5, topology=Topology(required="rack")))
    (said,) = told(cluster(nodes, work, actions=("allocate",)), "g")[2]
    together = "as much for each of the 2 tasks that start together, under one value of rack"
    free = "one node that admits it and has 3 cores free"
    assert said == f"{free}, and {together}, and that no workload before it takes the room"


def test_what_has_room_under_another_value_of_its_topology_is_not_counted():
    """One task would fit, and the gang starts where all of it does."""
    nodes = [node("a0", cpu=3, labels={"rack": "a"}), node("b0", cpu=2, labels={"rack": "b"})]
    work = [workload("g", tasks=2, of=spec(cpu=3), age=5, topology=Topology(required="rack"))]
    work.append(workload("r", of=spec(cpu=2), on=["b0"], running=9))
    nodes.append(node("b1", cpu=6, labels={"rack": "b"}))
    work.append(workload("s", of=spec(cpu=6), on=["b1"], running=9))
    assert told(cluster(nodes, work, actions=("allocate",)), "g")[1] == (
        "room for all 2 of its tasks at the same time, under one value of rack",
    )


def making_room(*more, **settings):
    """One is evicted for the first that waits, and leaves more room than that takes."""
    work = [FULL, workload("first", of=spec(cpu=2), priority=50, age=20), *more]
    return cluster([node("n", cpu=4)], work, actions=DEFAULT_ACTIONS, **settings)


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_what_fits_because_others_give_way_waits_for_the_next_cycle_and_for_no_reservation(backfill):
    """Only the one that comes first: the other is told that it does not fit any more."""
    behind = [workload(f"w{n}", of=spec(cpu=2), age=10 - n, preemption_policy="Never") for n in range(2)]
    found = making_room(*behind, backfill=backfill)
    assert told(found, "w0")[0].keys() == {"NextCycle", "NeverPreempts"}
    reasons, helps, done = told(found, "w1")
    assert reasons["NoNodeFits"].message == "it fits, but in the next cycle workloads before it take the room"
    assert helps[0] == "one node that admits it and has 2 cores free, and that no workload before it takes the room"
    assert helps[0] in done
    placed = {s.workload for s in play(replace(play(found).after, now=NOW + SECOND)).steps}
    assert "default/w0" in placed
    assert "default/w1" not in placed


def test_with_a_reservation_what_fits_after_an_eviction_is_told_of_the_next_cycle():
    """It would not delay the one that has it: it says when it ends."""
    large = workload("large", of=spec(cpu=6), age=15, preemption_policy="Never")
    brief = workload("brief", of=spec(cpu=2), age=10, preemption_policy="Never", expected_runtime=5)
    found = making_room(large, brief, backfill="easy")
    nodes = (*found.nodes, node("m", cpu=6))
    other = workload("other", of=spec(cpu=6), on="m", running=10, expected_runtime=60, preemptible=False)
    found = replace(found, nodes=nodes, workloads=(*found.workloads, other))
    assert told(found, "brief")[0].keys() == {"NextCycle", "NeverPreempts"}


@pytest.mark.parametrize("delay", [0, 10])
def test_from_when_on_others_may_be_evicted_counts_all_that_is_to_be_waited_for(delay):
    """Nodes that are on their way for it, and its preemption delay."""
    waits = workload("w", of=spec(cpu=4), priority=50, awaits_nodes_until=NOW + MINUTE, preemption_delay=delay * MINUTE)
    found = cluster([node("n", cpu=4)], [FULL, waits], actions=DEFAULT_ACTIONS)
    reasons, helps, done = told(found, "w")
    until = reasons["AwaitsNodes"].numbers["until"]
    assert until == ("2027-01-15T08:10:00Z" if delay else "2027-01-15T08:01:00Z")
    said = f"to wait for nodes; from {until} on, other workloads may be evicted for it"
    assert said in helps
    assert said in done
    after = play(found).after
    due = NOW + max(delay, 1) * MINUTE
    assert play(replace(after, now=due - 1)).steps == []
    assert [s.action for s in play(replace(after, now=due)).steps] == ["evict", "nominate"]


def test_who_was_promised_a_node_to_come_is_bound_there_and_told_if_it_does_not_come():
    """Until its nomination ends it waits for nobody who holds its room."""
    work = [FULL, workload("w", of=spec(cpu=4), priority=50)]
    found = cluster([node("n", cpu=4), node("new", cpu=4, awaited_until=NOW + MINUTE)], work, actions=DEFAULT_ACTIONS)
    _, helps, done = told(found, "w")
    assert helps == tuple(done) == ("to wait: it is bound as soon as these nodes are there",)
    late = replace(play(found).after, now=NOW + MINUTE)
    reasons, helps, _ = told(late, "w")
    assert reasons["Nominated"].message == "it is nominated to new; new is not ready"
    assert helps == ("to wait until new is ready, or the nomination ends (nominationTimeout)",)
    steps = play(replace(late, now=NOW + 5 * MINUTE + 1)).steps
    assert [(s.action, s.workload) for s in steps] == [("evict", "default/r"), ("nominate", "default/w")]


def before(leaf, contender):
    """Sixteen run; ten that cause no evictions would be served before the one that could reclaim."""
    run = [workload(f"r{n}", of=spec(cpu=1), on="n", running=9000, queue="busy") for n in range(16)]
    others = [
        workload(f"o{n}", of=spec(cpu=1), queue=leaf(n), priority=50, age=100, preemption_policy="Never")
        for n in range(10)
    ]
    queues = [queue(name, guaranteed={"cpu": 1}, priority=200) for name in sorted({leaf(n) for n in range(10)})]
    due = queue("due", guaranteed={"cpu": 5})
    return cluster(
        [node("n", cpu=16)],
        [*run, *others, contender],
        [queue("busy"), due, *(q for q in queues if q.name != "due")],
        actions=DEFAULT_ACTIONS,
    )


@pytest.mark.parametrize("leaf", [lambda _: "due", lambda n: f"q{n}"], ids=["its own queue", "other queues"])
def test_who_comes_after_many_others_may_come_before_them(leaf):
    """By its own priority where they are of its queue, by that of its queue where they are of others."""
    found = before(leaf, workload("c", of=spec(cpu=1), queue="due", age=5))
    reasons, _, done = told(found, "c")
    assert reasons["OthersFirst"].numbers["others"] == 10
    said = (
        "its turn, after 10 other workloads, or a higher priority than these: of its own in its queue, of its queue "
        "among others"
    )
    assert said in done


def test_what_waits_for_the_end_of_a_pause_is_served_then():
    found = contended(outcome("preempt", lost=7200), guaranteed=None, priority=90)
    reasons, _, done = told(found, "waits")
    until = reasons["CausePaused"].numbers["pays"]
    assert f"to wait: preempt is paused until {until} at the latest" in done


BOUND = {"claims": [claim("c", volume="v")], "volumes": [volume("v")]}


@pytest.mark.parametrize(
    "lacking",
    [
        {},
        {"claims": [claim("c", of="none")]},
        {"claims": [claim("c", volume="v", is_going=True)], "volumes": [volume("v")]},
        {"claims": [claim("c", volume="v", is_lost=True)]},
        {"claims": [claim("c", volume="v")]},
    ],
    ids=["no claim", "unbound", "going", "lost", "no volume"],
)
def test_with_its_claims_bound_to_volumes_that_are_there_it_starts(lacking):
    reasons, helps, _ = told(stored(zones("a"), [mounting("w", "c")], **lacking), "w")
    assert reasons.keys() == {"VolumeNotReady"}
    assert helps == ("its claims, bound to volumes that are there",)
    assert [s.action for s in play(stored(zones("a"), [mounting("w", "c")], **BOUND)).steps] == ["bind"]


@pytest.mark.parametrize(
    ("claims", "classes"),
    [((), (GPU,)), ((device_claim("c", asked()),), ()), ((device_claim("c", asked(), is_going=True),), (GPU,))],
    ids=["no claim", "no class", "going"],
)
def test_with_its_resource_claims_and_their_classes_it_starts(claims, classes):
    slices, work = [local("n0", device("a"))], [using_devices("w", "c")]
    reasons, helps, _ = told(with_devices(slices, claims, work, classes), "w")
    assert reasons.keys() == {"DevicesNotReady"}
    assert helps == ("its resource claims, and the device classes that these name",)
    assert [s.action for s in play(with_devices(slices, [device_claim("c", asked())], work)).steps] == ["bind"]


@pytest.mark.parametrize("mode", ["enforce", "shadow", "off"])
def test_a_cause_that_is_neither_listed_nor_enforced_needs_both(mode):
    """Either alone would change nothing."""
    work = [FULL, workload("w", of=spec(cpu=4), priority=50)]
    _, helps, done = told(cluster([node("n", cpu=4)], work, actions=("allocate",), modes={"preempt": mode}), "w")
    more = " and the mode enforce (scheduler.modes.preempt)" * (mode != "enforce")
    said = f"for preempt, preempt among the actions (scheduler.actions){more}"
    assert said in helps
    assert said in done
