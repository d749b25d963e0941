"""All budgets together on random clusters: PodDisruptionBudgets and rules of the ledger, watched from outside."""

from dataclasses import replace

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.builders import NOW, SECOND, cluster, node, queue, spec, task, workload
from tests.effort import tries
from tests.rescheduler.watching import MINUTE, Watcher, pods_in

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import DisruptionBudget
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BackgroundSettings, BudgetRule, DisruptionSettings, ExactSettings, ReschedulerSettings

HOUR = 3600 * SECOND
NOW_MINUTE = NOW // MINUTE % 60
SELECTORS = st.sampled_from([None, *(LabelSelector(match_labels=(("app", app),)) for app in "xy")])
AMOUNTS = st.one_of(st.integers(0, 4), st.sampled_from(["20%", "50%", "70%"]))


@st.composite
def running(draw, number, room):
    """A workload that runs, on nodes that have room for it; None where there is none."""
    cpu, count = draw(st.integers(1, 4)), draw(st.sampled_from([1, 1, 2, 3]))
    places = []
    for _ in range(count):
        fits = [n for n, free in enumerate(room) if free >= cpu]
        if fits:
            places.append(draw(st.sampled_from(fits)))
            room[places[-1]] -= cpu
    if len(places) < count:
        for n in places:
            room[n] += cpu
        return None
    labels = (("app", draw(st.sampled_from("xy"))),)
    pods = [task(f"w{number}-{i}", spec(cpu=cpu, labels=labels), on=f"n{n}") for i, n in enumerate(places)]
    shielded = draw(st.sampled_from([{}] * 12 + [{"preemptible": False}, {"owner_kind": "Pod"},
                                                {"owner_kind": "DaemonSet"}, {"allow_preemption": False}]))  # fmt: skip
    age = draw(st.integers(10, 5000))
    return workload(f"w{number}", tasks=pods, running=age, age=age + 10, min_member=draw(st.integers(1, count)),
                    queue=draw(st.sampled_from(["one", "two"])), namespace=draw(st.sampled_from(["default", "team"])),
                    **shielded)  # fmt: skip


@st.composite
def rules(draw):
    """Up to three rules of our own, of every kind."""
    kinds = {
        "rate": lambda: {"max_evictions": draw(st.integers(0, 4)), "per": draw(st.sampled_from([3, 10])) * MINUTE},
        "each": lambda: {"max_evictions": draw(st.integers(0, 1)), "per": 20 * MINUTE, "each": "workload"},
        "lost": lambda: {"max_lost": {"cpu": draw(st.sampled_from([600, 3600, 10800])) * SECOND}, "per": 15 * MINUTE},
        "down": lambda: {"max_unavailable": draw(st.integers(0, 3))},
        "down-each": lambda: {"max_unavailable": 1, "each": "workload"},
        "hours": lambda: {"max_evictions": draw(st.integers(0, 1)), "duration": 4 * MINUTE,
                          "schedule": f"{(NOW_MINUTE + draw(st.integers(0, 8))) % 60} * * * *"},
    }  # fmt: skip
    found = []
    for name in draw(st.lists(st.sampled_from(sorted(kinds)), max_size=3, unique=True)):
        causes = st.sampled_from([None, None, ("reschedule",), ("reclaim", "consolidate")])
        scope = {"selector": draw(SELECTORS), "queue": draw(st.sampled_from([None, None, "one"])),
                 "namespace": draw(st.sampled_from([None, None, "team"])), "causes": draw(causes)}  # fmt: skip
        found.append(BudgetRule(name=name, **kinds[name](), **scope))
    return tuple(found)


@st.composite
def protected(draw):
    """A tight cluster in which something waits, with budgets, and what others do to its pods meanwhile."""
    room = [8] * draw(st.integers(2, 4))
    count = len(room)
    made = [w for number in range(draw(st.integers(2, 8))) if (w := draw(running(number, room))) is not None]
    for number in range(draw(st.integers(1, 2))):
        of = spec(cpu=draw(st.integers(4, 8)), labels=(("app", draw(st.sampled_from("xyz"))),))
        made.append(workload(f"big{number}", tasks=draw(st.integers(1, 2)), of=of, age=600, queue="one"))
    pdbs = []
    for number in range(draw(st.sampled_from([0, 1, 1, 1, 2]))):
        bound = draw(st.sampled_from(["min_available", "max_unavailable"]))
        scope = {
            "namespace": draw(st.sampled_from(["default", "team"])),
            "selector": draw(SELECTORS) or LabelSelector(),
        }
        pdbs.append(DisruptionBudget(name=f"pdb{number}", **scope, **{bound: draw(AMOUNTS)}))
    rescheduler = ReschedulerSettings(
        moves=draw(st.sampled_from(["evict-first", "reserve-first"])),
        exact=ExactSettings(enabled=draw(st.sampled_from([False] * 9 + [True]))),
        background=BackgroundSettings(interval=draw(st.sampled_from([None, 5 * MINUTE])), objective="pack",
                                      min_gain=1e-5),
    )  # fmt: skip
    drain = draw(st.sampled_from([None, None, 0]))
    base = cluster(
        [node(f"n{i}", cpu=8, drain=i == drain) for i in range(count)], made, [queue("one"), queue("two")],
        actions=draw(st.sampled_from([("allocate", "reschedule"), ("allocate", "consolidate", "reschedule")])),
        disruption=DisruptionSettings(budgets=draw(rules())), rescheduler=rescheduler,
    )  # fmt: skip
    ran = [(w.key, t.name) for w in made for t in w.tasks if t.phase == "Running"]
    others = st.tuples(st.integers(0, 6), st.sampled_from(["not ready", "ready", "lost"]), st.sampled_from(ran))
    return replace(base, disruption_budgets=tuple(pdbs)), draw(st.lists(others, max_size=4)) if ran else []


def disturb(state, what, key):
    """Let others disrupt a pod: its probe fails, it recovers, or its node loses it."""

    def changed(t):
        if t.phase != "Running":
            return t
        if what == "lost":
            return replace(t, phase="Pending", node=None, started_at=None, created_at=state.now)
        return replace(t, ready=what == "ready")

    return replace(state, workloads=tuple(
        replace(w, tasks=tuple(changed(t) if (w.key, t.name) == key else t for t in w.tasks)) for w in state.workloads
    ))  # fmt: skip


@settings(deadline=None, max_examples=tries(15, 1000), suppress_health_check=list(HealthCheck))
@given(made=protected())
def test_no_budget_of_any_kind_is_broken_at_any_instant(made):
    """Sixteen minutes; what moves lands, nobody is back, nothing is over capacity, and in the end nothing moves."""
    base, others = made
    embedded, watcher = EmbeddedCluster(base), Watcher(base)
    ran = {key for key, (_, t) in pods_in(base).items() if t.phase == "Running"}
    counts = []
    for minute in range(16):
        if minute:
            embedded.advance(NOW + minute * MINUTE)
        for at, what, key in others:
            if at == minute:
                embedded.cluster = disturb(embedded.cluster, what, key)
                watcher.disturbed.add(key)
        before = embedded.observe()
        watcher.look(before)
        plan = Scheduler(session_of(before)).cycle(before.now)
        watcher.decided(before, plan)
        embedded.carry_out(plan)
        watcher.look(embedded.observe())
        counts.append(sum(s.action == "evict" for s in plan.steps))
    assert not watcher.faults
    assert not any(counts[-3:]), counts
    after = pods_in(embedded.observe())
    moved = {(g.key, g.task) for g in watcher.log}
    assert all(after[key][1].phase == "Running" for key in (moved & ran) - watcher.disturbed), "what moved has landed"
