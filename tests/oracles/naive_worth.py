"""The best that evictions could do, by trying every decision with all run times known.

One kind of job, one GPU each. Jobs of queue ``due`` are within its guaranteed, those of ``busy`` borrow. Whoever waits
is served in order, ``due`` first; a job that is evicted starts anew. It shares no code with the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Job(NamedTuple):
    """A job: whether it is due, when it comes, and for how long it runs (s)."""

    name: str
    due: bool
    comes: int
    runs: int


@dataclass
class World:
    """What runs since when, what waits, what is still to come; ``cost`` so far: waits of due jobs, and work lost."""

    now: int
    free: int
    coming: list[Job]
    running: dict[Job, int] = field(default_factory=dict)
    waiting: list[Job] = field(default_factory=list)
    cost: int = 0

    def copy(self):
        return World(self.now, self.free, list(self.coming), dict(self.running), list(self.waiting), self.cost)

    def serve(self):
        """Start who fits, due jobs first, then by arrival."""
        self.waiting.sort(key=lambda j: (not j.due, j.comes))
        while self.free and self.waiting:
            self._start(self.waiting.pop(0))

    def evict(self, victim):
        """Evict one job for the first due one."""
        self.cost += self.now - self.running.pop(victim)
        self.free += 1
        self.waiting.append(victim)
        self.serve()

    def _start(self, job):
        self.free -= 1
        self.running[job] = self.now
        if job.due:
            self.cost += self.now - job.comes

    def advance(self):
        """Go on to the next end or arrival; False if nothing is left to happen."""
        times = [since + job.runs for job, since in self.running.items()] + [j.comes for j in self.coming]
        if not times:
            return False
        self.now = min(times)
        for job, since in list(self.running.items()):
            if since + job.runs == self.now:
                del self.running[job]
                self.free += 1
        self.waiting += [j for j in self.coming if j.comes == self.now]
        self.coming = [j for j in self.coming if j.comes > self.now]
        self.serve()
        return True


def best_cost(jobs, gpus):
    """Give the least sum of waits of due jobs and of work that is destroyed, in GPU-seconds."""
    return _best(World(-1, gpus, list(jobs)), 1 << 40)


def _best(world, bound):
    while world.advance():
        if world.cost >= bound:
            return bound
        if any(j.due for j in world.waiting):
            for victim in [j for j in world.running if not j.due]:
                other = world.copy()
                other.evict(victim)
                bound = min(bound, _decide_on(other, bound))
    return min(bound, world.cost)


def _decide_on(world, bound):
    """Go on at the same moment: more may be evicted."""
    if any(j.due for j in world.waiting):
        for victim in [j for j in world.running if not j.due]:
            other = world.copy()
            other.evict(victim)
            bound = min(bound, _decide_on(other, bound))
    return _best(world, bound)
