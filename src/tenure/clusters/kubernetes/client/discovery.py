"""What an API server serves, as it says of all of its groups in one answer.

The format is Kubernetes' aggregated discovery (``apidiscovery.k8s.io/v2``). An API server that does not know it says
which versions of groups there are, and each that matters is asked about by itself.
"""

from __future__ import annotations

from typing import Final, TypeVar

import msgspec

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.model.manifests.workload_kind import api_path

T = TypeVar("T")

AGGREGATED: Final = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"
_NOT_THERE: Final = frozenset({403, 404})


class _Named(msgspec.Struct):
    name: str = ""


class _Resource(msgspec.Struct):
    resource: str = ""


class _Version(msgspec.Struct):
    version: str = ""
    resources: list[_Resource] = []


class _Group(msgspec.Struct):
    metadata: _Named = msgspec.field(default_factory=_Named)
    versions: list[_Version] = []


class _Aggregated(msgspec.Struct):
    kind: str = ""
    items: list[_Group] | None = None


class _ResourceList(msgspec.Struct):
    resources: list[_Named] = []


class ServedResources:
    """The resources that an API server serves, as they are when each is first asked about."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._roots: dict[str, dict[str, set[str]] | None] = {}
        self._single: dict[str, set[str]] = {}

    def serves(self, path: str, resource: str) -> bool:
        """Tell whether the version of a group at a path, such as ``/apis/batch/v1``, is served with a resource.

        Raises
        ------
        ApiError
            It cannot be asked, or what it says cannot be read. What is not there, or may not be asked about, is not
            served.
        """
        root = f"/{path.split('/')[1]}"
        if root not in self._roots:
            self._roots[root] = self._all_under(root)
        served = self._roots[root]
        if served is not None:
            return resource in served.get(path, ())
        if path not in self._single:
            self._single[path] = {entry.name for entry in self._listed(path, _ResourceList).resources}
        return resource in self._single[path]

    def _all_under(self, root: str) -> dict[str, set[str]] | None:
        """Give the names of resources by path of a group's version; None from a server that does not say them."""
        listed = self._listed(root, _Aggregated)
        if listed.items is None:
            return None
        return {
            api_path(group.metadata.name, version.version): {entry.resource for entry in version.resources}
            for group in listed.items
            for version in group.versions
        }

    def _listed(self, path: str, kind: type[T]) -> T:
        """Give what is said at a path; nothing where nothing is there to be read."""
        try:
            return decode(self._client.get(path, accept=AGGREGATED), kind)
        except msgspec.MsgspecError as error:
            raise ApiError(0, "Unreadable", f"{path}: {error}") from None
        except ApiError as error:
            if error.status in _NOT_THERE:
                return kind()
            raise
