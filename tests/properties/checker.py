"""What must hold of any plan, judged by the cluster before, the steps, and the cluster after: nothing of the engine."""

from __future__ import annotations

from collections import Counter

from tests.properties.kubernetes import Pod, obstacles
from tests.properties.ledger import NodeLedger, milli_on

from tenure.model.values.resources import GPU
from tenure.model.workload import Phase

PLACED = (Phase.BOUND, Phase.RUNNING, Phase.TERMINATING)
HELD = (Phase.BOUND, Phase.RUNNING)
DEFAULT_GRACE = 30_000_000


def violations(played):
    """Name everything that is wrong with what was played."""
    before, after = played.before, played.after
    return [
        *check_capacity(before, after, {s.node for s in played.steps}),
        *check_queues(before, after),
        *check_gangs(before, after),
        *check_constraints(played),
        *check_topology(before, after),
        *check_guarantees(before, after),
        *check_steps(played),
    ]


def is_stuck(task, now):
    """Whether a terminating task has outstayed its grace period."""
    since = now if task.terminating_since is None else task.terminating_since
    grace = DEFAULT_GRACE if task.grace_period is None else task.grace_period
    return task.phase is Phase.TERMINATING and now >= since + grace


def check_capacity(before, after, touched):
    """No node and no device holds more than it has; nor will those on which something was placed just now.

    Of the others a promise may have lost its room: what should have left is stuck. What held too much before may go
    on doing so.
    """
    found = [
        f"{name}, {moment}: {what} is {amount}"
        for moment in ("now", "then")
        for (name, what), amount in _too_much(after, moment).items()
        if (moment == "now" or name in touched) and amount > _too_much(before, moment).get((name, what), 0)
    ]
    for task in (t for w in after.workloads for t in w.tasks):
        if task.phase in PLACED:
            found += _check_devices(task, task.node, task.devices)
        elif task.nominated is not None:
            found += _check_devices(task, task.nominated.node, task.nominated.devices)
    return found


def _too_much(cluster, moment):
    """What more is held of than there is, by node and resource or device; ``then``: once what terminates has left."""
    ledgers = {n.name: NodeLedger(n) for n in cluster.nodes}
    for task in (t for w in cluster.workloads for t in w.tasks):
        leaves = task.phase is Phase.TERMINATING and not is_stuck(task, cluster.now)
        if task.phase in PLACED and not (moment == "then" and leaves):
            ledgers[task.node].take(task.spec, task.devices)
        elif moment == "then" and task.nominated is not None:
            ledgers[task.nominated.node].take(task.spec, task.nominated.devices)
    return {(name, what): amount for name, ledger in ledgers.items() for what, amount in ledger.over().items()}


def _check_devices(task, where, devices):
    share = task.spec.gpu_share
    wanted = dict(task.spec.requests).get(GPU, 0) if share is None else share.devices
    if len(set(devices)) != wanted or len(devices) != wanted:
        return [f"{task.name} on {where} has devices {devices} where it asks for {wanted}"]
    return []


def held_by_queue(cluster, *, only=lambda _: True):
    """Amounts that are bound, running or nominated, by queue and resource, GPUs in milli-GPU, summed up the tree."""
    nodes = {n.name: n for n in cluster.nodes}
    parents = {q.name: q.parent for q in cluster.queues}
    held = {name: Counter() for name in parents}
    for workload in cluster.workloads:
        if workload.queue not in held or not only(workload):
            continue
        for task in workload.tasks:
            where = task.node if task.phase in HELD else task.nominated and task.nominated.node
            if task.phase not in HELD and task.nominated is None:
                continue
            amounts = Counter({r: a * (1000 if r == GPU else 1) for r, a in task.spec.requests})
            if task.spec.gpu_share is not None:
                amounts[GPU] = milli_on(task.spec, nodes[where]) * task.spec.gpu_share.devices
            queue = workload.queue
            while queue is not None:
                held[queue].update(amounts)
                queue = parents[queue]
    return held


def check_queues(before, after):
    """No queue gets more while it holds more than its maximum."""
    had, has = held_by_queue(before), held_by_queue(after)
    return [
        f"queue {q.name} holds {has[q.name][resource]} of {resource}, more than {most}"
        for q in after.queues
        for resource, most in q.max.items()
        if has[q.name][resource] > max(most, had[q.name][resource])
    ]


def guaranteed(queues):
    """What each queue is guaranteed: its own, else the sum of its children's where some child says anything."""

    def of(queue):
        below = [of(child) for child in queues if child.parent == queue.name]
        summed = {r: sum(b.get(r, 0) for b in below) for b in below for r in b}
        return {**{r: sum(b.get(r, 0) for b in below) for r in summed}, **queue.guaranteed}

    return {queue.name: of(queue) for queue in queues}


def check_guarantees(before, after):
    """What is not preemptible does not go beyond what is guaranteed."""
    floors = guaranteed(after.queues)
    parents = {q.name: q.parent for q in after.queues}

    def bound_by(queue):
        path = []
        while queue is not None:
            path.append(queue)
            queue = parents[queue]
        return path

    fixed_before, fixed_after = (held_by_queue(c, only=lambda w: not w.is_preemptible) for c in (before, after))
    return [
        f"queue {name} holds {fixed_after[name][resource]} of {resource} that is not preemptible, beyond {floor}"
        for name in parents
        for resource, floor in floors[name].items()
        if fixed_after[name][resource] > max(floor, fixed_before[name][resource])
    ]


def _satisfied(workload, tasks):
    """Whether enough tasks of every part are there."""
    if not workload.sub_groups:
        return len(tasks) >= (len(workload.tasks) if workload.min_member is None else workload.min_member)

    def enough(group):
        if group.sub_groups:
            wanted = len(group.sub_groups) if group.min_sub_group is None else group.min_sub_group
            return sum(map(enough, group.sub_groups)) >= wanted
        members = [t for t in workload.tasks if t.sub_group == group.name]
        have = sum(t.sub_group == group.name for t in tasks)
        return have >= (len(members) if group.min_member is None else group.min_member)

    wanted = len(workload.sub_groups) if workload.min_sub_group is None else workload.min_sub_group
    return sum(map(enough, workload.sub_groups)) >= wanted


def check_gangs(before, after):
    """What did not run and has something bound now has its whole core bound; what is nominated is at least a core."""
    found = []
    for old, new in zip(before.workloads, after.workloads, strict=True):
        active = [t for t in new.tasks if t.phase in (*HELD, Phase.SUCCEEDED)]
        nominated_to = [t for t in new.tasks if t.nominated is not None]
        started = any(t.phase in (*HELD, Phase.SUCCEEDED) for t in old.tasks)
        if not started and active and not _satisfied(new, active):
            found.append(f"{new.key} started with {len(active)} tasks, less than its core")
        if not started and not active and nominated_to and not _satisfied(new, nominated_to):
            found.append(f"{new.key} is promised {len(nominated_to)} places, less than its core")
        if not started and active and new.started_at is None:
            found.append(f"{new.key} started, and nobody noted when")
    return found


def check_constraints(played):
    """Each task, at the moment when it is bound, may stand where it is put."""
    before = played.before
    nodes = {n.name: n for n in before.nodes}
    specs = {(w.key, t.name): Pod(t.name, w.namespace, t.spec) for w in before.workloads for t in w.tasks}
    pods = [
        Pod(t.name, w.namespace, t.spec, nodes[t.node], leaving=t.phase is Phase.TERMINATING)
        for w in before.workloads
        for t in w.tasks
        if t.phase in PLACED
    ]
    found = []
    for step in played.steps:
        if step.action == "bind":
            pod, node = specs[(step.workload, step.task)], nodes[step.node]
            found += [f"{step.task} on {step.node}: {what}" for what in obstacles(pod, node, pods, before.nodes)]
            pod.node = node
            pods.append(pod)
    return found


def check_topology(before, after):
    """All tasks that a group gained stand, with those it had, under one value of the label that is required."""
    labels = {n.name: n.labels for n in after.nodes}
    found = []
    for old, new in zip(before.workloads, after.workloads, strict=True):
        groups = [(new.topology, new.tasks)]
        groups += [(g.topology, [t for t in new.tasks if t.sub_group == g.name]) for g in new.sub_groups]
        had = {t.name for t in old.tasks if t.phase in HELD or t.nominated}
        for topology, tasks in groups:
            if topology is None or topology.required is None:
                continue
            where = {
                t.name: t.node if t.phase in HELD else t.nominated.node for t in tasks if t.phase in HELD or t.nominated
            }
            gained = {labels[n].get(topology.required) for name, n in where.items() if name not in had}
            kept = {labels[n].get(topology.required) for name, n in where.items() if name in had} - {None}
            if None in gained or len(gained) > 1 or (gained and kept and not gained <= kept):
                found.append(f"{new.key} is spread over {gained | kept} of {topology.required}")
    return found


def check_steps(played):
    """Steps are about pending tasks, each at most once, and the cluster after is the one before with them applied."""
    found = []
    phases = {(w.key, t.name): t.phase for w in played.before.workloads for t in w.tasks}
    seen = Counter((s.workload, s.task) for s in played.steps)
    found += [f"{task} is placed {count} times" for (_, task), count in seen.items() if count > 1]
    found += [
        f"{s.task} was {phases[(s.workload, s.task)]}"
        for s in played.steps
        if phases[(s.workload, s.task)] is not Phase.PENDING
    ]
    after = {(w.key, t.name): t for w in played.after.workloads for t in w.tasks}
    for step in played.steps:
        task = after[(step.workload, step.task)]
        if step.action == "bind" and (task.phase, task.node, task.devices, task.nominated) != (
            Phase.BOUND,
            step.node,
            step.devices,
            None,
        ):
            found.append(f"{step.task} is not where the plan binds it")
        if step.action == "nominate" and (
            task.nominated is None or (task.nominated.node, task.nominated.devices) != (step.node, step.devices)
        ):
            found.append(f"{step.task} is not promised what the plan says")
    return found
