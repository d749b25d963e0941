"""Which groups of pods use which claims, of volumes or of devices."""

from __future__ import annotations

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.cache.owners import Key


class ClaimUsers:
    """The groups of pods that use each claim; a claim that no group uses is not in ``of``."""

    def __init__(self) -> None:
        self.of: dict[Key, set[GroupKey]] = {}
        self._claims: dict[GroupKey, frozenset[Key]] = {}

    def note(self, group: GroupKey, claims: frozenset[Key]) -> list[Key]:
        """A group uses these claims, and no others; gives the claims that no group uses any more."""
        before, unused = self._claims.pop(group, frozenset()), []
        for key in before - claims:
            groups = self.of[key]
            groups.discard(group)
            if not groups:
                del self.of[key]
                unused.append(key)
        for key in claims - before:
            self.of.setdefault(key, set()).add(group)
        if claims:
            self._claims[group] = claims
        return unused
