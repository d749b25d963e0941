"""Contenders that no eviction of a cause can help as things are: by what they have in common, and why."""

from __future__ import annotations

from collections.abc import Iterable
from math import inf
from typing import NamedTuple

from tenure.engine.memo import Memo
from tenure.engine.plan import Reason, Refused
from tenure.engine.refusal import Refusal
from tenure.engine.serving.nominations import kind_of
from tenure.engine.state.workloads import WorkloadState
from tenure.model.settings import Cause
from tenure.shields.patience import waits_since
from tenure.victims.candidates.gatherer import VictimCandidates
from tenure.victims.recording.explanations import shielded
from tenure.victims.recording.state import EvictionState
from tenure.victims.search.trials import SearchResult


class ShieldsBefore(NamedTuple):
    """The shields before contenders of one kind: all refusals by name, the reason for it, and when one ends (µs)."""

    refusals: list[tuple[str, Refusal]]
    reason: Reason | None
    wake: int | None


class UnhelpedKinds:
    """The kinds of contenders of which none can be helped until something is carried out, and what was seen of each.

    Beside a reserved start, one that ends sooner may be helped all the same; where evictions did not pay yet, one that
    waits for longer.
    """

    def __init__(self, state: EvictionState, cause: Cause) -> None:
        self.state = state
        self.session = state.session
        self.cause = cause
        self._seen: dict[object, tuple[VictimCandidates | None, SearchResult]] = {}
        self._shields = Memo[object, ShieldsBefore](self._shields_before, lambda kind: self._seen[kind])
        self._waits_since: dict[object, int] = {}
        self._runs_for: dict[object, float] = {}

    def kind(self, contender: WorkloadState) -> object:
        """What contenders have in common of which one cannot be helped if the other cannot."""
        step = contender.step
        assert step is not None
        alone = step.shape is None or self.state.plugins.others
        return (contender.key, step.kind) if alone else kind_of(contender, step)

    def has(self, contender: WorkloadState) -> bool:
        """Whether it is of such a kind, waits no longer than the one that was looked at, nor ends sooner."""
        kind = self.kind(contender)
        if kind not in self._seen:
            return False
        easy = self.session.settings.backfill == "easy"
        sooner = easy and (contender.expected or inf) < self._runs_for.get(kind, 0)
        return not sooner and waits_since(contender) >= self._waits_since.get(kind, 0)

    def exclude(self, contender: WorkloadState) -> None:
        """Note that bounds exclude a kind; nothing was seen of it."""
        self._seen[self.kind(contender)] = None, SearchResult()

    def searched(
        self, contender: WorkloadState, candidates: VictimCandidates, found: SearchResult, *, detailed: bool
    ) -> None:
        """Note that a search to its end helps none of a kind; if it found no set, whatever its wait.

        Where that is read (``detailed``), say why; else note when that may be over.
        """
        kind = self.kind(contender)
        self._runs_for[kind] = contender.expected or inf
        if found.pieces is None:
            self._waits_since.pop(kind, None)
        self._seen[kind] = candidates, found
        if detailed:
            self.explain(contender)
        else:
            self.wake_after(candidates, found.refusals)

    def wake_after(self, candidates: VictimCandidates, refusals: Iterable[tuple[str, Refusal]] = ()) -> None:
        """Note that others may be taken once what shields them is over."""
        for until in {r.until for _, r in (*candidates.refused, *refusals)}:
            self.state.wake_at(until)

    def put_off(self, contender: WorkloadState, until: int | None) -> None:
        """Note that evictions do not pay yet for a contender, and for none of its kind that waits no longer."""
        self.state.wake_at(until)
        self._waits_since[self.kind(contender)] = waits_since(contender)

    def clear(self) -> None:
        """Something was carried out: any kind may be helped now."""
        self._seen.clear()

    def explain(self, contender: WorkloadState) -> None:
        """Say which shields stand between a contender of such a kind and the room it asks for."""
        state, kind = self.state, self.kind(contender)
        _, found = self._seen[kind]
        if found.cut:
            text = f"the search for victims by {self.cause} gave up after {found.tried} sets in vain; there are others"
            state.obstacle(contender.key, Reason("SearchGaveUp", text, {"cause": self.cause, "tried": found.tried}))
        refusals, reason, wake = self._shields(kind)
        if reason is not None:
            state.refuse(Refused(w, self.cause, contender.key, r.shield, r.until, r.message) for w, r in refusals)
            state.obstacle(contender.key, reason)
            state.wake_at(wake)

    def _shields_before(self, kind: object) -> ShieldsBefore:
        """Give what stands between contenders of a kind and the room that they ask for."""
        candidates, found = self._seen[kind]
        refusals = [(w.key, r) for w, r in candidates.refused] if candidates is not None else []
        refusals += found.refusals
        later = (r.until for _, r in refusals if r.until is not None and r.until > self.session.now)
        return ShieldsBefore(refusals, shielded(self.cause, refusals) if refusals else None, min(later, default=None))
