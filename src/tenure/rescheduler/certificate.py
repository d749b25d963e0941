"""Certificates in the units in which the steps of a plan are priced."""

from __future__ import annotations

from dataclasses import replace

from tenure.engine.cost import MICRO
from tenure.rescheduler.milp.cover_bounds import NEVER
from tenure.rescheduler.problem.build import ProblemView
from tenure.rescheduler.problem.definition import MoveAnswer


def priced(made: ProblemView, answer: MoveAnswer) -> MoveAnswer:
    """Give an answer whose certificate is in weighted resource-seconds, as the steps of the plan are.

    Where prices were rounded down, or up from nothing, the bound is that much lower.
    """
    certificate = answer.certificate
    moved = None if certificate.cost is None else sum(made.prices[m.task] for m in answer.moves)
    bound: float = certificate.lower_bound
    if bound < NEVER:
        raised = sum(p < made.unit for p in made.prices)
        lowest = max(0, certificate.lower_bound - raised) * made.unit
        bound = (lowest if moved is None else min(lowest, moved)) / MICRO
    cost = None if moved is None else moved / MICRO
    reason = certificate.reason
    if cost is not None and bound < cost and certificate.lower_bound == certificate.cost:
        reason += f"; but for the rounding of prices to {made.unit / MICRO:g} weighted resource-seconds"
    return replace(answer, certificate=replace(certificate, cost=cost, lower_bound=bound, reason=reason))
