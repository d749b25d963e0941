"""What a change of policy does: the same cluster or trace under both, as data, and as text for a pull request."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from typing import Any, Final

from tenure.engine.plan import Pending
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.fields.records import RecordKind, fields_of, record_of
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, MILLI_GPU, plain_amounts
from tenure.model.workload import Phase
from tenure.playthrough import PlayThrough
from tenure.report.tables import TableColumn, Terminal, table, wrap
from tenure.report.words import NOTHING, amount, common_blanks, count, duration, number, percent, resource_hours

SECOND: Final = 1_000_000
GIB: Final = 1 << 30

_HARDLY = 1.0
"""Seconds; waits that differ by less are told as the same."""

_FIGURES: Final[tuple[tuple[str, str, Callable[[float | None], str]], ...]] = (
    ("finished", "jobs that finish", number),
    ("wait_s.mean", "mean wait", duration),
    ("wait_s.p95", "95% wait", duration),
    ("boundedSlowdown.mean", "mean bounded slowdown", number),
    ("goodput.nvidia.com/gpu", "GPU goodput", percent),
    ("goodput.cpu", "CPU goodput", percent),
    ("jain", "Jain's index of queues", lambda value: number(value, 4)),
    ("violations", "broken invariants", number),
)
"""Figures of a simulation's summary that are set side by side, beside evictions, losses and the waits of queues."""


# -- what is changed --------------------------------------------------------------------------------------------------


def policy_changes(old: Cluster, new: Cluster) -> list[dict[str, Any]]:
    """List the queues and settings that differ, each with its path and both values; None where there is none."""
    before, after = _flat(old), _flat(new)
    paths = sorted(before.keys() | after.keys())
    return [
        {"path": path, "old": before.get(path), "new": after.get(path)}
        for path in paths
        if before.get(path) != after.get(path)
    ]


@cache
def _queue_record() -> RecordKind:
    return RecordKind(Queue, fields_of(Queue, skip=("created_at", "status")))


def _flat(cluster: Cluster) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for queue in cluster.queues:
        plain = _queue_record().encode(queue)
        found[f"queues.{queue.name}"] = "there"
        _flatten(f"queues.{queue.name}", {k: v for k, v in plain.items() if k != "name"}, found)
    _flatten("scheduler", record_of(Settings).encode(cluster.settings), found)
    return found


def _flatten(path: str, value: Any, found: dict[str, Any]) -> None:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            _flatten(f"{path}.{key}", inner, found)
    elif isinstance(value, list) and value and all(isinstance(item, Mapping) and "name" in item for item in value):
        for item in value:  # named entries, such as budgets: one that comes or goes does not shift the others
            _flatten(f"{path}[{item['name']}]", {k: v for k, v in item.items() if k != "name"}, found)
    else:
        found[path] = value


# -- cycles on a cluster ----------------------------------------------------------------------------------------------


def plan_diff(old: PlayThrough, new: PlayThrough, every: int) -> dict[str, Any]:
    """Compare cycles that were played on one cluster under two policies, ``every`` µs apart."""
    sides = [_PlayedSide(side, every) for side in (old, new)]
    found = _effects(
        [side.evictions for side in sides], [side.lost for side in sides], [side.waits for side in sides], []
    )
    held = [
        {view.name: plain_amounts({r: n for r, n in view.allocated.items() if n}) for view in side.played.queues}
        for side in sides
    ]
    for queue in found["queues"]:
        queue["held"] = _pairs([side.get(queue["name"], {}) for side in held], 0)
    workloads = _workloads(*sides)
    return {**found, "workloads": workloads, "differs": _differs(found) or bool(workloads)}


def _whole(queue: Mapping[str, Any], resource: str) -> dict[str, float] | None:
    """Give what a queue holds of a resource on both sides, in whole GPUs and cores; None where it holds none."""
    held = queue.get("held", {})
    parts = [(held.get(GPU), 1), (held.get(MILLI_GPU), MILLI)] if resource == GPU else [(held.get(resource), MILLI)]
    there = [(pair, unit) for pair, unit in parts if pair is not None]
    return {side: sum(pair[side] / unit for pair, unit in there) for side in ("old", "new")} if there else None


class _PlayedSide:
    """What became of workloads in cycles that were played."""

    def __init__(self, played: PlayThrough, every: int) -> None:
        self.played = played
        before = played.before
        self.queue = {w.key: w.queue or DEFAULT_QUEUE for w in before.workloads}
        evicted = {(s.cycle, s.workload, s.cause or "") for s in played.steps if s.action == "evict"}
        self.evictions = dict(sorted(Counter(cause for _, _, cause in evicted).items()))
        self.victims = sorted({workload for _, workload, _ in evicted})
        self.lost = self._lost(len(before.evictions))
        self.runs = {w.key for w in played.after.workloads if any(_holds(t.phase, t.node) for t in w.tasks)}
        self.starts = self._starts(every)
        self.waits = self._waits()

    def _lost(self, known: int) -> dict[str, float]:
        """Give what evictions destroyed, in resource-seconds (whole GPUs, cores, bytes)."""
        lost: Counter[str] = Counter()
        for eviction in self.played.after.evictions[known:]:
            lost.update(eviction.lost or {})
        return {r: n / SECOND * (GIB if r == MEMORY else 1) for r, n in sorted(lost.items())}

    def _starts(self, every: int) -> dict[str, float | None]:
        """Give by workload that waited at first when it starts, in seconds from now on; None: not known."""
        now = self.played.before.now
        bound: dict[str, int] = {}
        for step in self.played.steps:
            if step.action == "bind":
                bound.setdefault(step.workload, step.cycle)
        expected = {p.workload: p for p in self.played.pending}
        found: dict[str, float | None] = {}
        for workload in self.played.before.workloads:
            if not workload.tasks or any(_holds(t.phase, t.node) for t in workload.tasks):
                continue
            if workload.key in bound:
                found[workload.key] = bound[workload.key] * every / SECOND
            elif workload.key in expected:
                found[workload.key] = _estimate(expected[workload.key], now)
        return found

    def _waits(self) -> dict[str, dict[str, float | None]]:
        """Give by queue the mean wait from now on of what waited, where it is known, and of how many it is not."""
        waits: dict[str, list[float | None]] = {}
        for key, start in self.starts.items():
            waits.setdefault(self.queue[key], []).append(start)
        found: dict[str, dict[str, float | None]] = {}
        for queue in sorted(self._leaves()):
            all_waits = waits.get(queue, [])
            known = [w for w in all_waits if w is not None]
            mean = sum(known) / len(known) if known else None
            found[queue] = {"wait_s": mean, "withoutStart": len(all_waits) - len(known)}
        return found

    def _leaves(self) -> set[str]:
        """Give the queues that workloads live in."""
        queues = self.played.before.queues
        return {q.name for q in queues} - {q.parent or "" for q in queues} | set(self.queue.values())


def _holds(phase: Phase, node: str | None) -> bool:
    return node is not None and phase in (Phase.BOUND, Phase.RUNNING)


def _estimate(pending: Pending, now: int) -> float | None:
    start = pending.estimated_start
    return None if start is None else max(0, start - now) / SECOND


def _workloads(old: _PlayedSide, new: _PlayedSide) -> list[dict[str, Any]]:
    """List the workloads that are evicted, run or start otherwise under the new policy."""
    found = []
    for key in sorted(old.queue):
        sides = []
        for side in (old, new):
            start = side.starts.get(key)
            sides.append({"runs": key in side.runs, "evicted": key in side.victims, "start_s": start})
        if sides[0] != sides[1]:
            found.append({"workload": key, "queue": old.queue[key], "old": sides[0], "new": sides[1]})
    return found


# -- simulations ------------------------------------------------------------------------------------------------------


def simulation_diff(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Compare the summaries of one trace's simulations under two policies."""
    sides = (old, new)
    figures = [
        {"name": path, "old": _at(old, path), "new": _at(new, path)}
        for path, _, _ in _FIGURES
        if _at(old, path) is not None or _at(new, path) is not None
    ]
    waits = [
        {q["name"]: {"wait_s": q["wait_s"]["mean"], "withoutStart": None} for q in side["queues"]} for side in sides
    ]
    found = _effects([side["evictions"] for side in sides], [side["lost"] for side in sides], waits, figures)
    return {**found, "workloads": [], "differs": _differs(found)}


def _at(summary: Mapping[str, Any], path: str) -> Any:
    key, _, rest = path.partition(".")
    value = summary.get(key)
    return value.get(rest) if rest and isinstance(value, Mapping) else value


# -- both -------------------------------------------------------------------------------------------------------------


def _effects(
    evictions: Sequence[Mapping[str, int]],
    lost: Sequence[Mapping[str, float]],
    waits: Sequence[Mapping[str, Mapping[str, float | None]]],
    figures: list[dict[str, Any]],
) -> dict[str, Any]:
    totals = [sum(side.values()) for side in evictions]
    return {
        "evictions": {"old": totals[0], "new": totals[1], "byCause": _pairs(evictions, 0)},
        "lost": _pairs(lost, 0.0),
        "queues": [
            {"name": name, **{key: _pair(waits, name, key) for key in ("wait_s", "withoutStart")}}
            for name in sorted(waits[0].keys() | waits[1].keys())
        ],
        "figures": figures,
    }


def _pairs(sides: Sequence[Mapping[str, Any]], nothing: float) -> dict[str, dict[str, Any]]:
    old, new = sides
    return {k: {"old": old.get(k, nothing), "new": new.get(k, nothing)} for k in sorted(old.keys() | new.keys())}


def _pair(waits: Sequence[Mapping[str, Mapping[str, float | None]]], name: str, key: str) -> dict[str, Any]:
    old, new = (side.get(name, {}).get(key) for side in waits)
    return {"old": old, "new": new}


def _differs(found: Mapping[str, Any]) -> bool:
    pairs = [found["evictions"], *found["evictions"]["byCause"].values(), *found["lost"].values(), *found["figures"]]
    pairs += [pair for queue in found["queues"] for pair in queue.get("held", {}).values()]
    pairs += [queue[key] for queue in found["queues"] for key in ("wait_s", "withoutStart")]
    return any(pair["old"] != pair["new"] for pair in pairs)


# -- in words ---------------------------------------------------------------------------------------------------------


def sentences(diff: Mapping[str, Any]) -> list[str]:
    """Say what a change of policy does, the most important first; one sentence where it does nothing."""
    said = [*_said_evictions(diff["evictions"]), *_said_lost(diff["lost"])]
    for queue in diff["queues"]:
        said += _said_queue(queue)
    said += _said_runs(diff["workloads"])
    if said:
        return said
    if diff["differs"]:
        return ["no eviction, loss or wait changes by much"]
    return ["nothing changes: evictions, losses and waits are the same under both policies"]


def _said_evictions(found: Mapping[str, Any]) -> list[str]:
    causes = [(cause, p["new"] - p["old"]) for cause, p in found["byCause"].items() if p["new"] != p["old"]]
    if not causes:
        return []
    by_cause = ", ".join(f"{cause} {change:+,}" for cause, change in causes)
    change = found["new"] - found["old"]
    if not change:
        return [f"as many evictions, for other causes ({by_cause})"]
    return [f"{count(abs(change), f'{_more(change)} eviction')} ({by_cause})"]


def _said_lost(found: Mapping[str, Any]) -> list[str]:
    said = []
    for resource in (GPU, CPU, *sorted(found.keys() - {GPU, CPU, MEMORY})):
        pair = found.get(resource)
        if pair is not None and abs(pair["new"] - pair["old"]) >= _HARDLY:
            change = pair["new"] - pair["old"]
            said.append(f"{resource_hours(resource, abs(change))} {_more(change)} are lost")
    return said


def _said_queue(queue: Mapping[str, Any]) -> list[str]:
    said = []
    wait, unknown = queue["wait_s"], queue["withoutStart"]
    if wait["old"] is not None and wait["new"] is not None and abs(wait["new"] - wait["old"]) >= _HARDLY:
        change = wait["new"] - wait["old"]
        word = "longer" if change > 0 else "less"
        said.append(f"{queue['name']} waits {duration(abs(change))} {word} on average")
    for resource, milli in ((GPU, MILLI_GPU), (CPU, CPU)):
        held = _whole(queue, resource)
        if held is not None and (change := round(held["new"] - held["old"], 3)):
            said.append(f"{queue['name']} holds {amount(milli, abs(change) * MILLI)} {_more(change)} at the end")
            break
    change = (unknown["new"] or 0) - (unknown["old"] or 0)
    if change:
        word = "no start is known" if change > 0 else "a start becomes known"
        said.append(f"{word} of {count(abs(change), f'{_more(1)} workload')} of {queue['name']}")
    return said


def _said_runs(workloads: Iterable[Mapping[str, Any]]) -> list[str]:
    listed = list(workloads)
    said = []
    for key, verb, instead in (("new", "run", "waiting"), ("old", "wait", "running")):
        other = "old" if key == "new" else "new"
        names = [w["workload"] for w in listed if w[key]["runs"] and not w[other]["runs"]]
        if names:
            more = f" and {len(names) - 3:,} more" if len(names) > 3 else ""  # noqa: PLR2004  enough to go and look
            does = verb if len(names) > 1 else f"{verb}s"
            said.append(f"{', '.join(names[:3])}{more} {does} at the end instead of {instead}")
    return said


def _more(change: float) -> str:
    return "more" if change > 0 else "fewer" if change < 0 else ""


def diff_text(diff: Mapping[str, Any], where: Terminal) -> str:
    """Write a change of policy and its effects for a terminal."""
    parts = ["\n".join(wrap("; ".join(sentences(diff)), where.width, cut=False)) + "\n"]
    if diff["changes"]:
        columns = [TableColumn("policy", wrap=True), TableColumn("old", wrap=True), TableColumn("new", wrap=True)]
        parts.append(table(columns, [_changed(c) for c in diff["changes"]], where))
    rows = _rows(diff)
    if rows:
        columns = [TableColumn("effect", wrap=True), TableColumn("old", right=True), TableColumn("new", right=True)]
        parts.append(table(columns, rows, where))
    return "\n".join(parts)


def diff_markdown(diff: Mapping[str, Any]) -> str:
    """Write a change of policy and its effects for a pull request."""
    lines = [f"**{'; '.join(sentences(diff))}**", ""]
    if diff["changes"]:
        lines += ["| policy | old | new |", "|---|---|---|"]
        lines += [_markdown_row(_changed(c), code=True) for c in diff["changes"]] + [""]
    if rows := _rows(diff):
        lines += ["| effect | old | new |", "|---|---:|---:|"]
        lines += [_markdown_row(row) for row in rows] + [""]
    return common_blanks("\n".join(lines))


def _markdown_row(cells: Sequence[str], *, code: bool = False) -> str:
    shown = [cell.replace("|", "\\|") for cell in cells]
    return f"| {' | '.join(f'`{cell}`' if code and cell != NOTHING else cell for cell in shown)} |"


def _changed(change: Mapping[str, Any]) -> list[str]:
    return [change["path"], *(_value(change[side]) for side in ("old", "new"))]


def _value(value: Any) -> str:
    if value is None:
        return NOTHING
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _rows(diff: Mapping[str, Any]) -> list[list[str]]:
    """Give a row for each figure that differs."""
    rows: list[list[str]] = []

    def add(name: str, pair: Mapping[str, Any], write: Callable[[Any], str]) -> None:
        if pair["old"] != pair["new"]:
            rows.append([name, write(pair["old"]), write(pair["new"])])

    add("evictions", diff["evictions"], number)
    for cause, pair in diff["evictions"]["byCause"].items():
        add(f"evictions: {cause}", pair, number)
    for resource, pair in diff["lost"].items():
        add(f"lost: {resource}", pair, partial(resource_hours, resource))
    named = {path: (name, write) for path, name, write in _FIGURES}
    for figure in diff["figures"]:
        add(named[figure["name"]][0], figure, named[figure["name"]][1])
    for queue in diff["queues"]:
        add(f"{queue['name']}: mean wait", queue["wait_s"], duration)
        for resource in (GPU, CPU):
            if (pair := _whole(queue, resource)) is not None:
                add(f"{queue['name']}: {resource} held at the end", pair, number)
        add(f"{queue['name']}: workloads without a known start", queue["withoutStart"], number)
    return rows
