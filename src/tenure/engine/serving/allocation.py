"""The pass of allocation: all that wait are served in order (spec: order), in the cycle as in every scenario."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from tenure.engine.serving.backfill import Backfill, ExpectedReleases
from tenure.engine.serving.nominations import is_crowded
from tenure.engine.serving.order import QueueOrder, QueueShares, Skip
from tenure.engine.serving.placement import Placer, enough, has_choice
from tenure.engine.serving.scenario_backfill import ScenarioBackfill
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import Demand, TaskState, WorkloadState


class AllocationOutcome(NamedTuple):
    """Every task that was placed, and whether the contender is among those that were served."""

    placed: list[TaskState]
    reached: bool


class ServingOrder(Protocol):
    """The order in which a pass serves: `tenure.engine.serving.order.QueueOrder`, or a few in turn."""

    def next(self) -> WorkloadState | None:
        """Give the workload to serve next, None when no workload waits any more."""

    def served(self, workload: WorkloadState) -> None:
        """The workload, which was next, has got its step."""

    def pass_over(self, workload: WorkloadState) -> None:
        """The workload, which was next, got nothing in this pass."""


class InTurn:
    """Some workloads in turn, each for as long as it waits for a next step and is placed."""

    def __init__(self, workloads: Iterable[WorkloadState]) -> None:
        self._rest = iter(workloads)
        self._head = next(self._rest, None)

    def next(self) -> WorkloadState | None:
        """Give the first that still waits."""
        while (head := self._head) is not None and (head.entry is None or head.step is None):
            self._head = next(self._rest, None)
        return head

    def served(self, workload: WorkloadState) -> None:
        """It stays first until it waits no longer."""

    def pass_over(self, workload: WorkloadState) -> None:  # noqa: ARG002
        """The next one's turn has come."""
        self._head = next(self._rest, None)


class AllocationPass:
    """One pass over all that wait: each gets its next step in order, all or nothing, or is passed over.

    The one loop that serves: the action, every scenario, and estimates are this pass with another order, and each
    records differently what was placed. ``backfill`` is its reservation, None where there is none; ``over`` ends it.
    """

    order: ServingOrder

    def __init__(self, session: Session, placer: Placer) -> None:
        self.session = session
        self.placer = placer
        self.backfill: Backfill | None = None
        self.over = False

    def run(self) -> None:
        """Serve workloads until none can be served any more, or the pass is over."""
        while not self.over and (workload := self.order.next()) is not None:
            step = workload.step
            assert step is not None
            if self._serve(workload, step):
                self._placed(workload, step)
                self.order.served(workload)
            else:
                self._refused(workload, step)

    def _serve(self, workload: WorkloadState, step: Demand) -> bool:
        """Place a step, unless its queues hold it back or it is known not to fit; note a blocked one."""
        if not self._infeasible(workload, step):
            return not self._held_back(workload, step) and self._place(workload, step)
        if self.backfill is not None and not self._held_back(workload, step):
            self.backfill.block(workload)
        return False

    def _place(self, workload: WorkloadState, step: Demand) -> bool:
        """Place a step where it fits; of one that does not, it is noted that its like need not be tried."""
        backfill, shape = self.backfill, step.shape
        if backfill is not None and backfill.blocked:
            return backfill.place(workload, step)
        if self.placer.place(workload, step):
            return True
        if shape is not None:
            shape.fail(self.session.epoch)
        if backfill is not None:
            backfill.block(workload)
        return False

    def _infeasible(self, workload: WorkloadState, step: Demand) -> bool:  # noqa: ARG002
        """Whether a step of this shape is known not to fit, or one of its tasks is larger than any room there is."""
        shape, session = step.shape, self.session
        if shape is None:
            return False
        if shape.failed == session.epoch:
            return True
        if shape.exceeds(session.most_room()):
            shape.failed = session.epoch
            return True
        return False

    def _known_to_fail(self, workload: WorkloadState, step: Demand) -> bool:
        """Whether a step need not be tried; with backfilling, once it is known who was blocked first.

        Who that is, the order decides.
        """
        backfill = self.backfill
        if backfill is None:
            return self._infeasible(workload, step)
        if not backfill.blocked:
            return False
        if self._infeasible(workload, step):
            return backfill.reservation is not None  # who is blocked before may still be promised a time, in order
        return backfill.known_to_delay(workload, step)

    def _held_back(self, workload: WorkloadState, step: Demand) -> bool:
        """Whether a queue's maximum, or guarantees that must not be borrowed against, forbid the step."""
        return not self.session.queues.admits(workload.leaf, step.amount, fixed=workload.fixed)

    def _placed(self, workload: WorkloadState, step: Demand) -> None:
        """Write down that a step was placed."""

    def _refused(self, workload: WorkloadState, step: Demand) -> None:  # noqa: ARG002
        """Go on behind a workload whose step was not placed."""
        self.order.pass_over(workload)


class ScenarioPass(AllocationPass):
    """The pass of a scenario: up to a contender's next step, or, without one, over all workloads.

    Once the contender is served, the others are gone on with only where a victim might find a place: what is left over
    for others is the next cycle's. ``brief``: before that, it need not be known who else is placed once a victim is, or
    none can be.
    """

    def __init__(
        self,
        session: Session,
        placer: Placer,
        contender: WorkloadState | None,
        victims: Sequence[WorkloadState],
        endings: ExpectedReleases | None,
        *,
        brief: bool = False,
    ) -> None:
        super().__init__(session, placer)
        self.brief = brief
        self.contender = contender
        self.victims = victims
        self.placed: list[TaskState] = []
        self.reached = False
        self._skip = _known_to_fail(session, contender)
        self._beside: ScenarioBackfill | None = None
        if session.settings.backfill == "easy":
            self.backfill = self._beside = ScenarioBackfill(session, placer, contender, victims, endings)

    def begin(self, shares: QueueShares, before: QueueOrder | None) -> None:
        """Begin with the first of all; the order is taken up again where it is known from before the victims went."""
        skip = self._skip if self._beside is None else self._would_delay
        changed = {w.leaf for w in (self.contender, *self.victims) if w is not None}
        again = None if before is None else before.again(skip, changed)
        self.order = again if again is not None else QueueOrder(self.session, shares, skip)

    def is_in_vain(self) -> bool:
        """Whether it is known of all that wait that they do not fit, and it does not matter who is tried first."""
        if self.contender is not None or self.backfill is not None:
            return False
        lists, skip = self.session.waiting.entries.values(), self._skip
        return all(w.entry is not e or skip(w, w.step) for entries in lists for e in entries for w in e[-1:])

    def _infeasible(self, workload: WorkloadState, step: Demand) -> bool:
        served = self.reached and workload is self.contender  # its surplus is left over for the next cycle as well
        return served or self._skip(workload, step)

    def _would_delay(self, workload: WorkloadState, step: Demand) -> bool:
        beside = self._beside
        return beside is not None and workload is not self.contender and beside.known_to_delay(workload, step)

    def _held_back(self, workload: WorkloadState, step: Demand) -> bool:
        return held_back(self.session, workload, step)

    def _placed(self, workload: WorkloadState, step: Demand) -> None:
        self.placed += step.tasks
        if self._beside is not None:
            self._beside.served(workload)
        self.session.refresh(workload)
        contender = self.contender
        if contender is not None:
            self.reached = self.reached or workload is contender
            lost = not self._any_victim_fits() if self.reached else self._lost(contender)
            self.over = lost

    def _refused(self, workload: WorkloadState, step: Demand) -> None:  # noqa: ARG002
        if workload is self.contender and not self.reached:
            self.over = True
        else:
            self.order.pass_over(workload)

    def _lost(self, contender: WorkloadState) -> bool:
        """Whether it is clear that the contender gets no place any more: room only shrinks."""
        assert contender.step is not None
        if has_choice(contender.root):
            return False
        first = contender.step.tasks[0]
        if first.terms is None and self.placer.find(first)[0] < 0:
            return True
        if not self.brief or len(contender.step.tasks) == 1 or enough(self.placer.scorer, contender.step):
            return False
        return any(t.workload in self.victims for t in self.placed) or not self._any_victim_fits()

    def _any_victim_fits(self) -> bool:
        """Whether a step of some victim might find room."""
        seen: set[int] = set()
        for victim in self.victims:
            step = victim.step
            if step is None or victim.entry is None:
                continue
            first = step.tasks[0]
            if first.terms is None:
                if first.cls.id in seen:
                    continue
                seen.add(first.cls.id)
            if self.placer.find(first)[0] >= 0 and not held_back(self.session, victim, step):
                return True
        return False


def _known_to_fail(session: Session, contender: WorkloadState | None) -> Skip:
    """Give whether a step is known not to fit; the contender is always tried. It is asked very often."""
    most = session.most_room()

    def skip(workload: WorkloadState, step: Demand) -> bool:
        shape = step.shape
        if shape is None or workload is contender:
            return False
        if shape.failed == session.epoch:
            return True
        for row, amount in shape.largest:  # noqa: SIM110  `Shape.exceeds`, without the call
            if amount > most[row]:
                return True
        return False

    return skip


def serve(
    session: Session,
    placer: Placer,
    shares: QueueShares,
    contender: WorkloadState | None = None,
    victims: Sequence[WorkloadState] = (),
    *,
    endings: ExpectedReleases | None = None,
    before: QueueOrder | None = None,
    brief: bool = False,
) -> AllocationOutcome:
    """Serve all that wait, victims included, in order, until the contender's next step has found its place or lost it.

    Without a contender all workloads are served. With backfill ``easy`` no workload delays the first that does not fit;
    ``endings`` are as before the victims went (None: as the session has them), and so is ``before``, the order at its
    beginning. ``brief``: it ends once the contender has lost its place and a victim has one, or none can.
    """
    found = ScenarioPass(session, placer, contender, victims, endings, brief=brief)
    if not found.is_in_vain():
        found.begin(shares, before)
        found.run()
    return AllocationOutcome(found.placed, found.reached)


def held_back(session: Session, workload: WorkloadState, step: Demand) -> bool:
    """Whether a queue's maximum, or guarantees that must not be borrowed against, forbid a step."""
    queues, leaf = session.queues, workload.leaf
    if queues.limited[leaf] and queues.over_max(leaf, step.amount) is not None:
        return True
    return workload.fixed and queues.beyond_guaranteed(leaf, step.amount) is not None


def promise(session: Session, tasks: Sequence[TaskState]) -> None:
    """Nominate tasks where they were bound: a contender for which something is evicted is never bound at once.

    What such a workload asks for next is worked out anew: it asks for no surplus before its core is bound.
    """
    bound = [task for task in tasks if task.node >= 0]
    for task in bound:
        node, devices = task.node, task.devices
        session.withdraw(task)
        session.nominate(task, node, devices)
    for workload in dict.fromkeys(task.workload for task in bound):
        session.refresh(workload)


def promise_crowded(session: Session, tasks: Sequence[TaskState]) -> None:
    """Nominate where they were bound the tasks that a queue's maximum keeps out until others have gone."""
    if session.queues.under_notice:
        crowded = {t.workload for t in tasks if t.node >= 0 and is_crowded(session, t)}
        promise(session, [t for t in tasks if t.workload in crowded])
