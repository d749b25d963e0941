"""An observer that looks at what changed alone sees what one sees that looks at everything."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kubernetes.pods import NOW, node, owner, pod, sealed, thing, watching

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache import pod_records
from tenure.clusters.kubernetes.read import eviction_log, standing
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.clusters.kubernetes.seals import NominationNote, NoticeNote
from tenure.engine.kept_session import KeptSession
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.history.who import Who
from tenure.live.records.life_records import LifeRecords
from tenure.live.records.queue_levels import levels_of
from tenure.model.cluster import Eviction

NODES = ("n0", "n1")
GPU = "nvidia.com/gpu"
NAMES = [f"p-{n}" for n in range(6)]
TWO = {"tenure.dev/min-member": "2"}
STARTED_AT = "2026-11-20T10:00:00Z"
STARTED = {"tenure.dev/last-start-timestamp": STARTED_AT}


def gpus(amount, **more):
    return [{"name": "main", "resources": {"requests": {"cpu": "1", **more}, "limits": {GPU: amount}}}]


@st.composite
def pods(draw, name):
    """Draw a pod: whose it is, where it stands, and whether something is odd about it."""
    fields = draw(
        st.sampled_from(
            (
                {},
                {"owner": ("Job", "a")},
                {"owner": ("ReplicaSet", "a")},
                {"labels": {"tenure.dev/pod-group": "g"}, "annotations": TWO},
                {"labels": {"tenure.dev/pod-group": "p-1"}},
                {"labels": {"tenure.dev/queue": "team"}},
                {"labels": {"tenure.dev/queue": "nowhere"}},
                {"schedulerName": "other"},
                {"containers": gpus("1")},
                {"containers": gpus("2"), "schedulerName": "other"},
                {"containers": gpus("1", **{"example.com/odd": "1"})},
                {"namespace": "other"},
                {"phase": "Failed"},
            )
        )
    )
    at = draw(st.sampled_from((None, *NODES, "gone")))
    if at is None:
        hopes = draw(
            st.sampled_from((None, None, NominationNote(node="n0", at="2026-11-20T09:59:00Z", needs=("uid-p-0",))))
        )
        status = {**sealed(nomination=hopes), "nominatedNodeName": "n0"} if hopes is not None else {}
        return pod(name, **{"status": status, **fields})
    devices = draw(st.sampled_from((None, (0,), (1,), (7,))))
    status = sealed(queue="team", started="2026-11-20T09:00:00Z", devices=devices) if devices is not None else {}
    ending = {"deletionTimestamp": "2026-11-20T09:59:50Z", "deletionGracePeriodSeconds": 30}
    return pod(name, node=at, **{"status": status, **fields, **draw(st.sampled_from(({}, {}, ending)))})


ENTRY = eviction_log.entry_of(
    Eviction(at=NOW - 1_000_000, workload="default/a", task="p-1", cause="reclaim", from_node="n0", to_node="n1"),
    "uid-p-1",
    "uid-a",
    NOW + 60_000_000,
)


@st.composite
def changes(draw):
    """Draw what a watch tells next: the store, what it is told, and the object or its key."""
    kind = draw(
        st.sampled_from(("pod", "pod", "pod", "pod", "gone", "node", "no node", "queue", "log", "said", "said"))
    )
    if kind == "pod":
        return "pods", "put", draw(pods(draw(st.sampled_from(NAMES))))
    if kind == "gone":
        return "pods", "drop", (draw(st.sampled_from(("default", "other"))), draw(st.sampled_from(NAMES)))
    if kind == "node":
        return "nodes", "put", node(draw(st.sampled_from(NODES)), **draw(st.sampled_from(({}, {GPU: "2"}))))
    if kind == "no node":
        return "nodes", "drop", ("", draw(st.sampled_from(NODES)))
    if kind == "queue":
        spec = draw(
            st.sampled_from(({}, {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "other"}}}))
        )
        return "queues", "put", thing(draw(st.sampled_from(("team", "default"))), spec=spec)
    data = draw(st.sampled_from(({}, {eviction_log.DATA: eviction_log.write([ENTRY])})))
    return "eviction log", "put", thing("log", namespace="tenure-system", kind=api.ApiObject, data=data)


@given(st.lists(st.lists(changes(), min_size=1, max_size=4), min_size=1, max_size=8))
def test_whoever_looks_at_changes_alone_sees_what_is_there(story):
    """After each round of changes the kept image is the one of an observer that has just begun.

    That one is told since when groups without a stated size are complete: this cannot be seen.
    """
    kept = watching(node("n0", **{GPU: "2"}), node("n1"))
    informers, before = kept.informers, kept.observe(NOW)
    for number, told in enumerate(story, 1):
        for store, what, given_object in told:
            known = {"pods": informers.pods, "nodes": informers.nodes}.get(store) or informers._objects(store)
            getattr(known, what)(given_object)
        now = NOW + number * 1_000_000
        seen, fresh = kept.observe(now), Observer(informers)
        fresh._settling = kept._settling
        anew = fresh.observe(now)
        assert seen.cluster == anew.cluster
        assert seen.made == anew.made
        assert (seen.left_out, seen.promises) == (anew.left_out, anew.promises)
        own = tuple(seen.workloads[key] for key in sorted(seen.made))
        assert seen.cluster.workloads[: len(own)] == own
        assert {key: seen.subject(key) for key in seen.pods} == {key: anew.subject(key) for key in anew.pods}
        names = seen.made.keys() | before.made.keys()
        others = {key for key in names if seen.made.get(key) is not before.made.get(key)}
        assert seen.changed is None or others <= seen.changed
        assert seen.number == before.number + 1
        before = seen


@given(st.lists(st.lists(changes(), min_size=1, max_size=4), min_size=1, max_size=8), st.data())
def test_a_history_that_looks_at_changes_alone_says_what_one_says_that_looks_at_everything(story, data):
    """Also where it was not shown every observation, as when a cycle ended early."""
    kept = watching(node("n0", **{GPU: "2"}), node("n1"))
    informers = kept.informers
    changed, whole = (LifeRecords("pool", lambda _: False) for _ in range(2))
    for number, told in enumerate(story):
        for store, what, given_object in told:
            known = {"pods": informers.pods, "nodes": informers.nodes}.get(store) or informers._objects(store)
            getattr(known, what)(given_object)
        seen = kept.observe(NOW + number * 1_000_000)
        if data.draw(st.booleans(), "it is shown"):
            around = Plan(seen.cluster.now), levels_of(session_of(seen.cluster).queues), Who(seen.cluster)
            said = changed.records(seen, *around)
            assert said == whole.records(replace(seen, changed=None), *around)
            assert (changed.started, changed.ended) == (whole.started, whole.ended)


def test_who_shared_a_name_is_there_when_the_other_is_gone():
    """The one that remains did not change itself: its room must not be given away."""
    kept = watching(node("n0"), pod("first", labels={"tenure.dev/pod-group": "both"}), pod("both", node="n0"))
    assert sorted(kept.observe(NOW).made) == ["default/both", "default/both.pod"]
    kept.informers.pods.drop(("default", "first"))
    assert sorted(kept.observe(NOW + 1).made) == ["default/both"]
    assert kept.observe(NOW + 2).cluster.workloads[0].tasks[0].node == "n0"


def test_what_is_plain_is_not_looked_at_again():
    """Else nothing above would be held: of a hundred pods that run only the one that came is made and sorted."""
    kept = watching(node("n0", cpu="200"), *(pod(f"r-{n}", node="n0") for n in range(100)))
    first = kept.observe(NOW).cluster.workloads
    assert kept._standing.others == {}
    kept.informers.pods.put(pod("new"))
    seen = kept.observe(NOW + 1)
    assert sum(w not in set(map(id, first)) for w in map(id, seen.cluster.workloads)) == 1
    assert seen.changed == {"default/new"}


def test_gpus_are_looked_at_on_the_nodes_of_what_changed_alone(monkeypatch):
    """Of a hundred nodes whose GPUs are held, and of a gang that spans ten of them, one node is looked at again."""

    def holder(number, name, **more):
        told = sealed(queue="default", started="2026-11-20T09:00:00Z", devices=(number % 2,))
        return pod(name, node=f"n{number // 2}", containers=gpus("1"), status=told, **more)

    gang = [holder(2 * n, f"g-{n}", owner=("Job", "gang")) for n in range(10)]
    kept = watching(
        *(node(f"n{n}", **{GPU: "2"}) for n in range(100)), *gang, *(holder(n, f"r-{n}") for n in range(20, 199))
    )
    kept.observe(NOW)
    looked = []
    checked = standing.check_placement

    def counted(nodes, workloads):
        looked.append((len(nodes), sum(len(w.tasks) for w in workloads)))
        return checked(nodes, workloads)

    monkeypatch.setattr(standing, "check_placement", counted)
    kept.informers.pods.put(holder(199, "new"))
    assert not kept._standing.are_unclear
    kept.observe(NOW + 1)
    assert looked == [(1, 2)]
    kept.informers.pods.put(holder(198, "twice"))
    kept.observe(NOW + 2)
    assert kept._standing.are_unclear
    kept.informers.pods.drop(("default", "twice"))
    kept.observe(NOW + 3)
    assert not kept._standing.are_unclear
    assert looked[1:] == [(1, 3), (1, 2)]


def test_what_this_process_wrote_is_no_news_when_the_watch_shows_it():
    """A binding that shows as it was believed is no reason for another cycle; the pod's running is one."""
    kept = watching(node("n0"), pod("p"))
    pods = kept.informers.pods
    seen = pods.seen(("default", "p"))
    pods.assume(seen, pod_records.bound(seen, "n0", (), NOW, NOW))
    written = pods.version
    pods.put(pod("p", labels={"new": "label"}))
    assert pods.version == written + 1
    pods.put(pod("p"))
    pods.assume(pods.records["default", "p"], pod_records.bound(seen, "n0", (), NOW, NOW))
    written = pods.version
    pods.put(pod("p", node="n0", phase="Pending", annotations=STARTED))
    shown = pods.version
    pods.put(pod("p", node="n0", annotations=STARTED))
    assert (shown - written, pods.version - shown) == (0, 1)


def test_only_what_may_call_for_a_decision_is_urgent():
    """That this process bound a pod, and that it runs, can wait; that one comes, goes or was not bound cannot."""
    kept = watching(node("n0"), pod("p"))
    pods = kept.informers.pods
    seen = pods.seen(("default", "p"))
    then = pod_records.bound(seen, "n0", (), NOW, NOW)

    def urgent(do, *told, **how):
        before = pods.urgent
        do(*told, **how)
        return pods.urgent - before

    assert urgent(pods.assume, seen, then, is_written=False) == 0
    assert pods.seen(("default", "p")) is then
    assert urgent(pods.assumed.accepted, then) == 0
    assert urgent(pods.put, pod("p", node="n0", phase="Pending", annotations=STARTED)) == 0
    assert urgent(pods.put, pod("p", node="n0", annotations=STARTED)) == 0
    assert urgent(pods.put, pod("p", node="n0", phase="Succeeded", annotations=STARTED)) == 1
    assert urgent(pods.put, pod("q")) == 1
    assert urgent(pods.drop, ("default", "q")) == 1


@pytest.mark.parametrize("phase", ["Pending", "Running"])
def test_what_was_told_to_several_is_seen_of_all_before_the_watch_has_shown_it_of_all(phase):
    """A notice of half a core would be withdrawn, and one that is withdrawn would be judged once more."""
    note = NoticeNote(deadline="2026-11-20T11:00:00Z", cause="reclaim", beneficiary="default/w", at=STARTED_AT)

    def told(name, note):
        known = sealed(queue="default", started=STARTED_AT, notice=note)
        return pod(name, node="n0", phase=phase, annotations=STARTED, status=known)

    kept = watching(node("n0"), told("p", None), told("q", None))
    pods = kept.informers.pods

    def seen():
        return [pods.seen(("default", name)).task.notice is not None for name in "pq"]

    for now in (note, None):
        before = pods.urgent
        for name in "pq":
            known = pods.seen(("default", name))
            pods.assume(known, pod_records.noticed(known, now))
        assert seen() == [now is not None] * 2
        pods.put(told("p", now))
        assert seen() == [now is not None] * 2
        assert len(pods.assumed) == 1
        pods.put(told("q", now))
        assert seen() == [now is not None] * 2
        assert len(pods.assumed) == 0
        assert pods.urgent == before


def test_what_was_refused_is_believed_no_more():
    """The pod waits again; what the watch has shown meanwhile stands."""
    kept = watching(node("n0"), pod("p"), pod("q"))
    pods = kept.informers.pods
    for name in ("p", "q"):
        seen = pods.seen(("default", name))
        then = pod_records.bound(seen, "n0", (), NOW, NOW)
        pods.assume(seen, then, is_written=False)
        if name == "q":
            pods.put(pod("q", node="n0"))
        before = pods.urgent
        pods.retract(seen, then)
        assert pods.urgent - before == (name == "p")
    assert pods.seen(("default", "p")).task.node is None
    assert pods.seen(("default", "q")).task.node == "n0"


def test_a_binding_that_is_under_way_for_long_is_believed_until_it_is_answered():
    """The room of a pod that waits for its answer must not be given away; from the answer on a bound counts."""
    clock = [0.0]
    kept = watching(node("n0"), pod("p"))
    pods = kept.informers.pods
    pods.assumed._clock = lambda: clock[0]
    seen = pods.seen(("default", "p"))
    then = pod_records.bound(seen, "n0", (), NOW, NOW)
    pods.assume(seen, then, is_written=False)
    clock[0] = 1000.0
    assert pods.overdue() == []
    pods.assumed.accepted(then)
    clock[0] = 1029.0
    assert pods.overdue() == []
    clock[0] = 1031.0
    assert [record.task.node for record in pods.overdue()] == [None]


TEAM = {"labels": {"tenure.dev/queue": "team"}}
SPOKEN_OF = (
    ("podgroups", thing("g", namespace="default", spec={"queue": "team"})),
    ("kai podgroups", thing("g", namespace="default", spec={"queue": "team"})),
    ("native podgroups", thing("g", namespace="default", metadata=TEAM)),
    ("jobs", thing("a", namespace="default", metadata=TEAM)),
    ("deployments", thing("d", namespace="default", metadata=TEAM)),
    ("statefulsets", thing("s", namespace="default", metadata=TEAM)),
    ("replicasets", thing("r", namespace="default", metadata=TEAM)),
    ("jobsets.jobset.x-k8s.io", thing("j", namespace="default", metadata=TEAM)),
    ("priorityclasses", thing("high", value=7)),
)


@pytest.mark.parametrize(("store", "spoken"), SPOKEN_OF, ids=[store for store, _ in SPOKEN_OF])
def test_what_is_said_of_one_workload_makes_that_one_anew_and_no_other(store, spoken):
    """Said, said otherwise, and no longer said; a class of priority speaks of all."""
    grouped = {"labels": {"tenure.dev/pod-group": "g"}, "annotations": {"tenure.dev/min-member": "1"}}
    owners = {"Job": "a", "StatefulSet": "s", "ReplicaSet": "r"}
    kept = watching(
        node("n0", cpu="200"), pod("grouped", **grouped), pod("bystander"),
        pod("of-d", owner=("ReplicaSet", "d-1")), pod("of-j", owner=("Job", "j-0")),
        *(pod(f"of-{name}", owner=(kind, name)) for kind, name in owners.items()),
        queues=[thing("team", spec={}), thing("default", spec={})],
        replicasets=[owner("d-1", "Deployment", "d", "apps/v1")],
        jobs=[owner("j-0", "JobSet", "j", "jobset.x-k8s.io/v1alpha2")],
    )  # fmt: skip
    informers = kept.informers
    kept.observe(NOW)  # what is grouped is complete after a while
    known, before = informers._objects(store), kept.observe(NOW + 2_000_000).cluster.workloads
    for number, (what, told) in enumerate(
        (("put", spoken), ("drop", (spoken.metadata.namespace, spoken.metadata.name))), 1
    ):
        getattr(known, what)(told)
        now = NOW + 5_000_000 * number
        after = kept.observe(now).cluster
        assert after == Observer(informers).observe(now).cluster
        assert store == "priorityclasses" or sum(w not in before for w in after.workloads) == 1
        anew = [w.name for w in after.workloads if id(w) not in set(map(id, before))]
        assert len(anew) == (1 if store != "priorityclasses" else len(after.workloads))
        before = after.workloads


def test_a_list_that_shows_what_is_known_costs_nothing():
    """A watch that begins anew lists all pods; those that are as they were are not made anew."""
    watch = watching(node("n"), pod("a", node="n"), pod("b"))
    watch.observe(NOW)
    pods = watch.informers.pods
    before = pods.version
    for item in (pod("a", node="n"), pod("b")):
        pods.put(item)
    assert (pods.version, pods.dirty) == (before, set())
    pods.put(pod("b", labels={"changed": "yes"}))
    assert len(pods.dirty) == 1


def test_a_session_is_kept_though_the_api_servers_clock_is_a_little_ahead():
    """A pod that was bound a second from now has begun now: no session is made anew for it, again and again."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T10:00:01Z"}
    watch, kept = watching(node("n"), pod("a")), KeptSession()
    first = watch.observe(NOW).cluster
    session = kept.take(first)
    kept.keep(first, session, Plan(NOW))
    watch.informers.pods.put(pod("a", node="n", status={"conditions": [placed]}))
    seen = watch.observe(NOW).cluster
    assert [(w.started_at, w.tasks[0].started_at) for w in seen.workloads] == [(NOW, NOW)]
    assert kept.take(seen) is session


def test_what_only_runs_is_looked_at_a_little_later():
    """A brief look leaves out that a pod which was bound runs, and nothing else; the next look that is not has it."""
    kept = watching(node("n0"), pod("p"), pod("q", node="n0"))
    pods = kept.informers.pods
    kept.observe(NOW)
    seen = pods.seen(("default", "p"))
    pods.assume(seen, pod_records.bound(seen, "n0", (), NOW, NOW))
    kept.observe(NOW, is_brief=True)
    pods.put(pod("p", node="n0", phase="Pending", annotations=STARTED))
    pods.put(pod("p", node="n0", annotations=STARTED))
    pods.put(pod("q", node="n0", labels={"new": "label"}))

    def looked(**how):
        found = kept.observe(NOW, **how)
        return [
            (found.workloads[f"default/{n}"].tasks[0].phase.value, found.pods[f"default/{n}"][0].labels) for n in "pq"
        ]

    assert looked(is_brief=True) == [("Bound", {}), ("Running", {"new": "label"})]
    assert pods.deferred == 1
    assert looked() == [("Running", {}), ("Running", {"new": "label"})]
    assert pods.deferred == 0
