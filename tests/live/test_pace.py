"""When the loop looks again: soon after a write was refused, then ever less often."""

from __future__ import annotations

from types import SimpleNamespace

from tests.builders import NOW, cluster, node, workload

from tenure.clusters.kubernetes.client.requests import ApiError
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.live.loop import Loop, Pace


class Refusing:
    """A cluster on which nothing changes, and on which the first writes after the second look are refused."""

    fenced = PermissionError
    has_more_to_explain = False

    def __init__(self, refused):
        self.refused, self.looks, self.waited = refused, 0, []

    def wait(self, seconds):
        self.waited.append(seconds)

    def wake(self):
        pass

    def ready(self):
        return True

    def stands(self, _plan):
        return True

    def observe(self, _now):
        seen = cluster([node("n", cpu=1)], [workload("w")])
        return SimpleNamespace(cluster=seen, identities={}, wake=None)

    def carry_out(self, plan, _view):
        self.looks += 1
        if self.looks in self.refused:
            conflict = ApiError(409, "Conflict", "the object has been modified")
            return Outcome(failures=[Failure(s.action, s.workload, s.task, conflict) for s in plan.steps])
        return Outcome(done=list(plan.steps))

    def unexplained(self, _view, _most):
        return []

    def tell(self, _notes, _waiting, _view):
        pass


def pauses(refused, looks, pace):
    """Give how long the loop waits before each look."""
    found = Refusing(refused)
    loop = Loop(found, lambda: 1, pace=pace, wall=lambda: NOW, told=lambda _: found.looks == looks and loop.stop())
    loop.run()
    return found.waited


def test_what_was_refused_is_tried_again_soon_and_then_ever_less_often():
    """It may have been refused for a change that calls for no decision, so that nothing would wake the loop."""
    pace = Pace(least=0.001, most=0.03, soon=0.03, share=1e9)
    assert pauses({3, 4, 5}, 7, pace) == [0.0, 0.001, 0.03, 0.002, 0.004, 0.008, 0.03]
    assert pauses(set(range(3, 100)), 30, pace)[-1] == 0.03
