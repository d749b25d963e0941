"""Which namespaces may use which queues: `Queue.spec.namespaceSelector`, by default all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from tenure.engine.room.labels import selects
from tenure.model.queue import Queue

NAME_LABEL: Final = "kubernetes.io/metadata.name"
"""The label that the API server gives each namespace: its name."""


class Namespaces:
    """What the queues say of namespaces. A namespace that is not known has no label but its name.

    What a queue says holds for all queues below it as well: each on the way up has to admit.
    """

    def __init__(self, queues: Sequence[Queue], items: Mapping[tuple[str, str], Any]) -> None:
        self._queues = {queue.name: queue for queue in queues}
        self._items = items
        self._known: dict[tuple[str, str], bool] = {}
        self.restricted = any(q.namespace_selector is not None for q in queues)

    def may_use(self, queue: str, namespace: str) -> bool:
        """Whether workloads of a namespace may be in a queue; in one that is not there, nobody is refused here."""
        if not self.restricted:
            return True
        found = self._known.get((queue, namespace))
        if found is None:
            found = self._known[queue, namespace] = self._may_use(queue, namespace)
        return found

    def _may_use(self, queue: str, namespace: str) -> bool:
        labels = self._labels(namespace)
        above = self._queues.get(queue)
        while above is not None:
            if above.namespace_selector is not None and not selects(above.namespace_selector, labels):
                return False
            above = self._queues.get(above.parent or "")
        return True

    def _labels(self, namespace: str) -> dict[str, str]:
        item = self._items.get(("", namespace))
        own = item.metadata.labels if item is not None else None
        return {NAME_LABEL: namespace, **(own or {})}
