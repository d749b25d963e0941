"""How much each queue should give up, and which set is the best of all, in the whole order."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import combinations

from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, cluster, node, queue, spec, workload
from tests.quota.oracle import over
from tests.quota.strategies import MINUTE, clusters
from tests.quota.test_best_set import fire_at_once

from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.settings import QuotaPreemptionSettings
from tenure.quota.choose import choose
from tenure.quota.problem import QuotaSelection
from tenure.quota.rounds import QuotaRound

ON = QuotaPreemptionSettings(enabled=True)
GPU = "nvidia.com/gpu"


def chosen(made, name, solve=None):
    """Give what is chosen of one queue, and the round that chose it, without carrying it out."""
    this = QuotaRound(Scheduler(session_of(made)).context.evicting(), None, lambda _: ())
    number = this.queues.index[name]
    never = made.settings.quota_preemption.overshoot == "never"
    choice = choose(this.choices.candidates, number, this._need(number), this.choices.shares, never=never, solve=solve)
    return choice, this


def flat(uses, most, guaranteed=None, weights=None):
    """One queue over its max, with leaves below it that use GPUs, one task for each."""
    work = [
        workload(f"{name}{i}", of=spec(gpu=1), on=["n"], queue=name, running=600)
        for name, count in uses.items()
        for i in range(count)
    ]
    tree = [queue("top", max={"gpu": most}, quota_preemption_delay=MINUTE)]
    for name in uses:
        floor = {"gpu": guaranteed[name]} if guaranteed and guaranteed.get(name) else {}
        tree.append(queue(name, "top", guaranteed=floor, weight=(weights or {}).get(name, 1.0)))
    return cluster([node("n", cpu=500, gpu=64)], work, tree, quota_preemption=ON, actions=("quota",))


def amounts(made):
    """GPUs that each child of the queue at the top should give up."""
    choice, this = chosen(made, "top")
    row = this.queues.resources.index(GPU)
    return {
        this.queues.queues[q].name: found[row] // 1000
        for q, found in choice.problem.target.items()
        if this.queues.queues[q].name != "top"
    }


def test_those_above_their_share_give_up_in_proportion_to_how_far_they_are_above_it():
    """Of 4, 10 and 16 under a max of 18 everybody is due 6: 4 and 10 are above it, and 12 has to go."""
    assert amounts(flat({"a": 4, "b": 10, "c": 16}, 18)) == {"a": 0, "b": 3, "c": 9}


def test_weights_move_the_line():
    """Of 8 and 8 under a max of 12, weights 2 to 1, the second is due 4."""
    assert amounts(flat({"a": 8, "b": 8}, 12, weights={"a": 2.0})) == {"a": 0, "b": 4}


def test_whole_units_go_by_the_largest_remainder():
    """All are due 5, the third is waiting for them: 3 go over two that are 4 and 3 above, which is 1.71 and 1.29."""
    made = flat({"a": 9, "b": 8, "c": 1}, 15)
    waiting = workload("more", tasks=9, of=spec(gpu=1), queue="c", min_member=1)
    assert amounts(replace(made, workloads=(*made.workloads, waiting))) == {"a": 2, "b": 1, "c": 0}


@settings(max_examples=80)
@given(
    st.dictionaries(st.sampled_from("abcde"), st.integers(0, 12), min_size=1, max_size=5),
    st.data(),
)
def test_amounts_against_a_plain_reading_of_the_rule(uses, data):
    """What is above the share goes first, in proportion; then what is above guaranteed; never below it."""
    total = sum(uses.values())
    assume(total > 0)
    floor = {name: data.draw(st.integers(0, count)) for name, count in uses.items()}
    most = data.draw(st.integers(sum(floor.values()), total))
    made = flat(uses, most, floor)
    need = total - most
    assume(need)
    choice, this = chosen(made, "top")
    row = this.queues.resources.index(GPU)
    share = {name: Fraction(this.choices.shares[this.queues.index[name]][row], 1000) for name in uses}
    got = {name: choice.problem.target[this.queues.index[name]].get(row, 0) // 1000 for name in uses}
    above_share = {name: max(0, uses[name] - max(share[name], floor[name])) for name in uses}
    above_floor = {name: uses[name] - floor[name] for name in uses}
    assert sum(got.values()) == min(need, sum(above_floor.values()))
    assert all(0 <= got[name] <= above_floor[name] for name in uses)
    if need <= sum(above_share.values()):
        for name in uses:
            exact = Fraction(above_share[name] * need) / sum(above_share.values())
            assert abs(got[name] - exact) < 1, (name, got, exact)
    else:
        assert all(got[name] > above_share[name] - 1 for name in uses)


@settings(max_examples=80)
@given(clusters(levels=4, most=7, work=6), st.data())
def test_no_other_set_is_better_in_any_of_what_sets_are_compared_by(solve, made, data):
    """Every set that the rules allow is compared in the whole order: distance from the amounts, cost and age too."""
    names = [q.name for q in made.queues if over(made, q.name)]
    assume(names)
    made = fire_at_once(made, data.draw(st.sampled_from(names)))
    made = replace(made, now=NOW)
    name = next(q.name for q in made.queues if q.status is not None)
    choice, _ = chosen(made, name, solve)
    problem = choice.problem
    pieces = choice.pool.pieces
    assume(len(pieces) <= 9)
    best = problem.key(choice.pieces)
    for size in range(len(pieces) + 1):
        for some in combinations(pieces, size):
            selection = QuotaSelection(problem)
            if all(selection.try_add(t) for t in some) and len(selection.pieces) == len(some):
                assert best <= problem.key(some), [t.workload.key for t in some]
