"""Kinds of owners that were added on the cluster: ``WorkloadKind``."""

from __future__ import annotations

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain, read
from tenure.model.fields.records import record_of
from tenure.model.manifests.workload_kind import WorkloadKind
from tenure.model.values.report import BAD

WORKLOAD_KIND = "WorkloadKind"


def kind_of(item: api.ApiObject, complain: Complain) -> WorkloadKind | None:
    """Give the kind that an object describes; None where it cannot be read."""
    made, problems = read(record_of(WorkloadKind), item.spec)
    for line in problems:
        complain(WORKLOAD_KIND, item.metadata, line)
    return None if made is BAD else made
