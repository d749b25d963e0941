"""What a tenant writes costs the tenant: one test for each way that was found, and for its brothers."""

from __future__ import annotations

import json
import tracemalloc

import msgspec
import pytest
from tests.kubernetes.pods import NOW, node, observed, owner, pod, sealed, thing, watching

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.bounded import ObjectText, decoded, shallow
from tenure.clusters.kubernetes.cache import pod_records, pod_specs
from tenure.clusters.kubernetes.cache.handlers import ObjectStore
from tenure.clusters.kubernetes.client.watch import Reflector, WatchReports
from tenure.clusters.kubernetes.read import eviction_log, judging, term_bounds
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Eviction

GPU = "nvidia.com/gpu"
DEEP = "[" * 100_000
DIGITS = "9" * 5_000
EVERY_KEY = sorted(
    {*keys.WRITTEN, keys.MIN_MEMBER, keys.TASK_ORDER, keys.SUB_GROUP, keys.ROLE, keys.NOT_BEFORE, keys.POD_GROUP,
     "tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices", "tenure.dev/expected-runtime",
     "tenure.dev/requeue-delay", "tenure.dev/checkpoint-interval", "tenure.dev/restart-overhead",
     "tenure.dev/eviction-ack", "tenure.dev/preemptible", "kai.scheduler/preemptibility", "pod-group-name",
     "yunikorn.apache.org/allow-preemption"}
)  # fmt: skip


def by_name(seen):
    return {w.name: w for w in seen.cluster.workloads}


def told(watch):
    return {meta.name: message for _, meta, message in watch.informers.findings.new}


def decide(seen):
    """Decide on what was observed, and give the names of what is bound."""
    plan = Scheduler(session_of(seen.cluster)).cycle(NOW)
    return {s.task for s in plan.steps if s.action == "bind"}


TEXTS = {
    "nests": DEEP, "nests objects": '{"a":' * 50_000, "digits": DIGITS, "negative digits": "-" + DIGITS,
    "long": "x" * 200_000, "zero bytes": "\0\0", "lines": "a\nb\x1b[2J\u202e", "list of digits": ",".join([DIGITS] * 9),
    "float": "1e999999", "digits of elsewhere": "٣²", "half a character": "\ufffd", "time": "9999-12-31T23:59:59Z",
    "first time": "0001-01-01T00:00:00Z", "longest": "292000y", "long duration": "2500000h", "name": "../../x y",
    "wrong shape": '{"node": 3, "needs": {"a": 1}}', "number": "1" + "0" * 4_300, "empty": "",
}  # fmt: skip


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("runs", [True, False])
def test_no_annotation_keeps_others_from_being_decided_about(text, runs):
    """Whatever stands in any annotation, on a pod that waits or runs: the others are bound as without it."""
    strange = [
        pod(f"strange-{n}", annotations={key: TEXTS[text]}, owner=("Job", f"j-{n}"), node="n" if runs else None,
            labels={keys.POD_GROUP: "g"} if key == keys.SUB_GROUP else None)
        for n, key in enumerate(EVERY_KEY)
    ]  # fmt: skip
    group = thing("g", namespace="default", metadata={"annotations": dict.fromkeys(EVERY_KEY, TEXTS[text])}, spec={})
    watch = watching(node("n", "500", **{GPU: "8"}), pod("fine"), *strange, podgroups=[group])
    assert "fine" in decide(watch.observe(NOW))
    for message in told(watch).values():
        assert len(message) < 1000
        assert message.isprintable()


def test_a_pod_that_says_everything_wrong_at_once_costs_itself():
    """All annotations of it are wrong; a few of them are told of, and the pod is still there."""
    watch = watching(node("n"), pod("fine"), pod("strange", annotations=dict.fromkeys(EVERY_KEY, DIGITS)))
    seen = watch.observe(NOW)
    assert {"fine", "strange"} <= set(by_name(seen))
    assert 1 <= sum(meta.name == "strange" for _, meta, _ in watch.informers.findings.new) <= 20


LABELS = {f"example.com/{n}-{'x' * 50}": "y" * 60 for n in range(9_000)}


def test_a_victim_with_a_megabyte_of_labels_has_a_short_record():
    """What goes into the log is bounded; labels that budgets ask for are kept first."""
    gone = Eviction(at=NOW, workload="d/w", task="w-0", cause="reclaim", labels={**LABELS, "zone": "a"})
    entry = eviction_log.entry_of(gone, "uid", "uid-w", None, {"zone"})
    assert len(eviction_log.write([entry])) < 8_000
    assert entry.labels["zone"] == "a"


def test_many_records_are_divided_over_pages():
    """Each page stays below its limit; together they hold every record once, in order."""
    made = [
        eviction_log.entry_of(Eviction(at=NOW, workload=f"d/{n}", task=f"{n}", cause="reclaim"), f"u{n}", "", None)
        for n in range(5_000)
    ]
    pages = list(eviction_log.pages(made, 10_000))
    assert [e for part, _ in pages for e in part] == made
    assert len(pages[0][1]) <= 10_000
    assert all(len(text.encode()) <= eviction_log.MOST_BYTES for _, text in pages)
    assert [e for _, text in pages for e in eviction_log.parse(text)[0]] == made


def test_names_that_collide_are_two_workloads():
    """A group ``a.job`` beside a group ``a`` and a Job ``a``: three workloads, and the room of none is given away."""
    found = observed(
        node("n", "3"),
        pod("p", labels={keys.POD_GROUP: "a.job"}, node="n"),
        pod("q", labels={keys.POD_GROUP: "a"}, node="n"),
        pod("r", owner=("Job", "a"), node="n"),
        pod("more"),
    )
    assert {w.tasks[0].name for w in found.cluster.workloads} == {"p", "q", "r", "more"}
    assert len({w.key for w in found.cluster.workloads}) == 4
    assert decide(found) == set()


def test_an_owner_of_an_old_name_is_another_workload():
    """A Job that was made anew is not the one whose pods still go; the new one has the name."""
    old = pod("old", owner=("Job", "a"), node="n", deletionTimestamp="2026-11-20T10:00:00Z")
    new = pod("new", owner=("Job", "a"))
    new.metadata.owner_references[0].uid = "another"
    found = by_name(observed(node("n"), old, new))
    assert found["a"].tasks[0].name == "new"
    assert [w.tasks[0].name for name, w in found.items() if name != "a"] == ["old"]


QUEUES = [thing("default", spec={}), thing("a", spec={"guaranteed": {"cpu": "1"}}), thing("b", spec={})]
BECOMES_INVALID = {
    "a bogus subgroup": {"annotations": {keys.SUB_GROUP: "none"}, "labels": {"tenure.dev/queue": "a"}},
    "forged devices": {"annotations": {keys.DEVICES: "7,9"}, "labels": {"tenure.dev/queue": "a"}},
    "an unknown queue": {"labels": {"tenure.dev/queue": "none"}},
    "another's queue": {"labels": {"tenure.dev/queue": "b"}},
    "a mirror annotation": {"annotations": {keys.MIRROR: "x"}, "labels": {"tenure.dev/queue": "a"}},
    "a DaemonSet for an owner": {"owner": ("DaemonSet", "d"), "labels": {"tenure.dev/queue": "a"}},
    "a node for an owner": {
        "owner": ("Node", "n"), "annotations": {keys.MIRROR: "x"}, "labels": {"tenure.dev/queue": "a"}
    },
    "that it is not preemptible": {
        "annotations": {"tenure.dev/preemptible": "false"}, "labels": {"tenure.dev/queue": "a"}
    },
    "a notice": {
        "annotations": {keys.NOTICE: json.dumps({"deadline": "9999-01-01T00:00:00Z", "cause": "reclaim"})},
        "labels": {"tenure.dev/queue": "a"},
    },
    "no label at all": {},
}  # fmt: skip


@pytest.mark.parametrize("what", BECOMES_INVALID)
def test_what_runs_and_is_changed_stays_charged_and_evictable(what):
    """Whatever its owner writes on it: it counts for the queue that it was bound for, and may be evicted."""
    known = sealed(queue="a", started="2026-11-20T09:30:00Z")
    fields = {"owner": ("Job", "j"), **BECOMES_INVALID[what]}
    found = observed(node("n", **{GPU: "2"}), pod("p", node="n", status=known, **fields), queues=QUEUES)
    (workload,) = found.cluster.workloads
    assert (workload.queue, workload.scheduler_name, workload.is_preemptible) == ("a", "tenure", True)
    assert workload.started_at == NOW - 1_800_000_000
    session = session_of(found.cluster)
    state = session.workloads[workload.key]
    assert any(session.queues.allocated[state.leaf])
    assert state.tasks[0].notice is None


def test_a_pod_of_a_scheduler_whose_pods_are_tenures_is_no_static_pod_either():
    """With `--scheduler-name` as well: it is charged, and may be evicted, like any other."""
    forged = pod("p", node="n", status=sealed(queue="a", started="2026-11-20T09:30:00Z"), owner=("Node", "n"),
                 annotations={keys.MIRROR: "x"}, schedulerName="kai-scheduler")  # fmt: skip
    found = watching(node("n"), forged, queues=QUEUES, schedulers=("kai-scheduler",)).observe(NOW)
    (workload,) = found.cluster.workloads
    assert (workload.queue, workload.scheduler_name, workload.is_preemptible) == ("a", "tenure", True)


GPUS = [{"name": "c", "resources": {"requests": {"cpu": "1", GPU: "2"}}}]
FORGED = {"node": "n", "containers": GPUS, "annotations": {keys.DEVICES: "0,1"}}
FORGERIES = {
    "a pod that Tenure did not bind": pod("a", schedulerName="default-scheduler", **FORGED),
    "a pod without a record": pod("a", **FORGED),
}


@pytest.mark.parametrize("comes_later", [True, False])
@pytest.mark.parametrize("forgery", FORGERIES)
def test_who_has_devices_on_record_holds_them_whatever_stands_on_others(forgery, comes_later):
    """A forged annotation takes neither its devices from a workload nor what else is known of it."""
    gang = {"owner": ("Job", "z"), "node": "n", "containers": GPUS, "annotations": {keys.MIN_MEMBER: "2"}}
    ours = [pod(f"z-{n}", status=sealed(queue="default", devices=(2 * n, 2 * n + 1)), **gang) for n in range(2)]
    watch = watching(node("n", **{GPU: "8"}), *ours)
    if comes_later:
        watch.observe(NOW)
    watch.informers.pods.put(FORGERIES[forgery])
    found = by_name(watch.observe(NOW))
    assert [task.devices for task in found["z"].tasks] == [(0, 1), (2, 3)]
    assert found["z"].min_member == 2
    assert found["a"].tasks[0].devices == ()
    assert dict(found["a"].tasks[0].spec.requests)[GPU] == 2
    assert not {"z-0", "z-1"} & told(watch).keys()


def test_two_of_one_name_have_no_other_looked_at_again():
    """Who they are is found out in their own namespace; all others stand as they did."""
    watch = watching(node("n"), *(pod(f"fine-{n}", namespace="honest") for n in range(3)))
    watch.informers.pods.put(pod("a", namespace="evil"))
    watch.informers.pods.put(pod("a-0", owner=("Job", "a"), namespace="evil"))
    first = watch.observe(NOW)
    assert {"evil/a", "evil/a.pod"} <= first.workloads.keys()
    watch.informers.pods.put(pod("more", namespace="evil"))
    assert watch.observe(NOW).changed == {"evil/more"}


def test_a_part_of_a_gpu_whose_device_nobody_knows_is_charged_as_a_whole_one():
    """What holds a part of a GPU and does not say which holds one that nobody else is given."""
    share = {"annotations": {"tenure.dev/gpu-fraction": "500m", keys.DEVICES: "x"}}
    found = observed(
        node("n", **{GPU: "1"}), pod("p", node="n", **share), pod("q", annotations={"tenure.dev/gpu-fraction": "500m"})
    )
    assert dict(by_name(found)["p"].tasks[0].spec.requests)[GPU] == 1
    assert decide(found) == set()


def test_the_start_is_the_api_servers():
    """Its owner cannot move it on, nor back: the time at which the API server placed the pod counts."""
    placed = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T09:40:00Z"}
    for forged in ("2026-11-20T09:59:59Z", "1990-01-01T00:00:00Z", "nonsense"):
        seen = observed(
            node("n"), pod("p", node="n", annotations={keys.STARTED: forged}, status={"conditions": [placed]})
        )
        assert by_name(seen)["p"].started_at == NOW - 1_200_000_000


PLACED = {"type": "PodScheduled", "status": "True", "lastTransitionTime": "2026-11-20T09:40:00Z"}


@pytest.mark.parametrize(
    ("record", "start"),
    [
        ({"started": "2026-11-20T09:30:00Z"}, "2026-11-20T09:30:00Z"),
        ({"started": "2026-11-20T09:59:59Z"}, "2026-11-20T09:40:00Z"),
        ({"started": "9999-12-31T23:59:59Z"}, "2026-11-20T09:40:00Z"),
        ({"started": "9999-12-31T23:59:59Z", "first": True}, "2026-11-20T09:40:00Z"),
        ({"started": "nonsense"}, None),
    ],
)
def test_a_record_of_a_start_is_believed_up_to_the_time_at_which_the_pod_was_placed(record, start):
    """It may be of a clock that was ahead, or forged by who may write a status: it does not protect for longer."""
    seen = observed(node("n"), pod("p", node="n", status=sealed(PLACED, queue="default", **record)))
    assert by_name(seen)["p"].started_at == (None if start is None else micros(start))


@pytest.mark.parametrize(("since", "believed"), [("2026-11-20T09:50:00Z", True), ("9999-12-31T23:59:59Z", False)])
def test_a_record_of_a_gang_that_is_to_become_stale_is_none(since, believed):
    """Since when it lacks pods is in the past; a time to come would spare it for ever."""
    seen = observed(node("n"), pod("p", node="n", status=sealed(PLACED, queue="default", first=True, stale=since)))
    assert by_name(seen)["p"].stale_since == (micros(since) if believed else None)


@pytest.mark.parametrize(("at", "believed"), [("2026-11-20T09:50:00Z", True), ("9999-12-31T23:59:59Z", False)])
def test_a_record_of_a_promise_is_of_the_past(at, believed):
    """A promise of a time to come would hold its room for ever; such a pod is decided about as if it had none."""
    note = {"node": "n", "at": at}
    ours = pod("p", status={**sealed(nomination=note), "nominatedNodeName": "n"})
    task = by_name(observed(node("n"), ours))["p"].tasks[0]
    assert (task.nominated is not None) is believed


@pytest.mark.parametrize(
    ("said", "deadline"),
    [
        ({"at": "2026-11-20T09:55:00Z", "deadline": "2026-11-20T10:01:00Z"}, "2026-11-20T10:01:00Z"),
        ({"at": "2026-11-20T09:55:00Z", "deadline": "9999-12-31T23:59:59Z"}, "2026-11-20T10:05:00Z"),
        ({"at": "9999-12-31T00:00:00Z", "deadline": "9999-12-31T23:59:59Z"}, None),
        ({"deadline": "9999-12-31T23:59:59Z"}, None),
    ],
)
def test_a_record_of_a_notice_ends_when_the_longest_notice_would(said, deadline):
    """Who may write a status could announce an eviction for a time that never comes."""
    seen = observed(
        node("n"), pod("p", node="n", status=sealed(PLACED, queue="default", notice={"cause": "reclaim", **said}))
    )
    notice = by_name(seen)["p"].tasks[0].notice
    assert (None if notice is None else notice.deadline) == (None if deadline is None else micros(deadline))


def test_a_group_raises_the_priority_of_its_pods_no_further_than_they_have_it():
    """A PodGroup's class cannot pass the quota that guards the pods'; it may lower it."""
    classes = [thing("high", value=1000), thing("low", value=-5)]
    for name, expected in (("high", 10), ("low", -5)):
        group = thing("g", namespace="default", spec={"priorityClassName": name})
        seen = observed(pod("p", labels={keys.POD_GROUP: "g"}, priority=10), podgroups=[group], priorityclasses=classes)
        assert by_name(seen)["g"].priority == expected
    group = thing("g", namespace="default", spec={"priority": 1000})
    assert by_name(observed(pod("p", labels={keys.POD_GROUP: "g"}), podgroups=[group]))["g"].priority == 0


def test_a_queue_is_used_by_the_namespaces_that_it_admits():
    """Pods of others wait, and say why; what was bound before that was said stays."""
    selector = {"matchLabels": {"team": "a"}}
    queues = [thing("default", spec={}), thing("a", spec={"namespaceSelector": selector})]
    spaces = [thing("ours", metadata={"labels": {"team": "a"}}), thing("theirs")]
    label = {"tenure.dev/queue": "a"}
    found = observed(
        node("n"),
        pod("ours", namespace="ours", labels=label),
        pod("theirs", namespace="theirs", labels=label),
        pod("ran", namespace="theirs", labels=label, node="n", status=sealed(queue="a")),
        pod("sneaks", namespace="theirs", labels=label, node="n"),
        queues=queues,
        namespaces=spaces,
    )
    assert {w.name: w.queue for w in found.cluster.workloads} == {"ours": "a", "ran": "a", "sneaks": "default"}
    assert [(left.reason, [p.name for p in left.pods]) for left in found.left_out if left.pods] == [
        ("QueueRefused", ["theirs"])
    ]


def test_what_belongs_to_no_queue_at_all_is_owed_nothing():
    """Where there is no default queue either, what runs stands where everybody may take from it."""
    found = observed(
        node("n"),
        pod("p", labels={"tenure.dev/queue": "none"}, node="n"),
        queues=[thing("a", spec={}), thing("b", spec={})],
    )
    (workload,) = found.cluster.workloads
    assert (workload.queue, workload.is_preemptible) == ("tenure-unknown", True)
    assert session_of(found.cluster).workloads["default/p"].leaf >= 0


def terms(count):
    term = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": "kubernetes.io/hostname"}
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term] * count}}


def test_terms_without_end_are_their_own_pods_cost():
    """A pod with more terms than are looked at is not placed and says why; as many as that are."""
    seen = observed(node("n"), pod("many", affinity=terms(11)), pod("few", affinity=terms(10)), pod("fine"))
    assert decide(seen) == {"few", "fine"}
    assert by_name(seen)["many"].tasks[0].spec.unsupported == (
        "11 terms of pod affinity and anti-affinity (10 at the most)",
    )


def apart(number, *, count=10, **term):
    """Give an affinity of terms that no other pod has."""
    kept = [
        {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {f"k{n}": str(number)}}, **term}
        for n in range(count)
    ]
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": kept}}


@pytest.mark.parametrize(("term", "most"), [({}, 30), ({"namespaceSelector": {}}, 20)])
def test_terms_of_a_namespace_are_bounded_together(monkeypatch, term, most):
    """What runs keeps its terms, then what was there first; others keep theirs, and all is well once some have gone."""
    monkeypatch.setattr(term_bounds, "FEWEST_TERMS", 30)
    monkeypatch.setattr(term_bounds, "MOST_COUNTS", 0)
    monkeypatch.setattr(term_bounds, "MOST_OUTWARD", 20)
    greedy = [pod(f"greedy-{n}", affinity=apart(n, **term), namespace="evil") for n in range(5)]
    runs = pod("runs", affinity=apart("r", **term), namespace="evil", node="n", status=sealed(queue="default"))
    same = pod("same", affinity=apart("r", **term), namespace="evil")
    watch = watching(node("n", "90"), pod("fine", affinity=apart("f")), *greedy, runs, same)
    seen = watch.observe(NOW)
    found = by_name(seen)
    left = [n for n in range(5) if not any("beyond" in text for text in found[f"greedy-{n}"].tasks[0].spec.unsupported)]
    assert left == list(range(most // 10 - 1))
    assert found["runs"].tasks[0].spec.affinity is not None
    assert decide(seen) == {"fine", "same", *(f"greedy-{n}" for n in left)}
    terms = session_of(seen.cluster).terms.terms
    assert len(terms) == most + 10
    again = watch.observe(NOW + 1)
    assert all(by_name(again)[name] is one for name, one in found.items())
    for gone in ("runs", "same", "greedy-0", "greedy-1", "greedy-2"):
        watch.informers.pods.drop(("evil", gone))
    assert decide(watch.observe(NOW + 2)) == {"fine", "greedy-3", "greedy-4"}


def test_host_ports_of_a_namespace_are_bounded_together(monkeypatch):
    """Each of their addresses is counted on all nodes; others keep theirs."""
    monkeypatch.setattr(term_bounds, "FEWEST_TERMS", 20)
    monkeypatch.setattr(term_bounds, "MOST_COUNTS", 0)

    def at(address):
        ports = [{"hostPort": 8000 + n, "hostIP": address} for n in range(20)]
        return [{"name": "c", "resources": {"requests": {"cpu": "1"}}, "ports": ports}]

    greedy = [pod(f"greedy-{n}", containers=at(f"10.0.0.{n}"), namespace="evil") for n in range(5)]
    seen = observed(node("n", "90"), pod("fine", containers=at("10.1.0.0")), *greedy)
    assert decide(seen) == {"fine", "greedy-0", "greedy-1", "greedy-2"}
    assert session_of(seen.cluster).terms.counts.port.shape[1] == 20 + 20 + 4 * 20


def test_resources_that_nobody_has_cost_no_row_for_each_pod():
    """A few of them may be asked for in a namespace, as an autoscaler may know them; the others are not looked at."""
    greedy = [
        pod(
            f"greedy-{n}",
            containers=[{"name": "c", "resources": {"requests": {f"example.com/{n}-{m}": "1" for m in range(9)}}}],
        )
        for n in range(50)
    ]
    seen = observed(node("n"), pod("fine"), *greedy)
    assert len(session_of(seen.cluster).nodes.resources) < 40
    assert decide(seen) == {"fine"}
    assert any("no node has" in text for text in by_name(seen)["greedy-9"].tasks[0].spec.unsupported)


def test_pods_that_are_gone_leave_little_behind(monkeypatch):
    """Each has another spec, other labels and annotations, as large as may be: what is kept of them is bounded."""
    monkeypatch.setattr(pod_specs, "MOST_REMEMBERED", 1 << 20)
    monkeypatch.setattr(pod_records, "MOST_SHARED", 1 << 20)
    reader = pod_records.PodReader()
    tracemalloc.start()
    for number in range(200):
        tolerations = [{"key": f"{number}-{n}-{'x' * 300}", "operator": "Exists"} for n in range(100)]
        annotations = {f"tenure.dev/x{n}": f"{number}" + "x" * 4000 for n in range(60)}
        labels = {f"l{n}": f"{number}" + "x" * 50 for n in range(100)}
        record = reader.read(pod("p", tolerations=tolerations, annotations=annotations, labels=labels))
        assert sum(map(len, record.annotations.values())) <= pod_records.MOST_KEPT_TEXT
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert kept < 12 << 20


def test_what_is_wrong_with_what_does_not_change_is_found_out_once(monkeypatch):
    """It is left out of each cycle as of the first, until what was wrong is right; nothing of it is looked at again."""
    wrong = [pod(f"wrong-{n}", labels={"tenure.dev/queue": f"q{n}"}) for n in range(3)]
    unheard = [{"name": "c", "resources": {"requests": {f"example.com/{n}": "1" for n in range(20)}}}]
    watch = watching(
        node("n"), pod("fine"), pod("greedy", containers=unheard), *wrong, queues=[thing("default", spec={})]
    )
    first, looked = watch.observe(NOW), []
    checked = judging.check_workloads

    def counted(workloads, queues):
        looked.extend(w.name for w in workloads)
        return checked(workloads, queues)

    monkeypatch.setattr(judging, "check_workloads", counted)
    watch.informers.pods.put(pod("more"))
    second = watch.observe(NOW + 1)
    assert set(looked) == {"more"}
    assert second.left_out == first.left_out
    assert [left.reason for left in first.left_out] == ["QueueUnknown"] * 3
    assert all(one is by_name(second)[name] for name, one in by_name(first).items())
    watch.informers._objects("queues").put(thing("q1", spec={}))
    assert decide(watch.observe(NOW + 2)) == {"fine", "more", "wrong-1"}


@pytest.mark.parametrize(("succeeded", "starts"), [(2**31 - 1, {"p-0", "p-1"}), (999, {"p-0", "p-1"}), (997, set())])
def test_what_an_owner_says_has_succeeded_makes_no_more_tasks_than_it_has_pods(succeeded, starts):
    """However many that are, and have to start together: those that are gone count as far as they are needed."""
    job = owner("j", spec={"parallelism": 1000, "completions": 1000}, status={"succeeded": succeeded})
    pods = [pod(f"p-{n}", owner=("Job", "j", "batch/v1"), annotations={keys.MIN_MEMBER: "1000"}) for n in range(2)]
    seen = observed(node("n"), *pods, jobs=[job])
    (workload,) = seen.cluster.workloads
    assert len(workload.tasks) == 4
    assert decide(seen) == starts


def test_an_object_that_cannot_be_read_does_not_hold_up_its_watch():
    """Of a list and of a watch: one that nests without end, and one of another shape; the others are there."""
    complaints = []
    reports = WatchReports(lambda meta, why: complaints.append((meta.name, why)))
    store = ObjectStore()
    deep = b'{"metadata":{"name":"deep","resourceVersion":"3"},"spec":' + b'{"a":' * 5_000 + b"1" + b"}" * 5_000 + b"}"
    wrong = b'{"metadata":{"name":"wrong","resourceVersion":"4","labels":["a"]}}'
    fine = b'{"metadata":{"name":"fine","resourceVersion":"5"},"spec":{}}'
    listed = b'{"metadata":{"resourceVersion":"6"},"items":[' + b",".join((deep, wrong, fine)) + b"]}"

    class Server:
        def get(self, _path, **_query):
            return listed

    reflector = Reflector(Server(), "/x", api.ApiObject, store, lambda: None, reports=reports)
    reflector._list()
    assert {name for _, name in store.items} == {"deep", "fine"}
    assert [name for name, _ in complaints] == ["deep", "wrong"]
    for line in (deep, wrong, fine):
        newer = line.replace(b'"resourceVersion":"', b'"resourceVersion":"1')
        reflector._take(reflector._event(b'{"type":"MODIFIED","object":' + newer + b"}"))
    assert len(complaints) == 4
    assert reflector.health.error == ""


def test_text_that_nests_is_cut_and_stays_json():
    """What is not deep stays byte for byte; brackets in text are none."""
    plain = json.dumps({"a": [{"b": '[{\\"['}], "c": ["]"]}).encode()
    assert shallow(plain) == plain
    assert msgspec.json.decode(shallow(b"[" * 9 + b"]" * 9, 3)) == [[["(nests too deep to be read)"]]]


def test_readers_are_total():
    """Every reader of a stranger's text gives a value or None, and at most a few sentences."""
    for text in TEXTS.values():
        problems = []
        said = ObjectText({"k": text}, problems)
        for read in (said.text, said.name, said.whole, said.numbers, said.time, said.duration, said.gpus):
            read("k")
        said.choice("k", ("a",))
        assert len(problems) <= 10
        decoded(text, dict)
