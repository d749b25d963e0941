"""What a statement says was used of disruption budgets is what a count of the log by hand gives."""

from dataclasses import replace

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.history.test_store import HERE, NOVEMBER
from tests.history.worlds import MINUTE, recorded, worlds

from tenure.history import open_history
from tenure.history.reading.statement import statement_of
from tenure.history.record import Draft, key_of, payload_of
from tenure.model.settings import BudgetRule, DisruptionSettings
from tenure.report.statement_json import statement_json
from tenure.report.statement_text import statement_page, statement_text
from tenure.report.tables import Terminal
from tenure.simulator.log import EVICT

HOUR = 60 * MINUTE
DAY = 24 * HOUR


@st.composite
def budgets(draw):
    """Draw budgets that bound evictions: all, those of a cause, of a subtree of queues, or of each workload."""
    of = [{}, {"causes": ("reclaim",)}, {"queue": "top"}, {"queue": "b", "side": "beneficiary"}, {"each": "workload"}]
    return tuple(
        BudgetRule(name=f"b{number}", max_evictions=draw(st.integers(1, 5)),
                   per=draw(st.sampled_from([MINUTE, HOUR, DAY])), **draw(st.sampled_from(of)))
        for number in range(draw(st.integers(1, 3)))
    )  # fmt: skip


def concerned(log, event, rule):
    """Whether an eviction of a log is charged to a rule, read off the rule's definition."""
    _, _, job, _, other, said = event
    under = {"top": {"top", "a"}}.get(rule.queue, {rule.queue})
    whose = job if rule.side == "victim" else other
    inside = rule.queue is None or (whose >= 0 and log.workloads[whose].queue in under)
    return inside and (rule.causes is None or said.cause in rule.causes)


@settings(max_examples=tries(6, 125), deadline=None)
@given(world=worlds(), rules=budgets())
def test_the_fullest_window_is_that_of_a_count_by_hand(tmp_path_factory, world, rules):
    """Every window (t - per, t] that ends with an eviction is counted anew from the log of the simulation."""
    cluster, trace = world
    known = replace(cluster.settings, disruption=DisruptionSettings(budgets=rules))
    path = tmp_path_factory.mktemp("budgets") / "history.db"
    with open_history(str(path), write=True) as store:
        log = recorded(store, replace(cluster, settings=known), trace)
        found = {use.rule.name: use for use in statement_of(store).budgets}
    assume(any(event[0] == EVICT for event in log.events))
    for rule in rules:
        charged = [event for event in log.events if event[0] == EVICT and concerned(log, event, rule)]
        counts = [
            sum(e[1] - rule.per < other[1] <= e[1] and (rule.each is None or other[2] == e[2]) for other in charged)
            for e in charged
        ]
        use = found[rule.name]
        assert use.evictions == len(charged)
        assert (0 if use.fullest is None else use.fullest.evictions) == max(counts, default=0)
        assert max(counts, default=0) <= rule.max_evictions


def origin(at, *rules, pool="gpu"):
    """A record of a cluster with such budgets."""
    queues = [{"name": "research"}, {"name": "a", "parent": "research"}, {"name": "b"}]
    plain = {"apiVersion": "tenure.dev/v1alpha1", "kind": "Cluster", "now": "2026-11-01T00:00:00Z", "queues": queues,
             "nodes": [], "scheduler": {"disruption": {"budgets": list(rules)}}}  # fmt: skip
    return Draft(at, "origin", payload=payload_of(by="scheduler", cluster=plain), key=key_of("origin", at, pool))


def evicted(at, queue="a", workload="ns/w", cause="reclaim", gpus=0):
    """A record of a task that was evicted, which lost so many GPU-hours."""
    lost = {"nvidia.com/gpu": gpus * 1000 * HOUR}
    payload = payload_of(task="t", lost=lost, forQueue="b")
    return Draft(at, "evicted", workload, queue, cause, "ns/other", 0, payload, key=key_of("evicted", at, workload))


@pytest.fixture
def stored(tmp_path):
    """Give a function that writes drafts and makes the statement of a window of them."""

    def made(drafts, since=None, until=None):
        with open_history(str(tmp_path / "history.db"), write=True) as store:
            store.append(HERE, drafts)
            return statement_of(store, since, until)

    return made


def test_a_window_that_began_before_the_statement_counts_whole(stored):
    """Nine evictions lie before the statement begins, and one in it: the budget was full then."""
    drafts = [origin(NOVEMBER, {"name": "rate", "maxEvictions": 10, "per": "1h"})]
    drafts += [evicted(NOVEMBER + HOUR + number * MINUTE) for number in range(10)]
    drafts.append(evicted(NOVEMBER + 5 * HOUR))
    (use,) = stored(drafts, since=NOVEMBER + HOUR + 9 * MINUTE).budgets
    assert (use.evictions, use.fullest.evictions, use.fullest.used) == (2, 10, 1.0)
    assert use.fullest.at == NOVEMBER + HOUR + 9 * MINUTE


def test_each_kind_of_rule_is_counted_as_the_ledger_charges_it(stored):
    """A rule of a subtree, of each workload, of a schedule, of what is lost, and one that no record can tell of."""
    drafts = [origin(
        NOVEMBER, {"name": "tree", "queue": "research", "maxEvictions": 9, "per": "1h"},
        {"name": "each", "each": "workload", "maxEvictions": 2, "per": "1d"},
        {"name": "night", "schedule": "0 0 * * *", "duration": "2h", "maxEvictions": 1},
        {"name": "lost", "maxLost": {"nvidia.com/gpu": "10h"}, "per": "1d"},
        {"name": "web", "selector": {"matchLabels": {"tier": "web"}}, "maxEvictions": 1, "per": "1h"},
        {"name": "up", "maxUnavailable": 1},
    )]  # fmt: skip
    drafts += [
        evicted(NOVEMBER + HOUR, workload="ns/one", gpus=3),
        evicted(NOVEMBER + HOUR + 1, queue="b", workload="ns/two", gpus=2),
        evicted(NOVEMBER + 3 * HOUR, workload="ns/one", gpus=4),
    ]
    found = stored(drafts)
    uses = {use.rule.name: use for use in found.budgets}
    assert {name: use.evictions for name, use in uses.items()} == {
        "tree": 2, "each": 3, "night": 2, "lost": 3, "web": 0, "up": 3,
    }  # fmt: skip
    assert uses["tree"].fullest.evictions == 1
    assert (uses["each"].fullest.evictions, uses["each"].fullest.workload) == (2, "ns/one")
    assert (uses["night"].fullest.evictions, uses["night"].fullest.used) == (2, 2.0)
    assert (uses["lost"].fullest.lost, uses["lost"].fullest.used) == ({"nvidia.com/gpu": 9 * HOUR}, 0.9)
    assert not uses["web"].is_known
    assert uses["up"].fullest is None
    plain = {one["name"]: one for one in statement_json(found)["budgets"]}
    assert plain["web"]["evictions"] is None
    assert plain["lost"]["lost"] == {"nvidia.com/gpu": 9 * 3600}
    text = " ".join(statement_text(found, Terminal(200)).split())
    assert "lost 10h of GPU lost in 1d 3 9h of 10h of GPU (90.0%)" in text
    assert "unknown: the history has no labels of pods" in text
    assert "2 evictions of each workload in 1d" in statement_page(found)


def test_the_budget_of_the_windows_end_counts_and_node_pools_do_not_mix(stored, tmp_path):
    """A budget that was changed is that of the end; what another pool evicted is not charged to it."""
    drafts = [
        origin(NOVEMBER, {"name": "rate", "maxEvictions": 1, "per": "1h"}),
        evicted(NOVEMBER + HOUR), evicted(NOVEMBER + HOUR + MINUTE),
        origin(NOVEMBER + 2 * HOUR, {"name": "rate", "maxEvictions": 4, "per": "1h"}),
    ]  # fmt: skip
    with open_history(str(tmp_path / "history.db"), write=True) as store:
        store.append(replace(HERE, pool="cpu"), [evicted(NOVEMBER + HOUR + 2 * MINUTE, workload="ns/cpu")])
    (use,) = stored(drafts).budgets
    assert (use.evictions, use.fullest.used, use.origin) == (2, 0.5, HERE)
    (use,) = stored([], until=NOVEMBER + HOUR + 30 * MINUTE).budgets
    assert use.fullest.used == 2.0
