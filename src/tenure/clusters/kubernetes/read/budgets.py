"""PodDisruptionBudgets, Tenure's own budgets, and the settings of a node pool."""

from __future__ import annotations

from typing import Any

from tenure.clusters.kubernetes import api
from tenure.clusters.kubernetes.read.values import Complain, read, without
from tenure.model.cluster import DisruptionBudget
from tenure.model.records import record_of
from tenure.model.report import BAD
from tenure.model.settings import BudgetRule, Settings

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
    return None if made is BAD else made


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
