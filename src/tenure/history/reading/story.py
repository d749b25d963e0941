"""Records in words: one sentence for each."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import groupby
from typing import Any

from tenure.history.record import HistoryRecord
from tenure.model.amounts import UNITS
from tenure.model.values.duration import format_time
from tenure.model.values.readable import time_span
from tenure.model.values.resources import CPU, GPU, MEMORY, plain_amounts

_NODES = 4


def sentence(record: HistoryRecord, workload: str | None = None) -> str:
    """Say in one sentence what a record tells; ``workload`` is whose story it is, where it is one."""
    fields = record.payload
    if workload is not None and record.workload != workload:
        return _for(record)
    return _SENTENCES.get(record.kind, _other)(record, fields)


def told_together(records: Iterable[HistoryRecord]) -> Iterator[HistoryRecord]:
    """Make one record of those that say the same of several tasks of one workload, with the sums of what they lost.

    The first task is named in it, and ``others`` counts the rest.
    """
    for _, group in groupby(records, _same):
        first, *rest = group
        yield first if not rest else _together(first, rest)


def _same(record: HistoryRecord) -> tuple[object, ...]:
    """Give what records have in common that are told together; those of no task, and moves, are told singly."""
    fields = record.payload
    if "task" not in fields or fields.get("to"):
        return (record.key,)
    told = (fields.get(name) for name in ("reason", "deadline", "error", "unproven"))
    return record.at, record.kind, record.workload, record.cause, record.beneficiary, *told


def _together(first: HistoryRecord, rest: list[HistoryRecord]) -> HistoryRecord:
    fields = dict(first.payload)
    fields["others"] = len(rest)
    nodes = list(dict.fromkeys(str(r.payload["node"]) for r in (first, *rest) if r.payload.get("node")))
    if nodes:
        fields["node"] = _listed(nodes)
    lost: dict[str, int] = {}
    for record in (first, *rest):
        for resource, amount in record.payload.get("lost", {}).items():
            lost[resource] = lost.get(resource, 0) + amount
    if lost:
        fields["lost"] = lost
    return first._replace(payload=fields)


def _task(fields: Mapping[str, Any]) -> str:
    """Name a task, or the first of several that are told together."""
    others = fields.get("others", 0)
    return f"tasks {fields.get('task')} and {others} more" if others else f"task {fields.get('task')}"


def _is(fields: Mapping[str, Any], one: str, several: str) -> str:
    return several if fields.get("others") else one


def _for(record: HistoryRecord) -> str:
    """What was done to other workloads for the workload whose story it is."""
    fields = record.payload
    more = f" and {fields['others']} more" if fields.get("others") else ""
    where = f" on {fields['node']}" if fields.get("node") else ""
    task = f" ({fields['task']}{more}{where})" if fields.get("task") else ""
    verb = {
        "evicted": "was evicted for it", "noticed": "was told to go for it", "shadow": "would be evicted for it",
        "planned": "is to go for it", "failed": "was to go for it, and stays", "withdrawn": "need not go for it",
    }  # fmt: skip
    text = f"{record.workload}{task} {verb.get(record.kind, record.kind)} by {record.cause}"
    return f"{text}, which lost {_amounts(fields.get('lost', {}))}" if fields.get("lost") else text


def _submitted(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    tasks = fields.get("tasks", 0)
    ask = ", ".join(f"{_amount(r, a)} {_unit(r)}" for r, a in fields.get("ask", {}).items())
    expected = f", expected to run {time_span(fields['expected'])}" if fields.get("expected") else ""
    return f"submitted to {record.queue} with {tasks} task{'s' * (tasks != 1)}, asking for {ask or 'nothing'}{expected}"


def _started(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    room = "within its queue's guaranteed" if fields.get("entitled") else "on borrowed room"
    again = " again" if fields.get("again") else ""
    return f"started{again} after {time_span(record.value)}, {room}, on {_places(fields)}"


def _placed(_record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    if fields.get("replaces"):
        return f"what was moved landed on {_places(fields)}"
    return f"grew by {len(fields.get('tasks', ()))} on {_places(fields)}"


def _ended(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    if fields.get("state") == "dropped":
        return f"left without having started: {fields.get('reason')}"
    return f"{fields.get('state', 'ended')} after {time_span(record.value)}"


def _evicted(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    where = f" from {fields['node']}" if fields.get("node") else ""
    to = f" to {fields['to']}" if fields.get("to") else ""
    whom = f" for {record.beneficiary}" if record.beneficiary else ""
    lost = f", losing {_amounts(fields.get('lost', {}))}" if fields.get("lost") else ""
    reason = f": {fields['reason']}" if fields.get("reason") else ""
    if fields.get("unproven"):
        reason += " (it was announced and is gone; whether it was evicted is unknown)"
    return f"{_task(fields)} {'moved' if to else 'evicted'}{where}{to} by {record.cause}{whom}{lost}{reason}"


def _noticed(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    whom = f" for {record.beneficiary}" if record.beneficiary else ""
    by = f" by {format_time(fields['deadline'])}" if "deadline" in fields else ""
    return f"{_task(fields)} told to go{by}{whom} ({record.cause})"


def _withdrawn(_record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    return f"{_task(fields)} may stay: {_is(fields, 'its notice was', 'their notices were')} withdrawn"


def _planned(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    whom = f" for {record.beneficiary}" if record.beneficiary else ""
    reason = f": {fields['reason']}" if fields.get("reason") else ""
    others = [f"{workload} ({shield})" for workload, shield in fields.get("considered", ())]
    more = f" and {fields['more']} more" if fields.get("more") else ""
    considered = f"; not taken: {', '.join(others)}{more}" if others else ""
    return f"{_task(fields)} {_is(fields, 'is', 'are')} to go{whom} ({record.cause}){reason}{considered}"


def _failed(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    whom = f" for {record.beneficiary}" if record.beneficiary else ""
    verbs = ("was", "stays") if not fields.get("others") else ("were", "stay")
    return f"{_task(fields)} {verbs[0]} to go{whom} ({record.cause}) and {verbs[1]}: {fields.get('error')}"


def _shadow(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    return f"would have been evicted by {record.cause}, which is in shadow: {fields.get('reason', '')}"


def _outcome(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    estimated = fields.get("estimated")
    without = "at an unknown time" if estimated is None else format_time(estimated)
    return (
        f"it started {format_time(fields['start'])} because of {record.cause} at {format_time(fields['evictedAt'])}; "
        f"without, it would have started {without}: gained {_amounts(fields.get('gained', {}))}"
    )


def _nominated(_record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    return f"room is promised on {_places(fields)}"


def _unpromised(_record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    if fields.get("how") == "bound":
        return "it has taken the room that was promised"
    return f"its promised room is given up: {fields.get('how')}"


def _held(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    until = f" until {format_time(fields['until'])}" if fields.get("until") is not None else ""
    since = format_time(fields.get("since", record.at))
    victim, shield = fields.get("victim"), fields.get("shield")
    return f"held up since {since}: {victim} is protected from {record.cause} by {shield}{until}"


def _other(record: HistoryRecord, fields: Mapping[str, Any]) -> str:
    told = ", ".join(f"{name} {value}" for name, value in fields.items() if isinstance(value, str | int))
    return record.kind + (f": {told}" if told else "")


_SENTENCES = {
    "submitted": _submitted, "started": _started, "placed": _placed, "ended": _ended, "evicted": _evicted,
    "planned": _planned, "failed": _failed, "noticed": _noticed, "withdrawn": _withdrawn, "shadow": _shadow,
    "outcome": _outcome, "nominated": _nominated, "nomination-ended": _unpromised, "held": _held,
}  # fmt: skip


def _places(fields: Mapping[str, Any]) -> str:
    nodes = list(dict.fromkeys(str(task[1]) for task in fields.get("tasks", ())))
    return _listed(nodes) or "no node"


def _listed(nodes: list[str]) -> str:
    more = f" and {len(nodes) - _NODES} more" if len(nodes) > _NODES else ""
    return ", ".join(nodes[:_NODES]) + more


def _unit(resource: str) -> str:
    return {GPU: "GPUs", CPU: "cores", MEMORY: "GiB of memory"}.get(resource, resource)


def _amount(resource: str, amount: int) -> str:
    if resource == MEMORY:
        return f"{amount / (1 << 30):,.10g}"
    return f"{amount / UNITS.get(resource, 1):,.10g}"


def _amounts(sums: Mapping[str, int]) -> str:
    """Give sums over time in hours of GPUs and cores; of nothing else, where there are such."""
    known = [r for r in (GPU, CPU) if sums.get(r)]
    hours = (f"{sums[r] / UNITS.get(r, 1) / 3.6e9:,.2f} {_unit(r).removesuffix('s')}-hours" for r in known)
    return ", ".join(hours) or "nothing"


def story_json(workload: str, records: list[HistoryRecord]) -> dict[str, Any]:
    """Give a story as plain data: what happened when, by which cause, for whom or for it from whom, in words."""
    return {"workload": workload, "records": [_plain(record, workload) for record in records]}


def _plain(record: HistoryRecord, workload: str) -> dict[str, Any]:
    plain: dict[str, Any] = {"at": format_time(record.at), "kind": record.kind}
    if record.cause is not None:
        plain["cause"] = record.cause
    if record.beneficiary is not None:
        plain["for"] = record.beneficiary
    if record.workload is not None and record.workload != workload:
        plain["workload"] = record.workload
    if record.queue is not None:
        plain["queue"] = record.queue
    fields = record.payload
    if "ask" in fields:
        fields = fields | {"ask": plain_amounts(fields["ask"])}
    return plain | {"message": sentence(record, workload), "fields": fields}
