"""ResourceClaims, ResourceSlices and DeviceClasses as their manifests describe them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast

from tenure.model.devices import (
    CelExpression,
    Device,
    DeviceAllocation,
    DeviceClaim,
    DeviceClass,
    DeviceSelector,
    DeviceSlice,
    DeviceTaint,
)
from tenure.model.fields.records import record_of
from tenure.model.values.report import BAD, ProblemReport, Trail, path_text

RESOURCE_CLAIM: Final = ("resource.k8s.io/v1", "ResourceClaim")
RESOURCE_CLAIM_TEMPLATE: Final = ("resource.k8s.io/v1", "ResourceClaimTemplate")
DEVICE_KINDS: Final = (RESOURCE_CLAIM, RESOURCE_CLAIM_TEMPLATE)
"""Version and kind of the manifests."""

MADE: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of a claim that a scheduler made for a pod that asks for extended resources."""

OF_TEMPLATE: Final = "template/"
"""What begins the name that stands for the claim that a template makes for a pod; no object can be called so."""


def flat_claim(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Give the manifest of a claim as a cluster file has it."""
    spec, status = plain.get("spec") or {}, plain.get("status") or {}
    found = {**_named(plain, is_namespaced=True), **_demand(spec)}
    allocation = status.get("allocation")
    if allocation is not None:
        results = (allocation.get("devices") or {}).get("results") or []
        found["allocation"] = {"devices": results, "nodeSelector": allocation.get("nodeSelector")}
        if allocation.get("allocationTimestamp"):
            found["allocation"]["allocationTimestamp"] = allocation["allocationTimestamp"]
        reported = [one for one in status.get("devices") or () if one.get("conditions")]
        found["devices"] = [{k: one.get(k) for k in ("driver", "pool", "device", "conditions")} for one in reported]
    found["extendedResources"] = ((plain.get("metadata") or {}).get("annotations") or {}).get(MADE) == "true"
    found["reservedFor"] = [str(one.get("uid", "")) for one in status.get("reservedFor") or ()]
    return found


def _demand(spec: Mapping[str, Any]) -> dict[str, Any]:
    devices = spec.get("devices") or {}
    return {"requests": devices.get("requests") or [], "constraints": devices.get("constraints") or []}


def flat_template(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Give the manifest of a template as a cluster file has the claims that are made of it."""
    return {**_named(plain, is_namespaced=True), **_demand((plain.get("spec") or {}).get("spec") or {})}


def flat_slice(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Give the manifest of a slice as a cluster file has it."""
    spec = plain.get("spec") or {}
    return {**_named(plain), **{key: value for key, value in spec.items() if key != "name"}}


def flat_class(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Give the manifest of a class as a cluster file has it."""
    spec = plain.get("spec") or {}
    kept = {key: spec[key] for key in ("selectors", "extendedResourceName") if spec.get(key)}
    created = (plain.get("metadata") or {}).get("creationTimestamp")
    return {**_named(plain), **kept, **({"creationTimestamp": created} if created else {})}


def _named(plain: Mapping[str, Any], *, is_namespaced: bool = False) -> dict[str, Any]:
    meta = plain.get("metadata") or {}
    found = {"name": meta.get("name")}
    if is_namespaced:
        found |= {"namespace": meta.get("namespace") or "default", "uid": meta.get("uid") or ""}
        found["deleting"] = bool(meta.get("deletionTimestamp"))
    return found


def claim_from(plain: Mapping[str, Any]) -> DeviceClaim:
    """Give a claim as an API server has it. What it has got counts, whether or not its requests can be read."""
    flat, report = flat_claim(plain), ProblemReport()
    asked = {key: flat.pop(key) for key in ("requests", "constraints")}
    known = {key: value for key, value in flat.items() if key not in ("allocation", "devices")}
    found: DeviceClaim = record_of(DeviceClaim).decode(known, None, report)
    allocation = flat.get("allocation")
    said = record_of(DeviceClaim).decode(
        {"name": found.name, "devices": flat.get("devices", [])}, None, ProblemReport()
    )
    if said is not BAD:
        found = replace(found, statuses=said.statuses)
    if allocation is not None:
        got = record_of(DeviceAllocation).decode(allocation, None, ProblemReport())
        found = replace(found, allocation=DeviceAllocation() if got is BAD else got)
    demand: DeviceClaim = record_of(DeviceClaim).decode({"name": found.name, **asked}, None, report)
    if demand is BAD or report.problems:
        return replace(found, unsupported="; ".join(_told(report)) or "cannot be read")
    return replace(found, requests=demand.requests, constraints=demand.constraints)


def _told(report: ProblemReport) -> list[str]:
    return [f"{path_text(path)} {message}" for path, message in report.problems[:3]]


def slice_from(plain: Mapping[str, Any]) -> DeviceSlice | None:
    """Give a slice as an API server has it; None where it says nothing that can be understood."""
    found = record_of(DeviceSlice).decode(flat_slice(plain), None, ProblemReport())
    return None if found is BAD else cast("DeviceSlice", found)


def class_from(plain: Mapping[str, Any]) -> DeviceClass:
    """Give a class as an API server has it; one that cannot be read takes no devices."""
    report, flat = ProblemReport(), flat_class(plain)
    found = record_of(DeviceClass).decode(flat, None, report)
    if found is BAD or report.problems:
        none = DeviceSelector(cel=CelExpression(expression=""))
        return DeviceClass(name=str(flat["name"]), selectors=(none,))
    return found  # type: ignore[no-any-return]


def read_device_claim(kind: str, value: dict[str, Any], at: Trail, report: ProblemReport) -> DeviceClaim | None:
    """Read the manifest of a claim, or of a template: what it makes. None where that cannot be done."""
    flat = flat_template(value) if kind == RESOURCE_CLAIM_TEMPLATE[1] else flat_claim(value)
    found = record_of(DeviceClaim).decode({k: v for k, v in flat.items() if v is not None}, (at, "spec"), report)
    return None if found is BAD else cast("DeviceClaim", found)


@dataclass(frozen=True, slots=True)
class DeviceTaintRule:
    """A rule that taints the devices of a driver, a pool and a name; what it does not name may be any."""

    taint: DeviceTaint
    driver: str | None = None
    pool: str | None = None
    device: str | None = None

    def taints(self, one: DeviceSlice, device: Device) -> bool:
        """Whether a device of a slice gets the taint."""
        wanted = (self.driver, self.pool, self.device)
        has = (one.driver, one.pool.name, device.name)
        return all(name in (None, own) for name, own in zip(wanted, has, strict=True))


def taint_rule_from(plain: Mapping[str, Any]) -> DeviceTaintRule | None:
    """Give a rule as an API server has it; None for one that selects nothing, or that cannot be read."""
    spec = plain.get("spec") or {}
    selected = spec.get("deviceSelector")
    taint = record_of(DeviceTaint).decode(spec.get("taint"), None, ProblemReport())
    if selected is None or taint is BAD:
        return None
    return DeviceTaintRule(taint, *(selected.get(key) for key in ("driver", "pool", "device")))


def tainted(one: DeviceSlice, rules: Iterable[DeviceTaintRule]) -> DeviceSlice:
    """Give a slice with the taints that rules put on its devices."""
    listed = [rule for rule in rules if rule.driver in (None, one.driver) and rule.pool in (None, one.pool.name)]
    if not listed:
        return one
    added = [tuple(rule.taint for rule in listed if rule.taints(one, device)) for device in one.devices]
    if not any(added):
        return one
    pairs = zip(one.devices, added, strict=True)
    return replace(one, devices=tuple(replace(d, taints=(*d.taints, *more)) for d, more in pairs))
