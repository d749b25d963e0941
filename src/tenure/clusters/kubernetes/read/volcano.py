"""Volcano's queues as queues of the tree; its own queue ``root`` stands above all of them, and is none here.

What is deserved, else what is guaranteed, is lent here and taken back when it is wanted: no room is kept idle.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain, read
from tenure.model.fields.records import record_of
from tenure.model.queue import Queue
from tenure.model.values.report import BAD

WATCH: Final = "volcano queues"
"""The name of the watch of Volcano's queues."""

PATHS: Final = ("/apis/scheduling.volcano.sh/v1beta1",)
ROOT: Final = "root"
_KIND: Final = "Volcano Queue"


def volcano_queue(item: api.ApiObject, complain: Complain) -> Queue | None:
    """Give the queue that an object describes; None where it cannot be read, and for the root."""
    if item.metadata.name == ROOT:
        return None
    spec: dict[str, Any] = item.spec if isinstance(item.spec, dict) else {}
    reserved = spec.get("guarantee")
    least = spec.get("deserved") or (reserved.get("resource") if isinstance(reserved, dict) else None)
    plain = {
        "name": item.metadata.name,
        "guaranteed": least,
        "max": spec.get("capability"),
        "weight": spec.get("weight"),
        "priority": spec.get("priority"),
        "parent": None if spec.get("parent") == ROOT else spec.get("parent"),
        "preemptionPolicy": "disabled" if spec.get("reclaimable") is False else None,
    }
    made, problems = read(record_of(Queue), {key: value for key, value in plain.items() if value})
    for line in problems:
        complain(_KIND, item.metadata, line)
    return None if made is BAD else made
