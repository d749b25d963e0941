"""What a PodGroup of Volcano asks beside its minimum: pods of each task, subgroups by labels, nodes near each other.

All of it becomes a tree of subgroups. A policy of ``subGroupPolicy`` is an inner subgroup: below it is one for each
set of pods that have the same values of its ``matchLabelKeys``. Tasks of ``minTaskMember`` whose pods no policy takes
are leaves; pods of neither are needed by nobody. What ``minMember`` asks for beyond all that is asked of the first
parts that have more pods, so that never fewer start than Volcano would start, though in rare cases some later.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from tenure.clusters.kubernetes.bounded import MOST_PROBLEMS
from tenure.clusters.kubernetes.cache.pod_records import PodRecord
from tenure.clusters.kubernetes.read.hyper_nodes import tier_label
from tenure.clusters.kubernetes.read.values import read
from tenure.engine.room.labels import selects
from tenure.model.fields.kinds import describe
from tenure.model.fields.records import record_of
from tenure.model.selectors import LabelSelector, Topology
from tenure.model.values.report import BAD
from tenure.model.workload import SubGroup

KEY: Final = "PodGroup.scheduling.volcano.sh"
"""The key of the kind."""

JOB: Final = "Job.batch.volcano.sh"
"""The key of the kind whose objects make such groups."""

TASK: Final = "volcano.sh/task-spec"
"""Label and annotation by which a pod says which task it is of."""

MOST_PARTS: Final = 256
"""Subgroups that are made of one group at most."""

_MOST_KEYS: Final = 16
_MOST_COUNT: Final = 1_000_000
_OTHERS: Final = "others"
_LONGEST: Final = 63


@dataclass(frozen=True, slots=True)
class SubGroupPolicy:
    """A policy: ``selector`` takes pods, those alike in ``keys`` are one subgroup of which ``size`` start together.

    ``minimum`` of these subgroups start with the group.
    """

    name: str
    selector: LabelSelector | None
    keys: tuple[str, ...]
    size: int
    minimum: int
    topology: Topology | None

    def values(self, labels: Mapping[str, str]) -> tuple[str, ...] | None:
        """Give the values by which a pod of these labels is told apart; None where the policy does not take it."""
        if self.selector is not None and not selects(self.selector, dict(labels)):
            return None
        found = tuple(labels.get(key, "") for key in self.keys)
        return found if all(key in labels for key in self.keys) else None


@dataclass(frozen=True, slots=True)
class VolcanoGroup:
    """What a group asks: ``tasks`` are minima by task. ``refused``: why it cannot be placed as it asks."""

    min_member: int = 0
    tasks: tuple[tuple[str, int], ...] = ()
    policies: tuple[SubGroupPolicy, ...] = ()
    topology: Topology | None = None
    problems: tuple[str, ...] = ()
    refused: str = ""


@dataclass(slots=True)
class _Part:
    """A part of the tree on its way: ``pods`` by subgroup, ``size`` of each, and how many subgroups are needed."""

    name: str
    size: int
    needed: int
    topology: Topology | None
    is_policy: bool
    pods: dict[tuple[str, ...], list[int]]

    @property
    def sum(self) -> int:
        """How many pods it starts with."""
        return self.needed * self.size if self.is_policy else self.size

    def grow(self, wanted: int) -> int:
        """Let more of it start, so many pods if it has them; gives how many of these are still wanted."""
        before = self.sum
        if self.is_policy:
            there = sum(len(pods) >= self.size for pods in self.pods.values())
            self.needed = max(self.needed, min(there, self.needed + -(-wanted // self.size)))
        else:
            self.size = max(self.size, min(sum(map(len, self.pods.values())), self.size + wanted))
        return max(0, wanted - (self.sum - before))


class Grouped(NamedTuple):
    """The subgroup of each pod, in their order, and the tree; ``refused`` says why there is none."""

    of_pods: tuple[str, ...] = ()
    sub_groups: tuple[SubGroup, ...] = ()
    refused: str = ""


def volcano_group(spec: Any) -> VolcanoGroup | None:
    """Read what a group asks beside its minimum, whatever stands there; None where that is nothing."""
    if not isinstance(spec, dict) or not any(
        spec.get(k) for k in ("minTaskMember", "subGroupPolicy", "networkTopology")
    ):
        return None
    problems: list[str] = []
    counts = _mapping(spec, "spec.minTaskMember", problems)
    tasks = [
        (str(name), _count(counts, name, f"spec.minTaskMember.{name}", problems)) for name in list(counts)[:MOST_PARTS]
    ]
    listed = spec.get("subGroupPolicy")
    found = listed if isinstance(listed, list) else []
    policies = [_policy(item, number, problems) for number, item in enumerate(found[:MOST_PARTS])]
    return VolcanoGroup(
        min_member=_count(spec, "minMember", "spec.minMember", problems) or 0,
        tasks=tuple((name, least) for name, least in tasks if least),
        policies=tuple(policy for policy in policies if policy is not None),
        topology=_topology(spec, "spec", problems),
        problems=tuple(problems[:MOST_PROBLEMS]),
        refused="" if len(counts) <= MOST_PARTS >= len(found) else f"asks for more than {MOST_PARTS} subgroups",
    )


def asked(kind: str, spec: Any) -> VolcanoGroup | None:
    """Give what an object of a kind asks: a PodGroup of Volcano all of it, a Job how near to each other its pods are.

    The PodGroup that Volcano makes of a Job says the same, but may not be there yet.
    """
    if kind == KEY:
        return volcano_group(spec)
    if kind != JOB or not isinstance(spec, dict) or not spec.get("networkTopology"):
        return None
    problems: list[str] = []
    return VolcanoGroup(topology=_topology(spec, "spec", problems), problems=tuple(problems[:MOST_PROBLEMS]))


def grouped(group: VolcanoGroup, pods: Sequence[PodRecord]) -> Grouped | None:
    """Give the tree of subgroups of these pods; None where it asks for none, and its minimum is all that counts."""
    needed = sum(least for _, least in group.tasks)
    counts_tasks = group.min_member >= needed  # else Volcano asks for the minimum alone
    parts = [_Part(p.name, p.size, p.minimum, p.topology, True, {}) for p in group.policies]  # noqa: FBT003
    leaves = {name: _Part(name, 0, 0, None, False, {(): []}) for name, _ in group.tasks} if counts_tasks else {}  # noqa: FBT003
    others = _Part(_OTHERS, 0, 0, None, False, {(): []})  # noqa: FBT003
    of_task: dict[str, list[_Part]] = {}
    for number, pod in enumerate(pods):
        part, values, task = _place(pod, group, parts, leaves, others)
        part.pods.setdefault(values, []).append(number)
        if task and part not in (known := of_task.setdefault(task, [])):
            known.append(part)
    if not parts and not leaves:
        return None
    for task, least in group.tasks if counts_tasks else ():
        having = [part for part in of_task.get(task, ()) if part.is_policy]
        rest = least - sum(part.sum for part in having)
        for part in having:
            rest = part.grow(rest) if rest > 0 else rest
        leaves[task].size = max(0, rest)
    every = [*parts, *(part for part in leaves.values() if part.size or part.pods[()]), others]
    rest = group.min_member - sum(part.sum for part in every)
    for part in every:
        rest = part.grow(rest) if rest > 0 else rest
    if rest > 0:
        others.size += rest  # they have not all been made yet
    return _tree([part for part in every if part.is_policy or part.size or part.pods[()]], len(pods))


def _place(
    pod: PodRecord, group: VolcanoGroup, parts: Sequence[_Part], leaves: Mapping[str, _Part], others: _Part
) -> tuple[_Part, tuple[str, ...], str]:
    """Give the part that a pod is in, by which values it is told apart there, and its task."""
    task = pod.annotations.get(TASK) or pod.labels.get(TASK, "")
    for policy, part in zip(group.policies, parts, strict=True):
        values = policy.values(pod.labels)
        if values is not None:
            return part, values, task
    return leaves.get(task, others), (), task


def _tree(parts: Sequence[_Part], count: int) -> Grouped:
    names, taken = [""] * count, set[str]()
    made: list[SubGroup] = []
    for part in parts:
        if not part.is_policy:
            name = _unused(part.name, taken)
            made.append(SubGroup(name=name, min_member=part.size))
            _name(names, part.pods[()], name)
            continue
        below = []
        above = _unused(part.name, taken)
        for values, pods in sorted(part.pods.items()):
            name = _unused("-".join((part.name, *values)), taken)
            below.append(SubGroup(name=name, min_member=part.size, topology=part.topology))
            _name(names, pods, name)
        if max(part.needed, len(below)) > MOST_PARTS:
            return Grouped(refused=f"subGroupPolicy {part.name} asks for more than {MOST_PARTS} subgroups")
        below += [  # their pods have not been made yet
            SubGroup(name=_unused(f"{part.name}-{number}", taken), min_member=part.size)
            for number in range(len(below), part.needed)
        ]
        if below:
            made.append(SubGroup(name=above, sub_groups=tuple(below), min_sub_group=part.needed))
    return Grouped(tuple(names), tuple(made))


def _name(names: list[str], pods: Sequence[int], name: str) -> None:
    for number in pods:
        names[number] = name


def _unused(name: str, taken: set[str]) -> str:
    """Give a name that no other subgroup has."""
    plain = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name)[:_LONGEST].strip("-_.")
    found, number = plain or _OTHERS, 1
    while found in taken:
        number += 1
        found = f"{plain or _OTHERS}-{number}"
    taken.add(found)
    return found


def _policy(item: Any, number: int, problems: list[str]) -> SubGroupPolicy | None:
    at = f"spec.subGroupPolicy[{number}]"
    if not isinstance(item, dict):
        problems.append(f"{at}: is {describe(item)}, but a policy is expected")
        return None
    selector = None
    if item.get("labelSelector") is not None:
        selector, wrong = read(record_of(LabelSelector), item["labelSelector"], f"{at}.labelSelector")
        problems += wrong
        if selector is BAD:
            return None
    listed = item.get("matchLabelKeys")
    keys = [key for key in listed if isinstance(key, str)] if isinstance(listed, list) else []
    name = item.get("name")
    return SubGroupPolicy(
        name=name if isinstance(name, str) and name else f"policy-{number}",
        selector=selector,
        keys=tuple(keys[:_MOST_KEYS]),
        size=max(1, _count(item, "subGroupSize", f"{at}.subGroupSize", problems) or 1),
        minimum=_count(item, "minSubGroups", f"{at}.minSubGroups", problems) or 0,
        topology=_topology(item, at, problems),
    )


def _topology(said: Mapping[str, Any], at: str, problems: list[str]) -> Topology | None:
    """Give the constraint that a network topology is: under one value of the label that stands for its tier."""
    asked = said.get("networkTopology")
    if asked is None:
        return None
    if not isinstance(asked, dict):
        problems.append(f"{at}.networkTopology: is {describe(asked)}, but mode and highestTierAllowed are expected")
        return None
    tier = _count(asked, "highestTierAllowed", f"{at}.networkTopology.highestTierAllowed", problems)
    name = asked.get("highestTierName")
    if tier is None and not (isinstance(name, str) and name):
        return None
    label = tier_label(tier if tier is not None else str(name)[:_LONGEST])
    return Topology(preferred=label) if asked.get("mode") == "soft" else Topology(required=label)


def _mapping(said: Mapping[str, Any], at: str, problems: list[str]) -> Mapping[str, Any]:
    found = said.get(at.rpartition(".")[2])
    if found is not None and not isinstance(found, dict):
        problems.append(f"{at}: is {describe(found)}, but counts by task are expected")
    return found if isinstance(found, dict) else {}


def _count(said: Mapping[str, Any], name: str, at: str, problems: list[str]) -> int | None:
    found = said.get(name)
    if found is None:
        return None
    if type(found) is int and 0 <= found <= _MOST_COUNT:
        return found
    problems.append(f"{at}: is {describe(found)}, but a whole number from 0 to {_MOST_COUNT} is expected")
    return None
