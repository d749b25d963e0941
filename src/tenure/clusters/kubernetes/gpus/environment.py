"""The admission policy that has containers told of the parts of GPUs that they get.

It gives each container of a pod that asks for a part of a GPU an environment variable that is read from the pod's own
annotation when the container starts. The annotation comes with the pod's binding. A variable of that name that the pod
has already stays as it is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from tenure.clusters.kubernetes import keys
from tenure.model.manifests.pods import SHARE_ANNOTATIONS

NAME: Final = "tenure-gpu-parts"
VARIABLE: Final = "NVIDIA_VISIBLE_DEVICES"
GROUP: Final = "admissionregistration.k8s.io"

_ADDED: Final = f"""\
{{"name": dyn("{VARIABLE}"),
  "valueFrom": dyn({{"fieldRef": {{"fieldPath": "metadata.annotations['{keys.VISIBLE_DEVICES}']"}}}})}}"""


def _told(which: str) -> str:
    """Give the mutation of one list of containers."""
    listed = f"object.spec.{which}"
    return f"""\
!has({listed}) ? [] :
{listed}.transformList(i, c, !has(c.env) || !c.env.exists(e, e.name == "{VARIABLE}"), has(c.env)
  ? JSONPatch{{op: "add", path: "/spec/{which}/" + string(i) + "/env/-", value: {_ADDED}}}
  : JSONPatch{{op: "add", path: "/spec/{which}/" + string(i) + "/env", value: [{_ADDED}]}})"""


def policy(metadata: dict[str, Any], schedulers: Sequence[str]) -> dict[str, Any]:
    """Give the policy; it holds for the pods of some schedulers."""
    pods = {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["pods"]}
    names = "[" + ", ".join(f"'{name}'" for name in schedulers) + "]"
    asked = " || ".join(f"'{key}' in object.metadata.annotations" for key in SHARE_ANNOTATIONS)
    conditions = {
        "own": f"has(object.spec.schedulerName) && object.spec.schedulerName in {names}",
        "part": f"has(object.metadata.annotations) && ({asked})",
    }
    return {
        "apiVersion": f"{GROUP}/v1",
        "kind": "MutatingAdmissionPolicy",
        "metadata": metadata,
        "spec": {
            "matchConstraints": {"resourceRules": [pods]},
            "matchConditions": [{"name": name, "expression": text} for name, text in conditions.items()],
            "failurePolicy": "Fail",
            "reinvocationPolicy": "IfNeeded",
            "mutations": [
                {"patchType": "JSONPatch", "jsonPatch": {"expression": _told(which)}}
                for which in ("containers", "initContainers")
            ],
        },
    }


def binding(metadata: dict[str, Any]) -> dict[str, Any]:
    """Give what makes the policy hold."""
    spec = {"policyName": NAME}
    return {"apiVersion": f"{GROUP}/v1", "kind": "MutatingAdmissionPolicyBinding", "metadata": metadata, "spec": spec}
