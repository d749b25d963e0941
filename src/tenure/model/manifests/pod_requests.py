"""What a pod counts for on its node, as kube-scheduler adds it up (``k8s.io/component-helpers/resource``, PodRequests).

Amounts are in thousand-millionths of a unit until all of them are added up; only then they are rounded, upward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

from tenure.model.entries import EntryValues
from tenure.model.values.quantity import round_up

MOST_ASKED: Final = 1 << 53
"""More than this no pod counts for: no node has as much, and sums over a node's pods stay within 64 bits."""

_OF_PODS: Final = ("cpu", "memory")
_HUGE_PAGES: Final = "hugepages-"

_Amounts = dict[str, int]
_Rule = Callable[[Mapping[str, Any], Mapping[str, Any]], Mapping[str, int]]
"""Gives the amounts of a container of what its spec says and what its status says."""


def values_of(reads: Iterable[EntryValues]) -> list[dict[str, Any]]:
    """Give the values of entries."""
    return [read.values for read in reads]


def asked_by(container: Mapping[str, Any]) -> Mapping[str, int]:
    """Give by resource what a container asks for, in thousand-millionths of a unit."""
    return _requests(container.get("resources"))


def pod_requests(spec: Mapping[str, Any]) -> dict[str, int]:
    """Give by resource what a pod asks for, in the units of `tenure.model.values.resources`.

    Where a running pod is resized (``status``), the most counts of what is asked for, what its node has allocated and
    what its containers have; a resize that its node has refused for good is not asked for.
    """
    status = _values(spec.get("status"))
    if not status:
        total = _of_containers(spec, {}, _asked)
        total = _with_pod_level(total, _of_pod(spec, total))
    else:
        total = _resized(spec, status)
    exact = _sum(total, spec.get("overhead", {}))
    return {resource: min(MOST_ASKED, round_up(amount, resource)) for resource, amount in exact.items()}


def _resized(spec: Mapping[str, Any], status: Mapping[str, Any]) -> _Amounts:
    refused = _is_refused(status)
    statuses = {
        values.get("name", ""): values
        for values in values_of((*status.get("initContainerStatuses", ()), *status.get("containerStatuses", ())))
    }
    pod = _values(status.get("resources"))
    if "allocatedResources" in status and "requests" in pod:
        views = [status["allocatedResources"], pod["requests"]]
    else:
        asked: _Rule = _nothing if refused else _asked

        def allocated(container: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, int]:
            return known["allocatedResources"] if "allocatedResources" in known else asked(container, known)

        def actual(container: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, int]:
            has = _values(known.get("resources"))
            return has["requests"] if "requests" in has else allocated(container, known)

        views = [_of_containers(spec, statuses, allocated), _of_containers(spec, statuses, actual)]
    if not refused:
        views.append(_of_containers(spec, statuses, _asked))
    own = _of_pod(spec, views[-1])
    if own and pod:
        own = _most({} if refused else own, pod.get("requests", {}), status.get("allocatedResources", {}))
    return _with_pod_level(_most(*views), own)


def _is_refused(status: Mapping[str, Any]) -> bool:
    """Whether the node has refused a resize for good."""
    conditions = values_of(status.get("conditions", ()))
    return any(c.get("type") == "PodResizePending" and c.get("reason") == "Infeasible" for c in conditions)


def _of_containers(spec: Mapping[str, Any], statuses: Mapping[str, Mapping[str, Any]], rule: _Rule) -> _Amounts:
    """Add up containers, or give what init containers need at most if that is more.

    Those run one after the other, each beside the sidecars (init containers that are restarted always) before it.
    Sidecars run on beside the containers.
    """
    total: _Amounts = {}
    for container in values_of(spec.get("containers", ())):
        _add(total, rule(container, statuses.get(container.get("name", ""), {})))
    sidecars: _Amounts = {}
    peak: _Amounts = {}
    for container in values_of(spec.get("initContainers", ())):
        needed = rule(container, statuses.get(container.get("name", ""), {}))
        if container.get("restartPolicy") == "Always":
            _add(total, needed)
            _add(sidecars, needed)
            peak = _most(peak, sidecars)
        else:
            peak = _most(peak, _sum(needed, sidecars))
    return _most(total, peak)


def _with_pod_level(total: Mapping[str, int], own: Mapping[str, int]) -> _Amounts:
    """Let what the pod asks for as a whole stand for the sum of its containers."""
    return {**total, **{name: n for name, n in own.items() if name in _OF_PODS or name.startswith(_HUGE_PAGES)}}


def _of_pod(spec: Mapping[str, Any], of_containers: Mapping[str, int]) -> _Amounts:
    """Give what a pod asks for as a whole; a limit stands in where its containers ask for nothing of that either."""
    values = _values(spec.get("resources"))
    limits = values.get("limits", {})
    alone = {name: n for name, n in limits.items() if name not in _OF_PODS or name not in of_containers}
    return {**alone, **values.get("requests", {})}


def _asked(container: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, int]:  # noqa: ARG001
    return _requests(container.get("resources"))


def _nothing(container: Mapping[str, Any], status: Mapping[str, Any]) -> Mapping[str, int]:  # noqa: ARG001
    return {}


def _requests(resources: EntryValues | None) -> _Amounts:
    """Give requests; a limit stands in for a request that is missing, as the API server has it."""
    values = _values(resources)
    return {**values.get("limits", {}), **values.get("requests", {})}


def _values(read: EntryValues | None) -> Mapping[str, Any]:
    return read.values if read is not None else {}


def _add(total: _Amounts, amounts: Mapping[str, int]) -> None:
    for resource, amount in amounts.items():
        total[resource] = total.get(resource, 0) + amount


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> _Amounts:
    total = dict(one)
    _add(total, other)
    return total


def _most(*views: Mapping[str, int]) -> _Amounts:
    found: _Amounts = {}
    for view in views:
        for resource, amount in view.items():
            found[resource] = max(found.get(resource, 0), amount)
    return found
