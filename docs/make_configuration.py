"""Makes ``configuration.md`` anew, from the code: every setting, field, label, annotation, event and metric.

python docs/make_configuration.py
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import yaml
from prometheus_client import CollectorRegistry

from tenure.clusters.kubernetes.install.crds import RESOURCES, spec_record
from tenure.live.metrics import LiveMetrics
from tenure.live.tables import EVENTS, METRICS
from tenure.model.documents.files import write_atomically
from tenure.model.fields import containers, kinds
from tenure.model.fields.descriptions import described_as
from tenure.model.fields.field_paths import FieldPathKind
from tenure.model.fields.kinds import INT32, ValueKind
from tenure.model.fields.records import RecordField, RecordKind, record_of
from tenure.model.settings import PatienceRule, Settings

TARGET: Final = Path(__file__).with_name("configuration.md")

ON_PODS: Final = {
    "tenure.dev/queue": (
        "label: the leaf queue; `kai.scheduler/queue` and `queue` are read as well; on a namespace: the queue of what "
        "names none"
    ),
    "tenure.dev/pod-group": "label: the workload that pods of one namespace form together",
    "tenure.dev/sub-group": "label: the subgroup of its PodGroup that the pod belongs to",
    "tenure.dev/node-pool": "label, on nodes and pods: the pool; without it `default`",
    "tenure.dev/order": "whole number: pods with lower ones start first and leave last",
    "tenure.dev/role": "`originator`: an owner or driver whose end would end the tasks that it started; evicted last",
    "tenure.dev/min-member": "on the pod or its owner: how many pods are the workload's core",
    "tenure.dev/preemptible": "`true` or `false`: whether it may be evicted, whatever its priority",
    "tenure.dev/gpu-fraction": "part of a GPU, such as `500m`, instead of whole ones",
    "tenure.dev/gpu-memory": "part of a GPU by its memory, such as `20Gi`",
    "tenure.dev/gpu-devices": "of how many GPUs it wants that part",
    "gpu-fraction": "KAI's name for the first of these; `gpu-memory` (in MiB) and `gpu-fraction-num-devices` as well",
    "tenure.dev/expected-runtime": "how long the workload expects to run; after that it may be requeued; `0`: never",
    "tenure.dev/requeue-delay": "how long the workload is not requeued again",
    "tenure.dev/checkpoint-interval": "how often the workload makes a checkpoint",
    "tenure.dev/restart-overhead": "how long the workload needs to continue from a checkpoint",
    "tenure.dev/last-checkpoint-time": (
        "written by the workload: the time of its last checkpoint; in a gang the oldest counts"
    ),
    "tenure.dev/gpu-usage": (
        "written by a program that measures it: how many of its GPUs the pod really uses, such as `50m`"
    ),
    "tenure.dev/gpu-usage-since": "written with that: since when the pod has not used more",
    "tenure.dev/eviction-ack": "written by the workload: it acknowledges the notice and may be evicted now",
    "yunikorn.apache.org/allow-preemption": "`false`, on the pod or its PriorityClass: the pod is evicted last",
    "tenure.dev/drain": "`true`, on a node: the rescheduler drains it",
    "tenure.dev/tenant": "`true`, on a namespace: its PodDisruptionBudgets have to allow an eviction at some time",
    "tenure.dev/only": "`true`, on a namespace: all of its pods have to be Tenure's",
    "tenure.dev/reads-metrics": "`true`, on a namespace: metrics may be read from there",
}
"""What users write, and means something to Tenure."""

WRITTEN: Final = {
    "tenure.dev/last-start-timestamp": "when the workload's core was last bound: minimum runtime counts from here",
    "tenure.dev/requeue-not-before": "until when the workload is not requeued again",
    "tenure.dev/stale-since": "since when the gang runs with less than its core",
    "tenure.dev/devices": "the numbers of the GPUs that the pod shares",
    "tenure.dev/visible-devices": "the names of the GPUs of which the pod has parts, for its containers",
    "tenure.dev/gpu-reservation": "label of a pod that holds a shared GPU: the device's number on its node",
    "tenure.dev/nomination": "since when, and to which GPUs of `nominatedNodeName`, the pod is nominated",
    "tenure.dev/eviction": "why the pod was evicted, for which workload, and at what cost",
    "tenure.dev/eviction-notice": "the pod will be evicted: deadline, cause, and for which workload",
    "tenure.dev/scheduled": "condition of a pod's status: what the scheduler decided about the pod",
    "tenure.dev/pause": "on the Lease of a pool: until when evictions are paused, and why",
    "tenure.dev/eviction-log": "label of the ConfigMaps with the eviction log",
    "tenure.dev/hole": "taint of a node that is kept free for a pod of another scheduler, and that pod's toleration",
    "tenure.dev/kept-off": (
        "nodes that the admission policy keeps a pod off, because the pod that it replaces was moved off them"
    ),
    "tenure.dev/seen": (
        "in the answer to a dry run on such a ConfigMap: the version of it that the admission policy has read"
    ),
    "tenure.dev/moves": "label of the ConfigMaps that the admission policy reads",
}
"""What Tenure writes."""

_HEAD = """\
# Configuration

This page lists every setting, field, label, annotation, event and metric. It is made of the code that reads them
(`python docs/make_configuration.py`), and a test compares the two. [concepts.md](concepts.md) explains the terms,
[operations.md](operations.md) how to install and run Tenure.

Durations are Go durations with `d` and `w` (`30s`, `1h30m`, `2d`); a number without a unit is an error, except `0`.
Amounts are Kubernetes quantities (`500m`, `1.5Gi`). Times are RFC 3339. A share is a number between 0 and 1 or a
percentage in quotes (`90%`); in custom resources it is a percentage.
"""

_SETTINGS_HEAD = """\
## Settings of the scheduler

The same keys may be set in three places: under `scheduler:` in the ConfigMap that `tenure install` prints
(`kind: SchedulerConfig`), under `scheduler:` in a cluster file, and under `spec.scheduler` of a `NodePool`, which
applies to the nodes of that pool. `tenure validate` reports all problems of a file together; with
`--set scheduler.KEY=VALUE`
you can override a setting for `tenure plan` and `simulate`.

These are the defaults:
"""


_OBSERVABILITY_HEAD = """\
[metrics-and-events.md](metrics-and-events.md) has the metrics and events of a plan, live or in `tenure plan`. The
running scheduler has these as well. Its events are by `tenure.dev/scheduler`, on the owner of the workload's pods or
on the object concerned:
"""


def generate() -> str:
    """Give the whole page."""
    parts = [_HEAD, _SETTINGS_HEAD, _defaults(), *_settings(), *_resources(), *_names(), *_observability()]
    return "\n".join(parts).rstrip() + "\n"


def _defaults() -> str:
    written = {field.key: _default(field, Settings()) for field in record_of(Settings).fields.values()}
    text = yaml.safe_dump({"scheduler": written}, sort_keys=False, default_flow_style=None, width=110)
    return f"```yaml\n{text}```\n"


def _default(field: RecordField, owner: Any) -> Any:
    """Give the default of a setting as one would write it; null where nothing is set."""
    value = getattr(owner, field.attribute)
    if value is None:
        return None
    if isinstance(field.kind, RecordKind):
        return {inner.key: _default(inner, value) for inner in field.kind.fields.values()}
    written = field.kind.encode(value)
    return 0 if written == "0s" else written


def _settings() -> Iterator[str]:
    yield from _table(record_of(Settings), Settings())
    for path, record, owner in _below("scheduler", record_of(Settings), Settings()):
        yield f"### `{path}`\n"
        yield from _table(record, owner)
        if record.cls.__name__ == "DisruptionSettings":
            yield "A rule of `budgets`, and the spec of a `DisruptionBudget` without `name`:\n"
            yield from _table(record_of_item(record, "budgets"), None)
        if record.cls.__name__ == "WorthSettings":
            yield "A rule of `patience`, here and of a queue:\n"
            yield from _table(record_of(PatienceRule), PatienceRule())
            yield "An entry of `weights`:\n"
            yield from _table(record_of_item(record, "weights"), None)


def record_of_item(record: RecordKind, key: str) -> RecordKind:
    """Give the record of a list's items."""
    kind = record.fields[key].kind
    assert isinstance(kind, containers.ListKind)
    assert isinstance(kind.items, RecordKind)
    return kind.items


def _below(path: str, record: RecordKind, owner: Any) -> Iterator[tuple[str, RecordKind, Any]]:
    for field in record.fields.values():
        if isinstance(field.kind, RecordKind):
            value = getattr(owner, field.attribute) if owner is not None else None
            inner = value if value is not None else _empty(field.kind)
            yield f"{path}.{field.key}", field.kind, inner
            yield from _below(f"{path}.{field.key}", field.kind, inner)


def _empty(record: RecordKind) -> Any:
    return record.cls() if not record.required else None


def _table(record: RecordKind, owner: Any) -> Iterator[str]:
    sentences = described_as(record.name)
    rows = []
    for field in record.fields.values():
        default = _own_default(field) if owner is None else _written(_default(field, owner), field.kind)
        rows.append((f"`{field.key}`", value_of(field.kind), default, sentences[field.key]))
    yield _rows(("key", "value", "default", "meaning"), rows)


def _own_default(field: RecordField) -> str:
    """Give what holds where a field is left out."""
    if field.required:
        return "required"
    empty = field.default is None or field.default in ((), {})
    return "unset" if empty else _written(field.kind.encode(field.default), field.kind)


def _written(default: Any, kind: ValueKind) -> str:
    if isinstance(kind, RecordKind):
        return "" if default is not None else "unset"
    if default is None:
        return "unset"
    text = yaml.safe_dump(default, default_flow_style=True, width=10_000).strip().removesuffix("\n...").strip()
    return f"`{text}`" if len(text) <= _LONG else "see above"


_LONG = 40


def _range(kind: kinds.IntegerKind) -> str:
    if kind.high == INT32 - 1 and kind.low > -INT32:
        return f"whole number from {kind.low}"
    return "whole number" if kind.low == -INT32 else f"{kind.low} to {kind.high}"


def _record_words(record: RecordKind) -> str:
    name = record.name
    if name.endswith("Settings"):
        return "see below"
    return {
        "BudgetRule": "rules, see below",
        "PatienceRule": "rules, see below",
        "WaitingWeight": "weights, see below",
        "LabelSelector": "label selector",
        "SubGroup": "subgroups, see below",
        "PodRole": "roles, see below",
        "RoleGroup": "groups, see below",
        "EndedParts": "`each`, `named`, `count`: paths",
        "Topology": "`required`, `preferred`: node labels",
        "CheckpointSpec": "`interval`, `restartOverhead`: durations",
    }[name]


def value_of(kind: ValueKind) -> str:
    """Say in a few words what a field may hold."""
    return _WORDS[type(kind)](kind)


_WORDS: Final[dict[type[ValueKind], Callable[[Any], str]]] = {
    kinds.TextKind: lambda _: "text",
    kinds.NameKind: lambda _: "name",
    kinds.ResourceNamesKind: lambda _: "resource, or `*` at its end",
    kinds.BooleanKind: lambda _: "`true` \\| `false`",
    kinds.TimeKind: lambda _: "time",
    kinds.ShareKind: lambda _: "share",
    kinds.CountOrPercent: lambda _: "count or percentage",
    kinds.NumberKind: lambda _: "number",
    kinds.IntegerKind: _range,
    kinds.ChoiceKind: lambda kind: " \\| ".join(f"`{word}`" for word in kind.values),
    kinds.DurationKind: lambda kind: "duration" + (" above 0" if kind.positive else ", may be negative" * kind.signed),
    containers.AmountsKind: lambda _: "amounts by resource",
    FieldPathKind: lambda _: "path",
    containers.PairsKind: lambda _: "text by key",
    containers.ListKind: lambda kind: f"list of {value_of(kind.items)}",
    containers.MapKind: lambda kind: f"{value_of(kind.values)} by {value_of(kind.keys)}",
    containers.OneOrMap: lambda kind: f"{value_of(kind.one)}, or {value_of(kind.many)}",
    RecordKind: _record_words,
}


def _rows(columns: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [f"| {' | '.join(columns)} |", f"|{'---|' * len(columns)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)]) + "\n"


_PARTS = {
    "PodGroup": {"subGroups": "A subgroup"},
    "WorkloadKind": {"roles": "A role", "roleGroups": "A group of roles"},
}


def _resources() -> Iterator[str]:
    yield "## Custom resources\n"
    yield "Group `tenure.dev`, version `v1beta1`; `v1alpha1` is served as well and has the same fields."
    yield "`kubectl explain queues.tenure.dev.spec` says the same.\n"
    for resource in RESOURCES:
        scope = "namespaced" if resource.namespaced else "cluster-scoped"
        yield f"### {resource.kind}\n"
        yield f"{resource.summary} ({scope}; `kubectl get {resource.short[0]}`)\n"
        if resource.kind == "NodePool":
            yield "`spec.scheduler` holds the settings above.\n"
        elif resource.kind == "DisruptionBudget":
            yield "Its spec is a rule of `scheduler.disruption.budgets`, above, without `name`.\n"
        else:
            yield from _table(spec_record(resource.kind), None)
        for key, title in _PARTS.get(resource.kind, {}).items():
            yield f"{title}:\n"
            yield from _table(record_of_item(spec_record(resource.kind), key), None)


def _names() -> Iterator[str]:
    yield "## Labels and annotations\n"
    yield "What users write, on pods unless it says otherwise; annotations unless it says label:\n"
    yield _rows(("key", "meaning"), ((f"`{key}`", text) for key, text in ON_PODS.items()))
    yield "What Tenure writes, on pods unless it says otherwise:\n"
    yield _rows(("key", "meaning"), ((f"`{key}`", text) for key, text in WRITTEN.items()))


def _observability() -> Iterator[str]:
    yield "## Events and metrics\n"
    yield _OBSERVABILITY_HEAD
    yield _rows(("reason", "meaning"), ((f"`{key}`", text) for key, text in sorted(EVENTS.items())))
    yield "Metrics are at `/metrics`; labels have few values, and never names of workloads:\n"
    yield _rows(("metric", "type", "labels", "meaning"), sorted(_metrics()))


def _metrics() -> Iterator[tuple[str, ...]]:
    made = LiveMetrics()
    labels = {metric._name: metric._labelnames for metric in _collectors(made.registry)}  # noqa: SLF001
    for metric in made.registry.collect():
        name = f"{metric.name}_total" if metric.type == "counter" else metric.name
        if name in METRICS:
            yield f"`{name}`", metric.type, ", ".join(f"`{key}`" for key in labels[metric.name]), METRICS[name]


def _collectors(registry: CollectorRegistry) -> Iterable[Any]:
    return registry._collector_to_names  # noqa: SLF001  the labels of a metric without samples stand nowhere else


if __name__ == "__main__":
    write_atomically(TARGET, generate())
