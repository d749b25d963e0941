"""What would be moved of other schedulers' pods can be read from a file: plan, reschedule, explain, and the page."""

import json

import pytest

CLUSTER = """
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
scheduler: {rescheduler: SETTINGS}
nodes:
  - {name: n, count: 2, allocatable: {cpu: "8"}}
workloads:
  - {name: large, schedulerName: default-scheduler, createdAt: 2026-11-20T09:50:00Z, requests: {cpu: 8},
     ownerKind: ReplicaSet}
  - {name: a, schedulerName: default-scheduler, requests: {cpu: 3}, createdAt: 2026-11-20T08:00:00Z,
     startedAt: 2026-11-20T09:30:00Z, ownerKind: ReplicaSet, tasks: [{name: a-0, node: n-0}]}
  - {name: b, schedulerName: default-scheduler, requests: {cpu: 3}, createdAt: 2026-11-20T08:00:00Z,
     startedAt: 2026-11-20T09:00:00Z, ownerKind: ReplicaSet, tasks: [{name: b-0, node: n-1}]}
"""
NAMED = "{schedulers: [default-scheduler]}"


@pytest.fixture
def file(tmp_path):
    def made(settings=NAMED):
        path = tmp_path / "cluster.yaml"
        path.write_text(CLUSTER.replace("SETTINGS", settings))
        return path

    return made


@pytest.mark.parametrize("name", ["reschedule", "plan"])
def test_a_plan_has_the_moves_of_pods_that_another_scheduler_binds_beside_its_own(command, file, name):
    """Apart from the steps that Tenure's own scheduler takes, in text and as data."""
    result = json.loads(command(name, file(), "--format", "json"))
    assert result["steps"] == result["moves"] == []
    told = result["external"]
    assert told["schedulers"] == ["default-scheduler"]
    evicted = [s for s in told["steps"] if s["action"] == "evict"]
    assert [(s["task"], s["node"], s["to"], s["for"]) for s in evicted] == [("a-0", "n-0", "n-1", "default/large")]
    assert told["moves"][0]["certificate"]["method"] in {"cover", "exact"}
    text = command(name, file())
    assert "Of the pods of default-scheduler: 1 eviction, 2 nominations; 2 workloads wait." in " ".join(text.split())
    assert "OF DEFAULT-SCHEDULER: MOVES" in text
    assert "For default/large (pending): 1 move in 1 wave." in text


@pytest.mark.parametrize("settings", ["{pendingFor: 1m}", "{schedulers: [volcano]}"])
def test_pods_of_schedulers_that_are_not_named_are_not_spoken_of(command, file, settings):
    """Nothing of theirs moves."""
    told = json.loads(command("reschedule", file(settings), "--format", "json")).get("external")
    assert told is None or (told["steps"] == [] and told["moves"] == [])
    assert "it waits for default-scheduler, whose pods Tenure neither places nor moves" in command(
        "explain", file(settings), "large"
    )


def test_without_the_action_or_with_the_cause_off_there_is_no_second_plan(command, file):
    """As on a live cluster."""
    assert "external" not in json.loads(command("plan", file(), "--actions", "allocate", "--format", "json"))
    off = command("reschedule", file(), "--set", "scheduler.modes.reschedule=off", "--format", "json")
    assert "external" not in json.loads(off)


def test_explain_tells_of_such_a_pod_why_it_moves_and_of_one_that_waits_what_helps(command, file):
    """The same story as for Tenure's own."""
    assert "a-0 leaves n-0 and goes on at n-1" in command("explain", file(), "a")
    assert "it is nominated to n-0" in command("explain", file(), "large")
    fixed = file()
    fixed.write_text(fixed.read_text().replace("ownerKind: ReplicaSet, tasks", "ownerKind: DaemonSet, tasks"))
    assert "even if every movable pod moved, the largest hole is 5 cores on n-0" in command("explain", fixed, "large")


def test_a_drain_moves_such_pods_and_says_nothing_of_a_node_that_keeps_them(command, file, tmp_path):
    """The page shows them on the move; nobody is told that they stay."""
    page = tmp_path / "page.html"
    text = command("reschedule", file(), "--drain", "n-1", "--report", page)
    assert "To empty n-1 (drain): 1 move in 1 wave." in text
    assert "WARNINGS" not in text
    assert "Of default-scheduler: moves" in page.read_text()
