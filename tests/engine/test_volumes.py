"""What tasks mount, where it depends on what else is placed: one rule each, and the counts behind them."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import NOW as NOW_AT
from tests.builders import bound, cluster, node, spec, task, workload

from tenure.engine.room.nodes import NOW, THEN
from tenure.engine.snapshot import session_of
from tenure.engine.storage.volumes import MountTerms
from tenure.model.selectors import LabelSelector, NodeSelector, NodeSelectorTerm, Requirement
from tenure.model.storage import with_mounts
from tenure.model.volumes import (
    NodeDriver,
    Storage,
    StorageCapacity,
    StorageClass,
    StorageDriver,
    Volume,
    VolumeAttachment,
    VolumeClaim,
)
from tenure.model.workload import Phase
from tenure.playthrough import play

LATE = StorageClass(name="late", provisioner="csi", binding_mode="WaitForFirstConsumer")
LOCAL = replace(LATE, name="local", provisioner="kubernetes.io/no-provisioner")


def on(*zones):
    """Give the nodes of some zones."""
    here = Requirement(key="zone", operator="In", values=zones)
    return NodeSelector(terms=(NodeSelectorTerm(match_expressions=(here,)),))


def zones(*names, limit=None):
    """Give a node in each zone, named like that, with the driver ``csi``."""
    drivers = (NodeDriver(name="csi", limit=limit, topology_keys=("zone",)),)
    return [node(name, labels={"zone": name}, drivers=drivers) for name in names]


def volume(name, size=1, zone=None, of="local", **fields):
    """Give a volume that a claim may have."""
    where = None if zone is None else on(zone)
    return Volume(name=name, capacity=size, storage_class=of, node_affinity=where, **fields)


def claim(name, size=1, of="late", **fields):
    """Give a claim of a class; one with a volume is bound."""
    return VolumeClaim(name=name, requests=size, storage_class=of, **fields)


def stored(nodes, workloads, *, claims=(), volumes=(), classes=(LATE, LOCAL), attachments=(), drivers=(), **more):
    """Give a cluster with storage."""
    capacities = more.pop("capacities", ())
    storage = Storage(volumes=tuple(volumes), claims=tuple(claims), storage_classes=tuple(classes),
                      drivers=tuple(drivers), capacities=tuple(capacities))  # fmt: skip
    made = cluster(nodes, workloads, **more)
    return with_mounts(replace(made, storage=storage, attachments=tuple(attachments)))


def mounting(name, *claims, **fields):
    """Give a workload whose tasks mount claims."""
    return workload(name, of=spec(claims=claims), **fields)


def reason(played, name):
    """Say why a workload waits."""
    return next(p for p in played.pending if p.workload == f"default/{name}").reasons[0].message


def test_one_of_two_pods_uses_a_claim_of_one_pod():
    """The other one waits, wherever it would stand, and says for what."""
    alone = claim("c", volume="v", access_modes=("ReadWriteOncePod",))
    made = stored(zones("a", "b"), [mounting("w", "c", age=2), mounting("x", "c", age=1)], claims=[alone],
                  volumes=[volume("v")])  # fmt: skip
    played = play(made)
    assert list(bound(played)) == ["w-0"]
    assert reason(played, "x") == "0 of 2 nodes fit: 2 claim in use by another task"


def test_a_claim_of_one_pod_goes_over_to_whom_its_user_is_evicted_for():
    """The evicted user does not use it any more, in thought, and the contender is nominated."""
    alone = claim("c", volume="v", access_modes=("ReadWriteOncePod",))
    made = stored(
        zones("a", "b"),
        [mounting("w", "c", on=["a"], running=3600), mounting("x", "c", priority=50)],
        claims=[alone],
        volumes=[volume("v")],
        actions=("allocate", "preempt"),
    )
    steps = {(s.action, s.task) for s in play(made).steps}
    assert steps == {("evict", "w-0"), ("nominate", "x-0")}


def test_a_node_attaches_no_more_volumes_than_it_says():
    """Those of its pods count once, what is attached without being used counts as well."""
    volumes = [volume(f"v{i}", driver="csi", handle=f"h{i}") for i in range(5)]
    claims = [claim(f"c{i}", volume=f"v{i}") for i in range(5)]
    standing = [mounting("s", "c0", "c1", on=["a"]), mounting("t", "c0", on=["a"])]
    waiting = [mounting("w", "c2", age=3), mounting("x", "c0", age=2), mounting("y", "c3", "c4", age=1)]
    made = stored(zones("a", limit=3), [*standing, *waiting], claims=claims, volumes=volumes)
    assert bound(play(made)) == {"w-0": "a", "x-0": "a"}
    attached = [VolumeAttachment(driver="csi", handle=h, node="a") for h in ("h1", "old")]
    assert bound(play(replace(made, attachments=tuple(attached)))) == {"x-0": "a"}


@pytest.mark.parametrize(("limit", "expected"), [(1, {"x-0": "a"}), (2, {})])
def test_what_leaves_may_hand_its_volumes_on_but_not_the_place_of_one_that_was_promised(limit, expected):
    """A node that is over its limit is so with the next pod on the same volumes as well; below it promises count."""
    volumes = [volume(f"v{i}", driver="csi", handle=f"h{i}") for i in range(4)]
    claims = [claim(f"c{i}", volume=f"v{i}") for i in range(4)]
    of = spec(claims=("c0", "c1"))
    leaving = workload("s", tasks=[task("s-0", of, on="a", phase=Phase.TERMINATING, terminating_since=NOW_AT)])
    coming = workload("n", tasks=[task("n-0", spec(claims=("c2", "c3")), nominated_to="a")], age=9)
    standing = [leaving] if limit == 1 else [leaving, coming]
    made = stored(zones("a", limit=limit), [*standing, mounting("x", "c0", "c1")], claims=claims, volumes=volumes)
    assert {name: node for name, node in bound(play(made)).items() if name == "x-0"} == expected


def test_the_smallest_volume_that_fits_is_taken_and_never_twice():
    """Two claims of one pod and one of another share what there is; the third pod finds nothing."""
    volumes = [volume("small", 2, "b"), volume("middle", 3, "b"), volume("large", 9, "b"), volume("else", 2, of="x")]
    claims = [claim("c1", 2, "local"), claim("c2", 1, "local"), claim("c3", 2, "local"), claim("c4", 1, "local")]
    waiting = [mounting("w", "c1", "c2", age=3), mounting("x", "c3", age=2), mounting("y", "c4", age=1)]
    played = play(stored(zones("a", "b"), waiting, claims=claims, volumes=volumes))
    taken = {v.claim: v.volume for s in played.steps for v in s.volumes}
    assert taken == {"default/c2": "small", "default/c1": "middle", "default/c3": "large"}
    assert reason(played, "y") == "0 of 2 nodes fit: 2 no volume for its claims"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"access_modes": ("ReadWriteMany",)}, {}),
        ({"selector": LabelSelector(match_labels=(("disk", "ssd"),))}, {}),
        ({"volume_mode": "Block"}, {}),
        ({"attributes_class": "gold"}, {}),
        ({"requests": 8}, {}),
        ({}, {"w-0": "b"}),
    ],
)
def test_a_volume_that_a_claim_does_not_fit_is_not_taken(change, expected):
    """Modes, labels, class of attributes and size, as kube-scheduler compares them."""
    asked = replace(claim("c", 2, "local"), **change)
    made = stored(zones("a", "b"), [mounting("w", "c")], claims=[asked],
                  volumes=[volume("v", 4, "b", access_modes=("ReadWriteOnce",))])  # fmt: skip
    assert bound(play(made)) == expected


def test_a_volume_is_made_where_class_and_capacity_allow_it():
    """The class names zones, and the driver says where storage is left."""
    narrow = replace(LATE, allowed_topologies=on("a", "b"))
    left = [StorageCapacity(storage_class="late", largest=5, nodes=LabelSelector(match_labels=(("zone", z),)))
            for z in ("b", "c")]  # fmt: skip
    made = stored(zones("a", "b", "c"), [mounting("w", "c1"), mounting("x", "c2")],
                  claims=[claim("c1", 5), claim("c2", 6)], classes=[narrow], capacities=left,
                  drivers=[StorageDriver(name="csi", storage_capacity=True)])  # fmt: skip
    played = play(made)
    assert bound(played) == {"w-0": "b"}
    assert [(s.volumes[0].claim, s.volumes[0].node) for s in played.steps] == [("default/c1", "b")]


def test_a_core_that_shares_a_claim_lands_where_its_volume_will_be_reached():
    """Its volume is made for the node of the first task; the driver says that the node's zone reaches it."""
    drivers = (NodeDriver(name="csi", topology_keys=("zone",)),)
    nodes = [
        node(f"{z}{i}", cpu=1, labels={"zone": z}, drivers=drivers) for z, n in (("a", 1), ("b", 3)) for i in range(n)
    ]
    made = stored(nodes, [mounting("w", "c", tasks=2)], claims=[claim("c")])
    assert set(bound(play(made)).values()) <= {"b0", "b1", "b2"}


def test_a_claim_whose_volume_is_being_made_waits_for_that_node():
    """No other node does, unless the provisioner takes it back."""
    made = stored(zones("a", "b"), [mounting("w", "c")], claims=[claim("c", selected_node="b")])
    assert bound(play(made)) == {"w-0": "b"}
    made = stored(zones("a", "b"), [mounting("w", "c")], claims=[claim("c", selected_node="gone")])
    assert bound(play(made)) == {}


def test_a_local_volume_keeps_its_task_where_it_is():
    """It is not consolidated away, though its room would help another."""
    standing = [mounting("s", "c", on=["a"], running=9), workload("t", of=spec(cpu=1), on=["b"], running=9)]
    waiting = workload("w", of=spec(cpu=8))
    made = stored(
        zones("a", "b"),
        [*standing, waiting],
        claims=[claim("c", volume="v")],
        volumes=[volume("v", 1, "a")],
        actions=("consolidate",),
    )
    steps = {(s.action, s.task, s.to) for s in play(made).steps if s.action == "evict"}
    assert steps == {("evict", "t-0", "a")}


def test_counts_are_what_a_look_at_all_tasks_counts_and_undone_as_a_whole():
    """Tasks come, leave, are evicted and are promised room in any order; scenarios leave nothing behind."""
    dice = random.Random(7)
    for _ in range(60):
        session = session_of(_busy(dice))
        tasks = [t for w in session.workloads.values() for t in w.tasks]
        before = _counted(session)
        assert before == _expected(session, tasks)
        with session.scenario():
            for _ in range(12):
                _change(dice, session, tasks)
                assert _counted(session) == _expected(session, tasks)
        assert _counted(session) == before


def test_a_task_that_nothing_restricts_on_a_node_may_be_there_and_others_are_looked_at():
    """What is told by a glance at the limits is what the masks say, at every fill of the nodes."""
    dice, seen = random.Random(11), set()
    for _ in range(150):
        many = dice.randint(1, 5)
        claims = [claim(f"c{i}", volume=f"v{i}") for i in range(many)]
        volumes = [volume(f"v{i}", driver="csi", handle=f"h{i}") for i in range(many)]
        made = [mounting(f"w{i}", f"c{i}", on=[dice.choice(("a", "b", None))]) for i in range(many - 1)]
        waiting = mounting("x", *dice.sample([c.name for c in claims], dice.randint(1, many)))
        given = stored(zones("a", "b", limit=dice.randint(2, 6)), [*made, waiting], claims=claims, volumes=volumes)
        session = session_of(given)
        (task_state,) = session.workloads["default/x"].tasks
        others = [t for w in session.workloads.values() for t in w.tasks if t is not task_state]
        for _ in range(dice.randint(0, 6) if others else 0):
            _change(dice, session, others)
        now, then = session.terms.admission.masks(task_state.terms)
        for at in range(len(session.nodes)):
            restricts = session.terms.admission.restricts(task_state.terms, at)
            assert restricts or (now[at] and then[at])
            seen.add(restricts)
    assert seen == {True, False}


def _busy(dice):
    volumes = [volume(f"v{i}", driver="csi", handle=f"h{i % 4}") for i in range(6)]
    volumes += [volume(f"l{i}", dice.randint(1, 3), dice.choice("ab")) for i in range(4)]
    modes = ("ReadWriteMany", "ReadWriteOncePod")
    claims = [claim(f"c{i}", volume=f"v{i}", access_modes=(dice.choice(modes),)) for i in range(6)]
    claims += [claim(f"d{i}", dice.randint(1, 2), dice.choice(("late", "local"))) for i in range(4)]
    names = [c.name for c in claims]
    made = [mounting(f"w{i}", *dice.sample(names, 2), on=[dice.choice(("a", "b", None))]) for i in range(6)]
    attached = {(f"h{dice.randrange(5)}", dice.choice("ab")) for _ in range(3)}
    attachments = [VolumeAttachment(driver="csi", handle=h, node=n) for h, n in sorted(attached)]
    return stored(zones("a", "b", limit=4), made, claims=claims, volumes=volumes, attachments=attachments)


def _change(dice, session, tasks):
    from tenure.engine.state.evictions import evict  # noqa: PLC0415

    task = dice.choice(tasks)
    if task.node >= 0 and task.leaving < 0:
        evict(session, task)
    elif task.nominated >= 0:
        session.withdraw(task)
    elif task.node < 0 and task.leaving < 0:
        dice.choice((session.bind, session.nominate))(task, dice.randrange(2), ())


def _counted(session):
    table = session.terms.volumes
    users = _in_use(table.attached.users[0])
    takers = {name: taker for name, taker in table.open._taker.items() if taker}
    opened = list(table.open._waiting), list(table.open._choice)
    return (table.attached.used.tolist(), users, list(table._alone), *opened, takers)


def _in_use(users):
    """Give the users of those volumes that have any."""
    found = {h: {n: c for n, c in of.items() if c != (0, 0)} for h, of in users.items()}
    return {handle: of for handle, of in found.items() if of}


def _expected(session, tasks):
    """Count all from the tasks; which volume was chosen for a claim is taken as it is."""
    table = session.terms.volumes
    users = {}
    alone, waiting = [[0, 0] for _ in table._alone], [0 for _ in table.open._waiting]
    for each in tasks:
        if each.terms is None:
            continue
        mounts = each.terms.mounts or MountTerms()
        held = [(each.node, True, True)] if each.node >= 0 else []
        held += [(each.leaving, True, False)] if each.leaving >= 0 else []
        held += [(each.nominated, False, True)] if each.nominated >= 0 else []
        for where, now, then in held:
            for row in mounts.exclusive:
                alone[row][NOW] += now
                alone[row][THEN] += then
            for handle in {m.handle for m in each.terms.attached}:
                old = users.setdefault(handle, {}).get(where, (0, 0))
                users[handle][where] = old[NOW] + now, old[THEN] + then
            for term in mounts.open:
                waiting[term.row] += then
    used = [[[0] * len(session.nodes)] for _ in range(2)]
    for handle in {*users, *(a.handle for a in table.attached._attachments)}:
        for at in range(len(session.nodes)):
            now, then = users.get(handle, {}).get(at, (0, 0))
            lone = table.attached.is_lone(0, handle, at)
            used[NOW][0][at] += now > 0 or lone
            used[THEN][0][at] += then > 0 or (lone and not now)
    takers = {c.volume: name for name, row in table.open._rows.items() if (c := table.open._choice[row]) and c.volume}
    assert [c is not None for c in table.open._choice] == [count > 0 for count in waiting]
    return used, _in_use(users), [tuple(pair) for pair in alone], waiting, list(table.open._choice), takers


def test_what_is_mounted_makes_no_class_of_its_own():
    """A thousand claims that all nodes reach are one class of tasks: columns are shared."""
    claims = [claim(f"c{i}", volume=f"v{i}") for i in range(20)]
    volumes = [volume(f"v{i}") for i in range(20)]
    made = stored(zones("a"), [mounting(f"w{i}", f"c{i}") for i in range(20)], claims=claims, volumes=volumes)
    session = session_of(made)
    assert len(session.classes.classes) == 1
    assert all(t.terms is None for w in session.workloads.values() for t in w.tasks)


def test_pods_of_one_zone_are_one_class_whatever_object_says_so():
    """A lone volume, one of the same zone by another object, and one beside a volume of no zone make one class."""
    volumes = [volume(f"v{i}", zone="a") for i in range(4)] + [volume("w"), volume("z", zone="b")]
    claims = [claim(f"c-{v.name}", volume=v.name) for v in volumes]
    mounted = [(f"c-v{i}",) for i in range(3)] + [("c-v3", "c-w"), ("c-w",), ("c-z",)]
    made = stored(zones("a", "b"), [mounting(f"w{i}", *names) for i, names in enumerate(mounted)], claims=claims,
                  volumes=volumes)  # fmt: skip
    session = session_of(made)
    cls = [session.workloads[f"default/w{i}"].tasks[0].cls for i in range(len(mounted))]
    assert cls[0] is cls[1] is cls[2] is cls[3]
    assert [c.static.tolist() for c in cls[3:]] == [[True, False], [True, True], [False, True]]
    assert len(session.classes.classes) == 3


def test_a_mount_that_is_not_ready_is_not_taken_for_one_that_is():
    """Of two pods that differ in this alone one is placed."""
    made = stored(zones("a"), [mounting("w", "c"), mounting("x", "gone")], claims=[claim("c", volume="v")],
                  volumes=[volume("v")])  # fmt: skip
    session = session_of(made)
    assert [session.workloads[f"default/{n}"].tasks[0].cls.spec.is_placeable for n in "wx"] == [True, False]
