"""Who waits, in classes of contenders that stand alike: same leaf, same priority, and a next step of the same shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tenure.engine.order import QueueOrder
from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.victims.room import Need


@dataclass(slots=True, eq=False)
class ContenderClass:
    """Contenders of which one gets a candidate's place if and only if another would in its stead.

    ``members`` are those that still wait, in order; ``shape`` numbers what their next steps have in common.
    """

    leaf: int
    priority: int
    shape: int
    fixed: bool
    members: list[WorkloadState] = field(default_factory=list)

    def first(self) -> WorkloadState | None:
        """Give the first that still waits."""
        return self.members[0] if self.members else None


@dataclass(slots=True)
class Contenders:
    """All that wait, in classes; ``needs`` is what each shape asks for, as room was when they were gathered.

    ``amounts`` are the shapes' amounts, by row of the queues.
    """

    classes: list[ContenderClass]
    needs: list[Need]
    amounts: list[tuple[int, ...]]


def gather(session: Session, may_contend: Callable[[WorkloadState], bool]) -> Contenders:
    """Put into classes who waits and can be helped by an eviction, leaf by leaf."""
    shapes: dict[object, int] = {}
    classes: dict[object, ContenderClass] = {}
    found = Contenders([], [], [])
    possible: list[bool] = []
    for workload in session.waiting.all():
        if not may_contend(workload):
            continue
        step = workload.step
        assert step is not None
        key: object = workload.key if step.shape is None else (id(step.shape), step.kind)
        number = shapes.get(key)
        if number is None:
            number = shapes[key] = len(shapes)
            found.needs.append(Need(session, step))
            found.amounts.append(step.amount)
            possible.append(found.needs[-1].ever())
        if not possible[number]:
            continue
        alike = workload.leaf, workload.priority, number, workload.fixed
        known = classes.get(alike)
        if known is None:
            known = classes[alike] = ContenderClass(*alike)
            if not (known.fixed and session.queues.beyond_guaranteed(known.leaf, step.amount) is not None):
                found.classes.append(known)
        known.members.append(workload)
    return found


def in_order(session: Session, shares: CurrentShares, classes: Sequence[ContenderClass]) -> list[ContenderClass]:
    """Put classes into the order in which their first members would be served."""
    if len(classes) < 2:  # noqa: PLR2004  nothing to compare
        return list(classes)
    first = {id(cls.members[0]): cls for cls in classes}
    order = QueueOrder(session, shares, lambda who, _: id(who) not in first)
    found: list[ContenderClass] = []
    while len(found) < len(first) and (workload := order.next()) is not None:
        cls = first.get(id(workload))
        if cls is not None:
            found.append(cls)
        order.pass_over(workload)
    return found
