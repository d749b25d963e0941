"""What an installation that keeps a history has besides: an address from a Secret, or a volume for a file."""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes.install.installation import HistorySecret, HistoryVolume

FOLDER: Final = "/var/lib/tenure"
FILE: Final = f"{FOLDER}/history.db"
VARIABLE: Final = "TENURE_HISTORY"
"""The environment variable from which every command takes the address of its history."""

Object = dict[str, Any]
History = HistorySecret | HistoryVolume | None


def variable(history: History) -> list[Object]:
    """Give the environment variable of a container that keeps or reads the history."""
    if history is None:
        return []
    if isinstance(history, HistoryVolume):
        return [{"name": VARIABLE, "value": FILE}]
    source = {"secretKeyRef": {"name": history.name, "key": history.key}}
    return [{"name": VARIABLE, "valueFrom": source}]


def mounts(history: History) -> list[Object]:
    """Give where the volume is mounted."""
    return [{"name": "history", "mountPath": FOLDER}] if isinstance(history, HistoryVolume) else []


def volumes(history: History, claim: str) -> list[Object]:
    """Give the pod's volume."""
    if not isinstance(history, HistoryVolume):
        return []
    return [{"name": "history", "persistentVolumeClaim": {"claimName": claim}}]


def egress(history: History) -> list[Object]:
    """Give where a NetworkPolicy has to let the scheduler besides."""
    if not isinstance(history, HistorySecret):
        return []
    return [{"ports": [{"protocol": "TCP", "port": history.port}]}]


def claims(history: History, metadata: Object) -> list[Object]:
    """Give the claim of the volume."""
    if not isinstance(history, HistoryVolume):
        return []
    spec: Object = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": history.size}}}
    if history.storage_class:
        spec["storageClassName"] = history.storage_class
    return [{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}]
