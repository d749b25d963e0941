"""The API: the documented answers, paging, refusals, and that it plans as the command does."""

import json
import re
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, node, spec, workload
from tests.web.consoles import shown, small

from tenure.model.cluster import EvictionOutcome
from tenure.model.file.dump import dump_cluster
from tenure.web.access.viewer import EVERYTHING
from tenure.web.console import Console
from tenure.web.sources.still import StillSource
from tenure.web.views.look import Looked
from tenure.web.views.overview import alerts

PATHS = ("overview", "queues", "workloads", "nodes", "evictions", "series")


@pytest.fixture(scope="module")
def client():
    with shown(small()) as found:
        yield found


def get(client, path, status=200, **parameters):
    answer = client.get(f"/api/v1/{path}", params=parameters)
    assert answer.status_code == status, answer.text
    return answer.json()


def test_it_says_that_it_lives_whoever_asks(client):
    answer = client.get("/healthz", headers={"host": "10.1.2.3:8080"})
    assert (answer.status_code, answer.text) == (200, "ok\n")


def test_the_overview_counts_what_runs_waits_and_was_evicted(client):
    found = get(client, "overview")
    assert found["workloads"] == {
        "running": 3, "partly running": 0, "waiting": 1, "leaving": 0, "ended": 0, "of another scheduler": 0,
    }  # fmt: skip
    assert found["allocated"]["nvidia.com/gpu"] == 8
    assert found["allocated"]["milliGpu"] == 500
    assert found["waits"][0]["workload"] == "team-b/longest"
    assert found["evictions"]["day"] == 2
    assert {one["cause"] for one in found["evictions"]["sums"]} == {"preempt", "reclaim"}


def test_the_overview_says_where_evictions_do_not_pay():
    """A cause that lost more than was gained, once that is known; and a shield before what does not save its work."""
    made = small()
    lost = EvictionOutcome(at=NOW - 60 * SECOND, cause="reclaim", lost=7200, gained=3600)
    settings = replace(made.settings, reclaim_min_runtime=1800 * SECOND)
    console = Console(StillSource(replace(made, outcomes=(lost,), settings=settings), "a file"))
    try:
        told, before = (
            [alert["message"] for alert in alerts(Looked(console, console.picture(at), EVERYTHING, at))]
            for at in (None, lost.at - 1)
        )
    finally:
        console.close()
    loses = "evictions by reclaim lost 2 weighted hours and gained 1 weighted hour in the last 1d"
    assert told[0] == loses
    assert told[1].startswith("research: a minimum runtime shields workloads whose checkpoints are not known")
    assert loses not in before


def test_queues_stand_below_their_parents_with_what_they_are_due(client):
    found = get(client, "queues")["queues"]
    assert [(one["name"], one["depth"], one["parent"]) for one in found] == [
        ("research", 0, None), ("a", 1, "research"), ("b", 1, "research"),
    ]  # fmt: skip
    assert found[1]["guaranteed"] == {"nvidia.com/gpu": 4}
    assert found[2]["fairShare"]["nvidia.com/gpu"] > 0
    assert found[2]["asked"]["nvidia.com/gpu"] == 12
    assert found[0]["workloads"] == {"running": 3, "waiting": 1}
    assert found[0]["asked"] == found[2]["asked"]


def test_a_workload_says_why_it_waits_and_who_took_its_room(client):
    found = get(client, "workloads/team-b/longest")
    assert found["state"] == "waiting"
    assert found["placeInOrder"] == {"place": 1, "of": 1}
    assert found["reasons"]
    assert [(one["workload"], one["how"]) for one in found["takers"]] == [
        ("team-a/first", "evicted"), ("team-b/late", "overtook"), ("team-a/small", "overtook"),
    ]  # fmt: skip
    assert [(one["kind"], one["for"]) for one in found["story"]] == [("submitted", None), ("evicted", "team-a/first")]


def test_what_runs_is_told_who_had_its_room_while_it_waited_and_no_others(client):
    found = get(client, "workloads/team-b/late")["takers"]
    assert [(one["workload"], one["how"]) for one in found] == [("team-a/first", "holds")]
    found = get(client, "workloads/team-a/first")["takers"]
    assert [(one["workload"], one["how"]) for one in found] == [("team-b/late", "evicted")]


def test_no_workload_took_the_room_of_one_that_never_waited():
    at_once = workload("at-once", of=spec(cpu=2, gpu=4), on=["gpu-2"], queue="a", age=60, running=60)
    with shown(replace(small(), workloads=(*small().workloads[:2], at_once))) as client:
        assert get(client, "workloads/default/at-once")["takers"] == []
        page = client.get("/workloads/default/at-once").text
        assert "Which workloads took its room" not in page
        assert "<b>started</b>" in page
        assert "at most" not in page


def test_those_that_wait_come_first_and_then_those_that_waited_longest(client):
    found = get(client, "workloads", sort="waited")["workloads"]
    assert [(one["workload"], one["waited_s"]) for one in found] == [
        ("team-b/longest", 7200), ("team-a/first", 600), ("team-b/late", 100), ("team-a/small", 10),
    ]  # fmt: skip


def test_a_node_shows_its_devices(client):
    found = get(client, "nodes", q="GPU-2")["nodes"]
    assert [(one["name"], one["allocated"]["milliGpu"]) for one in found] == [("gpu-2", 500)]


def test_one_node_is_told_device_by_device(client):
    found = get(client, "nodes/gpu-2")
    assert [[(part["workload"], part["milliGpu"]) for part in parts] for parts in found["devices"]] == [
        [("team-a/small", 500)], [], [], [],
    ]  # fmt: skip
    get(client, "nodes/gpu-9", 404)


def test_a_task_on_a_node_asks_for_its_part_of_a_gpu_as_well(client):
    [one] = get(client, "nodes/gpu-2")["tasksHere"]
    assert (one["requests"]["cpu"], one["requests"]["milliGpu"]) == (1000, 500)


def test_emptying_a_node_moves_what_is_on_it_to_where_there_is_room(client):
    made = small()
    with shown(replace(made, nodes=(*made.nodes, node("gpu-3", cpu=2, gpu=1)))) as wider:
        found = get(wider, "moves", drain="gpu-2")
    assert found["settled"]
    drains = [move for move in found["moves"] if move["trigger"] == "drain"]
    assert [(m["task"], m["from"], m["to"]) for move in drains for wave in move["waves"] for m in wave] == [
        ("small-0", "gpu-2", "gpu-3"),
    ]  # fmt: skip
    assert drains[0]["certificate"]["lowerBound"] <= drains[0]["certificate"]["cost"]
    get(client, "moves", 404, drain="gpu-9")


def test_waves_have_the_numbers_of_the_command_and_max_is_called_so(client):
    wider = replace(small(), nodes=(*small().nodes, node("gpu-3", cpu=2, gpu=1)))
    with shown(wider) as wide:
        assert get(wide, "moves", drain="gpu-2")["settled"]
        page = wide.get("/moves", params={"drain": "gpu-2"}).text
    assert "<h3>Wave 0</h3>" in page
    assert "<h3>Wave 1</h3>" not in page
    assert page.index("<h2>To empty gpu-2") < page.index("<h2>Room for"), "what was asked for comes first"
    assert re.search(r"<span>cost</span><b>[\d.]+ weighted hours?</b>", page), "the unit of the sentence beside it"
    assert '<option value="max">max</option>' in client.get("/whatif").text
    assert "</svg>max</li>" in client.get("/queues").text


@pytest.mark.parametrize(("plans", "each"), [(1, 20_000), (20_000, 1), (20_000, 0)])
def test_a_page_of_very_many_moves_shows_the_first_of_them_and_counts_the_others(monkeypatch, plans, each):
    """A browser can show it, and the API has them all."""
    move = {"workload": "team-a/<b>", "task": "t-0", "from": "gpu-0", "to": "gpu-1", "mode": "evict-first"}
    one = {"for": [f"team-a/w-{n}" for n in range(20_000 // plans)], "trigger": "pending", "feasible": True,
           "waves": [[move] * each] if each else [], "certificate": None}  # fmt: skip
    found = {"moves": [one] * plans, "settled": True, "warnings": [], "drain": None}
    monkeypatch.setattr("tenure.web.views.plans.moves", lambda *_: found)
    with shown(small()) as client:
        page = client.get("/moves").text
    assert page.count("<path d=") == min(1000, plans * each)
    assert page.count("<section>") == min(1000, plans)
    left = plans * each - min(1000, plans * each), plans - min(1000, plans)
    assert f"{left[0]:,} more moves and {left[1]:,} more plans are not shown" in page
    assert len(page) < 1_500_000
    assert ("and 19,980 more</h2>" in page) == (plans == 1)


def test_pages_follow_each_other(client):
    whole = get(client, "workloads", sort="name")["workloads"]
    parts = [get(client, "workloads", sort="name", limit=1, offset=number)["workloads"] for number in range(5)]
    assert [one for part in parts for one in part] == whole


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    "parameters",
    [{"limit": "100000"}, {"limit": "0"}, {"points": "999999"}, {"at": "yesterday"}, {"offset": "-1"},
     {"q": "x" * 301}, {"nonsense": "1"}, {"state": "asleep"}, {"sort": "luck"}, {"limit": "٣"}],
)  # fmt: skip
def test_what_does_not_do_is_refused_with_its_name(client, path, parameters):
    error = get(client, path, 400, **parameters)["error"]
    assert next(iter(parameters)) in error


def test_the_same_parameter_twice_is_refused(client):
    assert client.get("/api/v1/nodes?limit=1&limit=2").status_code == 400


def test_a_plan_is_that_of_the_command(client, run_command, tmp_path):
    file = tmp_path / "cluster.json"
    with file.open("w") as stream:
        dump_cluster(small(), stream, format="json")
    change = "queue.b.max.nvidia.com/gpu=8"
    added = {"name": "more", "queue": "a", "requests": {"cpu": "1"}}
    (tmp_path / "add.json").write_text(json.dumps({"workloads": [added]}))
    code, printed, _ = run_command("plan", file, "--set", change, "--add", tmp_path / "add.json", "--format", "json")
    answer = client.post("/api/v1/plan", json={"set": [change], "add": [added]})
    assert (code, answer.status_code) == (0, 200)
    assert answer.json() == json.loads(printed)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"{", "application/json", 400), (b"[]", "application/json", 400), (b'{"set": "x"}', "application/json", 400),
        (b'{"add": [1]}', "application/json", 400), (b'{"other": []}', "application/json", 400),
        (b"{}", "text/plain", 415), (b" " * (2**20 + 1), "application/json", 413),
        (b'{"set": ["queue.nobody.max.cpu=1"]}', "application/json", 422),
        (b'{"add": [{"nme": "x"}]}', "application/json", 422),
        (b'{"set": ["now=NaN"]}', "application/json", 422), (b'{"set": [NaN]}', "application/json", 400),
    ],
)  # fmt: skip
def test_a_plan_that_cannot_be_played_is_refused(client, body, kind, status):
    answer = client.post("/api/v1/plan", content=body, headers={"content-type": kind})
    assert answer.status_code == status, answer.text
    assert answer.json()["error"]


def test_an_earlier_moment_is_shown_as_far_as_it_is_known(client):
    found = get(client, "overview", at="2027-01-15T07:30:00Z")
    assert (found["workloads"]["running"], found["workloads"]["waiting"]) == (1, 1)


def test_nothing_is_changed_by_asking(client):
    before = get(client, "overview")
    client.post("/api/v1/plan", json={"set": ["queue.a.max.nvidia.com/gpu=0"]})
    assert get(client, "overview") == before


@pytest.mark.parametrize(
    ("path", "name"),
    [("/workloads?state=waiting&state=running", "state"), ("/?at=&at=2026-01-01T00:00:00Z", "at"),
     ("/whatif?set=now%3D1&at=&at=", "at"), ("/workloads/team-b/late?name=team-b/longest", "name"),
     ("/api/v1/workloads?limit=1&limit=2", "limit")],
)  # fmt: skip
def test_what_stands_there_twice_is_refused(client, path, name):
    """One of the two would be ignored."""
    answer = client.get(path)
    assert answer.status_code == 400
    assert f"{name} stands there twice" in answer.text


def test_several_changes_are_no_repetition(client):
    assert client.get("/whatif?set=queue.a.priority%3D1&set=queue.b.priority%3D1").status_code == 200


def test_a_page_about_a_moment_that_cannot_be_read_leads_to_the_newest(client):
    """Else each of its links leads to the same page."""
    page = client.get("/queues?at=tomorrowish")
    assert page.status_code == 400
    assert "?at=" not in page.text
    assert 'href="/workloads"' in page.text
    assert "?at=2026" in client.get("/workloads?at=2026-11-20T10:00:00Z&state=odd").text
