"""Owners: from a pod's controller upward, by what the metadata of each owner says of its own.

The top owner that is of a known kind decides which pods belong together. Owners are a tenant's word: a chain that
leads back to itself, or is longer than any that a framework makes, ends at the pod's own controller, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from collections.abc import Set as AbstractSet
from sys import intern
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.api import Owner
from tenure.model.manifests.workload_kind import POD, WorkloadKinds, built_in_kinds, group_of, kind_key

Key = tuple[str, str]
"""Namespace and name."""

MOST_OWNERS: Final = 16
"""Owners above a pod that are looked at."""

_MOST_RESOLVED: Final = 20_000
_NODE_OWNED: Final = frozenset({"DaemonSet", "Node"})


class OwnerLink(NamedTuple):
    """A reference to an owner: the key of its kind, its name, and its uid where that is known."""

    kind: str
    name: str
    uid: str = ""


class OwnerChain(NamedTuple):
    """The owners above a pod, the nearest first.

    ``deciding`` is the number of the one that decides. ``is_open``: the last of them is not known yet, though objects
    of its kind are watched.
    """

    links: tuple[OwnerLink, ...] = ()
    deciding: int = 0
    problem: str = ""
    is_open: bool = False

    @property
    def top(self) -> OwnerLink | None:
        """The owner that decides."""
        return self.links[self.deciding] if self.links else None


NO_OWNER: Final = OwnerChain()
_Place = tuple[str, str, str]


def controller(owners: Iterable[Owner] | None) -> Owner | None:
    """Give the owner that recreates an object."""
    return next((owner for owner in owners or () if owner.controller), None)


def link_to(owner: Owner | None) -> OwnerLink | None:
    """Give the link to an owner; None to those that belong to a node."""
    if owner is None or owner.kind in _NODE_OWNED:
        return None
    return OwnerLink(intern(kind_key(group_of(owner.api_version), owner.kind)), intern(owner.name), intern(owner.uid))


class OwnerIndex:
    """The owners of which anything is known, and the pods below each. ``pod`` finds the controller of a pod by name.

    An owner that is gone is remembered as long as there are pods below it: they go as it does.
    """

    def __init__(self, pod: Callable[[Key], tuple[str, OwnerLink | None] | None]) -> None:
        self.kinds: WorkloadKinds = built_in_kinds()
        self.watched: set[str] = set()
        self._pod = pod
        self._known: dict[_Place, tuple[str, OwnerLink | None]] = {}
        self._gone: set[_Place] = set()
        self._below: dict[_Place, set[Key]] = {}
        self._chains: dict[Key, tuple[OwnerLink, ...]] = {}
        self._resolved: dict[tuple[str, OwnerLink], OwnerChain] = {}

    def put(self, kind: str, key: Key, uid: str, above: OwnerLink | None) -> AbstractSet[Key]:
        """Take an owner as it is; gives the pods whose chains are others now."""
        place = kind, *key
        self._gone.discard(place)
        if self._known.get(place) == (uid, above):
            return frozenset()
        self._known[place] = uid, above
        self._resolved.clear()
        return frozenset(self._below.get(place, ()))

    def drop(self, kind: str, key: Key) -> None:
        """An owner is gone."""
        place = kind, *key
        if place in self._below:
            self._gone.add(place)
        else:
            self._known.pop(place, None)
            self._resolved.clear()

    def is_owner(self, key: Key) -> bool:
        """Whether a pod is above others."""
        return (POD, *key) in self._below

    def chain(self, pod: Key, first: OwnerLink | None) -> OwnerChain:
        """Give the owners above a pod, beginning with the first; a later change of one is reported with the pod."""
        if first is None:
            self.forget(pod)
            return NO_OWNER
        whole = self._resolved.get((pod[0], first))
        if whole is None:
            links, problem, is_open = self._walk(pod[0], first)
            if len(self._resolved) >= _MOST_RESOLVED:
                self._resolved.clear()
            whole = OwnerChain(tuple(links), 0 if problem else self._deciding(links), problem, is_open)
            self._resolved[pod[0], first] = whole
        self._note(pod, whole.links)
        return whole

    def watch(self, kind: str, *, is_watched: bool = True) -> None:
        """Say whether objects of a kind are watched, so that one that is not known yet is waited for."""
        (self.watched.add if is_watched else self.watched.discard)(kind)
        self._resolved.clear()

    def learn(self, kinds: WorkloadKinds) -> None:
        """Take other kinds: who decides is found out anew."""
        self.kinds = kinds
        self._resolved.clear()

    def forget(self, pod: Key) -> None:
        """A pod is gone."""
        self._note(pod, ())

    def _walk(self, namespace: str, first: OwnerLink) -> tuple[list[OwnerLink], str, bool]:
        links: list[OwnerLink] = []
        link: OwnerLink | None = first
        while link is not None:
            if any((link.kind, link.name) == (other.kind, other.name) for other in links):
                return links, f"its owners lead in a circle: {link.kind} {link.name} is above itself", False
            if len(links) == MOST_OWNERS:
                return links, f"has more than {MOST_OWNERS} owners, one above the other", False
            known = self._of(namespace, link)
            if known is None:
                return [*links, link], "", link.kind in self.watched
            links.append(link if link.uid else link._replace(uid=known[0]))
            link = known[1]
        return links, "", False

    def _of(self, namespace: str, link: OwnerLink) -> tuple[str, OwnerLink | None] | None:
        place = link.kind, namespace, link.name
        known = self._known.get(place)
        if known is None and link.kind == POD:
            known = self._pod((namespace, link.name))
            if known is not None:
                self._known[place] = known
        return known if known is not None and link.uid in ("", known[0]) else None

    def _deciding(self, links: list[OwnerLink]) -> int:
        kinds = self.kinds.by_key
        for number in range(len(links) - 1, -1, -1):
            kind = kinds.get(links[number].kind)
            if kind is not None and kind.unit != "below":
                return number
        return 0

    def _note(self, pod: Key, chain: tuple[OwnerLink, ...]) -> None:
        before = self._chains.get(pod, ())
        if before == chain:
            return
        for link in before:
            place = link.kind, pod[0], link.name
            below = self._below[place]
            below.discard(pod)
            if not below:
                del self._below[place]
                if place in self._gone or place[0] == POD:
                    self._gone.discard(place)
                    self._known.pop(place, None)
                    self._resolved.clear()
        for link in chain:
            self._below.setdefault((link.kind, pod[0], link.name), set()).add(pod)
        if chain:
            self._chains[pod] = chain
        else:
            self._chains.pop(pod, None)
