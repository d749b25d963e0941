"""What pods really use of their GPUs, asked of Prometheus, where DCGM's exporter or another is scraped.

Prometheus is asked for the most that each pod used within the time that the nominator of idle GPUs looks back on, so
that nothing about it has to be remembered: a new leader asks again. A pod of which less than four fifths of that
time was measured is not known. An annotation of the pod that says its usage comes first.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple
from urllib.parse import urlencode

import msgspec
import urllib3

from tenure.clusters.kubernetes.bounded import brief
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read.periodic import FRESH, PeriodicReads

GPU_METRIC: Final = "DCGM_FI_DEV_GPU_UTIL"
"""Use of a device in percent, with the pod that has it in the labels."""

MOST_BYTES: Final = 64 << 20
"""Bytes of an answer that are read: about 200,000 pods."""

_SECOND: Final = 1_000_000
_STEPS: Final = 60
_TIMEOUT: Final = 20.0
_PERCENT: Final = 10
"""Milli-GPU of a percent of a GPU."""

PodKey = tuple[str, str]


class GpuReading(NamedTuple):
    """The most milli-GPU that a pod used within the last ``window`` µs."""

    milli: int
    window: int


class _Sample(msgspec.Struct):
    metric: dict[str, str]
    value: tuple[float, str]


class _Data(msgspec.Struct):
    result: list[_Sample] = []


class _Answer(msgspec.Struct):
    status: str
    data: _Data = msgspec.field(default_factory=_Data)
    error: str = ""


_DECODE: Final = msgspec.json.Decoder(_Answer).decode


def usage_query(window: int, metric: str = GPU_METRIC) -> str:
    """Give the question: the most that each pod used within a window (µs), of those that were measured through it."""
    seconds = max(1, window // _SECOND)
    step = max(1, seconds // _STEPS)
    used = f"sum by (namespace, pod, exported_namespace, exported_pod) ({metric})[{seconds}s:{step}s]"
    return f"max_over_time({used}) and count_over_time({used}) >= {max(1, seconds // step * 4 // 5)}"


class GpuUsageCollector:
    """The readings, taken in a thread of its own. ``trouble`` says why there are none; ``changed`` tells of news."""

    def __init__(self, client: Client, server: str, changed: Callable[[], None]) -> None:
        self.server = server.rstrip("/")
        self.version = 0
        self.trouble = ""
        self.pods: dict[PodKey, GpuReading] = {}
        self._at = 0
        self._client = client
        self._changed = changed
        self._window: int | None = None
        self._pool = urllib3.PoolManager(timeout=_TIMEOUT, retries=False)
        self._reads = PeriodicReads("gpu usage", self.read)

    def start(self) -> None:
        """Begin, as soon as a setting needs it."""
        if self.server:
            self._reads.start()

    def stop(self) -> None:
        """End."""
        self._reads.stop()

    def want(self, window: int | None) -> None:
        """Say over which time (µs) it has to be known; None where no setting needs it."""
        self._window = window
        self._reads.want(wanted=window is not None)
        if window is None:
            self.pods, self.trouble = {}, ""

    def of(self, key: PodKey, now: int) -> GpuReading | None:
        """Give what is known of a pod; None where that is nothing, or too old."""
        return self.pods.get(key) if now - self._at <= FRESH else None

    def read(self) -> None:
        """Ask once. What cannot be read leaves nothing known but what is not too old."""
        window, now = self._window, self._client.clock.now()
        if window is None:
            return
        try:
            samples = self._asked(usage_query(window))
        except (urllib3.exceptions.HTTPError, msgspec.MsgspecError, ValueError) as error:
            self.trouble = f"Prometheus at {self.server} cannot be read: {brief(error)}"
            return
        self.trouble, self._at = "", now
        self.pods = {key: GpuReading(milli, window) for s in samples for key, milli in _of_pod(s)}
        self.version += 1
        self._changed()

    def _asked(self, query: str) -> list[_Sample]:
        address = f"{self.server}/api/v1/query?{urlencode({'query': query})}"
        answer = self._pool.request("GET", address, preload_content=False)
        try:
            body = answer.read(MOST_BYTES + 1)
        finally:
            answer.release_conn()
        if len(body) > MOST_BYTES:
            raise ValueError(f"the answer has more than {MOST_BYTES >> 20} MiB")
        found = _DECODE(body)
        if found.status != "success":
            raise ValueError(found.error or f"HTTP {answer.status}")
        return found.data.result


def _of_pod(sample: _Sample) -> list[tuple[PodKey, int]]:
    """Give the pod that a sample is about, and how much it used; none where it says neither."""
    labels = sample.metric
    namespace = labels.get("exported_namespace") or labels.get("namespace", "")
    name = labels.get("exported_pod") or labels.get("pod", "")
    try:
        percent = float(sample.value[1])
    except ValueError:
        return []
    if not (namespace and name and 0 <= percent < _MOST_PERCENT):
        return []
    return [((namespace, name), round(percent * _PERCENT))]


_MOST_PERCENT: Final = 1e7
