"""Whether the devices of a claim are ready: a driver may have to prepare one before its pod is bound (KEP-5007)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tenure.model.devices import AllocatedDevice, DeviceClaim, DeviceCondition


class DeviceReadiness(NamedTuple):
    """What a claim waits for, and why its devices are given up; empty texts where nothing is the matter.

    ``until`` is when they are given up, in µs since the epoch; None where nothing is waited for.
    """

    awaits: str = ""
    failed: str = ""
    until: int | None = None


READY = DeviceReadiness()


def readiness(claim: DeviceClaim, now: int, timeout: int) -> DeviceReadiness:
    """Give whether the devices of a claim are ready at ``now``; they are given up after ``timeout`` (both in µs)."""
    allocation = claim.allocation
    if allocation is None:
        return READY
    waiting = [(device, list(_missing(claim, device))) for device in allocation.devices]
    for device, _ in waiting:
        for condition in _conditions(claim, device):
            if condition.type in device.binding_failure_conditions and condition.is_true:
                told = f" ({condition.reason or condition.message})" if condition.reason or condition.message else ""
                return DeviceReadiness(failed=f"its driver says {condition.type} of {_named(claim, device)}{told}")
    due = [(device, missing) for device, missing in waiting if missing]
    if not due:
        return READY
    device, missing = due[0]
    text = f"condition {' and '.join(missing)} of {_named(claim, device)}"
    if allocation.at is None:
        return DeviceReadiness(awaits=text)
    until = allocation.at + timeout
    if now > until:
        return DeviceReadiness(failed=f"{text} was not reported in time", until=until)
    return DeviceReadiness(awaits=text, until=until)


def _named(claim: DeviceClaim, device: AllocatedDevice) -> str:
    return f"device {'/'.join(device.key)} of resource claim {claim.name}"


def _conditions(claim: DeviceClaim, device: AllocatedDevice) -> Iterator[DeviceCondition]:
    """Give what is reported of a device that has conditions for binding."""
    if device.binding_conditions:
        yield from (c for status in claim.statuses if status.key == device.key for c in status.conditions)


def _missing(claim: DeviceClaim, device: AllocatedDevice) -> Iterator[str]:
    there = {condition.type for condition in _conditions(claim, device) if condition.is_true}
    return (name for name in device.binding_conditions if name not in there)
