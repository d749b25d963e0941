"""PodDisruptionBudgets, Tenure's own budgets, and the settings of a node pool."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.read.values import Complain, read, without
from tenure.model.cluster import DisruptionBudget, EvictionOutcome
from tenure.model.entries import MOST
from tenure.model.fields.containers import ListKind
from tenure.model.fields.records import record_of
from tenure.model.settings import BudgetRule, Settings
from tenure.model.values.report import BAD

PDB, RULE, POOL = "PodDisruptionBudget", "DisruptionBudget", "NodePool"


def budget_of(item: api.ApiObject, complain: Complain) -> DisruptionBudget | None:
    """Give a PodDisruptionBudget; None where it cannot be read, or bounds nothing."""
    spec: dict[str, Any] = item.spec if isinstance(item.spec, dict) else {}
    plain = {key: spec[key] for key in ("minAvailable", "maxUnavailable") if spec.get(key) is not None}
    if spec.get("selector") is None or not plain:
        return None  # a PodDisruptionBudget without a selector selects nothing
    plain |= {"name": item.metadata.name, "namespace": item.metadata.namespace, "selector": spec["selector"]}
    made, said = read(record_of(DisruptionBudget), plain)
    for line in said:
        complain(PDB, item.metadata, line)
    return None if made is BAD else replace(made, blocked_since=blocked_since(item))


def blocked_since(item: api.ApiObject) -> int | None:
    """Give since when a PodDisruptionBudget has allowed no eviction, in µs since the epoch, as Kubernetes says."""
    status = item.status if isinstance(item.status, dict) else {}
    listed = status.get("conditions")
    for condition in listed if isinstance(listed, list) else ():
        if isinstance(condition, dict) and condition.get("type") == _ALLOWED and condition.get("status") == "False":
            at = condition.get("lastTransitionTime")
            return micros(at) if isinstance(at, str) else None
    return None


def allows_nothing(item: api.ApiObject) -> bool:
    """Whether Kubernetes says of a PodDisruptionBudget that it could allow nothing, even if all its pods were well."""
    status = item.status if isinstance(item.status, dict) else {}
    wanted, there = status.get("desiredHealthy"), status.get("expectedPods")
    return isinstance(wanted, int) and isinstance(there, int) and wanted >= there > 0


_ALLOWED = "DisruptionAllowed"
"""Condition by which Kubernetes says whether a PodDisruptionBudget allows an eviction now."""


def rule_of(item: api.ApiObject, complain: Complain) -> BudgetRule | None:
    """Give the rule of one of Tenure's own budgets."""
    plain = {**without(item.spec, "name"), "name": item.metadata.name}
    made, said = read(record_of(BudgetRule), plain)
    for line in said:
        complain(RULE, item.metadata, line)
    return None if made is BAD else made


def settings_of(item: api.ApiObject, complain: Complain) -> Settings | None:
    """Give the settings of a node pool; None where they cannot be read."""
    spec: dict[str, Any] = item.spec if isinstance(item.spec, dict) else {}
    made, said = read(record_of(Settings), spec.get("scheduler") or {}, "spec.scheduler")
    for line in said:
        complain(POOL, item.metadata, line)
    return None if made is BAD else made


def outcomes_of(item: api.ApiObject, complain: Complain) -> tuple[EvictionOutcome, ...]:
    """Give what evictions came to of late, as the scheduler wrote it on a node pool; none where it cannot be read."""
    status = item.status if isinstance(item.status, dict) else {}
    made, said = read(
        ListKind(record_of(EvictionOutcome), most=MOST["outcomes"]), status.get("outcomes") or [], "status"
    )
    for line in said:
        complain(POOL, item.metadata, line)
    return () if made is BAD else tuple(made)
