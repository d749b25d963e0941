"""Workloads kept from one observation to the next: those about which nothing is to be found out stand apart.

Of most workloads nothing is left to be asked once they were made of their pods: their names are their own, their nodes
and queues are there, nothing is wrong with them and nothing is promised to them. They are looked at when they change,
and not again in each observation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import itemgetter

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.model.check_placement import check_placement
from tenure.model.node import Node


class StandingWorkloads:
    """Workloads by name: the ``plain`` ones, which are taken as they are, and the ``others``, which are looked at.

    ``holders`` are those of the plain ones that hold GPUs by their numbers, which nobody else may hold.
    """

    def __init__(self) -> None:
        self.plain: dict[str, ObservedWorkload] = {}
        self.others: dict[str, ObservedWorkload] = {}
        self.holders: dict[str, ObservedWorkload] = {}
        self._names: dict[GroupKey, str] = {}
        self._sharing: dict[str, set[GroupKey]] = {}
        self._shared: set[str] = set()
        self._overlaps = False

    @property
    def are_unclear(self) -> bool:
        """Whether names or devices are there twice, or somebody waits for others to go: all have to be looked at."""
        return bool(self._shared) or self._overlaps or any(p.needs for one in self.others.values() for p in one.pods)

    def renew(
        self,
        made: Mapping[GroupKey, ObservedWorkload],
        changed: Iterable[GroupKey],
        are_plain: Callable[[list[ObservedWorkload]], list[bool]],
        nodes: Mapping[str, Node],
    ) -> None:
        """Take what was made anew, or is no more, of some groups."""
        before, fresh = self.holders.copy(), []
        for group in sorted(changed):
            self._drop(group)
            if group in made:
                fresh.append((group, made[group]))
        for (group, one), plain in zip(fresh, are_plain([one for _, one in fresh]), strict=True):
            self._put(group, one, plain=plain)
        if before != self.holders:
            listed = [one.workload for _, one in sorted(self.holders.items())]
            there = {name for workload in listed for task in workload.tasks if (name := task.node) in nodes}
            found = check_placement([nodes[name] for name in sorted(filter(None, there))], listed)
            self._overlaps = any(not finding.is_warning for finding in found)

    def _drop(self, group: GroupKey) -> None:
        name = self._names.pop(group, None)
        if name is None:
            return
        sharing = self._sharing[name]
        sharing.discard(group)
        if len(sharing) <= 1:
            self._shared.discard(name)
        if not sharing:
            del self._sharing[name]
        for kept in (self.plain, self.others, self.holders):
            kept.pop(name, None)

    def _put(self, group: GroupKey, one: ObservedWorkload, *, plain: bool) -> None:
        name = one.workload.key
        sharing = self._sharing.setdefault(name, set())
        sharing.add(group)
        self._names[group] = name
        if len(sharing) > 1:
            self._shared.add(name)
        (self.plain if plain else self.others)[name] = one
        if plain and any(task.devices for task in one.workload.tasks):
            self.holders[name] = one

    def to_look_at(self, named: Iterable[str]) -> list[ObservedWorkload]:
        """Give by name those that are not plain, and those that something else is about."""
        also = {name: self.plain[name] for name in named if name in self.plain}
        return [one for _, one in sorted({**self.others, **also}.items(), key=itemgetter(0))]

    def with_those(self, looked_at: Iterable[ObservedWorkload], named: Iterable[str]) -> dict[str, ObservedWorkload]:
        """Give all by name, in order: the plain ones, and the others as they were found to be."""
        found = self.plain.copy()
        for name in named:
            found.pop(name, None)
        found.update({one.workload.key: one for one in looked_at})
        return dict(sorted(found.items(), key=itemgetter(0)))
