"""YuniKorn's rules for a tree of queues and for limits, beyond what each value says for itself.

Source: YuniKorn, user guide, "Partition and queue configuration". All problems are reported together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tenure.model.entries import EntryValues
from tenure.model.values.quantity import format_queue_quantity
from tenure.model.values.report import ProblemReport, Trail
from tenure.model.values.resources import CPU, GPU
from tenure.model.yunikorn.units import SUFFIXES

ROOT = "root"
_USER = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.@-]*[$]?")
_GROUP = re.compile(r"[_a-zA-Z][a-zA-Z0-9:_.-]*")

Amounts = Mapping[str, int]


def amounts_of(queue: EntryValues, which: str) -> Amounts:
    """Give the amounts that a queue sets as ``guaranteed`` or ``max``."""
    resources = queue.values.get("resources")
    return {} if resources is None else resources.values.get(which, {})


def check_tops(queues: Sequence[EntryValues], report: ProblemReport) -> None:
    """Check the queues at the top: there is one root, or none is written down."""
    roots = [q for q in queues if q.values["name"].lower() == ROOT]
    for other in queues if roots else ():
        if other is not roots[0]:
            what = "is a second root" if other in roots else f"stands beside {ROOT}"
            report.add((other.at, "name"), f"{what}; a partition has one root, put this queue below it")


def check_tree(queue: EntryValues, above: Amounts, report: ProblemReport) -> Amounts:
    """Check a queue and all below it; gives what it is guaranteed, by itself or through its children.

    ``above`` is what the queues above it have as ``max``.
    """
    own, most = amounts_of(queue, "guaranteed"), amounts_of(queue, "max")
    _compare(own, most, (queue.at, "resources"), "guaranteed", "this queue's max", report)
    _compare(most, above, (queue.at, "resources"), "max", "the max of the queues above it", report)
    limit = {r: min(x for x in (most.get(r), above.get(r)) if x is not None) for r in (*above, *most)}
    children: Sequence[EntryValues] = queue.values.get("queues", ())
    _check_names(children, report)
    _check_applications(queue, children, report)
    _check_limits(queue.values.get("limits", ()), most, queue.values.get("maxapplications", 0), report)
    total: dict[str, int] = {}
    for child in children:
        for resource, amount in check_tree(child, limit, report).items():
            total[resource] = total.get(resource, 0) + amount
    for bound, name in ((own, "its guaranteed"), (limit, "its max")):
        for resource, amount in total.items():
            if resource in bound and amount > bound[resource]:
                report.add(
                    (queue.at, "resources"),
                    f"the queues below it are guaranteed {_show(amount, resource)} of {resource} together, more than "
                    f"{name} of {_show(bound[resource], resource)}; lower theirs or raise this",
                )
    return own if any(own.values()) else total


def _compare(amounts: Amounts, bounds: Amounts, at: Trail, which: str, whose: str, report: ProblemReport) -> None:
    for resource, amount in amounts.items():
        if resource in bounds and amount > bounds[resource]:
            report.add(
                ((at, which), resource if resource != "cpu" else "vcore"),
                f"{_show(amount, resource)} is more than {_show(bounds[resource], resource)}, {whose}; "
                f"lower it or raise that",
            )


def _show(amount: int, resource: str) -> str:
    """Write an amount as short as it goes, as the file may have it."""
    if resource in (CPU, GPU):
        return format_queue_quantity(amount, resource)
    texts = [f"{amount // factor}{suffix}" for suffix, factor in SUFFIXES.items() if amount % factor == 0]
    return min(texts, key=len)


def _check_names(children: Sequence[EntryValues], report: ProblemReport) -> None:
    seen: set[str] = set()
    for child in children:
        name = child.values["name"].lower()
        if name in seen:
            report.add((child.at, "name"), f"queue {name} is there twice below the same queue; give each its own name")
        seen.add(name)


def _check_applications(queue: EntryValues, children: Sequence[EntryValues], report: ProblemReport) -> None:
    most = queue.values.get("maxapplications", 0)
    for child in children:
        number = child.values.get("maxapplications", 0)
        if most and (not number or number > most):
            shown = number or "unlimited"
            report.add(
                (child.at, "maxapplications"),
                f"is {shown}, more than the {most} of the queue above it; lower it or raise that",
            )


def check_partition_limits(limits: Iterable[EntryValues], report: ProblemReport) -> None:
    """Check the limits of a partition itself."""
    _check_limits(limits, {}, 0, report)


def _check_limits(limits: Iterable[EntryValues], most: Amounts, applications: int, report: ProblemReport) -> None:
    users: dict[str, None] = {}
    groups: dict[str, None] = {}
    last: Trail = None
    for limit in limits:
        last = limit.at
        values = limit.values
        if not values.get("users") and not values.get("groups"):
            report.add(limit.at, "names neither users nor groups; name those that it limits")
        _check_subjects(limit, "users", _USER, users, report)
        _check_subjects(limit, "groups", _GROUP, groups, report)
        _check_bounds(values, limit.at, most, applications, report)
    if list(groups) == ["*"]:
        report.add(last, "limits the group * alone, which is every user together; name a group as well")


def _check_subjects(
    limit: EntryValues, which: str, form: re.Pattern[str], seen: dict[str, None], report: ProblemReport
) -> None:
    for index, name in enumerate(limit.values.get(which, ())):
        at: Trail = ((limit.at, which), index)
        if name != "*" and not form.fullmatch(name):
            report.add(at, f"{name!r} is no name; write one, or *")
        elif name in seen:
            report.add(at, f"{name} is limited twice; name it once")
        elif "*" in seen:
            report.add(at, f"{name} comes after *, which stands for all others; put * last")
        seen[name] = None


def _check_bounds(
    values: Mapping[str, Any], at: Trail, most: Amounts, applications: int, report: ProblemReport
) -> None:
    number, resources = values.get("maxapplications", 0), values.get("maxresources", {})
    if not number and not any(resources.values()):
        report.add(at, "limits nothing; add maxapplications or maxresources")
    if applications and number > applications:
        report.add((at, "maxapplications"), f"is {number}, more than the queue's {applications}; lower it")
    _compare(resources, most, at, "maxresources", "this queue's max", report)
