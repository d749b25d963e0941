"""Who has to go for a contender, word for word from the specification: every set of victims is tried.

It stands on the naive allocator of `tests.engine.reference` and the second reading of the rules in
`tests.properties.taking_checker`, and shares no code with the search. GPUs alone, whole, without subgroups.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations
from types import SimpleNamespace

from tests.engine.reference import NOW, THEN, Reference
from tests.properties.taking_checker import GPU, HELD, asked, broken

from tenure.model.workload import Phase

SECOND = 1_000_000


class Playing(Reference):
    """The ordinary order after some tasks were evicted: they hold their places now, and wait again."""

    def __init__(self, cluster, gone):
        super().__init__(cluster)
        self.left = {}
        for key, index in gone:
            node, devices, _ = self.places.pop((key, index))
            self.left[key, index] = node, devices
            self.workloads[f"~{key}"] = self.workloads[key]
            self.places[f"~{key}", index] = (node, devices, (NOW,))
            self.phase[f"~{key}", index] = Phase.TERMINATING
            self.phase[key, index] = Phase.PENDING

    def place(self, w, indices):
        """An evicted task goes back to its own place if that is free, and is bound nowhere before it has left."""
        home = {i: self.left[w.key, i] for i in indices if (w.key, i) in self.left}
        for i, (node, devices) in home.items():
            fits = self.usable(w.tasks[i].spec, node, THEN)
            if fits is not None:
                self.places[w.key, i] = (node, tuple(fits[: len(devices)]), (THEN,))
        rest = [i for i in indices if (w.key, i) not in self.places]
        if rest and not super().place(w, rest):
            for i in home:
                self.places.pop((w.key, i), None)
            return False
        for i in indices if home else ():
            self.places[w.key, i] = (*self.places[w.key, i][:2], (THEN,))
            self.phase[w.key, i] = Phase.PENDING
        return True


def with_devices(workloads):
    """Let all that runs say which devices it holds, counted up on each node."""
    given, found = {}, []
    for workload in workloads:
        tasks = []
        for task in workload.tasks:
            count = dict(task.spec.requests).get(GPU, 0) if task.node else 0
            first = given.get(task.node, 0)
            given[task.node] = first + count
            tasks.append(replace(task, devices=tuple(range(first, first + count))))
        found.append(replace(workload, tasks=tuple(tasks)))
    return found


def core(workload):
    """Number of tasks of the core."""
    return len(workload.tasks) if workload.min_member is None else workload.min_member


def pieces(cluster, contender):
    """What may be taken singly or as a whole: keys and numbers of tasks."""
    found = []
    for w in cluster.workloads:
        held = [i for i, t in enumerate(w.tasks) if t.phase in HELD]
        if w is contender or not held:
            continue
        surplus = held[core(w) :] if len(held) > core(w) else []
        found += [((w.key, i),) for i in surplus]
        found.append(tuple((w.key, i) for i in held))
    return found


def cost(cluster, task):
    """Work that evicting a task destroys: GPUs times the time since its start, in GPU-seconds."""
    workload = next(w for w in cluster.workloads if w.key == task[0])
    own = workload.tasks[task[1]]
    start = workload.created_at if workload.started_at is None else workload.started_at
    if own.started_at is not None and own.started_at > start:
        start = own.started_at
    return asked(own) * (cluster.now - start) // 1000 / SECOND


def verdict(cluster, fair, contender, cause, gone):
    """Play a set through: whether it pays. Without it the contender has no place, or its queue may hold no more."""
    played = Playing(cluster, gone)
    played.run()
    wanted = range(core(contender))
    if any((contender.key, i) not in played.places for i in wanted):
        return False
    if any(played.places.get(t, (None,))[0] == node for t, (node, _) in played.left.items()):
        return False  # somebody wins his place back: a smaller set would do, or none
    names = {w.key: w for w in cluster.workloads}

    def step(action, key, index):
        return SimpleNamespace(
            action=action, workload=key, task_index=index, cause=cause if action == "evict" else None,
            beneficiary=contender.key if action == "evict" else None, task=names[key].tasks[index].name,
        )  # fmt: skip

    landed = [t for t in played.left if t in played.places]
    steps = [step("evict", *t) for t in gone] + [step("nominate", contender.key, i) for i in wanted]
    if broken(cluster, steps + [step("nominate", *t) for t in landed], fair):
        return False
    return not any(takes_back(cluster, fair, cause, names[key], contender, played) for key in {k for k, _ in gone})


def takes_back(cluster, fair, cause, victim, contender, played):
    """Whether a victim that waits could take the contender's place by the same cause, runtimes aside."""
    waits = [i for i, t in enumerate(victim.tasks) if (victim.key, i) not in played.places]
    if not waits:
        return False
    if cause == "preempt":
        return victim.priority > contender.priority
    if victim.queue == contender.queue or not contender.is_preemptible:
        return False
    after = after_of(cluster, played)
    names = {w.key: w for w in after.workloads}
    needed = waits[: max(1, core(victim) - sum(t.phase in HELD for t in names[victim.key].tasks))]
    alone = replace(names[victim.key], tasks=tuple(names[victim.key].tasks[i] for i in needed), min_member=len(needed))
    held = tuple(t for t in names[victim.key].tasks if t.phase in HELD)
    rest = replace(names[victim.key], name=f"{victim.name}-rest", tasks=held, min_member=None)
    free = replace(
        after, workloads=(rest, *(alone if w.key == victim.key else w for w in after.workloads)),
        settings=replace(after.settings, reclaim_min_runtime=0),
        queues=tuple(replace(q, reclaim_min_runtime=None) for q in after.queues),
    )  # fmt: skip
    steps = [
        SimpleNamespace(action="evict", workload=contender.key, task_index=i, cause="reclaim", beneficiary=victim.key)
        for i in range(core(contender))
    ]
    steps += [
        SimpleNamespace(action="nominate", workload=victim.key, task_index=i, cause=None, beneficiary=None)
        for i in range(len(needed))
    ]
    return not broken(free, steps, fair)


def after_of(cluster, played):
    """The cluster as it is once everything has left and arrived."""
    workloads = []
    for w in cluster.workloads:
        tasks = [
            replace(t, phase=Phase.RUNNING, node=played.places[w.key, i][0])
            if (w.key, i) in played.places
            else replace(t, phase=Phase.PENDING, node=None, devices=())
            for i, t in enumerate(w.tasks)
        ]
        workloads.append(replace(w, tasks=tuple(tasks)))
    return replace(cluster, workloads=tuple(workloads))


def best_set(cluster, fair, contender, cause):
    """Order and tasks of the best sets that pay, equal but for age and name; None if none does."""
    names = {w.key: w for w in cluster.workloads}
    units = [p for p in pieces(cluster, contender) if (names[p[0][0]].queue == contender.queue) == (cause == "preempt")]
    valid = {}
    for chosen in chain.from_iterable(combinations(units, size) for size in range(1, len(units) + 1)):
        gone = tuple(chain(*chosen))
        if len(set(gone)) == len(gone) and verdict(cluster, fair, contender, cause, gone):
            valid[chosen] = gone
    lowest = {}
    for unit in units:
        w = names[unit[0][0]]
        lowest[w.queue] = min(w.priority, lowest.get(w.queue, w.priority))
    ranks = {c: _rank(cluster, names, c) for c in valid if not _refused(names, lowest, c, valid)}
    least = min(ranks.values(), default=None)
    return None if least is None else (least, [frozenset(valid[c]) for c in ranks if ranks[c] == least])


def _used(names, lowest, chosen, queue):
    """What a set takes of each priority inside one queue, but of the lowest that there is: of that, cost decides."""
    found = {}
    for unit in chosen:
        w = names[unit[0][0]]
        if w.queue == queue and w.priority > lowest[queue]:
            found[w.priority] = found.get(w.priority, 0) + sum(asked(w.tasks[i]) for _, i in unit)
    return sorted(found.items(), reverse=True)


def _refused(names, lowest, one, valid):
    """Whether another set that pays differs inside one queue only, and uses lower priorities there."""
    for other in valid:
        differ = {names[unit[0][0]].queue for unit in set(one) ^ set(other)}
        if len(differ) == 1 and _used(names, lowest, other, *differ) < _used(names, lowest, one, *differ):
            return True
    return False


def _rank(cluster, names, chosen):
    """Order sets by queue priority, cost, cores and tasks."""
    priority = {q.name: q.priority for q in cluster.queues}
    tasks = list(chain(*chosen))
    level = max(priority[names[k].queue] for k, _ in tasks)
    whole = sum(is_whole(names, unit) for unit in chosen)
    return level, round(sum(cost(cluster, t) for t in tasks), 6), whole, len(tasks)


def is_whole(names, unit):
    """Whether a unit is all that a workload runs."""
    w = names[unit[0][0]]
    return len(unit) >= core(w) and len(unit) == sum(t.phase in HELD for t in w.tasks)
