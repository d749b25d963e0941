"""Definitions of the kinds of frameworks whose Go modules are not read: the fields of their specs, and no others."""

from __future__ import annotations

TEMPLATE = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""A template of pods, or the spec of one: what is made of it is checked when it is made."""

AMOUNTS = {
    "type": "object",
    "additionalProperties": {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True},
}
COUNTS = {"type": "object", "additionalProperties": {"type": "integer", "format": "int32"}}
TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
LABELS = {"matchLabels": TEXTS, "matchExpressions": [{"key": str, "operator": str, "values": [str]}]}

_PLACE = {"name": str, "namespace": str}
_PACKED = {"packConstraint": {"required": str, "preferred": str}}
_CLIQUE = {
    "roleName": str, "podSpec": TEMPLATE, "replicas": int, "minAvailable": int, "startsAfter": [str],
}  # fmt: skip
_DOMAIN = {"topologyName": str, "pack": {"required": str, "preferred": str}}
_LEVELS = {"topology": str, "requiredTopologyLevel": str, "preferredTopologyLevel": str}
_TIERS = {"mode": str, "highestTierAllowed": int, "highestTierName": str}

_STEP = {"name": str, "template": str}

FIELDS = {
    ("kubeflow.org", "v1", "Notebook", "notebooks"): {"template": {"spec": TEMPLATE}},
    ("argoproj.io", "v1alpha1", "Workflow", "workflows"): {
        "entrypoint": str, "schedulerName": str, "serviceAccountName": str, "parallelism": int,
        "podMetadata": {"labels": TEXTS, "annotations": TEXTS},
        "templates": [
            {
                "name": str, "container": TEMPLATE, "schedulerName": str,
                "dag": {"tasks": [{**_STEP, "dependencies": [str]}]},
            }
        ],
    },
    ("grove.io", "v1alpha1", "PodCliqueSet", "podcliquesets"): {
        "replicas": int,
        "template": {
            "cliques": [
                {"name": str, "labels": TEXTS, "annotations": TEXTS, "topologyConstraint": _DOMAIN, "spec": _CLIQUE}
            ],
            "cliqueStartupType": str,
            "priorityClassName": str,
            "topologyConstraint": _DOMAIN,
            "terminationDelay": str,
        },
    },
    ("grove.io", "v1alpha1", "PodClique", "podcliques"): _CLIQUE,
    ("scheduler.grove.io", "v1alpha1", "PodGang", "podgangs"): {
        "podgroups": [{"name": str, "podReferences": [_PLACE], "minReplicas": int, "topologyConstraint": _PACKED}],
        "topologyConstraint": _PACKED,
        "topologyConstraintGroupConfigs": [{"name": str, "podGroupNames": [str], "topologyConstraint": _PACKED}],
        "priorityClassName": str,
        "reuseReservationRef": _PLACE,
    },
    ("scheduling.run.ai", "v2alpha2", "PodGroup", "podgroups"): {
        "minMember": int, "minSubGroup": int, "queue": str, "priorityClassName": str, "preemptibility": str,
        "markUnschedulable": bool, "schedulingBackoff": int, "topologyConstraint": _LEVELS,
        "subGroups": [
            {"name": str, "minMember": int, "minSubGroup": int, "parent": str, "topologyConstraint": _LEVELS}
        ],
    },
    ("batch.volcano.sh", "v1alpha1", "Job", "jobs"): {
        "schedulerName": str, "minAvailable": int, "queue": str, "maxRetry": int, "priorityClassName": str,
        "minSuccess": int, "ttlSecondsAfterFinished": int, "networkTopology": _TIERS,
        "tasks": [
            {
                "name": str, "replicas": int, "minAvailable": int, "template": TEMPLATE, "maxRetry": int,
                "dependsOn": {"name": [str], "iteration": str},
                "partitionPolicy": {
                    "totalPartitions": int, "partitionSize": int, "minPartitions": int, "networkTopology": _TIERS,
                },
            }
        ],
    },
    ("scheduling.volcano.sh", "v1beta1", "PodGroup", "podgroups"): {
        "minMember": int, "minTaskMember": COUNTS, "queue": str, "priorityClassName": str, "minResources": AMOUNTS,
        "networkTopology": _TIERS,
        "subGroupPolicy": [
            {
                "name": str, "networkTopology": _TIERS, "subGroupSize": int, "minSubGroups": int,
                "labelSelector": LABELS, "matchLabelKeys": [str],
            }
        ],
    },
    ("scheduling.volcano.sh", "v1beta1", "Queue", "queues"): {
        "weight": int, "capability": AMOUNTS, "reclaimable": bool, "guarantee": {"resource": AMOUNTS}, "type": str,
        "parent": str, "deserved": AMOUNTS, "priority": int, "dequeueStrategy": str,
    },
    ("topology.volcano.sh", "v1alpha1", "HyperNode", "hypernodes"): {
        "tier": int, "tierName": str,
        "members": [
            {
                "type": str,
                "selector": {"exactMatch": {"name": str}, "regexMatch": {"pattern": str}, "labelMatch": LABELS},
            }
        ],
    },
}  # fmt: skip
"""The fields of the specs, by group, version, kind and plural."""

_CLUSTERWIDE = frozenset({"queues", "hypernodes"})
_TYPES = {int: "integer", str: "string", bool: "boolean"}


def schema(fields):
    """Give the schema of fields; whatever else stands there is refused where that is asked for."""
    if isinstance(fields, type):
        return {"type": _TYPES[fields]}
    if isinstance(fields, list):
        return {"type": "array", "items": schema(fields[0])}
    if fields.get("type") == "object":
        return fields
    return {"type": "object", "properties": {name: schema(inner) for name, inner in fields.items()}}


def written_definitions():
    """Give the definitions of these kinds."""
    for (group, version, kind, plural), fields in FIELDS.items():
        status = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        whole = {"type": "object", "properties": {"spec": schema(fields), "status": status}}
        versions = [{"name": version, "served": True, "storage": True, "schema": {"openAPIV3Schema": whole},
                     "subresources": {"status": {}}}]  # fmt: skip
        yield {
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": {"group": group, "scope": "Cluster" if plural in _CLUSTERWIDE else "Namespaced",
                     "names": {"kind": kind, "plural": plural}, "versions": versions},
        }  # fmt: skip
