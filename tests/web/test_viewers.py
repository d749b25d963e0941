"""A viewer with few rights: their own workloads, and of others only sums by queue; in no view another one's name."""

import re
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND
from tests.web.consoles import always, shown, small

from tenure.cli.input.inputs import cluster_from
from tenure.history import open_history
from tenure.history.record import Draft, Origin, key_of, payload_of
from tenure.web.access.viewer import A_NODE, ANOTHER, EVERYTHING, Viewer
from tenure.web.console import Console
from tenure.web.sources.past import PastSource
from tenure.web.sources.source import EvictionQuery, evictions_of
from tenure.web.sources.still import StillSource
from tenure.web.views.look import Looked
from tenure.web.views.plans import narrowed

FEW = Viewer("tenant", frozenset({"team-b"}), nodes=False)
PAGES = (
    "/", "/queues", "/queue?name=a", "/queue?name=b", "/workloads", "/workloads/team-b/longest",
    "/workloads/team-b/late", "/nodes", "/moves",
    "/evictions", "/timeline", "/whatif", "/whatif?set=queue.b.guaranteed.nvidia.com%2Fgpu%3D12",
    "/api/v1/overview", "/api/v1/queues", "/api/v1/workloads", "/api/v1/workloads/team-b/longest", "/api/v1/nodes",
    "/api/v1/workloads/team-b/late",
    "/api/v1/evictions", "/api/v1/series",
)  # fmt: skip
OTHERS = re.compile(r"team-a/(first|small)|first-0|small-0")


@pytest.fixture(scope="module")
def client():
    with shown(small(), whose=always(FEW)) as found:
        yield found


@pytest.mark.parametrize("path", PAGES)
def test_others_are_named_nowhere(client, path):
    answer = client.get(path)
    assert answer.status_code == (404 if path == "/moves" else 200), answer.text[:500]
    assert not OTHERS.search(answer.text)
    assert not re.search(r"\bgpu-[0-9]\b", answer.text)


def test_others_workloads_are_not_there(client):
    assert client.get("/api/v1/workloads/team-a/first").status_code == 404
    assert client.get("/workloads/team-a/first").status_code == 404
    assert client.get("/node?name=gpu-0").status_code == 404
    assert {one["workload"] for one in client.get("/api/v1/workloads").json()["workloads"]} == {
        "team-b/late", "team-b/longest",
    }  # fmt: skip


def test_sums_by_queue_are_everybodys(client):
    found = {one["name"]: one for one in client.get("/api/v1/queues").json()["queues"]}
    assert found["a"]["allocated"]["nvidia.com/gpu"] == 4


def test_evictions_show_ones_own_side(client):
    found = client.get("/api/v1/evictions").json()["evictions"]
    assert [(one["workload"], one["for"]) for one in found] == [
        (ANOTHER, "team-b/late"), ("team-b/longest", ANOTHER),
    ]  # fmt: skip


@pytest.mark.parametrize("asked", ["workload=team-a/first", "beneficiary=team-a/first"])
def test_names_of_others_are_not_found_out_by_asking_for_them(client, asked):
    """An eviction has two sides; to ask for the one that is not named would tell who it is."""
    found = client.get(f"/api/v1/evictions?{asked}").json()
    assert (found["total"], found["evictions"], found["sums"]) == (0, [], [])
    assert "another workload" not in client.get(f"/evictions?{asked}").text


def test_a_search_and_details_give_only_ones_own(client):
    assert client.get("/api/v1/workloads?q=first").json()["total"] == 0
    assert client.get("/api/v1/workloads?queue=a").json()["total"] == 0
    assert client.get("/api/v1/nodes?q=gpu").json()["states"] == {"free": 0, "partly": 0, "full": 0, "trouble": 0}
    for path in ("/api/v1/nodes/gpu-0", "/api/v1/moves", "/api/v1/moves?drain=gpu-0"):
        assert client.get(path).status_code == 404


def test_counts_are_those_of_ones_own(client):
    found = client.get("/api/v1/overview").json()
    assert (found["workloads"]["running"], found["workloads"]["waiting"]) == (1, 1)
    assert found["nodes"] is None
    assert {one["workload"] for one in found["waits"]} == {"team-b/late", "team-b/longest"}


def test_a_plan_tells_of_ones_own(client):
    answer = client.post("/api/v1/plan", json={"set": ["queue.b.guaranteed.nvidia.com/gpu=12"]})
    assert answer.status_code == 200
    assert not OTHERS.search(answer.text)
    assert {step["workload"].partition("/")[0] for step in answer.json()["steps"]} <= {"team-b"}


def test_what_is_wrong_with_a_change_does_not_tell_of_others(client):
    answer = client.post("/api/v1/plan", json={"set": ["workload.team-a/frst.priority=1"]})
    assert answer.status_code == 422
    assert not OTHERS.search(answer.text)


@pytest.mark.parametrize("name", ["first", "nope"])
def test_no_change_tells_whether_a_workload_of_others_is_there(client, name):
    """What is refused reads the same whether there is such a workload, or one of a similar name, or none."""
    asked = {"set": [f"workload.team-a/{name}.priority=1", f"workload.team-b/{name}.priority=1",
                     f"workload.{name}.priority=1"]}  # fmt: skip
    answer = client.post("/api/v1/plan", json=asked)
    assert answer.status_code == 422
    assert [FEW.told(line.replace(name, "NAME")) for line in answer.json()["problems"]] == [
        f"--set: workload.{key}.priority=1: there is no such workload among yours; write it as NAMESPACE/NAME"
        for key in ("team-a/NAME", "team-b/NAME", "NAME")
    ]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": "team-a"}}
    for added in ({"name": name, "namespace": "team-a", "queue": "b"}, pod, {"kind": "List", "items": [pod]}):
        answer = client.post("/api/v1/plan", json={"add": [added]})
        assert (answer.status_code, answer.json()["error"]) == (
            422, "add: namespace 'team-a' is not one of those whose pods you may list; you may add to team-b",
        )  # fmt: skip


def test_what_a_tenant_adds_is_added_to_a_namespace_of_theirs(client):
    """So that they see what would become of it."""
    for added in (
        {"name": "mine", "queue": "b", "requests": {"cpu": "1"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "mine", "labels": {"tenure.dev/queue": "b"}},
         "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}]}},
    ):  # fmt: skip
        answer = client.post("/api/v1/plan", json={"add": [added]})
        assert [(step["workload"], step["action"]) for step in answer.json()["steps"]] == [("team-b/mine", "bind")]
    page = client.get("/whatif", params={"add": '{"name": "mine", "queue": "b", "requests": {"cpu": "1"}}'})
    assert "team-b/mine" in page.text


@pytest.mark.parametrize("sort", ["workload", "cause", "at", "cost"])
def test_the_order_of_evictions_tells_nothing_of_names(sort):
    """A viewer who wins against two workloads gets them in the same order, whatever they are called."""
    orders = []
    for one, two in (("x/aa", "x/zz"), ("x/zz", "x/aa")):
        lines = replace(small(), evictions=tuple(
            replace(small().evictions[1], workload=key, task="t", queue=name) for key, name in ((one, "a"), (two, "b"))
        ))  # fmt: skip
        found = evictions_of(StillSource(lines, ""), EvictionQuery(sort=sort, descending=False), FEW)
        orders.append([(line.workload, line.queue, line.beneficiary) for line in found.lines])
    assert orders[0] == orders[1] == [(ANOTHER, "a", "team-b/late"), (ANOTHER, "b", "team-b/late")]


def test_what_was_refused_to_several_names_only_ones_own():
    """Sets of workloads that cannot be taken are told together."""
    source = StillSource(small(), "")
    console = Console(source)
    refused = {"workload": "team-a/first, team-b/late", "cause": "reclaim", "for": "team-a/small, team-b/longest",
               "shield": "none", "until": None, "message": "it would find no place on gpu-1"}  # fmt: skip
    others = {**refused, "workload": "team-a/first, team-a/small"}
    plan = {"now": "", "steps": [], "shadow": [], "pending": [], "queues": [], "refused": [refused, others]}
    try:
        found = narrowed(plan, Looked(console, source.picture(), FEW))["refused"]
    finally:
        console.close()
    assert [(one["workload"], one["for"]) for one in found] == [(f"{ANOTHER}, team-b/late", ANOTHER)]
    assert found[0]["message"].endswith("no place on a node")


@pytest.mark.parametrize("file", ["awaited-nodes", "make-room"])
def test_nodes_are_named_nowhere_to_those_who_may_not_list_them(file, request):
    """Neither to those who see every workload, nor in what a workload waits for, a plan does, or a change brings."""
    found = next((request.config.rootpath / "examples").rglob(f"{file}.yaml"))
    read, _ = cluster_from(str(found))
    names = re.compile("|".join(rf"(?<![\w/-]){node.name}(?![\w-])" for node in read.nodes))
    with shown(read, whose=always(Viewer("all", None, nodes=False))) as client:
        keys = [one["workload"] for one in client.get("/api/v1/workloads").json()["workloads"]]
        answers = [client.post("/api/v1/plan", json={}), client.get("/whatif?set=now%3D2026-11-20T10:00:05Z")]
        for place in ("/workloads/", "/api/v1/workloads/"):
            answers += [client.get(place + key) for key in keys]
        assert client.get("/api/v1/moves").status_code == 404
    assert {answer.status_code for answer in answers} == {200}
    assert not [found for answer in answers for found in names.findall(answer.text)]
    assert A_NODE in answers[0].text


def test_a_story_from_a_history_names_neither_tasks_of_others_nor_nodes(tmp_path):
    made = str(tmp_path / "run.db")
    fields = {"task": "theirs-0", "node": "n-1", "lost": {"cpu": 10**12}, "reason": "it is taken from n-1"}
    mine, theirs = "team-b/mine", "team-a/theirs"
    placed, own = {"tasks": [["mine-0", "n-1", []]]}, {**fields, "task": "mine-0"}
    with open_history(made, write=True) as store:
        store.append(Origin("c"), [
            Draft(NOW, "submitted", mine, "b", payload=payload_of(tasks=1, ask={}), key=key_of(1)),
            Draft(NOW + 1, "evicted", theirs, "a", "reclaim", mine, payload=payload_of(**fields), key=key_of(2)),
            Draft(NOW + 2, "started", mine, "b", value=SECOND, payload=payload_of(**placed), key=key_of(3)),
            Draft(NOW + 3, "evicted", mine, "b", "preempt", theirs, payload=payload_of(**own), key=key_of(4)),
        ])  # fmt: skip
    source = PastSource(made)
    try:
        assert source.namespaces() == {"team-a", "team-b"}
        told = [FEW.told(line.message) for line in source.story(mine, 10, None, FEW)]
    finally:
        source.close()
    assert told == [
        "submitted to b with 1 task, asking for nothing",
        "another workload was evicted for it by reclaim, which lost 0.28 core-hours",
        "started after 1 s, on borrowed room, on a node",
        f"task mine-0 evicted from {A_NODE} by preempt for {ANOTHER}, losing 0.28 core-hours: it is taken from a node",
    ]


def test_namespaces_of_which_only_the_past_tells_are_known():
    """About these it is asked as well what a viewer may see."""
    ended = replace(small(), workloads=())
    assert StillSource(ended, "").namespaces() == {"team-a", "team-b"}
    assert StillSource(replace(small(), evictions=()), "").namespaces() == {"team-a", "team-b"}


@pytest.mark.parametrize(
    ("text", "told"),
    [("goes to node n-1.", "goes to a node."), ("n-1, n-10 (n-1)", "a node, n-10 (a node)"), ("no node", "no node")],
)
def test_sentences_name_no_node_that_is_not_seen(text, told):
    assert FEW.told(text, {"n-1"}) == told
    assert EVERYTHING.told(text, {"n-1"}) == text


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("of team-a/x, 1 task", f"of {ANOTHER}, 1 task"), ("team-b/y stays", "team-b/y stays"),
        ("2 of nvidia.com/gpu", "2 of nvidia.com/gpu"), ("(team-a/x)", f"({ANOTHER})"),
        ("a; team-c/z", f"a; {ANOTHER}"),
    ],
)  # fmt: skip
def test_sentences_name_only_what_is_seen(text, told):
    assert FEW.told(text) == told
    assert EVERYTHING.told(text) == text


def test_of_others_that_took_room_there_are_sums_by_queue_alone(client):
    """Neither when one of them started, nor what it holds by itself."""
    found = client.get("/api/v1/workloads/team-b/longest").json()["takers"]
    assert [(one["workload"], one["queue"], one["how"], one["startedAt"]) for one in found] == [
        (ANOTHER, "a", "evicted", None), ("team-b/late", "b", "overtook", found[1]["startedAt"]),
        (ANOTHER, "a", "overtook", None),
    ]  # fmt: skip
    assert found[1]["startedAt"] is not None
    crowd = replace(small(), workloads=tuple(
        replace(one, name=f"{one.name}-{number}") for one in small().workloads if one.name != "longest"
        for number in range(3)
    ) + tuple(one for one in small().workloads if one.name == "longest"))  # fmt: skip
    with shown(crowd, whose=always(FEW)) as other:
        found = other.get("/api/v1/workloads/team-b/longest").json()["takers"]
        page = other.get("/workloads/team-b/longest").text
    summed = [one for one in found if one["workloads"] > 1]
    assert [(one["workload"], one["queue"], one["allocated"]["cpu"]) for one in summed] == [
        ("6 other workloads", "a", 9000),
    ]  # fmt: skip
    assert "6 other workloads" in page


def test_of_others_on_a_node_there_is_what_they_ask_for_together():
    with shown(small(), whose=always(Viewer("tenant", frozenset({"team-b"})))) as client:
        assert client.get("/api/v1/nodes/gpu-0").json()["tasksHere"] == [
            {"workload": ANOTHER, "task": None, "queue": None, "phase": None,
             "requests": {"nvidia.com/gpu": 4, "cpu": 2000}},
        ]  # fmt: skip
        [own] = client.get("/api/v1/nodes/gpu-1").json()["tasksHere"]
        assert (own["workload"], own["phase"]) == ("team-b/late", "Running")
        assert client.get("/node?name=gpu-0").status_code == 200
