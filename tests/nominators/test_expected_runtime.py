"""The plugin's part of the test plan: settings, times, cooldown, preemptible, minimum runtime; and bad input."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, spec, task, workload
from tests.requeue.clusters import nominated, one_node, overdue, queue, skips, waiting

from tenure.model.settings import MinRuntimeSettings
from tenure.playthrough import play

BY = {"old": ("expected-runtime",)}


def test_config_parsing_valid():
    """A field, an annotation under each prefix, a queue's default, one further up, and a node pool's all count."""
    assert nominated(play(one_node(overdue(), waiting()))) == BY
    for prefix in ("tenure.dev", "kai.scheduler", "volcano.sh"):
        said = replace(overdue(expected=None), annotations={f"{prefix}/expected-runtime": "1h30m"})
        assert nominated(play(one_node(said))) == BY
    plain = replace(overdue(expected=None), queue="leaf")
    for level in ("leaf", "top"):
        tree = [queue("top"), queue("leaf", "top")]
        tree = [replace(q, expected_runtime=3600 * SECOND) if q.name == level else q for q in tree]
        assert nominated(play(one_node(plain, queues=tree))) == BY
    assert nominated(play(one_node(overdue(expected=None), expected_runtime=3600 * SECOND))) == BY


def test_the_annotation_wins_over_the_field():
    """In both directions, and the disagreement is reported."""
    longer = replace(overdue(), annotations={"tenure.dev/expected-runtime": "3h"})
    shorter = replace(overdue(expected=10800), annotations={"tenure.dev/expected-runtime": "1h"})
    assert nominated(play(one_node(longer))) == {}
    played = play(one_node(shorter))
    assert nominated(played) == BY
    assert any("default/old" in w and "wins over" in w for w in played.warnings)


def test_prefixes_have_an_order():
    said = {
        "volcano.sh/expected-runtime": "1h",
        "kai.scheduler/expected-runtime": "1h",
        "tenure.dev/expected-runtime": "5h",
    }
    assert nominated(play(one_node(replace(overdue(expected=None), annotations=said)))) == {}


def test_tasks_speak_for_their_workload_where_they_agree():
    """Pods carry annotations as well; the workload's own win, and those of pods that disagree are invalid."""

    def of(*texts, own=None):
        tasks = [
            replace(
                task(f"t{i}", spec(gpu=2), on="n"), annotations={"tenure.dev/expected-runtime": text} if text else {}
            )
            for i, text in enumerate(texts)
        ]
        found = workload("old", tasks=tasks, running=7200, age=7300)
        return replace(found, annotations={"tenure.dev/expected-runtime": own} if own else {})

    assert nominated(play(one_node(of("1h", "1h")))) == BY
    assert nominated(play(one_node(of("1h", None)))) == BY
    assert nominated(play(one_node(of("3h", "4h", own="1h")))) == BY
    assert skips(play(one_node(of("1h", "2h")))) == {"old": "invalid_duration"}


@pytest.mark.parametrize("text", ["2 hours", "-5m", "", "1e400h", "90", "1h30", "h", "NaN", "٣h", "9" * 70 + "h"])
def test_config_parsing_invalid(text):
    """Counted, reported, never a crash and never an eviction; the valid field behind it is not used."""
    bad = replace(overdue(), annotations={"tenure.dev/expected-runtime": text})
    played = play(one_node(bad, waiting()))
    assert skips(played)["old"] == "invalid_duration"
    assert not played.steps
    assert any(w.startswith("default/old: annotation tenure.dev/expected-runtime") for w in played.warnings)


def test_config_parsing_missing():
    """Without any setting nobody is nominated and nobody is skipped."""
    played = play(one_node(overdue(expected=None), waiting()))
    assert (nominated(played), skips(played), played.requeue.rolled_back) == ({}, {}, 0)


@pytest.mark.parametrize("zero", ["0", "0s"])
def test_an_explicit_zero_opts_out_and_ends_inheritance(zero):
    tree = [replace(queue("q"), expected_runtime=3600 * SECOND)]
    inherits = replace(overdue(expected=None), queue="q")
    assert nominated(play(one_node(inherits, queues=tree))) == BY
    for out in (
        replace(inherits, expected_runtime=0),
        replace(inherits, annotations={"tenure.dev/expected-runtime": zero}),
        replace(inherits, expected_runtime=3600 * SECOND, annotations={"tenure.dev/expected-runtime": zero}),
    ):
        played = play(one_node(out, replace(waiting(), queue="q"), queues=tree))
        assert (nominated(played), skips(played).get("old"), played.steps) == ({}, None, [])


@pytest.mark.parametrize(("ran", "found"), [(3600 - 1e-6, {}), (3600, BY), (3600 + 1e-6, BY)])
def test_time_logic_before_and_after_the_expected_runtime_boundary(ran, found):
    """At exactly the expected runtime it is eligible; before that it is neither nominated nor skipped."""
    one = replace(overdue(), started_at=NOW - round(ran * SECOND))
    played = play(one_node(one))
    assert (nominated(played), skips(played)) == (found, {})


@pytest.mark.parametrize(("until", "is_barred"), [(NOW + 1, True), (NOW, False), (NOW - 1, False)])
def test_cooldown_gate_before_and_after_not_before(until, is_barred):
    played = play(one_node(replace(overdue(), requeue_not_before=until), waiting()))
    assert skips(played).get("old") == ("cooldown" if is_barred else None)
    assert bool(played.requeue.not_before) is not is_barred


def test_not_before_in_the_year_9999_is_a_cooldown():
    barred = replace(overdue(), annotations={"tenure.dev/requeue-not-before": "9999-12-31T23:59:59Z"})
    assert skips(play(one_node(barred, waiting())))["old"] == "cooldown"


@pytest.mark.parametrize("text", ["", "tomorrow", "2026-13-01T00:00:00Z", "12345"])
def test_an_unreadable_not_before_counts_as_none_and_is_reported(text):
    odd = replace(overdue(), annotations={"tenure.dev/requeue-not-before": text})
    played = play(one_node(odd))
    assert nominated(played) == BY
    assert any("requeue-not-before" in w for w in played.warnings)


def test_preemptible_filter():
    """Not preemptible: skipped, whether it says so or its priority does."""
    assert skips(play(one_node(overdue(preemptible=False)))) == {"old": "not_preemptible"}
    assert skips(play(one_node(overdue(priority=100)))) == {"old": "not_preemptible"}
    assert nominated(play(one_node(overdue(priority=100, preemptible=True)))) == BY


def test_running_check():
    assert skips(play(one_node(waiting(expected_runtime=60, gpu=8)))) == {"new": "not_running"}


def test_missing_start_and_clock_skew():
    assert skips(play(one_node(replace(overdue(), started_at=None)))) == {"old": "missing_start"}
    assert skips(play(one_node(replace(overdue(), started_at=NOW + 1)))) == {"old": "clock_skew"}


def test_minruntime_interaction():
    """Held against everybody who contends: skipped; nobody contends: the reclaim value by method queue counts."""
    tree = [queue("a", reclaim_min_runtime=10800 * SECOND), queue("b")]
    old, other = replace(overdue(), queue="a"), replace(waiting(), queue="b")
    same = replace(waiting("same"), queue="a")
    assert skips(play(one_node(old, other, queues=tree))) == {"old": "minruntime_protected"}
    assert nominated(play(one_node(old, other, same, queues=tree))) == BY
    assert skips(play(one_node(old, queues=tree))) == {"old": "minruntime_protected"}
    in_leaf = [queue("a", preempt_min_runtime=10800 * SECOND), queue("b")]
    assert nominated(play(one_node(old, queues=in_leaf))) == BY
    assert skips(play(one_node(old, same, queues=in_leaf))) == {"old": "minruntime_protected"}
    assert nominated(play(one_node(old, same, other, queues=in_leaf))) == BY
    spared = MinRuntimeSettings(applies_to=("reclaim",))
    assert nominated(play(one_node(old, other, queues=tree, min_runtime=spared))) == BY


def test_minimum_runtime_is_resolved_at_the_lowest_common_ancestor_of_some_contender():
    """The value is the least over all who contend, wherever in the tree they wait."""
    tree = [
        queue("top", reclaim_min_runtime=10800 * SECOND), queue("mid", "top"), queue("a", "mid", reclaim_min_runtime=0),
        queue("b", "mid"), queue("c", "top"), queue("other"),
    ]  # fmt: skip
    old = replace(overdue(), queue="a")
    for where, protected in (("b", False), ("c", True), ("other", True)):
        played = play(one_node(old, replace(waiting(), queue=where), queues=tree))
        assert skips(played).get("old") == ("minruntime_protected" if protected else None), where


def test_an_expected_runtime_shorter_than_the_minimum_runtime_waits_for_it():
    early = overdue(ran=1800, expected=600)
    settings = {"preempt_min_runtime": 3600 * SECOND, "reclaim_min_runtime": 3600 * SECOND}
    assert skips(play(one_node(early, waiting(), **settings)))["old"] == "minruntime_protected"
    late = overdue(ran=3600, expected=600)
    assert nominated(play(one_node(late, waiting(), **settings))) == BY


def test_checks_are_made_in_the_order_of_the_table():
    """What fails several checks is counted under the first of them."""
    bad = {"tenure.dev/expected-runtime": "x"}
    not_running = replace(waiting(expected_runtime=60, gpu=8, preemptible=False), annotations=bad)
    assert skips(play(one_node(not_running))) == {"new": "not_running"}
    fixed = replace(overdue(preemptible=False), annotations=bad)
    assert skips(play(one_node(fixed))) == {"old": "not_preemptible"}
    invalid = replace(overdue(), annotations=bad, started_at=None)
    assert skips(play(one_node(invalid))) == {"old": "invalid_duration"}
    missing = replace(overdue(), started_at=None, requeue_not_before=NOW + 1)
    assert skips(play(one_node(missing))) == {"old": "missing_start"}
    skewed = replace(overdue(), started_at=NOW + 5, requeue_not_before=NOW + 1)
    assert skips(play(one_node(skewed))) == {"old": "clock_skew"}
    cooling = replace(overdue(), requeue_not_before=NOW + 1)
    assert skips(play(one_node(cooling, reclaim_min_runtime=10800 * SECOND))) == {"old": "cooldown"}
    early = replace(overdue(ran=10), requeue_not_before=NOW + 1)
    assert skips(play(one_node(early))) == {}


def test_backfill_and_estimates_use_the_annotated_runtime():
    """What an annotation says counts wherever an expected end does; a bad one means that nobody knows."""
    said = replace(overdue(ran=60, expected=None), annotations={"tenure.dev/expected-runtime": "1h"})
    assert play(one_node(said, waiting())).pending[0].estimated_start == NOW - 60 * SECOND + 3600 * SECOND
    bad = replace(overdue(ran=60, expected=3600), annotations={"tenure.dev/expected-runtime": "soon"})
    assert play(one_node(bad, waiting())).pending[0].estimated_start is None
