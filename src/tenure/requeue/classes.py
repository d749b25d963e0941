"""Contenders that stand alike: same leaf, same priority, and a next step of the same shape."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.engine.session import Session
from tenure.engine.workloads import WorkloadState
from tenure.victims.room import Need


@dataclass(slots=True, eq=False)
class ContenderClass:
    """Contenders of which one gets a candidate's place if and only if another would in its stead.

    ``members`` are those that still wait, in order; ``shape`` numbers what their next steps have in common.
    """

    leaf: int
    priority: int
    shape: int
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


def gather(session: Session, waiting: list[WorkloadState]) -> Contenders:
    """Put into classes who waits, in the order in which they are to be served."""
    shapes: dict[object, int] = {}
    classes: dict[object, ContenderClass] = {}
    found = Contenders([], [], [])
    for workload in waiting:
        step = workload.step
        assert step is not None
        key: object = workload.key if step.shape is None else (id(step.shape), step.kind)
        number = shapes.get(key)
        if number is None:
            number = shapes[key] = len(shapes)
            found.needs.append(Need(session, step))
            found.amounts.append(step.amount)
        alike = workload.leaf, workload.priority, number
        known = classes.get(alike)
        if known is None:
            known = classes[alike] = ContenderClass(*alike)
            found.classes.append(known)
        known.members.append(workload)
    return found
