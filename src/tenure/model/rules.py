"""Rules that single values obey, whatever file or option they come from."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tenure.model.fields.records import check_with
from tenure.model.selectors import Requirement, Toleration, Topology
from tenure.model.settings import BudgetRule, Objective, ReschedulerSettings, Settings
from tenure.model.values.cron import parse_cron, parse_zone

Message = tuple[str, str]


@check_with(Requirement)
def _check_requirement(requirement: Requirement) -> Iterator[Message]:
    """As the API server checks expressions of selectors."""
    operator, values = requirement.operator, requirement.values
    if operator in ("In", "NotIn") and not values:
        yield "values", f"is missing; {operator} needs at least one value"
    if operator in ("Exists", "DoesNotExist") and values:
        yield "values", f"stands beside {operator}, which takes none; leave it out"
    if operator in ("Gt", "Lt") and len(values) != 1:  # one that is no number is accepted, and matches nothing
        yield "values", f"{operator} needs exactly one whole number, in quotes"


@check_with(Toleration)
def _check_toleration(toleration: Toleration) -> Iterator[Message]:
    if not toleration.key and toleration.operator != "Exists":
        yield "operator", "an empty key tolerates every taint, and then the operator has to be Exists"
    if toleration.value and toleration.operator == "Exists":
        yield "value", "stands beside Exists, which takes none; leave it out, or use Equal"


@check_with(Topology)
def _check_topology(topology: Topology) -> Iterator[Message]:
    if not topology.required and not topology.preferred:
        yield "", "names no level; add required: LABEL or preferred: LABEL"


@check_with(ReschedulerSettings)
def _check_rescheduler(settings: ReschedulerSettings) -> Iterator[Message]:
    if "tenure" in settings.schedulers:
        yield "schedulers", "names tenure, whose pods may be moved without that; leave it out"


@check_with(Settings)
def _check_settings(settings: Settings) -> Iterator[Message]:
    if isinstance(settings.placement, dict) and not any(settings.placement.values()):
        yield "placement", "has no weight above 0; give one, such as {binpack: 1, fragmentation: 3}"
    else:
        yield from _check_objective(settings)


def _check_objective(settings: Settings) -> Iterator[Message]:
    """Improvement in the background must not undo what the scheduler's own placement does (spec 7)."""
    given, at = settings.rescheduler.background.objective, "rescheduler.background.objective"
    weights = given if isinstance(given, dict) else {given: 1.0}
    if not any(weights.values()):
        yield at, "has no weight above 0; give one, such as {placement: 1, pack: 1}"
    placement = settings.placement if isinstance(settings.placement, dict) else {settings.placement: 1.0}
    spreads = placement.get("spread", 0.0)
    packs = sum(placement.values()) - spreads
    lean: dict[Objective, bool] = {"pack": spreads > packs, "spread": packs > spreads}
    for objective, works in lean.items():
        if weights.get(objective) and works:
            instead = "spread" if objective == "pack" else "pack"
            policy = "binpack" if objective == "pack" else "spread"
            yield (
                at,
                (
                    f"{objective} works against the scheduler's placement, which {instead}s; "
                    f"use placement or {instead}, or set placement: {policy}"
                ),
            )


@check_with(BudgetRule)
def _check_budget(rule: BudgetRule) -> Iterator[Message]:
    bounds = (rule.max_evictions, rule.max_unavailable, rule.min_available, rule.max_lost)
    if all(bound is None for bound in bounds):
        yield "", "bounds nothing; add maxEvictions, maxUnavailable, minAvailable or maxLost"
    if (rule.max_lost is not None or rule.max_evictions) and rule.per is None and rule.schedule is None:
        yield "per", "is missing; say for which window the bound holds, such as 10m"
    if rule.schedule is not None and rule.duration is None:
        yield "duration", "is missing; a schedule says when it begins, this how long it lasts, such as 16h"
    if rule.schedule is None and rule.duration is not None:
        yield "duration", "stands alone; a schedule has to say when it begins, such as 0 6 * * *"
    if rule.schedule is not None:
        yield from _problem("schedule", parse_cron, rule.schedule)
    yield from _problem("timeZone", parse_zone, rule.time_zone)


def _problem(key: str, parse: Callable[[str], object], text: str) -> Iterator[Message]:
    try:
        parse(text)
    except ValueError as error:
        yield key, str(error)
