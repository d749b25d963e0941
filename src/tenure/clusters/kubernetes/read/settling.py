"""Groups by label that say nowhere how many they are: one is complete once no pod has joined it for a while.

The pods of such a group are created one after the other. Deciding between two of them would start a part of the group.
The same holds where the watch of pods is ahead of that of their owners: what an owner says is waited for as long.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.workloads import PLACED

SETTLING: Final = 1_000_000
"""µs without another pod after which a group is complete."""


_LONG_AGO: Final = -SETTLING


class _Growth(NamedTuple):
    uids: frozenset[str]
    since: int


class GroupSettling:
    """When a pod was last seen to join each group, by this process's own clock."""

    def __init__(self) -> None:
        self._growing: dict[GroupKey, _Growth] = {}

    def is_settled(self, group: GroupKey, pods: Sequence[PodRecord], now: int) -> bool:
        """Whether no more is waited for; of a group of which something runs nothing is."""
        waits = group[1] == "group" or any(pod.owners.is_open for pod in pods)
        if not waits or any(pod.task.phase in PLACED for pod in pods):
            self._growing.pop(group, None)
            return True
        uids = frozenset(pod.uid for pod in pods)
        known = self._growing.get(group)
        if known is None or not uids <= known.uids:
            self._growing[group] = known = _Growth(uids, now)
        return now - known.since >= SETTLING

    def forget(self, group: GroupKey) -> None:
        """A group is gone."""
        self._growing.pop(group, None)

    def due(self, now: int) -> list[GroupKey]:
        """Give the groups that have become complete since this was last asked."""
        found = [group for group, growth in self._growing.items() if 0 <= growth.since <= now - SETTLING]
        for group in found:
            self._growing[group] = self._growing[group]._replace(since=_LONG_AGO)
        return found

    def wake(self, now: int) -> int | None:
        """Give when the next group will be complete, in µs since the epoch; None where none is waited for."""
        times = [g.since + SETTLING for g in self._growing.values() if g.since >= 0]
        return max(now, min(times)) if times else None
