"""The values of the chart: their defaults, what they mean and what they may be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import yaml

from tenure.clusters.kubernetes.install.console import POOL as CONSOLE_POOL
from tenure.clusters.kubernetes.install.installation import DEFAULT_POOL, POSTGRESQL_PORT, Installation
from tenure.clusters.kubernetes.install.rbac import NAME
from tenure.model.fields.descriptions import add_descriptions
from tenure.model.fields.kinds import Definitions, Schema
from tenure.model.fields.records import record_of
from tenure.model.settings import Settings

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_TEXT: Final[Schema] = {"type": "string"}
_FLAG: Final[Schema] = {"type": "boolean"}
_MAPPING: Final[Schema] = {"type": "object"}
_TEXTS: Final[Schema] = {"type": "object", "additionalProperties": _TEXT}
_AMOUNTS: Final[Schema] = {"type": "object", "additionalProperties": {"type": ["string", "number"]}}
_RESOURCES: Final[Schema] = {
    "type": "object",
    "properties": {"requests": _AMOUNTS, "limits": _AMOUNTS, "claims": {"type": "array"}},
    "additionalProperties": False,
}
_NAMED: Final[Schema] = {"type": "object", "required": ["name"], "properties": {"name": {"type": "string"}}}
_VARIABLES: Final[Schema] = {"type": "array", "items": _NAMED}
_SECRETS: Final[Schema] = {"type": "array", "items": {**_NAMED, "additionalProperties": False}}
_TOLERATIONS: Final[Schema] = {
    "type": "array",
    "items": {
        "type": "object",
        "properties": {
            "key": _TEXT, "operator": _TEXT, "value": _TEXT, "effect": _TEXT, "tolerationSeconds": {"type": "integer"},
        },
        "additionalProperties": False,
    },
}  # fmt: skip
_NAME: Final[Schema] = {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$", "maxLength": 253}
_OPTIONAL_NAME: Final[Schema] = {"anyOf": [{"const": ""}, _NAME]}
_NAMES: Final[Schema] = {"type": "array", "items": _NAME, "uniqueItems": True}
_SHOWN: Final = 40
"""The longest default that is shown in the table."""

_PLAIN: Final = Installation(image="")


@dataclass(frozen=True)
class ChartValue:
    """One value of the chart, by its path."""

    path: str
    default: Any
    schema: Schema
    description: str


def _switch(path: str, description: str, *, on: bool) -> ChartValue:
    return ChartValue(path, on, _FLAG, description)


def _of_pods(of: str, options: Any) -> Iterator[ChartValue]:
    """Give the values that say where pods run and what they may use."""
    for name, default, schema, description in (
        ("resources", options.resources, _RESOURCES, "Requests and limits of the container."),
        ("podSecurityContext", options.pod_security, _MAPPING, "Security context of the pod."),
        ("securityContext", options.container_security, _MAPPING, "Security context of the container."),
        ("podAnnotations", {}, _TEXTS, "Annotations of the pods."),
        ("podLabels", {}, _TEXTS, "Labels of the pods, beside their own."),
        ("nodeSelector", {}, _TEXTS, "Labels of the nodes that the pods may run on."),
        ("tolerations", [], _TOLERATIONS, "Taints that the pods tolerate."),
        ("extraEnv", [], _VARIABLES, "Further environment variables."),
        ("extraArgs", [], {"type": "array", "items": _TEXT}, "Further arguments of the command."),
    ):
        yield ChartValue(f"{of}{name}", default, schema, description)


VALUES: Final = (
    ChartValue("image.repository", NAME, {"type": "string", "minLength": 1}, "The image, without its tag."),
    ChartValue("image.tag", "", _TEXT, "Its tag; by default the version of the chart's application."),
    ChartValue(
        "image.digest", "", {"type": "string", "pattern": "^(sha256:[0-9a-f]{64})?$"}, "Its digest, before any tag."
    ),
    ChartValue(
        "image.pullPolicy", "IfNotPresent", {"enum": ["Always", "IfNotPresent", "Never"]}, "When it is pulled."
    ),
    ChartValue("image.pullSecrets", [], _SECRETS, "Secrets with credentials for its registry, as - name: NAME."),
    ChartValue(
        "replicas", _PLAIN.replicas, {"type": "integer", "minimum": 1, "maximum": 20},
        "Replicas, of which one leads. From 2 on they have a PodDisruptionBudget and no two share a node.",
    ),
    ChartValue(
        "pool", DEFAULT_POOL,
        {"type": "string", "pattern": "^[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?$", "not": {"const": CONSOLE_POOL}},
        "The node pool that it schedules.",
    ),
    _switch("shared", "Install what all node pools share; false in the releases of further pools.", on=True),
    _switch("readOnly", "Decide and record, but change nothing: rights to read and watch only.", on=False),
    ChartValue("scheduler", {}, {"$ref": "#/$defs/Settings"}, "Settings, as under scheduler: of a SchedulerConfig."),
    ChartValue("schedulerNames", [], _NAMES, "Names of schedulers whose pods count as Tenure's as well."),
    _switch("shareGpus", "Hold GPUs of which parts are given out, so that containers are told theirs.", on=False),
    _switch("kueueQueues", "Read Kueue's queues, where there are no others.", on=False),
    ChartValue(
        "prometheus", "", {"type": "string", "pattern": "^(https?://[^/]+.*)?$"},
        "The address of a Prometheus, to be asked what pods use of their GPUs, and nodes of their CPU.",
    ),
    ChartValue("yunikorn.namespace", "yunikorn", _NAME, "Namespace of YuniKorn's ConfigMap."),
    ChartValue("yunikorn.configMap", "", _OPTIONAL_NAME, "YuniKorn's ConfigMap from which queues are read."),
    _switch("crds.install", "Install and upgrade the definitions of the custom resources.", on=True),
    _switch("crds.keep", "Keep them, and so all queues, when the release is uninstalled.", on=True),
    _switch("namespace.create", "Install the namespace, held to restricted pods; else it has to be there.", on=False),
    _switch("priorityClass.create", "Install a PriorityClass for Tenure's own pods.", on=True),
    ChartValue("priorityClass.name", "system-cluster-critical", _NAME, "The one to use where none is installed."),
    _switch("networkPolicy.enabled", "Restrict connections to the scheduler and from it.", on=True),
    _switch("serviceMonitor.enabled", "A Service and a ServiceMonitor for the Prometheus operator.", on=False),
    ChartValue("history.secret.name", "", _OPTIONAL_NAME, "A Secret with the address of a PostgreSQL history."),
    ChartValue("history.secret.key", "url", {"type": "string", "minLength": 1}, "The key of it."),
    ChartValue(
        "history.secret.port", POSTGRESQL_PORT, {"type": "integer", "minimum": 1, "maximum": 65_535},
        "The server's port, for the network policy.",
    ),
    _switch("history.volume.enabled", "A history in SQLite on a volume; takes replicas: 1.", on=False),
    ChartValue(
        "history.volume.size", "10Gi",
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?[KMGT]i?$", "not": {"pattern": r"^[0.]+[KMGT]"}},
        "The size of it.",
    ),
    ChartValue("history.volume.storageClass", "", _OPTIONAL_NAME, "Its storage class; by default the cluster's."),
    *_of_pods("", _PLAIN.pod),
    _switch("console.enabled", "A console: a Deployment of its own, which may only read.", on=False),
    ChartValue("console.hosts", [], _NAMES, "Names under which browsers ask for it, such as an Ingress's."),
    *_of_pods("console.", _PLAIN.console_pod),
)  # fmt: skip


def as_yaml() -> str:
    """Write ``values.yaml`` with what each value means above it."""
    lines = ["# The values of the chart. values.schema.json says what each may be."]
    open_keys: list[str] = []
    for value in _grouped():
        *parents, key = value.path.split(".")
        common = 0
        while common < min(len(parents), len(open_keys)) and parents[common] == open_keys[common]:
            common += 1
        if common == 0:
            lines.append("")
        lines += [f"{'  ' * depth}{parents[depth]}:" for depth in range(common, len(parents))]
        open_keys = parents
        indent = "  " * len(parents)
        lines.append(f"{indent}# {value.description}")
        if isinstance(value.default, dict) and value.default:
            text = yaml.safe_dump({key: value.default}, sort_keys=False)
        else:
            text = f"{key}: {json.dumps(value.default)}"
        lines += [f"{indent}{line}" for line in text.splitlines()]
    return "\n".join(lines) + "\n"


def _grouped() -> list[ChartValue]:
    """Give the values with those under one key beside each other."""
    order: dict[str, int] = {}
    for value in VALUES:
        order.setdefault(value.path.partition(".")[0], len(order))
    return sorted(VALUES, key=lambda value: order[value.path.partition(".")[0]])


def as_schema() -> Schema:
    """Give ``values.schema.json``: a misspelt or ill-typed value is refused before anything is sent."""
    definitions: Definitions = {}
    record_of(Settings).schema(definitions)
    root: Schema = {"type": "object", "additionalProperties": False, "properties": {}}
    for value in VALUES:
        node = root
        *parents, key = value.path.split(".")
        for parent in parents:
            empty: Schema = {"type": "object", "additionalProperties": False, "properties": {}}
            node = node["properties"].setdefault(parent, empty)
        node["properties"][key] = {**value.schema, "description": value.description}
    root["properties"]["global"] = {"type": "object", "description": "What charts share of which this one is a part."}
    volume = {"properties": {"history": {"properties": {"volume": {"properties": {"enabled": {"const": True}}}}}}}
    alone = {
        "properties": {
            "replicas": {"const": 1},
            "history": {"properties": {"secret": {"properties": {"name": {"const": ""}}}}},
        }
    }
    return {
        "$schema": DIALECT,
        "title": "Values of Tenure's chart",
        **root,
        "if": volume,
        "then": alone,
        "$defs": add_descriptions(definitions),
    }


def as_table() -> str:
    """Give the values as a table for the chart's README."""
    lines = ["| value | default | meaning |", "|---|---|---|"]
    for value in _grouped():
        default = yaml.safe_dump(value.default, default_flow_style=True, width=10_000).removesuffix("...\n").strip()
        shown = f"`{default}`" if len(default) < _SHOWN else "see values.yaml"
        lines.append(f"| `{value.path}` | {shown} | {value.description} |")
    return "\n".join(lines) + "\n"
