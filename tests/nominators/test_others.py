"""Over share, idle, plugins of other packages, and what holds for all: nothing is changed by nominating."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from tests.builders import NOW, SECOND, spec, task, workload
from tests.properties.strategies import clusters
from tests.requeue.clusters import nominated, one_node, overdue, queue, requeued, skips, waiting
from tests.requeue.state import full_state

from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.queue import QueueStatus
from tenure.model.settings import FairnessSettings, HistorySettings, IdleSettings, NominatorSettings
from tenure.model.values.resources import GPU
from tenure.nominators.contention import Contention
from tenure.nominators.contract import REASONS, NominationContext
from tenure.nominators.expected_ends import ExpectedEnds
from tenure.nominators.registry import Registry
from tenure.playthrough import play

OVER = NominatorSettings(over_share=True)
IDLE = NominatorSettings(idle=IdleSettings(enabled=True))
HOUR = 3600 * SECOND


def scene_of(session, *, everyone=True):
    workloads = [w for _, w in sorted(session.workloads.items())]
    due = workloads if everyone else ExpectedEnds(session).now()
    return NominationContext(session, Fairness(session).now(), Contention(session), due, workloads)


def test_over_share_names_work_of_queues_that_hold_more_than_their_fair_share():
    """Off by default; it needs no expected runtime, and looks at resources that the work holds."""
    tree = [queue("a", guaranteed={"gpu": 2}), queue("b", guaranteed={"gpu": 2})]
    one = replace(overdue(expected=None), queue="a")
    cluster = one_node(one, replace(waiting(gpu=2), queue="b"), queues=tree, nominators=OVER)
    assert nominated(play(cluster)) == {"old": ("over-share",)}
    assert nominated(play(one_node(one, replace(waiting(gpu=2), queue="b"), queues=tree))) == {}
    within = replace(overdue(gpu=2, expected=None), queue="a")
    assert nominated(play(one_node(within, replace(waiting(), queue="b"), queues=tree, nominators=OVER))) == {}
    barred = replace(one, requeue_not_before=NOW + 1)
    found = play(one_node(barred, replace(waiting(gpu=2), queue="b"), queues=tree, nominators=OVER))
    assert skips(found, "over-share") == {"old": "cooldown"}
    assert not requeued(found)


def test_over_share_counts_the_past_where_fairness_looks_back():
    """Two equal queues that want everything: the one that had it all is over its share."""
    status = QueueStatus(usage={GPU: 1e6}, usage_at=NOW)
    tree = [queue("a", status=status), queue("b")]
    one = replace(overdue("one", gpu=2, expected=None), queue="a")
    two = replace(overdue("two", gpu=2, expected=None), queue="b")
    more = [replace(waiting(f"more-{q}", gpu=4, age=5), queue=q) for q in "ab"]
    history = FairnessSettings(history=HistorySettings())
    assert nominated(play(one_node(one, two, *more, queues=tree, nominators=OVER))) == {}
    looking_back = one_node(one, two, *more, queues=tree, nominators=OVER, fairness=history)
    assert nominated(play(looking_back)) == {"one": ("over-share",)}


@pytest.mark.parametrize(
    ("usage", "lasted", "is_idle"),
    [
        ({GPU: 199}, HOUR, True),
        ({GPU: 200}, HOUR, False),
        ({GPU: 0}, HOUR - 1, False),
        ({GPU: 0}, None, False),
        (None, HOUR, False),
        ({"cpu": 0}, HOUR, False),
    ],
)
def test_idle_needs_figures_below_the_threshold_for_long_enough(usage, lasted, is_idle):
    """5% of 4 GPUs are 200 milli-GPU."""
    tasks = [task("t", spec(gpu=4), on="n", usage=usage, usage_for=lasted)]
    one = workload("old", tasks=tasks, running=7200, age=7300)
    assert nominated(play(one_node(one, nominators=IDLE))) == ({"old": ("idle",)} if is_idle else {})


def test_one_busy_or_unmeasured_task_keeps_its_workload():
    quiet = {"usage": {GPU: 0}, "usage_for": HOUR}
    for other in ({"usage": {GPU: 900}, "usage_for": HOUR}, {}):
        tasks = [task("t0", spec(gpu=2), on="n", **quiet), task("t1", spec(gpu=2), on="n", **other)]
        assert nominated(play(one_node(workload("old", tasks=tasks, running=7200), nominators=IDLE))) == {}


def test_an_idle_notebook_keeps_its_gpu_while_nobody_more_deserving_waits():
    tasks = [task("t", spec(gpu=4), on="n", usage={GPU: 0}, usage_for=HOUR)]
    notebook = workload("notebook", tasks=tasks, running=7200, age=7300, priority=50)
    assert not requeued(play(one_node(notebook, nominators=IDLE)))
    assert not requeued(play(one_node(notebook, waiting(priority=50), nominators=IDLE)))
    assert requeued(play(one_node(notebook, waiting(priority=60), nominators=IDLE))) == {"notebook": "new"}


class Picky:
    name = "picky"

    def __init__(self, names):
        self.names = names

    def nominate(self, workloads, now):  # noqa: ARG002
        if self.names is None:
            raise RuntimeError("broken")
        return self.names


def test_nominators_of_other_packages_pass_the_same_checks():
    cluster = one_node(
        overdue(gpu=2, expected=None), overdue("fixed", gpu=2, expected=None, preemptible=False), waiting()
    )
    session = session_of(cluster)
    registry = Registry(cluster.settings, [Picky(["default/old", "default/fixed", "default/gone"])])
    found = registry.nominate(scene_of(session))["picky"]
    assert [n.workload for n in found.nominations] == ["default/old"]
    assert [(s.workload, s.reason) for s in found.skips] == [("default/fixed", "not_preemptible")]
    assert "default/gone" in registry.complaints["picky"]


def test_a_nominator_that_raises_or_takes_a_name_is_reported_and_nominates_nobody():
    cluster = one_node(overdue(expected=None))
    registry = Registry(cluster.settings, [Picky(None)])
    assert registry.nominate(scene_of(session_of(cluster)))["picky"].nominations == []
    assert "broken" in registry.complaints["picky"]
    taken = Picky([])
    taken.name = "idle"
    registry = Registry(cluster.settings, [taken])
    assert "is taken" in registry.complaints["idle"]
    assert len(registry.nominators) == 1


@settings(max_examples=60)
@given(clusters())
def test_nominating_changes_nothing(cluster):
    """The full state of the session is the same before and after, whatever is switched on."""
    cluster = replace(
        cluster, settings=replace(cluster.settings, nominators=replace(IDLE, over_share=True), expected_runtime=SECOND)
    )
    session = session_of(cluster)
    before = full_state(session)
    found = Registry(cluster.settings, [Picky(sorted(session.workloads))]).nominate(scene_of(session))
    assert full_state(session) == before
    assert {s.reason for f in found.values() for s in f.skips} <= set(REASONS)


@settings(max_examples=60)
@given(clusters())
def test_who_is_due_can_be_known_without_looking_at_everybody(cluster):
    """Simulations look only at what may be due: the same nominations."""
    cluster = replace(cluster, settings=replace(cluster.settings, expected_runtime=20 * SECOND))
    session = session_of(cluster)
    registry = Registry(cluster.settings, [])
    full, quick = (registry.nominate(scene_of(session, everyone=e))["expected-runtime"] for e in (True, False))
    assert full.nominations == quick.nominations
