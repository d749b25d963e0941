"""The loop: whenever something changed, or a time has come, observe, decide, carry out, tell."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.engine.plan import Plan
from tenure.engine.state.session import Session
from tenure.live.confirm import Confirmation
from tenure.live.cycle_decider import CycleDecider
from tenure.live.isolation import Containment, Fault, Isolation
from tenure.live.port import ExternalPort, LiveCluster, ObjectNote
from tenure.live.refusals import Refusals
from tenure.live.refused_evictions import RefusedEvictions
from tenure.live.tables import EVENTS
from tenure.live.waiting_reasons import WaitingReasons
from tenure.model.cluster import EvictionOutcome, FinishedRuns
from tenure.model.settings import CAUSES, Settings
from tenure.telemetry.events import events_of

SECOND = 1_000_000


@dataclass(frozen=True, slots=True)
class Pace:
    """The pace of the loop, in seconds.

    ``least``: between two cycles, so that what comes together is decided together, or three times as long as the last
    one took of the processor if that is shorter; after cycles in a row in which a write was refused it doubles each
    time. ``most``: so long without a cycle where nothing changes, ``soon`` where something ends by itself; ``share``:
    of one core, what such looks at what has not changed may take. Rules that end name their time, so that nothing
    depends on these looks.
    """

    least: float = 0.05
    most: float = 30.0
    soon: float = 5.0
    share: float = 0.004


@dataclass(slots=True)
class Health:
    """The health of the loop, for probes and metrics.

    ``due``: when it looks again at the latest, of a monotonic clock.
    """

    due: float = field(default_factory=time.monotonic)
    cycles: int = 0
    leads: bool = False
    ready: bool = False


@dataclass(frozen=True, slots=True)
class CycleOutcome:
    """The outcome of one cycle, for metrics and the log.

    ``external``: what was done about pods of another scheduler.
    """

    plan: Plan
    observed: Any
    session: Session
    outcome: Any
    seconds: float
    deciding: float
    processor: float
    external: Any = None


class Loop:
    """The loop that decides on a live cluster for as long as this process leads.

    Parameters
    ----------
    cluster
        What is decided about.
    leads
        Whether this process may act; and the number of its term, which changes when it leads anew.
    told
        Called after each cycle.
    waits
        Called now and then while nothing is decided, because another replica leads or not everything was listed.
    looked
        Called in each cycle with the session as it was observed, before anything is decided on it.
    beside
        What moves pods of other schedulers, if anything does.
    failed
        Called for each fault that cost no more than its own workload.
    outcomes
        Gives what evictions came to of late; None where that is not known, or what the cluster says of it holds.
    finished
        Gives for how long workloads ran that have finished, as far as that is known.
    """

    def __init__(  # noqa: PLR0913  what a loop is made of
        self,
        cluster: LiveCluster,
        leads: Callable[[], int],
        *,
        pace: Pace | None = None,
        paused_until: Callable[[int], int] = lambda _: 0,
        looked: Callable[[Session], None] = lambda _: None,
        told: Callable[[CycleOutcome], None] = lambda _: None,
        waits: Callable[[], None] = lambda: None,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,
        external: ExternalPort | None = None,
        failed: Callable[[Fault], None] = lambda _: None,
        outcomes: Callable[[], tuple[EvictionOutcome, ...] | None] = lambda: None,
        finished: Callable[[], tuple[FinishedRuns, ...]] = tuple,
    ) -> None:
        self.cluster = cluster
        self.leads = leads
        self.pace = pace or Pace()
        self.paused_until = paused_until
        self.told = told
        self.waits = waits
        self.wall = wall
        self.external = external
        self.health = Health()
        self.confirmation = Confirmation()
        self.outcomes = outcomes
        self.finished = finished
        self._containment = containment = Containment(failed, cluster.fenced)
        self._decider = CycleDecider(lambda session: containment.alone("tell", "", lambda: looked(session)))
        self.isolation: Isolation[tuple[Session, Plan]] = Isolation(self._decider.decide, self._decider.attempt, failed)
        self._waiting = WaitingReasons(cluster, self.isolation.quarantine, containment)
        self.refusals = Refusals(self.isolation.quarantine)
        self.spared = RefusedEvictions()
        self._refused = 0
        self._term = 0
        self._stopped = threading.Event()
        self._last_now = 0

    def stop(self) -> None:
        """End after the present cycle."""
        self._stopped.set()
        self.cluster.wake()

    def run(self) -> None:
        """Go on until it is stopped."""
        pause = 0.0
        while not self._stopped.is_set():
            self.cluster.wait(pause)
            if self._stopped.is_set():
                return
            term = self.leads()
            self.health.leads, self.health.ready = bool(term), self.cluster.ready()
            if not term or not self.health.ready:
                self._term = 0 if not term else self._term
                pause = 0.2
                self.health.due = time.monotonic()
                self.waits()
                continue
            if term != self._term:
                self._term, self.confirmation = term, Confirmation()
                if self.external is not None:
                    self.external.begin()
            done = self.cycle()
            pause = self._pause(done)
            self.health.due = time.monotonic() + pause
            self._stopped.wait(min(self.pace.least, _REST * done.processor))

    def cycle(self) -> CycleOutcome:
        """Decide once, and carry out what may be carried out."""
        began, took = time.monotonic(), time.thread_time()
        now = self._now()
        observed = self.cluster.observe(now)
        observed = self._with_own_knowledge(observed, now)
        cluster = replace(observed.cluster, settings=self._settings(observed.cluster.settings, now))
        self._decider.begin()
        (session, plan), cluster = self.isolation.decided(cluster)
        decided = time.monotonic()
        allowed = plan if self.confirmation.done else self.confirmation.of(plan, observed.identities)
        if not self.cluster.stands(allowed):
            return self.cycle()
        outcome = self.cluster.carry_out(allowed, observed)
        self.refusals.note(outcome, cluster)
        refused = self._refused_evictions(allowed, observed, outcome, now)
        self._refused = self._refused + 1 if outcome.failures else 0
        turn = self._beside(observed, cluster.settings, allowed)
        notes = (self._containment.alone("tell", "", lambda: notes_of(allowed, session)) or []) + refused
        times = (allowed.wake, self.isolation.quarantine.wake(now), self.spared.wake(now), observed.wake)
        allowed.wake = min((at for at in times if at is not None), default=None)
        if turn is not None:
            notes += turn.notes
            allowed.wake = min((at for at in (allowed.wake, turn.wake) if at is not None), default=None)
        self.cluster.tell(notes, self._waiting.of(session, plan, observed, cluster), observed)
        self.health.cycles += 1
        ended, took = time.monotonic(), time.thread_time() - took
        done = CycleOutcome(allowed, observed, session, outcome, ended - began, decided - began, took, turn)
        self.told(done)
        return done

    def _with_own_knowledge(self, observed: Any, now: int) -> Any:
        """Give what was observed, with the evictions that were refused lately, and what others came to."""
        spared, outcomes, finished = self.spared.at(now), self.outcomes(), self.finished()
        if not spared and outcomes is None and not finished:
            return observed
        known = observed.cluster.outcomes if outcomes is None else outcomes
        cluster = replace(observed.cluster, refused_evictions=spared, outcomes=known, finished_runs=finished)
        return replace(observed, cluster=cluster)

    def _refused_evictions(self, plan: Plan, observed: Any, outcome: Any, now: int) -> list[ObjectNote]:
        """Spare those whose evictions were refused; gives what is to be told of it."""
        if not any(failure.action == "evict" for failure in outcome.failures):
            return []
        return self.spared.note(outcome, plan, observed.identities, now)

    def _beside(self, observed: Any, settings: Settings, plan: Plan) -> Any:
        """Go one step on beside another scheduler; what fails there leaves Tenure's own pods alone."""
        external = self.external
        if external is None:
            return None
        return self._containment.alone("decide", "", lambda: external.cycle(observed, settings, plan))

    def _now(self) -> int:
        """Give the time; it never goes back between two cycles."""
        self._last_now = max(self._last_now, self.wall())
        return self._last_now

    def _settings(self, settings: Settings, now: int) -> Settings:
        """While evictions are paused no cause evicts."""
        if self.paused_until(now) <= now:
            return settings
        return replace(settings, modes=dict.fromkeys(CAUSES, "off"))

    def _pause(self, done: CycleOutcome) -> float:
        """Give for how long to wait if nothing changes: until a rule ends, or the next regular look."""
        if not self.confirmation.done:
            return self.pace.least
        session, plan = done.session, done.plan
        if self.cluster.has_more_to_explain:
            return self.pace.least
        soon = session.nodes.waiting or session.noticed or plan.quota or plan.stale  # what has a term of its own
        longest = max(self.pace.soon if soon else self.pace.most, done.processor / self.pace.share)
        if self._refused:  # perhaps for a change that calls for no decision, so that nothing else would wake it
            longest = min(longest, self.pace.least * 2 ** min(self._refused, _MOST_DOUBLINGS))
        wake = done.plan.wake
        if wake is None:
            return longest
        return max(self.pace.least, min(longest, (wake - self.wall()) / SECOND))


_MOST_DOUBLINGS = 30
"""Of the pause after cycles in a row in which a write was refused; far beyond the longest pause."""

_REST = 0.3
"""So many times what a cycle took of a processor is the pause after it, `Pace.least` at most."""


def notes_of(plan: Plan, session: Session) -> list[ObjectNote]:
    """Give the events of a cycle: those of its plan, and what it started and promised."""
    notes = [ObjectNote("workload", key, "Started", EVENTS["Started"]) for key in plan.started]
    nodes: dict[str, dict[str, None]] = {}
    for step in plan.steps:
        if step.action == "nominate":
            nodes.setdefault(step.workload, {})[step.node] = None
    for key, names in nodes.items():
        shown = ", ".join(list(names)[:_MOST_NODES]) + (", …" if len(names) > _MOST_NODES else "")
        notes.append(ObjectNote("workload", key, "Promised", f"room is promised on {shown}"))
    notes += [ObjectNote(*event) for event in events_of(plan, session)]
    return list(dict.fromkeys(notes))


_MOST_NODES = 8
