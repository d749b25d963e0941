"""Numbers, times and amounts as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from tenure.model.values.readable import seconds_span
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, MILLI_GPU

NOTHING = "—"
"""Stands where there is no value."""

SECOND: Final = 1_000_000
"""µs."""

HOUR: Final = 3600
"""Seconds."""

_BYTES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_WHOLE = {CPU: "core", GPU: "GPU"}
IN_BYTES: Final = frozenset({MEMORY, "ephemeral-storage"})
"""Resources that are counted in bytes."""

_LABELS = {CPU: "CPU", MEMORY: "memory", GPU: "GPU", MILLI_GPU: "GPU", "pods": "pods"}
_NO_BREAK = "\N{NO-BREAK SPACE}"


def common_blanks(text: str) -> str:
    """Give a text that is no page and no line of a terminal: so that ``grep '96 GiB'`` finds what one sees."""
    return text.replace(_NO_BREAK, " ")


def number(value: float | None, digits: int = 1) -> str:
    """Write a number with thousands separators; whole numbers without decimals unless they are floats."""
    if value is None:
        return NOTHING
    return f"{value:,}" if isinstance(value, int) else f"{value:,.{digits}f}"


def figure_text(value: float, digits: int = 4) -> str:
    """Write a figure with so many digits that count, large ones whole: ``0.1234``, ``95,658``."""
    return f"{value:,.0f}" if round(abs(value)) >= 10 ** (digits - 1) else f"{value:.{digits}g}"


def short_number(value: float) -> str:
    """Write a number with at most three significant digits and a suffix: ``1.2k``, ``35M``; for axes."""
    for suffix, size in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(value) >= size:
            return f"{_trimmed(value / size)}{suffix}"
    return _trimmed(value)


def _trimmed(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1000 else f"{value:.0f}"  # noqa: PLR2004  the suffix's own step


def percent(share: float | None, digits: int = 1) -> str:
    """Write a share as a percentage."""
    return NOTHING if share is None else f"{share * 100:.{digits}f}%"


def duration(seconds: float | None) -> str:
    """Write a duration with its two largest units: ``1 h 48 min``, ``12.5 s``, ``3 d 4 h``; no line breaks in it."""
    return NOTHING if seconds is None else seconds_span(seconds).replace(" ", _NO_BREAK)


def seconds(value: float | None) -> str:
    """Write seconds to a tenth, exact enough to compare runs by."""
    return NOTHING if value is None else f"{value:,.1f}{_NO_BREAK}s"


def resource_label(resource: str) -> str:
    """Name a resource for people."""
    return _LABELS.get(resource, resource)


def amount(resource: str, value: float, *, milli_gpu: bool = False) -> str:
    """Write an amount in the model's units (millicores, bytes, whole GPUs or, if so said, milli-GPU) with its unit."""
    if resource == CPU:
        return _counted(value / 1000, "core")
    if resource == MEMORY:
        return byte_size(value)
    if resource == MILLI_GPU or (resource == GPU and milli_gpu):
        return _counted(value / MILLI, "GPU")
    if resource == GPU:
        return _counted(value, "GPU")
    return f"{_plain(value)}{_NO_BREAK}{resource_label(resource)}"


def _counted(value: float, noun: str) -> str:
    text = _plain(value)
    return f"{text}{_NO_BREAK}{noun}{'' if text == '1' else 's'}"


def bare_amount(resource: str, value: float, *, milli_gpu: bool = False) -> str:
    """Write an amount like `amount`, without the name of the resource (bytes keep their unit)."""
    if resource == MEMORY:
        return byte_size(value)
    return amount(resource, value, milli_gpu=milli_gpu).split(_NO_BREAK)[0]


def resource_hours(resource: str, resource_seconds: float) -> str:
    """Write resource-seconds as they stand in a summary for people: ``13.5 GPU-hours``, ``2 core-hours``."""
    unit = HoursUnit.of(resource, resource_seconds)
    return f"{unit.write(resource_seconds)}{_NO_BREAK}{unit.name}"


def seconds_unit(resource: str) -> str:
    """Name the unit of resource-seconds in JSON and CSV: ``GPU-seconds``, ``core-seconds``, ``byte-seconds``."""
    return f"{'byte' if resource in IN_BYTES else _WHOLE.get(resource, resource)}-seconds"


class HoursUnit(NamedTuple):
    """The unit in which resource-seconds are written: its name, its size, and whether it is one of bytes."""

    name: str
    size: float
    is_bytes: bool

    @classmethod
    def of(cls, resource: str, resource_seconds: float) -> HoursUnit:
        """Give the unit of a resource; of bytes, the largest of which there is at least 1 (of nothing: GiB-hours)."""
        if resource not in IN_BYTES:
            return cls(f"{_WHOLE.get(resource, resource)}-hours", HOUR, is_bytes=False)
        step = _step(resource_seconds / HOUR) if resource_seconds else _BYTES.index("GiB")
        return cls(f"{_BYTES[step]}-hours", HOUR * 1024**step, is_bytes=True)

    def write(self, resource_seconds: float) -> str:
        """Write resource-seconds in this unit, without its name."""
        hours = resource_seconds / self.size
        return _plain(hours) if self.is_bytes or abs(hours) < 0.1 else f"{hours:,.1f}"  # noqa: PLR2004  what one decimal tells


def byte_size(value: float) -> str:
    """Write bytes in the largest binary unit that leaves at least 1."""
    step = _step(value)
    return f"{_plain(value / 1024**step)}{_NO_BREAK}{_BYTES[step]}"


def _step(value: float) -> int:
    """Give the number of the largest binary unit that leaves at least 1."""
    step = 0
    while abs(value) >= 1024 and step + 1 < len(_BYTES):  # noqa: PLR2004  binary units
        value /= 1024
        step += 1
    return step


def gpu_milli(held: Mapping[str, int]) -> int:
    """Add up whole GPUs and the rest in milli-GPU, which stands beside them in JSON."""
    return held.get(GPU, 0) * MILLI + held.get(MILLI_GPU, 0)


def amounts(held: Mapping[str, int]) -> str:
    """List amounts as they stand in JSON, GPUs first."""
    parts = [amount(MILLI_GPU, gpu_milli(held))] if GPU in held or MILLI_GPU in held else []
    parts += [amount(name, held[name]) for name in (CPU, MEMORY) if name in held]
    parts += [amount(name, value) for name, value in held.items() if name not in _LABELS]
    return ", ".join(parts)


def _plain(value: float) -> str:
    return f"{value:,.2f}".rstrip("0").rstrip(".")


def count(value: int, noun: str, plural: str = "") -> str:
    """Write a count with its noun."""
    return f"{value:,} {noun if value == 1 else plural or noun + 's'}"
