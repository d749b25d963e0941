"""The story of one workload: where it stands, why, and what it would take."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from tenure.engine.plan import Pending, PlanStep, Reason, Refused
from tenure.engine.serving.survival import survival
from tenure.engine.snapshot import session_of
from tenure.explanation.idle_causes import idle_causes
from tenure.explanation.prospects import EvictionProspects, ProspectsOfOne
from tenure.explanation.remedies import what_helps
from tenure.explanation.safety import safety
from tenure.explanation.standing_rules import StandingRules
from tenure.fairness.reclaiming import FAIR_SHARE, GUARANTEED
from tenure.model.cluster import DEFAULT_QUEUE, Cluster, Eviction
from tenure.model.values.duration import format_time
from tenure.model.values.problems import InputProblem, InvalidInputError, nearest
from tenure.model.values.readable import time_span, weighted_hours
from tenure.model.workload import Notice, Phase, Task, Workload
from tenure.playthrough import PlayThrough
from tenure.requeue.rules import DESERVING
from tenure.rescheduler.memory import MOVING, MoveMemory, moves_of
from tenure.rescheduler.problem.cooldown import resting

PLACED = (Phase.BOUND, Phase.RUNNING)

REQUEUE: Final = "requeue"

OF_QUEUES: Final = (GUARANTEED, FAIR_SHARE, DESERVING)
"""Rules of requeue that look at queues alone."""

MOST_PUT_OFF = 64
"""Workloads that wait of which it is asked whether they would take a place by requeue."""


@dataclass(frozen=True, slots=True)
class Story:
    """The story of a workload: a headline, obstacles, what would help, and what happened to it lately."""

    workload: str
    state: str
    headline: str
    reasons: tuple[Reason, ...] = ()
    helps: tuple[str, ...] = ()
    estimated_start: int | None = None
    evictions: tuple[Eviction, ...] = ()
    nodes: dict[str, str] = field(default_factory=dict)

    def plain(self) -> dict[str, Any]:
        """Give it as plain data for JSON."""
        start = self.estimated_start
        return {
            "workload": self.workload,
            "state": self.state,
            "summary": self.headline,
            "reasons": [r.plain() for r in self.reasons],
            "whatItTakes": list(self.helps),
            "estimatedStart": None if start is None else format_time(start),
            "placement": self.nodes,
            "evictions": [
                {"at": format_time(e.at), "task": e.task, "cause": e.cause, "for": e.beneficiary,
                 "from": e.from_node, "to": e.to_node}
                for e in self.evictions
            ],
        }  # fmt: skip

    def lines(self) -> list[str]:
        """Give it as lines of text."""
        found = [f"{self.workload}: {self.headline}"]
        found += [f"  {r.code}: {r.message}" for r in self.reasons]
        if self.estimated_start is not None:
            found.append(
                f"  expected to start at {format_time(self.estimated_start)}, if running workloads end as expected"
            )
        if self.helps:
            found += ["What it would take:", *(f"  - {h}" for h in self.helps)]
        if self.nodes:
            found += ["Placement:", *(f"  {task} on {node}" for task, node in self.nodes.items())]
        for e in self.evictions:
            whom = f" for {e.beneficiary}" if e.beneficiary else ""
            to = f" to {e.to_node}" if e.to_node else ""
            found.append(f"Evicted {format_time(e.at)}: {e.task} from {e.from_node or 'its node'}{to}, {e.cause}{whom}")
        return found


def find_workload(cluster: Cluster, name: str, file: str) -> Workload:
    """Find a workload by namespace/name, or by a name that only one has.

    Raises
    ------
    InvalidInputError
        There is none, or several.
    """
    found = [w for w in cluster.workloads if name in (w.key, w.name)]
    exact = [w for w in found if w.key == name]
    if len(exact or found) == 1:
        return (exact or found)[0]
    if found:
        keys = ", ".join(sorted(w.key for w in found))
        raise InvalidInputError([InputProblem(file, 0, "workloads", f"{name!r} is not clear; say one of {keys}")])
    hint = nearest(name, [w.key for w in cluster.workloads] + [w.name for w in cluster.workloads])
    raise InvalidInputError([InputProblem(file, 0, "workloads", f"there is no workload {name!r}{hint}")])


def explain_workload(played: PlayThrough, workload: Workload) -> Story:
    """Tell the story of a workload after its cluster was played for a cycle."""
    key = workload.key
    after = next(w for w in played.after.workloads if w.key == key)
    pending = next((p for p in played.pending if p.workload == key), None)
    evictions = tuple(e for e in played.before.evictions if e.workload == key)
    placed = {t.name: t.node for t in after.tasks if t.phase in PLACED and t.node is not None}
    leaves = [s for s in played.steps if s.workload == key and s.action == "evict"]
    if leaves:
        reasons = (*_places(leaves), *_unprotected(played, key))
        return Story(key, "gives way", _evicted_headline(leaves), reasons, evictions=evictions, nodes=placed)
    if pending is not None:
        state = "partly running" if placed else "pending"
        headline = _waiting_headline(after, played.before.now, len(placed))
        nominated_tasks = tuple(r for r in pending.reasons if _is_promised(r))  # what else was tried matters no more
        standing = StandingRules(played.after, played.session)
        prospects = EvictionProspects(standing)
        obstacles = nominated_tasks or (*pending.reasons, *idle_causes(played, key, pending.reasons, prospects))
        reasons = (*obstacles, *_made_room(played, key))
        under_more = [_under_a_higher_max(r, played, standing) for r in reasons]
        helps = what_helps(under_more, after, ProspectsOfOne(prospects, key))
        return Story(key, state, headline, reasons, helps, _future(pending, played), evictions, placed)
    bound = [s for s in played.steps if s.workload == key and s.action == "bind"]
    if bound:
        whole = "its task is" if len(after.tasks) == 1 else f"{len(bound)} of its {len(after.tasks)} tasks are"
        headline = f"it would start now: {whole} bound in this cycle"
        return Story(key, "starts", headline, evictions=evictions, nodes=placed)
    if placed:
        queue, start = after.queue or DEFAULT_QUEUE, after.started_at
        headline = f"it runs in queue {queue}" + (f", since {format_time(start)}" if start is not None else "")
        refused = [r for r in played.refused if key in r.workload.split(", ")]
        standing = StandingRules(played.after, played.session)
        held = (
            *_told(played, after),
            *_unprotected(played, key),
            *_eligible(played, key, EvictionProspects(standing)),
            *_likely_to_end(played, after),
            *_settling(played, key),
            *(_held(r) for r in refused),
            *safety(standing, key, played.quota, {r.message for r in refused}),
        )
        return Story(key, "running", headline, held, evictions=evictions, nodes=placed)
    return _apart(after, evictions)


def _under_a_higher_max(reason: Reason, played: PlayThrough, standing: StandingRules) -> Reason:
    """Give a reason as it would be under a higher max: what a quota takes of the queue in this cycle would stay."""
    if reason.code != "OverMax":
        return reason
    session, numbers, stays = standing.session, reason.numbers, 0
    queues = session.queues
    for step in played.steps:
        if step.action == "evict" and step.cause == "quota" and step.workload in session.workloads:
            workload = session.workloads[step.workload]
            if queues.index[numbers["queue"]] in queues.path[workload.leaf]:
                amount = workload.tasks[step.task_index].cls.amount_at(session.nodes.index[step.node], session.nodes)
                stays += amount[queues.resources.index(numbers["resource"])]
    return replace(reason, numbers={**numbers, "allocated": numbers["allocated"] + stays})


def _is_promised(reason: Reason) -> bool:
    """Whether a reason to wait is that a place is promised: one that is not free yet, or a node that is on its way."""
    return reason.code == "Nominated" or (reason.code == "AwaitsNodes" and "nodes" in reason.numbers)


def _apart(after: Workload, evictions: tuple[Eviction, ...]) -> Story:
    """Tell of a workload that neither runs nor waits for Tenure."""
    going = sum(t.phase is Phase.TERMINATING for t in after.tasks)
    if going:
        headline = f"{going} of its {len(after.tasks)} tasks are terminating, and nothing of it runs or waits"
        return Story(after.key, "leaving", headline, evictions=evictions)
    if any(t.phase is Phase.PENDING for t in after.tasks):
        headline = f"it waits for {after.scheduler_name}, whose pods Tenure neither places nor moves"
        return Story(after.key, "pending", headline, evictions=evictions)
    return Story(after.key, "finished", "none of its tasks waits or runs", evictions=evictions)


def _evicted_headline(steps: list[PlanStep]) -> str:
    """Say of what is evicted in this cycle why."""
    some = "1 of its tasks is" if len(steps) == 1 else f"{len(steps)} of its tasks are"
    return f"{some} evicted in this cycle: {steps[0].reason}"


def _places(steps: list[PlanStep]) -> tuple[Reason, ...]:
    """Say of each task that is evicted in this cycle, and that is sure of a place, where it goes on."""
    return tuple(
        Reason("Moves", _goes_on(s), {"task": s.task, "from": s.node, "to": s.to}) for s in steps if s.to is not None
    )


def _goes_on(step: PlanStep) -> str:
    if step.to == step.node:
        return f"{step.task} starts anew on {step.node}, together with the rest of its core"
    return f"{step.task} leaves {step.node} and goes on at {step.to}"


def _unprotected(played: PlayThrough, key: str) -> list[Reason]:
    """Say of a running workload with an unknown start that no minimum runtime protects it."""
    before = next((w for w in played.before.workloads if w.key == key), None)
    running = [t for t in before.tasks if t.phase in PLACED] if before is not None else []
    if before is None or not running or before.started_at is not None or any(t.started_at for t in running):
        return []
    return [Reason("UnknownStart", "its start is unknown, so no minimum runtime protects it")]


def _told(played: PlayThrough, workload: Workload) -> tuple[Reason, ...]:
    """Say of tasks under notice when, why and for which workload they will be evicted."""
    told = [t for t in workload.tasks if t.notice is not None]
    why = {s.task: s.reason for s in played.steps if s.workload == workload.key and s.action == "notice"}
    found: dict[Notice, list[Task]] = {}
    for task in told:
        assert task.notice is not None
        found.setdefault(task.notice, []).append(task)
    return tuple(_notice(notice, tasks, why.get(tasks[0].name)) for notice, tasks in found.items())


def _notice(notice: Notice, tasks: list[Task], why: str | None) -> Reason:
    whom = f" for {notice.beneficiary}" if notice.beneficiary is not None else ""
    text = (
        f"{_tasks(tasks)} to be evicted{whom} by {notice.cause} at {format_time(notice.deadline)}, "
        "or as soon as it has saved its work or says that it may go"
    )
    numbers = {"tasks": len(tasks), "deadline": format_time(notice.deadline), "cause": notice.cause,
               "for": notice.beneficiary}  # fmt: skip
    return Reason("Notice", text if why is None else f"{text}. {why}", numbers)


def _made_room(played: PlayThrough, key: str) -> list[Reason]:
    """Say of a workload that waits who gives way to it: now, once its notice is over, or since an earlier cycle."""
    logged = {(e.workload, e.task) for e in played.before.evictions if e.beneficiary == key}
    evicted: dict[str, list[PlanStep]] = {}
    for step in played.steps:
        if step.action == "evict" and step.beneficiary == key:
            evicted.setdefault(step.workload, []).append(step)
    found = []
    for victim in played.after.workloads:
        steps = evicted.get(victim.key, [])
        told = [t.notice for t in victim.tasks if t.notice is not None and t.notice.beneficiary == key]
        leaving = [t for t in victim.tasks if t.phase is Phase.TERMINATING and (victim.key, t.name) in logged]
        if steps:
            cost = sum(s.cost for s in steps)
            text = f"{_tasks(steps)} evicted for it ({steps[0].cause}), at a cost of {weighted_hours(cost)}"
        elif told:
            text = (
                f"{_tasks(told)} to be evicted for it ({told[0].cause}) at {format_time(max(n.deadline for n in told))}"
            )
        elif leaving:
            text = f"{_tasks(leaving)} still leaving for it"
        else:
            continue
        numbers = {"workload": victim.key, "tasks": len(steps or told or leaving)}
        found.append(Reason("MadeRoom", f"of {victim.key}, {text}", numbers))
    return found


def _tasks(some: Sequence[object]) -> str:
    return "1 task is" if len(some) == 1 else f"{len(some)} tasks are"


def _settling(played: PlayThrough, key: str) -> list[Reason]:
    """Say of tasks that were moved lately until when they are left alone."""
    if not any(e.workload == key and e.cause in MOVING for e in played.before.evictions):
        return []
    session = session_of(played.before)
    found = []
    for (workload, task), until in sorted(resting(session, moves_of(session, MoveMemory())).items()):
        if workload == key and until > session.now:
            text = f"{task} was moved lately, and is not moved again before {format_time(until)}"
            found.append(Reason("Settling", text, {"task": task, "until": format_time(until)}))
    return found


def _eligible(played: PlayThrough, key: str, prospects: EvictionProspects) -> list[Reason]:
    """Say of a workload that runs that it could be requeued, or why it could not."""
    found = []
    for entry in played.requeue.nominations:
        if entry.workload == key:
            since = "" if entry.since is None else f" since {format_time(entry.since)}"
            whom = ", ".join(entry.by)
            text = f"eligible{since} (nominated by {whom}), it still runs because "
            text += _why_not_requeued(played, key, prospects)
            numbers = {"since": None if entry.since is None else format_time(entry.since), "by": list(entry.by)}
            found.append(Reason("RequeueEligible", text, numbers))
    for skip in played.requeue.skipped:
        if skip.workload == key:
            text = f"{skip.plugin} does not nominate it to be requeued: {_SKIPPED[skip.reason]}"
            found.append(Reason("RequeueSkipped", text, {"plugin": skip.plugin, "reason": skip.reason}))
    reports = dict.fromkeys(played.requeue.reports.get(key, ()))
    return found + [Reason("InvalidSetting", text) for text in reports]


def _why_not_requeued(played: PlayThrough, key: str, prospects: EvictionProspects) -> str:
    """Say why a workload that may be requeued runs on: what keeps those back that would take its place, if any."""
    if any(s.workload == key and s.cause == REQUEUE for s in played.shadow):
        return "requeue is in shadow, and evicts nothing"
    if any(s.workload == key and s.cause == REQUEUE and s.action == "notice" for s in played.steps):
        return "its notice is not over"
    put_off = [(p.workload, r) for p in played.pending for r in p.reasons if _puts_requeue_off(r)][:MOST_PUT_OFF]
    put_off.sort(key=lambda entry: key not in entry[1].numbers.get("workloads", ()))
    for contender, reason in put_off:
        if key in reason.numbers.get("workloads", ()) or prospects.could_take(contender, REQUEUE, key):
            return f"{contender}, which could take its place, has to wait: {reason.message}"
    for refused in played.refused:
        if refused.workload == key and refused.cause == REQUEUE and refused.shield not in OF_QUEUES:
            return f"{refused.shield} protects it from {refused.beneficiary}"
    return "no more deserving workload would start"


def _puts_requeue_off(reason: Reason) -> bool:
    """Whether a reason of a workload that waits is that nothing is requeued for it yet."""
    return reason.code == "PreemptionDelay" or (
        reason.code in {"NotWorthYet", "CausePaused"} and reason.numbers["cause"] == REQUEUE
    )


def _likely_to_end(played: PlayThrough, workload: Workload) -> list[Reason]:
    """Say of a workload that runs when it is taken to end, where it does not say that itself and others tell of it."""
    settings, now, start = played.before.settings.worth.survival, played.before.now, workload.started_at
    if not settings.enabled or start is None or start > now:
        return []
    session = session_of(played.before)
    state = session.workloads[workload.key]
    own, found = state.end_at(), survival(session, state, now - start)
    if found is None or (own is not None and own > now):
        return []
    end = format_time(start + found.median)
    whose = "" if found.user is None else f"{found.user} in "
    text = (
        f"it is not said when it ends: of the last {found.known} finished runs of {whose}queue "
        f"{workload.queue or DEFAULT_QUEUE}, {found.longer} were "
        f"longer than its own so far, and half of these took no longer than {time_span(found.median)}; so it is "
        f"estimated to end {end}"
    )
    return [Reason("LikelyToEnd", text, {"end": end, "longer": found.longer, "known": found.known, "user": found.user})]


_SKIPPED = {
    "not_running": "it does not run",
    "not_preemptible": "it is not preemptible",
    "invalid_duration": "its expected runtime cannot be read",
    "missing_start": "its start is unknown",
    "clock_skew": "its start is in the future, so some clock is wrong",
    "cooldown": "it was requeued lately",
    "minruntime_protected": "its minimum runtime is not over",
}


def _held(refused: Refused) -> Reason:
    """Say by which shield a workload that runs was kept from giving way."""
    end = None if refused.until is None else format_time(refused.until)
    until = "" if end is None or end in refused.message else f" until {end}"
    whom = f" for {refused.beneficiary}" if refused.beneficiary else ""
    numbers = {"cause": refused.cause, "for": refused.beneficiary, "shield": refused.shield}
    text = f"it was not evicted{whom} by {refused.cause}: {refused.message} ({refused.shield}{until})"
    return Reason("Shielded", text, numbers)


def _future(pending: Pending, played: PlayThrough) -> int | None:
    start = pending.estimated_start
    return start if start is not None and start > played.before.now else None


def _waiting_headline(workload: Workload, now: int, placed: int) -> str:
    waited = time_span(max(0, now - workload.created_at))
    queue = workload.queue or DEFAULT_QUEUE
    if placed:
        return f"{placed} of its {len(workload.tasks)} tasks run in queue {queue}; the others wait"
    return f"it waits in queue {queue} with priority {workload.priority}, and has waited for {waited}"
