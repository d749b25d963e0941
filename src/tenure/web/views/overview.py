"""The overview: what runs, what waits, who is over and under, and what somebody should look at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from tenure.model.values.duration import DAY, format_time
from tenure.model.values.resources import CPU, GPU, plain_amounts
from tenure.shields.breaker import losing_in, message
from tenure.shields.unsaved import unsaved_of
from tenure.web.sources.picture import NOT_READY, STATES, Picture
from tenure.web.sources.source import EvictionQuery, WaitLine
from tenure.web.views import queues
from tenure.web.views.evictions import cause_sum, eviction
from tenure.web.views.look import MOST_PER_PAGE, Looked, Plain, milli, moment, summed


def page(look: Looked) -> Plain:
    """What runs, what waits, who is over and under, evictions of the last day, and what somebody should look at."""
    picture, viewer = look.picture, look.viewer
    states, ready = picture.states, picture.nodes.ready
    if not viewer.sees_all:
        states = sum((picture.by_namespace.get(name, Counter()) for name in viewer.namespaces or ()), Counter())
    since, until = picture.now - DAY, picture.now + 1
    day = look.evictions(EvictionQuery(since=since, until=until, how="done", limit=5))
    found = queues.page(look, limit=MOST_PER_PAGE)
    return {
        **moment(look),
        "workloads": {state: states.get(state, 0) for state in STATES},
        "nodes": _node_counts(picture) if viewer.nodes else None,
        "capacity": plain_amounts({name: held for name, held in ready.items() if held and name != "pods"}),
        "allocated": plain_amounts(summed(picture.queues.values())),
        "waits": [_wait(line) for line in look.console.source.waits(viewer, 5, look.at)],
        "evictions": {"day": day.total, "sums": [cause_sum(one) for one in day.sums],
                      "latest": [eviction(line, look) for line in day.lines]},
        "over": [one for one in _balance(found["queues"]) if one["by"] > 0],
        "under": [one for one in _balance(found["queues"]) if one["by"] < 0],
        "alerts": alerts(look), "settled": found["settled"],
    }  # fmt: skip


def _node_counts(picture: Picture) -> Plain:
    return {"total": len(picture.nodes.lines), "remarks": dict(sorted((+picture.nodes.remarks).items()))}


def _balance(found: Sequence[Plain]) -> list[Plain]:
    """Say which leaf queues hold more of the main resource than they are due, and which hold less and want more."""
    parents = {queue["parent"] for queue in found}
    rows = []
    for queue in found:
        due = queue["fairShare"]
        if due is None or queue["name"] in parents:
            continue
        for resource in (GPU, CPU):
            held, fair = milli(queue["allocated"], resource), milli(due, resource)
            if not held and not fair:
                continue
            wants = milli(queue["asked"], resource)
            by = held - fair
            if by > 0 or (by < 0 and wants):
                rows.append({"queue": queue["name"], "resource": resource, "by": by, "held": held, "fairShare": fair})
            break
    return sorted(rows, key=lambda row: (-abs(row["by"]), row["queue"]))


def alerts(look: Looked) -> list[Plain]:
    """Say what somebody should look at: what the source complains of, and what can be read off the cluster."""
    picture = look.picture
    told = look.console.source.troubles(look.at) if look.viewer.sees_all else []
    found = [{"mood": trouble.mood, "message": trouble.message} for trouble in told]
    unknown = [key for key in picture.unknown if look.viewer.sees(key)]
    if unknown:
        text = f"the start of {_some(sorted(unknown))} is unknown, so no minimum runtime protects it"
        found.append({"mood": "odd", "message": text})
    stuck = [queue.name for queue in picture.cluster.queues
             if queue.status is not None and queue.status.quota_preemption is not None
             and queue.status.quota_preemption.deadline < picture.now - DAY // 24]  # fmt: skip
    if stuck:
        text = f"queue {_some(stuck)} is over its maximum, and was to be within it more than an hour ago"
        found.append({"mood": "bad", "message": text})
    if look.viewer.nodes and any(remark.startswith(NOT_READY) for remark in +picture.nodes.remarks):
        bad = sorted(line.name for line in picture.nodes.lines.values() if line.remark.startswith(NOT_READY))
        found.append({"mood": "bad", "message": f"node {_some(bad)} is not ready"})
    return found + _surge(look) + _unpaid(look)


def _unpaid(look: Looked) -> list[Plain]:
    """Say which causes lost more than was gained, and where a minimum runtime shields what does not save its work."""
    if not look.viewer.sees_everything:
        return []
    cluster = look.picture.cluster
    told = [message(cluster.settings, losing) for losing in losing_in(cluster)]
    told += [unsaved.message for unsaved in unsaved_of(cluster)]
    return [{"mood": "odd", "message": text} for text in told]


def _surge(look: Looked) -> list[Plain]:
    """Say so where the last hour had several times the evictions of an hour of the day before."""
    if not look.viewer.sees_all:
        return []
    now = look.picture.now
    hour = look.evictions(EvictionQuery(since=now - DAY // 24, until=now + 1, how="done", limit=1)).total
    day = look.evictions(EvictionQuery(since=now - DAY, until=now - DAY // 24, how="done", limit=1)).total
    if hour >= 10 and hour > 4 * max(1.0, day / 23):  # noqa: PLR2004  several times what was usual
        return [
            {"mood": "bad", "message": f"{hour:,} tasks were evicted in the last hour, {day / 23:.1f} an hour before"}
        ]
    return []


def _some(names: Sequence[str], most: int = 3) -> str:
    more = f" and {len(names) - most:,} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def _wait(line: WaitLine) -> Plain:
    return {
        "workload": line.workload, "queue": line.queue, "createdAt": format_time(line.created_at),
        "startedAt": None if line.started_at is None else format_time(line.started_at), "waited_s": line.waited / 1e6,
    }  # fmt: skip
