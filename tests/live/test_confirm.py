"""Nothing is evicted on a first look."""

from __future__ import annotations

from tenure.engine.plan import Plan, PlanStep
from tenure.live.confirm import Confirmation

EVICT = PlanStep("evict", "default/a", "a-0", "n", 0, 0, cause="reclaim", beneficiary="default/b")
PROMISE = PlanStep("nominate", "default/b", "b-0", "n", 0, 0)
BIND = PlanStep("bind", "default/c", "c-0", "m", 0, 1)
PODS = {("default/a", 0): "uid-a", ("default/b", 0): "uid-b", ("default/c", 0): "uid-c"}


def plan(*steps):
    made = Plan(0, steps=list(steps))
    made.requeue.not_before["default/a"] = 1
    return made


def actions(made):
    return [s.action for s in made.steps]


def test_a_first_plan_only_places():
    """Bindings are carried out at once; evictions, promises and cooldowns are not."""
    allowed = Confirmation().of(plan(EVICT, PROMISE, BIND), PODS)
    assert actions(allowed) == ["bind"]
    assert not allowed.requeue.not_before


def test_a_second_cycle_that_says_the_same_lets_it_go_and_from_then_on_nothing_is_held():
    """What two cycles want is done, and whatever later ones want as well."""
    confirmation = Confirmation()
    confirmation.of(plan(EVICT, PROMISE), PODS)
    assert actions(confirmation.of(plan(EVICT, PROMISE, BIND), PODS)) == ["evict", "nominate", "bind"]
    other = EVICT._replace(task_index=1, task="a-1")
    assert actions(confirmation.of(plan(other), PODS)) == ["evict"]


def test_a_second_cycle_that_wants_another_victim_is_a_first_look_again():
    """Another pod, another node, another cause or somebody else to benefit: each has to be confirmed."""
    for change in ({"node": "m"}, {"cause": "preempt"}, {"beneficiary": "default/c"}, {"workload": "default/c"}):
        confirmation = Confirmation()
        confirmation.of(plan(EVICT), PODS)
        assert actions(confirmation.of(plan(EVICT._replace(**change)), PODS)) == []
        assert not confirmation.done


def test_whoever_has_others_evicted_in_each_cycle_holds_up_nobody_else():
    """A set that two cycles want is carried out, with its promise, beside one that is new in each of them."""
    confirmation = Confirmation()
    for number in range(4):
        noise = EVICT._replace(
            workload="evil/g", task=f"g-{number}", task_index=number, cause="stale-gang", beneficiary=None
        )
        other = PROMISE._replace(workload="evil/h", task="h-0")
        allowed = confirmation.of(plan(EVICT, PROMISE, noise, other, BIND), PODS)
        assert actions(allowed) == (["bind"] if number == 0 else ["evict", "nominate", "bind"])
        assert {s.workload for s in allowed.steps if s.action == "evict"} <= {"default/a"}
        assert allowed.requeue.not_before == ({} if number == 0 else {"default/a": 1})


def test_a_pod_that_was_replaced_is_another_one():
    """The name alone tells nothing: the pod that came after it has to be confirmed."""
    confirmation = Confirmation()
    confirmation.of(plan(EVICT), PODS)
    assert actions(confirmation.of(plan(EVICT), {**PODS, ("default/a", 0): "uid-new"})) == []


def test_two_cycles_without_evictions_confirm_as_well():
    """Where nothing was to be evicted on the first look and nothing is on the second, the warm-up is over."""
    confirmation = Confirmation()
    confirmation.of(plan(BIND), PODS)
    assert not confirmation.done
    confirmation.of(plan(BIND), PODS)
    assert confirmation.done
