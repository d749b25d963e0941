"""Certificates in the units in which the steps of a plan are priced."""

from __future__ import annotations

from dataclasses import replace

from tenure.engine.state.cost import MICRO
from tenure.model.values.readable import weighted_hours
from tenure.rescheduler.milp.cover_bounds import NEVER
from tenure.rescheduler.problem.definition import Certificate, MoveAnswer


def in_plan(answer: MoveAnswer) -> Certificate:
    """Give a certificate in weighted resource-seconds, as the steps of the plan are.

    Where prices were rounded down, or up from nothing, the bound is that much lower.
    """
    certificate, prices, unit = answer.certificate, answer.prices, answer.unit
    if not prices:
        return certificate
    moved = None if certificate.cost is None else sum(prices[m.task] for m in answer.moves)
    bound: float = certificate.lower_bound
    if bound < NEVER:
        lowest = max(0, certificate.lower_bound - sum(p < unit for p in prices)) * unit
        bound = (lowest if moved is None else min(lowest, moved)) / MICRO
    if moved is None:
        return replace(certificate, lower_bound=bound)
    reason = certificate.reason
    if bound < moved / MICRO and certificate.lower_bound == certificate.cost:
        reason += f"; but for the rounding of prices to {weighted_hours(unit / MICRO)}"
    return replace(certificate, cost=moved / MICRO, lower_bound=bound, reason=reason)
