"""Patience: others are evicted for a contender once its waiting is worth what they cost.

What it waits for, in weighted resources, times how long it has waited, times a weight and a factor, has to reach the
price of the set, without what that has grown by meanwhile, as far as the wait without the factor is worth that; after
``atMost`` it need not. This is the rule for renting or buying where it is not known for how long: ``docs/worth.md`` has
the bound. Where a rule says how far an estimate of the contender's start is to be trusted, it goes sooner if the whole
wait would be worth the price, and later if it would not.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import ceil, inf
from operator import mul
from typing import Final, NamedTuple, Protocol

from tenure.engine.plan import Reason
from tenure.engine.state.cost import MICRO, SECOND, UNITS, interval_of, saved_at
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.fairness.start_estimates import StartEstimates
from tenure.model.settings import Cause, PatienceRule
from tenure.model.values.duration import DAY, format_time
from tenure.model.values.readable import weighted_hours
from tenure.shields.breaker import Breaker, LosingCause, brings_guaranteed, told
from tenure.shields.price import any_price, floor_until

NOT_YET: Final = "not-worth-yet"
"""The shield of a contender whose waiting is not worth what others would lose."""


class Priced(Protocol):
    """What patience has to know of what would be evicted."""

    @property
    def cost(self) -> int:
        """Its price now, in millionths of a weighted resource-second."""

    @property
    def growth(self) -> int:
        """By how much that grows in a second, at most."""


class PricedPart(Priced, Protocol):
    """What patience has to know of a part of a set."""

    @property
    def workload(self) -> WorkloadState:
        """Whose it is."""

    @property
    def tasks(self) -> Sequence[TaskState]:
        """What would be evicted."""

    @property
    def stages(self) -> Sequence[tuple[Sequence[TaskState], bool]]:
        """The same in the order in which it goes; for each stage, whether it is of the core."""


PriceFall = tuple[int, float]
"""When a part of a price has stopped becoming less (µs since the epoch), and by how much it does in a µs until then."""


class WholePrice(NamedTuple):
    """The price of a set with all that it has grown by, in millionths of a weighted resource-second.

    ``growth``: by how much that grows in a second.
    """

    price: int
    growth: int

    def beyond(self, gain: float, waited: int) -> float:
        """Give what is left of it without what a wait (µs) makes up for, of which a second is worth ``gain``."""
        return self.price - gain * waited / SECOND

    def rises(self, gain: float) -> float:
        """Give by how much that becomes more in a µs."""
        return (self.growth - gain) / SECOND


NOTHING: Final = WholePrice(0, 0)

NAMED: Final = 3
"""So many victims a reason names."""


class NotYet(NamedTuple):
    """Why evictions do not pay yet.

    ``price``, as far as it counts, and ``worth`` are in millionths of a weighted resource-second, times in µs since the
    epoch. They pay at ``pays_at`` if nothing is saved until then; ``again`` is when to look again, since something is
    cheaper then, an estimate is known to be wrong, or they pay. ``pause``: whatever they cost, their cause is paused.
    ``otherwise``: when the contender would start without them, where that was asked for and is known, and ``needed``:
    what its waiting has to be worth, given that. ``surplus``: the share that counts of its waiting, for what its queue
    would have beyond its guaranteed. ``ever``: they pay some day if nothing is saved; else ``pays_at`` is far ahead.
    """

    price: int
    worth: int
    pays_at: int
    again: int
    pause: LosingCause | None = None
    otherwise: int | None = None
    needed: float | None = None
    surplus: float | None = None
    ever: bool = True

    def reason(self, cause: Cause, pieces: Iterable[PricedPart]) -> Reason:
        """Say it of a set that would be evicted."""
        keys = list(dict.fromkeys(p.workload.key for p in pieces))
        more = f" and {len(keys) - NAMED} more" if len(keys) > NAMED else ""
        pays = format_time(self.pays_at) if self.ever else None
        numbers = {"cause": cause, "pays": pays, "workloads": keys}
        if self.pause is not None:
            text = f"{', '.join(keys[:NAMED])}{more} would be evicted for it, but {told(self.pause)}"
            return Reason("CausePaused", text, numbers)
        beyond = "" if self.surplus is None else f" ({self.surplus:.0%} of it, beyond what its queue is guaranteed)"
        text = (
            f"to evict {', '.join(keys[:NAMED])}{more} for it costs {weighted_hours(self.price / MICRO)}, without what "
            f"is lost while it waits (as far as that is made up for by its wait), and its waiting{beyond} is worth "
            f"{weighted_hours(self.worth / MICRO)} so far: "
            + (f"it pays from {pays} on" if self.ever else "waiting alone never makes it pay")
        )
        if self.otherwise is not None and self.needed is not None:
            numbers["otherwise"] = format_time(self.otherwise)
            text += f"; it would wait until {format_time(self.otherwise)} without that"
            if self.needed < inf:
                text += f", so its waiting has to be worth {weighted_hours(self.needed / MICRO)}"
        return Reason("NotWorthYet", text, numbers)


class Patience:
    """The rule, asked about a contender and the price of a set; while its cause is paused, no set pays."""

    def __init__(self) -> None:
        self.breaker = Breaker()
        self.estimates = StartEstimates()

    def applies(self, session: Session, cause: Cause) -> bool:
        """Whether evictions of a cause have to pay for any contender."""
        settings, queues = session.settings.worth, session.queues
        return cause in settings.patience or cause in queues.patient_causes or self.breaker.pauses(session, cause)

    def holds_for(self, session: Session, cause: Cause, contender: WorkloadState) -> bool:
        """Whether evictions of a cause have to pay for a contender."""
        is_paused = self.breaker.pause(session, cause, contender) is not None
        return is_paused or rule_for(session, cause, contender) is not None

    def not_yet(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState,
        pieces: Iterable[PricedPart],
        since: int,
        follow_ups: Iterable[Priced] = (),
        possible: int = 0,
    ) -> NotYet | None:
        """Say why a set is too dear for what a contender has waited; None where it pays.

        ``since`` is when the first began to wait that stands as the contender does; ``follow_ups`` is what would
        follow from the set; ``possible``: since when it may be evicted at all. What was waited before is gone either
        way, and does not count.
        """
        chosen, waited = list(pieces), session.now - max(waits_since(contender), possible)
        everything = [*chosen, *follow_ups]
        price = sum(counted(p.cost, p.growth, waited) for p in everything)
        falls = falls_of(session, chosen, waited)
        growing = [] if any_price(session) else everything  # what stays for a while grows by nothing until then
        whole = WholePrice(sum(p.cost for p in everything), sum(p.growth for p in growing))
        not_yet = self.too_dear(session, cause, contender, price, since, possible, falls, whole)
        if not_yet is None:
            return None
        cheaper = (cheaper_at(session, piece.workload) for piece in chosen)
        return not_yet._replace(again=min([not_yet.again, *(at for at in cheaper if at is not None)]))

    def too_dear(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState,
        price: float,
        since: int,
        possible: int = 0,
        falls: Sequence[PriceFall] = (),
        whole: WholePrice = NOTHING,
    ) -> NotYet | None:
        """Say why a price is more than what a contender has waited is worth; None where it is not. See `not_yet`.

        ``falls``: what counts of the price becomes less meanwhile. ``whole``: the price with all that it has grown by,
        of which no more is left out than the wait is worth.
        """
        pause = self.breaker.pause(session, cause, contender)
        if pause is not None:
            return NotYet(round(price), 0, pause.until, pause.until, pause)
        rule = rule_for(session, cause, contender)
        if rule is None:
            return None
        entitled, rate = is_entitled(session, cause, contender), gain_rate(session, contender)
        now, since_when = session.now, max(waits_since(contender), possible)
        began, gain = since_when - (rule.ahead if entitled else 0), (1 if entitled else rule.surplus) * rate * MICRO
        each = rule.factor * gain / SECOND
        unknown = rate == 0 and waiting_weight(session, contender) != 0
        ends = entitled or unknown  # what nothing is known of ends as well
        latest = max(since, possible) + longest_of(rule, cause) if ends else now + FAR_AHEAD
        worth = round(each * (now - began))
        if now >= latest:
            return None
        counts, price = price, max(price, whole.beyond(gain, now - since_when))
        otherwise = self.estimates.of(session, contender) if rule.trust else None
        needed = price if otherwise is None else price * believed(rule.trust, each * (otherwise - began) >= price)
        if worth >= needed:
            return None
        share = needed / price if price and needed < inf else 1.0
        first = _first_worth(now, worth, counts * share, each, [(end, growth * share) for end, growth in falls])
        first = _first_both(
            first if needed < inf else inf, now, price * share - worth, each - whole.rises(gain) * share
        )
        pays_at = latest if first >= latest else max(now + 1, ceil(first))
        surplus, ever = None if entitled else rule.surplus, pays_at < now + FAR_AHEAD // 2
        again = pays_at
        if otherwise is not None and needed > price:  # if it still waits then, it is known to wait for longer
            again = min(again, ceil(min(latest, max(otherwise, _first_worth(now, worth, counts, each, falls)))))
        return NotYet(round(price), worth, pays_at, again, None, otherwise, needed, surplus, ever)


def falls_of(session: Session, pieces: Iterable[PricedPart], waited: int) -> list[PriceFall]:
    """Say until when, and how fast, what counts of the price of pieces becomes less while a contender waits.

    Until a workload has run for a minimum runtime that is a price, that price stays, and what it would have grown by
    does not count (see `counted`): so less of it counts from second to second.
    """
    found: list[PriceFall] = []
    if not any_price(session):
        return found
    for piece in pieces:
        end = floor_until(session, piece.workload)
        if end is not None and piece.growth:
            nothing = session.now + counted(piece.cost, piece.growth, waited) * SECOND // piece.growth
            found.append((min(end, nothing), piece.growth / SECOND))
    return found


def _first_worth(now: int, worth: float, needed: float, each: float, falls: Iterable[PriceFall]) -> float:
    """Give when a wait is worth what is needed, in µs since the epoch: its worth grows by ``each`` in a µs."""
    at, missing, ends = float(now), needed - worth, sorted(falls)
    slope = each + sum(growth for _, growth in ends)
    for end, growth in ends:
        if at + missing / slope <= end:
            break
        at, missing, slope = max(at, end), missing - slope * max(0, end - at), slope - growth
    return at + missing / slope if slope > 0 else inf


def _first_both(first: float, now: int, missing: float, slope: float) -> float:
    """Give when, from ``first`` on, nothing is missing any more either, of which ``slope`` less is missing each µs."""
    first = max(first, now)
    if slope > 0:
        return max(first, now + missing / slope)
    return first if missing - slope * (first - now) <= 0 else inf


def believed(trust: float, long: bool) -> float:
    """Give by how much less, or more, a wait has to be worth if an estimate says that all of it will be ``long``."""
    doubt = 1 - trust
    if long:
        return doubt
    return 1 / doubt if doubt else inf


FAR_AHEAD: Final = 100 * 365 * DAY
"""A hundred years, in µs: evictions that do not pay within half of that are said never to pay."""


def longest_of(rule: PatienceRule, cause: Cause) -> int:
    """For how long (µs) a rule may put evictions off; by requeue, which brings what is owed to none, for ever."""
    if rule.at_most is not None:
        return rule.at_most
    return FAR_AHEAD if cause == "requeue" else 2 * DAY


def is_entitled(session: Session, cause: Cause, contender: WorkloadState) -> bool:
    """Whether a wait counts as a whole, and is over after ``atMost``: by reclaim only for what a queue is guaranteed.

    What a queue would have beyond that is owed to it by none, and has to pay.
    """
    return cause != "reclaim" or brings_guaranteed(session, contender)


def counted(cost: int, growth: int, waited: int) -> int:
    """Give what a price counts against a wait (µs): not what it has grown by meanwhile.

    Else what saves nothing, and costs more with each second that the contender waits, would never be worth it.
    """
    return max(0, cost - growth * waited // SECOND)


class PatienceOver(Patience):
    """Patience where every wait is taken to be over: no eviction has to pay."""

    def applies(self, session: Session, cause: Cause) -> bool:  # noqa: ARG002  the same for all
        """Give no."""
        return False


def rule_for(session: Session, cause: Cause, contender: WorkloadState) -> PatienceRule | None:
    """Give the rule for a contender: that of its queue or the first above that has one, else the node pool's."""
    rules = (*(queue.patience for queue in session.above(contender.leaf)), session.settings.worth.patience)
    return next((rule for own in rules for patient, rule in own.items() if patient == cause), None)


def waits_since(contender: WorkloadState) -> int:
    """When a contender began to wait: its creation, its last eviction, or, where it wants to grow, its start."""
    return max(contender.created_at, contender.last_evicted_at or 0, contender.started_at or 0)


def gain_rate(session: Session, contender: WorkloadState) -> float:
    """Give what a second of waiting counts: the weighted resources of the next step, times the contender's weight."""
    assert contender.step is not None
    costs, queues = session.settings.disruption.cost, session.queues
    each = [costs.get(name, 0.0) / UNITS.get(name, 1) for name in queues.resources]
    amount: float = sum(map(mul, each, contender.step.amount))
    return waiting_weight(session, contender) * amount


def waiting_weight(session: Session, contender: WorkloadState) -> float:
    """Give what a second of waiting counts, for a contender: the first of ``worth.weights`` that applies, else 1."""
    names = {queue.name for queue in session.above(contender.leaf)}
    weights = (
        w.weight
        for w in session.settings.worth.weights
        if (w.queue is None or w.queue in names) and (w.min_priority is None or contender.priority >= w.min_priority)
    )
    return next(weights, 1.0)


def cheaper_at(session: Session, workload: WorkloadState) -> int | None:
    """When the price of a workload falls at one instant, in µs since the epoch; None if that is not known.

    It does when its work is saved next, and when it is forgotten how often it was evicted.
    """
    worth, now = session.settings.worth, session.now
    interval = interval_of(session, workload)
    found = [saved_at(session, workload) + interval] if interval else []
    if worth.repeat_factor and workload.evictions and workload.last_evicted_at is not None:
        found.append(workload.last_evicted_at + worth.forgotten_after)
    return min((at for at in found if at > now), default=None)
