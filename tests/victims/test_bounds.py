"""The necessary bounds: what they call hopeless is, and what they leave out is in no set that pays."""

from __future__ import annotations

from itertools import combinations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.builders import cluster, node, queue, spec, workload
from tests.effort import tries
from tests.properties.contention import contended, with_terms

from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.playthrough import play
from tenure.shields.plugins import EvictionPlugins
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace
from tenure.victims.bounds.reclaim_limits import ReclaimLimits
from tenure.victims.bounds.victim_bounds import VictimBounds
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.rules.causes import ConsolidateRules, PreemptRules, ReclaimEligibility
from tenure.victims.rules.set_order import consistent
from tenure.victims.search.search_scope import ReclaimScope

MOST_PIECES = 7
seeds = st.integers(0, 1 << 32)
causes = st.sampled_from(["reclaim", "preempt", "consolidate"])


def paying_sets(dry_runs, rules, pieces):
    """Every set that passes its play-through, found by trying all."""
    for size in range(1, len(pieces) + 1):
        for subset in map(list, combinations(pieces, size)):
            if consistent(subset) and isinstance(dry_runs.play(rules, subset), AcceptedSet):
                yield subset


def contenders(cluster, cause, session=None, most=MOST_PIECES):
    """All that wait, each with its rules, its candidates, and the bounds."""
    session = session_of(cluster) if session is None else session
    shares = Fairness(session).now()
    plugins = EvictionPlugins([])
    dry_runs, holdings = DryRuns(session, Placer(session), shares, plugins), PreemptibleUsage(session)
    gatherer = CandidateGatherer(session, plugins, holdings)
    bounds = VictimBounds(session, shares, ReclaimLimits(session.queues, holdings), cause)
    for contender in session.waiting.all():
        rules = {
            "reclaim": lambda c: ReclaimEligibility(session, shares, c),
            "preempt": lambda c: PreemptRules(session, c),
        }.get(cause, lambda c: ConsolidateRules(session, c))(contender)
        pieces = list(gatherer.gather(rules).all())
        if rules.contender_may() is None and len(pieces) <= most:
            yield dry_runs, contender, rules, pieces, bounds


@given(seeds, causes)
@settings(max_examples=60, deadline=None)
def test_nothing_helps_one_who_is_called_hopeless(seed, cause):
    for dry_runs, contender, rules, pieces, bounds in contenders(contended(seed), cause):
        if bounds.infeasible(contender, contender.step):
            assert next(paying_sets(dry_runs, rules, pieces), None) is None


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_set_that_pays_has_only_pieces_that_the_bounds_leave(seed):
    for dry_runs, contender, rules, pieces, bounds in contenders(contended(seed), "reclaim"):
        allowed = ReclaimScope(bounds.open_to(contender)).allows
        for subset in paying_sets(dry_runs, rules, pieces):
            assert all(map(allowed, subset))


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_a_set_that_pays_is_never_called_too_much(seed):
    for dry_runs, contender, rules, pieces, bounds in contenders(contended(seed), "reclaim"):
        too_much = bounds.open_to(contender).too_much(pieces)
        for subset in paying_sets(dry_runs, rules, pieces):
            assert not too_much(subset)


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_what_is_too_much_stays_so_with_more(seed):
    for _, contender, _, pieces, bounds in contenders(contended(seed), "reclaim"):
        too_much, groups = bounds.open_to(contender).too_much(pieces), bounds.open_to(contender)
        inside = [p for p in pieces if groups.of(p.workload.leaf) is not None]
        verdicts = [too_much(inside[:count]) for count in range(1, len(inside) + 1)]
        assert verdicts == sorted(verdicts)


def test_the_bounds_are_no_formality():
    """So that the properties above speak of something: some contenders are hopeless, and some are not."""
    told = [
        bounds.infeasible(contender, contender.step)
        for seed in range(200)
        for _, contender, _, pieces, bounds in contenders(contended(seed), "reclaim")
        if pieces
    ]
    assert 5 <= sum(told) <= len(told) - 5


def test_no_move_helps_one_whom_a_maximum_keeps_out_though_there_is_room_on_the_nodes():
    """Moves change nothing of what its queue holds, and to search for some took most of a small cluster's plan."""
    state = cluster(
        [node("a", gpu=4), node("b", gpu=4)],
        [
            workload("runs", of=spec(gpu=2), on="a", queue="small", running=60),
            workload("other", of=spec(gpu=2), on="b", queue="large", running=60),
            workload("waits", of=spec(gpu=2), queue="small"),
        ],
        [queue("small", max={"gpu": 3}), queue("large")],
    )
    for _, contender, _, _, bounds in contenders(state, "consolidate"):
        assert contender.key.endswith("waits")
        assert bounds.infeasible(contender, contender.step)


@example(58, "reclaim")  # it is not preemptible, and beyond what is guaranteed
@given(seeds, causes)
@settings(max_examples=tries(60, 600), deadline=None)
def test_a_bound_says_the_same_of_one_that_others_keep_off_whether_it_was_tried_or_not(seed, cause):
    """There may be room for it, so that it is not for want of room that it was not placed."""
    for dry_runs, contender, _, _, bounds in contenders(with_terms(contended(seed), seed), cause):
        step, session = contender.step, dry_runs.session
        told = bounds.infeasible(contender, step)
        with session.scenario():
            fits = dry_runs.placer.place(contender, step)
        if step.shape is not None and not fits:
            step.shape.fail(session.epoch)
            assert bounds.infeasible(contender, step) == told
            step.shape.failed = -1


@given(seeds)
@settings(max_examples=60, deadline=None)
def test_the_plan_is_the_same_with_and_without_the_bounds(seed):
    """A simulation leaves out what is hopeless; a plan that somebody reads looks at everybody, and names some more."""
    cluster = contended(seed)
    simulation = Simulation(SimulationSetup(cluster), Trace(format="tenure", jobs=()))
    plan = simulation.scheduler.cycle(cluster.now)

    def decided(steps):
        return [s._replace(reason=s.reason.partition("; considered")[0]) for s in steps]

    assert decided(plan.steps) == decided(play(cluster).steps)
