"""Of which workloads it is looked at next why they wait: the new ones first, and nobody is forgotten."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from tenure.clusters.kubernetes import explanation_queue
from tenure.clusters.kubernetes.explanation_queue import AGAIN, AGAIN_IF_CHANGED, ExplanationQueue
from tenure.model.workload import Phase


class Clock:
    def __init__(self):
        self.now = 1000.0

    def monotonic(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    found = Clock()
    monkeypatch.setattr(explanation_queue, "time", found)
    return found


def view(*keys, saying=(), changed=frozenset()):
    """Give what is observed: workloads of one pod that wait, and those of them that say why."""
    pods = {
        key: (SimpleNamespace(task=SimpleNamespace(phase=Phase.PENDING), waits=("x" if key in saying else "", "")),)
        for key in keys
    }
    return SimpleNamespace(waiting=frozenset(keys), pods=pods, changed=changed)


@pytest.mark.usefixtures("clock")
def test_who_says_nothing_yet_is_looked_at_and_it_is_known_that_more_are_left():
    queue, seen = ExplanationQueue(), view("a", "b", "c", "d", saying=("d",))
    assert list(queue.take(seen, 2)) == ["a", "b"]
    assert queue.has_more
    assert list(queue.take(seen, 3)) == ["c", "d", "a"]
    assert not queue.has_more


def test_who_says_why_is_looked_at_anew_after_a_while(clock):
    queue, seen = ExplanationQueue(), view("a", "b", saying=("a", "b"))
    assert list(queue.take(seen, 9)) == ["a", "b"]
    assert not queue.has_more
    clock.now += AGAIN - 1
    assert list(queue.take(seen, 9)) == []
    clock.now += 1
    assert list(queue.take(seen, 9)) == ["a", "b"]


def test_what_was_not_asked_for_comes_first_the_next_time(clock):
    queue, seen = ExplanationQueue(), view(*"abcdef", saying="abcdef")
    looked = []
    for _ in range(3):
        taken = queue.take(seen, 5)
        looked.append([next(taken), next(taken)])
        taken.close()
        clock.now += AGAIN
    assert looked == [["a", "b"], ["c", "d"], ["e", "f"]]


def test_who_changed_is_looked_at_soon(clock):
    queue = ExplanationQueue()
    assert list(queue.take(view("a", "b", saying="ab"), 9)) == ["a", "b"]
    clock.now += 1
    assert list(queue.take(view("a", "b", saying="ab", changed={"a"}), 9)) == []
    clock.now += AGAIN_IF_CHANGED
    assert list(queue.take(view("a", "b", saying="ab"), 9)) == ["a"]
    clock.now += AGAIN_IF_CHANGED
    assert list(queue.take(view("a", "b", saying="ab"), 9)) == []


def test_what_waits_no_longer_is_no_more_than_what_waits(clock):
    queue = ExplanationQueue()
    list(queue.take(view("a", "b", changed={"a"}), 1))
    assert queue.has_more
    assert list(queue.take(view("c", saying="c"), 9)) == ["c"]
    assert not queue.has_more
    clock.now += AGAIN_IF_CHANGED
    assert list(queue.take(view("a", "c", saying="ac"), 9)) == []
