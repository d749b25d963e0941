"""Where a pod may go, written from the semantics of Kubernetes: plain loops over pods and nodes, no engine code."""

from __future__ import annotations

from dataclasses import dataclass, field

from tenure.model.node import Node
from tenure.model.selectors import LabelSelector, Taint
from tenure.model.workload import TaskSpec

UNSCHEDULABLE = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")


@dataclass
class Pod:
    """A pod on a node. ``leaving``: it terminates."""

    name: str
    namespace: str
    spec: TaskSpec
    node: Node | None = None
    leaving: bool = False
    labels: dict = field(init=False)

    def __post_init__(self):
        self.labels = dict(self.spec.labels)


def obstacles(pod, node, pods, nodes):
    """Name everything that keeps a pod off a node on which ``pods`` stand already."""
    found = []
    if pod.spec.unsupported or pod.spec.awaits:
        found.append("unsupported, or waiting for a claim")
    if not all(any(_matches(term, node) for term in volume.terms) for volume in pod.spec.volume_nodes):
        found.append("a volume that is not reached")
    if not node.ready:
        found.append("not ready")
    if not _tolerates(pod, node, ("NoSchedule", "NoExecute")):
        found.append("taint")
    if not _selected(pod, node):
        found.append("node selector or affinity")
    if not _affine(pod, node, pods):
        found.append("pod affinity")
    if not _apart(pod, node, pods):
        found.append("pod anti-affinity")
    if any(not _even(pod, c, node, pods, nodes) for c in _hard(pod)):
        found.append("topology spread")
    if any(
        _collide(a, b)
        for other in pods
        if other.node is node
        for a in other.spec.host_ports
        for b in pod.spec.host_ports
    ):
        found.append("host port")
    return found


def _tolerates(pod, node, effects):
    taints = [*node.taints, *([UNSCHEDULABLE] if node.unschedulable else [])]
    return all(any(_tolerated(t, taint) for t in pod.spec.tolerations) for taint in taints if taint.effect in effects)


def _tolerated(toleration, taint):
    if toleration.effect not in (None, taint.effect):
        return False
    if toleration.operator == "Exists":
        return not toleration.key or toleration.key == taint.key
    return toleration.key == taint.key and toleration.value == taint.value


def _selected(pod, node):
    if any(node.labels.get(key) != value for key, value in pod.spec.node_selector):
        return False
    affinity = pod.spec.affinity and pod.spec.affinity.node
    if not affinity or affinity.required is None:
        return True
    return any(_matches(term, node) for term in affinity.required)


def _matches(term, node):
    return bool(term.match_expressions) and all(_holds(r, node.labels) for r in term.match_expressions)


def _holds(requirement, labels):
    value, wanted = labels.get(requirement.key), requirement.values
    if requirement.operator == "Exists":
        return value is not None
    if requirement.operator == "DoesNotExist":
        return value is None
    if requirement.operator == "In":
        return value in wanted
    if requirement.operator == "NotIn":
        return value not in wanted
    if value is None:
        return False
    return int(value) > int(wanted[0]) if requirement.operator == "Gt" else int(value) < int(wanted[0])


def _chosen(selector, labels):
    if selector is None:
        return False
    return all(labels.get(k) == v for k, v in selector.match_labels) and all(
        _holds(r, labels) for r in selector.match_expressions
    )


def _matches(term, owner, other):
    """Whether a pod affinity term of ``owner`` means ``other``."""
    chosen = term.namespace_selector
    named = term.namespaces or (() if chosen is not None else (owner.namespace,))
    if other.namespace not in named and not _chosen(chosen, {"kubernetes.io/metadata.name": other.namespace}):
        return False
    alike = _same(term.match_label_keys, owner, other) and _unlike(term.mismatch_label_keys, owner, other)
    return _chosen(term.selector, other.labels) and alike


def _same(keys, owner, other):
    return all(other.labels.get(key) == owner.labels[key] for key in keys if key in owner.labels)


def _unlike(keys, owner, other):
    return all(other.labels.get(key) != owner.labels[key] for key in keys if key in owner.labels)


def _required(pod, kind):
    affinity = pod.spec.affinity and getattr(pod.spec.affinity, kind)
    return affinity.required if affinity else ()


def _affine(pod, node, pods):
    """Every term has, in the node's domain, a pod that all terms mean; the first of its kind needs none."""
    terms = _required(pod, "pod")
    if not terms:
        return True
    if any(term.topology_key not in node.labels for term in terms):
        return False
    meant = [other for other in pods if all(_matches(term, pod, other) for term in terms)]
    if all(any(other.node.labels.get(t.topology_key) == node.labels[t.topology_key] for other in meant) for t in terms):
        return True
    nobody = not any(term.topology_key in other.node.labels for other in meant for term in terms)
    return nobody and all(_matches(term, pod, pod) for term in terms)


def _apart(pod, node, pods):
    def near(term, other):
        key = term.topology_key
        return key in node.labels and node.labels[key] == other.node.labels.get(key)

    mine = any(_matches(t, pod, other) and near(t, other) for t in _required(pod, "pod_anti") for other in pods)
    theirs = any(_matches(t, other, pod) and near(t, other) for other in pods for t in _required(other, "pod_anti"))
    return not mine and not theirs


def _hard(pod):
    return [c for c in pod.spec.spread if c.when_unsatisfiable == "DoNotSchedule"]


def _even(pod, constraint, node, pods, nodes):
    key = constraint.topology_key
    if any(other.topology_key not in node.labels for other in _hard(pod)):
        return False
    counted = [n for n in nodes if _is_counted(pod, constraint, n)]
    count = dict.fromkeys((n.labels[key] for n in counted), 0)
    for other in pods:
        if other.leaving or other.namespace != pod.namespace or other.node not in counted:
            continue
        counts = constraint.selector != LabelSelector() or set(constraint.match_label_keys) & pod.labels.keys()
        if counts and _chosen(constraint.selector, other.labels) and _same(constraint.match_label_keys, pod, other):
            count[other.node.labels[key]] += 1
    least = min(count.values(), default=0)
    if len(count) < (constraint.min_domains or 1):
        least = 0
    itself = _chosen(constraint.selector, pod.labels)
    return count.get(node.labels[key], 0) + itself - least <= constraint.max_skew


def _is_counted(pod, constraint, node):
    """Whether a node counts for a constraint: all keys are there, and the policies do not leave it out."""
    if any(other.topology_key not in node.labels for other in _hard(pod)):
        return False
    if constraint.node_affinity_policy == "Honor" and not _selected(pod, node):
        return False
    return constraint.node_taints_policy == "Ignore" or _tolerates(pod, node, ("NoSchedule", "NoExecute"))


def _collide(one, other):
    same = (one.port, one.protocol) == (other.port, other.protocol)
    return same and ("0.0.0.0" in (one.ip, other.ip) or one.ip == other.ip)
