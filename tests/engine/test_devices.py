"""Claims on devices in the engine: which nodes meet them, what they hold, and that all is undone."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.builders import NOW
from tests.engine.reference_devices import meets

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.devices.capacity import consumed_of, is_tainted
from tenure.engine.devices.claimed_devices import known_answers
from tenure.engine.devices.counts import BOTH, LATER
from tenure.engine.devices.selector_form import DeviceSelectorError
from tenure.engine.devices.selectors import CompiledSelector, compiled
from tenure.engine.kept_session import KeptSession
from tenure.engine.reasons import why_pending
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.fairness.current import Fairness
from tenure.model.cluster import Cluster
from tenure.model.devices import (
    AllocatedDevice,
    AlternativeDevices,
    CapacityPolicy,
    CapacityRange,
    CapacityRequest,
    CelExpression,
    CounterSet,
    CounterUse,
    Device,
    DeviceAllocation,
    DeviceAttribute,
    DeviceCapacity,
    DeviceClaim,
    DeviceClass,
    DeviceConstraint,
    DeviceCounter,
    DeviceInventory,
    DevicePoolName,
    DeviceRequest,
    DeviceSelector,
    DeviceSlice,
    DeviceTaint,
    DeviceToleration,
    ExactDevices,
)
from tenure.model.manifests.device_uses import with_device_uses
from tenure.model.manifests.devices import DeviceTaintRule, taint_rule_from, tainted
from tenure.model.node import Node
from tenure.model.queue import Queue
from tenure.model.workload import Phase, Task, TaskSpec, Workload

DRIVER = "gpu.example.com"
NANO = 10**9


def text(value):
    return DeviceAttribute(text=value)


def number(value):
    return DeviceAttribute(number=value)


def device(name, **attributes):
    return Device(name=name, attributes=attributes)


def local(node, *devices, **more):
    return DeviceSlice(name=node, driver=DRIVER, pool=DevicePoolName(name=node, **more), node=node, devices=devices)


def expression(*texts):
    return tuple(DeviceSelector(cel=CelExpression(expression=t)) for t in texts)


def asked(count=1, *selectors, **more):
    return ExactDevices(class_name="gpu", count=count, selectors=expression(*selectors), **more)


def claim(name, *requests, **more):
    named = tuple(DeviceRequest(name=f"r{i}", exactly=r) for i, r in enumerate(requests))
    return DeviceClaim(name=name, requests=named, **more)


def task(name, *claims, **more):
    return Task(name=name, spec=TaskSpec(requests=(("cpu", 1),), resource_claims=claims), **more)


def workload(name, *claims, **more):
    fields = {"node": more.pop("node"), "phase": Phase.RUNNING} if "node" in more else {}
    return Workload(name=name, queue="q", created_at=NOW, tasks=(task(name, *claims, **fields),), **more)


GPU = DeviceClass(name="gpu", selectors=expression(f'device.driver == "{DRIVER}"'))


def cluster(slices, claims, workloads, classes=(GPU,), nodes=("n0", "n1")):
    made = Cluster(
        now=NOW,
        nodes=tuple(Node(name=name, allocatable={"cpu": 100}) for name in nodes),
        queues=(Queue(name="q"),),
        workloads=tuple(workloads),
        devices=DeviceInventory(slices=tuple(slices), classes=tuple(classes), claims=tuple(claims)),
    )
    return with_device_uses(made)


def planned(found):
    """Give by task of the first cycle's plan the node, and the devices of its claims."""
    plan = Scheduler(session_of(found)).cycle(NOW)
    return {
        s.task: (s.action, s.node, {c.claim.split("/")[1]: [d.device for d in c.allocation.devices] for c in s.claims})
        for s in plan.steps
        if s.action in ("bind", "nominate")
    }


def nodes_for(found, name):
    """Give the nodes that have the devices for the one task of a workload, now and once what terminates has left."""
    session = session_of(found)
    terms = session.workloads[f"default/{name}"].tasks[0].terms.devices
    table, names = session.terms.devices, session.nodes.names
    return tuple({names[i] for i in table.mask(terms, views).nonzero()[0]} for views in (BOTH, LATER))


# -- requests ----------------------------------------------------------------------------------------------------------


def test_a_claim_gets_the_first_devices_that_its_selectors_take():
    """The class and the request both select; no device is given out twice; what does not fit waits."""
    slices = [local("n0", *(device(f"d{i}", model=text("ab"[i % 2])) for i in range(4)))]
    is_b = f'device.attributes["{DRIVER}"].model == "b"'
    claims = [claim("one", asked(1, is_b)), claim("two", asked(1, is_b)), claim("three", asked(1, is_b))]
    found = planned(cluster(slices, claims, [workload("w1", "one"), workload("w2", "two"), workload("w3", "three")]))
    assert found == {
        "w1": ("bind", "n0", {"one": ["d1"]}),
        "w2": ("bind", "n0", {"two": ["d3"]}),
    }


def test_the_first_alternative_that_is_available_is_taken():
    """Where the better devices are in use, the others do."""
    slices = [local("n0", device("a", model=text("a")), device("b", model=text("b")))]
    options = tuple(
        AlternativeDevices(
            name=m, class_name="gpu", selectors=expression(f'device.attributes["{DRIVER}"].model == "{m}"')
        )
        for m in "ab"
    )
    first = tuple(
        DeviceClaim(name=n, requests=(DeviceRequest(name="r", first_available=options),)) for n in ("one", "two")
    )
    found = cluster(slices, first, [workload("w1", "one"), workload("w2", "two")])
    assert planned(found) == {"w1": ("bind", "n0", {"one": ["a"]}), "w2": ("bind", "n0", {"two": ["b"]})}
    plan = Scheduler(session_of(found)).cycle(NOW)
    assert [d.request for s in plan.steps for c in s.claims for d in c.allocation.devices] == ["r/a", "r/b"]


def test_constraints_hold_over_requests():
    """Two devices of one NUMA node: not the first two, but the first two that are alike."""
    numa = [0, 1, 1, 0]
    slices = [local("n0", *(device(f"d{i}", numa=number(n)) for i, n in enumerate(numa)))]
    alike = DeviceConstraint(match_attribute=f"{DRIVER}/numa")
    other = DeviceConstraint(distinct_attribute=f"{DRIVER}/numa")
    for constraint, devices in ((alike, ["d0", "d3"]), (other, ["d0", "d1"])):
        claims = [claim("pair", asked(1), asked(1), constraints=(constraint,))]
        assert planned(cluster(slices, claims, [workload("w", "pair")])) == {"w": ("bind", "n0", {"pair": devices})}


def test_claims_that_take_long_take_it_from_their_own_namespace():
    """Nine distinct devices of eight on every node, in ways without number: others get theirs, in a moment."""
    names = [f"n{i}" for i in range(60)]
    eight = [device(f"d{i}", number=number(i), half=number(i // 4)) for i in range(8)]
    distinct = DeviceConstraint(distinct_attribute=f"{DRIVER}/number")
    alike = DeviceConstraint(match_attribute=f"{DRIVER}/half")
    hard = [
        DeviceClaim(
            name=f"hard-{n}",
            namespace="evil",
            requests=tuple(DeviceRequest(name=f"r{i}-{n}", exactly=asked(1)) for i in range(9)),
            constraints=(distinct,),
        )
        for n in range(5)
    ]
    pair = claim("pair", asked(1), asked(1), constraints=(alike,))
    waiting = [workload(c.name, c.name, namespace="evil") for c in hard]
    found = cluster(
        [local(name, *eight) for name in names], [*hard, pair], [*waiting, workload("w", "pair")], nodes=names
    )
    began = time.process_time()
    session = session_of(found)
    plan = Scheduler(session).cycle(NOW)
    reason = why_pending(session, session.workloads["evil/hard-0"], NextPass(session, Fairness(session).now))
    assert time.process_time() - began < 15
    assert [s.task for s in plan.steps] == ["w"]
    assert "50,000 combinations" in str(reason)


def with_uuids(nodes):
    """Slices of nodes with eight devices each, all of which differ."""
    return [
        local(name, *(device(f"d{i}", uuid=text(f"{name}-{i}"), model=text("ab"[i // 4])) for i in range(8)))
        for name in nodes
    ]


def test_a_selector_is_asked_once_about_all_devices_of_which_it_reads_the_same(monkeypatch):
    """Devices with names of their own are as good as one another for whoever asks for a model."""
    asked_for, matches = [], CompiledSelector.matches
    monkeypatch.setattr(CompiledSelector, "matches", lambda *seen: asked_for.append(seen) or matches(*seen))
    names = [f"n{i}" for i in range(20)]
    of_model = f'device.attributes["{DRIVER}"].model == "b" // once'
    found = cluster(with_uuids(names), [claim("c", asked(1, of_model))], [workload("w", "c")], nodes=names)
    assert planned(found)["w"][2] == {"c": ["d4"]}
    assert len(asked_for) == 3  # the selector of the class, which reads the driver alone, once


def test_selectors_that_take_long_take_it_from_their_own_namespace():
    """What is left is looked at in later cycles, and not forgotten; others get theirs at once."""
    names = [f"n{i}" for i in range(120)]
    slow = " && ".join(['quantity("1Gi").isGreaterThan(quantity("1"))'] * 160)
    last = f'device.attributes["{DRIVER}"].uuid == "n99-7" && {slow} && '
    hard = [
        replace(claim(f"hard-{n}", asked(1, f"{last}{n} == {n if n < 2 else -1}")), namespace="evil") for n in range(40)
    ]
    right = claim("right", asked(1, f'device.attributes["{DRIVER}"].model == "a"'))
    waiting = [workload(c.name, c.name, namespace="evil") for c in hard]
    found = cluster(with_uuids(names), [*hard, right], [*waiting, workload("w", "right")], nodes=names)
    began = time.process_time()
    session = session_of(found)
    scheduler = Scheduler(session)
    plan = scheduler.cycle(NOW)
    reason = why_pending(session, session.workloads["evil/hard-0"], NextPass(session, Fairness(session).now))
    assert time.process_time() - began < 20
    assert [s.task for s in plan.steps] == ["w"]
    assert "only so much of that is done in one cycle" in str(reason)
    later = [s for n in range(1, 7) for s in scheduler.cycle(NOW + n).steps]
    assert [(s.task, s.node) for s in later] == [("hard-0", "n99")]
    assert audit(session) == []


def test_a_session_that_is_made_anew_knows_what_selectors_said_to_the_one_before(monkeypatch):
    """Nodes change in every cycle, so that none is kept; even so what is left of the selectors is asked in time."""
    monkeypatch.setattr("tenure.engine.devices.answers.MOST_EFFORT_IN_ALL", 2000)
    names = [f"n{i}" for i in range(20)]
    claims = [claim(f"c{i}", asked(1, f'device.attributes["{DRIVER}"].model == "b" && {i} < 9')) for i in range(9)]
    found = cluster(with_uuids(names), claims, [workload(f"w{i}", f"c{i}") for i in range(9)], nodes=names)
    kept, served = KeptSession(), []
    for number in range(9):
        changed = replace(found.nodes[0], labels={"cycle": str(number)})
        now = replace(found, now=NOW + number, nodes=(changed, *found.nodes[1:]))
        session = kept.take(now)
        plan = Scheduler(session).cycle(now.now)
        kept.keep(now, session, plan)
        served.append(len(plan.steps))
    assert served[0] < 9
    assert served[-1] == 9


def test_what_selectors_said_is_forgotten_with_the_devices_and_with_the_classes():
    """Devices that are replaced again and again take no memory, and a class may select others under its name."""
    kept, is_a = KeptSession(), DeviceClass(name="gpu", selectors=expression(f'device.attributes["{DRIVER}"].a'))
    for number in range(20):
        slices = [local("n0", *(device(f"d{i}", a=DeviceAttribute(flag=i > 5), v=text(str(number))) for i in range(8)))]
        found = cluster(slices, [claim("c", asked(1))], [workload("w", "c")], (is_a if number == 19 else GPU,))
        session = kept.take(found)
        plan = Scheduler(session).cycle(NOW)
        kept.keep(found, session, plan)
        assert [s.claims[0].allocation.devices[0].device for s in plan.steps] == ["d6" if number == 19 else "d0"]
        assert len(known_answers(session.terms.devices).kinds) <= 24


def test_all_devices_are_got_as_a_whole_or_not_at_all():
    """Of a node of which one device is in use, not all can be had."""
    slices = [local("n0", device("a"), device("b")), local("n1", device("a"))]
    used = DeviceAllocation(devices=(AllocatedDevice(request="r0", driver=DRIVER, pool="n0", device="b"),))
    claims = [claim("all", asked(mode="All")), claim("used", asked(), allocation=used)]
    assert planned(cluster(slices, claims, [workload("w", "all")])) == {"w": ("bind", "n1", {"all": ["a"]})}


def test_an_incomplete_pool_gives_nothing():
    """A pool of which a slice is missing, and one that was replaced."""
    old = replace(local("n1", device("old")), name="old")
    new = replace(local("n1", device("new"), generation=2), name="new")
    slices = [local("n0", device("a"), slices=2), old, new]
    found = planned(cluster(slices, [claim("one", asked())], [workload("w", "one")]))
    assert found == {"w": ("bind", "n1", {"one": ["new"]})}


def test_admin_access_looks_at_devices_that_are_in_use():
    """It takes nothing from others, and gets no device twice."""
    slices = [local("n0", device("a"))]
    claims = [
        claim("one", asked()),
        claim("look", asked(has_admin_access=True)),
        claim("two", asked(2, has_admin_access=True)),
    ]
    found = cluster(slices, claims, [workload("w1", "one"), workload("w2", "look"), workload("w3", "two")])
    assert planned(found) == {"w1": ("bind", "n0", {"one": ["a"]}), "w2": ("bind", "n0", {"look": ["a"]})}


def test_a_taint_keeps_claims_away_that_do_not_tolerate_it():
    """With a toleration the device is given out; all devices are not got without it."""
    slices = [local("n0", Device(name="a", taints=(DeviceTaint(key="sick", effect="NoSchedule"),)))]
    bears = (DeviceToleration(key="sick", operator="Exists"),)
    slices.append(local("n1", Device(name="a", taints=slices[0].devices[0].taints), device("b")))
    claims = [claim("plain", asked(mode="All")), claim("bold", asked(tolerations=bears))]
    found = cluster(slices, claims, [workload("w1", "plain"), workload("w2", "bold")])
    assert planned(found) == {"w2": ("bind", "n0", {"bold": ["a"]})}


@pytest.mark.parametrize(
    ("toleration", "kept_away"),
    [
        ({"key": "sick"}, ["valued", "going", "other"]),
        ({"key": "sick", "value": "x"}, ["plain", "other"]),
        ({"key": "sick", "value": "x", "effect": "NoSchedule"}, ["plain", "going", "other"]),
        ({"key": "sick", "operator": "Exists"}, ["other"]),
        ({"key": "sick", "operator": "Exists", "effect": "NoExecute"}, ["plain", "valued", "other"]),
        ({"operator": "Exists"}, []),
        ({"operator": "Exists", "effect": "NoSchedule"}, ["going"]),
        (None, ["plain", "valued", "going", "other"]),
    ],
)
def test_a_taint_of_a_device_is_tolerated_by_key_value_and_effect(toleration, kept_away):
    """Without an effect every effect is, without a value the taint that has none; ``None`` keeps nobody away."""
    taints = {
        "plain": DeviceTaint(key="sick", effect="NoSchedule"),
        "valued": DeviceTaint(key="sick", value="x", effect="NoSchedule"),
        "going": DeviceTaint(key="sick", value="x", effect="NoExecute"),
        "other": DeviceTaint(key="old", value="x", effect="NoSchedule"),
        "told": DeviceTaint(key="old", value="x", effect="None"),
    }
    given_ = () if toleration is None else (DeviceToleration(**toleration),)
    assert [name for name, taint in taints.items() if is_tainted([taint], given_)] == kept_away


def test_partitions_share_the_counters_of_their_device():
    """Of four slots a whole takes four, a half two: two halves, or the whole."""

    def part(name, slots):
        use = CounterUse(counter_set="gpu-0", counters={"slots": DeviceCounter(value=slots * NANO)})
        return Device(name=name, consumes=(use,), attributes={"slots": number(slots)})

    sets = (CounterSet(name="gpu-0", counters={"slots": DeviceCounter(value=4 * NANO)}),)
    pool = DevicePoolName(name="n0", slices=2)
    slices = [
        DeviceSlice(
            name="a", driver=DRIVER, pool=pool, node="n0", devices=(part("whole", 4), part("h0", 2), part("h1", 2))
        ),
        DeviceSlice(name="b", driver=DRIVER, pool=pool, node="n0", counters=sets),
    ]
    half = asked(1, f'device.attributes["{DRIVER}"].slots == 2')
    claims = [
        claim("h0", half),
        claim("h1", half),
        claim("whole", asked(1, f'device.attributes["{DRIVER}"].slots == 4')),
    ]
    works = [workload("w1", "h0"), workload("w2", "whole"), workload("w3", "h1")]
    assert planned(cluster(slices, claims, works)) == {
        "w1": ("bind", "n0", {"h0": ["h0"]}), "w3": ("bind", "n0", {"h1": ["h1"]}),
    }  # fmt: skip


def test_claims_share_the_capacity_of_a_device():
    """Of 10 GiB, shares of 4 GiB: two, and for a third there is none left."""
    gib = NANO << 30
    shared = Device(name="a", is_shared=True, capacity={"memory": DeviceCapacity(value=10 * gib)})
    want = CapacityRequest(requests={"memory": 4 * gib})
    claims = [claim(f"c{i}", asked(capacity=want)) for i in range(3)]
    found = cluster([local("n0", shared)], claims, [workload(f"w{i}", f"c{i}") for i in range(3)])
    assert planned(found) == {f"w{i}": ("bind", "n0", {f"c{i}": ["a"]}) for i in range(2)}


def test_a_share_is_rounded_up_to_what_the_policy_allows():
    """By steps, by values, and to the default where nothing is asked for."""
    steps = CapacityPolicy(default=5, range=CapacityRange(least=2, most=9, step=3))
    values = CapacityPolicy(values=(2, 8))
    for policy, asks, gets in (
        (steps, 3, 5),
        (steps, 1, 2),
        (steps, None, 5),
        (steps, 9, None),
        (values, 3, 8),
        (values, 9, None),
    ):
        found = Device(name="a", is_shared=True, capacity={"m": DeviceCapacity(value=20, policy=policy)})
        request = None if asks is None else CapacityRequest(requests={"m": asks})
        assert consumed_of(request, found) == (None if gets is None else (("m", gets),))
    assert consumed_of(CapacityRequest(requests={"x": 1}), device("a")) is None


# -- what claims hold --------------------------------------------------------------------------------------------------


def test_a_claim_that_has_devices_ties_its_pods_to_them():
    """Both pods of a shared claim go to the node where the first one put it."""
    slices = [local("n0", device("a")), local("n1", device("a"))]
    found = planned(cluster(slices, [claim("one", asked())], [workload("w1", "one"), workload("w2", "one")]))
    assert found == {"w1": ("bind", "n0", {"one": ["a"]}), "w2": ("bind", "n0", {"one": ["a"]})}


@pytest.mark.parametrize(
    "slices",
    [
        [],
        [local("n1", device("b"))],
        [local("n0", device("b"), generation=2)],
        [local("n0", device("a"), device("b"), slices=2)],
    ],
    ids=["the driver is gone", "its node has no slice", "the device is gone", "the pool is incomplete"],
)
def test_what_a_claim_has_stays_its_own_whatever_becomes_of_its_slice(slices):
    """Who runs on a device that is not published any more runs on; others get what there is, and say what they want."""
    held = DeviceAllocation(devices=(AllocatedDevice(request="r0", driver=DRIVER, pool="n0", device="a"),))
    claims = [claim("old", asked(), allocation=held), claim("new", asked())]
    found = cluster(slices, claims, [workload("w1", "old", node="n0"), workload("w2", "new")])
    steps = planned(found)
    assert [devices for _, _, got in steps.values() for devices in got.values()] in ([], [["b"]])
    assert set(steps) <= {"w2"}
    session = session_of(found)
    assert not audit(session)
    if not steps:
        following = NextPass(session, Fairness(session).now)
        reason = why_pending(session, session.workloads["default/w2"], following)[0].message
        assert "it waits for resource claim new: no node has 1 device of class gpu" in reason
    again = cluster([local("n0", device("a"))], claims, [workload("w1", "old", node="n0"), workload("w2", "new")])
    assert not planned(again), "a device that is published again is given out twice"


def test_what_an_evicted_pod_holds_is_free_in_thought():
    """A contender of higher priority is nominated to the devices of the pod that is evicted for it."""
    slices = [local("n0", device("a"))]
    claims = [claim("low", asked()), claim("high", asked())]
    held = DeviceAllocation(devices=(AllocatedDevice(request="r0", driver=DRIVER, pool="n0", device="a"),))
    claims[0] = replace(claims[0], allocation=held)
    found = cluster(slices, claims, [workload("w1", "low", node="n0"), workload("w2", "high", priority=50)])
    assert nodes_for(found, "w2") == (set(), set())
    plan = Scheduler(session_of(found)).cycle(NOW)
    assert [(s.action, s.task) for s in plan.steps] == [("evict", "w1"), ("nominate", "w2")]


def test_a_move_takes_a_pod_to_other_devices():
    """Two devices of one node are made free by moving the pod that has one of them to the other node."""
    slices = [local(node, device("a"), device("b")) for node in ("n0", "n1")]
    held = [
        claim(f"held-{node}", asked(), allocation=DeviceAllocation(
            devices=(AllocatedDevice(request="r0", driver=DRIVER, pool=node, device="a"),)
        ))
        for node in ("n0", "n1")
    ]  # fmt: skip
    works = [workload("w1", "held-n0", node="n0"), workload("w2", "held-n1", node="n1"), workload("w3", "pair")]
    found = EmbeddedCluster(cluster(slices, [*held, claim("pair", asked(2))], works))
    plan = Scheduler(session_of(found.cluster)).cycle(NOW)
    assert [(s.action, s.cause) for s in plan.steps if s.action == "evict"] == [("evict", "consolidate")]
    for step in range(1, 4):
        found.carry_out(plan)
        found.advance(NOW + step)
        plan = Scheduler(session_of(found.cluster)).cycle(NOW + step)
    placed = {t.name: t.node for w in found.cluster.workloads for t in w.tasks}
    assert None not in placed.values()
    assert sorted(placed.values()).count(placed["w3"]) == 1
    given = [d.key for c in found.cluster.devices.claims for d in c.allocation.devices]
    assert len(given) == len(set(given)) == 4


def test_cycles_on_a_file_remember_which_devices_claims_have():
    """What was bound in one cycle is in use in the next; what a pod that is evicted had is free once it is gone."""
    slices = [local("n0", device("a", numa=number(0)), device("b", numa=number(1)))]
    second = asked(1, f'device.attributes["{DRIVER}"].numa == 1')
    claims = [claim("low", second), claim("any", asked()), claim("high", second)]
    works = [workload("w1", "low"), workload("w2", "any"), workload("w3", "high", priority=50)]
    first = EmbeddedCluster(cluster(slices, claims[:2], works[:2]))
    first.carry_out(Scheduler(session_of(first.cluster)).cycle(NOW))
    first.advance(NOW + 1)
    held = {c.name: [d.device for d in c.allocation.devices] for c in first.cluster.devices.claims}
    assert held == {"low": ["b"], "any": ["a"]}
    more = replace(
        first.cluster,
        workloads=(*first.cluster.workloads, *cluster(slices, claims, works[2:]).workloads),
        devices=replace(first.cluster.devices, claims=(*first.cluster.devices.claims, claims[2])),
    )
    later = EmbeddedCluster(more)
    for step in range(1, 4):
        later.carry_out(Scheduler(session_of(later.cluster)).cycle(NOW + step))
        later.advance(NOW + step + 1)
    held = {c.name: c.allocation and [d.device for d in c.allocation.devices] for c in later.cluster.devices.claims}
    assert held == {"low": None, "any": ["a"], "high": ["b"]}


def test_a_rule_taints_the_devices_that_it_names():
    """By driver, pool and name; one that names nothing taints all."""
    one = local("n0", device("a"), device("b"))
    taint = DeviceTaint(key="sick", effect="NoSchedule")
    for rule, sick in (
        (DeviceTaintRule(taint, driver=DRIVER, device="b"), ["b"]),
        (DeviceTaintRule(taint, pool="n1"), []),
        (DeviceTaintRule(taint), ["a", "b"]),
    ):
        assert [d.name for d in tainted(one, [rule]).devices if d.taints] == sick
    plain = {"spec": {"deviceSelector": {"pool": "n0"}, "taint": {"key": "sick", "effect": "NoExecute"}}}
    assert taint_rule_from(plain) == DeviceTaintRule(replace(taint, effect="NoExecute"), pool="n0")
    assert taint_rule_from({"spec": {"taint": plain["spec"]["taint"]}}) is None


def test_devices_count_for_the_queue_of_their_pod():
    """As the extended resource of their class, or as a setting says; a class may count nothing."""
    named = replace(GPU, extended_resource="example.com/gpu")
    slices = [local("n0", *(device(f"d{i}") for i in range(4)))]
    claims = [claim(f"c{i}", asked(2)) for i in range(2)]
    works = [workload(f"w{i}", f"c{i}") for i in range(2)]
    found = cluster(slices, claims, works, classes=(named,))
    limited = replace(found, queues=(Queue(name="q", max={"example.com/gpu": 3}),))
    assert planned(limited).keys() == {"w0"}
    assert session_of(found).occupancy.supply == {"example.com/gpu": 4}
    settings = replace(found.settings, device_classes={"gpu": {"example.com/gpu": 1, "nvidia.com/gpu": 500}})
    counted = with_device_uses(replace(limited, settings=settings))
    assert counted.workloads[0].tasks[0].spec.counted == (("example.com/gpu", 2), ("nvidia.com/gpu", 1000))
    free = with_device_uses(replace(limited, settings=replace(settings, device_classes={"gpu": {}})))
    assert planned(free).keys() == {"w0", "w1"}


def test_a_claim_that_is_missing_or_of_no_class_is_a_reason():
    """The pod waits, and says for what."""
    found = cluster(
        [local("n0", device("a"))], [claim("one", asked())], [workload("w1", "none"), workload("w2", "one")], classes=()
    )
    session = session_of(found)
    assert not Scheduler(session).cycle(NOW).steps
    waits = {w.name: [u.awaits for t in w.tasks for u in t.spec.device_uses] for w in found.workloads}
    assert waits == {
        "w1": ["resource claim none, which is not there"],
        "w2": ["resource claim one: there is no device class gpu"],
    }
    following = NextPass(session, Fairness(session).now)
    codes = {w.model.name: [r.code for r in why_pending(session, w, following)] for w in session.workloads.values()}
    assert codes == {"w1": ["DevicesNotReady"], "w2": ["DevicesNotReady"]}


# -- against the plainest reading --------------------------------------------------------------------------------------

ATTRIBUTES = st.fixed_dictionaries(
    {}, optional={"kind": st.sampled_from("ab").map(text), "numa": st.integers(0, 1).map(number)}
)
EXPRESSIONS = (
    "true",
    '"kind" in device.attributes["gpu.example.com"] && device.attributes["gpu.example.com"].kind == "a"',
)
EXACT = st.builds(
    asked, st.integers(1, 2), st.sampled_from(EXPRESSIONS), mode=st.sampled_from(("ExactCount", "ExactCount", "All"))
)


@st.composite
def demands(draw):
    requests = []
    for place in range(draw(st.integers(1, 2))):
        if draw(st.integers(0, 3)):
            requests.append(DeviceRequest(name=f"r{place}", exactly=draw(EXACT)))
        else:
            options = tuple(
                AlternativeDevices(name=f"o{i}", class_name="gpu", selectors=e.selectors, mode=e.mode, count=e.count)
                for i, e in enumerate(draw(st.lists(EXACT, min_size=1, max_size=2)))
            )
            requests.append(DeviceRequest(name=f"r{place}", first_available=options))
    constraints = ()
    if draw(st.booleans()):
        name = f"{DRIVER}/{draw(st.sampled_from(('kind', 'numa')))}"
        which = draw(st.sampled_from(("match_attribute", "distinct_attribute")))
        of = draw(st.sampled_from(((), ("r0",), ("r1",))))
        constraints = (DeviceConstraint(requests=of, **{which: name}),)
    return tuple(requests), constraints


@st.composite
def states(draw):
    slices, claims = [], []
    for node in ("n0", "n1"):
        count = draw(st.integers(0, 4))
        devices = tuple(Device(name=f"d{i}", attributes=draw(ATTRIBUTES)) for i in range(count))
        slices.append(local(node, *devices))
        for i in range(count):
            if draw(st.integers(0, 3)) == 0:
                held = DeviceAllocation(
                    devices=(AllocatedDevice(request="r", driver=DRIVER, pool=node, device=f"d{i}"),)
                )
                claims.append(claim(f"held-{node}-{i}", asked(), allocation=held))
    wanted = [draw(demands()) for _ in range(draw(st.integers(1, 2)))]
    names = [f"c{i}" for i in range(len(wanted))]
    claims += [DeviceClaim(name=n, requests=r, constraints=c) for n, (r, c) in zip(names, wanted, strict=True)]
    return cluster(slices, claims, [workload("w", *names)])


@given(states())
def test_the_nodes_are_those_on_which_some_choice_meets_all_claims(found):
    """Counting, search and every constraint together, against all choices of devices."""
    session = session_of(found)
    table = session.terms.devices
    terms = session.workloads["default/w"].tasks[0].terms.devices
    wanted = [table.room.demands[term.demand] for term in terms]
    used = {d.key for c in found.devices.claims if c.allocation for d in c.allocation.devices}

    def matches(exactly, there):
        return "kind ==" not in exactly.selectors[0].cel.expression.replace(".kind", "kind") or (
            there.model.attributes.get("kind") == text("a")
        )

    expected = {
        session.nodes.names[i]
        for i in range(len(session.nodes))
        if meets(table.room.counts.stock.at[i].devices, wanted, used, matches)
    }
    assert nodes_for(found, "w") == (expected, expected)


@given(states(), st.data())
def test_a_rollback_gives_everything_back(found, data):
    """Whatever is placed in a scenario, the counts are those of before; and what is placed has no device twice."""
    more = data.draw(states())
    claims = [*found.devices.claims, *(replace(c, namespace="more", allocation=None) for c in more.devices.claims)]
    both = replace(
        found,
        workloads=(*found.workloads, *(replace(w, namespace="more") for w in more.workloads)),
        devices=replace(found.devices, claims=tuple(claims)),
    )
    session = session_of(with_device_uses(both))
    table = session.terms.devices
    terms = [w.tasks[0].terms.devices for w in session.workloads.values()]
    before = [[table.mask(t, v).tolist() for v in (BOTH, LATER)] for t in terms], table.held()
    with session.scenario():
        for found_terms in terms:
            places = table.mask(found_terms, BOTH).nonzero()[0]
            if len(places):
                table.count(found_terms, int(places[0]), now=True, then=True, sign=1)
                assert all(t.claim in table.held() for t in found_terms)
        keys = [t.device.key for given in table.held().values() for t in given.taken]
        assert len(keys) == len(set(keys))
    assert ([[table.mask(t, v).tolist() for v in (BOTH, LATER)] for t in terms], table.held()) == before


@given(states(), states())
def test_a_kept_session_gives_the_devices_that_a_new_one_would(found, more):
    """After what was planned has been carried out, and other workloads with other claims have come."""
    kept = KeptSession()
    session = kept.take(found)
    plan = Scheduler(session).cycle(NOW)
    kept.keep(found, session, plan)
    done = EmbeddedCluster(found)
    done.carry_out(plan)
    come = tuple(replace(w, namespace="more") for w in more.workloads)
    asked = tuple(replace(c, namespace="more") for c in more.devices.claims if c.allocation is None)
    inventory = replace(done.cluster.devices, claims=(*done.cluster.devices.claims, *asked))
    workloads = tuple(sorted((*done.cluster.workloads, *come), key=lambda w: w.key))
    later = with_device_uses(replace(done.cluster, now=NOW + 1, workloads=workloads, devices=inventory))
    session = kept.take(later)
    plan = Scheduler(session).cycle(NOW + 1)
    assert plan.steps == Scheduler(session_of(later)).cycle(NOW + 1).steps
    kept.keep(later, session, plan)
    other = replace(more, now=NOW + 2)
    assert Scheduler(kept.take(other)).cycle(NOW + 2).steps == Scheduler(session_of(other)).cycle(NOW + 2).steps


# -- selectors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "says"),
    [
        ("1 +", "cannot be compiled"),
        ("unknown.thing", "cannot be compiled"),
        ('device.driver + "x"', "gives no truth value"),
        ("true || " * 2000 + "true", "more than 10,240 characters"),
        ("[1, 2].all(a, true) && " + "true && " * 300 + "true", "goes through lists"),
        ("cel.bind(a, 'x'+'x'+'x'+'x'+'x'+'x', " * 20 + "true" + ")" * 20, "makes text of text too often"),
        ("(" * 400 + "true" + ")" * 400, "cannot be compiled"),
    ],
)
def test_a_selector_that_is_wrong_or_dear_is_refused_with_the_reason(written, says):
    """Before it is looked at any device."""
    found = compiled(written)
    assert isinstance(found, DeviceSelectorError) or says == "gives no truth value"
    if isinstance(found, CompiledSelector):
        with pytest.raises(DeviceSelectorError, match=says):
            found.matches(DRIVER, device("a"))
    else:
        assert says in str(found)


def test_a_selector_that_loops_without_end_is_ended():
    """Iterations are bounded; the device counts as one of which nothing is known."""
    many = "lists.range(99)"
    found = compiled(f"{many}.all(a, {many}.all(b, {many}.all(c, a + b + c >= 0)))")
    assert isinstance(found, CompiledSelector)
    with pytest.raises(DeviceSelectorError, match="budget"):
        found.matches(DRIVER, device("a"))


def test_a_selector_that_fails_costs_its_own_pod_alone():
    """An attribute that is missing is a reason on that pod; another claim gets the device."""
    slices = [local("n0", device("a"))]
    wrong = f'device.attributes["{DRIVER}"].missing == 1'
    found = cluster(
        slices,
        [claim("wrong", asked(1, wrong)), claim("right", asked())],
        [workload("w1", "wrong"), workload("w2", "right")],
    )
    assert planned(found) == {"w2": ("bind", "n0", {"right": ["a"]})}


@pytest.mark.parametrize(
    ("written", "is_taken"),
    [
        ('device.attributes["gpu.example.com"].model == "a100"', True),
        ('device.attributes["other.org"].rack == 3', True),
        ('device.attributes["nowhere"].?rack.orValue(4) == 4', True),
        ('"nowhere" in device.attributes', False),
        ('device.attributes["gpu.example.com"].driver.isGreaterThan(semver("1.9.0"))', True),
        ('device.attributes["gpu.example.com"].driver.compareTo(semver("1.10.0")) == 0', True),
        ('semver("1.0.0-alpha.2").isLessThan(semver("1.0.0-alpha.10"))', True),
        ('device.capacity["gpu.example.com"].memory.compareTo(quantity("80Gi")) == 0', True),
        ('quantity("1500m").isInteger() || quantity("1500m").add(1).isGreaterThan(quantity("2"))', True),
        ('isQuantity("1x") || isSemver("1.0")', False),
        ('cel.bind(a, device.attributes["gpu.example.com"], a.model.startsWith("a") && a.fast)', True),
    ],
)  # fmt: skip
def test_selectors_see_devices_as_kubernetes_shows_them(written, is_taken):
    """Attributes and capacities by domain, with versions and quantities as values of their own."""
    seen = Device(
        name="a",
        attributes={"model": text("a100"), "other.org/rack": number(3), "driver": DeviceAttribute(version="1.10.0"),
                    "fast": DeviceAttribute(flag=True)},
        capacity={"memory": DeviceCapacity(value=NANO * 80 << 30)},
    )  # fmt: skip
    found = compiled(written)
    assert isinstance(found, CompiledSelector), found
    assert found.matches(DRIVER, seen) is is_taken
