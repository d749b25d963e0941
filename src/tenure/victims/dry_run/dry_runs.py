"""Plays a set of victims through to its end: rules, shields, the ordinary order, and who could take it back."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from operator import gt, mul
from typing import NamedTuple, Protocol

from tenure.engine.memo import Memo
from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import AllocationOutcome, held_back, promise, serve
from tenure.engine.serving.backfill import ExpectedReleases
from tenure.engine.serving.order import QueueOrder, skip_none
from tenure.engine.serving.packing import may_pack
from tenure.engine.serving.placement import Placer, fixed_of
from tenure.engine.serving.reserved_start import RESERVED, ReservedStart, reserved_start
from tenure.engine.state.evictions import all_start, evict_all
from tenure.engine.state.queues import Amount
from tenure.engine.state.session import Session
from tenure.engine.state.transaction import Scenario, Undone
from tenure.engine.state.weights import resource_weights
from tenure.engine.state.workloads import GROW, Demand, TaskState, WorkloadState
from tenure.fairness.current import CurrentShares
from tenure.fairness.reclaiming import Owed
from tenure.model.modes import enabled_for
from tenure.model.settings import Cause
from tenure.shields.plugins import EvictionPlugins
from tenure.victims.dry_run.first_served import FirstServed
from tenure.victims.dry_run.joint_placement import JointPlacement
from tenure.victims.rules.causes import CauseRules, PreemptRules, ReclaimEligibility, Taken
from tenure.victims.rules.pieces import Piece, held

NO_ROOM, TAKES_BACK, IN_VAIN, NO_LANDING = "no-room", "takes-back", "in-vain", "no-landing"

LANDLESS = Refusal(NO_LANDING, "what would have to move finds no place to land")


class FollowUp(NamedTuple):
    """A follow-up: what one cause would evict next for a victim of a set; ``cost`` and ``growth`` as of a `Piece`."""

    of: WorkloadState
    cause: Cause
    evict: tuple[TaskState, ...]
    cost: int
    growth: int


class NextCycles(NamedTuple):
    """What would be done in the cycles after a plan: all that follows, and why some would lose what it promised."""

    follow_ups: dict[FollowUp, None]
    refusals: dict[WorkloadState, Refusal]


Enough = Callable[[Sequence[FollowUp]], bool]
"""Whether it need not be known what else follows from a set, beside these follow-ups."""


def to_the_end(_: Sequence[FollowUp]) -> bool:
    """Ask for all that follows."""
    return False


class Consequences(Protocol):
    """The judgement of what all enabled causes would do once a set has gone."""

    def judge(
        self,
        contender: WorkloadState,
        victims: Sequence[WorkloadState],
        result: AcceptedSet,
        cause: Cause,
        shares: CurrentShares,
        enough: Enough | None = None,
        *,
        accepted: bool = False,
    ) -> Refusal | None:
        """Refuse a set that is carried out on the session, unless it was ``accepted`` before.

        With ``enough``, note in ``result`` what follows from it.
        """

    def of(self, cause: Cause, tasks: Sequence[TaskState]) -> tuple[FollowUp, ...]:
        """Give the follow-ups of evicting tasks without a beneficiary; the session stays as it is."""

    def of_plan(self, given_up: Iterable[WorkloadState] = ()) -> NextCycles:
        """Give what follows from a finished plan, whose evictions are made on the session, and who would lose by it."""


@dataclass(slots=True)
class AcceptedSet:
    """A set that pays: who is evicted, whose placement is withdrawn, and who is placed, bound or nominated.

    ``growth``: the contender's step is no more than another task of its surplus. ``undone`` is what it does on the
    session, where that was undone. ``follow_ups`` are what enabled causes would do next for its victims, None where
    this was not asked; ``all_known``: there are no others. ``may_follow``: there could be some.
    """

    pieces: list[Piece]
    placed: list[TaskState]
    growth: bool = False
    evicted: list[TaskState] = field(default_factory=list)
    withdrawn: list[TaskState] = field(default_factory=list)
    undone: Undone | None = None
    follow_ups: tuple[FollowUp, ...] | None = None
    all_known: bool = True
    may_follow: bool = False

    @property
    def victims(self) -> list[WorkloadState]:
        """The workloads of which something is evicted."""
        return list(dict.fromkeys(t.workload for t in self.evicted))


@dataclass
class _Play:
    """One set while it is played through: whose it is, what is taken, and what comes of it.

    Those ``staying`` are part of a core of which all others have a place to land. ``owed`` are guarantees that cores
    carried their queues below, ``before`` is the order of all that wait without the set, if that is known. ``brief``:
    of those that get the room before the contender only the first victim is asked for.
    """

    rules: CauseRules
    pieces: Sequence[Piece]
    staying: frozenset[TaskState]
    result: AcceptedSet
    before: QueueOrder | None = None
    brief: bool = False
    owed: list[Owed] = field(default_factory=list)

    @property
    def contender(self) -> WorkloadState:
        """The workload for which the set would go."""
        return self.rules.contender

    @cached_property
    def victims(self) -> list[WorkloadState]:
        """The workloads of which something would go."""
        return list(dict.fromkeys(p.workload for p in self.pieces))


def is_back(task: TaskState) -> bool:
    """Whether an evicted task landed where it stood: on its node, and, with a part of a GPU, on its devices.

    Whole GPUs of one node are as good as each other.
    """
    same = task.cls.milli is None or task.nominated_devices == task.leaving_devices
    return task.nominated == task.leaving >= 0 and same


def gone_for_now(
    session: Session, placed: list[TaskState], evicted: Collection[TaskState] = frozenset()
) -> list[TaskState]:
    """Withdraw what this plan evicts for another reason and would seat where it stood; gives the others.

    The next cycle may place it: one plan does not evict a task and give it its place again. Those ``evicted`` by the
    very set that is tried are judged by it.
    """
    back = {t.workload for t in placed if is_back(t) and t not in evicted}
    if not back:
        return placed
    for task in placed:
        if task.workload in back:
            session.withdraw(task)
    for workload in back:
        session.refresh(workload)
    return [t for t in placed if t.workload not in back]


def in_stages(session: Session, pieces: Sequence[Piece], asked: Amount) -> list[Taken]:
    """Give the parts of pieces in the order in which they are taken: surplus before cores, of each the smallest first.

    A queue may be taken from as long as it is over its share before each part, so no other order allows more, and what
    is allowed does not depend on what the pieces cost. Small is what is small of what is ``asked``.
    """
    stages: list[Taken] = [(p, tasks, core) for p in pieces for tasks, core in p.stages]
    if len(stages) < 2:  # noqa: PLR2004  nothing to bring into order
        return stages
    weights = [1 / a if a else 0.0 for a in asked]

    def key(stage: Taken) -> tuple[bool, float]:
        piece, tasks, core = stage
        amount = piece.amount if len(tasks) == len(piece.tasks) else held(session, tasks)
        return core, sum(map(mul, amount, weights))

    return sorted(stages, key=key)


class DryRuns:
    """The trials of sets on a session, each in a scenario and an epoch of its own.

    So what was found out about room in one is not believed in another, and after an undone trial everything that was
    known before it holds again.

    ``ahead``: tasks that others got before the contender, in the last set in which it got no place; ``back``: the
    victims among these others, in their order. Nothing changes on the session between two plays but by what a play
    carried out, and in the leaves that are told to have ``changed``.
    """

    def __init__(
        self,
        session: Session,
        placer: Placer,
        shares: CurrentShares,
        plugins: EvictionPlugins,
        endings: ExpectedReleases | None = None,
        consequences: Consequences | None = None,
    ) -> None:
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
        self._tried = 0
        self._first = FirstServed(session, shares)
        self.reserved_start = Memo[None, ReservedStart | None](
            lambda _: reserved_start(session, placer, shares, endings), lambda _: session.epoch
        )

    @cached_property
    def weights(self) -> tuple[int, ...]:
        """The weights of resources by which sets are compared, by row."""
        return resource_weights(self.session)

    def play(
        self,
        contender: WorkloadState,
        pieces: Sequence[Piece],
        rules: CauseRules,
        *,
        keep: bool = False,
        enough: Enough | None = None,
        brief: bool = False,
    ) -> AcceptedSet | Refusal:
        """Play a set through; with ``enough`` it is asked what follows from it.

        With ``keep``, a set that pays stays carried out on the session; where it is asked, if nothing follows from it.
        ``brief``: of those that get the room before the contender only the first victim is asked for.
        """
        ran = [t for piece in pieces for t in piece.ran]
        start = self.reserved_start(None) if rules.cause == "consolidate" else None
        self._first.begin(self.session.epoch)
        refusal = self.plugins.validate(self.session, rules.cause, contender, ran) if ran else None
        if refusal is not None:
            return refusal
        if pieces and rules.cause == "consolidate" and not self._may_pack(contender, pieces):
            return LANDLESS
        staying: frozenset[TaskState] = frozenset()
        while True:
            play = _Play(rules, pieces, staying, AcceptedSet(list(pieces), []), brief=brief)
            with self.session.scenario() as scenario:
                self.session.new_epoch()
                result = self._play(play, start)
                back = frozenset(filter(is_back, result.evicted)) if isinstance(result, AcceptedSet) else frozenset()
                if not back:
                    return self._verdict(rules, result, scenario, enough, keep=keep)
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
        self,
        rules: CauseRules,
        result: AcceptedSet | Refusal,
        scenario: Scenario,
        enough: Enough | None,
        *,
        keep: bool,
    ) -> AcceptedSet | Refusal:
        """Judge what a set leads to; what it does is kept, or remembered."""
        contender = rules.contender
        if isinstance(result, AcceptedSet) and result.evicted and self.consequences is not None:
            victims = result.victims
            result = self.consequences.judge(contender, victims, result, rules.cause, self.shares, enough) or result
        if isinstance(result, AcceptedSet):
            if not result.may_follow:
                result.follow_ups = ()
            if keep and not result.follow_ups:
                scenario.keep()
                self._kept(contender, result)
            else:
                result.undone = scenario.remember()
        return result

    def note_follow_ups(self, contender: WorkloadState, played: AcceptedSet, cause: Cause) -> None:
        """Note all that follows from a set that was played through on the state that is still there."""
        if not played.may_follow:
            played.follow_ups = ()
            return
        assert self.consequences is not None
        assert played.undone is not None
        with self.session.scenario():
            self.session.repeat(played.undone)
            self.consequences.judge(contender, played.victims, played, cause, self.shares, to_the_end, accepted=True)

    def carry_out(self, contender: WorkloadState, played: AcceptedSet) -> None:
        """Carry out what was played through on the state that is still there."""
        assert played.undone is not None
        self.session.repeat(played.undone)
        self._kept(contender, played)

    def _kept(self, contender: WorkloadState, played: AcceptedSet) -> None:
        touched = (*played.placed, *played.evicted, *played.withdrawn)
        self.changed.update((contender.leaf, *(t.workload.leaf for t in touched)))

    def _play(self, play: _Play, start: ReservedStart | None) -> AcceptedSet | Refusal:
        """Play a set through once."""
        session, rules, contender, victims, result = self.session, play.rules, play.contender, play.victims, play.result
        step = contender.step
        assert step is not None
        result.growth = step.kind == GROW
        if rules.cause == "requeue" and session.settings.requeue.contenders == "any":
            for victim in victims:  # where equals take turns, who gives way stands behind those that wait
                session.journal.set(victim, "queued_at", session.now)
        stages = in_stages(session, play.pieces, step.amount)
        play.before = self._order_before()
        if stages and (refusal := self._ask(play, stages)) is not None:
            return refusal
        barred = held_back(session, contender, step)
        self._take(play, stages)
        if rules.cause == "consolidate" and not self._land(play):
            return LANDLESS
        placed, reached = self._serve(contender, victims, play.before, brief=play.brief)
        placed = gone_for_now(session, placed, result.evicted)
        if not reached or (result.evicted and not all_start(session, (*result.placed, *step.tasks))):
            return self._no_room(list(dict.fromkeys(t.workload for t in placed if t.workload in victims)), placed)
        if play.pieces and any(map(gt, Demand(step.kind, step.tasks, None).amount, step.amount)):
            self.ahead, self.back = 0, []
            return Refusal(NO_ROOM, "room would only be there for subgroups that ask for more than its first ones")
        result.placed += placed
        if start is not None and start.put_off(session, self.placer, contender, victims, self.endings):
            return Refusal(RESERVED, f"it would put off the start that is promised to {start.workload.key}")
        if barred and result.evicted:  # there was room on the nodes, but not in its queues
            promise(session, [t for t in placed if t.workload is contender])
        if play.owed and not rules.repaid(play.owed):
            self._serve_rest(play)
        return self._judge(play)

    def served_as_it_is(self) -> frozenset[WorkloadState]:
        """Give all workloads that find a place as things are, in order, without any eviction."""
        with self.session.scenario():
            self.session.new_epoch()
            return frozenset(t.workload for t in self._serve(None, (), None).placed)

    def _serve(
        self,
        contender: WorkloadState | None,
        victims: Sequence[WorkloadState],
        before: QueueOrder | None,
        *,
        brief: bool = False,
    ) -> AllocationOutcome:
        """Serve all that wait, victims included, each of these where it stood, if that is free."""
        self.placer.own = "first"
        try:
            return serve(self.session, self.placer, self.shares, contender, victims, endings=self.endings,
                         before=before, brief=brief)  # fmt: skip
        finally:
            self.placer.own = "any"

    def _serve_rest(self, play: _Play) -> None:
        """Serve all that come after the contender: one of them may serve a guarantee again that a core went below.

        Not with a reservation, which those that come later must not delay.
        """
        if self.session.settings.backfill != "easy":
            placed = serve(self.session, self.placer, self.shares, victims=play.victims).placed
            play.result.placed += gone_for_now(self.session, placed, play.result.evicted)

    def _order_before(self) -> QueueOrder | None:
        """Give the order of all that wait before anything is tried; None where it is not worth to make it.

        It is, from the second set on.
        """
        session = self.session
        if self.changed and self._before is not None:
            self._before = None if session.noticed else self._before.again(skip_none, self.changed)
        self.changed.clear()
        self._tried += 1
        if self._before is None and self._tried > 1:
            self._before = QueueOrder(session, self.shares, skip_none)
        return self._before

    def _ask(self, play: _Play, stages: Sequence[Taken]) -> Refusal | None:
        """Ask the rules about every piece in turn, surplus before cores, and about the set.

        Rules look at queues alone, so only these are changed here, which costs little: most sets end here.
        """
        rules = play.rules
        with self.session.scenario():
            refused = rules.take(stages, play.owed)
            if refused is not None:
                return refused[1]._replace(about=refused[0].key)
            refusal = rules.exchange(play.victims)
            if refusal is None and (play.brief or rules.cause == "requeue") and rules.cause != "consolidate":
                pieces = list(dict.fromkeys(piece for piece, _, _ in stages))
                first = self._first.instead(play.contender, pieces, play.before)
                back = [workload for workload in play.victims if workload is first]
                return None if first is None else self._no_room(back, first.tasks)
            return refusal

    def _no_room(self, back: list[WorkloadState], ahead: Sequence[TaskState]) -> Refusal:
        """Refuse a set, and note who gets the room instead: which victims, and how many tasks."""
        self.ahead, self.back = len(ahead), back
        return Refusal(NO_ROOM, "with these victims gone the room would go to others, or not be enough")

    def _take(self, play: _Play, stages: Sequence[Taken]) -> None:
        """Take all pieces, but those staying."""
        session, result = self.session, play.result
        for piece, tasks, _ in stages:
            going, ran = [task for task in tasks if task not in play.staying], set(piece.ran)
            evict_all(session, evicted := [task for task in going if task in ran])
            result.evicted += evicted
            for task in going:
                if task not in ran:
                    session.withdraw(task)
                    result.withdrawn.append(task)
        for workload in play.victims:
            if not workload.occupied():
                self._give_up(workload, result)
                session.journal.set(workload, "started_at", None)
            session.refresh(workload)

    def _give_up(self, workload: WorkloadState, result: AcceptedSet) -> None:
        """Withdraw what is promised to tasks of a workload of which nothing runs any more: it lands whole, or not."""
        for task in workload.tasks:
            if task.nominated >= 0:
                self.session.withdraw(task)
                result.withdrawn.append(task)

    def _land(self, play: _Play) -> bool:
        """Find every moved task a place beside the contender's, which is served in its turn afterwards."""
        result, moved = play.result, [*play.result.evicted, *play.result.withdrawn]
        landing = JointPlacement(self.session, self.placer, play.contender, play.victims, moved)
        landed = landing.find()
        result.placed += landed or ()
        return landed is not None

    def _judge(self, play: _Play) -> AcceptedSet | Refusal:
        """Check what can only be seen in the state that results."""
        result, contender, staying = play.result, play.contender, play.staying
        got = [t for t in result.placed if t.workload is contender]
        if (result.evicted or not got) and all(t.node >= 0 for t in got):
            text = "fits without these victims" if got else "would only get the place back that it is leaving"
            return Refusal(IN_VAIN, f"the contender {text}")
        for piece in result.pieces:
            if piece.ran and all(t in staying or is_back(t) for t in piece.ran):
                return Refusal(IN_VAIN, f"{piece.workload.key} would win its place back", about=piece.workload.key)
        for victim in dict.fromkeys(t.workload for t in staying):
            if not victim.root.satisfied():
                return Refusal(NO_LANDING, f"part of the core of {victim.key} finds no place to land", about=victim.key)
        if not play.rules.repaid(play.owed):
            return Refusal("guaranteed", "a queue would be left below its guaranteed")
        enabled = enabled_for(self.session.settings, play.rules.cause)
        for victim in play.victims:
            if victim.step is not None and self._takes_back(victim, play, got, enabled):
                text = f"{victim.key} could take the place back from {contender.key}"
                return Refusal(TAKES_BACK, text, about=victim.key)
        return result

    def _takes_back(
        self, victim: WorkloadState, play: _Play, got: Sequence[TaskState], enabled: frozenset[str]
    ) -> bool:
        """Whether a victim could take room from the contender, delays and minimum runtimes aside."""
        session, contender = self.session, play.contender
        if victim.leaf == contender.leaf:
            return "preempt" in enabled and PreemptRules(session, victim).eligible(contender) is None
        if "reclaim" not in enabled:
            return False
        back = ReclaimEligibility(session, self.shares, victim)
        if back.contender_may() is not None or back.eligible(contender) is not None:
            return False
        with session.scenario():
            if back.may_take(contender, held(session, got), core=not play.result.growth, owed=[]) is not None:
                return False
            for task in got:
                session.withdraw(task)
            return back.exchange([contender]) is None
