"""What is kept for another scheduler's pod is not given up because a plan looked before what it moved had landed."""

from __future__ import annotations

import pytest
from tests.kubernetes.pods import NOW, Nowhere, node, pod, thing, watching

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.controller import ReservationController
from tenure.clusters.kubernetes.external.reservations import DepartedPod, NodeReservation
from tenure.clusters.kubernetes.read import eviction_log
from tenure.clusters.kubernetes.write.actor import Actor
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.engine.plan import Plan
from tenure.live.external import ExternalRescheduler
from tenure.model.cluster import Eviction
from tenure.model.settings import ReschedulerSettings, Settings
from tenure.model.values.duration import format_time

SECOND = 1_000_000
SETTINGS = Settings(rescheduler=ReschedulerSettings(pending_for=SECOND, schedulers=("default-scheduler",)))
SENT = NOW - 2 * SECOND
HOLE = NodeReservation(
    id="0123456789abcdef",
    at=format_time(NOW - 5 * SECOND),
    until=format_time(NOW + 300 * SECOND),
    whose=("default/big",),
    pods=("uid-large",),
    nodes=("n0",),
    moves=(DepartedPod("uid-small", "uid-set", "n0", "n1"),),
)


def foreign(name, cpu, **fields):
    container = {"name": "main", "resources": {"requests": {"cpu": cpu}}}
    return pod(name, schedulerName="default-scheduler", containers=[container], **fields)


@pytest.fixture
def leaving():
    """Give an observer of a pod that is on its way out, so that another fits; what is written down of it, too."""
    moved = Eviction(at=SENT, workload="default/set", task="small", cause="reschedule", beneficiary="default/big",
                     from_node="n0", to_node="n1")  # fmt: skip
    entry = eviction_log.entry_of(moved, "uid-small", "uid-set", None)
    log = thing("tenure-evictions-default-0", namespace="tenure-system", kind=api.ApiObject,
                data={eviction_log.DATA: eviction_log.write([entry])})  # fmt: skip
    record = thing("tenure-moves-default", namespace="tenure-system", kind=api.ApiObject,
                   data=reservations.body_of(HOLE, "default")["data"])  # fmt: skip
    taint = {"key": reservations.TAINT, "value": HOLE.id, "effect": "NoSchedule"}
    tainted = node("n0", "10")
    tainted.spec = api.NodeSpec(taints=[taint])
    tolerations = [reservations.toleration(HOLE.id)]
    return watching(
        tainted,
        node("n1", "10"),
        foreign("large", "9", owner=("ReplicaSet", "big"), tolerations=tolerations),
        foreign("small", "4", owner=("ReplicaSet", "set"), node="n0", deletionTimestamp=format_time(SENT),
                deletionGracePeriodSeconds=30),
        settings=SETTINGS,
        eviction_log=[log, record],
    )  # fmt: skip


def test_it_is_kept_where_the_plan_has_not_seen_yet_what_has_landed(leaving):
    """The watch shows the replacement while a plan is made on the cluster as it was before."""
    informers, before = leaving.informers, leaving.observe(NOW)
    informers.pods.drop(("default", "small"))
    new = foreign("new", "4", owner=("ReplicaSet", "set"), node="n1")
    new.metadata.creation_timestamp = format_time(SENT + SECOND)
    informers.pods.put(new)
    rescheduler = ExternalRescheduler(Actor(Nowhere(), informers), ReservationController(Nowhere(), informers))
    turn = rescheduler.cycle(before, SETTINGS, Plan(NOW))
    assert turn.plan.obstacles, "the plan that was made knows of no move that has not landed"
    assert turn.outcome.failures == turn.outcome.done == turn.notes == []
    assert turn.wake <= NOW + SECOND
    after = leaving.observe(NOW + 2 * SECOND)
    turn = rescheduler.cycle(after, SETTINGS, Plan(NOW + 2 * SECOND))
    assert turn.plan.obstacles == {}
    assert turn.outcome.failures == turn.outcome.done == turn.notes == []


class Late(Nowhere):
    """An API server that has the record already, though the watch does not show it."""

    def get(self, path):  # noqa: ARG002
        """Answer that the policy's binding is there."""
        return b"{}"

    def create(self, path, body, **query):  # noqa: ARG002
        """Refuse a second record; nothing else is refused."""
        if path.endswith("/configmaps"):
            raise ApiError(409, "AlreadyExists", "it is there")
        return b"{}"


def test_a_record_that_the_watch_does_not_show_yet_is_waited_for():
    """It is no reason to leave alone for minutes whom the room was to be made for."""
    seen = watching(
        node("n0", "10"),
        node("n1", "10"),
        foreign("large", "9", owner=("ReplicaSet", "big")),
        foreign("small", "4", owner=("ReplicaSet", "set"), node="n0"),
        foreign("other", "4", owner=("ReplicaSet", "set"), node="n1"),
        settings=SETTINGS,
    )
    client = Late()
    rescheduler = ExternalRescheduler(Actor(client, seen.informers), ReservationController(client, seen.informers))
    refused = []
    for minute in range(0, 60, 10):  # how soon it is planned again goes by how long planning takes
        now = NOW + minute * 60 * SECOND
        turn = rescheduler.cycle(seen.observe(now), SETTINGS, Plan(now))
        assert turn.notes == []
        refused += [failure.error.status for failure in turn.outcome.failures]
    assert set(refused) == {409}
    assert len(refused) > 1, "it is tried again"


class Recreating(Nowhere):
    """An API server that carries evictions out, behind which a controller makes every pod anew from its template."""

    def __init__(self, template):
        self.template, self.evicted, self.now, self.informers = template, 0, NOW, None

    def create(self, path, body, **query):  # noqa: ARG002
        """Evict the pod, and make another one a second later."""
        assert path.endswith("/eviction")
        self.evicted += 1
        self.informers.pods.drop(("default", body["metadata"]["name"]))
        self.put(self.now + SECOND)
        return b"{}"

    def put(self, at):
        """Make a pod that no node fits."""
        waits = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "no node fits"}
        new = foreign(f"web-{self.evicted}", "99", owner=("ReplicaSet", "web"), annotations=self.template,
                      status={"conditions": [waits]})  # fmt: skip
        new.metadata.creation_timestamp = format_time(at)
        self.informers.pods.put(new)


@pytest.mark.parametrize(("template", "least", "most"), [({reservations.KEPT_OFF: "n0"}, 1, 2), ({}, 0, 0)])
def test_a_template_that_says_that_its_pods_are_kept_off_nodes_does_not_have_them_evicted_for_ever(
    template, least, most
):
    """The annotation is the admission policy's; those that the policy kept off are made anew once, and have none."""
    client = Recreating(template)
    client.informers = watching(node("n0", "10"), settings=SETTINGS).informers
    client.put(NOW - 60 * SECOND)
    controller = ReservationController(client, client.informers)
    for minute in range(60):
        client.now = NOW + minute * 60 * SECOND
        controller.tidy(None, Outcome(), client.now)
    assert least <= client.evicted <= most
    moves = (DepartedPod("uid-gone", "uid-web", "n0", "n1"),)
    controller.tidy(NodeReservation(id=HOLE.id, at=HOLE.at, until=HOLE.until, moves=moves), Outcome(), client.now)
    assert least <= client.evicted <= most, "who is guided is left alone"
    for minute in range(60, 70):  # what a later record kept off nodes is made anew once that is gone
        client.now = NOW + minute * 60 * SECOND
        controller.tidy(None, Outcome(), client.now)
    assert 2 * least <= client.evicted <= 2 * most
