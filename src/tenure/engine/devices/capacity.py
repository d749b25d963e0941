"""What a request consumes of the capacities of a device, and which taints keep it away."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.devices import (
    CapacityPolicy,
    CapacityRange,
    CapacityRequest,
    Device,
    DeviceCapacity,
    DeviceTaint,
    DeviceToleration,
)

Consumed = tuple[tuple[str, int], ...]
"""Amounts of capacities by name, in thousand-millionths of a unit."""


def consumed_of(request: CapacityRequest | None, device: Device) -> Consumed | None:
    """Give what a request consumes of a device that nothing uses; None where that is not allowed, or too much."""
    asked = {} if request is None else request.requests
    if any(name not in device.capacity for name in asked):
        return None
    found = []
    for name, capacity in sorted(device.capacity.items()):
        amount = _rounded(asked.get(name), capacity)
        if amount > capacity.value or not _is_allowed(amount, capacity.policy):
            return None
        found.append((name, amount))
    return tuple(found)


def _rounded(asked: int | None, capacity: DeviceCapacity) -> int:
    """Round what is asked for up to what the policy of the capacity allows."""
    policy = capacity.policy
    if asked is None:
        return capacity.value if policy is None or policy.default is None else policy.default
    if policy is None:
        return asked
    if policy.range is not None:
        return _rounded_in(asked, policy.range)
    return next((value for value in policy.values if asked <= value), asked)


def _rounded_in(asked: int, allowed: CapacityRange) -> int:
    if asked < allowed.least:
        return allowed.least
    if not allowed.step:
        return asked
    return allowed.least - (allowed.least - asked) // allowed.step * allowed.step


def _is_allowed(amount: int, policy: CapacityPolicy | None) -> bool:
    if policy is None or amount == policy.default:
        return True
    if policy.range is not None:
        most, step = policy.range.most, policy.range.step
        return (most is None or amount <= most) and (not step or (amount - policy.range.least) % step == 0)
    return not policy.values or amount in policy.values


def is_tainted(taints: Iterable[DeviceTaint], tolerations: tuple[DeviceToleration, ...]) -> bool:
    """Whether a taint of a device keeps a request with these tolerations away."""
    return any(
        taint.effect in ("NoSchedule", "NoExecute") and not any(_tolerates(t, taint) for t in tolerations)
        for taint in taints
    )


def _tolerates(toleration: DeviceToleration, taint: DeviceTaint) -> bool:
    return (
        toleration.effect in ("", taint.effect)
        and toleration.key in ("", taint.key)
        and (toleration.operator == "Exists" or toleration.value == taint.value)
    )
