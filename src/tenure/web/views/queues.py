"""The tree of queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tenure.model.queue import Queue
from tenure.model.values.resources import plain_amounts
from tenure.web.sources.picture import STATES, Picture
from tenure.web.views.look import Looked, Plain, moment, without_pods


def page(look: Looked, *, limit: int, offset: int = 0) -> Plain:
    """The tree of queues, each with what it holds, is due, is guaranteed and may hold; sums are everybody's to see."""
    picture = look.picture
    shares = look.played("shares")
    due = {} if shares is None else {entry["name"]: entry for entry in shares["queues"]}
    ordered = tree(picture, due)
    models = {queue.name: queue for queue in picture.cluster.queues}
    sums = [_with_below(own, ordered) for own in (picture.counts, picture.queues, picture.asked)]
    rows = [
        _queue([one[name] for one in sums], models.get(name), name, depth, due.get(name), parent)
        for name, depth, parent in ordered[offset : offset + limit]
    ]
    return {**moment(look), "queues": rows, "total": len(ordered), "limit": limit, "offset": offset,
            "settled": shares is not None}  # fmt: skip


def tree(picture: Picture, due: Iterable[str] = ()) -> list[tuple[str, int, str | None]]:
    """Give all queues from the top down, each with its depth and parent, children by name."""
    parents = {queue.name: queue.parent for queue in picture.cluster.queues}
    for name in (*due, *(line for line in picture.queues)):
        parents.setdefault(name, None)
    children: dict[str | None, list[str]] = {}
    for name, parent in parents.items():
        children.setdefault(parent if parent in parents else None, []).append(name)
    found: list[tuple[str, int, str | None]] = []
    waiting = [(name, 0) for name in sorted(children.get(None, ()), reverse=True)]
    while waiting:
        name, depth = waiting.pop()
        found.append((name, depth, parents[name]))
        waiting += [(child, depth + 1) for child in sorted(children.get(name, ()), reverse=True)]
    return found


def _with_below(
    own: Mapping[str, Mapping[str, int]], ordered: Sequence[tuple[str, int, str | None]]
) -> dict[str, Counter[str]]:
    """Give what queues have, with what those below them have; they stand in the order of the tree."""
    found = {name: Counter(own.get(name, {})) for name, _, _ in ordered}
    for name, _, parent in reversed(ordered):
        if parent in found:
            found[parent].update(found[name])
    return found


def _queue(
    sums: Sequence[Mapping[str, int]], model: Queue | None, name: str, depth: int, due: Plain | None, parent: str | None
) -> Plain:
    """Give a queue; ``sums`` are its workloads by state, what they hold and what they ask for, those below included."""
    counts, holds, asks = sums
    held = plain_amounts({k: v for k, v in holds.items() if v and k != "pods"})
    return {
        "name": name, "parent": parent, "depth": depth,
        "allocated": held if due is None else without_pods(due["allocated"]),
        "fairShare": None if due is None else without_pods(due["fairShare"]),
        "guaranteed": plain_amounts(dict(model.guaranteed)) if model else {},
        "max": plain_amounts(dict(model.max)) if model else {},
        "asked": plain_amounts({k: v for k, v in asks.items() if v and k != "pods"}),
        "priority": model.priority if model else None,
        "workloads": {state: counts[state] for state in STATES if counts.get(state)},
    }  # fmt: skip
