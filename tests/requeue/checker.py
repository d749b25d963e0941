"""A second reading of the rules, which shares no code with the action: who deserves more, and who went in vain."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from tenure.model.workload import Phase
from tenure.playthrough import play

GPU = "nvidia.com/gpu"
INFINITE = Fraction(10**30)


def groups(played):
    """Whom requeue evicted, by beneficiary."""
    found = {}
    for step in played.steps:
        if step.action == "evict" and step.cause == "requeue":
            found.setdefault(step.beneficiary, {}).setdefault(step.workload, []).append(step.task_index)
    return found


def problems(cluster, played):
    """Everything that is wrong with the requeues of a plan of one cycle."""
    found = []
    by_key = {w.key: w for w in cluster.workloads}
    placed = {s.workload for s in played.steps if s.action in ("bind", "nominate")}
    transactions = groups(played)
    for beneficiary, victims in transactions.items():
        if beneficiary not in placed:
            found.append(f"{beneficiary} got nothing")
        for victim in victims:
            found += _shields(cluster, by_key[beneficiary], by_key[victim])
        if len(transactions) == 1:
            found += _deserving(cluster, by_key, beneficiary, victims)
            found += _without_effect(cluster, played, beneficiary, victims)
    evicted = {w for victims in transactions.values() for w in victims}
    if evicted != set(played.requeue.not_before):
        found.append("cooldowns are not those of the evicted")
    return found


def _shields(cluster, beneficiary, victim):
    found = []
    if victim.preemptible is False or (victim.preemptible is None and victim.priority >= 100):
        found.append(f"{victim.key} is not preemptible")
    if not victim.expected_runtime or cluster.now - victim.started_at < victim.expected_runtime:
        found.append(f"{victim.key} is not overdue")
    if victim.requeue_not_before and cluster.now < victim.requeue_not_before:
        found.append(f"{victim.key} is in its cooldown")
    if beneficiary.preemption_delay and cluster.now < beneficiary.created_at + beneficiary.preemption_delay:
        found.append(f"{beneficiary.key} has to wait")
    if beneficiary.queue == victim.queue and beneficiary.priority <= victim.priority:
        found.append(f"{beneficiary.key} does not deserve more than {victim.key}")
    return found


def _held(workload):
    return (
        sum(dict(t.spec.requests).get(GPU, 0) for t in workload.tasks if t.phase in (Phase.RUNNING, Phase.BOUND)) * 1000
    )


def _size(tasks):
    return sum(dict(t.spec.requests).get(GPU, 0) for t in tasks) * 1000


def _deserving(cluster, by_key, beneficiary, victims):
    """Flat queues and one resource: the rules of the order, one by one."""
    contender = by_key[beneficiary]
    held = dict.fromkeys((q.name for q in cluster.queues), 0)
    for one in cluster.workloads:
        held[one.queue] += _held(one)
    core = contender.tasks[: contender.min_member or len(contender.tasks)]
    for victim, tasks in victims.items():
        held[by_key[victim].queue] -= _size([by_key[victim].tasks[i] for i in tasks])
    fair = {q.name: q.fair_share[GPU] for q in play(cluster).queues}
    found = []
    for victim, tasks in victims.items():
        model = by_key[victim]
        if model.queue == contender.queue:
            continue
        whole = len(tasks) == len(model.tasks)
        asks = model.tasks[: model.min_member or len(model.tasks)] if whole else [model.tasks[tasks[0]]]
        mine = _key(cluster, held, fair, contender.queue, _size(core))
        theirs = _key(cluster, held, fair, model.queue, _size(asks))
        if not mine < theirs:
            found.append(f"queue {contender.queue} is not ahead of {model.queue}: {mine} {theirs}")
    return found


def _key(cluster, held, fair, name, more):
    queue = next(q for q in cluster.queues if q.name == name)
    total = sum(n.allocatable[GPU] for n in cluster.nodes) * 1000
    share = min(queue.max.get(GPU, 10**18), max(queue.guaranteed.get(GPU, 0), fair[name]))
    have = held[name]

    def part(amount):
        return Fraction(0) if not amount else Fraction(amount, share) if share else INFINITE

    uses_shared = any(q.guaranteed or q.max for q in cluster.queues)
    within = GPU in queue.guaranteed and have + more <= queue.guaranteed[GPU]
    if not uses_shared or all(GPU in (*q.guaranteed, *q.max) for q in cluster.queues if q.guaranteed or q.max):
        return (
            have > fair[name],
            not within,
            -queue.priority,
            part(have + more),
            part(have),
            Fraction(share, total),
            name,
        )
    return ()


def _without_effect(cluster, played, beneficiary, victims):
    """Without any one of the evicted, the ordinary order would not serve the beneficiary."""
    found = []
    got = {s.task_index for s in played.steps if s.workload == beneficiary and s.action in ("bind", "nominate")}
    for spared in victims:
        rest = {key: tasks for key, tasks in victims.items() if key != spared}
        served = play(_without(_with_others(cluster, played, beneficiary), rest))
        again = {s.task_index for s in served.steps if s.workload == beneficiary and s.action == "bind"}
        if got <= again:
            found.append(f"{spared} was evicted in vain for {beneficiary}")
    return found


def _with_others(cluster, played, beneficiary):
    """The cluster with what the same plan bound for others, whose places are given."""
    bound = {(s.workload, s.task_index): s for s in played.steps if s.action == "bind" and s.workload != beneficiary}
    workloads = []
    for one in cluster.workloads:
        tasks = tuple(
            replace(t, phase=Phase.BOUND, node=s.node, devices=s.devices) if (s := bound.get((one.key, i))) else t
            for i, t in enumerate(one.tasks)
        )
        workloads.append(replace(one, tasks=tasks))
    return replace(cluster, workloads=tuple(workloads))


def _without(cluster, gone):
    workloads = []
    for one in cluster.workloads:
        tasks = tuple(
            replace(t, phase=Phase.PENDING, node=None, devices=()) if i in gone.get(one.key, ()) else t
            for i, t in enumerate(one.tasks)
        )
        all_gone = one.key in gone and all(t.phase is Phase.PENDING for t in tasks)
        workloads.append(replace(one, tasks=tasks, started_at=None if all_gone else one.started_at))
    settings = replace(cluster.settings, actions=("allocate",))
    return replace(cluster, workloads=tuple(workloads), settings=settings)
