"""Kueue's queues as queues of the tree: a ClusterQueue is a leaf, and the Cohort above it an inner queue.

What a queue may use of a resource is the sum over its flavors: Tenure sees nodes, and not flavors. The nominal quota is
guaranteed; with a borrowing limit for each flavor that much more is the most, without a cohort the quota itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain, read
from tenure.model.fields.containers import QuantityKind
from tenure.model.fields.records import record_of
from tenure.model.queue import Queue
from tenure.model.values.report import BAD
from tenure.model.values.resources import GPU

CLUSTER_QUEUES: Final = "clusterqueues"
COHORTS: Final = "cohorts"
LOCAL_QUEUES: Final = "localqueues"
PATHS: Final = ("/apis/kueue.x-k8s.io/v1beta2", "/apis/kueue.x-k8s.io/v1beta1")
"""Where Kueue's objects are read: in the first of these versions that is served."""

QUEUE_NAME: Final = "kueue.x-k8s.io/queue-name"
"""Label that names a LocalQueue of the namespace."""

MOST_FLAVORS: Final = 256
_KIND: Final = "Kueue queue"


def kueue_queues(
    queues: Iterable[api.ApiObject], cohorts: Iterable[api.ApiObject], complain: Complain
) -> Iterator[tuple[Queue, api.Meta]]:
    """Give the queues of a tree, each with the object that it was read of; a cohort need not be an object."""
    listed = [(item, _spec(item)) for item in queues]
    known = {item.metadata.name: (item, _spec(item)) for item in cohorts}
    above = {_text(spec, "cohortName", "cohort") for _, spec in listed}
    above |= {_text(spec, "parentName", "parent") for _, spec in known.values()}
    for name in sorted((above | known.keys()) - {""}):
        item, spec = known.get(name, (api.ApiObject(metadata=api.Meta(name=name)), {}))
        made = _made(item, spec, cohort_name(name), _text(spec, "parentName", "parent"), complain)
        if made is not None:
            yield made, item.metadata
    for item, spec in listed:
        made = _made(item, spec, item.metadata.name, _text(spec, "cohortName", "cohort"), complain)
        if made is not None:
            yield made, item.metadata


def local_queues(items: Mapping[tuple[str, str], Any]) -> dict[tuple[str, str], str]:
    """Give by namespace and name of a LocalQueue the ClusterQueue that it leads to."""
    found = {key: _text(_spec(item), "clusterQueue") for key, item in items.items()}
    return {key: name for key, name in found.items() if name}


def cohort_name(name: str) -> str:
    """Give what the queue of a cohort is called: a ClusterQueue may have the same name."""
    return f"cohort.{name}"


def _made(item: api.ApiObject, spec: dict[str, Any], name: str, cohort: str, complain: Complain) -> Queue | None:
    plain: dict[str, Any] = {"name": name, **_amounts(spec, is_alone=not cohort)}
    if cohort:
        plain["parent"] = cohort_name(cohort)
    sharing = spec.get("fairSharing")
    weight = sharing.get("weight") if isinstance(sharing, dict) else None
    if weight is not None:
        plain["weight"] = _weight(weight)
    if isinstance(spec.get("namespaceSelector"), dict):
        plain["namespaceSelector"] = spec["namespaceSelector"]
    made, problems = read(record_of(Queue), plain)
    for line in problems:
        complain(_KIND, item.metadata, line)
    return None if made is BAD else made


def _amounts(spec: Mapping[str, Any], *, is_alone: bool) -> dict[str, dict[str, str]]:
    """Give what is guaranteed and what is the most, by resource, as sums over flavors."""
    nominal: dict[str, int] = {}
    most: dict[str, int | None] = {}
    for quota in _quotas(spec):
        name = str(quota.get("name"))
        own, more = _quantity(quota.get("nominalQuota"), name), quota.get("borrowingLimit")
        nominal[name] = nominal.get(name, 0) + own
        before = most.get(name, 0)
        limit = own if is_alone else None if more is None else own + _quantity(more, name)
        most[name] = None if before is None or limit is None else before + limit
    return {
        "guaranteed": {name: _written(amount, name) for name, amount in nominal.items()},
        "max": {name: _written(amount, name) for name, amount in most.items() if amount is not None},
    }


def _quotas(spec: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for group in _dicts(spec.get("resourceGroups")):
        for flavor in _dicts(group.get("flavors")):
            found += _dicts(flavor.get("resources"))
    return found[:MOST_FLAVORS]


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _quantity(value: Any, resource: str) -> int:
    """Read an amount; what is none counts as nothing."""
    try:
        return int(QuantityKind(resource, milli=resource == GPU).parse(value))
    except (ValueError, TypeError):
        return 0


def _written(amount: int, resource: str) -> str:
    return f"{amount}m" if resource in (GPU, "cpu") else str(amount)


def _weight(value: Any) -> float:
    try:
        text = str(value)
        return float(text[:-1]) / 1000 if text.endswith("m") else float(text)
    except ValueError:
        return 1.0


def _spec(item: Any) -> dict[str, Any]:
    return item.spec if isinstance(item.spec, dict) else {}


def _text(spec: Mapping[str, Any], *keys: str) -> str:
    return next((spec[key] for key in keys if isinstance(spec.get(key), str) and spec[key]), "")
