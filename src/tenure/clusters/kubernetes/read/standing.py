"""Workloads kept from one observation to the next: those about which nothing is to be found out stand apart.

Of most workloads nothing is left to be asked once they were made of their pods: their names are their own, their nodes
and queues are there, nothing is wrong with them and nothing is promised to them. They are looked at when they change,
and not again in each observation.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from operator import itemgetter

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.model.checks.placement import check_placement
from tenure.model.node import Node
from tenure.model.workload import Workload


class StandingWorkloads:
    """Workloads by name: the ``plain`` ones, which are taken as they are, and the ``others``, which are looked at.

    ``holders`` are those of both that hold GPUs by their numbers, which no other may hold. Each has a name of its own
    (`read/naming.py`).
    """

    def __init__(self) -> None:
        self.plain: dict[str, ObservedWorkload] = {}
        self.others: dict[str, ObservedWorkload] = {}
        self.holders: dict[str, ObservedWorkload] = {}
        self._groups: dict[GroupKey, tuple[ObservedWorkload, bool]] = {}
        self._called: dict[str, GroupKey] = {}
        self._waiting: set[str] = set()
        self._holders_on: dict[str, set[str]] = {}
        self._touched: set[str] = set()
        self._overlapping: set[str] = set()
        self._made: dict[str, ObservedWorkload] = {}
        self._order = OrderedWorkloads()

    @property
    def are_unclear(self) -> bool:
        """Whether devices are held twice, or somebody waits for others to go: all have to be looked at."""
        return bool(self._overlapping) or any(p.needs for one in self.others.values() for p in one.pods)

    def renew(
        self,
        made: Mapping[GroupKey, ObservedWorkload],
        changed: Iterable[GroupKey],
        are_plain: Callable[[list[ObservedWorkload]], list[bool]],
        nodes: Mapping[str, Node],
    ) -> set[str]:
        """Take what was made anew, or is no more, of some groups; gives the names that are affected."""
        fresh = [(group, made[group]) for group in sorted(changed) if group in made]
        names = {self._leave(group) for group in changed if group in self._groups}
        for (group, one), plain in zip(fresh, are_plain([one for _, one in fresh]), strict=True):
            self._groups[group] = one, plain
            self._called[one.workload.key] = group
            names.add(one.workload.key)
        for name in sorted(names):
            self._show(name)
        self._order.renew(names, self._made)
        self._check_devices(nodes)
        return names

    def _check_devices(self, nodes: Mapping[str, Node]) -> None:
        """Look whether devices are held twice, on the nodes of those holders that came, changed or went."""
        touched = self._touched
        if not touched:
            return
        names = set().union(*(self._holders_on.get(at, ()) for at in touched))
        held = [self.holders[name].workload for name in sorted(names)]
        self._overlapping -= touched
        touched.intersection_update(nodes)
        there = [replace(w, tasks=tuple(task for task in w.tasks if task.node in touched)) for w in held]
        for finding in check_placement([nodes[at] for at in sorted(touched)], there):
            if not finding.is_warning:
                _, workload, _, task, *_ = finding.path
                self._overlapping.add(str(there[int(workload)].tasks[int(task)].node))
        touched.clear()

    def _hold(self, name: str, one: ObservedWorkload | None) -> None:
        """Let a workload be the holder of that name; None: it is none any more."""
        before = self.holders.pop(name, None)
        for at in set() if before is None else _nodes_of(before):
            self._touched.add(at)
            self._holders_on[at].discard(name)
            if not self._holders_on[at]:
                del self._holders_on[at]
        if one is None:
            return
        self.holders[name] = one
        for at in _nodes_of(one):
            self._touched.add(at)
            self._holders_on.setdefault(at, set()).add(name)

    def _leave(self, group: GroupKey) -> str:
        """Take a group out; gives the name that it had."""
        name = self._groups.pop(group)[0].workload.key
        self._called.pop(name, None)
        return name

    def _show(self, name: str) -> None:
        """Let the group that has a name stand for it, if there is one."""
        for kept in (self.plain, self.others, self._made):
            kept.pop(name, None)
        self._hold(name, None)
        self._waiting.discard(name)
        group = self._called.get(name)
        if group is None:
            return
        one, plain = self._groups[group]
        self._made[name] = (self.plain if plain else self.others)[name] = one
        if one.waits:
            self._waiting.add(name)
        if any(task.devices for task in one.workload.tasks):
            self._hold(name, one)

    def to_look_at(self, named: Iterable[str]) -> list[ObservedWorkload]:
        """Give by name those that are not plain, and those that something else is about."""
        also = {name: self.plain[name] for name in named if name in self.plain}
        return [one for _, one in sorted({**self.others, **also}.items(), key=itemgetter(0))]

    def with_those(
        self, looked_at: Iterable[ObservedWorkload], named: Iterable[str]
    ) -> tuple[dict[str, ObservedWorkload], list[Workload]]:
        """Give all by name, and their workloads in order: the plain ones, and the others as they were found to be."""
        made, left_out = self._made.copy(), {*self.others, *(name for name in named if name in self.plain)}
        found = {one.workload.key: one for one in looked_at}
        made.update(found)
        left_out -= found.keys()
        for name in left_out:
            del made[name]
        return made, self._order.with_those(found, left_out)

    def waiting(self, looked_at: Iterable[ObservedWorkload], named: Iterable[str]) -> frozenset[str]:
        """Give the names of those that wait: of the plain ones, and of the others as they were found to be."""
        plain = self._waiting - self.others.keys() - set(named)
        return frozenset(plain.union(one.workload.key for one in looked_at if one.waits))


def _nodes_of(one: ObservedWorkload) -> set[str]:
    """Give the nodes on which a workload has tasks."""
    return {task.node for task in one.workload.tasks if task.node is not None}


class OrderedWorkloads:
    """Workloads in the order of their names, of which a few change at a time."""

    def __init__(self) -> None:
        self._names: list[str] = []
        self._workloads: list[Workload] = []

    def renew(self, changed: Collection[str], made: Mapping[str, ObservedWorkload]) -> None:
        """Take what has some names now, if anything has."""
        names, workloads = self._names, self._workloads
        if len(changed) > _FEW:
            self._names = sorted(made)
            self._workloads = [made[name].workload for name in self._names]
            return
        for name in changed:
            at = bisect_left(names, name)
            is_there = at < len(names) and names[at] == name
            if name not in made:
                if is_there:
                    del names[at], workloads[at]
            elif is_there:
                workloads[at] = made[name].workload
            else:
                names.insert(at, name)
                workloads.insert(at, made[name].workload)

    def with_those(self, others: Mapping[str, ObservedWorkload], left_out: Collection[str]) -> list[Workload]:
        """Give all, with ``others`` in the place of those that have their names, and without some."""
        workloads = self._workloads.copy()
        for name, one in others.items():
            workloads[bisect_left(self._names, name)] = one.workload
        if not left_out:
            return workloads
        return [w for name, w in zip(self._names, workloads, strict=True) if name not in left_out]


_FEW = 200
"""Changed workloads beyond which all are sorted: that takes less time then."""
