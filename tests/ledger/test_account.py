"""What a rule says of itself, held against what it allows."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from tenure.ledger.entries import Charge, EvictionRequest, LedgerPod, RuleAccount
from tenure.ledger.ledger import Ledger
from tenure.model.settings import BudgetRule

SECOND = 1_000_000
NOW = 1_000 * SECOND

TIMES = st.lists(st.integers(900, 1_000), max_size=6)
RULES = st.builds(
    BudgetRule,
    name=st.just("rule"),
    max_evictions=st.integers(0, 4),
    per=st.integers(1, 120).map(lambda s: s * SECOND),
    max_unavailable=st.none() | st.integers(0, 4),
)


def ask(number, workload="default/one", **more):
    return EvictionRequest(workload=workload, task=f"task-{number}", cause="reclaim", **more)


def ledger_of(rule, times, pods=()):
    """Give a ledger of one rule, with evictions at some times (in seconds)."""
    log = [Charge(at=at * SECOND, ask=ask(f"old-{n}")) for n, at in enumerate(times)]
    return Ledger([rule], (), log, pods)


def most_allowed(ledger, now):
    """Give how many evictions of pods that are up are allowed at once, by asking for more and more."""
    number = 0
    while number < 20 and ledger.allows([ask(n) for n in range(number + 1)], now):
        number += 1
    return number


@given(RULES, TIMES, st.integers(0, 3))
def test_what_it_says_it_allows_is_what_it_allows(rule, times, down):
    """As many more evictions as it says go through, and not one more."""
    pods = [LedgerPod(workload="default/one", task=f"pod-{n}", up=n >= down) for n in range(30)]
    ledger = ledger_of(rule, times, pods)
    account = ledger.rules[0].account(NOW)
    assert account.in_force
    assert account.allowed == most_allowed(ledger, NOW)
    assert account.down == (down if rule.max_unavailable is not None else None)
    since = NOW - rule.per
    assert account.evictions == sum(since < at * SECOND <= NOW for at in times)


@given(RULES.map(lambda r: replace(r, max_unavailable=None)), TIMES)
def test_the_time_from_which_it_allows_more_is_the_first_such_time(rule, times):
    """One microsecond before it nothing is allowed, then something is; where no time is given, none would help."""
    ledger = ledger_of(rule, times)
    account = ledger.rules[0].account(NOW)
    if account.allowed:
        assert account.next_at is None
    elif account.next_at is None:
        assert not ledger.allows([ask(0)], NOW + 10_000 * SECOND)
    else:
        assert not ledger.allows([ask(0)], account.next_at - 1)
        assert ledger.allows([ask(0)], account.next_at)


def test_what_is_lost_counts_too():
    """As soon as as much is lost as may be, nothing is allowed until enough of that has fallen out of the window."""
    rule = BudgetRule(name="lost", max_lost={"cpu": 100 * SECOND}, per=60 * SECOND)
    log = [Charge(at=(960 + n) * SECOND, ask=ask(n, lost={"cpu": 50 * SECOND})) for n in range(3)]
    account = Ledger([rule], (), log).rules[0].account(NOW)
    assert account == RuleAccount(
        in_force=True, evictions=3, allowed=0, lost={"cpu": 150 * SECOND}, next_at=1021 * SECOND
    )


def test_a_rule_whose_schedule_rests_bounds_nothing():
    """Outside of its window it is not in force; inside, it allows more when the window ends."""
    rule = BudgetRule(name="day", max_evictions=0, schedule="0 6 * * *", duration=3600 * SECOND)
    at_night, at_six = 1_795_305_600 * SECOND, (1_795_305_600 + 6 * 3600) * SECOND
    assert Ledger([rule]).rules[0].account(at_night) == RuleAccount(in_force=False)
    account = Ledger([rule]).rules[0].account(at_six)
    assert (account.in_force, account.allowed, account.next_at) == (True, 0, at_six + 3600 * SECOND)


def test_a_rule_for_each_workload_speaks_of_that_for_which_it_allows_least():
    """The one that was evicted more often."""
    rule = BudgetRule(name="each", each="workload", max_evictions=2, per=60 * SECOND)
    log = [Charge(at=990 * SECOND, ask=ask(n, f"default/{name}")) for n, name in enumerate(("a", "b", "b"))]
    account = Ledger([rule], (), log).rules[0].account(NOW)
    assert (account.evictions, account.allowed, account.next_at) == (2, 0, 1050 * SECOND)
    assert Ledger([rule]).rules[0].account(NOW).allowed == 2
