"""What is said of a search: what else was considered, and which shields stand between a contender and its room."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from tenure.engine.plan import Reason
from tenure.engine.refusal import Refusal
from tenure.engine.state.cost import MICRO
from tenure.model.settings import Cause
from tenure.model.values.duration import format_time
from tenure.model.values.readable import weighted_hours
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.rules.pieces import Piece
from tenure.victims.search.trials import SearchResult

NAMED = 3
"""Others that were considered, or shielded, of which a reason gives the names."""


def shielded(cause: Cause, refusals: Sequence[tuple[str, Refusal]]) -> Reason:
    """One reason for all refusals of a cause: how many by which shield, and when the first of them ends."""
    by_shield: dict[str, int] = {}
    for _, refusal in refusals:
        by_shield[refusal.shield] = by_shield.get(refusal.shield, 0) + 1
    until = min((r.until for _, r in refusals if r.until is not None), default=None)
    counts = ", ".join(f"{count} ({shield})" for shield, count in sorted(by_shield.items()))
    ends = f"; the first refusal ends {format_time(until)}" if until is not None else ""
    text = f"{cause} evicts nothing for it; refused candidates: {counts}{ends}. {refusals[0][1].message}"
    shields = [
        {"workload": key, "shield": r.shield, "until": None if r.until is None else format_time(r.until)}
        for key, r in refusals[:20]
    ]
    return Reason("ShieldedVictims", text, {"cause": cause, "shields": shields})


def considered_of(candidates: VictimCandidates, found: SearchResult, chosen: Sequence[Piece] | None) -> str:
    """Say what else was considered; by name, each at its own price, where it is known what was chosen and read."""
    text = f"considered: {_count(candidates.count, 'candidate')} in {_count(found.tried, 'set')} of victims"
    shields = candidates.shielded
    held = f", {_count(shields, 'other')} {'was' if shields == 1 else 'were'} shielded" if shields else ""
    if chosen is None:
        return text + held
    gone = {p.workload for p in chosen}
    others = islice((p for p in candidates.all() if p.workload not in gone), NAMED)
    named = [f"{p.workload.key} (priority {p.workload.priority}) at {weighted_hours(p.cost / MICRO)}" for p in others]
    until = [f"{w.key} by {r.shield} until {format_time(r.until)}" for w, r in candidates.refused if r.until]
    text += f" (not taken, priced one by one, though one may not make room: {', '.join(named)})" if named else ""
    return text + held + (f" ({', '.join(until[:NAMED])})" if until else "")


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
