"""Leader election by a Lease: who holds it acts, and only for as long as it surely holds it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import msgspec

from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.model.values.duration import format_time

DURATION = 15.0
"""Seconds after which a Lease that was not renewed may be taken."""

RENEW_EVERY = 3.0
STAND_AGAIN = 0.1
"""Seconds after which a process that could not act yet looks whether it can."""

SURE_FOR = 10.0
"""Seconds after its last renewal for which a leader acts: less than `DURATION`, so that two never act at once."""

_GONE = 404
_CONFLICT = 409


class NotLeaderError(Exception):
    """The error of a process that does not hold the Lease, or is no longer sure of it."""


class Election:
    """A participant in the election of a leader.

    Others' clocks are not trusted: a Lease counts as expired `DURATION` seconds after this process *saw* it change.

    Parameters
    ----------
    client, namespace, name, identity
        Where the Lease is, and who this is.
    stands
        Whether this process could act if it led; one that could not leaves the Lease to others.
    monotonic, wall
        Clocks: seconds of a clock that never jumps, and µs since the epoch for what is written.
    """

    def __init__(
        self,
        client: Client,
        namespace: str,
        name: str,
        identity: str,
        *,
        stands: Callable[[], bool] = lambda: True,
        monotonic: Callable[[], float] = time.monotonic,
        wall: Callable[[], int] = lambda: time.time_ns() // 1000,
    ) -> None:
        self.client = client
        self.identity = identity
        self.name = name
        self.path = f"/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases"
        self.holder = ""
        self.terms = 0
        self._stands = stands
        self._monotonic = monotonic
        self._wall = wall
        self._sure_until = 0.0
        self._seen: tuple[str, str, float] = ("", "", 0.0)
        self._stopped = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def leads(self) -> bool:
        """Whether this process surely holds the Lease now."""
        return self._monotonic() < self._sure_until

    def require(self) -> None:
        """Let pass who leads.

        Raises
        ------
        NotLeaderError
            Another one may lead by now.
        """
        if not self.leads:
            raise NotLeaderError

    def start(self) -> None:
        """Take part, in a thread of its own."""
        self._thread = threading.Thread(target=self._run, name="leader election", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Take part no longer, and give the Lease back so that another one need not wait for its end."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join(5.0)
        if self.leads:
            self._sure_until = 0.0
            self._release()

    def _run(self) -> None:
        while not self._stopped.is_set():
            if not (self.leads or self._stands()):
                self._stopped.wait(STAND_AGAIN)
                continue
            with suppress(ApiError):  # whoever leads stops acting by itself once it is no longer sure
                self.attempt()
            self._stopped.wait(RENEW_EVERY)

    def attempt(self) -> bool:
        """Take the Lease or renew it, if that is possible now.

        Raises
        ------
        ApiError
            The API server cannot be asked.
        """
        before = self._monotonic()
        lease = self._read()
        try:
            if lease is None:
                self._write(self._spec(0), None)
            else:
                spec = lease.get("spec") or {}
                self.holder = spec.get("holderIdentity") or ""
                mine = self.holder == self.identity
                if not mine and self.holder and not self._is_expired(spec):
                    self._sure_until = 0.0
                    return False
                changes = int(spec.get("leaseTransitions") or 0) + (not mine)
                acquired = spec.get("acquireTime") if mine else None
                self._write(self._spec(changes, acquired), lease)
        except ApiError as error:
            if error.status == _CONFLICT:
                self._sure_until = 0.0
                return False
            raise
        if not self.leads:
            self.terms += 1
        self.holder = self.identity
        self._sure_until = before + SURE_FOR
        return True

    def _read(self) -> dict[str, Any] | None:
        try:
            lease: dict[str, Any] = msgspec.json.decode(self.client.request("GET", f"{self.path}/{self.name}"))
        except ApiError as error:
            if error.status == _GONE:
                return None
            raise
        return lease

    def _is_expired(self, spec: dict[str, Any]) -> bool:
        holder, renewed = str(spec.get("holderIdentity")), str(spec.get("renewTime"))
        now = self._monotonic()
        if self._seen[:2] != (holder, renewed):
            self._seen = (holder, renewed, now)
            return False
        return now - self._seen[2] >= max(DURATION, float(spec.get("leaseDurationSeconds") or 0))

    def _spec(self, changes: int, acquired: str | None = None) -> dict[str, Any]:
        now = format_micro(self._wall())
        return {
            "holderIdentity": self.identity, "leaseDurationSeconds": int(DURATION), "renewTime": now,
            "acquireTime": acquired or now, "leaseTransitions": changes,
        }  # fmt: skip

    def _write(self, spec: dict[str, Any], lease: dict[str, Any] | None) -> None:
        body: dict[str, Any] = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "spec": spec}
        if lease is None:
            self.client.create(self.path, {**body, "metadata": {"name": self.name}})
        else:
            meta = {k: v for k, v in lease["metadata"].items() if k != "managedFields"}
            self.client.replace(f"{self.path}/{self.name}", {**body, "metadata": meta})

    def _release(self) -> None:
        try:
            lease = self._read()
            if lease is not None and (lease.get("spec") or {}).get("holderIdentity") == self.identity:
                self._write({**lease["spec"], "holderIdentity": "", "renewTime": format_micro(self._wall())}, lease)
        except ApiError:
            pass  # it ends by itself


def format_micro(time: int) -> str:
    """Write a time with six digits after the point, as MicroTime wants it."""
    whole, part = divmod(time, 1_000_000)
    return f"{format_time(whole * 1_000_000).removesuffix('Z')}.{part:06d}Z"
