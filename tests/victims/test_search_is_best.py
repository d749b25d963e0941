"""On small states the chosen set is the best of all sets that obey the rules, found here by trying every one."""

from __future__ import annotations

import random
from dataclasses import replace
from itertools import combinations, islice, permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.helpers import GPU, changed, cluster, play, queue, runs, steps, waits
from tests.effort import tries
from tests.properties.contention import contended, in_groups

from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.workload import SubGroup
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.passes.preemption_pass import FIRST_TURN
from tenure.victims.rules.causes import ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.set_order import consistent, key_of, lowest_of, usage
from tenure.victims.search.trials import SearchBudget
from tenure.victims.search.victim_search import VictimSearch

MOST_PIECES = 9
RULES = {
    "reclaim": ReclaimEligibility,
    "preempt": lambda s, _, c: PreemptRules(s, c),
    "consolidate": lambda s, _, c: ConsolidateRules(s, c),
}
seeds = st.integers(0, 1 << 32)


def best_of_all(session, dry_runs, rules, pieces):
    """Every allowed set that no other beats inside one queue; the first of them in the order of sets."""
    valid = [
        subset
        for size in range(1, len(pieces) + 1)
        for subset in map(list, combinations(pieces, size))
        if consistent(subset) and isinstance(dry_runs.play(rules, subset), AcceptedSet)
    ]
    lowest = lowest_of(pieces)
    kept = [s for s in valid if not any(beaten(s, other, dry_runs.weights, lowest) for other in valid)]
    return min((key_of(session.settings, s) for s in kept), default=None)


def beaten(one, other, weights, lowest):
    """Whether ``other`` differs from ``one`` inside one queue only and uses lower priorities there."""
    differ = {p.workload.leaf for p in set(one) ^ set(other)}
    if len(differ) != 1:
        return False
    (leaf,) = differ
    return usage(other, leaf, weights, lowest[leaf]) < usage(one, leaf, weights, lowest[leaf])


def drawn(seed, order="cost"):
    """A small cluster, half of them with subgroups."""
    state = contended(seed)
    state = in_groups(state, seed) if seed % 2 else state
    return replace(state, settings=replace(state.settings, victims=order))


@given(
    seeds, st.sampled_from(["reclaim", "preempt", "consolidate"]), st.sampled_from(["cost", "youngest", "oldest"]),
    st.sampled_from([FIRST_TURN, 1 << 20]),
)  # fmt: skip
@settings(max_examples=tries(75, 750))
def test_the_chosen_set_is_the_best_of_all_allowed_sets(seed, cause, order, turn):
    """In its first turn as well, where a set is found greedily before all others are looked at."""
    session = session_of(drawn(seed, order))
    shares = Fairness(session).now()
    plugins = EvictionPlugins([])
    dry_runs = DryRuns(session, Placer(session), shares, plugins)
    gatherer = CandidateGatherer(session, plugins, PreemptibleUsage(session))
    for contender in session.waiting.all():
        rules = RULES[cause](session, shares, contender)
        candidates = gatherer.gather(rules)
        pieces = list(candidates.all())
        if rules.contender_may() is not None or not 0 < len(pieces) <= MOST_PIECES:
            continue
        search = VictimSearch(dry_runs, rules, candidates)
        budget = SearchBudget(turn)
        found = search.run(budget)
        if budget.hit:
            continue
        best = best_of_all(session, dry_runs, rules, pieces)
        chosen = None if found.pieces is None else key_of(session.settings, found.pieces)
        assert chosen == best or (found.cut and chosen is None)


def test_what_was_found_first_gives_way_to_lower_priorities_of_its_queue():
    """Seven pieces have more subsets than the first turn has steps, so that the cheap ``large`` is found before all."""
    small = [runs(f"{node}-{i}", "a", [node], minutes=60 + i) for node in ("n1", "n2") for i in range(3)]
    fixed = [runs(f"fixed-{node}", "a", [node], priority=150) for node in ("n1", "n2")]
    running = [runs("large", "a", ["n0"], gpus=4, minutes=1, priority=10), *small, *fixed]
    found = play(cluster([queue("a")], [*running, waits("j", "a", gpus=2, priority=50)], nodes=3))
    assert steps(found) == [("n1-0", "n1-0-0"), ("n1-1", "n1-1-0")]


@given(seeds)
@settings(max_examples=tries(50, 500))
def test_what_the_rules_allow_does_not_depend_on_the_order_of_the_pieces(seed):
    """Nor, therefore, on what they cost, which changes while a victim is under notice."""
    rng, session = random.Random(seed), session_of(drawn(seed))
    shares = Fairness(session).now()
    plugins = EvictionPlugins([])
    dry_runs = DryRuns(session, Placer(session), shares, plugins)
    gatherer = CandidateGatherer(session, plugins, PreemptibleUsage(session))
    for contender in session.waiting.all():
        rules = ReclaimEligibility(session, shares, contender)
        pieces = [p for p in gatherer.gather(rules).all() if p.whole]
        for size in range(2, len(pieces) + 1):
            some = rng.sample(pieces, size)
            verdicts = {allowed(dry_runs.play(rules, order)) for order in islice(permutations(some), 24)}
            assert len(verdicts) == 1


def allowed(verdict):
    """Whether the rules allow a set."""
    return isinstance(verdict, AcceptedSet) or verdict.shield not in ("guaranteed", "fair-share")


def choosing(asked):
    """One node that a victim fills; the first subgroup that waits would need two, the second fits there."""
    waiting = waits("contender", "a", gpus=2, tasks=3, priority=9, minutes=1)
    members = tuple(
        replace(t, sub_group="gh"[n == 2], spec=replace(t.spec, requests=((GPU, asked if n == 2 else 2),)))
        for n, t in enumerate(waiting.tasks)
    )
    groups = (SubGroup(name="g"), SubGroup(name="h"))
    waiting = replace(waiting, tasks=members, sub_groups=groups, min_sub_group=1)
    return cluster([queue("a")], [runs("victim", "a", ["n0"], gpus=2), waiting], gpus=2)


def test_a_trial_in_which_other_subgroups_start_leaves_the_next_step_as_it_was():
    session = session_of(choosing(2))
    shares, contender = Fairness(session).now(), session.workloads["default/contender"]
    dry_runs = DryRuns(session, Placer(session), shares, EvictionPlugins([]))
    rules = PreemptRules(session, contender)
    before = state_of(session)
    (piece,) = CandidateGatherer(session, dry_runs.plugins, PreemptibleUsage(session)).gather(rules).all()
    assert isinstance(dry_runs.play(rules, [piece]), AcceptedSet)
    assert [t.name for t in contender.step.tasks] == ["contender-0", "contender-1"]
    assert state_of(session) == before


@pytest.mark.parametrize("asked", [1, 2])
def test_whom_other_subgroups_may_start_instead_is_looked_for_too(asked):
    found = play(choosing(asked))
    assert steps(found) == [("victim", "victim-0")]
    assert steps(found, "nominate") == [("contender", "contender-2")]


def test_nothing_is_taken_for_subgroups_that_ask_for_more_than_the_rules_were_asked_about():
    """The first subgroup is within the guarantee and fits nowhere; the second would fit, and is beyond it."""
    work = [runs("victim", "b", ["n0"], gpus=4), runs("rest", "b", ["n1"], gpus=2)]
    waiting = waits("contender", "a", gpus=1)
    tasks = (replace(waiting.tasks[0], sub_group="g"), replace(waiting.tasks[0], name="other", sub_group="h"))
    selected = replace(tasks[0].spec, node_selector=(("no", "such"),))
    tasks = (replace(tasks[0], spec=selected), replace(tasks[1], spec=replace(tasks[1].spec, requests=((GPU, 4),))))
    waiting = replace(waiting, tasks=tasks, sub_groups=(SubGroup(name="g"), SubGroup(name="h")), min_sub_group=1)
    state = cluster([queue("a", guaranteed=1), queue("b")], [*work, waiting], nodes=2)
    assert steps(play(state)) == []
    assert steps(play(changed(state, "a", guaranteed={GPU: 4000}))) == []


@given(st.integers(0, 1 << 32))
@settings(max_examples=60, deadline=None)
def test_a_trial_leaves_the_session_as_it_was(seed):
    """After a rollback rooms, devices, queues and every task are what they were, to the bit."""
    session = session_of(drawn(seed))
    shares = Fairness(session).now()
    plugins = EvictionPlugins([])
    dry_runs = DryRuns(session, Placer(session), shares, plugins)
    gatherer = CandidateGatherer(session, plugins, PreemptibleUsage(session))
    before = state_of(session)
    for contender in session.waiting.all():
        rules = ReclaimEligibility(session, shares, contender)
        for piece in gatherer.gather(rules).all():
            dry_runs.play(rules, [piece])
            assert state_of(session) == before


def state_of(session):
    """Everything a transaction may change."""
    tasks = {
        (w.key, t.index): tuple(getattr(t, name) for name in t.saved)
        for w in session.workloads.values()
        for t in w.tasks
    }
    workloads = {
        w.key: (w.started_at, w.last_evicted_at, w.step, w.step and w.step.tasks, w.entry)
        for w in session.workloads.values()
    }
    queues = (list(session.queues.allocated), list(session.queues.pending), list(session.queues.fixed))
    occupied = [frozenset((t.workload.key, t.index) for t in here) for here in session.on_node]
    rooms = (session.nodes.room.tobytes(), session.nodes.device.tobytes(), session.nodes.waiting)
    return tasks, workloads, queues, occupied, rooms
