"""A viewer with few rights: their own workloads, and of others only sums by queue; in no view another one's name."""

import re

import pytest
from tests.web.consoles import shown, small

from tenure.web.viewer import ANOTHER, EVERYTHING, Viewer

FEW = Viewer("tenant", frozenset({"team-b"}), nodes=False)
PAGES = (
    "/", "/queues", "/queue?name=a", "/queue?name=b", "/workloads", "/workloads/team-b/longest", "/nodes", "/moves",
    "/evictions", "/timeline", "/whatif", "/whatif?set=queue.b.guaranteed.nvidia.com%2Fgpu%3D12",
    "/api/v1/overview", "/api/v1/queues", "/api/v1/workloads", "/api/v1/workloads/team-b/longest", "/api/v1/nodes",
    "/api/v1/evictions", "/api/v1/series",
)  # fmt: skip
OTHERS = re.compile(r"team-a/(first|small)|first-0|small-0")


@pytest.fixture(scope="module")
def client():
    with shown(small(), whose=lambda _: FEW) as found:
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
