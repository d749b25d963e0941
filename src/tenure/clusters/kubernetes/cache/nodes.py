"""Nodes as the model has them."""

from __future__ import annotations

from typing import Any

from tenure.clusters.kubernetes import api, keys
from tenure.engine.room.taints import UNSCHEDULABLE
from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.fields.containers import ExactAmountsKind, ListKind
from tenure.model.fields.records import record_of
from tenure.model.node import Node
from tenure.model.selectors import Taint
from tenure.model.values.quantity import round_up
from tenure.model.values.report import BAD, ProblemReport, path_text
from tenure.model.values.resources import GPU, PODS

_AMOUNTS = ExactAmountsKind()
MIB = 1 << 20


def node_of(item: api.ApiNode) -> tuple[Node, list[str]]:
    """Give a node, and what about it could not be read."""
    meta, report = item.metadata, ProblemReport()
    labels = meta.labels or {}
    allocatable: Any = _AMOUNTS.decode(item.status.allocatable or {}, (None, "status.allocatable"), report)
    amounts: dict[str, int] = {} if allocatable is BAD else allocatable
    taints: Any = ListKind(record_of(Taint)).decode(item.spec.taints or [], (None, "spec.taints"), report)
    node = Node(
        name=meta.name,
        allocatable={PODS: 0, **{name: round_up(amount, name) for name, amount in amounts.items()}},
        labels=labels,
        taints=()
        if taints is BAD
        else tuple(t for t in taints if not (item.spec.unschedulable and t == UNSCHEDULABLE)),
        unschedulable=item.spec.unschedulable,
        ready=any(c.type == "Ready" and c.status == "True" for c in item.status.conditions or ()),
        created_at=api.micros(meta.creation_timestamp),
        gpu_memory=_gpu_memory(labels) if amounts.get(GPU) else None,
        drain=_says(labels, meta.annotations),
        features=tuple(sorted(item.status.declared_features or ())),
    )
    return node, [f"{path_text(path)}: {message}" for path, message in report.problems]


def _says(labels: dict[str, str], annotations: dict[str, str] | None) -> bool:
    return "true" in (labels.get(keys.DRAIN), (annotations or {}).get(keys.DRAIN))


def _gpu_memory(labels: dict[str, str]) -> int | None:
    text = labels.get(keys.GPU_MEMORY_LABEL, "")
    return int(text) * MIB if text.isdecimal() else None
