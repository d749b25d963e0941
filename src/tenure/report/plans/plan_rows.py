"""What `tenure plan` decided as rows of text: the same for a terminal and for a page.

Everything here is made of the JSON that the command prints; parts that are not in it are left out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tenure.model.values.readable import cost_figure, weighted_hours
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI_GPU
from tenure.report.words import NOTHING, amounts, bare_amount, count, figure_text, gpu_milli, number

Plan = dict[str, Any]

SAME = "the same"
"""Stands for a reason that the step before has, too."""

COST = "cost (h)"
"""Heading of disruption costs, in weighted hours (`tenure.model.values.readable.weighted_hours`)."""

MOST_NAMED = 3
"""Of many that are alike so many are named, and the others counted."""

_DONE = {
    "evict": "eviction",
    "bind": "binding",
    "nominate": "nomination",
    "notice": "notice",
    "withdraw": "withdrawn notice",
}


@dataclass(frozen=True, slots=True)
class Rows:
    """A table: its title, its headings (those in ``numbers`` are set right), and its rows."""

    title: str
    headings: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    numbers: tuple[str, ...] = ()
    wide: tuple[str, ...] = ()
    """Headings of columns whose text may be wrapped."""


def headline(plan: Plan) -> str:
    """Say in one sentence what was decided."""
    text = f"At {plan['now']}: {_counted(plan)}."
    if plan.get("external"):
        text += f" Of the pods of {_names(plan)}: {_counted(plan['external'])}."
    return text


def _counted(plan: Plan) -> str:
    counts = Counter(step["action"] for step in plan["steps"])
    done = [count(counts[action], noun) for action, noun in _DONE.items() if counts[action]]
    if counts["evict"]:
        done[0] = _evictions(plan["steps"], counts["evict"])
    pending = len(plan["pending"])
    waits = f"{count(pending, 'workload')} {'waits' if pending == 1 else 'wait'}" if pending else "nothing waits"
    return f"{', '.join(done) or 'nothing to do'}; {waits}"


def _evictions(steps: Iterable[Plan], tasks: int) -> str:
    """Count evictions, each of one workload in one cycle for one cause, and their tasks where these are more."""
    found = {(s.get("cycle"), s["workload"], s.get("cause")) for s in steps if s["action"] == "evict"}
    told = count(len(found), _DONE["evict"])
    return told if len(found) == tasks else f"{told} ({count(tasks, 'task')})"


def _names(plan: Plan) -> str:
    return ", ".join(plan["external"]["schedulers"])


def external(plan: Plan) -> list[Rows]:
    """Tables of what is planned for pods that other schedulers bind: who leaves, where room is kept, what waits."""
    found = plan.get("external")
    if not found:
        return []
    made = [(steps, "moves"), (shadow, "moves in shadow"), (warnings, "warnings"), (pending, "waiting")]
    return [replace(make(found), title=f"Of {_names(plan)}: {title}") for make, title in made]


def all_moves(plan: Plan) -> list[Plan]:
    """Give the plans of moves, those for pods of other schedulers last."""
    return [*plan.get("moves", ()), *(plan.get("external") or {}).get("moves", ())]


def all_rows(plan: Plan) -> list[Rows]:
    """Give all tables but that of the queues, in the order in which they are read; empty ones are left out."""
    makers: Sequence[Callable[[Plan], Rows]] = (
        quota_events,
        steps,
        follow_ups,
        shadow,
        warnings,
        quota,
        pending,
        refused,
        requeue,
    )
    return [rows for rows in (*(make(plan) for make in makers), *external(plan)) if rows.rows]


def steps(plan: Plan) -> Rows:
    """What would be done, as it has to be carried out."""
    return _step_rows("Steps", plan["steps"])


def shadow(plan: Plan) -> Rows:
    """Evictions of causes in shadow, which are recorded and not carried out."""
    return _step_rows("In shadow: not carried out", plan.get("shadow", ()))


def follow_ups(plan: Plan) -> Rows:
    """What the enabled causes would do next for those that the plan evicts."""
    entries = plan.get("followUps", ())
    several = any(entry.get("cycle") for entry in entries)
    rows = []
    for entry in entries:
        names = ", ".join(dict.fromkeys(f"{e['workload']} ({e['task']})" for e in entry["evict"]))
        cells = (entry["of"], entry["cause"], names, cost_figure(float(entry["cost"])))
        rows.append((str(entry.get("cycle", 0)), *cells) if several else cells)
    headings = ("for", "cause", "would be evicted next", COST)
    return Rows(
        "What would follow", ("cycle", *headings) if several else headings, rows, numbers=("cycle", COST),
        wide=("would be evicted next", "for"),
    )  # fmt: skip


def warnings(plan: Plan) -> Rows:
    """What did not go as it should: searches cut off, plugins that misbehave, what stays on nodes to be emptied."""
    return Rows("Warnings", ("warning",), [(text,) for text in plan.get("warnings", ())], wide=("warning",))


def _step_rows(title: str, entries: Sequence[Plan]) -> Rows:
    several = any(step.get("cycle") for step in entries)
    evicts = any("cause" in step for step in entries)
    serves = any(step.get("for") for step in entries)
    headings = ["action", "workload", "task", "node"]
    if several:
        headings.insert(0, "cycle")
    if evicts:
        headings += [*(["for"] if serves else []), COST, "why"]
    rows, before = [], ""
    for step in entries:
        cells = [step["action"], step["workload"], step["task"], _place(step)]
        if several:
            cells.insert(0, str(step.get("cycle", 0)))
        if evicts:
            cost, why = step.get("cost"), _why(step)
            cells += [step.get("for") or ""] if serves else []
            cells += ["" if cost is None else cost_figure(float(cost)), SAME if why and why == before else why]
            before = why
        rows.append(tuple(cells))
    return Rows(title, tuple(headings), rows, numbers=("cycle", COST), wide=("why", "node", "workload", "for"))


def _place(step: Plan) -> str:
    devices = step.get("devices") or ()
    on = f" (GPU {_ranges(devices)})" if devices else ""
    to = f" to {step['to']}" if step.get("to") else ""
    wave = f", wave {step['wave']}" if step.get("wave") is not None else ""
    until = f", by {step['deadline']}" if step.get("deadline") else ""
    return f"{step.get('node') or NOTHING}{on}{to}{wave}{until}"


def _ranges(numbers: Sequence[int]) -> str:
    """Write numbers with those that follow each other as a range: ``0-3, 6``."""
    parts: list[list[int]] = []
    for value in sorted(numbers):
        if parts and value == parts[-1][-1] + 1:
            parts[-1].append(value)
        else:
            parts.append([value])
    return ", ".join(str(part[0]) if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in parts)


def _why(step: Plan) -> str:
    """Give the reason, behind the cause where it does not name that itself."""
    cause, reason = step.get("cause"), step.get("reason")
    named = cause and reason and f"({cause})" in reason
    return ": ".join(part for part in (None if named else cause, reason) if part)


def pending(plan: Plan) -> Rows:
    """What waits, one reason per line of the table, and when it would start."""
    rows = []
    for entry in plan["pending"]:
        start = entry.get("estimatedStart")
        for index, reason in enumerate(entry["reasons"] or [{"message": "", "code": ""}]):
            first = index == 0
            rows.append(
                (
                    entry["workload"] if first else "",
                    ": ".join(part for part in (reason["code"], reason["message"]) if part),
                    (start or NOTHING) if first else "",
                )
            )
    return Rows("Waiting", ("workload", "why", "would start"), rows, wide=("why", "workload"))


def refused(plan: Plan) -> Rows:
    """Evictions that a shield forbids, those of one shield for one contender together."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in plan.get("refused", ()):
        key = entry["cause"], entry.get("for") or NOTHING, entry["shield"], entry.get("until") or NOTHING
        groups.setdefault(key, []).append(entry["workload"])
    rows = [(_first_of(found), *key) for key, found in groups.items()]
    return Rows(
        "Evictions refused", ("workload", "cause", "for", "shield", "until"), rows, wide=("workload", "for", "shield")
    )


def _first_of(names: Sequence[str], most: int = MOST_NAMED) -> str:
    """List names, or the first ones and how many more there are."""
    listed = list(dict.fromkeys(names))
    if len(listed) <= most + 1:
        return "; ".join(listed)
    return f"{'; '.join(listed[:most])}; and {len(listed) - most:,} more"


_EVENTS = {"armed": "armed", "moved": "deadline moved", "fired": "fires", "cleared": "settled"}


def quota_events(plan: Plan) -> Rows:
    """When queues are armed, fire and are settled, over all cycles."""
    rows = [
        (
            entry["at"],
            entry["queue"],
            _EVENTS.get(entry["event"], entry["event"]),
            entry.get("deadline") or NOTHING,
            number(entry["tasks"]) if "tasks" in entry else "",
            cost_figure(float(entry["cost"])) if "cost" in entry else "",
        )
        for entry in plan.get("quotaEvents", ())
    ]
    headings = ("at", "queue", "event", "deadline", "tasks", COST)
    return Rows("Quotas", headings, rows, numbers=("tasks", COST), wide=("queue", "event"))


def quota(plan: Plan) -> Rows:
    """Queues over their maximum at the end, and what keeps them there."""
    rows = [
        (
            entry["queue"],
            entry["state"],
            entry.get("deadline") or NOTHING,
            amounts(entry.get("over") or {}) or NOTHING,
            amounts(entry.get("shortfall") or {}) or NOTHING,
            _first_of([_blocker(blocker) for blocker in entry.get("blockers", ())]) or NOTHING,
        )
        for entry in plan.get("quota", ())
    ]
    headings = ("queue", "state", "deadline", "over by", "not enforced", "because of")
    return Rows("Queues over their maximum", headings, rows, wide=("queue", "over by", "not enforced", "because of"))


def _blocker(blocker: Plan) -> str:
    """Say what stands in the way: whose guarantee, or which shield of what, and until when."""
    if blocker.get("workload"):
        text = f"{blocker['reason']}: {blocker['workload']}"
    else:
        of = f" of {blocker['resource']}" if blocker.get("resource") else ""
        text = f"{blocker['reason']}{of}: queue {blocker['queue']}"
    return f"{text} until {blocker['until']}" if blocker.get("until") else text


def requeue(plan: Plan) -> Rows:
    """Workloads that were nominated to be requeued and what became of them, and those that were passed over."""
    found = plan.get("requeue") or {}
    nominations = found.get("nominations", ())
    gone = {s["workload"] for s in plan["steps"] if s.get("cause") == "requeue"}
    stay = sum(entry["workload"] not in gone for entry in nominations)
    rest = "rolled back" if 0 < stay <= found.get("rolledBack", 0) else "nominated"
    rows = [(e["workload"], "committed" if e["workload"] in gone else rest, ", ".join(e["by"])) for e in nominations]
    rows += [
        (entry["workload"], "skipped", f"{entry['plugin']}: {entry['reason']}") for entry in found.get("skipped", ())
    ]
    return Rows("Requeue", ("workload", "state", "by"), rows, wide=("by", "workload"))


def told_moves(plan: Plan, most: int = 0) -> tuple[list[tuple[str, Rows]], str]:
    """Say of each plan of moves what `move_sentence` says, with its waves; those that say the same are one.

    Where there are more than ``most`` (0: give all), what moves something is told first, and the text says what is
    left out; it is empty where nothing is.
    """
    told: dict[tuple[int, str], list[Plan]] = {}
    for place, move in enumerate(all_moves(plan)):
        alone = move.get("waves") or not move.get("for")
        told.setdefault((place, "") if alone else (-1, move_sentence({**move, "for": ()})), []).append(move)
    found = [{**alike[0], "for": [name for move in alike for name in move.get("for") or ()]} for alike in told.values()]
    if most and len(found) > most:
        found.sort(key=lambda move: not move.get("waves"))
    shown = found[:most] if most else found
    return [(move_sentence(move), waves(move)) for move in shown], _untold(found[len(shown) :])


def _untold(moves: Sequence[Plan]) -> str:
    if not moves:
        return ""
    whom = len({name for move in moves for name in move["for"]})
    about = f" for {count(whom, 'workload')}" if whom else ""
    return f"{count(len(moves), 'more outcome')} of looking for moves{about}: --top 0 shows all."


def move_sentence(move: Plan) -> str:
    """Say for which workload tasks are moved, and how good the plan is."""
    trigger = move.get("trigger", "")
    text = f"{move_aim(move)}{' (in shadow: nothing is carried out)' if move.get('shadow') else ''} ({trigger}): "
    feasible, certificate = move.get("feasible", True), move.get("certificate") or {}
    method = certificate.get("method", "")
    if not feasible:
        text += f"{_FAILS.get(trigger, 'no moves make room')}{f' ({method})' if method else ''}."
    else:
        found = move.get("waves") or ()
        text += f"{count(sum(map(len, found)), 'move')} in {count(len(found), 'wave')}{_later(move)}."
        if certificate:
            text += f" The moves cost {_figure(certificate.get('cost'))}{_proven(certificate)} ({method})."
    reason = certificate.get("reason") or ""
    return text + (f" {reason[:1].upper()}{reason[1:]}{'' if reason.endswith('.') else '.'}" if reason else "")


_AIMS = {"drain": "To empty", "hot-node": "To cool", "new-nodes": "To make use of"}
_FAILS = {"drain": "what is there cannot all be moved off", "hot-node": "no moves cool it enough"}


def move_aim(move: Plan) -> str:
    """Say what moves are for: for which workloads, or for which nodes."""
    whom, nodes = tuple(dict.fromkeys(move.get("for") or ())), move.get("nodes") or ()
    if whom:
        named = _first_of(whom)
        return f"For {named}" if len(whom) <= MOST_NAMED + 1 else f"For {count(len(whom), 'workload')} ({named})"
    aim = _AIMS.get(move.get("trigger", ""))
    return f"{aim} {_first_of(nodes)}" if aim and nodes else "For a better layout"


def _later(move: Plan) -> str:
    """Say of waves that do not leave at once what they wait for."""
    waves, leaving = len(move.get("waves") or ()), move.get("leaving")
    if leaving is None or leaving >= waves:
        return ""
    leave = f"{leaving} leaves" if leaving == 1 else f"{leaving or 'none'} leave"
    return f", of which {leave} now: what follows is planned anew once that has landed"


def _proven(certificate: Plan) -> str:
    """Say what is known of how good a plan is: by the least it could cost, or by the most it could gain.

    That no plan costs less than nothing is no news.
    """
    if certificate.get("gain") is None:
        bound = certificate.get("lowerBound")
        if not bound and certificate.get("cost"):
            return ""
        return f"; no plan can cost less than {_figure(bound)}"
    gain, net, bound = (figure_text(float(certificate[key]), 3) for key in ("gain", "net", "bound"))
    return f"; they gain {gain} weighted resources, {net} after their cost, and no plan can leave more than {bound}"


def _figure(value: float | None) -> str:
    return NOTHING if value is None else weighted_hours(float(value))


def waves(move: Plan) -> Rows:
    """Moves of one plan by wave."""
    rows = [
        (str(index), entry["workload"], entry["task"], entry["from"], entry["to"], entry.get("mode", ""))
        for index, wave in enumerate(move.get("waves") or ())
        for entry in wave
    ]
    return Rows("", ("wave", "workload", "task", "from", "to", "mode"), rows, numbers=("wave",), wide=("workload",))


@dataclass(frozen=True, slots=True)
class QueueBar:
    """A bar for one resource of one queue, in the model's units, GPUs in milli-GPU; ``None``: not set."""

    queue: str
    resource: str
    allocated: int
    fair_share: int | None
    guaranteed: int | None
    maximum: int | None

    def text(self, value: int | None) -> str:
        """Write one of its amounts."""
        return NOTHING if value is None else bare_amount(self.resource, value)


def queue_bars(plan: Plan) -> list[QueueBar]:
    """Give what every queue holds of every resource that it holds, is due, or that is limited."""
    return [
        QueueBar(
            queue["name"],
            resource,
            _amount(queue["allocated"], resource) or 0,
            _amount(queue["fairShare"], resource),
            _amount(queue["guaranteed"], resource),
            _amount(queue["max"], resource),
        )
        for queue in plan["queues"]
        for resource in _resources(queue)
    ]


def _resources(queue: Plan) -> list[str]:
    named = [queue[key] for key in ("allocated", "fairShare", "guaranteed", "max")]
    present = {name for amounts in named for name, value in amounts.items() if value or amounts is queue["max"]}
    gpu = [MILLI_GPU] if present & {GPU, MILLI_GPU} else []
    known = [name for name in (CPU, MEMORY) if name in present]
    return gpu + known + sorted(present - {GPU, MILLI_GPU, CPU, MEMORY, "pods"})


def _amount(held: dict[str, int], resource: str) -> int | None:
    if resource == MILLI_GPU:
        return gpu_milli(held) if held.keys() & {GPU, MILLI_GPU} else None
    return held.get(resource)


def queue_rows(plan: Plan) -> Rows:
    """Queues with what they hold and what they are due."""
    rows = []
    last = ""
    for bar in queue_bars(plan):
        name = "GPU" if bar.resource == MILLI_GPU else bar.resource
        figures = (bar.allocated, bar.fair_share, bar.guaranteed, bar.maximum)
        rows.append(("" if bar.queue == last else bar.queue, name, *(bar.text(value) for value in figures)))
        last = bar.queue
    headings = ("queue", "resource", "allocated", "fair share", "guaranteed", "max")
    return Rows("Queues", headings, rows, numbers=headings[2:], wide=("queue",))
