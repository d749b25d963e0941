"""How long workloads go on that do not say so, by hand and against a count over all runs."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, spec, workload

from tenure.cycle import Scheduler
from tenure.engine import run_times
from tenure.engine.kept_session import KeptSession
from tenure.engine.run_times import MOST_RUNS, RunTimes
from tenure.engine.serving.estimate import estimated_starts
from tenure.engine.serving.survival import likely_end, likely_runtime
from tenure.engine.snapshot import session_of
from tenure.explanation.explain import explain_workload
from tenure.fairness.current import Fairness
from tenure.model.checks.disruption import check_disruption
from tenure.model.cluster import FinishedRuns
from tenure.model.file.dump import cluster_to_plain
from tenure.model.file.load import cluster_of
from tenure.model.settings import PatienceRule, RecordingSettings, SurvivalSettings, WorthSettings
from tenure.playthrough import play


def world(*workloads, ran=(10, 20, 30, 40, 50), least=2, enabled=True, **fields):
    """One node of 4 cores, and runs of the queue that have finished (s)."""
    rule = {"reclaim": PatienceRule(trust=0.5)}
    worth = WorthSettings(patience=rule, survival=SurvivalSettings(enabled=enabled, least=least))
    given = cluster([node("n", cpu=4)], workloads, worth=worth, **fields)
    runs = FinishedRuns(queue="default", ran=tuple(r * SECOND for r in ran))
    return replace(given, finished_runs=(runs,))


def running(name="r", ran=0, **fields):
    return workload(name, of=spec(cpu=4), on=["n"], running=ran, age=ran, **fields)


@pytest.mark.parametrize(
    ("ran", "expected", "ends_after"),
    [
        (0, None, 30),  # 10 20 30 40 50
        (10, None, 30),  # 20 30 40 50: the lower one of the two in the middle
        (25, None, 40),  # 30 40 50
        (30, None, 40),  # 40 50
        (39, None, 40),
        (40, None, None),  # only one was longer
        (25, 100, 100),  # it says so itself
        (25, 20, 40),  # it said so, and is overdue
        (45, 20, 20),  # it is overdue, and nobody knows more
    ],
)
def test_it_ends_as_half_of_those_that_ran_for_longer(ran, expected, ends_after):
    session = session_of(world(running(ran=ran, expected_runtime=expected)))
    end = likely_end(session, session.workloads["default/r"])
    assert end == (None if ends_after is None else NOW + (ends_after - ran) * SECOND)


def test_nothing_is_estimated_unless_that_is_switched_on():
    session = session_of(world(running(), enabled=False))
    assert likely_end(session, session.workloads["default/r"]) is None
    assert likely_runtime(session, session.workloads["default/r"]) is None


def test_no_more_than_the_last_runs_are_kept_and_each_is_counted_once():
    """Against a count over the last runs."""
    rng = random.Random(7)
    runs, all_of_them = RunTimes(), []
    for _ in range(3 * MOST_RUNS):
        one = rng.randint(1, 50)
        runs.finish("q", None, one)
        all_of_them.append(one)
        last, beyond, least = all_of_them[-MOST_RUNS:], rng.randint(0, 50), rng.randint(1, 30)
        longer = sorted(r for r in last if r > beyond)
        found = runs.beyond("q", beyond, least)
        if len(longer) < least:
            assert found is None
        else:
            assert found == (longer[(len(longer) - 1) // 2], len(longer), len(last), None)
    assert runs.plain() == (FinishedRuns(queue="q", ran=tuple(all_of_them[-MOST_RUNS:])),)
    assert runs.beyond("other", 0, 1) is None


def by_user(*workloads, **fields):
    """The same, where the label `who` names users, and Ada's runs in the queue are known (s)."""
    given = world(*workloads, history=RecordingSettings(user_label="who"), **fields)
    own = FinishedRuns(queue="default", user="ada", ran=tuple(r * SECOND for r in (100, 200, 300)))
    return replace(given, finished_runs=(*given.finished_runs, own))


@pytest.mark.parametrize(
    ("user", "ran", "ends_after"),
    [
        ("ada", 0, 200),  # 100 200 300
        ("ada", 100, 200),  # 200 300
        ("ada", 25, 200),
        ("ben", 25, 40),  # of him nothing is known: 30 40 50 of the queue
        (None, 25, 40),
        ("ada", 200, None),  # only one of hers was longer, and none of the queue
    ],
)
def test_the_runs_of_its_user_come_first_where_there_are_enough(user, ran, ends_after):
    own = replace(running(ran=ran), labels={} if user is None else {"who": user})
    session = session_of(by_user(own))
    state = session.workloads["default/r"]
    assert likely_end(session, state) == (None if ends_after is None else NOW + (ends_after - ran) * SECOND)
    nameless = session_of(replace(by_user(own), settings=world().settings))
    assert likely_end(nameless, nameless.workloads["default/r"]) == likely_end(session_of(world(own)), state)


def test_too_few_of_its_user_leave_it_to_the_queue():
    own = replace(running(ran=0), labels={"who": "ada"})
    session = session_of(by_user(own, least=4))
    assert likely_end(session, session.workloads["default/r"]) == NOW + 30 * SECOND


def test_runs_are_kept_of_the_users_who_finished_last(monkeypatch):
    """One that is named again is the last one anew; runs count for the queue whoever had them."""
    monkeypatch.setattr(run_times, "MOST_USERS", 2)
    runs = RunTimes()
    for ran, user in enumerate(("ada", "ben", "ada", "cyd"), start=1):
        runs.finish("q", user, ran)
    runs.finish("other", None, 9)
    known = {(entry.queue, entry.user): entry.ran for entry in runs.plain()}
    assert known == {("other", None): (9,), ("q", None): (1, 2, 3, 4), ("q", "ada"): (1, 3), ("q", "cyd"): (4,)}
    assert RunTimes(runs.plain()).plain() == runs.plain()


def test_starts_are_estimated_by_it_only_where_that_is_asked_for():
    """What `plan` prints as ``estimatedStart`` counts on what workloads say alone."""
    waits = [workload(name, of=spec(cpu=4), age=age) for name, age in (("a", 20), ("b", 10))]
    session = session_of(world(running(ran=25), *waits))
    assert estimated_starts(session, Fairness(session)) == {}
    likely = estimated_starts(session, Fairness(session), likely=True)
    assert likely == {"default/a": NOW + 15 * SECOND, "default/b": NOW + (15 + 30) * SECOND}


def test_explain_says_when_a_workload_is_taken_to_end_and_why():
    played = play(world(running(ran=25), actions=("allocate",)))
    story = explain_workload(played, played.before.workloads[0])
    reason = next(r for r in story.reasons if r.code == "LikelyToEnd")
    assert "of the last 5 finished runs of queue default, 3 were longer than its own so far" in reason.message
    assert "no longer than 40 s" in reason.message
    silent = play(world(running(ran=25, expected_runtime=100), actions=("allocate",)))
    assert not [r for r in explain_workload(silent, silent.before.workloads[0]).reasons if r.code == "LikelyToEnd"]
    hers = play(by_user(replace(running(ran=25), labels={"who": "ada"}), actions=("allocate",)))
    story = explain_workload(hers, hers.before.workloads[0])
    assert any("of the last 3 finished runs of ada in queue default, 3 were longer" in r.message for r in story.reasons)


def test_a_cluster_file_has_the_runs():
    given = world(running())
    plain = cluster_to_plain(given)
    assert plain["finishedRuns"] == [{"queue": "default", "ran": ["10s", "20s", "30s", "40s", "50s"]}]
    assert cluster_of(plain, "file").finished_runs == given.finished_runs


@pytest.mark.parametrize(("trust", "told"), [(0.0, True), (0.5, False)])
def test_a_warning_says_where_it_has_no_effect(trust, told):
    """Estimates are for rules of patience that trust them."""
    given = world(running())
    worth = replace(given.settings.worth, patience={"reclaim": PatienceRule(trust=trust)})
    found = check_disruption(replace(given, settings=replace(given.settings, worth=worth)))
    assert any("no rule of patience trusts" in f.message and f.is_warning for f in found) is told


def test_a_kept_session_has_the_runs_of_the_cluster_as_it_is():
    """Also where nothing else of the cluster has changed."""
    given, kept = world(running()), KeptSession()
    first = kept.take(given)
    kept.keep(given, first, Scheduler(first).cycle(given.now))
    later = replace(given, now=NOW + SECOND, finished_runs=(FinishedRuns(queue="default", ran=(SECOND,)),))
    session = kept.take(later)
    assert session is first
    assert session.run_times.plain() == later.finished_runs
