"""Allocation pod by pod, word for word from the specification: plain lists, everything worked out anew at each step.

No engine code; fair shares come from `tenure.fairness`, which has oracles of its own.
"""

from __future__ import annotations

from fractions import Fraction
from math import inf

from tenure.fairness.shares import fair_shares
from tenure.fairness.tree import tree_of
from tenure.model.values.resources import CPU, GPU, MEMORY, PODS
from tenure.model.workload import Phase

NOW, THEN = "now", "then"
REPLACE, START, GROW = range(3)
ACTIVE = (Phase.BOUND, Phase.RUNNING, Phase.SUCCEEDED)
GRACE = 30_000_000


class Reference:
    """One pass of ``allocate``, without backfill, for tasks that ask for resources only."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.nodes = sorted((n for n in cluster.nodes if n.ready), key=lambda n: n.name)
        self.by_name = {n.name: n for n in cluster.nodes}
        self.steps = []
        self.places = {}  # (workload, index) -> node, devices, views in which it holds them
        self.phase = {}
        for w in cluster.workloads:
            for i, t in enumerate(w.tasks):
                self.phase[w.key, i] = t.phase
                if t.phase in (Phase.BOUND, Phase.RUNNING):
                    self.places[w.key, i] = (t.node, t.devices, (NOW, THEN))
                elif t.phase is Phase.TERMINATING:
                    ends = t.terminating_since + (GRACE if t.grace_period is None else t.grace_period)
                    views = (NOW, THEN) if cluster.now >= ends else (NOW,)
                    self.places[w.key, i] = (t.node, t.devices, views)
        self.workloads = {w.key: w for w in cluster.workloads}
        self.resources = sorted(
            {r for n in cluster.nodes for r in n.allocatable}
            | {r for q in cluster.queues for r in (*q.guaranteed, *q.max)}
            | {r for w in cluster.workloads for t in w.tasks for r, _ in t.spec.requests}
        )
        self.queues = list(cluster.queues)
        self.order_queues()
        self.shares()

    # -- room -----------------------------------------------------------------------------------------------------

    def free(self, node, resource, view):
        """What is free of a resource other than GPUs."""
        there = self.by_name[node].allocatable.get(resource, 1 << 60 if resource == PODS else 0)
        for (key, index), (where, _, views) in self.places.items():
            if where == node and view in views:
                asked = dict(self.workloads[key].tasks[index].spec.requests).get(resource, 0)
                there -= asked + (resource == PODS)
        return there

    def devices(self, node, view):
        """Milli-GPU free on each device."""
        free = [1000] * self.by_name[node].allocatable.get(GPU, 0)
        for (key, index), (where, held, views) in self.places.items():
            if where == node and view in views:
                for device in held:
                    free[device] -= self.milli(self.workloads[key].tasks[index].spec, node) or 1000
        return free

    def milli(self, spec, node):
        """Milli-GPU of one device: None for whole GPUs, 0 where the part does not fit."""
        if spec.gpu_share is None:
            return None
        if spec.gpu_share.milli:
            return spec.gpu_share.milli
        memory = self.by_name[node].gpu_memory or 0
        return -(-spec.gpu_share.memory * 1000 // memory) if memory >= spec.gpu_share.memory else 0

    def usable(self, spec, node, view):
        """Devices that the task may take, None if the node does not fit it; in ``NOW`` it must fit then as well."""
        views = (NOW, THEN) if view == NOW else (THEN,)
        wanted = {r: a for r, a in spec.requests if a and r != GPU}
        wanted[PODS] = wanted.get(PODS, 0) + 1
        if any(self.free(node, r, v) < a for v in views for r, a in wanted.items()):
            return None
        free = [min(pair) for pair in zip(*(self.devices(node, v) for v in views), strict=True)]
        whole = dict(spec.requests).get(GPU, 0)
        milli, count = (1000, whole) if spec.gpu_share is None else (self.milli(spec, node), spec.gpu_share.devices)
        fits = [i for i, have in enumerate(free) if milli and have >= milli]
        return fits if len(fits) >= count else None

    # -- score ----------------------------------------------------------------------------------------------------

    def best(self, spec):
        """Node, devices, and whether it can be bound there now."""
        asks_gpu = dict(spec.requests).get(GPU) or spec.gpu_share
        options = []
        for node in self.nodes:
            bindable = self.usable(spec, node.name, NOW)
            fits = self.usable(spec, node.name, THEN) if bindable is None else bindable
            if fits is None:
                continue
            later = self.devices(node.name, THEN)
            part = spec.gpu_share is not None
            in_use = part and sum(later[i] < 1000 for i in fits) >= spec.gpu_share.devices
            if asks_gpu:
                free = sum(later)
            else:
                capacity = node.allocatable.get(CPU, 0)
                free = Fraction(self.free(node.name, CPU, THEN), capacity) if capacity else 0
            packed = self.cluster.settings.placement == "binpack"
            rank = (not in_use, free) if packed else (in_use, -free)
            chosen = ()
            if part:
                chosen = sorted(fits, key=lambda i: (later[i] if packed else -later[i], i))[: spec.gpu_share.devices]
            elif asks_gpu:
                chosen = fits[: dict(spec.requests)[GPU]]
            options.append(((bindable is None, *rank, node.name), tuple(sorted(chosen))))
        if not options:
            return None
        (waits, *_, name), devices = min(options)
        return name, devices, not waits

    # -- queues ---------------------------------------------------------------------------------------------------

    def order_queues(self):
        ordered, left = [], sorted(self.queues, key=lambda q: q.name)
        while left:
            ready = [q for q in left if q.parent is None or q.parent in {o.name for o in ordered}]
            ordered += ready
            left = [q for q in left if q not in ready]
        self.queues = ordered
        self.children = {q.name: [c.name for c in ordered if c.parent == q.name] for q in ordered}
        self.queue = {q.name: q for q in ordered}

    def path(self, name):
        while name is not None:
            yield name
            name = self.queue[name].parent

    def amount(self, spec, node=None):
        """What a task counts for its queue, pending or on a node."""
        found = dict.fromkeys(self.resources, 0)
        for r, a in spec.requests:
            found[r] = a * (1000 if r == GPU else 1)
        if spec.gpu_share is not None and GPU in found:
            # the smallest GPU that would do, while it is pending
            sizes = [self.milli(spec, n) for n in self.by_name if self.by_name[n].allocatable.get(GPU)]
            milli = self.milli(spec, node) if node else max(filter(None, sizes), default=1000)
            found[GPU] = milli * spec.gpu_share.devices
        if any(PODS in n.allocatable for n in self.nodes) and PODS in found:
            found[PODS] += 1
        return found

    def allocated(self, name, *, fixed=False):
        """What the workloads below a queue hold; ``fixed``: those that are not preemptible."""
        total = dict.fromkeys(self.resources, 0)
        for (key, index), (node, _, views) in self.places.items():
            w = self.workloads[key]
            counts = THEN in views and self.phase[key, index] is not Phase.TERMINATING
            if counts and name in self.path(w.queue) and not (fixed and w.is_preemptible):
                for r, a in self.amount(w.tasks[index].spec, node).items():
                    total[r] += a
        return total

    def guaranteed(self, name):
        found = dict(self.queue[name].guaranteed)
        below = [self.guaranteed(c) for c in self.children[name]]
        for r in {r for b in below for r in b}:
            found.setdefault(r, sum(b.get(r, 0) for b in below))
        return found

    def shares(self):
        """Fair share and allocatable share as they are before anything is placed."""
        self.total = {
            r: sum(n.allocatable.get(r, 0) for n in self.nodes) * (1000 if r == GPU else 1) for r in self.resources
        }
        if PODS in self.total and any(PODS not in n.allocatable for n in self.nodes):
            self.total[PODS] = 1 << 60
        request = []
        for q in self.queues:
            held = self.allocated(q.name)
            for w in self.cluster.workloads:
                if w.queue == q.name:
                    for i, t in enumerate(w.tasks):
                        if self.phase[w.key, i] is Phase.PENDING:
                            for r, a in self.amount(t.spec).items():
                                held[r] += a
            request.append([held[r] for r in self.resources])
        fair = fair_shares(tree_of(self.queues, self.resources), [self.total[r] for r in self.resources], request)
        self.fair, self.allocatable = {}, {}
        for q, row in zip(self.queues, fair, strict=True):
            share = self.fair[q.name] = dict(zip(self.resources, row, strict=True))
            floor = self.guaranteed(q.name)
            self.allocatable[q.name] = {
                r: min(q.max.get(r, inf), max(floor.get(r, 0), share[r])) for r in self.resources
            }
        named = {r for q in self.queues for r in (*q.guaranteed, *q.max)}
        self.compared = [r for r in self.resources if r in (named or {GPU, CPU, MEMORY})]

    def key(self, name, step):
        """Rules 1 to 8 between sibling queues."""
        queue, share = self.queue[name], self.allocatable[name]
        have = self.allocated(name)
        then = {r: have[r] + step[r] for r in self.resources}
        floor = self.guaranteed(name)
        asked = [r for r in self.resources if step[r] and r in floor]
        over = any(have[r] and have[r] > self.fair[name][r] for r in self.compared)
        within = bool(asked) and all(then[r] <= floor[r] for r in asked)

        def dominant(held):
            parts = {r: (Fraction(held[r], share[r]) if share[r] else inf) for r in self.compared if held[r]}
            return max(parts.values(), default=0), parts

        later, parts = dominant(then)
        first = [r for r in sorted(parts, key=_rank) if parts[r] == later]
        size = (
            Fraction(share[first[0]], self.total[first[0]]) if first and self.total[first[0]] else (inf if first else 0)
        )
        created = inf if queue.created_at is None else queue.created_at
        return over, not within, -queue.priority, later, dominant(have)[0], size, created, name

    # -- steps ----------------------------------------------------------------------------------------------------

    def step(self, w):
        """What a workload asks for next: its kind, the tasks, and the surplus that it has relative to its core."""
        indices = range(len(w.tasks))
        core = len(w.tasks) if w.min_member is None else w.min_member
        started = [i for i in indices if self.phase[w.key, i] in ACTIVE]
        held = [i for i in indices if i in started or self.is_promised(w, i)]
        waiting = [i for i in indices if self.phase[w.key, i] is Phase.PENDING and i not in held]
        missing = core - len(held)
        if missing <= 0:
            if not started or not waiting:
                return None
            return (GROW if len(w.tasks) > 1 else START), waiting[:1], Fraction(len(held) - core, core)
        if started:
            return (REPLACE, waiting[:1], 0) if waiting else None
        first = [i for i in indices if self.phase[w.key, i] in (Phase.PENDING, Phase.GATED)][:missing]
        if len(first) < missing or any(self.phase[w.key, i] is Phase.GATED for i in first):
            return None
        return START, first, 0

    def is_promised(self, w, i):
        place = self.places.get((w.key, i))
        return place is not None and NOW not in place[2]

    def next_of(self, leaf, passed):
        """The first workload of a leaf that waits and was not passed over."""
        options = []
        for w in self.cluster.workloads:
            step = self.step(w) if w.queue == leaf and w.key not in passed else None
            if step is not None:
                options.append(((-w.priority, step[0], step[2], w.created_at, w.key), w, step[1]))
        return min(options, key=lambda o: o[0])[1:] if options else None

    def head(self, name, passed):
        """Whose turn it is below a queue (None: everywhere)."""
        children = [q.name for q in self.queues if q.parent == name]
        if name is not None and not children:
            return self.next_of(name, passed)
        heads = {child: self.head(child, passed) for child in children}
        waiting = [child for child in children if heads[child] is not None]
        if not waiting:
            return None
        return heads[min(waiting, key=lambda c: self.key(c, self.asked(*heads[c])))]

    def asked(self, w, indices):
        total = dict.fromkeys(self.resources, 0)
        for i in indices:
            for r, a in self.amount(w.tasks[i].spec).items():
                total[r] += a
        return total

    def allowed(self, w, asked):
        """Whether every maximum and, for what nobody may take back, every guarantee admits it."""
        path = list(self.path(w.queue))
        for name in path:
            have = self.allocated(name)
            if any(a and have[r] + a > self.queue[name].max.get(r, inf) for r, a in asked.items()):
                return False
        if w.is_preemptible:
            return True
        for name in path:
            have, floor = self.allocated(name, fixed=True), self.guaranteed(name)
            if any(a and r in floor and have[r] + a > floor[r] for r, a in asked.items()):
                return False
        return True

    def place(self, w, indices):
        """All of them or none; where one has to wait, all of them are promised their places."""
        done = []
        for i in indices:
            found = self.best(w.tasks[i].spec)
            if found is None:
                for j in done:
                    del self.places[w.key, j]
                return False
            node, devices, bindable = found
            self.places[w.key, i] = (node, devices, (NOW, THEN) if bindable else (THEN,))
            done.append(i)
        if any(NOW not in self.places[w.key, i][2] for i in done):
            for i in done:
                self.places[w.key, i] = (*self.places[w.key, i][:2], (THEN,))
        for i in done:
            node, devices, views = self.places[w.key, i]
            if NOW in views:
                self.phase[w.key, i] = Phase.BOUND
            self.steps.append(("bind" if NOW in views else "nominate", w.key, w.tasks[i].name, node, devices))
        return True

    def run(self):
        """Serve until nobody can be served any more."""
        passed = set()
        while True:
            turn = self.head(None, passed) if self.queues else self.next_of("default", passed)
            if turn is None:
                return self.steps
            w, indices = turn
            if not (self.allowed(w, self.asked(w, indices)) if self.queues else True) or not self.place(w, indices):
                passed.add(w.key)


def _rank(resource):
    """The order in which amounts are looked at where two are equally dominant."""
    first = [CPU, MEMORY]
    return (first.index(resource), "") if resource in first else (3 if resource == GPU else 2, resource)
