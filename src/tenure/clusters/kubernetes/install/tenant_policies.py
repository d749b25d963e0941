"""The ValidatingAdmissionPolicies that refuse at submission what the scheduler would not believe anyway.

The API server evaluates them itself: no webhook can fail, and nothing of Tenure's is asked. Without them little is
lost but the early answer (`docs/trust.md`). What they never restrict: administrators (``system:masters``), Kubernetes'
own controllers, and Tenure's service account, which has policies of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.clusters.kubernetes import keys
from tenure.clusters.kubernetes.install.crds import VERSIONS
from tenure.clusters.kubernetes.install.rbac import NAME
from tenure.model.entries import API_VERSIONS
from tenure.model.manifests.pods import KAI_SHARE
from tenure.model.manifests.workload_kind import built_in_kinds

GROUP: Final = "admissionregistration.k8s.io"
TENANT_LABEL: Final = "tenure.dev/tenant"
"""Label of namespaces in which a PodDisruptionBudget has to allow an eviction at some time: ``"true"``."""

ONLY_LABEL: Final = "tenure.dev/only"
"""Label of namespaces whose pods have to be Tenure's: ``"true"``."""

RESERVED: Final = (
    keys.STARTED, keys.DEVICES, keys.VISIBLE_DEVICES, keys.NOMINATION, keys.STALE_SINCE, keys.EVICTION, keys.NOTICE,
    keys.NOT_BEFORE,
)  # fmt: skip
"""Annotations that only Tenure writes."""

JOINS: Final = tuple(key for kind in built_in_kinds() for key in kind.joined_by)
"""What pods name an object of a kind by to which they belong, where no owner says so."""

_FIXED: Final = (
    keys.POD_GROUP, *keys.FOREIGN_GROUPS, *JOINS, keys.SUB_GROUP, keys.PREEMPTIBLE, keys.KAI_PREEMPTIBILITY,
)  # fmt: skip
"""What is read as a label and as an annotation alike."""

FIXED_LABELS: Final = (*keys.QUEUE_LABELS, *_FIXED, keys.KAI_SUB_GROUP)
FIXED_ANNOTATIONS: Final = (
    *_FIXED, keys.ROLE,
    "tenure.dev/gpu-fraction", "tenure.dev/gpu-memory", "tenure.dev/gpu-devices", *KAI_SHARE,
)  # fmt: skip
"""What decides where a pod is charged, and what spares it: it stays as it was when the pod was bound."""

_FIRST_VERSION: Final = API_VERSIONS[-1]
"""The version in which queues are read: that of older definitions too, where they are administered apart."""

_PAGES: Final = "tenure-evictions-"
_OWN_MAPS: Final = ("tenure-queues-", "tenure-moves-")
_OWN_CONDITIONS: Final = ("PodScheduled", "DisruptionTarget", keys.SEAL)

Object = dict[str, Any]
Named = Callable[[str], Object]
"""Makes the metadata of an object from its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPolicy:
    """One policy. ``holds`` has expressions, each with what is said where it does not hold.

    ``params`` is the kind of the objects for each of which it is evaluated, ``bound`` where it holds. ``is_needed``: it
    refuses what it cannot be evaluated for.
    """

    name: str
    rules: Sequence[Object]
    conditions: Mapping[str, str]
    holds: Mapping[str, str]
    variables: Mapping[str, str] = field(default_factory=dict)
    params: Object | None = None
    bound: Object | None = None
    is_needed: bool = True

    def objects(self, metadata: Named) -> Iterator[Object]:
        """Give the policy, and what makes it hold."""
        spec: Object = {
            "failurePolicy": "Fail" if self.is_needed else "Ignore",
            "matchConstraints": {"resourceRules": list(self.rules)},
            "matchConditions": [{"name": word, "expression": text} for word, text in self.conditions.items()],
            "variables": [{"name": word, "expression": text} for word, text in self.variables.items()],
            "validations": [{"expression": text, "message": message} for text, message in self.holds.items()],
        }
        binding: Object = {"policyName": self.name, "validationActions": ["Deny"]}
        if self.params is not None:
            spec["paramKind"] = self.params
            binding["paramRef"] = {"selector": {}, "parameterNotFoundAction": "Allow"}
        if self.bound is not None:
            binding["matchResources"] = self.bound
        for kind, body in (("", spec), ("Binding", binding)):
            yield {
                "apiVersion": f"{GROUP}/v1",
                "kind": f"ValidatingAdmissionPolicy{kind}",
                "metadata": metadata(self.name),
                "spec": body,
            }


def policies(namespace: str, schedulers: Sequence[str]) -> tuple[TenantPolicy, ...]:
    """Give the policies of an installation.

    Parameters
    ----------
    namespace
        The namespace of Tenure's service accounts, of which each pool has one.
    schedulers
        Names of schedulers whose pods are Tenure's.
    """
    account = f"system:serviceaccount:{namespace}:{NAME}"
    own = _own(account)
    tenants, ours = _tenants(own), f"object.spec.schedulerName in {_listed(schedulers)}"
    return (
        _reserved(tenants),
        _placed(tenants, ours),
        _unbound(own, ours),
        _only(own, ours),
        _priorities(tenants),
        _own_class(namespace),
        _budgets(tenants),
        _queues(tenants),
        *_itself(namespace, account),
    )


def _reserved(tenants: str) -> TenantPolicy:
    return TenantPolicy(
        name="tenure-reserved",
        rules=[_rule("", "pods", "CREATE", "UPDATE"), _rule("", "pods/status", "UPDATE")],
        conditions={"tenants": tenants},
        variables=_before_and_after("annotations"),
        holds={
            f"{_listed(RESERVED)}.all(k, {_SAME})": f"only Tenure writes the annotations {', '.join(RESERVED)}",
            f"{_seal('object')} == {_seal('oldObject')}": f"only Tenure writes the condition {keys.SEAL}",
        },
    )


def _placed(tenants: str, ours: str) -> TenantPolicy:
    labels = {f"{word}Labels": text for word, text in _before_and_after("labels").items()}
    same_labels = _SAME.replace("variables.old", "variables.oldLabels").replace("variables.new", "variables.newLabels")
    return TenantPolicy(
        name="tenure-placed",
        rules=[_rule("", "pods", "UPDATE")],
        conditions={
            "tenants": tenants,
            "placed": f"{ours} && has(oldObject.spec.nodeName) && oldObject.spec.nodeName != ''",
        },
        variables={**_before_and_after("annotations"), **labels},
        holds={
            f"{_listed(FIXED_LABELS)}.all(k, {same_labels})": (
                f"a pod that runs keeps its labels {', '.join(FIXED_LABELS)}"
            ),
            f"{_listed(FIXED_ANNOTATIONS)}.all(k, {_SAME})": (
                f"a pod that runs keeps its annotations {', '.join(FIXED_ANNOTATIONS)}"
            ),
            f"({_owners('object')}) == ({_owners('oldObject')})": "a pod that runs keeps its controller",
        },
    )


def _unbound(own: str, ours: str) -> TenantPolicy:
    """Refuse pods that are placed already: no queue would have been asked, and the scheduler comes too late.

    A controller of Kubernetes' makes them as a tenant's template says, so it is held to this as well.
    """
    return TenantPolicy(
        name="tenure-binding",
        rules=[_rule("", "pods", "CREATE")],
        conditions={"makers": _makers(own), "ours": ours},
        holds={
            "!has(object.spec.nodeName) || object.spec.nodeName == ''": (
                "Tenure places its pods itself: leave spec.nodeName out"
            )
        },
    )


def _only(own: str, ours: str) -> TenantPolicy:
    """Refuse pods that leave out Tenure, and so every queue, in the namespaces that are to have no others."""
    return TenantPolicy(
        name="tenure-only",
        rules=[_rule("", "pods", "CREATE")],
        conditions={"makers": _makers(own)},
        holds={ours: "the pods of this namespace are Tenure's to place: set spec.schedulerName to tenure"},
        bound={"namespaceSelector": {"matchLabels": {ONLY_LABEL: "true"}}},
    )


def _makers(own: str) -> str:
    """Give the condition that the request is neither Tenure's, nor an administrator's, nor a kubelet's."""
    return f"!{own} && !request.userInfo.groups.exists(g, g in ['system:masters', 'system:nodes'])"


def _priorities(tenants: str) -> TenantPolicy:
    may = "authorizer.group('scheduling.k8s.io').resource('priorityclasses').name(variables.new).check('use').allowed()"
    named = "{0} != null && has({0}.spec.priorityClassName) ? {0}.spec.priorityClassName : ''"
    return TenantPolicy(
        name="tenure-priorities",
        rules=[_rule("tenure.dev", "podgroups", "CREATE", "UPDATE", versions=VERSIONS)],
        conditions={"tenants": tenants},
        variables={"new": named.format("object"), "old": named.format("oldObject")},
        holds={
            f"variables.new == '' || variables.new == variables.old || {may}": (
                "needs the right to use that PriorityClass; name it on the pods, where a ResourceQuota counts it"
            )
        },
    )


def _own_class(namespace: str) -> TenantPolicy:
    """Keep the class that is installed for Tenure, the highest that there is, from all other pods."""
    return TenantPolicy(
        name="tenure-class",
        rules=[_rule("", "pods", "CREATE")],
        conditions={"named": f"has(object.spec.priorityClassName) && object.spec.priorityClassName == '{NAME}'"},
        holds={f"request.namespace == '{namespace}'": f"the PriorityClass {NAME} is for Tenure itself; name another"},
    )


def _budgets(tenants: str) -> TenantPolicy:
    never = (
        "has(object.spec.maxUnavailable) && string(object.spec.maxUnavailable) in ['0', '0%']",
        "has(object.spec.minAvailable) && string(object.spec.minAvailable) == '100%'",
    )
    return TenantPolicy(
        name="tenure-budgets",
        rules=[_rule("policy", "poddisruptionbudgets", "CREATE", "UPDATE")],
        conditions={"tenants": tenants},
        holds={
            f"!({never[0]}) && !({never[1]})": (
                "a budget has to allow an eviction at some time; raise maxUnavailable or lower minAvailable"
            )
        },
        bound={"namespaceSelector": {"matchLabels": {TENANT_LABEL: "true"}}},
    )


def _queues(tenants: str) -> TenantPolicy:
    """Refuse pods and groups for a queue whose `namespaceSelector` does not admit their namespace.

    Each queue is a parameter, so it is evaluated once for each queue that there is. Without the kind, while it is being
    defined or once it is gone, the API server could evaluate it for no pod, of whichever scheduler and namespace. The
    scheduler refuses such pods as well, so nothing is lost where the policy lets them pass.
    """
    labelled = " || ".join(
        f"('{key}' in variables.labels && variables.labels['{key}'] == params.metadata.name)"
        for key in keys.QUEUE_LABELS
    )
    grouped = "has(object.spec.queue) && object.spec.queue == params.metadata.name"
    there = "(e.key in variables.has)"
    listed = f"({there} && variables.has[e.key] in e.values)"
    expression = (
        f"e.operator == 'In' ? {listed} : e.operator == 'NotIn' ? !{listed}"
        f" : e.operator == 'Exists' ? {there} : !{there}"
    )
    wanted = "params.spec.namespaceSelector"
    equal = f"{wanted}.matchLabels.all(k, k in variables.has && variables.has[k] == {wanted}.matchLabels[k])"
    admits = (
        f"(!has({wanted}.matchLabels) || {equal})"
        f" && (!has({wanted}.matchExpressions) || {wanted}.matchExpressions.all(e, {expression}))"
    )
    return TenantPolicy(
        name="tenure-queues",
        rules=[
            _rule("", "pods", "CREATE", "UPDATE"),
            _rule("tenure.dev", "podgroups", "CREATE", "UPDATE", versions=VERSIONS),
        ],
        conditions={"tenants": tenants, "lives": "!has(object.metadata.deletionTimestamp)"},
        variables={
            "labels": _labels("object"),
            "has": "has(namespaceObject.metadata.labels) ? namespaceObject.metadata.labels : {}",
            "names": f"request.resource.resource == 'podgroups' ? ({grouped}) : ({labelled})",
        },
        holds={
            f"!variables.names || !has({wanted}) || ({admits})": (
                "this namespace may not use that queue: the queue's namespaceSelector does not admit it"
            )
        },
        params={"apiVersion": _FIRST_VERSION, "kind": "Queue"},
        is_needed=False,
    )


def _itself(namespace: str, account: str) -> Iterator[TenantPolicy]:
    """Hold Tenure's own accounts to what they are for, where rights alone cannot say it."""
    own = {"tenure": _own(account)}
    others = "{0}.status.conditions.filter(c, !(c.type in " + _listed(_OWN_CONDITIONS) + ")).map(c, c.type + c.status)"
    conditions = " == ".join(f"(has({o}.status.conditions) ? {others.format(o)} : [])" for o in ("object", "oldObject"))
    phases = " == ".join(f"(has({o}.status.phase) ? {o}.status.phase : '')" for o in ("object", "oldObject"))
    yield TenantPolicy(
        name="tenure-itself",
        rules=[_rule("", "pods/status", "UPDATE")],
        conditions=own,
        variables=_before_and_after("annotations"),
        holds={
            f"variables.new.all(k, k.startsWith('{keys.PREFIX}') || (k in variables.old"
            " && variables.old[k] == variables.new[k]))"
            f" && variables.old.all(k, k.startsWith('{keys.PREFIX}') || k in variables.new)": (
                "Tenure changes no annotation but its own"
            ),
            f"({_labels('object')}) == ({_labels('oldObject')})": "Tenure changes no label of a pod",
            phases: "Tenure changes no phase of a pod",
            conditions: f"Tenure changes no conditions but {', '.join(_OWN_CONDITIONS)}",
        },
    )
    told = "c.type == 'DisruptionTarget' && has(c.reason) && c.reason == 'PreemptionByScheduler'"
    held = f"request.namespace == '{namespace}' && '{keys.GPU_RESERVATION}' in ({_labels('oldObject')})"
    yield TenantPolicy(
        name="tenure-deletes",
        rules=[_rule("", "pods", "DELETE")],
        conditions=own,
        holds={
            "(has(request.dryRun) && request.dryRun) || (has(oldObject.status.conditions)"
            f" && oldObject.status.conditions.exists(c, {told})) || ({held})": (
                "Tenure deletes no pod but what it has said on it that it evicts, and its own that hold GPUs"
            )
        },
    )
    yield TenantPolicy(
        name="tenure-maps",
        rules=[_rule("", "configmaps", "CREATE")],
        conditions=own,
        variables={
            "pool": f"request.userInfo.username == '{account}' ? '{keys.DEFAULT_POOL}'"
            f" : request.userInfo.username.substring({len(account) + 1})",
            "page": f"'{_PAGES}' + variables.pool + '-'",
            "name": "object.metadata.name",
        },
        holds={
            f"request.namespace == '{namespace}'"
            f" && ({_listed(_OWN_MAPS)}.exists(p, variables.name == p + variables.pool)"
            " || (variables.name.startsWith(variables.page)"
            " && variables.name.substring(size(variables.page)).matches('^[0-9]+$')))": (
                "Tenure creates no ConfigMap but those of its own pool"
            )
        },
    )


def _own(account: str) -> str:
    """Give the condition that Tenure itself asks, of whichever pool."""
    return f"(request.userInfo.username == '{account}' || request.userInfo.username.startsWith('{account}-'))"


def _tenants(own: str) -> str:
    """Give the condition that whoever asks is neither Tenure, nor an administrator, nor a controller of Kubernetes'."""
    return (
        f"!{own}"
        " && !request.userInfo.username.startsWith('system:serviceaccount:kube-system:')"
        " && !(request.userInfo.username in ['system:kube-controller-manager', 'system:apiserver'])"
        " && !request.userInfo.groups.exists(g, g == 'system:masters')"
    )


def _rule(group: str, resource: str, *operations: str, versions: Sequence[str] = ("v1",)) -> Object:
    return {
        "apiGroups": [group],
        "apiVersions": list(versions),
        "operations": list(operations),
        "resources": [resource],
    }


def _listed(words: Sequence[str]) -> str:
    return "[" + ", ".join(f"'{word}'" for word in words) + "]"


_SAME: Final = "(k in variables.new ? variables.new[k] : '') == (k in variables.old ? variables.old[k] : '')"


def _before_and_after(what: str) -> dict[str, str]:
    return {
        word: f"{whose} != null && has({whose}.metadata.{what}) ? {whose}.metadata.{what} : {{}}"
        for word, whose in (("new", "object"), ("old", "oldObject"))
    }


def _labels(whose: str) -> str:
    return f"has({whose}.metadata.labels) ? {whose}.metadata.labels : {{}}"


def _owners(whose: str) -> str:
    found = f"{whose}.metadata.ownerReferences.filter(o, has(o.controller) && o.controller).map(o, o.kind + o.uid)"
    return f"has({whose}.metadata.ownerReferences) ? {found} : []"


def _seal(whose: str) -> str:
    found = f"{whose}.status.conditions.filter(c, c.type == '{keys.SEAL}').map(c, has(c.message) ? c.message : '')"
    return f"({whose} != null && has({whose}.status) && has({whose}.status.conditions) ? {found} : [])"
