"""What the pods that hold GPUs take over of the pod in which the scheduler runs, as the API server has it.

An installation says all of it once: the image under the name by which this cluster's registry has it,
the credentials for that registry, and the PriorityClass by which the scheduler outranks what it schedules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.install.installation import CONTAINER

_GONE: Final = 404


class _PodList(msgspec.Struct):
    items: list[api.ApiObject] = []


@dataclass(frozen=True, slots=True)
class HolderOptions:
    """What pods that hold GPUs are made with. Empty: as the cluster has it by default."""

    image: str
    pull_policy: str = ""
    pull_secrets: Sequence[Any] = ()
    priority_class: str = ""


def of_own_pod(client: Client, namespace: str, name: str, image: str = "") -> HolderOptions:
    """Read what a pod of the scheduler's gives to those that hold GPUs, by the right to list pods.

    ``image``: another image than its own.

    Raises
    ------
    ApiError
        If the API server cannot be asked, or the pod is gone.
    """
    path = f"/api/v1/namespaces/{namespace}/pods"
    found = decode(client.get(path, fieldSelector=f"metadata.name={name}"), _PodList).items
    if not found:
        raise ApiError(_GONE, "NotFound", f"there is no pod {namespace}/{name}, in which this scheduler is to run")
    own = of_spec(found[0].spec or {})
    return replace(own, image=image, pull_policy="") if image else own


def of_spec(spec: dict[str, Any]) -> HolderOptions:
    """Read them of the spec of a pod, which has at least one container."""
    containers = spec["containers"]
    runs = next((one for one in containers if one["name"] == CONTAINER), containers[0])
    return HolderOptions(
        runs["image"],
        runs.get("imagePullPolicy", ""),
        tuple(spec.get("imagePullSecrets", ())),
        spec.get("priorityClassName", ""),
    )
