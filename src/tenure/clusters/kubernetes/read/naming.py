"""Names of workloads: each is there once, whatever the groups of pods that they are made of are called.

A workload is called as its group is. Groups of several kinds may have one name in a namespace: then one of them keeps
it, and the others get theirs by their kind, their uid or a number. That is found out when something changes in this
namespace, and costs no other.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes.cache.handlers import GroupKey
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.model.workload import Workload

_KINDS: Final = ("group", "Job", "StatefulSet", "Deployment", "ReplicaSet", "Pod")
"""Of groups of one name the first of these keeps it; the others have their kind behind it."""


class WorkloadNames:
    """The workloads of groups, each with a name of its own: ``named``, by group."""

    def __init__(self) -> None:
        self.named: dict[GroupKey, ObservedWorkload] = {}
        self._keys: dict[GroupKey, str] = {}
        self._stating: dict[str, set[GroupKey]] = {}
        self._shared: dict[str, set[str]] = {}
        self._renamed: dict[str, dict[GroupKey, ObservedWorkload]] = {}

    def renew(self, made: Mapping[GroupKey, ObservedWorkload], changed: Iterable[GroupKey]) -> set[GroupKey]:
        """Take what was made anew, or is no more, of some groups; gives those whose workload or name is another now."""
        affected = set(changed)
        for group in affected:
            self._leave(group)
            if group in made:
                self._enter(group, made[group])
        for namespace in {group[0] for group in affected}:
            if namespace in self._shared or namespace in self._renamed:
                affected |= self._name(namespace, made)
        return affected

    def _leave(self, group: GroupKey) -> None:
        """Take a group out."""
        self.named.pop(group, None)
        key = self._keys.pop(group, None)
        if key is None:
            return
        stating = self._stating[key]
        stating.discard(group)
        if not stating:
            del self._stating[key]
        self._note(group[0], key)

    def _enter(self, group: GroupKey, one: ObservedWorkload) -> None:
        """Take a group in under the name that it states."""
        key = one.workload.key
        self.named[group], self._keys[group] = one, key
        self._stating.setdefault(key, set()).add(group)
        self._note(group[0], key)

    def _note(self, namespace: str, key: str) -> None:
        """Keep in mind whether several groups state a name."""
        if len(self._stating.get(key, ())) > 1:
            self._shared.setdefault(namespace, set()).add(key)
        elif namespace in self._shared:
            self._shared[namespace].discard(key)
            if not self._shared[namespace]:
                del self._shared[namespace]

    def _name(self, namespace: str, made: Mapping[GroupKey, ObservedWorkload]) -> set[GroupKey]:
        """Name those groups of a namespace that state one name; gives those that are called otherwise than before.

        Those that need no other name keep their own, whatever the others would be called.
        """
        before, renamed, taken = self._renamed.pop(namespace, {}), dict[GroupKey, ObservedWorkload](), set[str]()
        sharing = [
            sorted(self._stating[key], key=lambda g: _rank(g, made[g])) for key in self._shared.get(namespace, ())
        ]
        for group in sorted((g for one in sharing for g in one[1:]), key=lambda g: _rank(g, made[g])):
            workload = made[group].workload
            suffix = group[1].lower() if group[3] else f"{group[1].lower()}-{workload.scheduler_name}"
            names = ((n, f"{workload.namespace}/{n}") for n in _other_names(workload, suffix))
            name, key = next((n, k) for n, k in names if k not in self._stating and k not in taken)
            taken.add(key)
            renamed[group] = replace(made[group], workload=replace(workload, name=name))
        for group in before.keys() - renamed.keys():
            if group in made:
                self.named[group] = made[group]
        for group, one in renamed.items():
            known = before.get(group)
            self.named[group] = renamed[group] = known if known == one and known is not None else one
        if renamed:
            self._renamed[namespace] = renamed
        return {g for g in before.keys() | renamed.keys() if before.get(g) is not renamed.get(g)}


def _rank(group: GroupKey, made: ObservedWorkload) -> tuple[Any, ...]:
    namespace, kind, name, is_own, uid = group
    place = _KINDS.index(kind) if kind in _KINDS else len(_KINDS)
    has_gone = all(p.is_going for p in made.pods)
    return (not is_own, has_gone, place, kind, namespace, name, made.workload.created_at, uid)


def _other_names(workload: Workload, suffix: str) -> Iterator[str]:
    """Give names for a workload whose own is taken: by its kind, then by its uid, then by number."""
    named = f"{workload.name}.{suffix}"
    yield named
    yield f"{named}.{workload.uid}"
    yield from (f"{named}.{workload.uid}.{n}" for n in itertools.count(2))
