"""What templates write numbers, times, amounts and links with. Whatever comes out is text; the templates escape it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from tenure.model.values.readable import weighted_hours
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI_GPU
from tenure.report.words import NOTHING, amount, bare_amount, duration, gpu_milli, number, resource_label
from tenure.web.access.viewer import ANOTHER


def held_text(held: Mapping[str, int] | None, most: int = 4) -> str:
    """List amounts of JSON, GPUs first."""
    if not held:
        return NOTHING
    parts = [amount(MILLI_GPU, gpu_milli(held))] if GPU in held or MILLI_GPU in held else []
    parts += [amount(name, held[name]) for name in (CPU, MEMORY) if held.get(name)]
    parts += [amount(name, value) for name, value in held.items() if name not in (GPU, MILLI_GPU, CPU, MEMORY, "pods")]
    return ", ".join(parts[:most]) or NOTHING


def one_amount(value: int | None, resource: str) -> str:
    """Write an amount of one resource with its unit, GPUs given in milli-GPU."""
    return NOTHING if value is None else amount(MILLI_GPU if resource == GPU else resource, value)


def bare(value: int | None, resource: str) -> str:
    """Write an amount of one resource without its name, GPUs given in milli-GPU."""
    return NOTHING if value is None else bare_amount(MILLI_GPU if resource == GPU else resource, value)


def spent(held: Mapping[str, float] | None) -> str:
    """Write resource-seconds: GPU-hours first, else core-hours."""
    if held is None:
        return NOTHING
    parts = []
    for name, unit in ((GPU, "GPU-hours"), (CPU, "core-hours"), ("weighted", "weighted hours")):
        if held.get(name):
            hours = held[name] / 3600
            parts.append(f"{hours:,.0f} {unit}" if hours >= 100 else f"{hours:.3g} {unit}")  # noqa: PLR2004  three digits tell enough
    return (parts or ["0"])[0]


def weighted(cost: float | None) -> str:
    """Write a disruption cost, given in weighted resource-seconds, in weighted hours."""
    return NOTHING if cost is None else weighted_hours(cost)


def clock(text: str | None) -> str:
    """Write a time as people read it, without the seconds' parts."""
    if not text:
        return NOTHING
    return text.split(".")[0].rstrip("Z").replace("T", " ")


def waited(seconds: float | None) -> str:
    """Write how long something took."""
    return duration(None if seconds is None else float(seconds))


def ago(text: str | None, now: str) -> str:
    """Say how long before ``now`` a time was."""
    if not text:
        return NOTHING
    seconds = (_moment(now) - _moment(text)).total_seconds()
    return f"{duration(seconds)} ago" if seconds >= 1 else "now" if seconds > -1 else f"in {duration(-seconds)}"


def _moment(text: str) -> datetime:
    return datetime.fromisoformat(text).astimezone(UTC)


def workload_path(key: str) -> str | None:
    """Give the address of a workload's page; None for one that is not named."""
    if key == ANOTHER or "/" not in key:
        return None
    namespace, _, name = key.partition("/")
    if set(name) == {"."} or set(namespace) == {"."}:  # browsers take these for folders
        return f"/workload?{urlencode({'name': key})}"
    return f"/workloads/{quote(namespace, safe='')}/{quote(name, safe='')}"


def node_path(name: str) -> str:
    """Give the address of a node's page."""
    return f"/node?{urlencode({'name': name})}"


def queue_path(name: str) -> str:
    """Give the address of a queue's page."""
    return f"/queue?{urlencode({'name': name})}"


def address(path: str, **parameters: Any) -> str:
    """Add parameters to an address; empty ones are left out."""
    kept = [(name, str(value)) for name, value in parameters.items() if value not in (None, "")]
    if not kept:
        return path
    return f"{path}{'&' if '?' in path else '?'}{urlencode(kept)}"


def with_offset(here: str, offset: int) -> str:
    """Give the address of another page of the same table."""
    path, _, query = here.partition("?")
    pairs = [(name, value) for name, value in parse_qsl(query) if name != "offset"]
    return f"{path}?{urlencode([*pairs, *([('offset', offset)] if offset else [])])}"


FILTERS = {
    "held": held_text, "amount": one_amount, "bare": bare, "spent": spent, "clock": clock, "waited": waited, "ago": ago,
    "number": number, "cost": weighted, "label": resource_label, "workload_path": workload_path, "node_path": node_path,
    "queue_path": queue_path, "with_offset": with_offset,
}  # fmt: skip
