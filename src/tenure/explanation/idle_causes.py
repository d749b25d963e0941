"""Causes of evictions that might help a workload that waits and do not act: off, in shadow, or not in the actions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

from tenure.engine.plan import Reason
from tenure.explanation.prospects import EvictionProspects
from tenure.model.modes import mode_of
from tenure.model.settings import Cause, Settings
from tenure.playthrough import PlayThrough

CAUSES: Final[tuple[Cause, ...]] = ("consolidate", "reclaim", "preempt", "requeue", "reschedule")
"""Causes that make room for a workload that waits, in the order in which they act."""

MOVING: Final = ("consolidate", "reschedule")

NAMED: Final = 3
"""Workloads that one reason names."""

_OF_ROOM: Final = frozenset({"NoNodeFits", "NoRoomTogether"})


def idle_causes(
    played: PlayThrough, workload: str, reasons: Sequence[Reason], prospects: EvictionProspects
) -> Iterator[Reason]:
    """Say which causes do not act and might make room for a workload that waits for these reasons.

    Of a cause in shadow it is known what it would evict. Of one that is off the rules are asked, without a search.
    """
    concerned = _concerned(reasons) if played.after is not played.before else ()  # else no cycle was played
    for cause in concerned:
        how = _how_idle(played.before.settings, cause)
        would = [s.workload for s in played.shadow if s.cause == cause and s.beneficiary == workload]
        if would:
            yield _reason(played.before.settings, cause, "shadow", list(dict.fromkeys(would)))
        elif (
            how in {"off", "unlisted"}
            and _stands_alone(played.before.settings, cause)
            and prospects.could_evict(workload, cause)
        ):
            yield _reason(played.before.settings, cause, how, [])


def _concerned(reasons: Sequence[Reason]) -> Sequence[Cause]:
    """Give the causes that could remove the obstacles: a move frees nothing in a queue that is at its maximum."""
    codes = {r.code for r in reasons}
    if "NeverFits" in codes or any(r.code == "OverMax" and r.numbers["asked"] > r.numbers["max"] for r in reasons):
        return ()
    if "OverMax" in codes:
        return "preempt", "requeue"
    return CAUSES if codes & _OF_ROOM else ()


def _how_idle(settings: Settings, cause: Cause) -> str:
    return mode_of(settings, cause) if cause in settings.actions else "unlisted"


def _stands_alone(settings: Settings, cause: Cause) -> bool:
    """Whether no other cause does the same: of the two that move, one is enough, and consolidate speaks for both."""
    if cause not in MOVING:
        return True
    return cause == "consolidate" and _how_idle(settings, "reschedule") in {"off", "unlisted"}


def _reason(settings: Settings, cause: Cause, how: str, would: list[str]) -> Reason:
    does = "moves" if cause in MOVING else "evicts"
    numbers: dict[str, Any] = {"cause": cause, "idle": how, "mode": mode_of(settings, cause), "workloads": would}
    if would:
        more = f" and {len(would) - NAMED} more" if len(would) > NAMED else ""
        text = (
            f"{cause} is in shadow: it would {does[:-1]} {', '.join(would[:NAMED])}{more} for it, and only records that"
        )
    else:
        state = "off" if how == "off" else "not among the actions"
        text = f"{cause} is {state}, so it {does} nothing for it"
    return Reason("CauseIdle", text, numbers)
