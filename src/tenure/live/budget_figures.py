"""Figures of disruption budgets: what is used of each, and when it allows more."""

from __future__ import annotations

from typing import Any

from tenure.engine.snapshot import session_of
from tenure.ledger.entries import RuleAccount
from tenure.model.cluster import Cluster
from tenure.model.values.duration import format_duration, format_time
from tenure.shields.budget import BudgetShield

Status = dict[str, Any]


def budget_figures(cluster: Cluster) -> dict[str, Status]:
    """Give by rule what it has to say now; null for what it does not bound."""
    rules = cluster.settings.disruption.budgets
    if not rules:
        return {}
    session, budgets = session_of(cluster), BudgetShield()
    budgets.begin(session)
    accounts = (rule.account(cluster.now) for rule in budgets.ledger.rules[: len(rules)])
    return {rule.name: _status(account) for rule, account in zip(rules, accounts, strict=True)}


def _status(account: RuleAccount) -> Status:
    lost = {name: format_duration(time // _SECOND * _SECOND) for name, time in account.lost.items()}
    return {
        "inForce": account.in_force,
        "evictions": account.evictions,
        "allowed": account.allowed,
        "down": account.down,
        "lost": lost or None,
        "nextAt": None if account.next_at is None else format_time(account.next_at),
    }


_SECOND = 1_000_000
