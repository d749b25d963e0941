"""Owners of pods as they are kept: what each says of its pods, and nothing else of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.handlers import ObjectStore, PodStore
from tenure.clusters.kubernetes.cache.owners import Key
from tenure.clusters.kubernetes.read.groups import GroupDeclaration, owner, said
from tenure.model.manifests.workload_kind import WorkloadKind


@dataclass(frozen=True, slots=True)
class KnownOwner:
    """An owner of which its metadata is kept, and its declaration."""

    metadata: api.Meta
    declaration: GroupDeclaration


class OwnerStore(ObjectStore):
    """The owners of one kind by namespace and name. Each is read as it comes; ``pods`` is told who owns it."""

    def __init__(self, kind: WorkloadKind, pods: PodStore, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__(lambda item: item.declaration, clock)
        self.kind = kind
        self._pods = pods

    def put(self, item: Any) -> None:
        """Take an owner as a watch shows it."""
        kinds = self._pods.owners.kinds
        declaration = said(lambda one: owner(one, self.kind, kinds), item)
        meta = msgspec.structs.replace(item.metadata, labels=None, annotations=None)
        super().put(KnownOwner(meta, declaration))
        self._pods.put_owner(self.kind.key, meta)

    def drop(self, key: Key) -> None:
        """An owner is gone."""
        super().drop(key)
        self._pods.drop_owner(self.kind.key, key)
