"""Classes of one footprint: what a wider one knows of the nodes is what each would find by itself."""

from __future__ import annotations

import random

import numpy as np
from tests.builders import cluster, node, spec, task, workload

from tenure.engine.room.slots import fitting
from tenure.engine.serving.placement import Placer, enough
from tenure.engine.snapshot import session_of
from tenure.model.selectors import (
    Affinity,
    NodeAffinity,
    NodeSelectorTerm,
    PreferredNodeTerm,
    Requirement,
    Taint,
)

ZONES = "abc"


def random_session(dice):
    """A few nodes in zones, one of them tainted at times, and gangs whose tasks differ in where they may go."""
    taints = (Taint(key="t", effect="NoSchedule"),)
    nodes = [
        node(f"n{i}", cpu=dice.randint(1, 6), gpu=dice.choice((0, 2, 4)), labels={"zone": ZONES[i % len(ZONES)]},
             taints=taints if dice.random() < 0.2 else ())
        for i in range(dice.randint(2, 6))
    ]  # fmt: skip
    asks = ({"cpu": 1}, {"cpu": 1, "gpu": 1}, {"cpu": 1, "fraction": 500})

    def drawn():
        where = dice.choice(((), (), (("zone", dice.choice(ZONES)),)))
        liked = NodeSelectorTerm(
            match_expressions=(Requirement(key="zone", operator="In", values=(dice.choice(ZONES),)),)
        )
        prefers = Affinity(node=NodeAffinity(preferred=(PreferredNodeTerm(weight=3, term=liked),)))
        return spec(**dice.choice(asks), node_selector=where, affinity=prefers if dice.random() < 0.2 else None)

    pool = [drawn() for _ in range(6)]
    made = [
        workload(f"w{i}", tasks=[task(f"w{i}-{n}", dice.choice(pool)) for n in range(dice.randint(1, 5))])
        for i in range(6)
    ]
    placement = dice.choice(("binpack", "spread", "fragmentation", {"binpack": 2.0, "spread": 1.0}))
    return session_of(cluster(nodes, made, placement=placement))


def test_a_class_has_the_scores_and_slots_that_it_would_have_without_a_wider_one():
    """After every change, whichever classes were looked at in between, and where nodes are preferred."""
    dice, covered, preferring = random.Random(5), 0, 0
    for _ in range(150):
        session = random_session(dice)
        scorer, placer = session.scorer, Placer(session)
        tasks = [t for w in session.workloads.values() for t in w.tasks]
        session.fragmentation.refresh()
        for _ in range(12):
            one = dice.choice(tasks)
            if one.node >= 0:
                session.withdraw(one)
            elif (where := placer.find(one))[0] >= 0:
                placer.put(one, where[0], bindable=where[1])
            for cls in dice.choices(session.classes.classes, k=dice.randint(0, 3)):
                best, fresh = scorer.best(cls), scorer.keys(cls, slice(None))
                assert np.array_equal(cls.key, fresh)
                assert best == (int(fresh.argmax()) if np.isfinite(fresh).any() else -1)
                covered += cls.wider() is not None
                preferring += cls.wider() is not None and cls.preference is not None
                if cls.milli is None:
                    alone = fitting(session.nodes.room[session.nodes.rows :], cls.asks, cls.static)
                    assert scorer.slots.of(cls).tolist() == alone.tolist()
                    assert scorer.slots.total(cls) == int(alone.sum())
    assert covered > 100
    assert preferring > 10


def test_a_step_for_which_there_is_not_enough_room_cannot_be_laid_out():
    """The look at all of a footprint refuses only what no arrangement places, and more than a look at each class."""
    dice, refused, together = random.Random(6), 0, 0
    for _ in range(1000):
        session = random_session(dice)
        for found in session.workloads.values():
            step = found.step
            if step is None or any(t.cls.milli is not None for t in step.tasks) or enough(session.scorer, step):
                continue
            refused += 1
            together += all(session.scorer.capacity(c) >= n for c, n in step.classes.items())
            assert not _can_be_laid_out(session, [t.cls for t in step.tasks])
    assert refused > together > 10


def _can_be_laid_out(session, classes):
    """Try every node for each task in turn."""
    nodes = session.nodes
    room = nodes.room[nodes.rows :].copy()

    def rest(number):
        if number == len(classes):
            return True
        cls = classes[number]
        for at in np.flatnonzero(cls.static).tolist():
            if (room[:, at] >= cls.ask).all():
                room[:, at] -= cls.ask
                found = rest(number + 1)
                room[:, at] += cls.ask
                if found:
                    return True
        return False

    return rest(0)


def test_which_class_is_the_widest_does_not_depend_on_which_came_first():
    """A class of one zone, which comes first, is looked at by the one without a selector as soon as there is one."""
    nodes = [node(f"n{i}", gpu=2, labels={"zone": zone}) for i, zone in enumerate(ZONES)]
    zoned, anywhere = spec(gpu=1, node_selector=(("zone", "b"),)), spec(gpu=1)
    for order in ((zoned, anywhere), (anywhere, zoned)):
        made = [workload(f"w{i}", of=of) for i, of in enumerate(order)]
        session = session_of(cluster(nodes, made))
        narrow, wide = (session.classes.of(of) for of in (zoned, anywhere))
        assert (narrow.wider(), wide.wider()) == (wide, None)
        assert narrow.footprint is wide.footprint
        assert session.classes.of(spec(gpu=2)).footprint is not wide.footprint


def test_a_gang_starts_exactly_where_some_arrangement_of_its_tasks_fits():
    """Its tasks ask for the same, and some are bound to a zone: those that may go anywhere leave them their room."""
    dice, seen = random.Random(8), {(True, True): 0, (False, False): 0}
    for _ in range(300):
        nodes = [
            node(f"n{i}", gpu=dice.randint(0, 3), labels={"zone": dice.choice(ZONES)})
            for i in range(dice.randint(1, 4))
        ]
        zoned = [spec(gpu=1, node_selector=(("zone", zone),)) for zone in ZONES]
        tasks = [task(f"t{n}", dice.choice((spec(gpu=1), *zoned))) for n in range(dice.randint(2, 6))]
        session = session_of(cluster(nodes, [workload("w", tasks=tasks)]))
        (waiting,) = session.waiting.all()
        can = _can_be_laid_out(session, [t.cls for t in waiting.tasks])
        starts = Placer(session).place(waiting, waiting.step)
        seen[starts, can] += 1
    assert min(seen.values()) > 50
