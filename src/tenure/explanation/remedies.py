"""What would remove the obstacles of a workload that waits, one sentence for each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tenure.engine.plan import Reason
from tenure.model.readable import amount_with_unit, bare_quantity
from tenure.model.resources import GPU
from tenure.model.settings import Cause
from tenure.model.workload import Phase, Workload

Numbers = dict[str, Any]

_FIRST = "that no workload before it takes the room"

MOST = 3
"""Names that are listed in one sentence."""


Opens = Callable[[Cause, Sequence[str], str], bool]
"""Whether, for a cause, a victim (namespace/name) could go once some shields are lifted from it."""


def what_helps(reasons: Sequence[Reason], workload: Workload, opens: Opens = lambda *_: True) -> tuple[str, ...]:
    """Say what would help a workload, given why it waits; nothing is said twice, nor what another rule would forbid."""
    found = []
    final = {r.code for r in reasons} & {"NeverFits"}  # no eviction helps then
    for reason in reasons:
        if reason.code == "ShieldedVictims" and not final:
            found += _shields(reason.numbers, opens)
        elif reason.code in (final or _HELP):
            found += _HELP[reason.code](reason.numbers, workload)
    return tuple(dict.fromkeys(found))


def _less_in_queue(n: Numbers, _: Workload) -> list[str]:
    resource, queue, needed = n["resource"], n["queue"], n["allocated"] + n["asked"]
    if n["asked"] > n["max"]:
        most = amount_with_unit(needed, resource)
        holds = f", which holds {bare_quantity(n['allocated'], resource)}" if n["allocated"] else ""
        return [f"a max of {most} or more for queue {queue}{holds}, and {_FIRST}"]
    amount = amount_with_unit(needed - n["max"], resource)
    return [f"{amount} less used in queue {queue}, or a max that is higher by as much, and {_FIRST}"]


def _more_guaranteed(n: Numbers, _: Workload) -> list[str]:
    amount = amount_with_unit(n["allocated"] + n["asked"] - n["guaranteed"], n["resource"])
    more = f"a guarantee of queue {n['queue']} that is higher by {amount}"
    return [f"{more}, or preemptible: true on the workload"]


def _a_right(n: Numbers, workload: Workload) -> list[str]:
    queue = workload.queue or "default"
    return [f"for {n['cause']}, a larger guarantee or share for queue {queue}, or less usage of its own"]


def _more_room(n: Numbers, workload: Workload) -> list[str]:
    if "room" in n:
        return [f"room for {n['tasks'] - n['room']} more of its tasks at the same time"]
    short = [name.removeprefix("insufficient ") for name in n["failed"] if name.startswith("insufficient ")]
    if short:  # these nodes pass everything else
        requests = n.get("requests", {})
        free = _asked(workload, [*requests, *(name for name in short if name not in requests)], requests)
        return [f"one node that admits it and has {free} free{_for_the_others(workload)}, and {_FIRST}"]
    worst = max(n["failed"].items(), key=lambda item: (item[1], item[0]))[0]
    return [f"one node without this obstacle: {worst}"]


def _other_nodes(n: Numbers, _: Workload) -> list[str]:
    failed = n.get("failed", {})
    if failed and not any(name.startswith(("insufficient ", "no ")) for name in failed):
        return [f"a node without this obstacle: {' or '.join(failed)}: no waiting helps"]
    return ["larger or more nodes, or a smaller request: no waiting helps"]


def _asked(workload: Workload, resources: Sequence[str], requests: Mapping[str, int]) -> str:
    """Write what one of its tasks that wait asks for of some resources; ``requests`` are those of the task meant."""
    spec = next((t.spec for t in workload.tasks if t.phase is Phase.PENDING), None)
    amounts = requests or ({} if spec is None else dict(spec.requests))
    found = [amount_with_unit(amounts[name], name, milli_gpu=False) for name in resources if amounts.get(name)]
    if spec is not None and spec.gpu_share is not None and GPU in resources:
        found.append(f"room for its part of {spec.gpu_share.devices} GPU" + "s" * (spec.gpu_share.devices > 1))
    if "pods" in resources:  # each task asks for one, and none says so
        found.append("1 pod slot")
    return " and ".join(found) or f"enough {' and '.join(resources)}"


def _for_the_others(workload: Workload) -> str:
    """Say of a gang that one place is not enough."""
    core = workload.core
    if workload.started_at is not None or workload.sub_groups or core <= 1:
        return ""
    return f", and as much for each of the {core} tasks that start together"


def _an_acting_cause(n: Numbers, _: Workload) -> list[str]:
    cause = n["cause"]
    if n["idle"] == "unlisted":
        return [f"for {cause}, {cause} among the actions (scheduler.actions)"]
    return [f"for {cause}, the mode enforce (scheduler.modes.{cause})"]


# -- shields ---------------------------------------------------------------------------------------------------------


def _shields(n: Numbers, opens: Opens) -> list[str]:
    """Say for each shield in the way what would lift it."""
    by_shield: dict[str, list[Numbers]] = {}
    for entry in n["shields"]:
        by_shield.setdefault(entry["shield"], []).append(entry)
    found = []
    for shield, entries in sorted(by_shield.items()):
        ending = min((e for e in entries if e["until"] is not None), key=lambda e: e["until"], default=None)
        if ending is not None:
            found.append(f"to wait until {ending['until']}: until then {shield} protects {ending['workload']}")
        elif shield in _LIFTED:
            found += _lifting(n["cause"], shield, entries, opens)
        else:
            found.append(f"another answer of the plugin {shield} about {_names(entries)}")
    return [f"for {n['cause']}, {text}" for text in found]


def _lifting(cause: Cause, shield: str, entries: Sequence[Numbers], opens: Opens) -> list[str]:
    """Say what lifts a shield from victims that could go then; where none could, what lifts the next one as well."""
    for shields, text in ((shield,), _LIFTED[shield]), *_LIFTED_AS_WELL.get(shield, ()):
        free = [e for e in entries if opens(cause, shields, e["workload"])]
        if free:
            return [text.format(names=_names(free))]
    return []


def _more_tasks(missing: int) -> str:
    return f"{missing} more task{'s' * (missing > 1)}"


def _names(entries: Sequence[Numbers]) -> str:
    listed = list(dict.fromkeys(e["workload"] for e in entries))
    more = f" and {len(listed) - MOST} more" if len(listed) > MOST else ""
    return "; ".join(listed[:MOST]) + more


_LIFTED = {
    "priority": "a priority above that of {names}",
    "preemptibility": "preemptible: true on {names}, or its end",
    "fence": "its own queue without the fence (preemptionPolicy), or victims inside the fence",
    "disabled": "another preemptionPolicy for the queue of {names}",
    "guaranteed": "other queues that hold more than their guarantees: the queue of {names} is within its own",
    "fair-share": "other queues that hold more than their fair shares: the queue of {names} is within its own",
    "relative-fullness": "less usage in its own queue: without {names} its own queue would be the fuller one",
    "budget": "a budget that allows {names} to be evicted",
    "nobody-recreates": "a controller that owns the pods of {names} and recreates them",
    "no-room": "more room: without {names} it would still not fit, or other workloads would take the room first",
    "takes-back": "a higher priority or an emptier queue: {names} could take the place back at once",
    "in-vain": "nothing: the room becomes free without {names}, or would go back to it",
    "max-moves": "the next cycle, or a higher maxConsolidatedWorkloads",
    "no-landing": "free room to which {names} could move",
    "opt-out": "allowPreemption: true on {names}",
    "daemon-set": "another node: the pods of {names} belong to theirs",
    "below-core": "the rest of the core of {names}, which would not start again elsewhere before it is whole",
    "taken-again": "a higher priority, or more guaranteed: the place of {names} would be taken from it again",
    "more-deserving": "a higher priority: {names} deserves its place at least as much",
    "reserved-start": "a shorter runtime, or its turn: it would put off the start that is promised to another workload",
}
"""What would lift a shield that has no end, by its name."""

_LIFTED_AS_WELL = {
    "priority": [
        (("priority", "preemptibility"), "a priority above that of {names} together with preemptible: true on it"),
    ]
}
"""The same with another shield that stands behind it."""

_HELP: dict[str, Callable[[Numbers, Workload], list[str]]] = {
    "OverMax": _less_in_queue,
    "BeyondGuaranteed": _more_guaranteed,
    "NoNodeFits": _more_room,
    "NoRoomTogether": lambda n, _: [f"room for all {n['tasks']} of its tasks at once, on nodes that admit them"],
    "NeverFits": _other_nodes,
    "Reserved": lambda _, __: [
        "an end before the reservation begins (a shorter expectedRuntime), or room that is not reserved"
    ],
    "NextCycle": lambda _, __: ["the next cycle: nothing has to be done"],
    "NoRight": _a_right,
    "PreemptionDelay": lambda n, _: [f"to wait: from {n['until']} on, other workloads may be evicted for it"],
    "CausePaused": lambda n, _: [f"to wait: {n['cause']} is paused until {n['pays']} at the latest"],
    "NotWorthYet": lambda n, _: [f"to wait: from {n['pays']} on, evictions by {n['cause']} pay for it"],
    "CauseIdle": _an_acting_cause,
    "NeverPreempts": lambda _, __: ["a preemptionPolicy other than Never, of its own or of its priority class"],
    "AwaitsNodes": lambda n, _: [f"to wait for nodes; from {n['until']} on, other workloads may be evicted for it"],
    "OthersFirst": lambda n, _: [f"its turn, after {n['others']} other workloads, or a higher priority"],
    "SearchGaveUp": lambda n, _: [
        f"to wait: the search for victims by {n['cause']} begins anew once something that runs or waits has changed"
    ],
    "SearchExhausted": lambda _, __: ["the next cycle, or a higher search.maxScenarios"],
    "NoMoveHelps": lambda n, _: ["another node" + ", or fewer pods that must not move" * bool(n["held"])],
    "Gated": lambda _, __: ["the removal of the scheduling gates of its tasks"],
    "NotEnoughTasks": lambda n, _: [f"{_more_tasks(n['minMember'] - n['tasks'])}, or a smaller minMember"],
    "VolumeNotReady": lambda _, __: ["its claims, bound to volumes"],
    "DevicesNotReady": lambda _, __: ["its resource claims, and the device classes that these name"],
    "Unsupported": lambda _, __: ["a scheduler that evaluates these constraints"],
    "AllocateIdle": lambda _, __: ["allocate among the actions (scheduler.actions)"],
    "Nominated": lambda n, _: [
        f"to wait: {'the tasks that hold its room have' if n['held'] else 'what of it moves has'} to leave first"
    ],
}

REMEDIED = frozenset(_HELP) | {"ShieldedVictims"}
"""Codes of the reasons of which it is said what would help."""
