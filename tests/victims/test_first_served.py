"""Of a set that is refused without a play-through, the play-through says the same: others have the room before."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.actions.helpers import GPU, cluster, queue, runs, waits
from tests.builders import cluster as built
from tests.builders import node, spec, task, workload
from tests.effort import tries
from tests.properties.contention import contended, in_groups

from tenure.engine.refusal import Refusal
from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.node import Node
from tenure.model.workload import TaskSpec
from tenure.playthrough import play
from tenure.shields.plugins import EvictionPlugins
from tenure.simulator.generate import GeneratorConfig, cluster_for, generate
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.victims.candidates.gatherer import CandidateGatherer
from tenure.victims.candidates.preemptible_usage import PreemptibleUsage
from tenure.victims.dry_run.dry_runs import DryRuns, SetPlay
from tenure.victims.dry_run.first_served import FirstServed
from tenure.victims.dry_run.outcome import NO_ROOM
from tenure.victims.rules.causes import PreemptRules, ReclaimEligibility
from tenure.victims.rules.pieces import pieces_of
from tenure.victims.rules.set_order import consistent

RULES = {"reclaim": ReclaimEligibility, "preempt": lambda s, _, c: PreemptRules(s, c)}
SEEDS = st.integers(0, 1 << 32)
MOST_PIECES = 7


def held_against_the_play(patch):
    """Play through whatever would be refused without it; gives the size of each such set, and who is served first."""
    seen, said = [], []
    instead, plays = FirstServed.instead, SetPlay.run

    def ask(self, contender, pieces, before):
        said[-1] = instead(self, contender, pieces, before)

    def both(play, start):
        said.append(None)
        found = plays(play, start)
        first = said.pop()
        if first is not None:
            kind = {piece.workload: "placed now" if piece.fresh else "ran" for piece in play.pieces}.get(first, "other")
            seen.append((len(play.pieces), kind))
            assert isinstance(found, Refusal)
            assert found.shield == NO_ROOM or kind == "ran"
            assert found.shield != NO_ROOM or kind == "other" or play.runs.back[:1] == [first]
            again = any(task.leaving >= 0 for task in first.tasks)  # where it stood when this plan evicted it
            assert kind != "other" or again or first.root.satisfied()
        return found

    patch.setattr(FirstServed, "instead", ask)
    patch.setattr(SetPlay, "run", both)
    return seen


def play_all(state, cause):
    """Play every set of up to three of a few pieces through, for everybody who waits."""
    session = session_of(state)
    shares, plugins = Fairness(session).now(), EvictionPlugins([])
    dry_runs = DryRuns(session, Placer(session), shares, plugins)
    gatherer = CandidateGatherer(session, plugins, PreemptibleUsage(session))
    for contender in session.waiting.all():
        rules = RULES[cause](session, shares, contender)
        pieces = list(gatherer.gather(rules).all())[:MOST_PIECES]
        if rules.contender_may() is None:
            for subset in filter(consistent, chain.from_iterable(combinations(pieces, size) for size in (1, 2, 3))):
                dry_runs.play(rules, subset, brief=True)


def drawn(seed):
    """A small cluster with gangs, elastic workloads, parts of GPUs and, in some, subgroups or reservations."""
    state = contended(seed)
    state = in_groups(state, seed) if seed % 4 == 1 else state
    return replace(state, settings=replace(state.settings, backfill="easy" if seed % 3 == 0 else "none"))


def simulated(seed, backfill, jobs=60):
    """Gangs and parts of GPUs that more than fill a small cluster, with all default actions."""
    config = GeneratorConfig(jobs=jobs, load=1.2, capacity=32, unit="gpu", node_size=8)
    state = cluster_for(config)
    settings_ = replace(state.settings, backfill=backfill)
    return Simulation(SimulationSetup(replace(state, settings=settings_)), generate(config, seed))


@given(SEEDS, st.sampled_from(sorted(RULES)))
def test_a_set_that_is_not_played_through_would_be_refused(seed, cause):
    with pytest.MonkeyPatch.context() as patch:
        held_against_the_play(patch)
        play_all(drawn(seed), cause)


@given(st.integers(0, 10_000), st.sampled_from(["none", "easy", "strict-order"]))
@settings(max_examples=tries(5, 100))
def test_nor_would_it_pay_anywhere_in_a_simulation(seed, backfill):
    with pytest.MonkeyPatch.context() as patch:
        held_against_the_play(patch)
        simulated(seed, backfill).run()


def test_the_property_above_sees_many_sets():
    with pytest.MonkeyPatch.context() as patch:
        seen = held_against_the_play(patch)
        simulated(4, "none").run()
    assert len(seen) >= 100
    assert {1, 2, 3} <= {size for size, _ in seen}
    assert {kind for _, kind in seen} == {"ran", "placed now", "other"}


def between(*more):
    """Two queues of which the victim's is served first; the contender could start where the victim runs."""
    running = [runs("victim", "a", ["n0"], gpus=4), runs("other", "b", ["n1"], gpus=4)]
    return cluster([queue("a"), queue("b")], [*running, waits("contender", "b", gpus=4, minutes=1), *more], nodes=2)


def served_instead(state):
    """Who is said to be served first and to leave the contender no place."""
    session = session_of(state)
    contender, victim = (session.workloads[f"default/{name}"] for name in ("contender", "victim"))
    (piece,) = pieces_of(session, victim, frozenset(), core=True)
    first = FirstServed(session, Fairness(session).now())
    first.begin(session.epoch)
    with session.scenario():
        session.queues.release(victim.leaf, piece.amount, fixed=False)
        found = first.instead(contender, [piece], None)
    return None if found is None else found.model.name


def said(state):
    """Whether it is said that the victim would have its place again."""
    return served_instead(state) == "victim"


def test_a_victim_whose_queue_is_served_first_has_its_place_again():
    assert said(between())


def test_who_finds_no_room_is_passed():
    assert said(between(waits("large", "a", gpus=5, priority=9)))


@pytest.mark.parametrize("backfill", ["none", "easy"])
def test_another_that_is_served_first_takes_all_that_the_contender_needs(backfill):
    state = between(waits("first", "a", gpus=4, priority=9))
    assert served_instead(replace(state, settings=replace(state.settings, backfill=backfill))) == "first"


def test_nothing_is_said_where_another_leaves_enough():
    assert served_instead(between(waits("first", "a", gpus=1, priority=9))) is None


def test_nothing_is_said_of_another_that_may_go_where_the_contender_may_not():
    """It need not take the room that the contender could have."""
    state = between(waits("first", "a", gpus=4, priority=9))
    (own,) = (w for w in state.workloads if w.name == "contender")
    kept = replace(own.tasks[0].spec, node_selector=(("zone", "near"),))
    own = replace(own, tasks=(replace(own.tasks[0], spec=kept),))
    near = [replace(node, labels={"zone": "near"}) for node in state.nodes]
    state = replace(state, workloads=(*(w for w in state.workloads if w.name != own.name), own), nodes=tuple(near))
    assert served_instead(state) == "first"
    far = Node(name="n2", allocatable=near[0].allocatable, labels={"zone": "far"})
    assert served_instead(replace(state, nodes=(*near, far))) is None


def test_nothing_is_said_of_another_whose_tasks_differ():
    """What each of them leaves is not known of all together."""
    first = waits("first", "a", gpus=2, tasks=2, priority=9)
    small = replace(first.tasks[1], spec=TaskSpec(requests=((GPU, 1),)))
    assert served_instead(between(replace(first, tasks=(first.tasks[0], small)))) is None


def test_nobody_is_passed_where_the_first_that_finds_no_room_is_promised_a_time():
    easy = between(waits("large", "a", gpus=5, priority=9))
    assert served_instead(replace(easy, settings=replace(easy.settings, backfill="easy"))) is None


def test_nothing_is_said_of_a_place_to_which_nothing_may_go():
    """It runs on, but nothing is bound to a node that is closed."""
    state = between()
    assert not said(replace(state, nodes=(replace(state.nodes[0], unschedulable=True), *state.nodes[1:])))


def test_who_needs_a_whole_gpu_is_not_served_where_only_halves_of_two_are_left():
    """By a sum, a half that goes and a free half of another GPU are a whole one; the contender's two tasks fit."""
    half = spec(cpu=0, fraction=500)
    running = [
        workload("victim", tasks=[task("victim-0", half, on="n", devices=(0,))], running=60, priority=0),
        workload("beside", tasks=[task("beside-0", half, on="n", devices=(0,))], running=60, preemptible=False),
        workload("other", tasks=[task("other-0", half, on="n", devices=(1,))], running=60, preemptible=False),
    ]
    waiting = [
        workload("first", of=spec(cpu=0, gpu=1), priority=99, age=10),
        workload("contender", tasks=2, of=half, priority=50),
    ]
    state = built([node("n", gpu=2)], [*running, *waiting], actions=("allocate", "preempt"))
    assert served_instead(state) is None
    assert [(s.action, s.workload) for s in play(state).steps if s.action == "evict"] == [("evict", "default/victim")]
