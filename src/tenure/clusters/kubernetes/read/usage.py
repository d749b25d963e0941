"""What nodes and pods really use: CPU and memory as the metrics API says, GPUs as an annotation of the pod says.

The metrics API is asked now and then, and only where a setting needs it. Where it is not served, Prometheus is asked
what it has scraped of the kubelets' cAdvisor, if there is one; else nothing is known and nothing follows from that. For
how long a node has been on its side of the threshold is kept in memory: whoever takes over begins anew, and acts later.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

import msgspec

from tenure.clusters.kubernetes.api import Meta
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.client.prometheus import PrometheusClient, PrometheusError, PrometheusSample
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.decoding import decoder_of
from tenure.clusters.kubernetes.read.gpu_usage import GpuReading, GpuUsageCollector
from tenure.clusters.kubernetes.read.periodic import FRESH, PeriodicReads
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.model.node import Node
from tenure.model.values.quantity import parse_quantity
from tenure.model.values.resources import CPU, GPU, MEMORY

METRICS: Final = "/apis/metrics.k8s.io/v1beta1"
_Key = tuple[str, str]
_Usage = tuple[dict[str, dict[str, int]], dict[_Key, dict[str, int]]]
"""Amounts by node, and by pod."""


class _Container(msgspec.Struct):
    usage: dict[str, str] = {}


class _Measured(msgspec.Struct):
    metadata: Meta
    usage: dict[str, str] = {}
    containers: list[_Container] = []


class _List(msgspec.Struct):
    items: list[_Measured] = []


_DECODE: Final = decoder_of(_List).decode


class UsageReading(NamedTuple):
    """CPU (milli) and memory (bytes) in use, when that was read, and since when it is on its side of the threshold."""

    amounts: dict[str, int]
    at: int
    is_hot: bool = False
    since: int = 0


class UsageCollector:
    """The readings, taken in a thread of its own. ``trouble`` says why there are none; ``changed`` tells of news."""

    def __init__(
        self,
        client: Client,
        nodes: Mapping[str, Node],
        changed: Callable[[], None],
        server: str = "",
        *,
        wall: Callable[[], int] | None = None,
    ) -> None:
        self.prometheus = PrometheusClient(server)
        self.version = 0
        self.trouble = ""
        self.nodes: dict[str, UsageReading] = {}
        self.pods: dict[_Key, UsageReading] = {}
        self._client = client
        self._known = nodes
        self._changed = changed
        self._wall = wall
        self._share: float | None = None
        self._reads = PeriodicReads("usage", self.read)

    def start(self) -> None:
        """Begin, as soon as a setting needs it."""
        self._reads.start()

    def stop(self) -> None:
        """End."""
        self._reads.stop()

    def want(self, share: float | None) -> None:
        """Say from which share of its CPU on a node is hot; None where no setting needs it."""
        self._share = share
        self._reads.want(wanted=share is not None)
        if share is None:
            self.nodes, self.pods, self.trouble = {}, {}, ""

    def read(self) -> None:
        """Ask once: the metrics API, or Prometheus where that does not answer."""
        share, now = self._share, (self._wall or self._client.clock.now)()
        found = self._measured()
        if found is None or share is None:
            return
        self.trouble = ""
        nodes, pods = found
        before = self.nodes
        self.nodes = {name: self._reading(name, amounts, share, now) for name, amounts in nodes.items()}
        self.pods = {key: UsageReading(amounts, now) for key, amounts in pods.items()}
        if any(r.is_hot or (name in before and before[name].is_hot) for name, r in self.nodes.items()):
            self.version += 1
            self._changed()

    def _measured(self) -> _Usage | None:
        """Give what nodes and pods use; None, and the trouble, where that cannot be known."""
        nodes, pods = self._listed("nodes"), self._listed("pods")
        if nodes is not None and pods is not None:
            by_pod = {(m.metadata.namespace, m.metadata.name): _sum([c.usage for c in m.containers]) for m in pods}
            return {m.metadata.name: _sum([m.usage]) for m in nodes}, by_pod
        if not self.prometheus.server:
            return None
        try:
            return _scraped(self.prometheus)
        except PrometheusError as error:
            self.trouble += f"; Prometheus at {self.prometheus.server} cannot be read: {error}"
            return None

    def _listed(self, what: str) -> list[_Measured] | None:
        try:
            return _DECODE(self._client.request("GET", f"{METRICS}/{what}")).items
        except (ApiError, msgspec.MsgspecError) as error:
            self.trouble = f"the metrics API cannot be read: {error}"
            return None

    def _reading(self, name: str, amounts: dict[str, int], share: float, now: int) -> UsageReading:
        node, before = self._known.get(name), self.nodes.get(name)
        is_hot = node is not None and amounts.get(CPU, 0) > share * node.allocatable.get(CPU, 0)
        goes_on = before is not None and before.is_hot == is_hot and now - before.at <= FRESH
        return UsageReading(amounts, now, is_hot, before.since if goes_on and before is not None else now)

    # -- what follows -----------------------------------------------------------------------------------------------

    def of_nodes(self, nodes: tuple[Node, ...], now: int) -> tuple[Node, ...]:
        """Give nodes with what they use."""
        known = {name: r for name, r in self.nodes.items() if now - r.at <= FRESH}
        if not known:
            return nodes
        return tuple(
            replace(n, usage=known[n.name].amounts, usage_for=max(0, now - known[n.name].since))
            if n.name in known
            else n
            for n in nodes
        )

    def of_workloads(
        self, found: Sequence[ObservedWorkload], now: int, gpus: GpuUsageCollector
    ) -> list[ObservedWorkload]:
        """Give workloads with what their tasks use; ``gpus`` knows what of their GPUs."""
        known = {key: r.amounts for key, r in self.pods.items() if now - r.at <= FRESH}
        return [
            _with_usage(made, known, gpus, now)
            if any(p.gpu_usage is not None or p.key in known or gpus.of(p.key, now) for p in made.pods)
            else made
            for made in found
        ]


_CPU: Final = "rate(container_cpu_usage_seconds_total{{{0}}}[{1}s])"
_MEMORY: Final = "container_memory_working_set_bytes{{{0}}}"
_OF_NODES: Final = 'id="/"'
_OF_PODS: Final = 'container!="",pod!=""'
RATE_SECONDS: Final = 120
"""Seconds over which CPU time is averaged: two scrapes fit in, where these are a minute apart."""


def usage_queries() -> dict[str, tuple[str, str]]:
    """Give the questions to Prometheus: by resource, for nodes and for pods."""
    found = {}
    for resource, measured in ((CPU, _CPU), (MEMORY, _MEMORY)):
        nodes, pods = (measured.format(which, RATE_SECONDS) for which in (_OF_NODES, _OF_PODS))
        found[resource] = f"sum by (node, instance) ({nodes})", f"sum by (namespace, pod) ({pods})"
    return found


def _scraped(prometheus: PrometheusClient) -> _Usage:
    """Give what Prometheus knows of nodes and pods; a node is the label ``node``, else the instance."""
    nodes: dict[str, dict[str, int]] = {}
    pods: dict[_Key, dict[str, int]] = {}
    for resource, (of_nodes, of_pods) in usage_queries().items():
        for sample in prometheus.ask(of_nodes):
            _take(nodes.setdefault(sample.label("node", "instance"), {}), resource, sample)
        for sample in prometheus.ask(of_pods):
            _take(pods.setdefault((sample.label("namespace"), sample.label("pod")), {}), resource, sample)
    return nodes, pods


def _take(amounts: dict[str, int], resource: str, sample: PrometheusSample) -> None:
    """Take an amount in cores or bytes, rounded up; what is none is left out."""
    number = sample.number
    if number is not None and 0 <= number < _MOST:
        amounts[resource] = math.ceil(number * (_MILLI if resource == CPU else 1))


_MOST: Final = 1e18
_MILLI: Final = 1000


def _with_usage(
    made: ObservedWorkload, known: Mapping[_Key, dict[str, int]], gpus: GpuUsageCollector, now: int
) -> ObservedWorkload:
    tasks = list(made.workload.tasks)
    for number, pod in enumerate(made.pods):
        usage = dict(known.get(pod.key, {}))
        milli, lasted = _gpu_usage(pod, gpus.of(pod.key, now), now)
        if milli is not None:
            usage[GPU] = milli
        if usage:
            tasks[number] = replace(tasks[number], usage=usage, usage_for=lasted)
    return replace(made, workload=replace(made.workload, tasks=tuple(tasks)))


def _gpu_usage(pod: PodRecord, measured: GpuReading | None, now: int) -> tuple[int | None, int | None]:
    """Give how many milli-GPU a pod uses, and for how long (µs) it has not used more.

    Its annotations are its tenant's word: beside a measurement they count where they make it look idler, and no less.
    """
    told = pod.gpu_usage, None if pod.gpu_usage_since is None else max(0, now - pod.gpu_usage_since)
    if measured is None or pod.task.started_at is None:
        return told
    lasted = min(measured.window, max(0, now - pod.task.started_at))
    if pod.gpu_usage is not None and pod.gpu_usage <= measured.milli and (told[1] or 0) >= lasted:
        return told
    return measured.milli, lasted


def _sum(several: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """Add up amounts; what cannot be read counts as nothing."""
    found: dict[str, int] = {}
    for usage in several:
        for resource in (CPU, MEMORY):
            try:
                found[resource] = found.get(resource, 0) + _amount(usage.get(resource, "0"), resource)
            except ValueError:
                continue
    return found


def _amount(text: str, resource: str) -> int:
    """Read a quantity; metrics are finer than what is asked for, and are rounded up."""
    part = {"n": 1_000_000, "u": 1_000}.get(text[-1:]) if resource == CPU else None
    return parse_quantity(text, resource) if part is None else -(-int(text[:-1]) // part)
