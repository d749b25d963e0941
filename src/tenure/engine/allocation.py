"""The pass of allocation over all that wait, in order: in a scenario up to a contender, or to its end (spec: order)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.engine.backfill import ExpectedReleases
from tenure.engine.order import Keys, QueueOrder, QueueShares, Skip
from tenure.engine.placement import Placer, has_choice
from tenure.engine.scenario_backfill import ScenarioBackfill
from tenure.engine.session import Session
from tenure.engine.workloads import Demand, TaskState, WorkloadState


class AllocationOutcome(NamedTuple):
    """Every task that was placed, and whether the contender is among those that were served."""

    placed: list[TaskState]
    reached: bool


def held_back(session: Session, workload: WorkloadState, step: Demand) -> bool:
    """Whether a queue's maximum, or guarantees that must not be borrowed against, forbid a step."""
    queues, leaf = session.queues, workload.leaf
    if queues.limited[leaf] and queues.over_max(leaf, step.amount) is not None:
        return True
    return workload.fixed and queues.beyond_guaranteed(leaf, step.amount) is not None


def serve(
    session: Session,
    placer: Placer,
    shares: QueueShares,
    contender: WorkloadState | None = None,
    victims: Sequence[WorkloadState] = (),
    *,
    keys: Keys | None = None,
    endings: ExpectedReleases | None = None,
    before: QueueOrder | None = None,
) -> AllocationOutcome:
    """Serve all that wait, victims included, in order, until the contender's next step has found its place or lost it.

    Without a contender everybody is served, and backfilling keeps no reservation. With one: once the contender is
    served, the others are gone on with only where a victim might find a place: what is left over for anybody else is
    the next cycle's. ``keys``: see `QueueOrder`. With backfill ``easy`` nobody delays the first that does not fit;
    ``endings`` are as before the victims went, and so is ``before``, the order at its beginning.
    """
    most = session.most_room()
    easy = contender is not None and session.settings.backfill == "easy"
    remaining = ScenarioBackfill(session, placer, contender, victims, endings) if easy and contender else None
    place = placer.place if remaining is None else remaining.try_place

    def without_effect(who: WorkloadState, step: Demand) -> bool:
        return who is not contender and step.cannot_fit(session.epoch, most)

    def would_delay(who: WorkloadState, step: Demand) -> bool:
        return remaining is not None and who is not contender and remaining.known_to_delay(who, step)

    order = _order(
        session, shares, without_effect if remaining is None else would_delay, contender, victims, keys, before
    )
    placed: list[TaskState] = []
    served = False
    while (workload := order.next()) is not None:
        step = workload.step
        assert step is not None
        infeasible = without_effect(workload, step)
        if not infeasible and not held_back(session, workload, step) and place(workload, step):
            placed += step.tasks
            if remaining is not None:
                remaining.served(workload)
            session.refresh(workload)
            order.served(workload)
            served = served or workload is contender
            if contender is None:
                continue
            if _any_fits(session, placer, victims) if served else not _lost(placer, contender):
                continue
            break
        if workload is contender and not served:
            break
        _note_failure(session, workload, step, remaining, infeasible=infeasible)
        order.pass_over(workload)
    return AllocationOutcome(placed, served)


def _order(
    session: Session,
    shares: QueueShares,
    skip: Skip,
    contender: WorkloadState | None,
    victims: Sequence[WorkloadState],
    keys: Keys | None,
    before: QueueOrder | None,
) -> QueueOrder:
    """Give the order from its beginning: taken up again, where it is known how it was before the victims went."""
    changed = {w.leaf for w in (contender, *victims) if w is not None}
    again = None if before is None else before.again(skip, changed)
    return again if again is not None else QueueOrder(session, shares, skip, keys=keys)


def _lost(placer: Placer, contender: WorkloadState) -> bool:
    """Whether it is clear that a contender gets no place any more: room only shrinks."""
    assert contender.step is not None
    first = contender.step.tasks[0]
    plain = first.terms is None and not has_choice(contender.root)
    return plain and placer.find(first)[0] < 0


def _note_failure(
    session: Session, workload: WorkloadState, step: Demand, remaining: ScenarioBackfill | None, *, infeasible: bool
) -> None:
    """Note what a step that found no place means for those after it: whom they must not delay, what need not be tried.

    What was tried beside a reservation has been noted there.
    """
    if infeasible if remaining is None else not infeasible:
        return
    if held_back(session, workload, step):
        return
    if remaining is not None:
        remaining.block(workload)
    elif step.shape is not None:
        step.shape.failed = session.epoch


def promise(session: Session, tasks: Sequence[TaskState]) -> None:
    """Nominate tasks where they were bound: a contender for whom something is evicted is never bound at once."""
    for task in tasks:
        if task.node >= 0:
            node, devices = task.node, task.devices
            session.withdraw(task)
            session.nominate(task, node, devices)


def _any_fits(session: Session, placer: Placer, victims: Sequence[WorkloadState]) -> bool:
    """Whether a step of some victim might find room."""
    seen: set[int] = set()
    for victim in victims:
        step = victim.step
        if step is None or victim.entry is None:
            continue
        first = step.tasks[0]
        if first.terms is None:
            if first.cls.id in seen:
                continue
            seen.add(first.cls.id)
        if placer.find(first)[0] >= 0 and not held_back(session, victim, step):
            return True
    return False
