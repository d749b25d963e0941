"""What pods really use of their GPUs, asked of Prometheus, where DCGM's exporter or another is scraped.

Prometheus is asked for the most that each pod used within the time that the nominator of idle GPUs looks back on, so
that nothing about it has to be remembered: a new leader asks again. A pod of which less than four fifths of that
time was measured is not known. An annotation of the pod that says that it uses less counts as well.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from tenure.clusters.kubernetes.client.prometheus import PrometheusClient, PrometheusError, PrometheusSample
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.read.periodic import FRESH, PeriodicReads

GPU_METRIC: Final = '{__name__=~"DCGM_FI_DEV_GPU_UTIL|(amd_)?gpu_gfx_activity"}'
"""Use of a device in percent, with the pod that has it in the labels: of NVIDIA's exporter, and of AMD's."""

_SECOND: Final = 1_000_000
_STEPS: Final = 60
_PERCENT: Final = 10
"""Milli-GPU of a percent of a GPU."""

PodKey = tuple[str, str]


class GpuReading(NamedTuple):
    """The most milli-GPU that a pod used within the last ``window`` µs."""

    milli: int
    window: int


def usage_query(window: int, metric: str = GPU_METRIC) -> str:
    """Give the question: the most that each pod used within a window (µs), of those that were measured through it."""
    seconds = max(1, window // _SECOND)
    step = max(1, seconds // _STEPS)
    used = f"sum by (namespace, pod, exported_namespace, exported_pod) ({metric})[{seconds}s:{step}s]"
    return f"max_over_time({used}) and count_over_time({used}) >= {max(1, seconds // step * 4 // 5)}"


class GpuUsageCollector:
    """The readings, taken in a thread of its own. ``trouble`` says why there are none; ``changed`` tells of news."""

    def __init__(self, client: Client, server: str, changed: Callable[[], None]) -> None:
        self.prometheus = PrometheusClient(server)
        self.version = 0
        self.trouble = ""
        self.pods: dict[PodKey, GpuReading] = {}
        self._at = 0
        self._client = client
        self._changed = changed
        self._window: int | None = None
        self._reads = PeriodicReads("gpu usage", self.read)

    def start(self) -> None:
        """Begin, as soon as a setting needs it."""
        if self.prometheus.server:
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
            samples = self.prometheus.ask(usage_query(window))
        except PrometheusError as error:
            self.trouble = f"Prometheus at {self.prometheus.server} cannot be read: {error}"
            return
        self.trouble, self._at = "", now
        self.pods = {key: GpuReading(milli, window) for s in samples for key, milli in _of_pod(s)}
        self.version += 1
        self._changed()


def _of_pod(sample: PrometheusSample) -> list[tuple[PodKey, int]]:
    """Give the pod that a sample is about, and how much it used; none where it says neither."""
    namespace, name = sample.label("exported_namespace", "namespace"), sample.label("exported_pod", "pod")
    percent = sample.number
    if not (namespace and name and percent is not None and 0 <= percent < _MOST_PERCENT):
        return []
    return [((namespace, name), round(percent * _PERCENT))]


_MOST_PERCENT: Final = 1e7
