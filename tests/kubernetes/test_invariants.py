"""What a witness calls wrong: each rule is broken once, on objects made up for that."""

from __future__ import annotations

import json

import pytest
from tests.kubernetes.invariants import History
from tests.kubernetes.witness import Change

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.read import eviction_log

GPU = "nvidia.com/gpu"
START = "2026-11-20T10:00:00Z"


def pod(name, *, node=None, going=False, nominated=None, gpu=1, owner="w", annotations=()):
    meta = {
        "name": name, "uid": f"uid-{name}", "namespace": "default", "labels": {"tenure.dev/queue": "q"},
        "annotations": dict(annotations),
        "ownerReferences": [{"name": owner, "controller": True}],
    }  # fmt: skip
    if going:
        meta["deletionTimestamp"] = START
    spec = {"schedulerName": "tenure", "containers": [{"resources": {"requests": {GPU: str(gpu)}}}]}
    if node:
        spec["nodeName"] = node
        meta["annotations"].setdefault(keys.STARTED, START)
    status = {"phase": "Running"} | ({"nominatedNodeName": nominated} if nominated else {})
    return "pods", {"metadata": meta, "spec": spec, "status": status}


def node(name, gpu):
    return "nodes", {"metadata": {"name": name, "uid": name}, "status": {"allocatable": {GPU: str(gpu)}}}


def log(*entries):
    text = eviction_log.write(entries)
    return "configmaps", {
        "metadata": {"name": "tenure-evictions-default-0", "uid": "log"},
        "data": {eviction_log.DATA: text},
    }


def queue(most, deadline=None):
    status = {"quotaPreemption": {"deadline": deadline}} if deadline else {}
    return "queues", {"metadata": {"name": "q", "uid": "q"}, "spec": {"max": {GPU: most}}, "status": status}


def entry(name, cause="reclaim", at=START, **fields):
    said = {"task": name, "uid": f"uid-{name}", "workload": "default/w", "workload_uid": "w", "queue": "q", **fields}
    return eviction_log.EvictionEntry(at=at, cause=cause, **said)


def eviction(name, cause="reclaim", at=START, **note):
    said = json.dumps({"cause": cause, "at": at, **note})
    kind, item = pod(name, node="n", going=True, annotations={keys.EVICTION: said})
    item["status"]["conditions"] = [{"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}]
    return kind, item


LATER = "2026-11-20T10:00:05Z"
WAITING = pod("c", owner="c", nominated="n", annotations={keys.NOMINATION: json.dumps({"needs": ["uid-p"]})})
STORIES = {
    "and then to": [node("n", 1), node("m", 1), pod("p", node="n"), pod("p", node="m")],
    "are bound there": [node("n", 1), pod("p", node="n"), pod("o", node="n")],
    "started": [node("n", 1), pod("p", node="n"), pod("p", node="n", annotations={keys.STARTED: LATER})],
    "without a record": [node("n", 1), pod("p", node="n"), eviction("p")],
    "is lost": [node("n", 1), pod("p", node="n"), log(entry("p")), eviction("p"), log()],
    "before its cooldown was over": [
        node("n", 2), pod("p", node="n"), pod("o", node="n"),
        log(entry("p", "requeue", not_before="2026-11-20T10:01:00Z"), entry("o", "requeue", LATER, not_before=LATER)),
        eviction("p", "requeue"), eviction("o", "requeue", LATER),
    ],
    "without a cooldown": [node("n", 1), pod("p", node="n"), log(entry("p", "requeue")), eviction("p", "requeue")],
    "promised nothing": [
        node("n", 1), pod("p", node="n"), pod("c", owner="c"), log(entry("p", beneficiary="default/c")),
        eviction("p", **{"for": "default/c"}),
    ],
    "lost its promise": [
        node("n", 1), pod("p", node="n"), WAITING, log(entry("p", beneficiary="default/c")),
        eviction("p", **{"for": "default/c"}), pod("c", owner="c"),
    ],
    "with the deadline": [
        node("n", 1), queue(0, LATER), pod("p", node="n"), log(entry("p", "quota")), eviction("p", "quota"),
    ],
    "the deadline of q was 2026": [queue(0, START), queue(0, LATER)],
    "was lost": [node("n", 1), pod("p", node="n"), queue(0, START), queue(0)],
}  # fmt: skip


def told(story):
    return History.of([Change(n, kind, item, gone=False) for n, (kind, item) in enumerate(story)])


@pytest.mark.parametrize("what", STORIES)
def test_what_must_not_happen_is_seen(what):
    """Each story breaks one rule, is told of that, and is fine without its last line."""
    (wrong,) = told(STORIES[what]).wrong
    assert what in wrong
    assert not told(STORIES[what][:-1]).wrong


@pytest.mark.parametrize(("most", "window", "fine"), [(1, 5, True), (1, 6, False), (2, 6, True)])
def test_a_budget_holds_in_any_window(most, window, fine):
    """Two that go five seconds apart are too many for one in six seconds."""
    story = [
        node("n", 2), pod("p", node="n"), pod("o", node="n"), log(entry("p"), entry("o", at=LATER)),
        eviction("p"), eviction("o", at=LATER),
    ]  # fmt: skip
    history = told(story)
    history.check_budget("q", most, window)
    assert (not history.wrong) == fine
