"""Amounts, times and costs as people read them: ``13.5 GPUs``, ``64 GiB of memory``, ``7 h 36 min``.

What these functions write is for sentences. `tenure.model.values.quantity` writes what can be read back.
"""

from __future__ import annotations

from tenure.model.values.resources import CPU, GPU, MEMORY

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_KIBI = 1024
_MILLI = 1000
_HOUR = 3600
_MICRO = 1_000_000
_STEPS = (("d", 86_400), ("h", _HOUR), ("min", 60), ("s", 1))
_FINE = 0.01
"""A number below this is written with two significant digits instead of two decimals."""


def amount_with_unit(amount: int, resource: str, *, milli_gpu: bool = True) -> str:
    """Write an amount with the name of what it is an amount of.

    Parameters
    ----------
    amount
        The amount in the model's units: millicores, bytes, pods, units of an extended resource.
    resource
        The resource.
    milli_gpu
        Whether GPUs come in milli-GPU, as the amounts of queues do; otherwise in whole GPUs, as requests do.

    """
    text = bare_quantity(amount, resource, milli_gpu=milli_gpu)
    one = text == "1"
    if resource == GPU:
        return f"{text} {'GPU' if one else 'GPUs'}"
    if resource == CPU:
        return f"{text} {'core' if one else 'cores'}"
    if resource == MEMORY:
        return f"{text} of memory"
    if resource == "pods":
        return f"{text} {'pod' if one else 'pods'}"
    return f"{text} of {resource}"


def bare_quantity(amount: int, resource: str, *, milli_gpu: bool = True) -> str:
    """Write an amount as `amount_with_unit` does, without the name of the resource; bytes keep their unit."""
    if resource == MEMORY:
        return _byte_size(amount)
    if resource == CPU or (resource == GPU and milli_gpu):
        return _decimal(amount, _MILLI)
    return f"{amount:,}"


def time_span(micros: int) -> str:
    """Write how long something took, in µs, with its two largest units: ``1 h 48 min``, ``12.5 s``, ``3 d 4 h``."""
    return seconds_span(micros / _MICRO)


def seconds_span(seconds: float) -> str:
    """Write a number of seconds as `time_span` does."""
    if seconds < 0:
        return f"-{seconds_span(-seconds)}"
    if seconds < 60:  # noqa: PLR2004  seconds in a minute
        return f"{seconds:.3g} s"
    whole = round(seconds)
    parts: list[str] = []
    for unit, size in _STEPS:
        count, whole = divmod(whole, size)
        if count:
            parts.append(f"{count:,} {unit}")
        if parts and (len(parts) == 2 or not count):  # noqa: PLR2004  two units tell enough
            break
    return " ".join(parts)


def weighted_hours(cost: float) -> str:
    """Write a disruption cost, given in weighted resource-seconds, in weighted hours: ``7.25 weighted hours``.

    One weighted hour is one hour of a resource whose weight in ``disruption.cost`` is 1; by default one hour of a GPU,
    or of 20 cores.
    """
    text = cost_figure(cost)
    return f"{text} weighted {'hour' if text == '1' else 'hours'}"


def cost_figure(cost: float) -> str:
    """Write a disruption cost as `weighted_hours` does, without its unit, for a column that names it."""
    hours = cost / _HOUR
    if 0 < abs(hours) < _FINE:
        return f"{hours:.2g}"
    return f"{hours:,.2f}".rstrip("0").rstrip(".")


def _decimal(amount: int, unit: int) -> str:
    """Write an amount of thousandths exactly, with thousands separators."""
    whole, part = divmod(amount, unit)
    return f"{whole:,}" + (f".{part:03d}".rstrip("0") if part else "")


def _byte_size(amount: float) -> str:
    power = 0
    while abs(amount) >= _KIBI and power + 1 < len(_BYTES):
        amount /= _KIBI
        power += 1
    return f"{amount:,.2f}".rstrip("0").rstrip(".") + f" {_BYTES[power]}"
