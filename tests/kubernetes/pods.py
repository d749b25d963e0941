"""Objects as an API server would give them, without one."""

from __future__ import annotations

from zlib import crc32

import msgspec

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.clusters.kubernetes.seals import Seal, condition_of

NOW = 1_795_168_800_000_000
"""2026-11-20T10:00:00Z"""


class Nowhere:
    """Stands where a client is that is never asked."""


def pod(name, *, labels=None, annotations=None, owner=None, node=None, phase=None, namespace="default", **spec):
    """Give a pod that asks for a core; ``owner`` is kind, name and perhaps API version of its controller.

    As an API server does, it gives pods that differ in anything different versions.
    """
    meta = {
        "name": name, "namespace": namespace, "uid": f"uid-{name}",
        "creationTimestamp": "2026-11-20T09:00:00Z", "labels": labels or {}, "annotations": annotations or {},
    }  # fmt: skip
    for key in ("deletionTimestamp", "deletionGracePeriodSeconds"):
        if key in spec:
            meta[key] = spec.pop(key)
    if owner is not None:
        meta["ownerReferences"] = [owned_by(*owner)]
    status = {"phase": phase or ("Running" if node else "Pending"), **spec.pop("status", {})}
    container = {"name": "main", "resources": {"requests": {"cpu": "1"}}}
    body = {"schedulerName": "tenure", "containers": [container], "priority": 0, **spec}
    if node:
        body["nodeName"] = node
    plain = {"metadata": meta, "spec": body, "status": status}
    version = str(crc32(msgspec.json.encode(plain)))
    return decoded({**plain, "metadata": {**meta, "resourceVersion": version}}, api.ApiPod)


def owned_by(kind, name, version="v1"):
    """Give the reference to a controller."""
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}


def owner(name, *above, **body):
    """Give an owner of pods, in the namespace of all tests; ``above`` is its own controller, as of a pod."""
    references = {"ownerReferences": [owned_by(*above)]} if above else {}
    return thing(name, namespace="default", metadata={**references, **body.pop("metadata", {})}, **body)


def sealed(*conditions, **fields):
    """Give the conditions of a pod with what the scheduler recorded on it."""
    return {"conditions": [condition_of(Seal(**fields), NOW), *conditions]}


def node(name, cpu="8", *, labels=None, **amounts):
    """Give a node that is ready."""
    status = {
        "allocatable": {"cpu": cpu, "pods": "110", **amounts},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    return decoded({"metadata": {"name": name, "labels": labels or {}}, "status": status}, api.ApiNode)


def thing(name, *, namespace="", kind=api.ApiObject, **body):
    """Give an object of another kind."""
    meta = {"name": name, "namespace": namespace, "uid": f"uid-{name}", **body.pop("metadata", {})}
    return decoded({"metadata": meta, **body}, kind)


def decoded(plain, kind):
    return msgspec.json.decode(msgspec.json.encode(plain), type=kind)


def observed(*items, now=NOW, settings=None, pool="default", **objects):
    """Give what is observed of pods and nodes, and of other objects by the name of their watch."""
    return watching(*items, settings=settings, pool=pool, **objects).observe(now)


def watching(*items, settings=None, pool="default", schedulers=(), **objects):
    """Give an observer of these objects."""
    informers = InformerCache(Nowhere(), Options(pool=pool, schedulers=frozenset(schedulers)))
    for item in items:
        (informers.nodes if isinstance(item, api.ApiNode) else informers.pods).put(item)
    for name, listed in objects.items():
        for item in listed:
            informers._objects(name.replace("_", " ")).put(item)
    return Observer(informers, settings)
