"""Plays cycles on a cluster file: what would be done, and why what waits still waits."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tenure.clusters.embedded import EmbeddedCluster
from tenure.cycle import Scheduler
from tenure.engine.kept_session import brought_in_step
from tenure.engine.moves import MovePlan
from tenure.engine.plan import NextEviction, Pending, Plan, PlanStep, Reason, Refused
from tenure.engine.quota_state import QuotaEvent, QuotaState
from tenure.engine.reasons import why_pending
from tenure.engine.requeued import RequeueOutcome
from tenure.engine.serving.estimate import estimated_starts
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import GATED, PENDING
from tenure.fairness.current import Fairness
from tenure.model.cluster import Cluster
from tenure.model.modes import mode_of
from tenure.rescheduler.memory import CAUSE
from tenure.telemetry.events import CycleEvent, events_of
from tenure.telemetry.quota_history import QuotaHistory, QuotaTrack
from tenure.telemetry.samples import Sample, add_up, samples_of

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class QueueView:
    """A queue at the end: amounts by resource, GPUs in milli-GPU; ``maximum`` and ``guaranteed`` as configured."""

    name: str
    allocated: dict[str, int]
    fair_share: dict[str, int]
    guaranteed: dict[str, int]
    maximum: dict[str, int]


@dataclass(slots=True)
class PlayThrough:
    """The outcome of playing cycles: all steps, and the state after the last one.

    ``follow_ups`` are those of each cycle's plan, with the number of the cycle. ``events`` has, for each event, the
    cycle in which it was first said. ``external`` is the plan of the last cycle for the pods of
    `rescheduler.schedulers`, which other schedulers bind: what of them is moved, and why the rest waits. It is not
    carried out in ``after``; its own ``after`` has both plans carried out. ``session`` holds what ``after`` holds,
    where one workload was asked about: making it takes as long as a twentieth of all that is played.
    """

    before: Cluster
    after: Cluster
    steps: list[PlanStep] = field(default_factory=list)
    pending: list[Pending] = field(default_factory=list)
    queues: list[QueueView] = field(default_factory=list)
    refused: list[Refused] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    quota: list[QuotaState] = field(default_factory=list)
    moves: list[MovePlan] = field(default_factory=list)
    quota_events: list[QuotaEvent] = field(default_factory=list)
    quota_tracks: list[QuotaTrack] = field(default_factory=list)
    requeue: RequeueOutcome = field(default_factory=RequeueOutcome)
    shadow: list[PlanStep] = field(default_factory=list)
    follow_ups: list[tuple[int, NextEviction]] = field(default_factory=list)
    counters: list[Sample] = field(default_factory=list)
    events: dict[CycleEvent, int] = field(default_factory=dict)
    external: PlayThrough | None = None
    session: Session | None = None


def play(cluster: Cluster, *, cycles: int = 1, every: int = SECOND, about: str | None = None) -> PlayThrough:
    """Play ``cycles`` cycles, ``every`` µs apart. ``before`` and ``after`` are the cluster at both ends.

    Each cycle decides on what the one before it left in the cluster, and on nothing else. ``about``: the workload
    (namespace/name) that is asked about; if it waits, no moves are sought for others. It is not said then what would
    follow from evictions, and of others that wait at most why nothing was evicted for them.
    """
    embedded, quotas = EmbeddedCluster(cluster), QuotaHistory()
    result = PlayThrough(before=cluster, after=cluster)
    session: Session | None = None
    obstacles: dict[str, list[Reason]] = {}
    recorded: set[tuple[str, str, str]] = set()
    seen, plan = cluster, Plan(cluster.now)
    for number in range(cycles):
        if number:
            embedded.advance(cluster.now + number * every)
        seen = embedded.observe()
        session = session_of(seen)
        scheduler = Scheduler(session, recorded, about)
        scheduler.cycles = number
        plan = scheduler.cycle(seen.now)
        result.steps += plan.steps
        result.refused, obstacles = plan.refused, plan.obstacles
        result.quota = plan.quota
        result.moves += plan.moves
        result.shadow += plan.shadow
        result.follow_ups += [(number, follow_up) for follow_up in plan.follow_ups]
        result.quota_events += plan.quota_events
        quotas.note(session, plan)
        result.requeue.add(plan.requeue)
        result.warnings += [w for w in plan.warnings if w not in result.warnings]
        result.counters = add_up(result.counters, samples_of(plan, session))
        for event in events_of(plan, session):
            result.events.setdefault(event, number)
        embedded.carry_out(plan)
    if session is None:
        session = session_of(cluster)
    result.after, result.quota_tracks = embedded.observe(), quotas.tracks()
    result.pending = explain_pending(session, obstacles, about)
    result.queues = queue_views(session)
    result.external = play_external(seen, plan, result.after, about)
    if about is not None:
        result.session = brought_in_step(session, seen, result.after)
    return result


def play_external(cluster: Cluster, plan: Plan, after: Cluster, about: str | None = None) -> PlayThrough | None:
    """Plan once for the pods that other schedulers bind; None where the settings let none of them move.

    Parameters
    ----------
    cluster
        The cluster, before anything of the cycle was done.
    plan
        What the cycle does about Tenure's own pods, which counts as done.
    after
        The cluster once that is done.
    about
        The workload (namespace/name) that is asked about: of others that wait it is only said why nothing was evicted.
    """
    settings = cluster.settings
    if not settings.rescheduler.schedulers or CAUSE not in settings.actions or mode_of(settings, CAUSE) == "off":
        return None
    from tenure.rescheduler.problem.external import external  # noqa: PLC0415  few clusters need it

    view = external(cluster, plan)
    session, done = session_of(view), EmbeddedCluster(after)
    made = Scheduler(session).cycle(view.now)
    done.carry_out(made)
    return PlayThrough(
        before=view, after=done.observe(), steps=made.steps, pending=explain_pending(session, made.obstacles, about),
        refused=made.refused, warnings=made.warnings, moves=made.moves, shadow=made.shadow,
    )  # fmt: skip


def explain_pending(
    session: Session, obstacles: Mapping[str, Sequence[Reason]], about: str | None = None
) -> list[Pending]:
    """Say of each workload that has tasks to place why it waits, and when it would start.

    ``obstacles`` says, by workload, why nothing was evicted for it; of others than ``about`` only that is said.
    """
    states = [w for _, w in sorted(session.workloads.items()) if w.leaf >= 0]
    waiting = [w for w in states if any(t.phase in (PENDING, GATED) for t in w.tasks)]
    told = [w for w in waiting if about is None or w.key == about]
    starts = estimated_starts(session, Fairness(session)) if told else {}
    following = NextPass(session, Fairness(session).now)
    why = {w: why_pending(session, w, following) for w in told}
    return [Pending(w.key, (*why.get(w, ()), *obstacles.get(w.key, ())), starts.get(w.key)) for w in waiting]


def queue_views(session: Session) -> list[QueueView]:
    """Give all queues with what they hold and what they are due."""
    queues, shares = session.queues, Fairness(session).now()
    names = queues.resources
    views = []
    for number, queue in enumerate(queues.queues):
        views.append(
            QueueView(
                queue.name,
                dict(zip(names, queues.allocated[number], strict=True)),
                dict(zip(names, shares.fair[number], strict=True)),
                dict(queue.guaranteed),
                dict(queue.max),
            )
        )
    return views
