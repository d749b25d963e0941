"""Makes the Helm chart: templates of all that ``tenure install`` can print."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from tenure.clusters.kubernetes.install.crds import custom_resource_definitions
from tenure.clusters.kubernetes.install.manifests import CONFIG_FILE, write
from tenure.clusters.kubernetes.install.rbac import NAME
from tenure.model.entries import API_VERSION, SETTINGS_KIND
from tenure.model.settings import CAUSES
from tools.deploy import values
from tools.deploy.choices import manifests, settings
from tools.deploy.conditions import Conditions
from tools.deploy.merge import Branch, branches
from tools.deploy.template import TemplateWriter, without_brackets

PARTS: Final = Path(__file__).parent / "parts"
"""What of the chart no manifest says: helpers, notes, the text of its README."""

_SETTINGS: Final = "zzsettingszz"
_OF_ALL_POOLS: Final = "{{- if .Values.shared }}\n"
_FILES: Final = {
    "Namespace": "namespace",
    "PriorityClass": "priorityclass",
    "ServiceAccount": "rbac",
    "ClusterRole": "rbac",
    "ClusterRoleBinding": "rbac",
    "Role": "rbac",
    "RoleBinding": "rbac",
    "MutatingAdmissionPolicy": "admission",
    "MutatingAdmissionPolicyBinding": "admission",
    "ValidatingAdmissionPolicy": "admission",
    "ValidatingAdmissionPolicyBinding": "admission",
    "ConfigMap": "configmap",
    "NetworkPolicy": "networkpolicy",
    "PersistentVolumeClaim": "history",
    "Deployment": "deployment",
    "PodDisruptionBudget": "poddisruptionbudget",
    "Service": "monitoring",
    "ServiceMonitor": "monitoring",
}
"""The template that objects of a kind are written into."""


def version() -> str:
    """Give the version of the project, which is the chart's as well."""
    project = Path(__file__).parents[2] / "pyproject.toml"
    made: str = tomllib.loads(project.read_text(encoding="utf-8"))["project"]["version"]
    return made


def chart() -> dict[str, str]:
    """Give the files of the chart, by their paths in it."""
    made = {
        "Chart.yaml": write([_about()]).removeprefix("---\n"),
        ".helmignore": "*.orig\n*.rej\n.DS_Store\n",
        "values.yaml": values.as_yaml(),
        "values.schema.json": json.dumps(values.as_schema(), indent=2, ensure_ascii=False) + "\n",
        "README.md": _part("README.md").replace("VALUES\n", values.as_table()),
        "templates/NOTES.txt": _part("NOTES.txt"),
        "templates/_helpers.tpl": _helpers(),
        "templates/crds.yaml": _definitions(),
    }
    return made | _templates()


def _about() -> dict[str, Any]:
    return {
        "apiVersion": "v2",
        "name": NAME,
        "description": "A batch scheduler and rescheduler in which every eviction has to pay for itself",
        "type": "application",
        "version": version(),
        "appVersion": version(),
        "kubeVersion": ">=1.30.0-0",
        "keywords": ["scheduler", "batch", "gpu", "gang", "fair-share", "queue"],
        "annotations": {"artifacthub.io/license": "Apache-2.0"},
    }


def _part(name: str) -> str:
    return (PARTS / name).read_text(encoding="utf-8")


def _helpers() -> str:
    words = " ".join(f'"{cause}"' for cause in CAUSES)
    head = f"apiVersion: {API_VERSION}\nkind: {SETTINGS_KIND}\n"
    return _part("_helpers.tpl").replace("CAUSES", words).replace("HEAD\n", head)


def _definitions() -> str:
    kept = "    {{- if .Values.crds.keep }}\n    helm.sh/resource-policy: keep\n    {{- end }}\n"
    written = []
    for definition in custom_resource_definitions():
        body = {**definition, "metadata": {**definition["metadata"], "annotations": {"zzkeepzz": ""}}}
        text = write([body])
        assert "{{" not in text, "is read as a template"
        written.append(text.replace("    zzkeepzz: ''\n", kept))
    return "{{- if and .Values.shared .Values.crds.install }}\n" + "".join(written) + "{{- end }}\n"


def _templates() -> dict[str, str]:
    every = list(settings())
    conditions = Conditions(every)
    writer = TemplateWriter(conditions)
    listed = [(1 << number, [_keyed(item) for item in manifests(chosen)]) for number, chosen in enumerate(every)]
    files: dict[str, list[str]] = {}
    for branch in branches(listed, identity):
        kind, name = branch.key
        text = "---\n" + writer.document(branch.tree, branch.variants)
        text = text.replace(
            f"{CONFIG_FILE}: {_SETTINGS}\n",
            f'{CONFIG_FILE}: |-\n    {{{{- include "tenure.config" . | nindent 4 }}}}\n',
        )
        if kind == "MutatingAdmissionPolicy":
            text = f'{{{{- include "tenure.mutates" . }}}}\n{text}'
        wanted = list(_conditions(conditions, branch, kind, name))
        if wanted:
            condition = f"and {' '.join(wanted)}" if len(wanted) > 1 else without_brackets(wanted[0])
            text = f"{{{{- if {condition} }}}}\n{text}{{{{- end }}}}\n"
        file = "console" if f"{NAME}-console" in name else _FILES[kind]
        files.setdefault(f"templates/{file}.yaml", []).append(text)
    return {path: "".join(texts) for path, texts in files.items()}


def _conditions(conditions: Conditions, branch: Branch, kind: str, name: str) -> Iterator[str]:
    """Give the conditions under which there is an object."""
    if "zzpoolzz" not in name:
        yield ".Values.shared"
    if kind == "Namespace":
        yield ".Values.namespace.create"
    made = conditions.of(branch.variants, conditions.all)
    if made:
        yield made


def _keyed(item: dict[str, Any]) -> tuple[Any, Any]:
    if item["kind"] == "ConfigMap":
        item = {**item, "data": {CONFIG_FILE: _SETTINGS}}
    return (item["kind"], item["metadata"]["name"]), item


def identity(item: Any) -> Any:
    """Give what makes an item of a list the same one in another installation: its name, or all of it."""
    return item["name"] if isinstance(item, dict) and "name" in item else json.dumps(item)
