"""The pages of the eviction log: ConfigMaps, over which its entries are divided."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.read import eviction_log


class EvictionLogPages:
    """The pages of a node pool's eviction log as the API server has them, read and written one by one.

    ``allowed`` refuses a write where this process leads no more. What is written the informers know at once.
    """

    def __init__(self, client: Client, informers: InformerCache, allowed: Callable[[], None]) -> None:
        self._client = client
        self._informers = informers
        self._allowed = allowed

    def read(self) -> list[api.ApiObject]:
        """Read the log itself, not its image: only what is there now may be added to."""
        namespace, pool = self._informers.options.namespace, self._informers.options.pool
        answer = self._client.get(_path(namespace), labelSelector=f"{eviction_log.LABEL}={pool}")
        pages = decode(answer, _List).items
        return sorted((p for p in pages if _number(p) >= 0), key=_number)

    def create(self, number: int, text: str) -> None:
        """Write a page that is not there yet; a negative ``number`` says that none is free, and is refused."""
        if number < 0:
            raise ApiError(0, "LogFull", f"the eviction log has {keys.LOG_PAGES} pages of what still matters")
        namespace, pool = self._informers.options.namespace, self._informers.options.pool
        self._allowed()
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": keys.log_page_name(pool, number), "labels": {eviction_log.LABEL: pool}},
            "data": {eviction_log.DATA: text},
        }
        self._informers.wrote("eviction log", self._client.create(_path(namespace), body), is_new=True)

    def replace(self, page: api.ApiObject, text: str) -> None:
        """Write a page as a whole; refused where it is not as it was read."""
        meta = page.metadata
        self._allowed()
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": meta.name, "labels": meta.labels, "resourceVersion": meta.resource_version},
            "data": {eviction_log.DATA: text},
        }
        answer = self._client.replace(f"{_path(meta.namespace)}/{meta.name}", body)
        self._informers.wrote("eviction log", answer)

    def delete(self, page: api.ApiObject) -> bool:
        """Delete a page; False where the API server did not."""
        self._allowed()
        try:
            self._client.delete(f"{_path(page.metadata.namespace)}/{page.metadata.name}")
        except ApiError:
            return False
        return True


def free_numbers(listed: Iterable[api.ApiObject]) -> list[int]:
    """Give the numbers of pages that are not among those that are there."""
    taken = set(map(_number, listed))
    return [n for n in range(keys.LOG_PAGES) if n not in taken]


def entries_of(item: api.ApiObject) -> list[eviction_log.EvictionEntry]:
    """Give the entries of a page; lines that are none are passed over."""
    data = item.data if isinstance(item.data, dict) else {}
    return eviction_log.parse(str(data.get(eviction_log.DATA, "")))[0]


def last_written(item: api.ApiObject) -> tuple[str, int]:
    """Give a sort key by which the page that was written to last comes last."""
    return max((e.at for e in entries_of(item)), default=""), _number(item)


def _number(item: api.ApiObject) -> int:
    last = item.metadata.name.rpartition("-")[2]
    return int(last) if item.metadata.name.startswith("tenure-evictions-") and last.isdecimal() else -1


def _path(namespace: str) -> str:
    return f"/api/v1/namespaces/{namespace}/configmaps"


class _List(msgspec.Struct):
    items: list[api.ApiObject]
