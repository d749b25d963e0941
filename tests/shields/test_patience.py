"""Patience, the price of an eviction, and how often there may be one: each number worked out by hand."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from tests.builders import NOW, SECOND, cluster, node, queue, spec, workload

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.engine.state.cost import MICRO
from tenure.fairness import start_estimates
from tenure.model.cluster import FinishedRuns
from tenure.model.settings import (
    MinRuntimeSettings,
    PatienceRule,
    RequeueSettings,
    Settings,
    SurvivalSettings,
    WaitingWeight,
    WorthSettings,
)
from tenure.model.values.duration import format_time
from tenure.model.workload import Checkpoint
from tenure.shields.patience import Patience
from tenure.shields.price import price_of_all
from tenure.simulator.run import Simulation, SimulationSetup
from tenure.simulator.traces.records import Trace
from tenure.victims.search.victim_search import VictimSearch

HOUR = 3600
GPU = spec(cpu=0, gpu=1)


def contended(*victims, waited, guaranteed=1, queue_fields=None, **settings):
    """One GPU for each victim of queue `busy`; `waits` in queue `due` has waited for so long (s)."""
    nodes = [node(f"n{i}", gpu=1) for i in range(len(victims))]
    running = [
        replace(workload(f"v{i}", of=GPU, on=[f"n{i}"], age=ran, running=ran, queue="busy"), **more)
        for i, (ran, more) in enumerate(victims)
    ]
    queues = [queue("busy"), queue("due", guaranteed={"gpu": guaranteed}, **(queue_fields or {}))]
    waits = workload("waits", of=GPU, age=waited, queue="due")
    return replace(cluster(nodes, [*running, waits], queues), settings=Settings(**settings))


def patient(factor=1.0, at_most=2 * HOUR, ahead=0, trust=0.0, surplus=0.25, **worth):
    times = {"at_most": round(at_most * SECOND), "ahead": ahead * SECOND}
    rule = PatienceRule(factor=factor, trust=trust, surplus=surplus, **times)
    return {"worth": WorthSettings(patience={"reclaim": rule}, **worth)}


def evicted(given):
    plan = Scheduler(session_of(given)).cycle(given.now)
    return [s.workload for s in plan.steps if s.action == "evict"], plan


@pytest.mark.parametrize(
    ("ran", "waited", "rule", "goes"),
    [
        (600, 600, {}, True),
        (1200, 600, {}, True),
        (1201, 600, {}, False),
        (1201, 600, {"factor": 2}, True),
        (1801, 600, {"factor": 2}, False),
        (HOUR, 1799, {"at_most": 1800}, False),
        (HOUR, 1800, {"at_most": 1800}, True),
        (600, 0, {"ahead": 600}, True),
        (601, 0, {"ahead": 600}, False),
    ],
)
def test_others_go_once_the_wait_is_worth_what_they_lose(ran, waited, rule, goes):
    """A victim of one GPU that ran for so long, a contender of one GPU that waited for so long.

    What the victim lost while the contender waited does not count.
    """
    assert bool(evicted(contended((ran, {}), waited=waited, **patient(**rule)))[0]) is goes


def test_the_reason_says_when_it_pays():
    """The victim had lost an hour when the contender came: with factor 2 it pays after half an hour."""
    given = contended((HOUR, {}), waited=0, **patient(factor=2))
    _, plan = evicted(given)
    reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
    assert reason.message == (
        "to evict default/v0 for it costs 1 weighted hour, without what is lost while it waits (as far as that is "
        "made up for by its wait), and its waiting is worth 0 weighted hours so far: it pays from "
        f"{format_time(NOW + HOUR // 2 * SECOND)} on"
    )
    assert plan.wake == NOW + HOUR // 2 * SECOND
    later = replace(given, now=plan.wake)
    assert evicted(later)[0] == ["default/v0"]


@pytest.mark.parametrize(
    ("expected", "trust", "pays_after"),
    [
        (None, 0.5, 1800),
        (2 * HOUR, 0.0, 1800),
        (2 * HOUR, 0.5, 900),
        (2 * HOUR, 1.0, 0),
        (HOUR, 0.5, 900),
        (HOUR - 1, 0.5, 3600),
        (HOUR - 1, 0.25, 2400),
        (HOUR - 1, 1.0, 2 * HOUR),
    ],
)
def test_an_estimate_of_its_start_makes_it_bolder_or_more_patient(expected, trust, pays_after):
    """The victim had run for half an hour when the contender came. It would pay after half an hour of waiting.

    Where the victim runs for another half an hour or longer, all of the wait would be worth that, and it pays after a
    part of it; where it ends a second sooner, later; an estimate that is trusted wholly decides alone.
    """
    victim = (1800, {"expected_runtime": None if expected is None else expected * SECOND})
    given = contended(victim, waited=0, **patient(trust=trust))
    found, plan = evicted(given)
    assert bool(found) is (pays_after == 0)
    if pays_after:
        reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
        assert reason.numbers["pays"] == format_time(NOW + pays_after * SECOND)
        told = trust and expected is not None
        assert reason.numbers.get("otherwise") == (format_time(NOW + (expected - 1800) * SECOND) if told else None)
        assert ("it would wait until" in reason.message) is bool(told)
        if pays_after < 1800 or expected is None:  # the victim is there until then
            assert evicted(replace(given, now=NOW + pays_after * SECOND - 1))[0] == []
            assert evicted(replace(given, now=NOW + pays_after * SECOND))[0] == ["default/v0"]


@pytest.mark.parametrize("detailed", [False, True])
@pytest.mark.parametrize(("expected", "again"), [(1801, 1800), (3000, 1800), (3590, 1800)])
def test_where_an_estimate_was_too_short_it_is_looked_at_again_as_soon_as_that_matters(expected, again, detailed):
    """All its wait was to be worth less than half an hour of the victim's; it still waits when its wait is worth that.

    It would pay after an hour by the estimate.
    """
    actions = ("allocate", "reclaim")
    victim = (1800, {"expected_runtime": expected * SECOND})
    given = contended(victim, waited=0, actions=actions, **patient(trust=0.5))
    scheduler = Scheduler(session_of(given))
    scheduler.context.detailed = detailed
    plan = scheduler.cycle(NOW)
    assert (plan.steps, plan.wake) == ([], NOW + again * SECOND)
    assert evicted(replace(given, now=plan.wake - SECOND))[0] == []
    assert evicted(replace(given, now=plan.wake))[0] == ["default/v0"]


@pytest.mark.parametrize(("ran", "pays_after"), [((4000, 4000), 900), ((2000, 2000), 3600), ((4000,), 1800)])
def test_how_long_others_ran_tells_how_long_it_would_wait(ran, pays_after):
    """The victim has run for half an hour and says nothing; two that ran for longer have to be known."""
    survival = SurvivalSettings(enabled=True, least=2)
    given = contended((1800, {}), waited=0, **patient(trust=0.5, survival=survival))
    runs = FinishedRuns(queue="busy", ran=tuple(r * SECOND for r in ran))
    _, plan = evicted(replace(given, finished_runs=(runs,)))
    reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
    assert reason.numbers["pays"] == format_time(NOW + pays_after * SECOND)
    otherwise = format_time(NOW + (ran[0] - 1800) * SECOND) if len(ran) > 1 else None
    assert reason.numbers.get("otherwise") == otherwise


def test_starts_are_estimated_together_and_once_for_all_contenders(monkeypatch):
    """What becomes free is promised to the first of a line: the next waits for the other victim. One estimate does."""
    made = []
    estimate = start_estimates.estimated_starts
    monkeypatch.setattr(
        start_estimates, "estimated_starts", lambda *args, **more: made.append(1) or estimate(*args, **more)
    )
    ends = [(7000, {"expected_runtime": (7000 + after) * SECOND}) for after in (600, 1200)]
    given = contended(*ends, waited=20, guaranteed=2, **patient(trust=0.5))
    behind = workload("behind", of=spec(cpu=1, gpu=1), age=10, queue="due")  # it stands alike in nothing but its queue
    found, plan = evicted(replace(given, workloads=(*given.workloads, behind)))
    told = {k: next(r.numbers["otherwise"] for r in reasons if r.code == "NotWorthYet")
            for k, reasons in plan.obstacles.items()}  # fmt: skip
    assert found == []
    assert told == {
        "default/waits": format_time(NOW + 600 * SECOND),
        "default/behind": format_time(NOW + 1200 * SECOND),
    }
    assert len(made) == 1


def test_who_stands_far_behind_counts_as_unknown(monkeypatch):
    """An estimate is bounded: in how many wait, and in how many ends it looks at."""
    monkeypatch.setattr(start_estimates, "MOST_WAITING", 2)
    monkeypatch.setattr(start_estimates, "MOST_TIMES", 1)
    ends = [(7000, {"expected_runtime": (7000 + after) * SECOND}) for after in (600, 1200)]
    given = contended(*ends, waited=20)
    line = [workload(f"w{number}", of=GPU, age=10 - number, queue="due") for number in range(2)]
    session = session_of(replace(given, workloads=(*given.workloads, *line)))
    estimates = start_estimates.StartEstimates()
    starts = [estimates.of(session, session.workloads[f"default/{name}"]) for name in ("waits", "w0", "w1")]
    assert starts == [NOW + 600 * SECOND, None, None]


def test_it_is_looked_at_again_when_the_victim_saves_its_work():
    """It would pay after 25 minutes, but in 5 the victim makes a checkpoint."""
    saves = {"checkpoint": Checkpoint(interval=1800 * SECOND)}
    given = contended((1500, saves), waited=0, **patient())
    found, plan = evicted(given)
    assert (found, plan.wake) == ([], NOW + 300 * SECOND)
    assert evicted(replace(given, now=plan.wake))[0] == ["default/v0"]


FREED = {
    "saved": (((1500, {"checkpoint": Checkpoint(interval=1800 * SECOND)}), (9000, {})), {}, {}),
    "forgotten": (
        ((300, {"evictions": 2, "last_evicted_at": NOW - (24 * HOUR - 300) * SECOND}), (9000, {})),
        {"repeat_factor": 1.0},
        {},
    ),
    "shielded": (((100, {}), (9000, {})), {}, {"reclaim_min_runtime": 400 * SECOND}),
}
"""Victims of which the first is cheap enough in five minutes, by what it becomes so; and settings."""


@pytest.mark.parametrize("why", FREED)
def test_a_simulation_looks_again_when_a_victim_becomes_cheaper_or_may_be_taken(why):
    """It reads no reasons, and does not search where nothing can pay: it evicts when stepping through time does."""
    victims, worth, settings = FREED[why]
    given = contended(*victims, waited=0, **patient(**worth), **settings)
    at, gone = first_evicted(given)
    assert (at, gone) == (NOW + 300 * SECOND, ["default/v0"])
    assert evicted(replace(given, now=at - SECOND))[0] == []
    assert evicted(replace(given, now=at))[0] == gone


def first_evicted(given):
    """Simulate what is there until something is evicted: when that is (µs since the epoch), and what."""
    simulation, found = Simulation(SimulationSetup(given), Trace("test", ())), []

    def heard(plan):
        gone = sorted(s.workload for s in plan.steps if s.action == "evict")
        if gone:
            found.append((plan.now, gone))

    simulation.heard = heard
    simulation.run()
    return found[0] if found else (None, [])


@pytest.mark.parametrize("seed", range(20))
def test_no_eviction_pays_before_a_simulation_makes_it(seed):
    """Drawn: what victims have run, save and were evicted before, and who waits; looked at as it stands in between."""
    rng = random.Random(seed)
    given, rule = drawn(rng), {"factor": rng.choice([0.25, 1]), "at_most": rng.choice([4, 20]) * HOUR}
    settings = patient(repeat_factor=rng.choice([0, 1.0]), max_evictions=rng.choice([2, 32]), **rule)
    minimum = {"reclaim_min_runtime": rng.choice([0, 30, 180]) * 60 * SECOND,
               "min_runtime": MinRuntimeSettings(mode=rng.choice(["shield", "price"]))}  # fmt: skip
    given = replace(given, settings=Settings(actions=("allocate", "reclaim"), **settings, **minimum))
    at, _ = first_evicted(given)
    until = NOW + 30 * HOUR * SECOND if at is None else at
    for _ in range(6):
        now = rng.randrange(NOW, until) if until > NOW else NOW
        assert now == at or evicted(replace(given, now=now))[0] == []


def drawn(rng):
    """Draw one to four nodes of one or two GPUs, held by workloads of one GPU, and one or two that wait for some."""
    nodes = [node(f"n{number}", gpu=rng.choice([1, 2])) for number in range(rng.randint(1, 4))]
    there = []
    for number, name in enumerate(n.name for n in nodes for _ in range(n.allocatable["nvidia.com/gpu"])):
        ran, fields = rng.randint(0, 300) * 60, {}
        if rng.random() < 0.5:
            restart = rng.choice([0, 60, 600]) * SECOND
            fields["checkpoint"] = Checkpoint(interval=rng.choice([10, 30, 45]) * 60 * SECOND, restart_overhead=restart)
        if rng.random() < 0.3:
            ago = ran + rng.randint(0, 20) * HOUR
            fields |= {"evictions": rng.randint(1, 3), "last_evicted_at": NOW - ago * SECOND}
        there.append(workload(f"v{number}", of=GPU, on=[name], age=ran + 48 * HOUR, running=ran, queue="busy"))
        there[-1] = replace(there[-1], **fields)
    waits = [
        workload(f"w{number}", of=GPU, tasks=rng.randint(1, 2), age=rng.randint(0, 100) * 60, queue="due")
        for number in range(rng.randint(1, 2))
    ]
    return cluster(nodes, [*there, *waits], [queue("busy"), queue("due", guaranteed={"gpu": rng.choice([0, 1, 4])})])


def test_the_rule_of_the_queue_comes_first():
    """The contender's queue waits for nothing, whatever the node pool says."""
    rule = {"reclaim": PatienceRule(ahead=0, at_most=0)}
    given = contended((HOUR, {}), waited=0, queue_fields={"patience": rule}, **patient())
    assert evicted(given)[0] == ["default/v0"]


AT_ONCE, NEVER = PatienceRule(ahead=0, at_most=0), PatienceRule(ahead=0, at_most=None)


@pytest.mark.parametrize(
    ("above", "own", "goes"),
    [
        ({"reclaim": AT_ONCE}, {}, True),
        ({"reclaim": AT_ONCE}, {"preempt": NEVER}, True),
        ({"reclaim": AT_ONCE}, {"reclaim": NEVER}, False),
        ({"reclaim": NEVER}, {"reclaim": AT_ONCE}, True),
        ({"preempt": AT_ONCE}, {}, False),
    ],
)
def test_the_rule_of_the_first_queue_upward_that_has_one_for_the_cause_holds(above, own, goes):
    """The node pool's rule would put it off."""
    given = contended((HOUR, {}), waited=0, **patient())
    top, due = queue("top", patience=above), queue("due", "top", guaranteed={"gpu": 1}, patience=own)
    assert bool(evicted(replace(given, queues=(given.queues[0], top, due)))[0]) is goes


@pytest.mark.parametrize(("behind", "goes"), [(None, False), (HOUR - 1, False), (HOUR, True)])
def test_the_longest_wait_of_a_line_ends_patience_not_that_of_its_head(behind, goes):
    """A contender that was evicted a minute ago stands first again; the one behind it, alike, is owed a GPU by now."""
    given = contended((5 * HOUR, {}), waited=5 * HOUR, **patient(at_most=HOUR))
    head = replace(given.workloads[-1], last_evicted_at=NOW - 60 * SECOND)
    line = [] if behind is None else [workload("waits-too", of=GPU, age=behind, queue="due")]
    given = replace(given, workloads=(*given.workloads[:-1], head, *line))
    found, plan = evicted(given)
    assert bool(found) is goes
    assert {s.beneficiary for s in plan.steps if s.action == "evict"} == ({"default/waits"} if goes else set())


def test_a_search_in_vain_is_not_made_anew_for_each_of_a_line(monkeypatch):
    """The head was evicted a minute ago and is put off; behind it nothing helps, as it would take what comes free."""
    searches = []
    run = VictimSearch.run
    monkeypatch.setattr(
        VictimSearch, "run", lambda self, budget: searches.append(self.rules.contender.key) or run(self, budget)
    )
    given = contended((110 * 60, {}), waited=5 * HOUR, **patient())
    head = replace(given.workloads[-1], last_evicted_at=NOW - 60 * SECOND)
    line = [workload(f"w{number:02}", of=GPU, age=HOUR, queue="due") for number in range(30)]
    found, _ = evicted(replace(given, workloads=(*given.workloads[:-1], head, *line)))
    assert found == []
    assert set(searches) == {"default/waits", "default/w00"}


def test_what_was_served_holds_up_no_wait():
    """Two have waited for as long as may be and one has just come: its evictions have to pay."""
    given = contended((HOUR, {}), (HOUR, {}), (HOUR, {}), waited=2 * HOUR, guaranteed=3, **patient())
    later = (workload(name, of=GPU, age=age, queue="due") for name, age in (("waits-too", 2 * HOUR), ("came", 0)))
    found, plan = evicted(replace(given, workloads=(*given.workloads, *later)))
    assert len(found) == 2
    assert {s.beneficiary for s in plan.steps if s.action == "evict"} == {"default/waits", "default/waits-too"}


@pytest.mark.parametrize(("guaranteed", "goes"), [(1, True), (0, False)])
def test_beyond_what_is_guaranteed_a_set_has_to_pay_however_long_the_wait(guaranteed, goes):
    """The victims had lost 5 hours when the contender came; it has waited for 4, and at most 2 are to be waited."""
    waits = patient(surplus=1)
    given = contended((9 * HOUR, {}), (9 * HOUR, {}), waited=4 * HOUR, guaranteed=guaranteed, **waits)
    found, plan = evicted(given)
    assert bool(found) is goes
    if not goes:
        assert plan.wake == NOW + HOUR * SECOND
        assert evicted(replace(given, now=plan.wake))[0]


@pytest.mark.parametrize(
    ("lost", "waited", "surplus", "goes"),
    [
        (900 - 2700, HOUR, 0.25, True),
        (901 - 2700, HOUR, 0.25, False),
        (1, 0, 0.25, False),
        (HOUR, HOUR, 1, True),
        (HOUR + 1, HOUR, 1, False),
        (1, 1000 * HOUR, 0, False),
    ],
)
def test_a_wait_for_what_is_beyond_the_guaranteed_counts_in_part(lost, waited, surplus, goes):
    """What the victim lost before it, or began so much later; ``ahead`` does not count, and ``atMost`` does not end it.

    Of what it lost meanwhile no more is left out than counts of the wait.
    """
    rule = PatienceRule(factor=1, ahead=HOUR * SECOND, at_most=HOUR * SECOND, surplus=surplus)
    worth = WorthSettings(patience={"reclaim": rule})
    found, plan = evicted(contended((lost + waited, {}), (10_000 * HOUR, {}), waited=waited, guaranteed=0, worth=worth))
    assert bool(found) is goes
    if not goes:
        reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
        assert f"({surplus:.0%} of it, beyond what its queue is guaranteed)" in reason.message
        assert (reason.numbers["pays"] is None) is (surplus < 1)  # else the victim loses more than its wait is worth


@pytest.mark.parametrize(("weight", "guaranteed", "goes"), [(0, 1, True), (0, 0, False), (1e-12, 0, False)])
def test_waiting_that_counts_nothing_makes_nothing_pay_that_is_not_owed(weight, guaranteed, goes):
    """What is guaranteed comes after ``atMost`` all the same; what is beyond has to pay, and never does."""
    settings = patient(at_most=HOUR, weights=(WaitingWeight(weight=weight),))
    given = contended((900 * HOUR, {}), (900 * HOUR, {}), waited=800 * HOUR, guaranteed=guaranteed, **settings)
    found, plan = evicted(given)
    assert bool(found) is goes
    if not goes:
        [reason] = [r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet"]
        assert reason.message.endswith("so far: waiting alone never makes it pay")
        assert reason.numbers["pays"] is None


def test_what_asks_only_for_what_costs_nothing_waits_no_longer_than_at_most():
    """Memory has no cost unless it is set: nothing says what the wait is worth, so that it ends."""
    nodes, most = [node("n0", gpu=1, memory=2)], {"memory": 2}
    victim = workload("v0", of=spec(cpu=0, gpu=1, memory=2), on=["n0"], age=9 * HOUR, running=9 * HOUR, queue="busy")
    waits = workload("waits", of=spec(cpu=0, memory=1), age=2 * HOUR, queue="due")
    given = cluster(nodes, [victim, waits], [queue("busy", max=most), queue("due", max=most)])
    given = replace(given, settings=Settings(**patient(at_most=2 * HOUR)))
    assert evicted(given)[0] == ["default/v0"]
    assert evicted(replace(given, now=NOW - SECOND))[0] == []


def test_weights_make_waiting_dearer():
    """A weight of 3 for the queue: 600 s of waiting are worth 1,800 s, which the victim had lost before."""
    weights = (WaitingWeight(queue="due", min_priority=1, weight=9.0), WaitingWeight(queue="due", weight=3.0))
    assert evicted(contended((2400, {}), waited=600, **patient(weights=weights)))[0]
    assert not evicted(contended((2401, {}), waited=600, **patient(weights=weights)))[0]


def test_a_price_instead_of_a_shield():
    """With a shield the elder goes, which has run for long enough; with a price the younger, which loses less."""
    victims, least = ((600, {}), (2000, {})), 1900 * SECOND
    assert evicted(contended(*victims, waited=0, reclaim_min_runtime=least))[0] == ["default/v1"]
    price = {"min_runtime": MinRuntimeSettings(mode="price"), "reclaim_min_runtime": least}
    assert evicted(contended(*victims, waited=0, **price))[0] == ["default/v0"]
    saved = (1950, {"checkpoint": Checkpoint(interval=1000 * SECOND)})
    assert evicted(contended((600, {}), saved, waited=0, **price))[0] == ["default/v1"]


@pytest.mark.parametrize(
    ("ran", "waited", "factor", "pays_after"),
    [
        (0, 0, 1, 5400),  # three hours count, less what it waits, as long as they are not over: 10,800 - w = w
        (2 * HOUR, 300, 1, 6600),  # once they are, what had been lost when the wait began: 6,900 = 300 + t
        (2 * HOUR, 300, 0.25, 4 * 6900 - 300),
    ],
)
@pytest.mark.parametrize("later", [0, 600, 4000])
def test_where_a_minimum_runtime_is_a_price_it_is_said_when_it_pays_and_so_it_is(
    ran, waited, factor, pays_after, later
):
    """One GPU, three hours: it is said at first and later on, and comes true to the second."""

    def after(seconds, **more):
        rules = {"min_runtime": MinRuntimeSettings(mode="price"), "reclaim_min_runtime": 3 * HOUR * SECOND}
        given = contended((ran, {}), waited=waited, **patient(factor=factor, at_most=100 * HOUR), **rules, **more)
        return replace(given, now=NOW + seconds * SECOND)

    gone, plan = evicted(after(later))
    reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
    assert (gone, reason.numbers["pays"]) == ([], format_time(NOW + pays_after * SECOND))
    assert plan.wake is not None
    assert plan.wake <= NOW + pays_after * SECOND
    assert evicted(after(pays_after - 1))[0] == []
    assert evicted(after(pays_after))[0] == ["default/v0"]


@pytest.mark.parametrize(
    ("mode", "reclaimed", "preempted"),
    [
        ("shield", "v1", "v1"),
        ({"reclaim": "price"}, "v0", "v1"),
        ({"preempt": "price"}, "v1", "v0"),
        ("price", "v0", "v0"),
    ],
)
def test_each_cause_may_have_a_mode_of_its_own(mode, reclaimed, preempted):
    """The younger is shielded where the mode is no price, for the cause that asks; elsewhere it is the cheaper one."""
    least = {"reclaim_min_runtime": 1900 * SECOND, "preempt_min_runtime": 1900 * SECOND}
    given = contended((600, {}), (2000, {}), waited=0, min_runtime=MinRuntimeSettings(mode=mode), **least)
    assert evicted(given)[0] == [f"default/{reclaimed}"]
    urgent = replace(given.workloads[-1], queue="busy", priority=50)
    assert evicted(replace(given, workloads=(*given.workloads[:-1], urgent)))[0] == [f"default/{preempted}"]


def test_a_queue_may_have_a_mode_of_its_own():
    """The victims' queue has a price, the node pool a shield."""
    given = contended((600, {}), waited=0, reclaim_min_runtime=1900 * SECOND)
    assert evicted(given)[0] == []
    busy, due = given.queues
    assert evicted(replace(given, queues=(replace(busy, min_runtime_mode="price"), due)))[0] == ["default/v0"]


def test_each_eviction_makes_the_next_one_dearer():
    """It was evicted twice within a day: 600 s cost as much as 1,800 s."""
    lately = {"evictions": 2, "last_evicted_at": NOW - HOUR * SECOND}
    for given, factor in (({}, 1), (lately, 3), ({**lately, "last_evicted_at": NOW - 25 * HOUR * SECOND}, 1)):
        session = session_of(contended((600, given), waited=0, worth=WorthSettings(repeat_factor=1.0)))
        assert price_of_all(session, session.workloads["default/v0"].tasks) == factor * 600 * MICRO


def test_what_was_evicted_often_is_protected_but_not_for_ever():
    """Twice is the most: then the elder goes; a contender that is owed its guaranteed waits for four hours at most."""
    often = {"evictions": 2, "last_evicted_at": NOW - HOUR * SECOND}
    bound = {"worth": WorthSettings(max_evictions=2)}
    assert evicted(contended((600, often), (2000, {}), waited=0, **bound))[0] == ["default/v1"]
    found, plan = evicted(contended((600, often), waited=60, **bound))
    assert found == []
    assert plan.wake == NOW + (4 * HOUR - 60) * SECOND
    assert [(r.shield, r.until) for r in plan.refused] == [("evicted-often", plan.wake)]
    assert evicted(contended((600, often), waited=4 * HOUR, **bound))[0] == ["default/v0"]
    assert evicted(contended((600, often), waited=4 * HOUR, guaranteed=0, **bound))[0] == []
    forgotten = {**often, "last_evicted_at": NOW - 25 * HOUR * SECOND}
    assert evicted(contended((600, forgotten), waited=0, **bound))[0] == ["default/v0"]


def test_how_often_it_was_evicted_is_forgotten_when_the_settings_say_so():
    """Two days after the last time it is protected still, and its price is still higher, where a week is asked for.

    At the very instant until which it is said to be protected it is so no longer.
    """
    before = {"evictions": 2, "last_evicted_at": NOW - 48 * HOUR * SECOND}
    spans = (7 * 24 * HOUR, []), (48 * HOUR + 1, []), (48 * HOUR, ["default/v0"]), (24 * HOUR, ["default/v0"])
    for span, goes in spans:
        worth = WorthSettings(max_evictions=2, repeat_factor=1.0, forgotten_after=span * SECOND)
        given = contended((600, before), waited=0, worth=worth)
        found, plan = evicted(given)
        assert found == goes
        session = session_of(given)
        assert price_of_all(session, session.workloads["default/v0"].tasks) == (1 if goes else 3) * 600 * MICRO
        there = EmbeddedCluster(given)
        there.carry_out(plan)
        assert next(w for w in there.observe().workloads if w.name == "v0").evictions == (1 if goes else 2)


def test_evictions_are_counted():
    """A workload that lost all that it ran was evicted once more."""
    given = contended((600, {"evictions": 1, "last_evicted_at": NOW - HOUR * SECOND}), waited=0)
    _, plan = evicted(given)
    there = EmbeddedCluster(given)
    there.carry_out(plan)
    assert next(w for w in there.observe().workloads if w.name == "v0").evictions == 2


def test_patience_asks_only_for_its_causes():
    """Without a rule for a cause nothing is asked."""
    session = session_of(contended((600, {}), waited=0, **patient()))
    assert Patience().applies(session, "reclaim")
    assert not Patience().applies(session, "preempt")


def overdue_beside(expected, ran, waited, rule):
    """One GPU: `v` ran there longer than was expected of it, and `waits`, which is more urgent, waited. In seconds."""
    victim = workload("v", of=GPU, on=["n"], age=ran, running=ran, expected_runtime=expected)
    waits = workload("waits", of=GPU, age=waited, priority=50)
    settings = Settings(actions=("allocate", "requeue"), worth=WorthSettings(patience={"requeue": rule}))
    return replace(cluster([node("n", gpu=1)], [victim, waits]), settings=settings)


@pytest.mark.parametrize(
    ("expected", "overdue", "waited", "pays_after"),
    [
        (600, 600, 1200, 0),  # overdue when the contender came: it had lost 1,200 s by then
        (600, 600, 1199, 1),
        (1200, 0, 1200, 0),  # it came to be overdue as the contender came
        (3000, -1800, 4800, 0),  # it may be requeued for 3,000 s now, and would have lost as much then
        (3000, -1800, 4799, 1),  # what was waited before that it had to wait in any case
        (3000, -1800, 3000, 1800),
    ],
)
def test_a_requeue_has_to_be_worth_what_was_waited_since_it_was_possible(expected, overdue, waited, pays_after):
    """The victim was ``overdue`` for so long when the contender came, which is more urgent."""
    rule = PatienceRule(factor=1, ahead=0, at_most=1000 * HOUR * SECOND)
    found, plan = evicted(overdue_beside(expected, expected + overdue + waited, waited, rule))
    assert bool(found) is (pays_after == 0)
    if pays_after:
        assert plan.wake == NOW + pays_after * SECOND
        assert [r.code for r in plan.obstacles["default/waits"]] == ["NotWorthYet"]


@pytest.mark.parametrize(("eligible_for", "goes"), [(1799, False), (1800, True)])
def test_requeue_is_put_off_for_no_longer_than_at_most(eligible_for, goes):
    """What it waited before the victim became overdue does not count for that either."""
    rule = PatienceRule(ahead=0, at_most=1800 * SECOND)
    assert bool(evicted(overdue_beside(7000, 7000 + eligible_for, 8900, rule))[0]) is goes


@pytest.mark.parametrize(("waited", "goes"), [(48 * HOUR - 1, False), (48 * HOUR, True)])
def test_unless_set_patience_ends_after_two_days_for_what_is_guaranteed(waited, goes):
    """The victim lost ten days."""
    rule = WorthSettings(patience={"reclaim": PatienceRule()})
    assert bool(evicted(contended((240 * HOUR + waited, {}), waited=waited, worth=rule))[0]) is goes


def test_of_several_that_are_requeued_together_it_is_said_when_all_of_them_pay():
    """Each of two that ran for one and two hours, and for a second more, pays sooner by itself, and helps nobody."""
    ran = (HOUR, 2 * HOUR)
    victims = [workload(f"v{n}", of=GPU, on=["n"], age=r, running=r, expected_runtime=1) for n, r in enumerate(ran)]
    waits = workload("waits", of=spec(cpu=0, gpu=2), age=600, priority=50)
    worth = WorthSettings(patience={"requeue": PatienceRule(factor=1, ahead=0)})
    given = replace(
        cluster([node("n", gpu=2)], [*victims, waits]),
        settings=Settings(actions=("allocate", "requeue"), worth=worth),
    )
    found, plan = evicted(given)
    (reason,) = [r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet"]
    pays_at = NOW - 600 * SECOND + (3 * HOUR - 1200) * SECOND // 2  # two GPUs are worth what both had lost by then
    assert (found, reason.numbers["pays"]) == ([], format_time(pays_at))
    assert sorted(reason.numbers["workloads"]) == ["default/v0", "default/v1"]
    assert evicted(replace(given, now=pays_at - SECOND))[0] == []
    assert sorted(evicted(replace(given, now=pays_at))[0]) == ["default/v0", "default/v1"]


@pytest.mark.parametrize(("at_most", "goes"), [(None, False), (24 * HOUR * SECOND, True)])
def test_unless_set_patience_with_requeue_has_no_end(at_most, goes):
    """The candidate ran for ten days before it was overdue, and has been so for one: nothing is owed to who waits."""
    rule = PatienceRule(at_most=at_most)
    found, plan = evicted(overdue_beside(240 * HOUR, 264 * HOUR, 200 * HOUR, rule))
    assert bool(found) is goes
    assert goes or plan.wake == NOW + (4 * 240 - 24) * HOUR * SECOND - 1200 * SECOND  # a quarter of it is worth it then


def test_candidates_for_requeue_may_be_tried_by_cost():
    """The one that is most overdue loses more."""
    victims = [
        workload("old", of=GPU, on=["a"], age=9000, running=9000, expected_runtime=60),
        workload("new", of=GPU, on=["b"], age=900, running=900, expected_runtime=60),
    ]
    given = cluster([node("a", gpu=1), node("b", gpu=1)], [*victims, workload("waits", of=GPU, priority=50)])
    for order, first in (("overdue", "default/old"), ("cost", "default/new")):
        chosen = Settings(actions=("allocate", "requeue"), requeue=RequeueSettings(order=order))
        assert evicted(replace(given, settings=chosen))[0] == [first]


def test_what_would_follow_from_a_set_costs_only_what_it_lost_before_the_contender_waited():
    nodes = [node("n1", gpu=1), node("n2", gpu=1)]
    low = replace(workload("low", of=GPU, on=["n2"], age=HOUR, running=HOUR), priority=0)
    middle = replace(workload("middle", of=GPU, on=["n1"], age=HOUR, running=HOUR), priority=50)
    selector = replace(GPU, node_selector=(("kubernetes.io/hostname", "n1"),))
    waits = replace(workload("waits", of=selector, age=HOUR // 2), priority=60)
    nodes[0] = replace(nodes[0], labels={"kubernetes.io/hostname": "n1"})
    rule = PatienceRule(factor=2, ahead=0, at_most=24 * HOUR * SECOND)
    given = replace(
        cluster(nodes, [low, middle, waits]), settings=Settings(worth=WorthSettings(patience={"preempt": rule}))
    )
    gone, plan = evicted(given)
    assert gone == []
    reason = next(r for r in plan.obstacles["default/waits"] if r.code == "NotWorthYet")
    # Both have lost an hour and a half each by then, an hour of which its own wait makes up for: two hours are left.
    pays = format_time(NOW + HOUR // 2 * SECOND)
    assert reason.numbers["pays"] == pays
    later = replace(given, now=NOW + HOUR // 2 * SECOND)
    gone, _ = evicted(later)
    assert gone == ["default/middle"]
