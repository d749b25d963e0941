"""What was used of disruption budgets, for people and as plain data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenure.history.reading.budget_use import BudgetUse
from tenure.ledger.fullest import FullestWindow
from tenure.model.settings import BudgetRule
from tenure.model.values.duration import format_duration, format_time
from tenure.report.words import percent, resource_label

BUDGET_HEADS: Final = ("budget", "bounds", "evicted tasks", "used at most", "at")
MICRO: Final = 1_000_000
MINUTE: Final = 60 * MICRO
UNKNOWN: Final = "unknown: the history has no labels of pods"


def budget_rows(uses: Sequence[BudgetUse]) -> list[list[str]]:
    """Give a line for each budget, as `BUDGET_HEADS` names its cells."""
    several = len({use.origin for use in uses}) > 1
    return [_row(use, several=several) for use in uses]


def _row(use: BudgetUse, *, several: bool) -> list[str]:
    name = f"{use.rule.name} ({use.origin.pool or use.origin.cluster})" if several else use.rule.name
    bounds = "; ".join(_bounds(use.rule))
    if not use.is_known:
        return [name, bounds, "", UNKNOWN, ""]
    if use.fullest is None:
        return [name, bounds, f"{use.evictions:,}", "", ""]
    return [name, bounds, f"{use.evictions:,}", _used(use.rule, use.fullest), _when(use.fullest)]


def _bounds(rule: BudgetRule) -> list[str]:
    each = " of each workload" if rule.each is not None else ""
    span = f" in {format_duration(rule.per)}" if rule.per is not None else " while it is in force"
    found = []
    if rule.max_evictions is not None:
        found.append(f"{rule.max_evictions:,} eviction{'s' * (rule.max_evictions != 1)}{each}{span}")
    for name, time in sorted((rule.max_lost or {}).items()):
        found.append(f"{format_duration(time)} of {resource_label(name)} lost{each}{span}")
    if rule.max_unavailable is not None:
        found.append(f"at most {rule.max_unavailable} down at a time")
    if rule.min_available is not None:
        found.append(f"at least {rule.min_available} up")
    return found


def _used(rule: BudgetRule, fullest: FullestWindow) -> str:
    found = []
    if rule.max_evictions is not None:
        found.append(f"{fullest.evictions:,} of {rule.max_evictions:,}{_share(fullest.evictions, rule.max_evictions)}")
    for name, most in sorted((rule.max_lost or {}).items()):
        lost = fullest.lost.get(name, 0)
        found.append(
            f"{format_duration(lost - lost % MINUTE)} of {format_duration(most)} of {resource_label(name)}"
            f"{_share(lost, most)}"
        )
    return "; ".join(found)


def _share(used: int, most: int) -> str:
    return f" ({percent(used / most)})" if most else ""


def _when(fullest: FullestWindow) -> str:
    whose = f" ({fullest.workload})" if fullest.workload is not None else ""
    return f"{format_time(fullest.at)}{whose}"


def budget_json(use: BudgetUse) -> dict[str, Any]:
    """Give the use of one budget as plain data: durations in seconds, what was lost in resource-seconds.

    ``evictions``, ``lost`` and ``fullest`` are null where the history cannot tell.
    """
    rule, fullest = use.rule, use.fullest
    limits = None if rule.max_lost is None else _seconds(rule.max_lost)
    plain: dict[str, Any] = {
        "name": rule.name, "cluster": use.origin.cluster, "pool": use.origin.pool,
        "maxEvictions": rule.max_evictions, "maxLost": limits,
        "per_s": None if rule.per is None else rule.per / MICRO, "each": rule.each,
        "evictions": use.evictions if use.is_known else None,
        "lost": _seconds(use.lost) if use.is_known else None,
        "fullest": None,
    }  # fmt: skip
    if fullest is not None:
        plain["fullest"] = {
            "at": format_time(fullest.at), "evictions": fullest.evictions, "lost": _seconds(fullest.lost),
            "workload": fullest.workload, "used": round(fullest.used, 4),
        }  # fmt: skip
    return plain


def _seconds(times: dict[str, int]) -> dict[str, float]:
    return {name: time / MICRO for name, time in sorted(times.items())}
