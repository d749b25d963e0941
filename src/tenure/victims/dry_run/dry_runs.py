"""Plays sets of victims through to their ends: rules, shields, the ordinary order, and who could take it back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from operator import gt

from tenure.engine.memo import Memo
from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import AllocationOutcome, held_back, promise, serve
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.serving.order import QueueOrder, skip_none
from tenure.engine.serving.packing import may_pack
from tenure.engine.serving.placement import Placer, fixed_of
from tenure.engine.serving.reserved_start import RESERVED, ReservedStart, reserved_start
from tenure.engine.state.evictions import all_start, evict_all
from tenure.engine.state.session import Session
from tenure.engine.state.transaction import Scenario
from tenure.engine.state.weights import resource_weights
from tenure.engine.state.workloads import GROW, Demand, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import Owed
from tenure.model.modes import enabled_for
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.dry_run.first_served import FirstServed
from tenure.victims.dry_run.joint_placement import JointPlacement
from tenure.victims.dry_run.outcome import (
    IN_VAIN,
    LANDLESS,
    NO_LANDING,
    NO_ROOM,
    TAKES_BACK,
    AcceptedSet,
    Consequences,
    Enough,
    FollowUp,
    gone_for_now,
    is_back,
    to_the_end,
)
from tenure.victims.rules.causes import CauseRules, Taken, in_stages, takes_back
from tenure.victims.rules.pieces import Piece


class DryRuns:
    """The trials of sets on a session, each in a scenario and an epoch of its own.

    So what was found out about room in one is not believed in another, and after an undone trial everything that was
    known before it holds again.

    ``ahead``: tasks that others got before the contender, in the last set in which it got no place; ``back``: the
    victims among these others, in their order. Nothing changes on the session between two plays but by what a play
    carried out, and in the leaves that are told to have ``changed``.
    """

    def __init__(
        self, session: Session, placer: Placer, shares: CurrentShares, plugins: EvictionPlugins,
        endings: ExpectedReleases | None = None, consequences: Consequences | None = None,
    ) -> None:  # fmt: skip
        self.session = session
        self.placer = placer
        self.shares = shares
        self.plugins = plugins
        self.endings = endings
        self.consequences = consequences
        self.ahead = 0
        self.back: list[WorkloadState] = []
        self.changed: set[int] = set()
        self._before: QueueOrder | None = None
        self.first = FirstServed(session, shares)
        self.reserved_start = Memo[None, ReservedStart | None](
            lambda _: reserved_start(session, placer, shares, endings), lambda _: session.epoch
        )

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The weights of resources by which sets are compared, by row."""
        return resource_weights(self.session)

    def play(
        self, rules: CauseRules, pieces: Sequence[Piece], *, enough: Enough | None = None, brief: bool = False
    ) -> AcceptedSet | Refusal:
        """Play a set through for the contender of ``rules``; with ``enough`` it is asked what follows from it.

        ``brief``: of those that get the room before the contender only the first victim is asked for.
        """
        ran = [t for piece in pieces for t in piece.ran]
        start = self.reserved_start(None) if rules.cause == "consolidate" else None
        self.first.begin(self.session.epoch)
        refusal = self.plugins.validate(self.session, rules.cause, rules.contender, ran) if ran else None
        if refusal is not None:
            return refusal
        if pieces and rules.cause == "consolidate" and not self._may_pack(rules.contender, pieces):
            return LANDLESS
        staying: frozenset[TaskState] = frozenset()
        while True:
            play = SetPlay(self, rules, pieces, staying, brief=brief)
            with self.session.scenario() as scenario:
                self.session.new_epoch()
                result = play.run(start)
                back = frozenset(filter(is_back, result.evicted)) if isinstance(result, AcceptedSet) else frozenset()
                if not back:
                    return self._verdict(rules, result, scenario, enough)
            staying |= back

    def _may_pack(self, contender: WorkloadState, pieces: Sequence[Piece]) -> bool:
        """Whether there may be room for all that moves, and for the contender beside it."""
        assert contender.step is not None
        if any(t.nominated >= 0 for p in pieces for t in p.workload.tasks):  # what is promised to others of it may end
            return True
        ran = [t for p in pieces for t in p.ran]
        fresh = [t for p in pieces for t in p.tasks if t not in p.ran]
        return may_pack(self.session.nodes, ran, fresh, fixed_of(contender.step))

    def _verdict(
        self, rules: CauseRules, result: AcceptedSet | Refusal, scenario: Scenario, enough: Enough | None
    ) -> AcceptedSet | Refusal:
        """Judge what a set leads to; what it does is remembered."""
        if isinstance(result, AcceptedSet) and result.evicted and self.consequences is not None:
            judge = self.consequences.judge
            result = judge(rules.contender, rules.cause, result, self.shares, enough=enough) or result
        if isinstance(result, AcceptedSet):
            if not result.may_follow:
                result.follow_ups = ()
            result.undone = scenario.remember()
        return result

    def follow_ups(self, rules: CauseRules, played: AcceptedSet) -> Sequence[FollowUp]:
        """Give what follows from a set that pays, which was played through on the state that is still there."""
        if (played.follow_ups is None or not played.all_known) and played.may_follow:
            assert self.consequences is not None
            assert played.undone is not None
            with self.session.scenario():
                self.session.repeat(played.undone)
                self.consequences.judge(
                    rules.contender, rules.cause, played, self.shares, enough=to_the_end, accepted=True
                )
        return played.follow_ups or ()

    def carry_out(self, contender: WorkloadState, played: AcceptedSet) -> None:
        """Carry out what was played through on the state that is still there."""
        assert played.undone is not None
        self.session.repeat(played.undone)
        touched = (*played.placed, *played.evicted, *played.withdrawn)
        self.changed.update((contender.leaf, *(t.workload.leaf for t in touched)))

    def serve(
        self, contender: WorkloadState, victims: Sequence[WorkloadState], before: QueueOrder | None, *, brief: bool
    ) -> AllocationOutcome:
        """Serve all that wait, victims included, each of these where it stood, if that is free."""
        self.placer.own = "first"
        try:
            return serve(self.session, self.placer, self.shares, contender, victims, endings=self.endings,
                         before=before, brief=brief)  # fmt: skip
        finally:
            self.placer.own = "any"

    def order_before(self) -> QueueOrder:
        """Give the order of all that wait before anything is tried."""
        session = self.session
        if self.changed and self._before is not None:
            self._before = None if session.noticed else self._before.again(skip_none, self.changed)
        self.changed.clear()
        if self._before is None:
            self._before = QueueOrder(session, self.shares, skip_none)
        return self._before


class SetPlay:
    """One set while it is played through: whose it is, what is taken, and what comes of it.

    Those ``staying`` are part of a core of which all others have a place to land. ``owed`` are guarantees that cores
    carried their queues below, ``before`` is the order of all that wait without the set, if that is known. ``brief``:
    of those that get the room before the contender only the first victim is asked for.
    """

    def __init__(
        self, runs: DryRuns, rules: CauseRules, pieces: Sequence[Piece], staying: frozenset[TaskState], *, brief: bool
    ) -> None:
        self.runs = runs
        self.session = runs.session
        self.rules = rules
        self.contender = rules.contender
        self.pieces = pieces
        self.victims = list(dict.fromkeys(p.workload for p in pieces))
        self.staying = staying
        self.brief = brief
        self.before: QueueOrder | None = None
        self.owed: list[Owed] = []
        self.result = AcceptedSet(list(pieces), [])

    def run(self, start: ReservedStart | None) -> AcceptedSet | Refusal:
        """Play the set through; ``start`` is the reserved one that it must not put off."""
        session, rules, contender, victims, result = self.session, self.rules, self.contender, self.victims, self.result
        step = contender.step
        assert step is not None
        result.growth = step.kind == GROW
        if rules.cause == "requeue" and session.settings.requeue.contenders == "any":
            for victim in victims:  # where equals take turns, who gives way stands behind those that wait
                session.journal.set(victim, "queued_at", session.now)
        compared = self.runs.shares.rows
        stages = in_stages(rules, self.pieces, [n if row in compared else 0 for row, n in enumerate(step.amount)])
        self.before = self.runs.order_before()
        if stages and (refusal := self._ask(stages)) is not None:
            return refusal
        barred = held_back(session, contender, step)
        self._take(stages)
        if rules.cause == "consolidate" and not self._land():
            return LANDLESS
        placed, reached = self.runs.serve(contender, victims, self.before, brief=self.brief)
        placed = gone_for_now(session, placed, result.evicted)
        if not reached or (result.evicted and not all_start(session, (*result.placed, *step.tasks))):
            return self._no_room(list(dict.fromkeys(t.workload for t in placed if t.workload in victims)), placed)
        if self.pieces and any(map(gt, Demand(step.kind, step.tasks, None).amount, step.amount)):
            self.runs.ahead, self.runs.back = 0, []
            return Refusal(NO_ROOM, "room would only be there for subgroups that ask for more than its first ones")
        result.placed += placed
        if start is not None and start.put_off(session, self.runs.placer, contender, victims, self.runs.endings):
            return Refusal(RESERVED, f"it would put off the start that is promised to {start.workload.key}")
        if barred and result.evicted:  # there was room on the nodes, but not in its queues
            promise(session, [t for t in placed if t.workload is contender])
        if self.owed and not rules.repaid(self.owed):
            self._serve_rest()
        return self._judge()

    def _serve_rest(self) -> None:
        """Serve all that come after the contender: one of them may serve a guarantee again that a core went below.

        Not with a reservation, which those that come later must not delay.
        """
        if self.session.settings.backfill != "easy":
            placed = serve(self.session, self.runs.placer, self.runs.shares, victims=self.victims).placed
            self.result.placed += gone_for_now(self.session, placed, self.result.evicted)

    def _ask(self, stages: Sequence[Taken]) -> Refusal | None:
        """Ask the rules about every piece in turn, surplus before cores, and about the set.

        Rules look at queues alone, so only these are changed here, which costs little: most sets end here.
        """
        rules = self.rules
        with self.session.scenario():
            refused = rules.take(stages, self.owed)
            if refused is not None:
                return refused[1]._replace(about=refused[0].key)
            refusal = rules.exchange(self.victims)
            if refusal is None and (self.brief or rules.cause == "requeue") and rules.cause != "consolidate":
                pieces = list(dict.fromkeys(piece for piece, _, _ in stages))
                first = self.runs.first.instead(self.contender, pieces, self.before)
                back = [workload for workload in self.victims if workload is first]
                return None if first is None else self._no_room(back, first.tasks)
            return refusal

    def _no_room(self, back: list[WorkloadState], ahead: Sequence[TaskState]) -> Refusal:
        """Refuse a set, and note who gets the room instead: which victims, and how many tasks."""
        self.runs.ahead, self.runs.back = len(ahead), back
        return Refusal(NO_ROOM, "with these victims gone the room would go to others, or not be enough")

    def _take(self, stages: Sequence[Taken]) -> None:
        """Take all pieces, but those staying."""
        session, result = self.session, self.result
        ran = {task for piece in self.pieces for task in piece.ran}
        at_once = all(len(piece.ran) == len(piece.tasks) for piece in self.pieces)  # else some are withdrawn in between
        for part in [stages] if at_once else [[stage] for stage in stages]:
            going = [task for _, tasks, _ in part for task in tasks if task not in self.staying]
            evict_all(session, evicted := [task for task in going if task in ran])
            result.evicted += evicted
            self._withdraw([task for task in going if task not in ran])
        for workload in self.victims:
            if not workload.occupied():
                self._withdraw(nominated_tasks(workload))  # it lands whole, or not
                session.journal.set(workload, "started_at", None)
            session.refresh(workload)

    def _withdraw(self, tasks: Sequence[TaskState]) -> None:
        """Take back what this cycle placed, or what is only promised."""
        for task in tasks:
            self.session.withdraw(task)
            self.result.withdrawn.append(task)

    def _land(self) -> bool:
        """Find every moved task a place beside the contender's, which is served in its turn afterwards."""
        moved = [*self.result.evicted, *self.result.withdrawn]
        landed = JointPlacement(self.session, self.runs.placer, self.contender, self.victims, moved).find()
        self.result.placed += landed or ()
        return landed is not None

    def _judge(self) -> AcceptedSet | Refusal:
        """Check what can only be seen in the state that results."""
        result, contender, staying = self.result, self.contender, self.staying
        got = [t for t in result.placed if t.workload is contender]
        if (result.evicted or not got) and all(t.node >= 0 for t in got):
            text = "fits without these victims" if got else "would only get the place back that it is leaving"
            return Refusal(IN_VAIN, f"the contender {text}")
        for piece in result.pieces:  # where a core stays, its surplus may go by itself, or not at all
            if (last := {*piece.stages[-1][0]} & {*piece.ran}) and all(t in staying or is_back(t) for t in last):
                return Refusal(IN_VAIN, f"{piece.workload.key} would win its place back", about=piece.workload.key)
        for victim in dict.fromkeys(t.workload for t in staying):
            if not victim.root.satisfied():
                return Refusal(NO_LANDING, f"part of the core of {victim.key} finds no place to land", about=victim.key)
        if not self.rules.repaid(self.owed):
            return Refusal("guaranteed", "a queue would be left below its guaranteed")
        enabled = enabled_for(self.session.settings, self.rules.cause)
        for victim in self.victims:
            back = takes_back(self.session, self.runs.shares, victim, contender, enabled)
            if back is not None and back.lets_go(contender, got, core=not result.growth):
                text = f"{victim.key} could take the place back from {contender.key}"
                return Refusal(TAKES_BACK, text, about=victim.key)
        return result
