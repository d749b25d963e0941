"""The ledger: what it allows, refuses, charges and takes back."""

from hypothesis import given
from hypothesis import strategies as st

from tenure.ledger.entries import Charge, EvictionRequest, LedgerPod
from tenure.ledger.ledger import Ledger
from tenure.model.cluster import DisruptionBudget
from tenure.model.selectors import LabelSelector
from tenure.model.settings import BudgetRule
from tenure.model.values.duration import parse_time

SECOND = 1_000_000
HOUR = 3600 * SECOND
NOW = parse_time("2026-11-20T10:00:00Z")


def ask(workload="default/a", task="a-0", cause="reclaim", **fields):
    return EvictionRequest(workload=workload, task=task, cause=cause, **fields)


def rule(name="r", **fields):
    return BudgetRule(name=name, **fields)


def ledger(*rules, log=(), pods=(), budgets=()):
    return Ledger(rules, budgets, [Charge(at=at, ask=a) for at, a in log], pods)


@given(
    times=st.lists(st.integers(0, 200), min_size=1, max_size=60).map(sorted),
    most=st.integers(0, 5),
    per=st.integers(1, 50),
)
def test_no_window_ever_holds_more_than_the_rate_and_nothing_is_refused_below_it(times, most, per):
    """Brute force: count the evictions in (t - per, t] before each ask."""
    book = ledger(rule(max_evictions=most, per=per * SECOND))
    done = []
    for time in times:
        allowed = book.allows([ask()], time * SECOND)
        assert allowed == (sum(time - per < t <= time for t in done) < most)
        if allowed:
            book.charge([ask()], time * SECOND)
            done.append(time)
    for end in range(260):
        assert sum(end - per < t <= end for t in done) <= most


@given(
    log=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=12),
    asked=st.lists(st.tuples(st.integers(0, 50), st.integers(0, 1)), min_size=1, max_size=3),
    most=st.integers(0, 5),
    budget=st.integers(0, 100),
)
def test_a_refusal_ends_when_the_rule_allows_the_set_and_no_sooner(log, asked, most, budget):
    """Ask again at each second; what saves nothing loses more by then."""

    def asks(now):
        lost = [(first + grows * (now - 100), grows) for first, grows in asked]
        return [ask(lost={"gpu": much * SECOND}, growth={"gpu": grows * SECOND}) for much, grows in lost]

    entries = [(t * SECOND, ask(lost={"gpu": lost * SECOND})) for t, lost in log]
    for bound in ({"max_evictions": most}, {"max_lost": {"gpu": budget * SECOND}}):
        book = ledger(rule(**bound, per=30 * SECOND), log=entries)
        denial = book.refusal(asks(100), 100 * SECOND)
        if denial is not None:
            first = next((now for now in range(100, 140) if book.allows(asks(now), now * SECOND)), None)
            assert denial.until == (None if first is None else first * SECOND)


@given(
    log=st.lists(st.tuples(st.integers(0, 100), st.integers(0, 50)), max_size=20),
    asked=st.lists(st.integers(0, 50), max_size=5),
    most=st.integers(0, 200),
)
def test_lost_time_is_summed_over_the_window(log, asked, most):
    """Brute force over what each eviction destroyed."""
    entries = [(t * SECOND, ask(lost={"gpu": lost * SECOND})) for t, lost in log]
    book = ledger(rule(max_lost={"gpu": most * SECOND}, per=30 * SECOND), log=entries)
    used = sum(lost for t, lost in log if 70 < t <= 100)
    wanted = [ask(lost={"gpu": lost * SECOND}) for lost in asked]
    if any(asked):
        assert book.allows(wanted, 100 * SECOND) == (used + sum(asked) <= most)


def test_what_matches_several_rules_is_charged_to_all_or_does_not_take_place():
    """The second rule refuses; the first must not have lost anything."""
    inference = rule(
        "inference", selector=LabelSelector(match_labels=(("tier", "inference"),)), max_evictions=0, per=HOUR
    )
    book = ledger(rule("all", max_evictions=2, per=HOUR), inference)
    served = ask(labels={"tier": "inference"})
    assert book.refusal([ask(), served], NOW).rule == "inference"
    assert book.allows([ask(), ask()], NOW)
    book.charge([ask(), ask()], NOW)
    assert book.refusal([ask()], NOW).rule == "all"
    assert book.refusal([ask()], NOW).until == NOW + HOUR


@given(
    log=st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)), max_size=6),
    asked=st.lists(st.integers(1, 30), min_size=1, max_size=3),
    most=st.integers(0, 60),
    evictions=st.integers(0, 4),
)
def test_a_refused_set_is_told_the_first_second_at_which_the_rule_lets_it_go_or_that_this_never_comes(
    log, asked, most, evictions
):
    """Brute force: the rule is asked second by second until all that was charged has fallen out of its window."""
    entries = [(t * SECOND, ask(lost={"gpu": lost * SECOND})) for t, lost in log]
    wanted = [ask(lost={"gpu": lost * SECOND}) for lost in asked]
    for bounds in ({"max_lost": {"gpu": most * SECOND}}, {"max_evictions": evictions}):
        book = ledger(rule(per=60 * SECOND, **bounds), log=entries)
        denial = book.refusal(wanted, 60 * SECOND)
        if denial is not None:
            allowed = [t for t in range(61, 125) if book.allows(wanted, t * SECOND)]
            assert denial.until == (allowed[0] * SECOND if allowed else None)


def test_what_no_window_has_room_for_is_let_go_when_the_rule_rests_and_never_by_a_rule_that_does_not():
    """Two hours of a GPU, where one may be lost a day."""
    large = ask(lost={"gpu": 2 * HOUR})
    small = (NOW - HOUR, ask(lost={"gpu": HOUR // 2}))
    bounds = {"max_lost": {"gpu": HOUR}, "per": 24 * HOUR}
    assert ledger(rule(**bounds), log=[small]).refusal([large], NOW).until is None
    by_day = rule(**bounds, schedule="0 6 * * *", duration=16 * HOUR)
    assert ledger(by_day, log=[small]).refusal([large], NOW).until == parse_time("2026-11-20T22:00:00Z")


def test_charges_can_be_taken_back():
    """As a transaction that is rolled back."""
    book = ledger(rule(max_evictions=1, per=HOUR))
    with book.tentatively():
        book.charge([ask()], NOW)
        assert not book.allows([ask()], NOW)
    assert book.allows([ask()], NOW)


def test_a_rule_for_each_workload_ends_repeat_victims():
    """Two of one workload are too many; one each of two are not."""
    book = ledger(rule(each="workload", max_evictions=2, per=24 * HOUR), log=[(NOW - HOUR, ask("default/a"))])
    assert book.allows([ask("default/a"), ask("default/b"), ask("default/b")], NOW)
    assert not book.allows([ask("default/a"), ask("default/a")], NOW)


def test_causes_restrict_a_rule():
    """What is no concern of the rule is neither refused nor charged."""
    book = ledger(rule(max_evictions=1, per=HOUR, causes=("reschedule",)))
    book.charge([ask(cause="reclaim")], NOW)
    assert book.allows([ask(cause="reschedule")], NOW)
    book.charge([ask(cause="reschedule")], NOW)
    assert not book.allows([ask(cause="reschedule")], NOW)
    assert book.allows([ask(cause="reclaim")], NOW)


def test_a_queue_selects_its_subtree_as_victim_or_as_beneficiary():
    """Leaf upward; the side decides whose queue is looked at."""
    victim = ledger(rule(queue="research", max_evictions=0))
    gain = ledger(rule(queue="research", side="beneficiary", max_evictions=0))
    taken = ask(queues=("vision", "research"), for_queues=("ads",))
    assert not victim.allows([taken], NOW)
    assert gain.allows([taken], NOW)
    assert not gain.allows([ask(queues=("ads",), for_queues=("vision", "research"))], NOW)


def test_an_eviction_whose_queue_nobody_knows_any_more_counts_for_every_queue():
    """No bound is broken for want of knowledge."""
    book = ledger(rule(queue="research", max_evictions=1, per=HOUR), log=[(NOW - 1, ask(queues=None))])
    assert not book.allows([ask(queues=("research",))], NOW)


def test_protected_hours():
    """Nothing by day, in the zone's own hours; by night the rule rests and nothing is charged to it."""
    day = rule(schedule="0 6 * * *", duration=16 * HOUR, time_zone="Europe/Berlin", max_evictions=0)
    book = ledger(day)
    denial = book.refusal([ask()], NOW)
    assert denial.until == parse_time("2026-11-20T21:00:00Z")
    assert book.allows([ask()], parse_time("2026-11-20T21:00:00Z"))


def test_a_schedule_with_a_rate_counts_what_happened_while_it_was_open():
    """Without `per`, the window of the schedule is the window of the rate."""
    book = ledger(rule(schedule="0 6 * * *", duration=16 * HOUR, max_evictions=1))
    book.charge([ask()], parse_time("2026-11-20T05:00:00Z"))
    assert book.allows([ask()], NOW)
    book.charge([ask()], NOW)
    assert not book.allows([ask()], NOW + HOUR)


def test_an_entry_from_the_future_counts_as_now():
    """Clocks differ; a log that is ahead must not open a budget."""
    book = ledger(rule(max_evictions=1, per=HOUR), log=[(NOW + 5 * HOUR, ask())])
    assert not book.allows([ask()], NOW)


def pods(count, down=0, **fields):
    return [LedgerPod(workload="default/web", task=f"web-{i}", up=i >= down, **fields) for i in range(count)]


def web(number, **fields):
    return ask("default/web", f"web-{number}", **fields)


def test_of_a_set_of_pods_only_so_many_are_down_at_a_time():
    """Pods that others disrupt count: one is down already, so of two that may be down one is left."""
    book = ledger(rule(max_unavailable=2), pods=pods(5, down=1))
    assert book.allows([web(1)], NOW)
    assert not book.allows([web(1), web(2)], NOW)
    book.charge([web(1)], NOW)
    assert not book.allows([web(2)], NOW)
    assert book.allows([web(0, up=False)], NOW), "what is down already makes nothing worse"


def test_percentages_round_up_as_in_kubernetes():
    """30% of 7 is 3 for maxUnavailable; 50% of 7 needs 4 up."""
    most = ledger(rule(max_unavailable="30%"), pods=pods(7))
    assert most.allows([web(1), web(2), web(3)], NOW)
    assert not most.allows([web(1), web(2), web(3), web(4)], NOW)
    least = ledger(rule(min_available="50%"), pods=pods(7))
    assert least.allows([web(1), web(2), web(3)], NOW)
    assert not least.allows([web(1), web(2), web(3), web(4)], NOW)


def test_drains_and_stale_gangs_are_charged_but_not_refused_unless_a_rule_names_the_cause():
    """A PodDisruptionBudget refuses them all the same: the API would."""
    forced = ask(cause="reschedule", forced=True)
    book = ledger(rule(max_evictions=0, per=HOUR))
    assert book.allows([forced], NOW)
    assert not ledger(rule(max_evictions=0, causes=("reschedule",))).allows([forced], NOW)
    budget = DisruptionBudget(name="web", max_unavailable=0)
    assert not ledger(pods=pods(3), budgets=[budget]).allows([web(0, forced=True)], NOW)


def test_a_pod_disruption_budget_looks_at_its_own_namespace_and_counts_pods_that_never_started():
    """Kubernetes expects every pod of the controller; our own rules only what has been up."""
    budget = DisruptionBudget(name="web", min_available=3)
    waiting = [*pods(3), LedgerPod(workload="default/web", task="web-3", up=False, started=False)]
    assert not ledger(pods=waiting, budgets=[budget]).allows([web(0)], NOW)
    assert ledger(pods=pods(4), budgets=[budget]).allows([web(0)], NOW)
    assert ledger(pods=pods(3), budgets=[budget]).allows([ask("other/web", "web-0")], NOW)
    assert ledger(rule(max_unavailable=1), pods=waiting).allows([web(0)], NOW)
    strict = DisruptionBudget(name="web", max_unavailable=1)
    assert not ledger(pods=waiting, budgets=[strict]).allows([web(0)], NOW)


def test_a_pod_evicted_for_one_cause_is_down_for_a_rule_about_another():
    """The rule restricts what it refuses, not what is down."""
    book = ledger(rule(max_unavailable=1, causes=("reschedule",)), pods=pods(3))
    book.charge([web(0, cause="reclaim")], NOW)
    assert not book.allows([web(1, cause="reschedule")], NOW)


def test_a_pod_that_is_not_ready_goes_only_where_its_pod_disruption_budget_is_kept():
    """Kubernetes' default (IfHealthyBudget): with fewer up than there have to be, what runs and is not ready stays."""
    kept = ledger(pods=pods(3, down=1), budgets=[DisruptionBudget(name="web", min_available=2)])
    assert kept.allows([web(0, up=False)], NOW)
    broken = ledger(pods=pods(3, down=1), budgets=[DisruptionBudget(name="web", min_available=3)])
    assert not broken.allows([web(0, up=False)], NOW)
    assert broken.allows([web(0, up=False, pending=True)], NOW), "it has not started: the API asks no budget"
    assert ledger(rule(min_available=3), pods=pods(3, down=1)).allows([web(0, up=False)], NOW), "a rule of our own"


def test_a_pod_in_several_pod_disruption_budgets_is_not_evicted():
    """The Eviction API refuses each such eviction with an error, whatever the budgets say."""
    wide = DisruptionBudget(name="all", max_unavailable=3)
    narrow = DisruptionBudget(name="web", max_unavailable=3, selector=LabelSelector(match_labels=(("app", "web"),)))
    book = ledger(pods=pods(4), budgets=[wide, narrow])
    assert book.allows([web(1)], NOW)
    denial = book.refusal([web(1), web(2, labels={"app": "web"})], NOW)
    assert denial.rule == "PodDisruptionBudget default/all and PodDisruptionBudget default/web"
    assert book.allows([web(2, labels={"app": "web"}, up=False, pending=True)], NOW)
    assert ledger(pods=pods(4), budgets=[narrow]).allows([web(2, labels={"app": "web"})], NOW)
