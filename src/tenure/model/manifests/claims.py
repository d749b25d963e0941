"""PersistentVolumeClaims as their manifests describe them."""

from __future__ import annotations

from functools import cache
from typing import Any

from tenure.model.entries import EntryKind
from tenure.model.fields.kinds import TextKind
from tenure.model.fields.records import kind_of, record_of
from tenure.model.fields.vocabulary import Bytes
from tenure.model.manifests.pods import entry_of, metadata_entry
from tenure.model.selectors import LabelSelector
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.volumes import VolumeClaim

CLAIM = ("v1", "PersistentVolumeClaim")
"""Version and kind of a claim's manifest."""

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


@cache
def claim_entry() -> EntryKind:
    """Give the entry of a claim's spec."""
    fields = {field.key: field.kind for field in record_of(VolumeClaim).fields.values()}
    return entry_of(
        "claim",
        volumeName=TextKind(),
        storageClassName=TextKind(),
        accessModes=fields["accessModes"],
        volumeMode=fields["volumeMode"],
        volumeAttributesClassName=TextKind(),
        selector=record_of(LabelSelector),
        resources=entry_of("resources", requests=entry_of("requests", storage=kind_of(Bytes))),
    )


def read_template(value: Any, namespace: str, at: Trail, report: ProblemReport) -> VolumeClaim | None:
    """Read a template of claims that pods of a namespace get, each by a name of its own.

    None where that cannot be done, and where no class is named: which one it then gets, only the API server knows.
    """
    plain = value if isinstance(value, dict) else {}
    spec = plain.get("spec")
    if not isinstance(spec, dict) or (spec.get("storageClassName") is None and not spec.get("volumeName")):
        return None
    return read_claim({"spec": spec, "metadata": {"name": "template", "namespace": namespace}}, at, report)


def read_claim(value: dict[str, Any], at: Trail, report: ProblemReport) -> VolumeClaim | None:
    """Read the manifest of a claim; None where that cannot be done."""
    metadata = metadata_entry().decode(value.get("metadata") or {}, (at, "metadata"), report)
    read = claim_entry().decode(value.get("spec") or {}, (at, "spec"), report)
    if metadata is BAD or read is BAD:
        return None
    name = metadata.values.get("name")
    if not name:
        report.add(((at, "metadata"), "name"), "is missing; it is required")
        return None
    spec, said = read.values, metadata.values.get("annotations", {})
    resources = spec.get("resources")
    requests = resources.values.get("requests") if resources else None
    return VolumeClaim(
        name=name,
        namespace=metadata.values.get("namespace", "default"),
        volume=spec.get("volumeName", ""),
        storage_class=spec.get("storageClassName", ""),
        requests=requests.values.get("storage", 0) if requests else 0,
        access_modes=spec.get("accessModes", ()),
        volume_mode=spec.get("volumeMode", "Filesystem"),
        attributes_class=spec.get("volumeAttributesClassName", ""),
        selector=spec.get("selector"),
        selected_node=said.get(SELECTED_NODE, ""),
        is_bound=BIND_COMPLETED in said,
    )
