"""What each field of files and custom resources means: for schemas, ``kubectl explain`` and the reference.

One place for all of them, so that an editor, the API server and the documentation say the same.
"""

from __future__ import annotations

from typing import Final

from tenure.model.kinds import Definitions

_SAME_AS: Final = {
    "QueueSpec": "Queue",
    "PodGroupSpec": "Workload",
    "DisruptionBudgetSpec": "BudgetRule",
    "CheckpointSpec": "Checkpoint",
}
"""Definitions that describe a part of another's fields."""

FIELDS: Final[dict[str, dict[str, str]]] = {
    "Settings": {
        "actions": "The actions of a cycle, in their order; what is not listed does not happen.",
        "placement": "How a node is chosen among those that fit: one policy, or weights by policy.",
        "backfill": "`easy`: the first workload that does not fit gets a reservation, which others must not delay.",
        "preemptMinRuntime": "How long a workload runs before one of its own queue may take its place.",
        "reclaimMinRuntime": "How long a workload runs before one of another queue may take its place.",
        "minRuntime": "How minimum runtimes are found, and what they protect from.",
        "expectedRuntime": "How long workloads run before they may be requeued; unset: they never are.",
        "requeueDelay": "For how long a workload that was requeued is not requeued again.",
        "requeue": "Whom a requeue may serve.",
        "preemptionDelay": "How long a workload waits before anything is evicted for it.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "modes": "By cause: `enforce` evicts, `shadow` only records what it would do, `off` does not even look.",
        "nominationTimeout": "For how long a hole stays promised after its victims should have left.",
        "stalenessGracePeriod": "How long a gang may run below its core before its rest goes; negative: for ever.",
        "maxConsolidatedWorkloads": "How many workloads at most are moved together to make room for one.",
        "quotaPreemption": "Whether and how a lowered maximum is enforced on what runs already.",
        "fairness": "Whether shares look back at past usage.",
        "victims": "Which of several sets of victims is taken: the cheapest, or the one that began last or first.",
        "search": "Bounds of the search for victims.",
        "disruption": "What an eviction costs, and how many there may be.",
        "rescheduler": "When running pods are moved, and how.",
        "nominators": "Who is nominated for requeue, beside what is past its expected runtime.",
        "history": "Whose a workload is, where what happened is kept.",
    },
    "RecordingSettings": {
        "teamLabel": "The label that names a workload's team; unset: the queue at the top of the tree is its team.",
        "userLabel": "The label that names a workload's user; unset: no user is written into the history.",
    },
    "MinRuntimeSettings": {
        "method": "`lca`: reclaim looks from below the common ancestor upward; `queue`: from the victim's leaf.",
        "startsAt": "When the clock starts: when the core was last allocated, or when all of it ran.",
        "appliesTo": "The causes of eviction that minimum runtime protects from.",
    },
    "RequeueSettings": {
        "contenders": "`any` also serves equals in the same queue, which then take turns.",
        "maxCandidates": "How many workloads at most are requeued together for one contender.",
    },
    "QuotaPreemptionSettings": {
        "enabled": "Whether work above a lowered maximum is evicted after the queue's delay.",
        "inherit": "Whether queues without a delay of their own take their parent's.",
        "overshoot": "`minimal` may free more than is needed where units are coarse; `never` leaves the rest over.",
        "maxEvictionsPerCycle": "How many evictions at most a cycle makes for quotas; unset: no limit.",
    },
    "FairnessSettings": {"history": "Past usage counts in what is shared out beyond guarantees; unset: it does not."},
    "HistorySettings": {
        "halfLife": "After so long usage counts half.",
        "strength": "How much past usage counts against a queue's weight.",
    },
    "SearchSettings": {"maxScenarios": "How many sets of victims are looked at for one contender."},
    "DisruptionSettings": {
        "cost": "What a second of lost work costs, by resource, for a whole GPU, a core, else a unit.",
        "assumedCheckpoint": "What reports no checkpoint is costed as if it saved so often; unset: as if never.",
        "maxRestartOverhead": "The most that a workload's own restart overhead counts.",
        "maxGracePeriod": "The most that a pod's own grace period counts: what is still there then is stuck.",
        "budgets": "Rules that bound evictions; all have to allow one. A `DisruptionBudget` is one as an object.",
    },
    "BudgetRule": {
        "name": "The rule's name, by which refusals tell it.",
        "namespace": "Only workloads of this namespace.",
        "selector": "Only workloads with these labels.",
        "queue": "Only workloads of this queue and those below it.",
        "side": "Whether `queue` is where the victim or the beneficiary is.",
        "each": "`workload`: the bound holds for each workload by itself.",
        "causes": "Only evictions for these causes; unset: all.",
        "maxEvictions": "How many evictions there may be in every window; 0 on a schedule makes protected hours.",
        "per": "The length of the sliding window.",
        "maxUnavailable": "How many of the selected pods may be down, or what share of them.",
        "minAvailable": "How many of the selected pods have to be up, or what share of them.",
        "maxLost": "How much work at most is destroyed in every window, as time by resource.",
        "schedule": "When the rule holds, as a cron expression; unset: always.",
        "duration": "How long it holds from each time of the schedule.",
        "timeZone": "The time zone of the schedule.",
    },
    "ReschedulerSettings": {
        "schedulers": "Other schedulers (`schedulerName`) whose pods may be moved too; pods of all others never are.",
        "pendingFor": "After so long room is made for a workload that waits, by moving others.",
        "settle": "For how long what was moved is left alone.",
        "moves": "`evict-first` frees a place and then fills it; `reserve-first` holds the new place before.",
        "exact": "The exact planner.",
        "background": "Improvement in the background.",
        "hotNodes": "Relief of nodes whose real use is high.",
        "newNodes": "Use of nodes that joined lately.",
    },
    "ExactSettings": {
        "enabled": "Whether plans are sought that are proven cheapest.",
        "nodeLimit": "How many steps of its solver a plan may take.",
        "timeLimit": "After so long the greedy plan stands.",
    },
    "BackgroundSettings": {
        "interval": "How often it looks; unset: never.",
        "objective": "What it improves: one objective, or weights by objective.",
        "minGain": "The least gain per unit of disruption.",
    },
    "HotNodeSettings": {
        "enabled": "Whether hot nodes are relieved.",
        "hot": "From which share of its capacity in real use a node is hot.",
        "for": "For how long it has to be so.",
    },
    "NewNodeSettings": {
        "enabled": "Whether new nodes are filled by moves.",
        "within": "For how long a node is new.",
    },
    "NominatorSettings": {
        "over-share": "Whether workloads of queues over their time-based share are nominated for requeue.",
        "idle": "Workloads whose GPUs stay idle.",
    },
    "IdleSettings": {
        "enabled": "Whether idle workloads are nominated for requeue.",
        "below": "Below which share of its GPUs in use a workload is idle.",
        "for": "For how long it has to be so.",
    },
    "Queue": {
        "name": "The queue's name.",
        "parent": "The queue above; unset: none.",
        "guaranteed": "By resource: what it gets whatever others want.",
        "max": "By resource: what it never exceeds; unset: no limit.",
        "weight": "Its part of what is left over: a number, or a mapping by resource.",
        "priority": "Among its siblings: the higher gets of what is left over first.",
        "preemptMinRuntime": "Overrides the setting for workloads of this queue and those below; 0: always evictable.",
        "reclaimMinRuntime": "Overrides the setting for workloads of this queue and those below; 0: always evictable.",
        "expectedRuntime": "How long its workloads run before they may be requeued; 0: they never are.",
        "requeueDelay": "For how long a workload of it that was requeued is not requeued again.",
        "quotaPreemptionDelay": "How long after its maximum was lowered evictions begin; 0: they never do.",
        "preemptionPolicy": "`fence`: nothing below it takes from outside; `disabled`: nothing below it is taken.",
        "maxEvictionNotice": "The longest notice that its workloads may ask for.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "maxOptOut": "For how long after its start a workload may ask to be evicted last.",
        "namespaceSelector": "The namespaces that may use it and the queues below it; unset: all.",
        "dynamic": "Made by a placement rule, not by the administrator.",
        "createdAt": "When it was created.",
        "status": "What the scheduler wrote.",
    },
    "Workload": {
        "queue": "The leaf queue that it lives in; else its pods' label `tenure.dev/queue` says it.",
        "preemptible": "Whether it may be evicted for others; unset: if its priority is below 100.",
        "minMember": "How many pods are its core, which starts together or not at all; unset: all.",
        "subGroups": "Parts with cores of their own; pods name theirs by the label `tenure.dev/sub-group`.",
        "minSubGroup": "How many subgroups have to start together; unset: all.",
        "topology": "Whether all its pods are to be under one value of a node label.",
        "stalenessGracePeriod": "How long it may run below its core before the rest is evicted; negative: for ever.",
        "expectedRuntime": "How long it runs before it may be requeued; 0: it never is.",
        "requeueDelay": "For how long it is not requeued again after it was.",
        "preemptionDelay": "How long it waits before anything is evicted for it.",
        "checkpoint": "What it says of its checkpoints; the last one stands on its pods.",
        "preemptionPolicy": "`Never`: nothing is evicted for it.",
        "allowPreemption": "`false`: it is evicted only where nothing else helps.",
        "allowPreemptionUntil": "When that ends.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "priorityClassName": "The PriorityClass that gives its priority; unset: the highest of its pods' priorities.",
    },
    "SubGroup": {
        "name": "The subgroup's name.",
        "minMember": "How many of its pods have to start together; unset: all.",
        "subGroups": "Parts of this part.",
        "minSubGroup": "How many of its parts have to start together; unset: all.",
        "topology": "Whether all its pods are to be under one value of a node label.",
    },
    "Topology": {
        "required": "The node label under one value of which all have to be.",
        "preferred": "The node label under one value of which all should be.",
    },
    "Checkpoint": {
        "interval": "How often it saves its work.",
        "lastAt": "When it last did.",
        "restartOverhead": "How long it takes to go on from a checkpoint.",
    },
    "NodePoolSpec": {"scheduler": "The settings for this pool's nodes."},
}
"""A sentence by the name of a definition and a key of it."""


def described_as(definition: str) -> dict[str, str]:
    """Give the sentences of a definition by key; none where it speaks for itself."""
    return FIELDS.get(_SAME_AS.get(definition, definition), {})


def add_descriptions(definitions: Definitions) -> Definitions:
    """Say in all definitions of a schema what their fields mean, and give them."""
    for name, definition in definitions.items():
        sentences = described_as(name)
        for key, schema in definition.get("properties", {}).items():
            if key in sentences:
                schema["description"] = sentences[key]
    return definitions
