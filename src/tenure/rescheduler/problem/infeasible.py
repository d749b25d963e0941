"""Why no moves can make room: proofs that need no search, in a sentence (spec: plans)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tenure.engine.room.nodes import FREE_DEVICES
from tenure.engine.serving.volume_bound import VolumeShortage
from tenure.model.values.readable import amount_with_unit
from tenure.model.values.resources import CPU, GPU
from tenure.rescheduler.milp.cover_bounds import NEVER, CoverBounds
from tenure.rescheduler.problem.definition import Ints, MoveProblem
from tenure.rescheduler.problem.utilization import NAME as HEAT


def why_never(problem: MoveProblem, covers: Sequence[CoverBounds]) -> str:
    """Give the reason why the asks can never all be placed by moves; empty if none was found."""
    for cover in covers:
        reason = _too_large(problem, cover)
        if reason:
            return reason
    return _too_much(problem)


def _too_large(problem: MoveProblem, cover: CoverBounds) -> str:
    """Whether too few members fit even if everything that may be moved had left."""
    if cover.total[-1] < NEVER:
        return ""
    domains = problem.domain[cover.ask.group]
    values = np.unique(domains[domains >= 0]).tolist()
    fit = max((int(np.minimum(cover.most, cover.ask.count)[domains == value].sum()) for value in values), default=0)
    where, room = _largest_hole(problem, cover)
    hole = f"the largest hole is {room} on {where}" if where else "no node that it may use has any room"
    if fit:
        together = " under one value of its topology" if len(values) > 1 else ""
        hole = f"{min(fit, cover.ask.count)} of {cover.ask.count} would fit at once{together}; {hole}"
    return f"even if every movable pod moved, {hole}"


def _largest_hole(problem: MoveProblem, cover: CoverBounds) -> tuple[str, str]:
    """The node with most room for a member, and how much it has of the resource that is shortest; none: nothing."""
    scale = _scale(problem)
    emptied = _real(problem).copy()
    np.add.at(emptied.T, problem.node, problem.takes() * scale)
    if not problem.shapes[cover.ask.cls]:  # no device takes such a part of a GPU, however empty it is
        return "", ""
    shape = problem.shapes[cover.ask.cls][0]
    usable = np.flatnonzero(problem.allowed[shape] & (problem.domain[cover.ask.group] >= 0))
    if not len(usable):
        return "", ""
    asked = problem.ask[shape] * scale
    rows = np.flatnonzero(asked > 0)
    parts = emptied[rows][:, usable] / asked[rows][:, None]
    best = int(usable[parts.min(axis=0).argmax()])
    scarce = int(rows[(emptied[rows, best] / asked[rows]).argmin()])
    name = problem.resources[scarce] if problem.resources else f"resource {scarce}"
    amount = int(emptied[scarce, best])
    if amount <= 0:
        return "", ""
    return problem.nodes[best] if problem.nodes else str(best), _written(name, amount)


def _too_much(problem: MoveProblem) -> str:
    """Whether all free room together is less than what is asked: moves make no room in all."""
    wanted: Ints = np.zeros(problem.free.shape[0], np.int64)
    for ask in problem.asks:
        shapes = list(problem.shapes[ask.cls])
        if not shapes:
            return ""
        wanted += ask.count * problem.ask[shapes].min(axis=0)
    free = np.maximum(problem.free, 0).sum(axis=1)
    if any(len(shapes) > 1 for shapes in problem.shapes):  # a task that changes its shape changes what is free
        return ""
    for row in np.flatnonzero(wanted > free).tolist():
        name = problem.resources[row] if problem.resources else f"resource {row}"
        if name == FREE_DEVICES:
            continue
        have = int(np.maximum(_real(problem)[row], 0).sum())
        return too_little(name, have, int(wanted[row] * _scale(problem)[row]))
    return ""


def too_little(name: str, have: int, need: int) -> str:
    """Say that all nodes together have less free of a resource than is asked; amounts in units of the node table."""
    return f"all nodes together have {_written(name, have)} free; it takes {_written(name, need)}"


def too_few(short: VolumeShortage) -> str:
    """Say that nodes, or devices, hold an amount fewer times than it is asked for, whatever moves."""
    amount = _written(short.resource or GPU, short.amount)
    where = "devices" if short.resource is None else "nodes"
    return (
        f"{where} hold {amount} at one place {short.most:,} times at most, and that is needed {short.asked:,} "
        f"times, with what would have to move"
    )


def _scale(problem: MoveProblem) -> Ints:
    return np.array(problem.units or [1] * problem.free.shape[0], np.int64)


def _real(problem: MoveProblem) -> Ints:
    return problem.free if problem.real is None else problem.real


def _written(name: str, amount: int) -> str:
    """Write an amount of the node table, in which GPUs come in milli-GPU and wholly free devices in whole ones."""
    if name == FREE_DEVICES:
        return amount_with_unit(amount, GPU, milli_gpu=False)
    if name == HEAT:
        return f"{amount_with_unit(amount, CPU)} of use below hot"
    return amount_with_unit(amount, name)
