"""What objects say of workloads beside their pods, and which workloads to make anew where they say something else."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cache
from typing import Any, Final

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.bounded import total
from tenure.clusters.kubernetes.cache.handlers import GroupKey, ObjectStore
from tenure.clusters.kubernetes.cache.owners import NO_OWNER, OwnerChain, OwnerLink
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read import groups, kueue, volcano_groups
from tenure.clusters.kubernetes.read.ended_jobs import with_ended_jobs
from tenure.clusters.kubernetes.read.groups import GroupDeclaration, said
from tenure.model.manifests.workload_kind import POD, WorkloadKind, WorkloadKinds, shape_of

ObjectPlace = tuple[str, str, str]
"""Namespace, kind and name of an object."""

_GROUP_READERS: Final = (
    ("podgroups", groups.pod_group),
    ("kai podgroups", groups.kai_group),
    ("native podgroups", groups.native_group),
)


class DeclarationReader:
    """The reader of what is declared of workloads; ``store`` gives the objects of a watch by its name.

    It keeps in mind which objects say something of which groups of pods, so that those can be made anew of which
    something else is said.
    """

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._heard: dict[str, int] = {}
        self._named_so: dict[ObjectPlace, set[GroupKey]] = {}
        self._places: dict[GroupKey, frozenset[ObjectPlace]] = {}
        self._described: dict[ObjectPlace, GroupDeclaration] = {}
        self._queues = NamespaceQueues(store)

    def changed(self, kinds: WorkloadKinds) -> Iterator[GroupKey]:
        """Give the groups of which something else is said than when they were last asked for."""
        sources = (*((name, "group") for name, _ in _GROUP_READERS), *((kind.source, kind.key) for kind in kinds))
        for source, kind in sources:
            store = self._store(source)
            version, before = store.version, self._heard.get(source, 0)
            if version == before:
                continue
            self._heard[source] = version
            changed = store.since(before)
            if changed is None:
                yield from (g for place, named in self._named_so.items() if place[1] == kind for g in named)
            else:
                for namespace, name in changed:
                    yield from self._named_so.get((namespace, kind, name), ())
        other = self._queues.changed()
        if other:
            yield from [group for group in self._places if group[0] in other]

    def named(self, places: Iterable[ObjectPlace]) -> Iterator[GroupKey]:
        """Give the groups of pods that some objects own."""
        for place in places:
            yield from self._named_so.get(place, ())

    def read_native(self) -> None:
        """Read anew which owners the Workloads of ``scheduling.k8s.io`` describe."""
        listed = self._store("native workloads").sorted()
        found = [total(lambda: groups.native_workload(item), None, lambda _: None) for item in listed]  # noqa: B023
        self._described = dict(pair for pair in found if pair is not None)

    def of(
        self,
        group: GroupKey,
        chains: Collection[OwnerChain],
        kinds: WorkloadKinds,
        pods: Collection[PodRecord],
        *,
        counts: bool,
    ) -> GroupDeclaration | None:
        """Give what is said of a group, and note what says it. Where nothing ``counts``, only the queue is looked for.

        ``chains`` are the owners above its pods.
        """
        self._note(group, chains)
        about = self._said(group, chains, kinds) if counts else None
        if about is not None and about.shape is not None and about.shape.has_parts:
            shape = with_ended_jobs(about.shape, pods, lambda job: self._owner(group[0], job, kinds))
            about = replace(about, shape=shape, ended=shape.ended)
        labels = [*(pod.labels for pod in pods), *([about.labels] if about is not None else [])]
        fallback = self._queues.behind(group[0], labels) or self._queue_of_others(group[0], chains, kinds)
        return replace(about or groups.NOTHING_SAID, fallback_queue=fallback) if fallback else about

    def forget(self, group: GroupKey) -> None:
        """A group is gone."""
        for place in self._places.pop(group, frozenset()):
            self._drop(place, group)

    def _note(self, group: GroupKey, chains: Iterable[OwnerChain]) -> None:
        owners = {(group[0], link.kind, link.name) for chain in chains for link in chain.links}
        places, before = frozenset(owners or {group[:3]}), self._places.get(group, frozenset())
        for place in before - places:
            self._drop(place, group)
        for place in places - before:
            self._named_so.setdefault(place, set()).add(group)
        self._places[group] = places

    def _drop(self, place: ObjectPlace, group: GroupKey) -> None:
        named = self._named_so[place]
        named.discard(group)
        if not named:
            del self._named_so[place]

    def _said(self, group: GroupKey, chains: Collection[OwnerChain], kinds: WorkloadKinds) -> GroupDeclaration | None:
        namespace, kind, name, _, _ = group
        if kind == "group":
            return self._of_group(namespace, name)
        chain = min(chains, key=lambda c: (-len(c.links), c), default=NO_OWNER)
        if chain.top is None:
            return None
        about, known = self._owner(namespace, chain.top, kinds), kinds.by_key.get(chain.top.kind)
        if about is not None and known is not None and known.wraps:
            below = sorted({c.links[c.deciding - 1] for c in chains if c.top == chain.top and c.deciding})
            about = groups.wrapping(about, filter(None, (self._owner(namespace, link, kinds) for link in below)))
        made_of = next((link for link in chain.links[: chain.deciding] if link.kind == volcano_groups.KEY), None)
        group_of_volcano = None if made_of is None else self._owner(namespace, made_of, kinds)
        if about is not None and group_of_volcano is not None:
            about = groups.with_group(about, group_of_volcano)
        places = [(namespace, link.kind, link.name) for link in chain.links[chain.deciding :: -1]]
        by = next((self._described[place] for place in places if place in self._described), None)
        return about if by is None else groups.described(about, by)

    def _of_group(self, namespace: str, name: str) -> GroupDeclaration | None:
        for source, read in _GROUP_READERS:
            item = self._store(source).items.get((namespace, name))
            if item is not None:
                about, topologies = said(read, item), self._store(groups.KAI_TOPOLOGIES).items
                is_checked = topologies and read is groups.kai_group
                return groups.in_topologies(about, item, groups.kai_levels(topologies)) if is_checked else about
        return None

    def _owner(self, namespace: str, link: OwnerLink, kinds: WorkloadKinds) -> GroupDeclaration | None:
        kind = kinds.by_key.get(link.kind)
        if kind is None:
            return None
        if link.kind == POD:
            return _of_pods(kind)
        item: Any = self._store(kind.source).items.get((namespace, link.name))
        if item is None or (link.uid and item.metadata.uid != link.uid):
            return None
        declaration: GroupDeclaration = item.declaration
        return declaration

    def _queue_of_others(self, namespace: str, chains: Iterable[OwnerChain], kinds: WorkloadKinds) -> str:
        """Give the queue that an owner names which does not decide, else that of the namespace."""
        others = {link for chain in chains for link in chain.links if link != chain.top and link.kind != POD}
        for about in filter(None, (self._owner(namespace, link, kinds) for link in sorted(others))):
            stated = about.shape.queue if about.shape is not None else ""
            named = stated or next((about.labels[k] for k in keys.QUEUE_LABELS if about.labels.get(k)), "")
            if named:
                return named
        return self._queues.of(namespace)


class NamespaceQueues:
    """The queues that namespaces lead to: by their own label, or by a LocalQueue of Kueue's."""

    def __init__(self, store: Callable[[str], ObjectStore]) -> None:
        self._store = store
        self._heard = (0, 0)
        self._labelled: dict[str, str] = {}
        self._local: dict[tuple[str, str], str] = {}

    def changed(self) -> set[str]:
        """Give the namespaces that lead elsewhere than when this was last asked."""
        namespaces, local = self._store("namespaces"), self._store(kueue.LOCAL_QUEUES)
        if self._heard == (namespaces.version, local.version):
            return set()
        self._heard = namespaces.version, local.version
        before, then = self._labelled, self._local
        self._labelled = dict(_labelled(namespaces.items.copy().values()))
        self._local = kueue.local_queues(local.items.copy())
        other = {name for name, _ in before.items() ^ self._labelled.items()}
        return other | {namespace for (namespace, _), _ in then.items() ^ self._local.items()}

    def of(self, namespace: str) -> str:
        """Give the queue that a namespace names; nothing where it names none."""
        return self._labelled.get(namespace, "")

    def behind(self, namespace: str, labels: Iterable[Mapping[str, str]]) -> str:
        """Give the queue to which the LocalQueue leads that the first of some labels names."""
        if not self._local:
            return ""
        named = next((found for one in labels if (found := one.get(kueue.QUEUE_NAME))), "")
        return self._local.get((namespace, named), "")


class SiblingPods:
    """The workloads that are single pods of one owner: what was moved of one comes back as another of them."""

    def __init__(self) -> None:
        self._of_owner: dict[tuple[str, str], set[str]] = {}
        self._owner: dict[GroupKey, str] = {}

    def note(self, group: GroupKey, uid: str) -> None:
        """Take the uid of the owner of whose pods a group is a single one; empty for what is none."""
        key, before = f"{group[0]}/{group[2]}", self._owner.pop(group, "")
        if before:
            siblings = self._of_owner[group[0], before]
            siblings.discard(key)
            if not siblings:
                del self._of_owner[group[0], before]
        if uid:
            self._owner[group] = uid
            self._of_owner.setdefault((group[0], uid), set()).add(key)

    def of(self, namespace: str, uid: str) -> set[str]:
        """Give the workloads of an owner."""
        return self._of_owner.get((namespace, uid), set())


@cache
def _of_pods(kind: WorkloadKind) -> GroupDeclaration:
    """Give what is said of pods that own others: nothing but which roles there are."""
    return GroupDeclaration(shape=shape_of(kind, {}))


def _labelled(namespaces: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for item in namespaces:
        queue = (item.metadata.labels or {}).get(keys.QUEUE_LABELS[0])
        if queue:
            yield item.metadata.name, queue
