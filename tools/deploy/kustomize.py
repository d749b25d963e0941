"""Makes the kustomize base, and components that change it as an option of ``tenure install`` would."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

from tenure.clusters.kubernetes.install.console import console_objects
from tenure.clusters.kubernetes.install.installation import HistorySecret, HistoryVolume, Installation
from tenure.clusters.kubernetes.install.manifests import objects, write
from tenure.clusters.kubernetes.install.rbac import NAME, Role
from tools.deploy.chart import version

Object = dict[str, Any]

BASE: Final = Installation(image=f"{NAME}:{version()}")
COMPONENTS: Final = {
    "read-only": replace(BASE, role=Role.READ_ONLY),
    "service-monitor": replace(BASE, service_monitor=True),
    "history-postgresql": replace(BASE, history=HistorySecret(name="tenure-history")),
    "history-volume": replace(BASE, replicas=1, history=HistoryVolume(size="10Gi")),
    "share-gpus": replace(BASE, share_gpus=True),
    "no-network-policy": replace(BASE, network_policy=False),
}
"""Components, by the installation that each makes of the base."""

CONSOLE: Final = "console"


def kustomize() -> dict[str, str]:
    """Give the files by their paths."""
    base = objects(BASE)
    made = {
        "base/tenure.yaml": write(base),
        "base/kustomization.yaml": _kustomization("Kustomization", {"resources": ["tenure.yaml"]}),
        f"components/{CONSOLE}/console.yaml": write(console_objects(BASE)),
        f"components/{CONSOLE}/kustomization.yaml": _kustomization("Component", {"resources": ["console.yaml"]}),
    }
    for name, asked in COMPONENTS.items():
        made |= {f"components/{name}/{path}": text for path, text in _component(base, objects(asked)).items()}
    return made


def _component(base: list[Object], wanted: list[Object]) -> dict[str, str]:
    old, new = ({_key(item): item for item in listed} for listed in (base, wanted))
    added = [item for key, item in new.items() if key not in old]
    patches: list[Object] = []
    for key, item in old.items():
        kind, namespace, name = key
        target = {"kind": kind, "name": name, **({"namespace": namespace} if namespace else {})}
        if key not in new:
            gone = {
                "apiVersion": item["apiVersion"],
                "kind": kind,
                "metadata": {**_named(item), "name": name},
                "$patch": "delete",
            }
            patches.append({"target": target, "patch": write([gone])})
        elif new[key] != item:
            patches.append({"target": target, "patch": write([list(_differences(item, new[key], ""))])})  # type: ignore[list-item]
    body: Object = {}
    files = {}
    if added:
        body["resources"] = ["added.yaml"]
        files["added.yaml"] = write(added)
    if patches:
        body["patches"] = patches
    return {"kustomization.yaml": _kustomization("Component", body), **files}


def _named(item: Object) -> Object:
    namespace = item["metadata"].get("namespace")
    return {"namespace": namespace} if namespace else {}


def _key(item: Object) -> tuple[str, str, str]:
    return item["kind"], item["metadata"].get("namespace", ""), item["metadata"]["name"]


def _differences(old: Any, new: Any, path: str) -> Iterator[Object]:
    """Give JSON patches that make one value of another: no deeper than whole lists."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        yield {"op": "replace", "path": path, "value": new}
        return
    for key in [*old, *(key for key in new if key not in old)]:
        inner = f"{path}/{key.replace('~', '~0').replace('/', '~1')}"
        if key not in new:
            yield {"op": "remove", "path": inner}
        elif key not in old:
            yield {"op": "add", "path": inner, "value": new[key]}
        elif old[key] != new[key]:
            yield from _differences(old[key], new[key], inner)


def _kustomization(kind: str, body: Object) -> str:
    version_ = "v1beta1" if kind == "Kustomization" else "v1alpha1"
    return write([{"apiVersion": f"kustomize.config.k8s.io/{version_}", "kind": kind, **body}]).removeprefix("---\n")
