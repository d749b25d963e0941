"""The admission policy that keeps replacements of what was moved away from where it was.

It is installed once and changes nothing by itself: what it does to pods of which controller stands in the ConfigMaps
that `tenure.clusters.kubernetes.external.reservations` writes, and no right to change the policy is needed for that.
It answers inside the API server, so there is no webhook that could fail; where it cannot be evaluated, pods are created
as they are. Whether it is in effect, and for which version of a ConfigMap, it says of that ConfigMap itself when a
write of it is tried and not carried out: an API server reads ConfigMaps for policies some time after they were written,
and never again once no policy had a binding that reads any (https://github.com/kubernetes/kubernetes/issues/130887).
"""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes.keys import HOLE_TAINT as TAINT
from tenure.clusters.kubernetes.keys import KEPT_OFF, SEEN
from tenure.clusters.kubernetes.keys import MOVES_LABEL as LABEL

NAME: Final = "tenure-moves"
GROUP: Final = "admissionregistration.k8s.io"
BINDINGS: Final = "mutatingadmissionpolicybindings"
BINDING_PATH: Final = f"/apis/{GROUP}/v1/{BINDINGS}/{NAME}"

_AFFINITY: Final = "/spec/affinity"
_NODE: Final = f"{_AFFINITY}/nodeAffinity"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_NODES: Final = "object.spec.affinity.nodeAffinity"

_MOVED: Final = """\
has(object.metadata.ownerReferences) && has(params.data) && object.metadata.ownerReferences.exists(o,
  has(o.controller) && o.controller && (o.uid + ".avoid") in params.data)"""

_TRIED: Final = """\
has(request.dryRun) && request.dryRun && object.metadata.namespace == params.metadata.namespace
&& object.metadata.name == params.metadata.name"""

_OF_POD: Final = 'request.resource.resource == "pods"'

_VARIABLES: Final = {
    "owner": "object.metadata.ownerReferences.filter(o, has(o.controller) && o.controller)[0].uid",
    "avoid": 'params.data[variables.owner + ".avoid"]',
    "prefer": """\
(variables.owner + ".prefer") in params.data ? params.data[variables.owner + ".prefer"].split(" ") : []""",
    "tolerate": f"""\
(variables.owner + ".tolerate") in params.data
? [{{"key": dyn("{TAINT}"), "operator": dyn("Equal"), "effect": dyn("NoSchedule"),
    "value": dyn(params.data[variables.owner + ".tolerate"])}}]
: []""",
    "away": """\
variables.avoid.split(" ").map(n,
  {"key": dyn("metadata.name"), "operator": dyn("NotIn"), "values": dyn([n])})""",
    "near": """\
variables.prefer.map(n, {"weight": dyn(100), "preference": dyn({"matchFields": [
  {"key": dyn("metadata.name"), "operator": dyn("In"), "values": dyn([n])}]})})""",
    "terms": f"""\
has(object.spec.affinity) && has({_NODES}) && has({_NODES}.{_REQUIRED})
? {_NODES}.{_REQUIRED}.nodeSelectorTerms : []""",
}
"""Read anew for each pod: what its controller's entry says, and the terms of node affinity that it has already."""

_KEEP_OFF: Final = f"""\
!({_OF_POD}) ? [] :
(has(object.metadata.annotations)
 ? [JSONPatch{{op: "add", path: "/metadata/annotations/{KEPT_OFF.replace("/", "~1")}", value: variables.avoid}}]
 : [JSONPatch{{op: "add", path: "/metadata/annotations", value: {{"{KEPT_OFF}": variables.avoid}}}}])
+ variables.tolerate.map(t, has(object.spec.tolerations)
  ? JSONPatch{{op: "add", path: "/spec/tolerations/-", value: t}}
  : JSONPatch{{op: "add", path: "/spec/tolerations", value: [t]}})
+ (!has(object.spec.affinity)
   ? [JSONPatch{{op: "add", path: "{_AFFINITY}", value:
        {{"nodeAffinity": {{"{_REQUIRED}": {{"nodeSelectorTerms": [{{"matchFields": variables.away}}]}}}}}}}}]
   : !has({_NODES})
   ? [JSONPatch{{op: "add", path: "{_NODE}", value:
        {{"{_REQUIRED}": {{"nodeSelectorTerms": [{{"matchFields": variables.away}}]}}}}}}]
   : variables.terms.size() == 0
   ? [JSONPatch{{op: "add", path: "{_NODE}/{_REQUIRED}", value:
        {{"nodeSelectorTerms": [{{"matchFields": variables.away}}]}}}}]
   : variables.terms.transformList(i, t, JSONPatch{{op: "add",
       path: "{_NODE}/{_REQUIRED}/nodeSelectorTerms/" + string(i) + "/matchFields",
       value: (has(t.matchFields) ? t.matchFields.map(f, {{"key": dyn(f.key), "operator": dyn(string(f.operator)),
         "values": dyn(f.values.map(v, v))}}) : []) + variables.away}}))"""

_GUIDE: Final = f"""\
!({_OF_POD}) || variables.near.size() == 0 ? []
: has({_NODES}.{_PREFERRED})
? variables.near.map(n, JSONPatch{{op: "add", path: "{_NODE}/{_PREFERRED}/-", value: n}})
: [JSONPatch{{op: "add", path: "{_NODE}/{_PREFERRED}", value: variables.near}}]"""

_ANSWER: Final = f"""\
{_OF_POD} ? [] : [JSONPatch{{op: "add", path: "/metadata/annotations",
  value: {{"{SEEN}": params.metadata.resourceVersion}}}}]"""


def policy(metadata: dict[str, Any]) -> dict[str, Any]:
    """Give the policy."""
    core = {"apiGroups": [""], "apiVersions": ["v1"]}
    made, written = ({"operations": ["CREATE"], "resources": ["pods"]},
                     {"operations": ["UPDATE"], "resources": ["configmaps"]})  # fmt: skip
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
            "matchConstraints": {"resourceRules": [core | made, core | written]},
            "matchConditions": [{"name": "moved", "expression": f"{_OF_POD} ? ({_MOVED}) : ({_TRIED})"}],
            "failurePolicy": "Ignore",
            "reinvocationPolicy": "Never",
            "variables": [{"name": name, "expression": text} for name, text in _VARIABLES.items()],
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": text}} for text in (_KEEP_OFF, _GUIDE, _ANSWER)
            ],
        },
    }


def binding(metadata: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Give what makes the policy hold, with the ConfigMaps of a namespace; without any of those it does nothing."""
    read = {
        "namespace": namespace,
        "selector": {"matchLabels": {LABEL: "true"}},
        "parameterNotFoundAction": "Allow",
    }
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MutatingAdmissionPolicyBinding",
        "metadata": metadata,
        "spec": {"policyName": NAME, "paramRef": read},
    }
