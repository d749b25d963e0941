"""The rescheduler beside another scheduler, on a live cluster: it evicts and guides, the other one binds.

Each cycle looks at what is written down and goes one step on: room is kept before anything leaves, what leaves is
planned anew on the cluster as it is by then, the next wave waits until the last has landed, and what was kept is given
back as soon as it is filled, as soon as nothing helps any more, and in any case when its time is over. Nothing of this
is remembered but in the cluster, so that any leader goes on from there.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Final

from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.external import reservations
from tenure.clusters.kubernetes.external.admission_check import DEAF, NOT_KNOWN
from tenure.clusters.kubernetes.external.controller import ReservationController
from tenure.clusters.kubernetes.external.reservations import DepartedPod, NodeReservation
from tenure.clusters.kubernetes.external.seen import EFFECT, pending_pods
from tenure.clusters.kubernetes.external.writes import CONFLICT
from tenure.clusters.kubernetes.read.nominations import DEFAULT_GRACE, RETURN_WITHIN
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write.actor import Actor
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.cycle import Scheduler
from tenure.engine.plan import Plan, PlanStep
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.live.confirm import Confirmation
from tenure.live.port import ObjectNote
from tenure.model.cluster import Cluster
from tenure.model.modes import mode_of
from tenure.model.settings import MINUTE, Settings
from tenure.model.values.duration import format_time
from tenure.model.workload import Phase
from tenure.rescheduler.memory import CAUSE, NEW_NODES, UNDER_WAY, MoveMemory
from tenure.rescheduler.problem.external import external
from tenure.telemetry.events import events_of

SECOND: Final = 1_000_000
PATIENCE: Final = DEFAULT_GRACE + RETURN_WITHIN
AGAIN: Final = 300_000
"""µs after a write until the watches are asked what came of it."""

TIDY: Final = 5 * SECOND
"""µs between two looks for what nobody has a record of."""

SHARE: Final = 100
"""Where nothing is under way, it is not planned again before this many times what the last planning took."""

SHARE_UNDER_WAY: Final = 2
"""The same while room is kept, which others miss, and before a second look."""

_TOLD: Final = frozenset({"Evicted", "WouldEvict"})


@dataclass(slots=True)
class ExternalOutcome:
    """The outcome of one cycle on an external scheduler's pods: ``wake`` is when to look again (µs since the epoch)."""

    plan: Plan
    session: Session | None = None
    outcome: Outcome = field(default_factory=Outcome)
    notes: list[ObjectNote] = field(default_factory=list)
    wake: int | None = None

    def tell(self, hole: NodeReservation, reason: str, message: str) -> None:
        """Tell those for whom room is kept, or was to be."""
        self.notes += [ObjectNote("workload", key, reason, message) for key in hole.whose]

    def wake_at(self, time: int) -> None:
        """Look again at a time."""
        self.wake = time if self.wake is None else min(self.wake, time)


@dataclass(frozen=True, slots=True)
class _Due:
    """What the memory says of when something is looked at again."""

    again: dict[str, int]
    vain: dict[str, int]
    improved: int | None
    unfinished: bool

    @classmethod
    def of(cls, memory: MoveMemory) -> _Due:
        return cls(dict(memory.again), dict(memory.vain), memory.improved, memory.unfinished)

    def restore(self, memory: MoveMemory) -> None:
        memory.again, memory.vain = dict(self.again), dict(self.vain)
        memory.improved, memory.unfinished = self.improved, self.unfinished


class ExternalRescheduler:
    """The mover of pods of the external schedulers that the settings name."""

    def __init__(self, actor: Actor, reservation_controller: ReservationController) -> None:
        self.actor = actor
        self.reservation_controller = reservation_controller
        self.recorded: set[tuple[str, str, str]] = set()
        self.confirmation = Confirmation()
        self._memory = MoveMemory()
        self._before = _Due.of(self._memory)
        self._rest = self._tidied = self._planned = self._took = 0
        self._version = -1

    def begin(self) -> None:
        """Lead anew: what was planned before needs a second look."""
        self.confirmation = Confirmation()
        self._rest = self._tidied = self._planned = self._took = 0

    def cycle(self, observed: Observed, settings: Settings, plan: Plan) -> ExternalOutcome | None:
        """Go one step on; None where there is nothing to do. ``plan`` is what was done about Tenure's own pods."""
        if not settings.rescheduler.schedulers and not self.reservation_controller.seen.is_needed():
            return None
        now, turn = observed.cluster.now, ExternalOutcome(Plan(observed.cluster.now))
        if now < self._rest:
            turn.wake_at(self._rest)
            return turn
        hole = self.reservation_controller.seen.hole()
        if now >= self._tidied + TIDY:
            self._tidied = now
            self.reservation_controller.tidy(hole, turn.outcome, now)
        cluster = replace(observed.cluster, settings=settings)
        if hole is None or self._stands(hole, observed, cluster, turn):
            self._act(hole, observed, cluster, plan, turn)
        if turn.outcome.done or turn.outcome.failures:
            self._rest = now + AGAIN
            turn.wake_at(self._rest)
        return turn

    # -- what is kept -----------------------------------------------------------------------------------------------

    def _stands(self, hole: NodeReservation, observed: Observed, cluster: Cluster, turn: ExternalOutcome) -> bool:
        """Whether what is kept is to be kept further, and it is time for the next move."""
        now, reservation_controller = cluster.now, self.reservation_controller
        gone = reservation_controller.seen.gone(hole)
        sent_at = {entry.uid: micros(entry.at) or 0 for entry in observed.log} if gone else {}
        landed = reservation_controller.seen.landed(hole, sent_at, now, PATIENCE)
        turn.wake_at(min(hole.ends, now + TIDY) if now < hole.ends else now + TIDY)
        if hole.released and not landed and now < hole.ends + PATIENCE:
            return False
        if hole.released or (gone and landed and not hole.pods):
            reservation_controller.release(hole, turn.outcome, landing=False)
        elif now >= hole.ends:
            self._give_up(hole, turn, "its time is over", landing=not landed)
        elif hole.pods and reservation_controller.seen.is_filled(hole):
            reservation_controller.release(hole, turn.outcome, landing=not landed)
            turn.tell(hole, "HoleFilled", "it has its place; the room that was kept for it is given back")
        elif hole.pods and not reservation_controller.seen.waits(hole):
            self._give_up(hole, turn, "nothing waits for it", landing=not landed)
        elif not gone and not _moves(cluster.settings):
            self._give_up(hole, turn, "nothing may be moved any more", landing=False)
        else:
            return landed
        return False

    def _give_up(
        self, hole: NodeReservation, turn: ExternalOutcome, why: str, *, landing: bool, reason: str = "HoleGivenUp"
    ) -> None:
        """Give back what is kept although nobody has filled it; those who wait for it are not tried again soon."""
        self.reservation_controller.release(hole, turn.outcome, landing=landing)
        self._fail(hole.whose, turn)
        turn.tell(hole, reason, f"no room is kept for it any more: {why}")

    def _fail(self, whose: Sequence[str], turn: ExternalOutcome) -> None:
        for key in whose:
            self._memory.failed(key, turn.plan.now, MINUTE)

    # -- what leaves ------------------------------------------------------------------------------------------------

    def _act(
        self, hole: NodeReservation | None, observed: Observed, cluster: Cluster, plan: Plan, turn: ExternalOutcome
    ) -> None:
        """Plan on the cluster as it is now; keep room for that, or carry it out where the room is kept already."""
        if not _moves(cluster.settings, shadow=True):
            return
        due = cluster.now if hole is not None else _due_at(cluster, self._memory)
        if due is None or due > cluster.now:
            turn.wake_at(due) if due is not None else None
            return
        under_way = hole is not None or not self.confirmation.done
        soonest = self._planned + max(SECOND, self._took * (SHARE_UNDER_WAY if under_way else SHARE))
        if hole is not None:
            soonest = max(soonest, hole.written + EFFECT)
        if cluster.now < soonest:
            if under_way or self.reservation_controller.informers.version() != self._version:
                turn.wake_at(soonest)
            return
        made, seen = self._plan(hole, cluster, plan, turn)
        wave = _first_wave(made)
        turn.plan = replace(made, steps=[])
        turn.notes += _told(turn.plan, turn)
        if not self.confirmation.of(replace(made, steps=wave), observed.identities).steps and wave:
            turn.wake_at(cluster.now + AGAIN)
        elif wave:
            self._go_on(hole, made, wave, replace(observed, cluster=seen), turn)
        elif hole is not None:
            self._nothing_leaves(hole, made, turn)

    def _nothing_leaves(self, hole: NodeReservation, made: Plan, turn: ExternalOutcome) -> None:
        """Give back what is kept where no move helps; not because the plan has not seen yet what has landed."""
        reasons = [reason for key in hole.whose for reason in made.obstacles.get(key, ())]
        if reasons and reasons[0].code == UNDER_WAY:
            turn.wake_at(made.now + AGAIN)
        elif reasons:
            self._give_up(hole, turn, reasons[0].message, landing=False)
        elif not hole.pods:
            self.reservation_controller.release(hole, turn.outcome, landing=False)

    def _plan(
        self, hole: NodeReservation | None, cluster: Cluster, plan: Plan, turn: ExternalOutcome
    ) -> tuple[Plan, Cluster]:
        """Plan; what was planned before and is looked at once more is planned as if for the first time."""
        began, self._version = time.monotonic(), self.reservation_controller.informers.version()
        if hole is not None or not self.confirmation.done:
            self._before.restore(self._memory)
        else:
            self._before = _Due.of(self._memory)
        self._memory.look_at = 0
        self._memory.sent.clear()
        kept = cluster if hole is None else _opened(cluster, hole)
        seen = external(kept, plan, set(hole.whose) if hole is not None and hole.pods else None)
        session = turn.session = session_of(seen)
        scheduler = Scheduler(session, self.recorded)
        scheduler.context.rescheduling = self._memory
        made = scheduler.cycle(cluster.now)
        took = round((time.monotonic() - began) * SECOND)
        self._took = took if self._planned else 0  # the first loads what planning takes, which no other does
        self._planned = cluster.now
        if made.wake is not None:
            turn.wake_at(max(made.wake, self._planned + SECOND))
        return made, seen

    def _go_on(
        self, hole: NodeReservation | None, made: Plan, wave: list[PlanStep], observed: Observed, turn: ExternalOutcome
    ) -> None:
        wanted = _wanted(hole, made, wave, observed, self.reservation_controller)
        now, plan = made.now, replace(made, steps=wave)
        if hole is None or not _covers(hole, wanted):
            refused = self.actor.refusals(plan, observed)
            if refused:
                turn.outcome.failures += refused
                self._refused(hole, wanted.whose, turn, str(refused[0].error))
            elif self.reservation_controller.keep(wanted, turn.outcome):
                turn.tell(wanted, "HoleKept", f"room is kept for it on {', '.join(wanted.nodes)}")
            elif turn.outcome.failures[-1].error.status == CONFLICT:  # the watch has not shown the record as it is
                turn.wake_at(now + AGAIN)
            else:
                self._fail(wanted.whose, turn)
                why = str(turn.outcome.failures[-1].error)
                turn.tell(wanted, "HoleRefused", f"no room can be kept for it: {why}")
        elif not self.reservation_controller.seen.in_effect(hole, now):
            self.reservation_controller.keep(hole, turn.outcome)
            turn.wake_at(now + AGAIN)
        elif self.reservation_controller.is_known(hole, turn.outcome):
            self._evict(hole, plan, observed, turn)
        elif now < hole.written + DEAF:
            turn.wake_at(now + AGAIN)
        else:
            self._give_up(hole, turn, NOT_KNOWN, landing=False, reason="HoleRefused")

    def _evict(self, hole: NodeReservation, plan: Plan, observed: Observed, turn: ExternalOutcome) -> None:
        before = len(turn.outcome.failures)
        self.actor.evict(plan, observed, turn.outcome)
        evicted = {(s.workload, s.task_index) for s in turn.outcome.done if s.action == "evict"}
        steps = [s for s in plan.steps if (s.workload, s.task_index) in evicted]
        turn.plan = replace(turn.plan, steps=steps)
        turn.notes += _told(replace(turn.plan, shadow=[]), turn)
        failed = turn.outcome.failures[before:]
        if not steps and failed and all(f.error.status for f in failed):
            self._refused(hole, hole.whose, turn, str(failed[0].error))

    def _refused(self, hole: NodeReservation | None, whose: Sequence[str], turn: ExternalOutcome, why: str) -> None:
        """Keep nothing for moves that are refused: a budget may refuse them for long."""
        if hole is not None:
            self._give_up(hole, turn, why, landing=False)
        else:
            self._fail(whose, turn)


def _wanted(
    hole: NodeReservation | None,
    made: Plan,
    wave: list[PlanStep],
    observed: Observed,
    controller: ReservationController,
) -> NodeReservation:
    """Give the record that a plan needs before its first wave may leave."""
    leaving = {(s.workload, s.task_index) for s in made.steps if s.action == "evict"}
    places = [s for s in made.steps if s.action == "nominate" and (s.workload, s.task_index) not in leaving]
    whose = tuple(dict.fromkeys([s.beneficiary for s in wave if s.beneficiary] + [s.workload for s in places]))
    pods = [observed.pod(s.workload, s.task_index).uid for s in places]
    if not places:
        pods = [p.uid for key in whose for p in pending_pods(observed, key)]
    nodes = {s.node for s in places} | {s.node for s in made.steps if s.action == "evict" and s.beneficiary}
    moves = tuple(sorted((_move(s, observed) for s in wave), key=lambda m: m.pod))
    if hole is not None:
        nodes |= {m.target for m in moves} & set(hole.nodes)
    now, leaves = made.now, max([made.now, *(s.leaves_at for s in wave)])
    goes_on = hole is not None and not controller.seen.gone(hole)
    return NodeReservation(
        id=hole.id if hole is not None else sha256(f"{now}{pods}{moves}".encode()).hexdigest()[:16],
        at=format_time(now),
        until=hole.until
        if hole is not None and goes_on
        else format_time(leaves + observed.cluster.settings.nomination_timeout),
        whose=whose,
        pods=tuple(sorted(pods)),
        nodes=tuple(sorted(nodes)) if whose else (),
        moves=moves,
    )


def _move(step: PlanStep, observed: Observed) -> DepartedPod:
    pod = observed.pod(step.workload, step.task_index)
    return DepartedPod(pod=pod.uid, controller=pod.controller, origin=step.node, target=step.to or "")


def _moves(settings: Settings, *, shadow: bool = False) -> bool:
    mode = mode_of(settings, CAUSE)
    return bool(settings.rescheduler.schedulers) and (mode == "enforce" or (shadow and mode == "shadow"))


def _due_at(cluster: Cluster, memory: MoveMemory) -> int | None:
    """Give when anything may have a reason to move (µs since the epoch): a look that spares a session until then."""
    settings, now = cluster.settings.rescheduler, cluster.now
    times = [now] if settings.hot_nodes.enabled or any(n.drain for n in cluster.nodes) else []
    if settings.new_nodes.enabled:
        times.append(memory.again.get(NEW_NODES, now))
    if settings.background.interval is not None:
        looked = memory.improved
        times.append(now if looked is None or memory.unfinished else looked + settings.background.interval)
    names = settings.schedulers
    for workload in cluster.workloads:
        if workload.scheduler_name in names:
            since = [t.created_at or 0 for t in workload.tasks if t.phase is Phase.PENDING]
            if since:
                times.append(max(min(since) + settings.pending_for, memory.again.get(workload.key, 0)))
    return min(times, default=None)


def _opened(cluster: Cluster, hole: NodeReservation) -> Cluster:
    """Give a cluster as those see it for whom room is kept."""
    return replace(cluster, nodes=tuple(reservations.without_taint(n, hole.id) for n in cluster.nodes))


def _covers(hole: NodeReservation, wanted: NodeReservation) -> bool:
    """Whether what is kept is all that is wanted."""
    return (
        set(wanted.nodes) <= set(hole.nodes)
        and set(wanted.pods) <= set(hole.pods)
        and set(wanted.moves) <= set(hole.moves)
    )


def _first_wave(plan: Plan) -> list[PlanStep]:
    """Give the evictions that may be made before others have landed."""
    steps = [s for s in plan.steps if s.action == "evict"]
    first = min((s.wave or 0 for s in steps), default=0)
    return [s for s in steps if (s.wave or 0) == first]


def _told(plan: Plan, turn: ExternalOutcome) -> list[ObjectNote]:
    """Give the events of what was evicted, or would have been."""
    assert turn.session is not None
    return [ObjectNote(*event) for event in events_of(plan, turn.session) if event.reason in _TOLD]
