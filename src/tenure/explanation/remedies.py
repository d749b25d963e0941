"""What would remove the obstacles of a workload that waits, one sentence for each."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, Protocol

from tenure.engine.plan import Reason
from tenure.engine.reasons import BESIDE_OTHERS
from tenure.model.settings import Cause
from tenure.model.values.readable import amount_with_unit, bare_quantity
from tenure.model.workload import NODE_OWNERS, PREEMPTIBLE_BELOW, Phase, TaskSpec, Workload

Numbers = dict[str, Any]

_FIRST = "that no workload before it takes the room"

_NO_WAIT = "no waiting helps"

MOST = 3
"""Names that are listed in one sentence."""


ADMITTING = frozenset(
    {"not ready", "untolerated taint", "node selector", "node affinity", "not reached by its volumes", "not admitted"}
)
"""Obstacles that a node does not have which admits the workload; those that begin with ``no`` are among them."""

MOOT = frozenset({"NeverFits", "AllocateIdle", "NextCycle"})
"""Codes of reasons beside which it does not matter what could be evicted: nothing would help, or nothing is needed."""

OF_EVICTIONS = frozenset(
    {
        "CauseIdle", "CausePaused", "NeverPreempts", "NoMoveHelps", "NoRight", "NotWorthYet", "OthersFirst",
        "PreemptionDelay", "SearchExhausted", "SearchGaveUp", "ShieldedVictims",
    }
)  # fmt: skip
"""Codes of the reasons why nothing is evicted or moved for it."""


class Lifting(Protocol):
    """What is asked about one workload that waits before it is said that some shield should be lifted."""

    def opens(self, cause: Cause, shields: Collection[str], victim: str) -> bool:
        """Whether, for a cause, a victim (namespace/name) could go once some shields are lifted from it."""

    def priority_of(self, victim: str) -> int:
        """Give the priority of a victim."""


class AnyLifting:
    """The answer where nothing is known of the cluster: every shield that is lifted opens something."""

    def opens(self, cause: Cause, shields: Collection[str], victim: str) -> bool:  # noqa: ARG002  the same for all
        """Give yes."""
        return True

    def priority_of(self, victim: str) -> int:  # noqa: ARG002  the same for all
        """Give the lowest that matters."""
        return 0


def what_helps(reasons: Sequence[Reason], workload: Workload, lifting: Lifting | None = None) -> tuple[str, ...]:
    """Say what would help a workload, given why it waits; nothing is said twice, nor what another rule would forbid."""
    found = []
    codes = {r.code for r in reasons}
    moot = OF_EVICTIONS if codes & MOOT else frozenset[str]()
    for reason in reasons:
        if reason.code in moot:
            continue
        if reason.code == "ShieldedVictims":
            found += _shields(reason.numbers, workload, lifting or AnyLifting(), codes)
        elif reason.code in _HELP:
            found += _HELP[reason.code](reason.numbers, workload)
    return tuple(dict.fromkeys(found))


def _another_search(n: Numbers, _: Workload) -> list[str]:
    """Say what would make fewer sets fail, and what finds what this search does not; no setting prolongs it."""
    found = []
    if n["cause"] == "consolidate":
        found.append(
            "free room to which more could move, or reschedule among the actions (scheduler.actions): once it has "
            "waited for rescheduler.pendingFor, its moves are planned together, for which a cycle may take "
            "rescheduler.exact.timeLimit"
        )
    else:
        found.append(
            "a higher priority, or less usage in its own queue: most sets fail because others are served before it "
            f"with the room that {n['cause']} would free"
        )
    again = f"to wait: the search for victims by {n['cause']} begins anew once something that runs or waits has changed"
    return [*found, f"{again}; a higher search.maxScenarios does not prolong it"]


def _less_in_queue(n: Numbers, _: Workload) -> list[str]:
    resource, queue, needed = n["resource"], n["queue"], n["allocated"] + n["asked"]
    if n["asked"] > n["max"]:
        most = amount_with_unit(needed, resource)
        holds = f", which holds {bare_quantity(n['allocated'], resource)}" if n["allocated"] else ""
        return [f"a max of {most} or more for queue {queue}{holds}, and {_FIRST}"]
    amount = amount_with_unit(needed - n["max"], resource)
    return [f"{amount} less used in queue {queue}, or a max that is higher by as much, and {_FIRST}"]


def _more_guaranteed(n: Numbers, workload: Workload) -> list[str]:
    least = amount_with_unit(n["allocated"] + n["asked"], n["resource"])
    more = f"a guarantee of {least} or more for queue {n['queue']}"
    return [more if workload.owner_kind in NODE_OWNERS else f"{more}, or preemptible: true on the workload"]


def _a_right(n: Numbers, workload: Workload) -> list[str]:
    queue = workload.queue or "default"
    return [f"for {n['cause']}, a larger guarantee or share for queue {queue}, or less usage of its own"]


def _more_room(n: Numbers, workload: Workload) -> list[str]:
    if "room" in n:
        under = _under_one_value(workload)
        many = f"all {n['tasks']}" if under else f"{n['tasks'] - n['room']} more"
        return [f"room for {many} of its tasks at the same time{under}"]
    return [f"{_suitable_node(n, workload)}, and {_FIRST}"]


def _other_nodes(n: Numbers, workload: Workload) -> list[str]:
    if "roomWhenEmpty" in n:
        more = n["tasks"] - n["roomWhenEmpty"]
        return [f"larger or more nodes, with room for {_more_tasks(more)} of it, or fewer or smaller tasks: {_NO_WAIT}"]
    smaller = ", or a smaller request" if any(_is_shortage(name, n["requests"]) for name in n["failed"]) else ""
    return [f"{_suitable_node(n, workload)}{smaller}: {_NO_WAIT}"]


def _suitable_node(n: Numbers, workload: Workload) -> str:
    """Say what a node would need to take one of its tasks: not only what those lack that are there."""
    requests = n["requests"]
    short = [name.split(" ", 1)[1] for name in n["failed"] if _is_shortage(name, requests)]
    free = _asked(workload, [*requests, *(name for name in short if name not in requests)], requests)
    lasting = [name for name in n["failed"] if not _is_shortage(name, requests)]
    found = [name for name in lasting if not _bars(name)] or ([] if short else lasting)
    if BESIDE_OTHERS not in found and _looks_at_others(_spec_of(workload, requests)):
        found.append(BESIDE_OTHERS)  # a node that lacks room is not asked about it
    kind = "this obstacle" if len(found) == 1 else "these obstacles"
    without = f" (without {kind}: {'; '.join(found)})" if found else ""
    has = f"has {free} free" if free else "has room"
    return f"one node that admits it{without} and {has}{_for_the_others(workload)}"


def _is_shortage(name: str, requests: Mapping[str, int]) -> bool:
    """Whether a node failed for want of a resource."""
    return name.startswith("insufficient ") or name.removeprefix("no ") in requests


def _bars(name: str) -> bool:
    """Whether a node that fails so does not admit the workload, whatever is free there."""
    return name in ADMITTING or name.startswith("no ")


def _together(n: Numbers, _: Workload) -> list[str]:
    where = f", under one value of {' and of '.join(n['labels'])}" if n["labels"] else ""
    beside = ", the one of those that are placed" if n["labels"] and n["beside"] else ""
    if n["tasks"] == 1:
        return [f"room for its task on a node that admits it{where}{beside}"]
    return [f"room for all {n['tasks']} of its tasks at once, on nodes that admit them{where}{beside}"]


def _asked(workload: Workload, resources: Sequence[str], requests: Mapping[str, int]) -> str:
    """Write what one of its tasks that wait asks for of some resources; ``requests`` are those of the task meant."""
    spec = _spec_of(workload, requests)
    found = [amount_with_unit(requests[name], name, milli_gpu=False) for name in resources if requests.get(name)]
    if spec is not None and spec.gpu_share is not None:
        found.append(f"room for its part of {spec.gpu_share.devices} GPU" + "s" * (spec.gpu_share.devices > 1))
    if "pods" in resources:  # each task asks for one, and none says so
        found.append("1 pod slot")
    return " and ".join(found)


def _spec_of(workload: Workload, requests: Mapping[str, int]) -> TaskSpec | None:
    """Give what one of its tasks that wait asks for, which has these requests."""
    specs = (t.spec for t in workload.tasks if t.phase is Phase.PENDING)
    return next((spec for spec in specs if dict(spec.requests) == requests), None)


def _looks_at_others(spec: TaskSpec | None) -> bool:
    """Whether what else is placed decides about a node."""
    if spec is None:
        return False
    affinity = spec.affinity
    terms = () if affinity is None else (affinity.pod, affinity.pod_anti)
    spreads = any(s.when_unsatisfiable == "DoNotSchedule" for s in spec.spread)
    return spreads or bool(spec.host_ports) or any(term is not None and term.required for term in terms)


def _for_the_others(workload: Workload) -> str:
    """Say of a gang that one place is not enough."""
    core = workload.core
    if workload.started_at is not None or workload.sub_groups or core <= 1:
        return ""
    return f", and as much for each of the {core} tasks that start together{_under_one_value(workload)}"


def _under_one_value(workload: Workload) -> str:
    """Say that nodes have to share a value of a label; that of what has a place already is an obstacle of its own."""
    label = workload.topology.required if workload.topology is not None else None
    begun = workload.started_at is not None or any(task.node is not None for task in workload.tasks)
    return "" if label is None or begun else f", under one value of {label}"


def _nodes_to_come(n: Numbers, _: Workload) -> list[str]:
    if "nodes" in n:
        return ["to wait: it is bound as soon as these nodes are there"]
    return [f"to wait for nodes; from {n['until']} on, other workloads may be evicted for it"]


def _what_it_was_promised(n: Numbers, _: Workload) -> list[str]:
    """Say what has to happen before a promise can be kept, and that one which is not kept ends."""
    if n["unready"]:
        return [f"to wait until {' and '.join(n['unready'])} is ready, or the nomination ends (nominationTimeout)"]
    return [f"to wait: {'the tasks that hold its room have' if n['held'] else 'what of it moves has'} to leave first"]


def _its_turn(n: Numbers, _: Workload) -> list[str]:
    others = f"{n['others']} other workload{'s' * (n['others'] != 1)}"
    ahead = "a higher priority than these: of its own in its queue, of its queue among others"
    return [f"its turn, after {others}, or {ahead}"]


def _an_acting_cause(n: Numbers, _: Workload) -> list[str]:
    cause = n["cause"]
    needed = [f"{cause} among the actions (scheduler.actions)"] * (n["idle"] == "unlisted")
    needed += [f"the mode enforce (scheduler.modes.{cause})"] * (n["mode"] != "enforce")
    return [f"for {cause}, {' and '.join(needed)}"]


# -- shields ---------------------------------------------------------------------------------------------------------


def _shields(n: Numbers, workload: Workload, lifting: Lifting, codes: Collection[str]) -> list[str]:
    """Say for each shield in the way what would lift it."""
    by_shield: dict[str, list[Numbers]] = {}
    for entry in n["shields"]:
        by_shield.setdefault(entry["shield"], []).append(entry)
    found = []
    for shield, entries in sorted(by_shield.items()):
        ending = min((e for e in entries if e["until"] is not None), key=lambda e: e["until"], default=None)
        if ending is not None:
            found.append(f"to wait until {ending['until']}: until then {shield} protects {ending['workload']}")
        elif shield == "no-room":
            found += _room(entries, codes)
        elif shield in _LIFTED:
            found += _lifting(n["cause"], shield, entries, workload, lifting)
        else:
            found.append(f"another answer of the plugin {shield} about {_names(entries)}")
    return [f"for {n['cause']}, {text}" for text in found]


def _room(entries: Sequence[Numbers], codes: Collection[str]) -> list[str]:
    """Say what there has to be room for; what only a guarantee allows has to be said by no victim."""
    if "BeyondGuaranteed" in codes:
        return []
    where = " on nodes, or below the max of its queues" if "OverMax" in codes else ""
    sets = " or ".join(dict.fromkeys(e["workload"].replace(", ", " and ") for e in entries[:MOST]))
    return [f"more room{where}: without {sets} it would still not fit, or other workloads would take the room first"]


def _lifting(cause: Cause, shield: str, entries: Sequence[Numbers], workload: Workload, lifting: Lifting) -> list[str]:
    """Say what lifts a shield from victims that could go then; where none could, what lifts the next one as well."""
    for shields, text in ((shield,), _LIFTED[shield]), *_LIFTED_AS_WELL.get(shield, ()):
        free = [e for e in entries if lifting.opens(cause, shields, e["workload"])]
        if free:
            said = text.format(names=_names(free), them="it" if _is_one(free) else "them")
            return [said + _stays_preemptible(workload, free, lifting) * ("priority" in shields)]
    return []


def _stays_preemptible(workload: Workload, entries: Sequence[Numbers], lifting: Lifting) -> str:
    """Say so where a priority that is high enough would make it not preemptible, which only a guarantee allows."""
    needed = max(lifting.priority_of(e["workload"]) for e in entries) + 1
    if workload.preemptible is not None or not workload.is_preemptible or needed < PREEMPTIBLE_BELOW:
        return ""
    return ", and preemptible: true on itself, which that priority would end otherwise"


def _is_one(entries: Sequence[Numbers]) -> bool:
    return len({e["workload"] for e in entries}) == 1


def _more_tasks(missing: int) -> str:
    return f"{missing} more task{'s' * (missing > 1)}"


def _names(entries: Sequence[Numbers]) -> str:
    listed = list(dict.fromkeys(e["workload"].replace(", ", " and ") for e in entries))
    more = f" and {len(listed) - MOST} more" if len(listed) > MOST else ""
    return "; ".join(listed[:MOST]) + more


_LIFTED = {
    "priority": "a priority above that of {names}",
    "preemptibility": "preemptible: true on {names}, or the end of {them}",
    "fence": "its own queue without the fence (preemptionPolicy), or victims inside the fence",
    "disabled": "another preemptionPolicy for the queue of {names}",
    "guaranteed": "other queues that hold more than their guarantees: the queue of {names} is within its own",
    "fair-share": "other queues that hold more than their fair shares: the queue of {names} is within its own",
    "relative-fullness": "less usage in its own queue: without {names} its own queue would be the fuller one",
    "budget": "a budget that allows {names} to be evicted",
    "nobody-recreates": "a controller that owns the pods of {names} and recreates them",
    "takes-back": "a higher priority or an emptier queue: {names} could take the place back at once",
    "in-vain": "nothing: the room becomes free without {names}, or would go back to it",
    "max-moves": "the next cycle, or a higher maxConsolidatedWorkloads",
    "no-landing": "free room to which {names} could move",
    "opt-out": "allowPreemption: true on {names}",
    "daemon-set": "other victims than {names}, of which the pods belong to their nodes",
    "below-core": "the rest of the core of {names}, which would not start again elsewhere before it is whole",
    "taken-again": "a higher priority, or more guaranteed: the place of {names} would be taken from it again",
    "more-deserving": "a higher priority: {names} deserves its place at least as much",
    "reserved-start": "a shorter runtime, or its turn: it would put off the start that is promised to another workload",
}
"""What would lift a shield that has no end, by its name."""

_LIFTED_AS_WELL = {
    "priority": [
        (("priority", "preemptibility"), "a priority above that of {names} together with preemptible: true on {them}"),
    ]
}
"""The same with another shield that stands behind it."""

_HELP: dict[str, Callable[[Numbers, Workload], list[str]]] = {
    "OverMax": _less_in_queue,
    "BeyondGuaranteed": _more_guaranteed,
    "NoNodeFits": _more_room,
    "NoRoomTogether": _together,
    "NeverFits": _other_nodes,
    "Reserved": lambda n, _: [f"an end by {n['from']} (a shorter expectedRuntime), or room that is not reserved"],
    "NextCycle": lambda _, __: ["the next cycle: nothing has to be done"],
    "NoRight": _a_right,
    "PreemptionDelay": lambda n, _: [f"to wait: from {n['until']} on, other workloads may be evicted for it"],
    "CausePaused": lambda n, _: [f"to wait: {n['cause']} is paused until {n['pays']} at the latest"],
    "NotWorthYet": lambda n, _: (
        [f"to wait: from {n['pays']} on, evictions by {n['cause']} pay for it"] if n["pays"] is not None else []
    ),
    "CauseIdle": _an_acting_cause,
    "NeverPreempts": lambda _, __: ["a preemptionPolicy other than Never, of its own or of its priority class"],
    "AwaitsNodes": _nodes_to_come,
    "OthersFirst": _its_turn,
    "SearchGaveUp": _another_search,
    "SearchExhausted": lambda _, __: ["the next cycle, or a higher search.maxScenarios"],
    "NoMoveHelps": lambda n, _: ["another node" + ", or fewer pods that must not move" * bool(n["held"])],
    "Gated": lambda _, __: ["the removal of the scheduling gates of its tasks"],
    "NotEnoughTasks": lambda n, _: [f"{_more_tasks(n['minMember'] - n['tasks'])}, or a smaller minMember"],
    "VolumeNotReady": lambda _, __: ["its claims, bound to volumes that are there"],
    "DevicesNotReady": lambda _, __: ["its resource claims, and the device classes that these name"],
    "Unsupported": lambda _, __: ["a scheduler that evaluates these constraints"],
    "AllocateIdle": lambda _, __: ["allocate among the actions (scheduler.actions)"],
    "Nominated": _what_it_was_promised,
}

REMEDIED = frozenset(_HELP) | {"ShieldedVictims"}
"""Codes of the reasons of which it is said what would help."""
