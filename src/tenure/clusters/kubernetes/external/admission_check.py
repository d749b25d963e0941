"""Whether the admission policy is there, and in effect: without it what was moved away could come back."""

from __future__ import annotations

import time
from typing import Final

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decode
from tenure.clusters.kubernetes.external.admission import BINDING_PATH, NAME
from tenure.clusters.kubernetes.external.seen import SECOND

DEAF: Final = 20 * SECOND
"""µs after its writing from which on a record that admission does not know is not waited for any more."""

CHECKED_SECONDS: Final = 60.0
"""For so long the admission policy that was found is taken to be there."""

_GONE: Final = 404
_MISSING: Final = (
    f"the admission policy {NAME} is not installed; apply what tenure install prints for settings in which "
    "rescheduler.schedulers names a scheduler"
)
NOT_KNOWN: Final = (
    f"the API server does not apply the admission policy {NAME}: apply what tenure install prints; if that is done, "
    "restart the API server, which reads no ConfigMap for policies any more once their bindings were deleted"
)


class AdmissionCheck:
    """The check of the admission policy on an API server, with what it found last."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._bound_at = float("-inf")
        self._known: str | None = None

    def require_bound(self) -> None:
        """See that the policy is bound.

        Raises
        ------
        ApiError
            It is not, or the API server does not say.
        """
        now = time.monotonic()
        if now - self._bound_at < CHECKED_SECONDS:
            return
        try:
            self._client.get(BINDING_PATH)
        except ApiError as error:
            if error.status == _GONE:
                raise ApiError(error.status, error.reason, _MISSING) from None
            raise
        self._bound_at = now

    def knows(self, record: api.ApiObject) -> bool:
        """Whether the policy is in effect for a record as it is: the API server is asked by a dry run.

        Raises
        ------
        ApiError
            The API server does not say.
        """
        meta = record.metadata
        version = meta.resource_version
        if version != self._known:
            answer = self._client.patch(
                f"/api/v1/namespaces/{meta.namespace}/configmaps/{meta.name}?dryRun=All",
                {"metadata": {"resourceVersion": version}},
            )
            annotations = decode(answer, api.ApiObject).metadata.annotations
            self._known = (annotations or {}).get(keys.SEEN)
        return version == self._known
