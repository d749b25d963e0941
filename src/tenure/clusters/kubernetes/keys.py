"""Labels and annotations that mean something to Tenure, those that it writes, and names of objects of its own."""

from __future__ import annotations

from typing import Final

PREFIX: Final = "tenure.dev/"

POD_GROUP: Final = "tenure.dev/pod-group"
POOL: Final = "tenure.dev/node-pool"
DEFAULT_POOL: Final = "default"
"""The node pool of nodes and pods without that label."""

SUB_GROUP: Final = "tenure.dev/sub-group"
KAI_SUB_GROUP: Final = "kai.scheduler/subgroup-name"
"""Label by which a pod names its subgroup of one of KAI's groups."""

PREEMPTIBLE: Final = "tenure.dev/preemptible"
KAI_PREEMPTIBILITY: Final = "kai.scheduler/preemptibility"

TASK_ORDER: Final = "tenure.dev/order"
ROLE: Final = "tenure.dev/role"
DRAIN: Final = "tenure.dev/drain"

QUEUE_LABELS: Final = ("tenure.dev/queue", "kai.scheduler/queue", "queue")
"""Labels that name a queue; the first that is there counts."""

KAI_GROUP: Final = "pod-group-name"
FOREIGN_GROUPS: Final = (KAI_GROUP, "scheduling.x-k8s.io/pod-group", "kueue.x-k8s.io/pod-group-name")
"""What pods name their group by elsewhere: KAI's annotation, the labels of the coscheduling plugin and of Kueue."""

GROUP_SIZES: Final = ("kueue.x-k8s.io/pod-group-total-count",)
"""Annotations by which a pod says how many are in its group."""

STARTED: Final = "tenure.dev/last-start-timestamp"
DEVICES: Final = "tenure.dev/devices"
NOMINATION: Final = "tenure.dev/nomination"
NOT_BEFORE: Final = "tenure.dev/requeue-not-before"
STALE_SINCE: Final = "tenure.dev/stale-since"
EVICTION: Final = "tenure.dev/eviction"
NOTICE: Final = "tenure.dev/eviction-notice"
CHECKPOINT: Final = "tenure.dev/last-checkpoint-time"
PAUSE: Final = "tenure.dev/pause"
GPU_USAGE: Final = "tenure.dev/gpu-usage"
GPU_USAGE_SINCE: Final = "tenure.dev/gpu-usage-since"
"""How many GPUs of its own a pod uses, and since when it has not used more: whoever measures them writes that."""

MIN_MEMBER: Final = "tenure.dev/min-member"

GPU_RESERVATION: Final = "tenure.dev/gpu-reservation"
"""Label of a pod that holds a device of which parts are given out: the device's number on its node."""

VISIBLE_DEVICES: Final = "tenure.dev/visible-devices"
"""Annotation of a pod that has parts of GPUs: their names, from which its containers' environment is made."""

WRITTEN: Final = frozenset(
    {
        STARTED,
        DEVICES,
        VISIBLE_DEVICES,
        NOMINATION,
        STALE_SINCE,
        EVICTION,
        NOTICE,
        CHECKPOINT,
        GPU_USAGE,
        GPU_USAGE_SINCE,
    }
)
"""Annotations of pods that have fields of their own in a cluster file."""

GPU_MEMORY_LABEL: Final = "nvidia.com/gpu.memory"
"""MiB of each GPU of a node, as GPU feature discovery labels it."""

SEAL: Final = "tenure.dev/scheduled"
"""Type of the status condition by which the scheduler records what it decided about a pod."""

MIRROR: Final = "kubernetes.io/config.mirror"
"""Annotation of the API server's image of a static pod."""

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim that is bound to its volume for good."""

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim for which a volume is to be made where the node that it names reaches it."""

HOLE_TAINT: Final = "tenure.dev/hole"
"""Key of the taint on nodes that are kept free; its value is the record's id."""

KEPT_OFF: Final = "tenure.dev/kept-off"
"""Annotation by which the admission policy says which nodes it keeps a pod away from."""

SEEN: Final = "tenure.dev/seen"
"""On the record of a move, in the answer to a write that is not carried out: which version of it admission knows."""

MOVES_LABEL: Final = "tenure.dev/moves"
"""Label of the ConfigMaps that the admission policy reads."""


def lease_name(pool: str) -> str:
    """Give the name of a node pool's Lease."""
    return f"tenure-scheduler-{pool}"


LOG_PAGES: Final = 64
"""ConfigMaps that the eviction log may have: what it takes of the cluster's memory is bounded."""


def log_page_name(pool: str, number: int) -> str:
    """Give the name of a ConfigMap of a pool's eviction log."""
    return f"tenure-evictions-{pool}-{number}"
