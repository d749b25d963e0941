"""The ordinary allocate order, played through on a session inside a transaction (spec: the transaction)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from tenure.engine.backfill import Endings
from tenure.engine.order import Keys, QueueOrder, Shares, Skip
from tenure.engine.placement import Placer, has_choice
from tenure.engine.session import Session
from tenure.engine.workloads import NextStep, TaskState, WorkloadState
from tenure.victims.reserving import Reserving


class Served(NamedTuple):
    """Every task that was placed, and whether the contender is among those that were served."""

    placed: list[TaskState]
    reached: bool


def held_back(session: Session, workload: WorkloadState, step: NextStep) -> bool:
    """Whether a queue's maximum, or guarantees that must not be borrowed against, forbid a step."""
    queues, leaf = session.queues, workload.leaf
    if queues.limited[leaf] and queues.over_max(leaf, step.amount) is not None:
        return True
    return workload.fixed and queues.beyond_guaranteed(leaf, step.amount) is not None


def serve(
    session: Session,
    placer: Placer,
    shares: Shares,
    contender: WorkloadState,
    victims: Sequence[WorkloadState],
    *,
    keys: Keys | None = None,
    endings: Endings | None = None,
    before: QueueOrder | None = None,
) -> Served:
    """Serve all that wait, victims included, in order, until the contender's next step has found its place or lost it.

    Once the contender is served, the others are gone on with only where a victim
    might find a place: what is left over for anybody else is the next cycle's. ``keys``: see `QueueOrder`. With
    backfill ``easy`` nobody delays the first that does not fit; ``endings`` are as before the victims went, and so is
    ``before``, the order at its beginning.
    """
    most = session.most_room()
    easy = session.settings.backfill == "easy"
    beside = Reserving(session, placer, contender, victims, endings) if easy else None
    place = placer.place if beside is None else beside.try_place

    def in_vain(who: WorkloadState, step: NextStep) -> bool:
        return who is not contender and step.cannot_fit(session.epoch, most)

    def would_delay(who: WorkloadState, step: NextStep) -> bool:
        return beside is not None and who is not contender and beside.known_to_delay(who, step)

    order = _order(session, shares, in_vain if beside is None else would_delay, contender, victims, keys, before)
    placed: list[TaskState] = []
    served = False
    while (workload := order.next()) is not None:
        step = workload.step
        assert step is not None
        hopeless = in_vain(workload, step)
        if not hopeless and not held_back(session, workload, step) and place(workload, step):
            placed += step.tasks
            if beside is not None:
                beside.served(workload)
            session.refresh(workload)
            order.served(workload)
            served = served or workload is contender
            if _any_fits(session, placer, victims) if served else not _lost(placer, contender):
                continue
            break
        if workload is contender and not served:
            break
        _note_failure(session, workload, step, beside, hopeless=hopeless)
        order.pass_over(workload)
    return Served(placed, served)


def _order(
    session: Session,
    shares: Shares,
    skip: Skip,
    contender: WorkloadState,
    victims: Sequence[WorkloadState],
    keys: Keys | None,
    before: QueueOrder | None,
) -> QueueOrder:
    """Give the order from its beginning: taken up again, where it is known how it was before the victims went."""
    again = None if before is None else before.again(skip, {contender.leaf, *(v.leaf for v in victims)})
    return again if again is not None else QueueOrder(session, shares, skip, keys=keys)


def _lost(placer: Placer, contender: WorkloadState) -> bool:
    """Whether it is clear that a contender gets no place any more: room only shrinks."""
    assert contender.step is not None
    first = contender.step.tasks[0]
    plain = first.terms is None and not has_choice(contender.root)
    return plain and placer.find(first)[0] < 0


def _note_failure(
    session: Session, workload: WorkloadState, step: NextStep, beside: Reserving | None, *, hopeless: bool
) -> None:
    """Note what a step that found no place means for those after it: whom they must not delay, what need not be tried.

    What was tried beside a reservation has been noted there.
    """
    if hopeless if beside is None else not hopeless:
        return
    if held_back(session, workload, step):
        return
    if beside is not None:
        beside.block(workload)
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
