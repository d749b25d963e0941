"""EASY backfilling on many nodes, written from the documentation of ``backfill: easy``: plain, slow, no engine code."""

from __future__ import annotations

from dataclasses import replace

from tests.engine.reference import Reference

from tenure.model.values.resources import CPU
from tenure.model.workload import Phase


class EasyPass(Reference):
    """One pass over a cluster whose tasks ask for CPUs only."""

    def __init__(self, cluster):
        super().__init__(cluster)
        self.running = {w.key: w.started_at for w in cluster.workloads if w.started_at is not None}

    def ends(self):
        """Running workloads in the order in which they are released in thought."""
        found = []
        for key, started in self.running.items():
            w = self.workloads[key]
            if w.expected_runtime:
                amount = sum(dict(w.tasks[i].spec.requests)[CPU] for k, i in self.places if k == key)
                found.append((started + w.expected_runtime, amount, key))
        return sorted(found)

    def room(self):
        return {n.name: self.free(n.name, CPU, "now") for n in self.nodes}

    def reserve(self, w, indices):
        """When it will fit, and what is left beside it then; None if that is never."""
        free = self.room()
        for end, _, key in self.ends():
            for (k, i), (node, _, _) in self.places.items():
                if k == key:
                    free[node] += dict(self.workloads[k].tasks[i].spec.requests)[CPU]
            extra = dict(free)
            if all(self._take(extra, dict(w.tasks[i].spec.requests)[CPU]) for i in indices):
                return max(end, self.cluster.now), extra
        return None

    def _take(self, free, amount):
        """Take an amount on the fullest node that has it."""
        fits = [(left, name) for name, left in free.items() if left >= amount]
        if fits:
            free[min(fits)[1]] -= amount
        return bool(fits)

    def remaining(self, w, indices, extra):
        """Place it on nodes that have the room now and in ``extra``; None if it does not fit, else what is left."""
        extra, free, chosen = dict(extra), self.room(), []
        for i in indices:
            amount = dict(w.tasks[i].spec.requests)[CPU]
            fits = [(left, name) for name, left in free.items() if left >= amount and extra[name] >= amount]
            if not fits:
                return None
            name = min(fits)[1]
            free[name] -= amount
            extra[name] -= amount
            chosen.append((i, name))
        for i, name in chosen:
            self.places[w.key, i] = (name, (), ("now", "then"))
            self.phase[w.key, i] = Phase.BOUND
            self.steps.append(("bind", w.key, w.tasks[i].name, name, ()))
        return extra

    def fits(self, w, indices):
        """Whether there is room, whatever is promised to others."""
        saved = dict(self.places), dict(self.phase), list(self.steps)
        placed = self.place(w, indices)
        self.places, self.phase, self.steps = saved
        return placed

    def run(self):
        passed, blocked, promise = set(), [], None
        while (turn := self.head(None, passed)) is not None:
            w, indices = turn
            started = False
            if not self.allowed(w, self.asked(w, indices)):
                pass
            elif not self.fits(w, indices):
                blocked.append((w, indices))
            else:
                while promise is None and blocked:
                    promise = self.reserve(*blocked[0])
                    blocked = blocked if promise else blocked[1:]
                if promise is None or (w.expected_runtime and self.cluster.now + w.expected_runtime <= promise[0]):
                    started = self.place(w, indices)
                else:
                    left = self.remaining(w, indices, promise[1])
                    started = left is not None
                    promise = (promise[0], left) if started else promise
            if started:
                self.running[w.key] = self.cluster.now
            else:
                passed.add(w.key)
        return self.steps


def simulate(cluster, jobs):
    """Replay jobs (workload, runtime in µs); gives the time and the nodes of every start, ends before arrivals."""
    starts, ends, waiting = {}, {}, sorted(jobs, key=lambda job: (job[0].created_at, job[0].key))
    runtime = {w.key: r for w, r in jobs}
    while waiting or ends:
        now = min([w.created_at for w, _ in waiting[:1]] + list(ends.values()))
        left = tuple(w for w in cluster.workloads if ends.get(w.key) != now)
        ends = {key: at for key, at in ends.items() if at != now}
        came = tuple(w for w, _ in waiting if w.created_at == now)
        waiting = [job for job in waiting if job[0].created_at != now]
        cluster = replace(cluster, now=now, workloads=(*left, *came))
        for _, key, task, node, _ in EasyPass(cluster).run():
            starts.setdefault(key, (now, {}))[1][task] = node
            ends[key] = now + runtime[key]
        cluster = replace(cluster, workloads=tuple(_started(w, starts) for w in cluster.workloads))
    return starts


def _started(w, starts):
    if w.key not in starts or w.started_at is not None:
        return w
    at, nodes = starts[w.key]
    tasks = tuple(replace(t, phase=Phase.RUNNING, node=nodes[t.name]) for t in w.tasks)
    return replace(w, started_at=at, tasks=tasks)
