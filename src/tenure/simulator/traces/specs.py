"""What a pod of a trace asks for, with one object for all pods that ask for the same."""

from __future__ import annotations

from typing import NamedTuple

from tenure.model.selectors import Affinity, NodeAffinity, NodeSelectorTerm, Requirement
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI
from tenure.model.workload import GpuShare, TaskSpec

MIB = 1 << 20
MODEL_LABEL = "nvidia.com/gpu.product"
"""Node label that names the GPU model; it is what NVIDIA's own feature discovery writes."""


class PodRequest(NamedTuple):
    """Requests of one pod: ``milli`` of each of ``gpus`` devices (1000: whole GPUs), of one of the ``models``."""

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    milli: int = MILLI
    models: tuple[str, ...] = ()


class SpecCache:
    """The maker of task specs from requests, each once."""

    def __init__(self) -> None:
        self._specs: dict[PodRequest, TaskSpec] = {}

    def spec(self, ask: PodRequest) -> TaskSpec:
        """Give the spec of an ask."""
        spec = self._specs.get(ask)
        if spec is None:
            spec = self._specs[ask] = _make(ask)
        return spec


def _make(ask: PodRequest) -> TaskSpec:
    amounts = {CPU: ask.cpu_milli, MEMORY: ask.memory_mib * MIB}
    share = None
    if ask.gpus and ask.milli == MILLI:
        amounts[GPU] = ask.gpus
    elif ask.gpus:
        share = GpuShare(milli=ask.milli, devices=ask.gpus)
    requests = tuple(sorted((name, amount) for name, amount in amounts.items() if amount))
    return TaskSpec(requests=requests, gpu_share=share, affinity=_affinity(ask.models))


def _affinity(models: tuple[str, ...]) -> Affinity | None:
    if not models:
        return None
    term = NodeSelectorTerm(match_expressions=(Requirement(key=MODEL_LABEL, operator="In", values=models),))
    return Affinity(node=NodeAffinity(required=(term,)))


def models_of(text: str) -> tuple[str, ...]:
    """Read GPU models separated by ``|``."""
    return tuple(sorted({part.strip() for part in text.split("|")} - {""}))
