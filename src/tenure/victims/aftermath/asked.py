"""About which workloads a cause is asked once victims have gone, by a look that costs little.

Those who could be helped next, and those who could take the contender's place; the search says which of them are.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from operator import sub
from typing import NamedTuple

from tenure.engine.refusal import Refusal
from tenure.engine.serving.placement import Placer, may_move
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import PENDING, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.model.modes import enabled_for
from tenure.model.settings import Cause
from tenure.shields.delay import evicts_never
from tenure.shields.short import SHIELD as SHORT
from tenure.victims.bounds.room_demand import RoomDemand, room_in_all, room_of_all
from tenure.victims.dry_run.outcome import TAKEN_AGAIN, AcceptedSet
from tenure.victims.passes.preemption_pass import MakeRules
from tenure.victims.rules.causes import CauseRules, overdue
from tenure.victims.rules.pieces import held

MOST_RIVALS = 4
"""Kinds of workloads of one leaf of which it is asked whether they would take the contender's place."""

MOST_LOOKED_AT = 64
"""Places of a leaf's order, from its beginning, in which such kinds are looked for."""

MOST_ASKED = 4
"""Of all those who might take the place, or grow, those for which a search is made."""

MOST_STEPS = 32
"""Steps of one such workload that are looked at, one after the other."""


class Asked(NamedTuple):
    """One workload for which one cause may be asked; the rules of moves are those of consolidate."""

    workload: WorkloadState
    rules: CauseRules
    cause: Cause


class AskedWorkloads:
    """The workloads about which some cause is asked, with its rules.

    Parameters
    ----------
    session
        The session.
    placer
        What finds places on it.
    causes
        By cause that may follow, what makes its rules for a contender; in the order in which they are asked.
    """

    def __init__(self, session: Session, placer: Placer, causes: Mapping[Cause, MakeRules]) -> None:
        self.session = session
        self.placer = placer
        self.causes = causes

    def enabled(self, cause: str) -> dict[Cause, MakeRules]:
        """Give the causes that may follow from one, with their rules."""
        enabled = enabled_for(self.session.settings, cause)
        return {name: make for name, make in self.causes.items() if name in enabled}

    def may_be_helped(
        self, victims: Iterable[WorkloadState], causes: Mapping[Cause, MakeRules], shares: CurrentShares
    ) -> Iterator[Asked]:
        """Give victims that wait, with each cause that could do something for them by a cheap look."""
        for victim in victims:
            if victim.step is None or victim.entry is None or evicts_never(victim):
                continue
            for cause, make in causes.items():
                if cause == "reschedule" and "consolidate" in causes and not self._anyone_spared:
                    continue  # its moves are the same
                if self._could(cause, victim):
                    rules = make(victim, shares)
                    if rules.contender_may() is None:
                        yield Asked(victim, rules, cause)

    def _could(self, cause: Cause, workload: WorkloadState) -> bool:
        if cause == "preempt":
            return self._lowest.get(workload.leaf, workload.priority) < workload.priority
        easy = self.session.settings.backfill == "easy"
        if (cause == "reschedule" or (cause == "requeue" and easy)) and self._fits(workload):
            return False  # it leaves what fits without a move, which a reservation may keep out, to wait for its turn
        if cause in ("consolidate", "reschedule"):
            return may_be_moved_for(self.session, workload)
        return cause != "requeue" or any(overdue(self.session, w) for w in self.session.roster.expecting.values())

    def _fits(self, workload: WorkloadState) -> bool:
        """Whether a step has room as things are: parts of GPUs find it on devices, and not on nodes."""
        step = workload.step
        if step is None or not (demand := RoomDemand(self.session, step)).met(()):
            return False
        with self.session.scenario():
            return demand.exact or self.placer.place(workload, step)

    @cached_property
    def _lowest(self) -> dict[int, int]:
        """By leaf, the lowest priority of all its workloads that may give way."""
        found: dict[int, int] = {}
        for workload in self.session.workloads.values():
            if not workload.fixed and workload.priority < found.get(workload.leaf, 1 << 40):
                found[workload.leaf] = workload.priority
        return found

    @cached_property
    def _anyone_spared(self) -> bool:
        """Whether something asked to be spared, which the rescheduler moves where nothing else helps."""
        return any(w.sparing for w in self.session.workloads.values())

    def rivals(
        self,
        contender: WorkloadState,
        got: Sequence[TaskState],
        result: AcceptedSet,
        causes: Mapping[Cause, MakeRules],
        shares: CurrentShares,
    ) -> Iterator[Asked]:
        """Give those that wait and might take the contender's place, by the rules of queues alone."""
        mover: Cause = "reschedule" if "reschedule" in causes else "consolidate"
        victims, room = result.victims, room_of_all(self.session) if mover in causes else ()
        taking: dict[Cause, Callable[[WorkloadState], bool]] = {
            "preempt": lambda r: r.leaf == contender.leaf and r.priority > contender.priority,
            "reclaim": lambda r: r.leaf != contender.leaf,
            mover: partial(may_be_moved_for, self.session, room=room),
        }
        if overdue(self.session, contender):  # what starts now is not, but what grows may be
            taking["requeue"] = lambda _: True
        for cause, may in taking.items():
            if cause not in causes:
                continue
            for rival in self._kinds({contender, *victims}, may):
                rules = causes[cause](rival, shares)
                if self._may_take_from(rules, contender, got, result):
                    yield Asked(rival, rules, cause)

    def _kinds(self, but: Collection[WorkloadState], may: Callable[[WorkloadState], bool]) -> Iterator[WorkloadState]:
        """Give the first of each kind that waits and may take something, a few of each leaf."""
        for entries in self.session.waiting.entries.values():
            kinds: set[object] = set()
            for entry in entries[:MOST_LOOKED_AT]:
                rival: WorkloadState = entry[-1]
                if rival.entry is not entry or rival in but or rival.step is None:
                    continue
                if evicts_never(rival) or not may(rival):
                    continue
                kind = rival.step.amount, rival.priority
                if kind not in kinds:
                    kinds.add(kind)
                    yield rival
                if len(kinds) == MOST_RIVALS:
                    break

    def _may_take_from(
        self, rules: CauseRules, contender: WorkloadState, got: Sequence[TaskState], result: AcceptedSet
    ) -> bool:
        refusal = rules.contender_may() or rules.eligible(contender)
        if refusal is not None and refusal.shield != SHORT:  # its core will be whole
            return False
        return rules.may_take(contender, held(self.session, got), core=not result.growth, owed=[]) is None

    def growing(self, but: WorkloadState | None = None) -> list[WorkloadState]:
        """Give all workloads, or all others, that ask for more once what they were promised is bound."""
        nominated = {t.workload for t in self.session.nominated}
        return sorted((w for w in nominated if w is not but and will_grow(w)), key=lambda w: w.key)

    def is_at_risk(self, contender: WorkloadState, got: Sequence[TaskState], placer: Placer | None = None) -> bool:
        """Whether another might take from a contender what it got; with a ``placer``, once what is left over is given.

        Others of its leaf, to which that goes, may bring the leaf beyond what it is guaranteed.
        """
        if not got or contender.fixed:
            return False
        queues, leaf, amount = self.session.queues, contender.leaf, held(self.session, got)
        if not queues.within_guaranteed(leaf, amount, tuple(map(sub, queues.allocated[leaf], amount))):
            return True
        entries = self.session.waiting.entries[leaf][:MOST_LOOKED_AT] if placer is not None else ()
        first = {t.cls.id: t for *_, w in entries if w.entry is not None and w.step is not None for t in w.step.tasks}
        growing = {n.workload for n in self.session.nominated if n.workload.leaf == leaf} if placer is not None else ()
        first |= {t.cls.id: t for w in growing for t in w.tasks if t.phase is PENDING and t.nominated < 0}
        return placer is not None and any(placer.find(task)[0] >= 0 for task in first.values())


def may_be_moved_for(session: Session, workload: WorkloadState, room: Sequence[int] | None = None) -> bool:
    """Whether something may move, and all ``room`` together would do for a workload that waits: moves make none."""
    step = workload.step
    return step is not None and may_move(session) and room_in_all(session, step, room)


def will_grow(workload: WorkloadState) -> bool:
    """Whether a workload that is nominated will ask for more once that is bound; it asks for nothing until then."""
    waiting = {t.nominated >= 0 for t in workload.tasks if t.phase is PENDING}
    return len(waiting) > 1


def asks_for_more(workload: WorkloadState) -> bool:
    """Whether a workload that waits would ask for another step after this one."""
    waiting = sum(t.phase is PENDING and t.nominated < 0 for t in workload.tasks)
    return workload.step is not None and waiting > len(workload.step.tasks)


def taken_again(contender: WorkloadState, taker: Asked) -> Refusal:
    """Refuse to help a contender whose place another would take."""
    text = f"{taker.workload.key} would take the place from {contender.key} again ({taker.rules.cause})"
    return Refusal(TAKEN_AGAIN, text, about=taker.workload.key)


def by_name(task: TaskState) -> tuple[str, int]:
    """Order tasks by workload and number."""
    return task.workload.key, task.index
