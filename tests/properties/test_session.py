"""The session's own promises: undo is exact, caches are what they would be if made anew, one number from two ways."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.made_once import pick
from tests.properties.dump import state_of
from tests.properties.strategies import clusters

from tenure.engine.room import kernels
from tenure.engine.room.score import UNFIT
from tenure.engine.serving.imagined_room import ImaginedRoom, place_of
from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.engine.state.audit import audit
from tenure.engine.state.evictions import depart, evict, evict_all, outstay
from tenure.engine.state.transaction import Undone
from tenure.engine.state.workloads import BOUND, PENDING, RUNNING, TERMINATING


class Operations:
    """Random operations on a session, each allowed where it is made."""

    def __init__(self, session, choose):
        self.session = session
        self.placer = Placer(session)
        self.choose = choose

    def tasks(self, wanted):
        workloads = [w for _, w in sorted(self.session.workloads.items()) if w.leaf >= 0]
        return [t for w in workloads for t in w.tasks if wanted(t)]

    def place(self):
        """Bind a pending task where it fits best, or nominate it."""
        waiting = self.tasks(lambda t: t.phase is PENDING and t.nominated < 0)
        if waiting:
            task = self.choose(waiting)
            node, bindable = self.placer.find(task)
            if node >= 0:
                self.placer.put(task, node, bindable=bindable and self.choose((True, True, False)))

    def step(self):
        """Place a whole next step."""
        waiting = self.session.waiting.all()
        if waiting:
            workload = self.choose(waiting)
            if self.placer.place(workload, workload.step):
                self.session.note_start(workload)
                self.session.refresh(workload)

    def withdraw(self):
        """Undo a placement, or let go what terminates."""
        placed = self.tasks(lambda t: t.nominated >= 0 or t.node >= 0)
        if placed:
            self.session.withdraw(self.choose(placed))

    def refresh(self):
        self.session.refresh(self.choose(self.tasks(lambda _: True)).workload)

    def stick(self):
        late = self.tasks(lambda t: t.phase is TERMINATING and not t.stuck)
        if late:
            self.session.mark_stuck(self.choose(late))

    def evict(self):
        running = self.tasks(lambda t: t.phase in (BOUND, RUNNING))
        if running:
            evict(self.session, self.choose(running))

    def depart(self):
        leaving = self.tasks(lambda t: t.leaving >= 0)
        if leaving:
            depart(self.session, self.choose(leaving))

    def outstay(self):
        leaving = self.tasks(lambda t: t.leaving >= 0 and not t.stuck)
        if leaving:
            outstay(self.session, self.choose(leaving))

    ALL = (place, place, step, withdraw, refresh, stick, evict, depart, outstay)

    def some(self, most):
        for _ in range(self.choose(range(most + 1))):
            self.choose(self.ALL)(self)


def begun(cluster):
    """Give a session as a cycle begins on it."""
    session = session_of(cluster)
    session.fragmentation.refresh()
    return session


def unsound(session):
    """What does not add up; a start is noted by what places a whole workload, and not by these single changes."""
    return [found for found in audit(session) if not found.startswith("unstarted ")]


def nested(operations, depth):
    """Open a checkpoint, do something, perhaps within further ones, and roll back or commit."""
    session = operations.session
    before = state_of(session)
    mark = session.checkpoint()
    operations.some(4)
    assert unsound(session) == []
    if depth and operations.choose((True, True, False)):
        nested(operations, depth - 1)
        operations.some(3)
    if operations.choose((True, True, False)):
        session.rollback(mark)
        assert state_of(session) == before
    else:
        session.commit()


@given(clusters(), st.data())
def test_rollback_restores_everything(cluster, data):
    """Bit for bit, however deep, whatever was committed further inside."""
    session = begun(cluster)
    operations = Operations(session, partial(pick, data.draw))
    operations.some(3)
    before = state_of(session)
    mark = session.checkpoint()
    nested(operations, 3)
    operations.some(4)
    session.rollback(mark)
    assert state_of(session) == before
    assert session.journal._entries == []


@given(clusters(), st.data())
def test_a_scenario_is_undone_unless_it_is_kept(cluster, data):
    """Nested or not, by an error as well; with its epoch, so that what was known before it holds again."""
    session = begun(cluster)
    operations = Operations(session, partial(pick, data.draw))
    operations.some(3)
    before, epoch = state_of(session), session.epoch

    def kept_until_an_error():
        with session.scenario() as outer:
            with session.scenario():
                operations.some(4)
            assert (state_of(session) | {"open": 0}, session.epoch) == (before | {"open": 0}, epoch)
            with session.scenario() as inner:
                operations.some(4)
                inner.keep()
            outer.keep()
            raise LookupError

    with pytest.raises(LookupError):
        kept_until_an_error()
    assert (state_of(session), session.epoch) == (before, epoch)
    with session.scenario() as only:
        only.keep()
        operations.some(4)
        after = state_of(session)
    assert state_of(session) | {"open": 0} == after | {"open": 0}
    assert session.journal.depth == 0


@given(clusters(), st.data())
def test_what_was_undone_can_be_done_again(cluster, data):
    """Bit for bit, and so that a later transaction finds everything as if it had never been undone."""
    session = begun(cluster)
    operations = Operations(session, partial(pick, data.draw))
    operations.some(3)
    before, mark, undone = state_of(session), session.checkpoint(), Undone([], [], [])
    operations.some(4)
    nested(operations, 1)
    after = state_of(session)
    session.rollback(mark, undone=undone)
    assert state_of(session) == before
    mark = session.checkpoint()
    session.repeat(undone)
    assert state_of(session) == after
    session.rollback(mark)
    assert state_of(session) == before
    session.repeat(undone)
    assert {**state_of(session), "open": 1} == after
    assert unsound(session) == []
    nested(operations, 1)
    for cls in session.classes.classes:
        session.scorer.best(cls)
        assert np.array_equal(cls.key, session.scorer.keys(cls, slice(None)))


@given(clusters(), st.data())
def test_scores_kept_are_scores_made_anew(cluster, data):
    """After any operations and rollbacks the scores of every class are those of a fresh look at all nodes."""
    session = begun(cluster)
    operations = Operations(session, partial(pick, data.draw))
    for _ in range(data.draw(st.integers(1, 3))):
        nested(operations, 2)
        for cls in session.classes.classes:
            best = session.scorer.best(cls)
            assert session.scorer.capacity(cls) == session.scorer.capacity(cls, np.ones(len(session.nodes), bool))
            if cls.milli is None:
                anew, total = session.scorer.slots.of(cls), session.scorer.capacity(cls)
                assert (anew.tolist(), total) == slots_one_by_one(session.nodes, cls)
            fresh = session.scorer.keys(cls, slice(None))
            assert np.array_equal(cls.key, fresh)
            assert best == (int(fresh.argmax()) if fresh.max() > UNFIT else -1)


@given(clusters(), st.data())
def test_what_is_imagined_changes_nothing(cluster, data):
    """Room that is released in thought is released nowhere else, not even in what tells caches what has changed."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(3)
    before, changed = state_of(session), list(session.nodes.changed)
    for _ in range(2):
        imagined = ImaginedRoom(session)
        imagined.release([(0, (), w.key, w) for w in session.workloads.values()])
        for workload in session.waiting.all():
            imagined.place(workload.step)
    assert (state_of(session), session.nodes.changed) == (before, changed)


def slots_one_by_one(nodes, cls):
    """How many tasks fit on each node by its room, and in all."""
    found = []
    for node in range(len(nodes)):
        room = nodes.room[nodes.rows :, node]
        fits = min((1 << 40, *(max(0, int(room[row]) // amount) for row, amount in cls.asks)))
        found.append(fits if cls.static[node] else 0)
    return found, sum(found)


@given(clusters(placements=("binpack", "spread")), st.data())
def test_one_node_scores_as_all_nodes_do(cluster, data):
    """The scalar score of a node is the vector's, bit for bit."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(8)
    for cls in session.classes.classes:
        together = session.scorer.keys(cls, slice(None)).tolist()
        assert [session.scorer.scalar(cls, node) for node in range(len(session.nodes))] == together


@given(clusters(), st.data())
def test_one_node_fits_as_all_nodes_do(cluster, data):
    """The scalar fit of a node is the vector's, with parts of GPUs and without."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(8)
    names = {(False, False): kernels.UNFIT, (False, True): kernels.WAITS, (True, True): kernels.BINDS}
    for cls in session.classes.classes:
        now, then = (mask.tolist() for mask in session.scorer.fits(cls, slice(None)))
        together = [names[pair] for pair in zip(now, then, strict=True)]
        assert [session.scorer.fit_at(cls, node) for node in range(len(session.nodes))] == together


def told(session):
    """Give the state, but the numbers of changes, of which there are fewer where many are made at once."""
    return {name: value for name, value in state_of(session).items() if name not in ("stamps", "order")}


@given(clusters(), st.data())
def test_many_tasks_leave_and_come_back_as_one_by_one(cluster, data):
    """Evicted at once, and promised the places that they still hold at once, where that is possible."""
    session = begun(cluster)
    operations = Operations(session, partial(pick, data.draw))
    operations.some(5)
    active = operations.tasks(lambda t: t.phase in (BOUND, RUNNING))
    chosen = data.draw(st.lists(st.sampled_from(active), unique=True)) if active else []
    together = [w for w in dict.fromkeys(t.workload for t in active) if data.draw(st.booleans())]
    chosen = list(dict.fromkeys([*chosen, *(t for t in active if t.workload in together)]))
    taken = [evict_all, lambda session, tasks: [evict(session, task) for task in tasks]]
    outcomes = []
    for at_once in (True, False):
        with session.scenario():
            taken[not at_once](session, chosen)
            gone = told(session)
            placer = Placer(session)
            placer.own = "first"
            if not at_once:
                placer._stay_together = lambda _: False
            for workload in dict.fromkeys(t.workload for t in chosen):
                session.refresh(workload)
                if workload.step is not None and placer.place(workload, workload.step):
                    session.refresh(workload)
            outcomes.append((gone, {k: v for k, v in told(session).items() if k != "workloads"}))
            assert unsound(session) == []
    assert outcomes[0] == outcomes[1]


@given(clusters(), st.data())
def test_imagined_room_is_released_as_task_by_task(cluster, data):
    """What many workloads hold is given back at once: the same room, the same devices, the same free ones."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(6)
    ending = [w for _, w in sorted(session.workloads.items()) if data.draw(st.booleans())]
    at_once, one_by_one = ImaginedRoom(session), ImaginedRoom(session)
    at_once.release([(0, (), w.key, w) for w in ending])
    held = [(t, *place_of(t)) for w in ending for t in w.tasks]
    held = [(task, node, devices) for task, node, devices in held if node >= 0]
    for task, node, devices in held:
        one_by_one._occupy(task.cls, node, devices, -1)
    assert np.array_equal(at_once.nodes.room, one_by_one.nodes.room)
    assert np.array_equal(at_once.nodes.device, one_by_one.nodes.device)
    assert {node for task, node, _ in held if task.cls.asks} <= set(at_once.nodes.changed)


@given(clusters(placements=("binpack",)), st.data())
def test_many_tasks_are_imagined_as_one_by_one(cluster, data):
    """Tasks of a class that fill node after node lie where each of them finds the best node."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(6)
    at_once, one_by_one = ImaginedRoom(session), ImaginedRoom(session)
    for cls in session.classes.classes:
        number = data.draw(st.integers(2, 6))
        fits = all(one_by_one._place_one(cls, None) for _ in range(number))
        assert at_once._place_alike(cls, number, None) == fits
        if not fits:
            break
        assert np.array_equal(at_once.nodes.room, one_by_one.nodes.room)
        assert np.array_equal(at_once.nodes.device, one_by_one.nodes.device)
        assert set(one_by_one.nodes.changed) <= set(at_once.nodes.changed)


@given(clusters(), st.data())
def test_what_is_kept_up_to_date_is_what_a_new_session_would_count(cluster, data):
    """Taking workloads out until nothing is left empties every count."""
    session = begun(cluster)
    Operations(session, partial(pick, data.draw)).some(8)
    for key in data.draw(st.permutations(sorted(session.workloads))):
        session.remove_workload(key)
    nodes = session.nodes
    assert np.array_equal(nodes.room, np.concatenate([nodes.capacity, nodes.capacity]))
    assert nodes.waiting == 0
    assert not session.nominated
    assert not session.leaving
    assert not session.terms.counts.match.any()
    assert not session.terms.counts.leaving.any()
    assert not session.terms.counts.hold.any()
    assert not session.terms.counts.port.any()
    assert not any(session.on_node)
    assert {a for kind in ("allocated", "fixed", "pending") for q in getattr(session.queues, kind) for a in q} <= {0}
    assert set(session.occupancy.foreign) <= {0}
    assert session.waiting.all() == []
