"""What each field of files and custom resources means: for schemas, ``kubectl explain`` and the reference.

One place for all of them, so that an editor, the API server and the documentation say the same.
"""

from __future__ import annotations

from typing import Final

from tenure.model.fields.kinds import Definitions

_SAME_AS: Final = {
    "QueueSpec": "Queue",
    "PodGroupSpec": "Workload",
    "DisruptionBudgetSpec": "BudgetRule",
    "WorkloadKindSpec": "WorkloadKind",
    "CheckpointSpec": "Checkpoint",
}
"""Definitions that describe a part of another's fields."""

FIELDS: Final[dict[str, dict[str, str]]] = {
    "Settings": {
        "actions": "The actions of a cycle, in order; an action that is not listed does not run.",
        "placement": "How a node is chosen among those that fit: one policy, or weights by policy.",
        "backfill": "`easy`: the first workload that does not fit gets a reservation, which no other may delay.",
        "preemptMinRuntime": "How long a workload runs before a workload of its own queue may preempt it.",
        "reclaimMinRuntime": "How long a workload runs before a workload of another queue may reclaim its resources.",
        "minRuntime": "How minimum runtimes are determined, and from which causes they protect.",
        "expectedRuntime": "How long workloads run before they may be requeued; unset: they are never requeued.",
        "requeueDelay": "For how long a workload that was requeued is not requeued again.",
        "requeue": "Which contenders a requeue may serve: only more deserving ones, or any.",
        "preemptionDelay": "How long a workload waits before anything is evicted for it.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "modes": "By cause: `enforce` evicts, `shadow` only records what it would do, `off` does not even search.",
        "nominationTimeout": "How long a nomination lasts after its victims should have left.",
        "stalenessGracePeriod": (
            "How long a gang may run below its core before the rest of it is evicted; negative: for ever."
        ),
        "maxConsolidatedWorkloads": "The most workloads that are moved together to make room for one.",
        "quotaPreemption": "Whether and how a lowered max is enforced on running workloads.",
        "fairness": "Whether past usage counts in fair shares.",
        "victims": "Which of several sets of victims is chosen: the cheapest, the youngest or the oldest.",
        "worth": "When an eviction pays, and how often a workload may be evicted.",
        "search": "Bounds of the search for victims.",
        "disruption": "The cost of evictions, and bounds on them.",
        "rescheduler": "When running pods are moved, and how.",
        "nominators": "Which workloads are nominated for requeue, beside those that ran longer than expected.",
        "deviceClasses": (
            "By class of devices, what a device of it counts for queues; a class that is not named here counts as one "
            "of its extended resource."
        ),
        "deviceResources": (
            "By extended resource, what one of it counts for queues beside itself, such as a part of a GPU; a name may "
            "end in *. Devices of known vendors that are not named here count as one GPU each, and parts of a GPU as "
            "such parts."
        ),
        "deviceBindingTimeout": (
            "How long a claim keeps devices of which the driver does not report the conditions for binding a pod."
        ),
        "history": "Labels that name the team and the user of a workload in the history.",
    },
    "RecordingSettings": {
        "teamLabel": "The label that names a workload's team; unset: the queue at the top of the tree is its team.",
        "userLabel": "The label that names a workload's user; unset: no user is written into the history.",
    },
    "WorthSettings": {
        "patience": "By cause: how long a contender waits before others are evicted for it; unset: not at all.",
        "weights": "What the waiting of some contenders counts; the first entry that applies counts, else 1.",
        "repeatFactor": (
            "How much dearer each earlier eviction makes a workload: with 1, one that was evicted once counts twice."
        ),
        "maxEvictions": (
            "How often a workload is evicted before it is protected, until this is forgotten; 0: no limit."
        ),
        "forgottenAfter": "How long after its last eviction it is forgotten how often a workload was evicted.",
        "maxLost": "How much work is lost to evictions before what loses it is protected for a while.",
        "breaker": "Whether a cause pauses whose evictions lost more than was gained by them.",
        "survival": "How long workloads go on that do not say so, by how long others of their user or queue ran.",
    },
    "LossSettings": {
        "workload": (
            "What a workload loses beyond its first eviction before it is protected, as a share of the window: with "
            "75% and 24h 18 hours of all that it asks for; 0: no limit."
        ),
        "queue": (
            "What the workloads of a leaf queue lose before they are protected, as a share of what the whole cluster "
            "could do in the window; 0: no limit."
        ),
        "window": "The time within which losses count.",
    },
    "SurvivalSettings": {
        "enabled": "Whether that is estimated, for rules of patience that trust estimates.",
        "least": "So many finished runs, of the user or else the queue, have to have been longer than its own so far.",
    },
    "BreakerSettings": {
        "enabled": "Whether it pauses; if not, it is only told. What a queue is guaranteed is reclaimed all the same.",
        "window": "The time over which losses and gains are added up, as far as they are known.",
    },
    "PatienceRule": {
        "factor": (
            "Evictions pay once this many times the waiting is worth what they cost; by requeue: the waiting since the "
            "candidate became eligible."
        ),
        "ahead": (
            "How long a contender counts as waiting beyond what it has waited: what it would wait otherwise; by "
            "reclaim: for what the queue is guaranteed."
        ),
        "atMost": (
            "After waiting so long it need not be worth that; by reclaim: for what the queue is guaranteed. "
            "Unset: 48h, by requeue without an end."
        ),
        "surplus": (
            "The share (0 to 1) that counts, by reclaim, of waiting for what the queue would have beyond its "
            "guaranteed; 0: nothing is evicted for that."
        ),
        "trust": (
            "How far it is believed when the contender would start by itself (0 to 1): where it would wait for longer "
            "than the eviction is worth, it goes sooner, else later."
        ),
    },
    "WaitingWeight": {
        "queue": "The queue of the contender, or one above it; unset: any.",
        "minPriority": "The contender's priority is at least this; unset: any.",
        "weight": "What a second of waiting counts.",
    },
    "MinRuntimeSettings": {
        "mode": (
            "`shield`: a workload that has not run for it is not evicted; `price`: its eviction counts as if it had. "
            "One for all causes, or a mapping by cause."
        ),
        "method": "`lca`: reclaim looks from below the common ancestor upward; `queue`: from the victim's leaf.",
        "startsAt": "When the clock starts: when the core was last allocated, or when all of it ran.",
        "appliesTo": "The causes of eviction that minimum runtime protects from.",
    },
    "RequeueSettings": {
        "order": "Which candidate comes first: the one that is most overdue, or the cheapest to evict.",
        "contenders": "`any` also serves equals in the same queue, which then take turns.",
        "maxCandidates": "How many workloads at most are requeued together for one contender.",
    },
    "QuotaPreemptionSettings": {
        "enabled": "Whether workloads above a lowered max are evicted after the queue's delay.",
        "inherit": "Whether a queue without its own delay has that of the nearest queue above.",
        "overshoot": (
            "`minimal` may free more than needed where tasks are large; `never` rather stays a little over the max."
        ),
        "maxEvictionsPerCycle": "The most tasks that a cycle evicts for quotas; unset: no limit.",
    },
    "FairnessSettings": {"history": "How past usage counts in the shares beyond guarantees; unset: it does not count."},
    "HistorySettings": {
        "halfLife": "The time after which past usage counts half.",
        "strength": "How much past usage counts against a queue's weight.",
    },
    "SearchSettings": {"maxScenarios": "The most sets of victims that are tried for one contender."},
    "DisruptionSettings": {
        "cost": "The weight of a second of lost work, by resource: of one GPU, one core, or one other unit.",
        "assumedCheckpoint": (
            "A workload that reports no checkpoints is costed as if it made one this often; unset: as if it made none."
        ),
        "maxRestartOverhead": "The largest restart overhead of a workload that counts.",
        "maxGracePeriod": (
            "The longest grace period of a pod that counts; a pod that is still there afterwards is stuck."
        ),
        "maxOptOut": "How long after its start a request to be spared counts; a queue's own `maxOptOut` comes first.",
        "budgets": "Rules that bound evictions; all have to allow one. A `DisruptionBudget` is one as an object.",
    },
    "WorkloadKind": {
        "group": "The API group of the objects; empty for Kubernetes' core.",
        "version": "The version in which they are read.",
        "kind": "Their kind.",
        "plural": "Their name in the API's paths; unset: the kind in small letters with an s.",
        "unit": (
            "What is one workload: all pods of an `owner`, each `pod`, those of one value of a `label`, or what each "
            "owner `below` makes, and each pod that has no other owner."
        ),
        "unitLabel": "The label of pods whose values are workloads of their own, where the unit is a label.",
        "units": "How many such workloads there are.",
        "wraps": "`true`: the objects below say which roles there are and how many pods start together.",
        "embedded": "Objects that stand inside this one, whose roles are its own.",
        "joinedBy": "Labels or annotations by which pods name an object of this kind that does not own them.",
        "minimum": "How many pods start together, at the first of these paths where something stands; "
        "unset: as many as its roles need.",
        "roles": "The roles of its pods, in the order in which they start; what starts first leaves last.",
        "subGroups": "`true`: each role is a subgroup, of which as many start as it needs.",
        "roleGroups": "Which of these subgroups are to be near each other.",
        "requiredTopology": "The label of nodes under one value of which all its pods have to be.",
        "preferredTopology": "The label of nodes under one value of which they should be if that is possible.",
        "queue": "The queue, at the first of these paths where one stands, where its pods name none.",
        "priorityClass": "The priority class, at the first of these paths where one stands.",
        "suspended": "Whether it is suspended.",
        "succeeded": "How many of its pods have succeeded: the sum of what stands there.",
        "failedIndexes": "The indexes that have failed for good (`1,3-5`), of which no pods are made any more.",
    },
    "PodRole": {
        "name": "The role's name.",
        "each": "Makes a role of everything that stands there; other paths of the role begin at it, or with `$` at the "
        "object.",
        "named": "The name of each such role; unset: its key.",
        "label": "The label that tells which role a pod plays; unset: pods that play no role before it.",
        "value": "The label's value; unset: the role's name, in large or small letters.",
        "replicas": "How many pods it has; `unstated` where nothing stands there.",
        "times": "By how much that number is multiplied.",
        "atLeast": "How many pods it has at least.",
        "atMost": "How many pods it has at most; this counts before `atLeast`.",
        "unstated": "How many pods it has where nothing says it.",
        "suspended": "It has no pods where `true` stands here.",
        "fewer": "How many fewer there are than stand at `replicas`.",
        "minimum": "How many of them have to start; unset: all.",
        "minimumWhen": "`minimum` holds only where `true` stands here, else all have to start.",
        "later": "`true`: its pods come when others run, and nothing waits for them.",
        "laterWhen": "Its pods come later where `laterIs` stands here: nothing waits for them until one is there. Then "
        "as many as the role needs start together, and are needed once they run.",
        "laterIs": "The value that says so.",
        "laterButFirst": "`true`: the first of the roles that `each` makes comes at once all the same.",
        "after": "What its pods come after: where anything stands here, they come later as with `laterWhen`.",
        "ended": "How many of its parts (`times`) have ended for good, so that their pods are not waited for: what "
        "stands at `count`, of the thing at `each` whose name at `named` is the role's.",
        "firstWhen": "Where anything stands at one of these paths, one pod of each of its parts (`times`) comes first, "
        "and the others come when that has a place: both are roles, and the second is later.",
        "firstLabel": "The label that tells which pods come first.",
        "firstValue": "Its value.",
        "template": "The template of its pods, at the first of these paths where one stands.",
        "requiredTopology": "The label of nodes under one value of which its pods have to be.",
        "preferredTopology": "The label of nodes under one value of which they should be if that is possible.",
    },
    "EndedParts": {
        "each": "The parts of a role are counted in each thing that stands here; other paths begin at it.",
        "named": "The name of the role.",
        "count": "How many of its parts have ended.",
    },
    "RoleGroup": {
        "each": "Makes a group of everything that stands there; other paths begin at it, or with `$` at the object.",
        "named": "The name of each such group.",
        "members": "The names of its roles.",
        "requiredTopology": "The label of nodes under one value of which their pods have to be.",
        "preferredTopology": "The label of nodes under one value of which they should be if that is possible.",
    },
    "BudgetRule": {
        "name": "The rule's name, which refusals show.",
        "namespace": "Only workloads of this namespace.",
        "selector": "Only workloads with these labels.",
        "queue": "Only workloads of this queue and those below it.",
        "side": "Whether `queue` is where the victim or the beneficiary is.",
        "each": "`workload`: the bound applies to each workload on its own.",
        "causes": "Only evictions for these causes; unset: all.",
        "maxEvictions": "The most evictions in every window; 0 with a schedule makes protected hours.",
        "per": "The length of the sliding window.",
        "maxUnavailable": "How many of the selected pods, or which percentage of them, may be down.",
        "minAvailable": "How many of the selected pods, or which percentage of them, have to be up.",
        "maxLost": "The most work that is destroyed in every window, as resource-time.",
        "schedule": "When the rule holds, as a cron expression; unset: always.",
        "duration": "How long it holds from each time of the schedule.",
        "timeZone": "The time zone of the schedule.",
    },
    "ReschedulerSettings": {
        "schedulers": "Other schedulers (`schedulerName`) whose pods may be moved too; pods of all others never are.",
        "pendingFor": "How long a workload waits before moves make room for it.",
        "settle": "How long a moved task is not moved again.",
        "moves": "`evict-first` frees a place and then fills it; `reserve-first` reserves the new place first.",
        "exact": "The exact planner.",
        "background": "Improvement in the background.",
        "hotNodes": "Moves off nodes whose real usage is high.",
        "newNodes": "Moves to nodes that joined recently.",
    },
    "ExactSettings": {
        "enabled": "Whether the planner searches for plans that are proven to be the cheapest.",
        "nodeLimit": "The most steps that the solver takes for one plan.",
        "effort": (
            "The effort of all plans of a cycle together, in entries of their programs; beyond it greedy plans "
            "are used."
        ),
        "timeLimit": "The time of all plans of a cycle together; beyond it greedy plans are used.",
    },
    "BackgroundSettings": {
        "interval": "How often the layout is improved; unset: never.",
        "objective": "What is improved: one objective, or weights by objective.",
        "minGain": "The least gain per unit of disruption.",
    },
    "HotNodeSettings": {
        "enabled": "Whether tasks are moved off hot nodes.",
        "hot": "The share of its capacity above which the real usage makes a node hot.",
        "for": "How long that has to last.",
    },
    "NewNodeSettings": {
        "enabled": "Whether tasks are moved to new nodes.",
        "within": "How long a node counts as new.",
    },
    "NominatorSettings": {
        "over-share": "Whether workloads of queues over their time-based share are nominated for requeue.",
        "idle": "Workloads whose GPUs stay idle.",
    },
    "IdleSettings": {
        "enabled": "Whether idle workloads are nominated for requeue.",
        "below": "The share of its GPUs below which the usage makes a workload idle.",
        "for": "How long that has to last.",
    },
    "Queue": {
        "name": "The queue's name.",
        "parent": "The queue above; unset: none.",
        "guaranteed": "By resource: what the queue gets whatever other queues want.",
        "max": "By resource: what the queue never exceeds; unset: no limit.",
        "weight": "The queue's part of what is left over: a number, or a mapping by resource.",
        "priority": "Priority among its siblings: the queue with the higher one gets what is left over first.",
        "preemptMinRuntime": "Overrides the setting for workloads of this queue and those below; 0: always evictable.",
        "reclaimMinRuntime": "Overrides the setting for workloads of this queue and those below; 0: always evictable.",
        "minRuntimeMode": "Overrides `minRuntime.mode` for workloads of this queue and those below.",
        "patience": "By cause: overrides `worth.patience` for contenders of this queue and those below.",
        "expectedRuntime": "How long its workloads run before they may be requeued; 0: they are never requeued.",
        "requeueDelay": "How long a workload of the queue that was requeued is not requeued again.",
        "quotaPreemptionDelay": "The time from the lowering of its max to the first eviction; 0: nothing is evicted.",
        "preemptionPolicy": (
            "`fence`: its workloads take nothing from outside the queue; `disabled`: its workloads are not evicted."
        ),
        "maxEvictionNotice": "The longest notice that its workloads may ask for.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "maxOptOut": "How long after its start a workload may ask to be evicted last.",
        "namespaceSelector": "The namespaces that may use the queue and the queues below it; unset: all.",
        "dynamic": "Whether a placement rule made the queue, not the administrator.",
        "createdAt": "When the queue was created.",
        "status": "What the scheduler wrote.",
    },
    "Workload": {
        "queue": "The leaf queue of the workload; unset: the label `tenure.dev/queue` of its pods names it.",
        "preemptible": "Whether the workload may be evicted for others; unset: if its priority is below 100.",
        "minMember": "How many pods are its core, which starts together or not at all; unset: all.",
        "subGroups": "Parts with their own cores; a pod names its part with the label `tenure.dev/sub-group`.",
        "minSubGroup": "How many subgroups have to start together; unset: all.",
        "topology": "Whether all its pods are to be under one value of a node label.",
        "evictions": "How often it was evicted, the last time at most a day ago.",
        "stalenessGracePeriod": (
            "How long the workload may run below its core before the rest is evicted; negative: for ever."
        ),
        "expectedRuntime": "How long the workload runs before it may be requeued; 0: it is never requeued.",
        "requeueDelay": "How long the workload is not requeued again after a requeue.",
        "preemptionDelay": "How long the workload waits before anything is evicted for it.",
        "checkpoint": "What the workload says about its checkpoints; the time of the last one is on its pods.",
        "preemptionPolicy": "`Never`: nothing is evicted for it.",
        "allowPreemption": "`false`: the workload is evicted only if nothing else helps.",
        "allowPreemptionUntil": "When the request `allowPreemption: false` ends.",
        "evictionNotice": "How long before an eviction it is announced on the pods.",
        "priorityClassName": "The PriorityClass that gives its priority; unset: the highest priority of its pods.",
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
        "interval": "How often the workload makes a checkpoint.",
        "lastAt": "The time of the last checkpoint.",
        "restartOverhead": "How long the workload needs to continue from a checkpoint.",
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
