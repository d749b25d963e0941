"""What ``tenure plan --format json`` prints. Its fields are a contract."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.engine.moves import NEVER, MovePlan
from tenure.engine.plan import EVICTING, NextEviction, Pending, PlanStep, Refused
from tenure.model.values.duration import format_time
from tenure.model.values.resources import plain_amounts
from tenure.playthrough import PlayThrough, QueueView
from tenure.report.plans.quota_json import quota_event_json, quota_json
from tenure.report.plans.requeue_json import requeue_json


def plan_json(played: PlayThrough) -> dict[str, Any]:
    """Give the result as plain data, in the documented form."""
    found = {
        "now": format_time(played.before.now),
        "steps": [_step(s) for s in played.steps],
        "shadow": [_step(s) for s in played.shadow],
        "pending": [_pending(p) for p in played.pending],
        "refused": [_refused(r) for r in played.refused],
        "requeue": requeue_json(played.requeue),
        "quota": [quota_json(q, plain_amounts) for q in played.quota],
        "quotaEvents": [quota_event_json(e) for e in played.quota_events],
        "moves": [_move(m) for m in played.moves],
        "followUps": [_follow_up(number, f) for number, f in played.follow_ups],
        "queues": [_queue(q) for q in played.queues],
        "warnings": list(played.warnings),
        "counters": [{"name": s.name, "labels": dict(s.labels), "value": s.value} for s in played.counters],
        "events": [
            {"cycle": number, "on": e.kind, "name": e.name, "reason": e.reason, "message": e.message}
            for e, number in played.events.items()
        ],
    }
    if played.external is not None:
        found["external"] = _beside(played.external, played.before.settings.rescheduler.schedulers)
    return found


def _beside(played: PlayThrough, schedulers: Sequence[str]) -> dict[str, Any]:
    """Give what is planned for the pods that other schedulers bind."""
    return {
        "schedulers": list(schedulers),
        "steps": [_step(s) for s in played.steps],
        "shadow": [_step(s) for s in played.shadow],
        "pending": [_pending(p) for p in played.pending],
        "moves": [_move(m) for m in played.moves],
        "warnings": list(played.warnings),
    }


def _step(step: PlanStep) -> dict[str, Any]:
    found: dict[str, Any] = {
        "cycle": step.cycle,
        "action": step.action,
        "workload": step.workload,
        "task": step.task,
        "node": step.node,
    }
    if step.action == "withdraw":
        found |= {"cause": step.cause, "for": step.beneficiary, "reason": step.reason}
    elif step.action in EVICTING:
        found |= {"cause": step.cause, "for": step.beneficiary, "cost": step.cost, "reason": step.reason}
        if step.action == "notice":
            found["deadline"] = format_time(step.deadline)
        if step.to is not None:
            found["to"] = step.to
        if step.wave is not None:
            found["wave"] = step.wave
    else:
        found["devices"] = list(step.devices)
        if step.volumes:
            found["volumes"] = {
                v.claim: {"volume": v.volume} if v.volume else {"madeFor": v.node} for v in step.volumes
            }
        if step.claims:
            found["claims"] = {
                c.claim: [
                    {"request": d.request, "driver": d.driver, "pool": d.pool, "device": d.device}
                    for d in c.allocation.devices
                ]
                for c in step.claims
            }
    return found


def _follow_up(cycle: int, follow_up: NextEviction) -> dict[str, Any]:
    evict = [{"workload": workload, "task": task} for workload, task in follow_up.evict]
    return {
        "cycle": cycle, "of": follow_up.of, "cause": follow_up.cause, "for": follow_up.of, "evict": evict,
        "cost": follow_up.cost,
    }  # fmt: skip


def _move(move: MovePlan) -> dict[str, Any]:
    return {
        "for": list(move.beneficiaries),
        "trigger": move.trigger,
        "feasible": move.feasible,
        "shadow": move.shadow,
        "nodes": list(move.nodes),
        "leaving": len(move.waves) if move.leaving is None else move.leaving,
        "waves": [
            [{"workload": s.workload, "task": s.task, "from": s.origin, "to": s.target, "mode": s.mode} for s in wave]
            for wave in move.waves
        ],
        "certificate": {
            "cost": None if move.cost is None else float(move.cost),
            "lowerBound": float(move.lower_bound) if move.lower_bound < NEVER else None,
            "gap": move.gap,
            "method": move.method,
            "reason": move.reason,
            **_gains(move),
        },
    }


def _gains(move: MovePlan) -> dict[str, float]:
    """What moves gain that are made for the layout's sake."""
    if move.gain is None or move.net is None or move.bound is None:
        return {}
    return {"gain": round(move.gain, 6), "net": round(move.net, 6), "bound": round(move.bound, 6)}


def _refused(refused: Refused) -> dict[str, Any]:
    return {
        "workload": refused.workload,
        "cause": refused.cause,
        "for": refused.beneficiary,
        "shield": refused.shield,
        "until": None if refused.until is None else format_time(refused.until),
        "message": refused.message,
    }


def _pending(pending: Pending) -> dict[str, Any]:
    start = pending.estimated_start
    return {
        "workload": pending.workload,
        "reasons": [r.plain() for r in pending.reasons],
        "estimatedStart": None if start is None else format_time(start),
    }


def _queue(queue: QueueView) -> dict[str, Any]:
    return {
        "name": queue.name,
        "allocated": plain_amounts(queue.allocated),
        "fairShare": plain_amounts(queue.fair_share),
        "guaranteed": plain_amounts(queue.guaranteed),
        "max": plain_amounts(queue.maximum),
    }
