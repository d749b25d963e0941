"""How many resources that nobody has a namespace may ask for: each costs a row of every table."""

from __future__ import annotations

from typing import Final

from tenure.clusters.kubernetes.read.workloads import ObservedWorkload, without_resources

MOST_UNKNOWN: Final = 16
"""Resources that no node and no queue has, of which each namespace may ask for so many."""

_FEW: Final = 1_000


class ResourceBounds:
    """The bounds on what workloads ask for beyond the ``known`` resources, which a node has or a queue speaks of."""

    def __init__(self) -> None:
        self.known: set[str] = set()
        self._without: dict[str, tuple[ObservedWorkload, frozenset[str], ObservedWorkload]] = {}

    def within(self, found: list[ObservedWorkload]) -> list[ObservedWorkload]:
        """Give workloads without the resources that are too many; what asked for such is not placed, and says why."""
        if len(self._without) > 2 * len(found) + _FEW:
            self._without.clear()
        heard: dict[str, set[str]] = {}
        kept = []
        for made in found:
            unheard = {n for t in made.workload.tasks for n, _ in t.spec.requests if n not in self.known}
            if unheard:
                names = heard.setdefault(made.workload.namespace, set())
                names.update(sorted(unheard - names)[: max(0, MOST_UNKNOWN - len(names))])
                if not unheard <= names:
                    made = self._reduced(made, frozenset(unheard - names))  # noqa: PLW2901
            kept.append(made)
        return kept

    def _reduced(self, made: ObservedWorkload, names: frozenset[str]) -> ObservedWorkload:
        """Give a workload without some resources; the same one as before, if it is the same."""
        known = self._without.get(made.workload.key)
        if known is None or known[0] is not made or known[1] != names:
            known = self._without[made.workload.key] = made, names, without_resources(made, names)
        return known[2]
