"""What is written down of room that is kept, and how pods of other schedulers are seen."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.kubernetes.pods import node, observed, pod

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.reservations import DepartedPod, NodeReservation
from tenure.model.settings import ReschedulerSettings, Settings

NAMES = st.sampled_from(["n0", "n1", "n2", "n3"])
MOVES = st.builds(
    DepartedPod, pod=st.uuids().map(str), controller=st.sampled_from(["a", "b"]), origin=NAMES, target=NAMES
)
HOLES = st.builds(
    NodeReservation,
    id=st.just("0123456789abcdef"),
    at=st.just("2026-11-22T05:00:00Z"),
    until=st.just("2026-11-22T05:05:00Z"),
    whose=st.lists(st.sampled_from(["team/x", "team/y"]), unique=True).map(tuple),
    pods=st.lists(st.uuids().map(str), max_size=3).map(tuple),
    nodes=st.lists(NAMES, unique=True).map(lambda found: tuple(sorted(found))),
    moves=st.lists(MOVES, max_size=4).map(tuple),
    released=st.booleans(),
)


def item(data):
    return api.ApiObject(metadata=api.Meta(name="tenure-moves-default"), data=data)


@given(HOLES)
def test_a_record_is_read_as_it_was_written(hole):
    """What is not set is left out, and comes back as it was."""
    assert reservations.hole_of(item(reservations.body_of(hole, "default")["data"])) == hole


@given(HOLES)
def test_nothing_that_moved_may_go_back_and_only_what_lands_on_a_kept_node_may_go_there(hole):
    """Origins are avoided; whoever tolerates the taint has a kept node as its place, and avoids the others."""
    guidance = reservations.guidance(hole)
    if hole.released:
        assert guidance == {}
        return
    for move in hole.moves:
        avoid = guidance[f"{move.controller}.avoid"].split(" ")
        prefer = guidance.get(f"{move.controller}.prefer", "").split(" ")
        targets = {m.target for m in hole.moves if m.controller == move.controller}
        assert move.origin in avoid
        assert not set(avoid) & set(prefer)
        if f"{move.controller}.tolerate" in guidance:
            assert targets & set(hole.nodes)
            assert set(hole.nodes) - targets <= set(avoid)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"id": 3}', '{"id": "x", "at": "", "until": "", "nodes": 7}'])
def test_a_record_that_cannot_be_read_has_ended(text):
    """So that whatever it was about is taken back."""
    found = reservations.hole_of(item({reservations.RECORD: text}))
    assert (found.ends, found.nodes, found.pods) == (0, (), ())
    assert reservations.hole_of(item(None)).ends == 0
    assert reservations.hole_of(None) is None


def test_a_taint_is_added_and_taken_off_without_touching_others():
    """Whatever else a node carries stays as it is, in its order."""
    others = [{"key": "a", "effect": "NoSchedule"}, {"key": "b", "value": "1", "effect": "NoExecute", "timeAdded": "x"}]
    tainted = reservations.with_taint(others, "one")
    assert [t["key"] for t in tainted] == ["a", "b", reservations.TAINT]
    assert reservations.with_taint(tainted, "one") == tainted
    assert reservations.with_taint(tainted, "two")[-1]["value"] == "two"
    assert reservations.with_taint(tainted, None) == others


def seen(schedulers=("default-scheduler",), owner=("ReplicaSet", "web"), **changes):
    """Give the one workload that is seen of a pod of the default scheduler."""
    settings = replace(Settings(), rescheduler=ReschedulerSettings(schedulers=schedulers))
    made = pod("web-1", node="n0", owner=owner, schedulerName="default-scheduler", **changes)
    (found,) = observed(node("n0"), made, settings=settings).cluster.workloads
    return found


def test_pods_of_a_named_scheduler_may_be_moved_and_keep_their_schedulers_name():
    """They are whole workloads in the queue default; those of others are no more than room that is taken."""
    named, other = seen(), seen(schedulers=("volcano",))
    assert (named.scheduler_name, named.queue, named.preemptible, named.owner_kind) == (
        "default-scheduler", "default", True, "ReplicaSet",
    )  # fmt: skip
    assert (other.scheduler_name, other.preemptible, other.owner_kind) == ("default-scheduler", None, None)


@pytest.mark.parametrize(
    ("changes", "movable"),
    [
        ({"priority": 1_000_000}, True),
        ({"priority": 2_000_000_000}, False),
        ({"annotations": {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}}, False),
        ({"annotations": {"tenure.dev/preemptible": "false"}}, False),
        ({"labels": {"tenure.dev/queue": "research"}}, True),
        ({"owner": ("DaemonSet", "web")}, False),
    ],
)
def test_who_of_another_scheduler_is_spared(changes, movable):
    """What the system or its owner calls critical is not moved; a priority or a queue's label changes nothing."""
    found = seen(**changes)
    assert found.is_preemptible == movable
    assert found.queue == "default"
