"""Random clusters with every cause, rule and kind of work, and the reading of what "causes add up" forbids on them.

No clock strikes while one is played: delays, minimum runtimes, expected run times, cooldowns, deadlines and windows are
whole minutes and begin half a minute off, and twenty cycles take twenty seconds.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from dataclasses import replace
from typing import NamedTuple

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster, DisruptionBudget
from tenure.model.node import Node
from tenure.model.queue import Queue, QueueStatus, QuotaStatus
from tenure.model.selectors import LabelSelector
from tenure.model.settings import (
    PATIENT_CAUSES,
    BackgroundSettings,
    BudgetRule,
    PatienceRule,
    QuotaPreemptionSettings,
    RequeueSettings,
    ReschedulerSettings,
    Settings,
    WorthSettings,
)
from tenure.model.workload import Checkpoint, GpuShare, Phase, Task, TaskSpec, Workload

GPU = "nvidia.com/gpu"
NOW = 1_000_000_000_000_000
MINUTE = 60_000_000
HALF = MINUTE // 2
ACTIONS = ("stale-gang", "quota", "allocate", "consolidate", "reclaim", "preempt", "requeue", "reschedule")


def drawn(seed):
    """Draw a cluster from a seed."""
    rng = random.Random(seed)
    size = rng.choice([2, 4])
    nodes = tuple(Node(name=f"n{i}", allocatable={GPU: size, "cpu": 1000 * size}) for i in range(rng.randint(1, 4)))
    queues = _queues(rng, size * len(nodes))
    parents = {q.parent for q in queues}
    leaves = [q.name for q in queues if q.name not in parents]
    workloads = (*_running(rng, nodes, size, leaves), *_waiting(rng, size, leaves))
    quota = rng.random() < 0.4
    state = Cluster(now=NOW, settings=settings(rng, quota=quota), nodes=nodes, queues=queues, workloads=workloads)
    return lowered(rng, state) if quota else state


def settings(rng, *, quota):
    budgets = ()
    if rng.random() < 0.2:
        budgets = (BudgetRule(name="few", max_evictions=rng.randint(0, 3), per=10 * MINUTE),)
    plain = Settings()
    return replace(
        plain,
        actions=ACTIONS,
        backfill=rng.choice(["none", "none", "none", "easy"]),
        reclaim_min_runtime=rng.choice([0, 0, 0, 10 * MINUTE]),
        preempt_min_runtime=rng.choice([0, 0, 0, 5 * MINUTE]),
        eviction_notice=rng.choice([0] * 9 + [3_000_000]),
        requeue_delay=rng.choice([0, 10 * MINUTE]),
        requeue=RequeueSettings(),
        quota_preemption=QuotaPreemptionSettings(enabled=quota),
        rescheduler=ReschedulerSettings(pending_for=rng.choice([0, MINUTE])),
        disruption=replace(plain.disruption, budgets=budgets),
    )


def priced(seed):
    """Draw the same cluster with rules of patience, prices in place of shields, and bounds on evictions."""
    rng, given, trusting = random.Random(f"{seed} priced"), drawn(seed), random.Random(f"{seed} trusting")
    surplus = random.Random(f"{seed} surplus").choice([0.25, 1.0])
    rules = {
        cause: PatienceRule(
            factor=rng.choice([0.5, 1.0, 2.0]),
            ahead=rng.choice([0, 5 * MINUTE]),
            at_most=rng.choice([10 * MINUTE, 60 * MINUTE, 240 * MINUTE]),
            trust=trusting.choice([0.0, 0.5, 1.0]),
            surplus=surplus,
        )
        for cause in PATIENT_CAUSES
        if rng.random() < 0.7
    }
    worth = WorthSettings(patience=rules, repeat_factor=rng.choice([0.0, 1.0]), max_evictions=rng.choice([0, 2, 32]))
    mode = rng.choice(["shield", "price", {"reclaim": "price"}])
    chosen = replace(
        given.settings, worth=worth, min_runtime=replace(given.settings.min_runtime, mode=mode),
        requeue=replace(given.settings.requeue, order=rng.choice(["overdue", "cost"])),
    )  # fmt: skip
    return replace(given, settings=chosen)


def guarded(seed):
    """Draw the same cluster with PodDisruptionBudgets, which allow more once what is bound is up."""
    rng, given = random.Random(f"{seed} guarded"), drawn(seed)
    named = tuple(replace(w, tasks=tuple(_labelled(t, w.name) for t in w.tasks)) for w in given.workloads)
    several = [w for w in named if len(w.tasks) > 1]
    chosen = rng.sample(several, min(len(several), rng.randint(1, 3)))
    budgets = tuple(
        DisruptionBudget(
            name=f"of-{w.name}", selector=LabelSelector(match_labels=(("app", w.name),)),
            max_unavailable=rng.choice([1, 1, 2]),
        )
        for w in chosen
    )  # fmt: skip
    return replace(given, workloads=named, disruption_budgets=budgets)


def announced(seed):
    """Draw the same cluster with all evictions announced."""
    given = drawn(seed)
    return replace(given, settings=replace(given.settings, eviction_notice=3_000_000))


def improved(seed):
    """Draw the same cluster with the layout improved in every cycle."""
    given = drawn(seed)
    moving = replace(given.settings.rescheduler, background=BackgroundSettings(interval=1_000_000))
    return replace(given, settings=replace(given.settings, rescheduler=moving))


def _labelled(task, name):
    return replace(task, spec=replace(task.spec, labels=(("app", name),)))


def _queues(rng, total):
    found = []
    for top in range(rng.randint(1, 3)):
        name = f"q{top}"
        middle = rng.choice([0, 0, 2])
        found.append(_queue(rng, name, None, total, inner=bool(middle)))
        for child in range(middle):
            low = rng.choice([0, 0, 2])
            found.append(_queue(rng, f"{name}-{child}", name, total, inner=bool(low)))
            found += [_queue(rng, f"{name}-{child}-{i}", f"{name}-{child}", total, inner=False) for i in range(low)]
    return tuple(found)


def _queue(rng, name, parent, total, *, inner):
    floor = {}
    if not inner and rng.random() < 0.6:
        floor = {GPU: 500 * rng.randint(0, max(1, total))}
    most = {GPU: max(floor.get(GPU, 0), 1000 * rng.randint(1, total))} if rng.random() < 0.15 and not inner else {}
    return Queue(
        name=name,
        parent=parent,
        guaranteed=floor,
        max=most,
        weight=rng.choice([1.0, 1.0, 2.0, 0.0]),
        priority=rng.choice([100, 100, 100, 50]),
        preemption_policy=rng.choice(["default"] * 12 + ["fence", "disabled"]),
        reclaim_min_runtime=rng.choice([None, None, None, 0, 20 * MINUTE]),
    )


def _spec(rng, size):
    if rng.random() < 0.2:
        return TaskSpec(requests=(("cpu", 200),), gpu_share=GpuShare(milli=rng.choice([300, 500])))
    return TaskSpec(requests=((GPU, rng.choice([1, 1, 1, 2, size])), ("cpu", rng.choice([0, 0, 100, 1000]))))


def _running(rng, nodes, size, leaves):
    free = {n.name: [1000] * size for n in nodes}
    cpu = {n.name: 1000 * size for n in nodes}
    for number in range(rng.randint(3, 14)):
        spec, wanted, placed = _spec(rng, size), rng.choice([1, 1, 1, 2, 3]), []
        asked = dict(spec.requests)
        for name in rng.sample(sorted(free), len(free)):
            while len(placed) < wanted and cpu[name] >= asked.get("cpu", 0):
                milli = spec.gpu_share.milli if spec.gpu_share else 1000
                open_to = [d for d, left in enumerate(free[name]) if left >= milli]
                devices = tuple(open_to[: asked.get(GPU, 1)])
                if len(devices) < asked.get(GPU, 1):
                    break
                for device in devices:
                    free[name][device] -= milli
                cpu[name] -= asked.get("cpu", 0)
                placed.append((name, devices))
        if not placed:
            continue
        started = NOW - rng.choice([1, 7, 15, 60, 600]) * MINUTE - HALF
        tasks = tuple(
            Task(name=f"r{number}-{i}", spec=spec, phase=Phase.RUNNING, node=node, devices=devices, started_at=started)
            for i, (node, devices) in enumerate(placed)
        )
        yield replace(
            _workload(rng, f"r{number}", tasks, leaves, started - MINUTE), started_at=started,
            allow_preemption=rng.random() > 0.1,
        )  # fmt: skip


def _waiting(rng, size, leaves):
    for number in range(rng.randint(1, 6)):
        spec = _spec(rng, size)
        tasks = tuple(Task(name=f"p{number}-{i}", spec=spec) for i in range(rng.choice([1, 1, 2, 3])))
        yield _workload(rng, f"p{number}", tasks, leaves, NOW - rng.randint(0, 50) * MINUTE - HALF)


def _workload(rng, name, tasks, leaves, created):
    return Workload(
        name=name,
        queue=rng.choice(leaves),
        priority=rng.choice([0, 0, 10, 50, 100]),
        min_member=rng.randint(1, len(tasks)),
        created_at=created,
        tasks=tasks,
        expected_runtime=rng.choice([None, None, 5 * MINUTE, 30 * MINUTE, 100 * MINUTE]),
        checkpoint=rng.choice([None, None, None, Checkpoint(interval=10 * MINUTE, restart_overhead=MINUTE)]),
    )


def lowered(rng, state):
    """Lower the max of a queue below what it uses, so long ago that its deadline has passed."""
    session = session_of(state)
    held = {q.name: session.queues.allocated[n][session.queues.resources.index(GPU)]
            for n, q in enumerate(session.queues.queues)}  # fmt: skip
    queues = []
    for queue in state.queues:
        floor = queue.guaranteed.get(GPU, 0)
        below = list(range(floor, held[queue.name], 500))
        inner = any(q.parent == queue.name for q in state.queues)
        if below and not inner and rng.random() < 0.5:
            most = {GPU: rng.choice(below)}
            armed = QuotaStatus(armed_at=NOW - 2 * MINUTE, delay=MINUTE, deadline=NOW - MINUTE, max=most)
            queues.append(
                replace(queue, max=most, quota_preemption_delay=MINUTE, status=QueueStatus(quota_preemption=armed))
            )
        else:
            queues.append(queue)
    return replace(state, queues=tuple(queues))


def played(state, cycles):
    """Play cycles a second apart until nothing happens any more; gives all steps, and what was said to follow."""
    embedded, steps, follows, seen_before, within, lost = EmbeddedCluster(state), [], [], [], {}, []
    beaten = cycles
    for number in range(cycles):
        if number:
            embedded.advance(state.now + number * 1_000_000)
        seen = embedded.observe()
        scheduler = Scheduler(session_of(seen))
        scheduler.cycles, scheduler.context.detailed = number, False
        plan = scheduler.cycle(seen.now)
        beaten = min(beaten, number) if _is_beaten(seen, plan) else beaten
        embedded.carry_out(plan)
        known = {(t.workload.key, t.name) for t in scheduler.session.noticed}
        told = {(w.key, t.name) for w in embedded.observe().workloads for t in w.tasks if t.notice}
        lost += [f"cycle {number}: {task} is under notice, and the plan says nothing of it" for _, task in told - known]
        if any(s.action in ("evict", "notice") for s in plan.steps):
            seen_before.append((seen, plan))
        within[number] = _within_guaranteed(embedded.observe())
        steps += plan.steps
        follows += [(number, f) for f in plan.follow_ups]
        announced = any(t.notice for w in embedded.observe().workloads for t in w.tasks)
        if not (plan.steps or plan.expired or announced):
            break
    return Played(steps, follows, seen_before, within, lost, beaten)


def _is_beaten(seen, plan):
    """Whether a plan gives another workload the node that was nominated to a task, which gets another one, or none.

    The nomination was beaten by rank, which the specification allows.
    """
    to = {(w.key, i): t.nominated.node for w in seen.workloads for i, t in enumerate(w.tasks) if t.nominated}
    placed = {(s.workload, s.task_index): s.node for s in plan.steps if s.action in ("bind", "nominate")}
    lost = [(place[0], to[place]) for place in plan.expired if place in to and placed.get(place) != to[place]]
    return any(node == other and key != whose for key, node in lost for (whose, _), other in placed.items())


class Played(NamedTuple):
    """All steps of some cycles, and by cycle what was said to follow.

    ``evicting``: each cluster on which something was evicted, with the plan. ``within``: by cycle, the workloads
    whose queues were within guaranteed after it. ``lost``: what is under notice and was let run on, as sentences.
    ``beaten``: the first cycle in which another took, by rank, what was nominated to a workload.
    """

    steps: list
    follow_ups: list
    evicting: list
    within: dict
    lost: list
    beaten: int


def _within_guaranteed(state):
    """Give the workloads whose leaf is within what it is guaranteed of all that it guarantees and they ask for.

    What is nominated is held, as the leaf holds it once that is bound; what is terminating or under notice is not.
    """
    held = defaultdict(lambda: defaultdict(int))
    for workload in state.workloads:
        for task in workload.tasks:
            stays = task.node is not None and task.phase is not Phase.TERMINATING and task.notice is None
            if stays or task.nominated is not None:
                for name, amount in _asked(task.spec):
                    held[workload.queue][name] += amount
    queues = {q.name: q for q in state.queues}
    found = set()
    for workload in state.workloads:
        floor = queues[workload.queue].guaranteed
        asked = {name for t in workload.tasks for name, amount in _asked(t.spec) if amount and name in floor}
        if asked and all(held[workload.queue][name] <= floor[name] for name in asked):
            found.add(workload.key)
    return found


def _asked(spec):
    """Give what a task asks for, GPUs in milli-GPU."""
    if spec.gpu_share is not None:
        yield GPU, spec.gpu_share.milli * spec.gpu_share.devices
    for name, amount in spec.requests:
        yield name, amount * 1000 if name == GPU else amount


def forbidden(played):
    """Give every breach of what holds on a cluster that does not change, as one sentence each.

    What is bound in the plan that evicts for its workload got room that was there, which no eviction made.
    An eviction that was announced was decided then, unless that was withdrawn, or another notice took its place: from
    there on its queue holds what is nominated as well, and a follow-up that is said later comes too late for it.
    """
    breaches = list(played.lost)
    said = _first_said(played.follow_ups)
    nominated_to = set()
    noticed = {}
    victims = {}
    by_cycle = defaultdict(list)
    for step in played.steps:
        by_cycle[step.cycle].append(step)
    for cycle, steps in sorted(by_cycle.items()):
        evicted = {(s.workload, s.task): s for s in steps if s.action == "evict"}
        breaches += _in_one_plan(cycle, steps, evicted)
        for step in steps:
            known = noticed.get((step.workload, step.task))
            if step.action == "notice" and (known is None or known[0] != step.beneficiary):
                noticed[step.workload, step.task] = step.beneficiary, cycle
            elif step.action == "withdraw" and known is not None and known[0] == step.beneficiary:
                del noticed[step.workload, step.task]
        for (workload, task), step in evicted.items():
            told, since = noticed.pop((workload, task), (None, cycle))
            decided = since if told == step.beneficiary else cycle
            moves = (
                step.beneficiary if step.cause == "reschedule" else None
            )  # what its exact program moves is its choice
            follows = said.get(moves or (step.beneficiary, step.cause, workload, task), decided) < decided
            stayed = workload in played.within.get(decided - 1, ())
            if (workload, task) in nominated_to and not (follows or stayed) and step.cause != "quota":
                breaches.append(f"cycle {cycle}: {task}, for which somebody was evicted, is evicted by {step.cause} "
                                f"for {step.beneficiary}")  # fmt: skip
            if (
                cycle < played.beaten  # until then what is nominated binds, and what follows from it was foreseen
                and step.beneficiary in victims
                and said.get(moves or (step.beneficiary, workload, task), decided) >= decided
            ):
                breaches.append(f"cycle {cycle}: {task} is evicted by {step.cause} for {step.beneficiary}, "
                                f"a victim of {victims[step.beneficiary]}")  # fmt: skip
        served = {s.beneficiary for s in evicted.values()}
        nominated_to |= {(s.workload, s.task) for s in steps if s.action == "nominate" and s.workload in served}
        for (workload, _), step in evicted.items():
            victims[workload] = f"{step.cause} in cycle {cycle}"
    return breaches


def _first_said(follow_ups):
    """Give the cycle in which it was first said that a task goes for a victim, by both, and by cause as well.

    By a victim alone: that something moves for it.
    """
    said = {}
    for cycle, follow_up in reversed(follow_ups):
        if follow_up.cause in {"consolidate", "reschedule"}:
            said[follow_up.of] = cycle
        for workload, task in follow_up.evict:
            said[follow_up.of, follow_up.cause, workload, task] = said[follow_up.of, workload, task] = cycle
    return said


def _in_one_plan(cycle, steps, evicted):
    """Say what is bound and evicted, evicted and placed where it stood, or placed twice, in one plan."""
    placed = Counter((s.workload, s.task) for s in steps if s.action in ("bind", "nominate"))
    yield from (f"cycle {cycle}: {task} is placed twice" for (_, task), times in placed.items() if times > 1)
    for step in steps:
        if step.action in ("bind", "nominate") and not step.devices:
            yield f"cycle {cycle}: {step.task} is given a place on {step.node} without a device"
        gone = evicted.get((step.workload, step.task))
        if gone is None or step.action not in ("bind", "nominate"):
            continue
        if step.action == "bind":
            yield f"cycle {cycle}: {step.task} is evicted and bound"
        elif step.node == gone.node and step.devices == gone.devices:
            yield f"cycle {cycle}: {step.task} is evicted and nominated where it stood"
