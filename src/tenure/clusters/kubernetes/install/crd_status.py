"""What the scheduler writes into the status of its own objects."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes.install.structural import MAX_KEYS
from tenure.clusters.kubernetes.pool_status import PARTS
from tenure.model.fields.kinds import Schema

_TIME: Final[Schema] = {"type": "string", "format": "date-time"}
_COUNT: Final[Schema] = {"type": "integer", "format": "int64", "minimum": 0}
_TEXT: Final[Schema] = {"type": "string"}
_AMOUNTS: Final[Schema] = {
    "type": "object",
    "maxProperties": MAX_KEYS,
    "additionalProperties": {"x-kubernetes-int-or-string": True},
}
_TIMES: Final[Schema] = {"type": "object", "maxProperties": MAX_KEYS, "additionalProperties": {"type": "string"}}
_CONDITIONS: Final[Schema] = {
    "type": "array",
    "description": "Whether the object could be read (Accepted), and what else is to be said of it.",
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["type"],
    "items": {
        "type": "object",
        "required": ["type", "status", "lastTransitionTime", "reason", "message"],
        "properties": {
            "type": {"type": "string", "maxLength": 316},
            "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
            "observedGeneration": _COUNT,
            "lastTransitionTime": _TIME,
            "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
            "message": {"type": "string", "maxLength": 32768},
        },
    },
}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def _status(**properties: Schema) -> Schema:
    generation = _said(_COUNT, "The generation of the spec that this status is about.")
    made: dict[str, Any] = {"conditions": _CONDITIONS, "observedGeneration": generation, **properties}
    return {"type": "object", "description": "What the scheduler says of it.", "properties": made}


def _of_each_pool(**properties: Schema) -> Schema:
    """Give a status of which every node pool has a part: that of the pool ``default`` is not below a name."""
    parts: dict[str, Any] = {
        "type": "object",
        "maxProperties": MAX_KEYS,
        "description": "The same for each node pool but the one called default, whose part is the rest.",
        "additionalProperties": {"type": "object", "properties": properties},
    }
    return _status(**properties, **{PARTS: parts})


STATUS: Final[dict[str, Schema]] = {
    "Queue": _of_each_pool(
        quotaPreemption={
            "type": "object",
            "description": "The armed deadline of quota preemption, and the maximum it belongs to.",
            "properties": {"armedAt": _TIME, "delay": _TEXT, "deadline": _TIME, "max": _AMOUNTS},
        },
        usage={
            "type": "object",
            "description": "Decayed resource-seconds by resource, for shares that look back, as they were at usageAt.",
            "maxProperties": MAX_KEYS,
            "additionalProperties": {"type": "number"},
        },
        usageAt=_TIME,
        allocated=_said(_AMOUNTS, "What its workloads hold."),
        fairShare=_said(_AMOUNTS, "What it is due now."),
        runningWorkloads=_COUNT,
        pendingWorkloads=_COUNT,
    ),
    "PodGroup": _status(
        phase=_said(_TEXT, "Pending, Running or Ended."),
        running=_said(_COUNT, "Pods that are bound or running."),
        pending=_said(_COUNT, "Pods that wait."),
        startedAt=_said(_TIME, "When its core was last fully allocated."),
        lastEvictedAt=_TIME,
        staleSince=_said(_TIME, "Since when it runs with less than its core."),
        requeueNotBefore=_said(_TIME, "Until when it is not requeued again."),
    ),
    "DisruptionBudget": _of_each_pool(
        inForce={"type": "boolean", "description": "Whether it bounds anything now: its schedule's window is open."},
        evictions=_said(_COUNT, "Evictions that were charged to it in the current window."),
        allowed=_said(_COUNT, "Evictions that it allows beside them now; absent where it bounds no number of them."),
        down=_said(_COUNT, "Pods that are down, of those of which only so many may be."),
        lost=_said(_TIMES, "What was destroyed in the current window, as time by resource."),
        nextAt=_said(_TIME, "When it allows more by itself, where it allows none now."),
    ),
    "WorkloadKind": _status(),
    "NodePool": _status(
        leader=_said(_TEXT, "The replica that schedules these nodes."),
        nodes=_COUNT,
        pausedUntil=_said(_TIME, "Until when evictions are paused."),
        outcomes={
            "type": "array",
            "maxItems": 1000,
            "description": "What evictions lost and gained of late, by cause and time, in weighted resource-seconds.",
            "items": {
                "type": "object",
                "required": ["at", "cause"],
                "properties": {"at": _TIME, "cause": _TEXT, "lost": _COUNT, "gained": _COUNT},
            },
        },
        history=_said(_TEXT, "Written, or what keeps the history from being written; absent where none is kept."),
    ),
}
