"""`tenure explain` of a workload that runs: what protects it from which cause and until when, and what may evict it."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
from tests.actions.helpers import MINUTE, NOW, changed, cluster, play, queue, runs, waits
from tests.properties.adding_up import drawn, priced

from tenure.explanation.explain import explain_workload
from tenure.explanation.safety import CAUSES, safety
from tenure.explanation.standing_rules import StandingRules
from tenure.model.queue import QueueStatus, QuotaStatus
from tenure.model.settings import QuotaPreemptionSettings
from tenure.model.values.duration import format_time

SECOND = MINUTE // 60
QUEUES = [queue("a", guaranteed=2), queue("b", guaranteed=1)]
STATE = cluster(QUEUES, [runs("one", "b", ["n0"], gpus=3, minutes=10)])


def told(state, name="one"):
    """What is said of its safety, by code: messages without the workload's name."""
    found = play(state)
    story = explain_workload(found, next(w for w in found.after.workloads if w.name == name))
    assert story.state == "running"
    return [(r.code, r.message) for r in story.reasons], story


def test_what_holds_more_than_its_queue_is_guaranteed_may_be_reclaimed_and_what_holds_less_may_not():
    said, _ = told(STATE)
    assert (
        "MayGiveWay",
        "reclaim may evict it for a queue that is owed room: queue b holds 3 GPUs (guaranteed 1)",
    ) in said
    said, _ = told(changed(STATE, "b", guaranteed=queue("", guaranteed=3).guaranteed))
    assert ("Protected", "from reclaim: queue b is within its guaranteed: 3 GPUs (guaranteed 3)") in said
    said, _ = told(changed(STATE, "b", guaranteed={}))
    assert any("queue b holds 3 GPUs (none of it guaranteed)" in text for _, text in said)


def test_what_a_queue_above_is_guaranteed_protects_where_no_other_leaf_is_below_it():
    """Every queue up to the one beside the contender's has to be over its guaranteed."""
    tree = [queue("p", guaranteed=3), queue("b", "p"), queue("a", guaranteed=1)]
    said, _ = told(cluster(tree, STATE.workloads))
    assert ("Protected", "from reclaim: queue p is within its guaranteed: 3 GPUs (guaranteed 3)") in said
    said, _ = told(cluster([*tree, queue("c", "p")], STATE.workloads))
    assert "MayGiveWay" in [code for code, text in said if "reclaim" in text]


@pytest.mark.parametrize(("priority", "other"), [(0, 0), (100, 1)])
def test_a_stale_gang_is_told_when_it_goes(priority, other):
    """Though no other cause may evict it; not where its grace never ends."""
    gang = replace(runs("one", "b", ["n0"], priority=priority), min_member=2, stale_since=NOW - SECOND)
    until = format_time(NOW + MINUTE - SECOND)
    text = f"from {until} on stale-gang evicts it, unless what it lacks has a place by then"
    said, _ = told(cluster(QUEUES, [gang]))
    assert ("MayGiveWay", f"{text}: it runs 1 of the 2 tasks that it needs") in said
    assert sum(text.startswith("no other cause evicts it") for _, text in said) == other
    said, _ = told(cluster(QUEUES, [replace(gang, staleness_grace_period=-1)]))
    assert not [text for _, text in said if "stale-gang" in text or "no other cause" in text]


def test_where_there_is_no_other_queue_nothing_is_said_of_reclaim():
    said, _ = told(cluster([queue("b")], [runs("one", "b", ["n0"])]))
    assert said == [("MayGiveWay", "a workload of queue b with a priority above 0 may preempt it")]


def test_minimum_runtimes_are_told_by_cause_with_their_ends():
    state = replace(
        STATE, settings=replace(STATE.settings, reclaim_min_runtime=30 * MINUTE, preempt_min_runtime=60 * MINUTE)
    )
    _, story = told(state)
    protected = {tuple(r.numbers["causes"]): r.numbers["until"] for r in story.reasons if r.code == "Protected"}
    assert protected == {
        ("reclaim", "requeue"): format_time(NOW + 20 * MINUTE), ("preempt",): format_time(NOW + 50 * MINUTE),
    }  # fmt: skip
    assert not [r for r in story.reasons if r.code == "MayGiveWay"]


def test_surplus_is_not_protected_by_a_minimum_runtime():
    state = cluster(QUEUES, [runs("one", "b", ["n0"] * 3, core=1, minutes=10)], reclaim_min_runtime=30 * MINUTE)
    assert ("MayGiveWay", "2 of its tasks run beyond its minimum, which that does not protect") in told(state)[0]


def test_a_minimum_runtime_that_depends_on_who_takes_is_told_with_its_shortest_end():
    tree = [
        queue("p"), queue("near", "p"), queue("far"), queue("b", "p", reclaim_min_runtime=40 * MINUTE),
    ]  # fmt: skip
    state = cluster(tree, [runs("one", "b", ["n0"], minutes=10)], reclaim_min_runtime=20 * MINUTE)
    text = f"its minimum runtime protects it until {format_time(NOW + 10 * MINUTE)}, and from some queues longer"
    assert ("Protected", f"from reclaim: {text}") in told(state)[0]
    state = replace(state, settings=replace(state.settings, reclaim_min_runtime=5 * MINUTE))
    (text,) = [text for code, text in told(state)[0] if "reclaim may" in text]
    assert text.endswith(f"from some queues its minimum runtime protects it until {format_time(NOW + 30 * MINUTE)}")


def test_the_minimum_runtime_of_a_queue_above_holds_against_those_outside_and_not_that_of_the_leaf():
    """By the method `lca` the queue below the common ancestor says it, and above leaf b no other leaf is there."""
    above = queue("p", reclaim_min_runtime=40 * MINUTE)
    tree = [above, queue("far"), queue("b", "p", reclaim_min_runtime=20 * MINUTE)]
    state = cluster(tree, [runs("one", "b", ["n0"], minutes=10)])
    text = f"from reclaim: its minimum runtime protects it until {format_time(NOW + 30 * MINUTE)}"
    assert ("Protected", text) in told(state)[0]
    over = changed(state, "p", reclaim_min_runtime=0)
    assert [text[:18] for code, text in told(over)[0] if code == "MayGiveWay" and "reclaim" in text] == [
        "reclaim may evict "
    ]


def test_what_is_never_evicted_is_told_once_and_why():
    said, _ = told(changed(STATE, "one", priority=200, preemptible=None))
    assert said == [("Protected", "no cause evicts it: default/one is not preemptible: its priority is 200")]
    said, _ = told(changed(STATE, "b", preemption_policy="disabled"))
    text = "no cause evicts it: nothing is taken from queue b: its preemptionPolicy is disabled"
    assert said == [("Protected", text)]


def test_what_asked_to_be_spared_is_told_until_when():
    state = changed(STATE, "one", allow_preemption=False, allow_preemption_until=NOW + 90 * MINUTE)
    until = format_time(NOW + 90 * MINUTE)
    text = f"it is spared, at the longest until {until}: it is evicted only where nothing else helps"
    assert ("Spared", text) in told(state)[0]


def test_of_a_request_with_an_end_of_its_own_that_is_told():
    """Of an annotation of Karpenter's with a duration, which counts from the start: ten minutes ago."""
    state = changed(STATE, "one", annotations={"karpenter.sh/do-not-disrupt": "2h"}, started_at=NOW - 10 * MINUTE)
    until = format_time(NOW + 110 * MINUTE)
    text = f"it is spared, at the longest until {until}: it is evicted only where nothing else helps"
    assert ("Spared", text) in told(state)[0]


def test_a_lowered_quota_is_told_with_its_deadline():
    armed = QuotaStatus(armed_at=NOW, delay=30 * MINUTE, deadline=NOW + 30 * MINUTE, max=queue("", most=2).max)
    lowered = changed(
        STATE, "b", max=queue("", most=2).max, quota_preemption_delay=30 * MINUTE,
        status=QueueStatus(quota_preemption=armed),
    )  # fmt: skip
    state = replace(lowered, settings=replace(lowered.settings, quota_preemption=QuotaPreemptionSettings(enabled=True)))
    text = f"from {format_time(NOW + 30 * MINUTE)} on quota may evict it: queue b is 1 GPU over its maximum"
    assert ("MayGiveWay", text) in told(state)[0]


def test_what_a_shield_was_seen_to_hold_back_is_not_told_twice():
    state = replace(STATE, workloads=(*STATE.workloads, waits("asks", "a", gpus=2)))
    state = replace(state, settings=replace(state.settings, reclaim_min_runtime=30 * MINUTE))
    said, _ = told(state)
    assert [text for _, text in said].count(next(t for _, t in said if "minimum runtime of 30m" in t)) == 1


def test_each_code_is_in_the_table_of_what_runs():
    root = Path(__file__).parents[2]
    table = (root / "docs/concepts.md").read_text().partition("\n### Of what runs\n")[2]
    made = "".join((root / "src/tenure/explanation" / name).read_text() for name in ("explain.py", "safety.py"))
    codes = set(re.findall(r'Reason\(\s*"(\w+)"', made)) - {
        "Moves",
        "MadeRoom",
        "InvalidSetting",
    }  # not of what runs on
    assert codes == set(re.findall(r"`([A-Z]\w+)`(?:,| \|)", table))


def test_no_cause_evicts_what_it_is_said_to_be_protected_from():
    seen = set()
    for seed in range(30):
        for state in (drawn(seed), priced(seed)):
            standing, found = StandingRules(state), play(state)
            gone = {(s.workload, s.cause) for s in found.steps if s.action == "evict" and s.to is None}
            grown = {s.workload for s in found.steps if s.action in {"bind", "nominate"}}
            growing = {w.queue for w in state.workloads if w.key in grown}
            for workload in state.workloads:
                said = list(safety(standing, workload.key, found.quota))
                surplus = any("tasks" in r.numbers for r in said)
                for reason in (r for r in said if r.code == "Protected" and not surplus):
                    if reason.numbers["shield"] == "guaranteed" and workload.queue in growing:
                        continue
                    causes = reason.numbers["causes"]
                    assert not gone & {(workload.key, cause) for cause in causes}, (seed, workload.key, reason)
                    seen.update(causes)
    assert seen == set(CAUSES)
