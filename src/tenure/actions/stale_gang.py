"""Stale gang: a running workload that has lost part of its core and got no replacement is evicted (spec: gangs)."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.actions.context import Context
from tenure.engine.plan import Refused
from tenure.engine.refusal import Refusal
from tenure.engine.serving.allocation import serve
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.state.evictions import evict
from tenure.engine.state.shortage import running_of_needed
from tenure.engine.state.workloads import SUCCEEDED, WorkloadState
from tenure.model.settings import Cause
from tenure.model.values.duration import format_duration
from tenure.model.values.readable import weighted_hours
from tenure.victims.dry_run.outcome import AcceptedSet
from tenure.victims.recording.record import prices, record
from tenure.victims.rules.pieces import pieces_of

CAUSE: Cause = "stale-gang"


def stale_gang(context: Context) -> None:
    """Note who is stale and since when, and evict those whose grace is over."""
    for workload, whole in _of_interest(context):
        if whole or not workload.occupied():
            _note(context, workload, None)
        elif not any(t.phase is SUCCEEDED for t in workload.tasks):
            _judge(context, workload)


def _of_interest(context: Context) -> list[tuple[WorkloadState, bool]]:
    """Give those that lack something, or did, by name, and whether their core is whole."""
    looked = [(w, w.root.satisfied()) for w in _watched(context)]
    found = [(w, whole) for w, whole in looked if not whole or w.stale_since is not None]
    return sorted(found, key=lambda f: f[0].key)


def _watched(context: Context) -> Iterable[WorkloadState]:
    """Gangs that came with tasks that ran already: those that are started here start whole and stay whole."""
    session, watched = context.session, context.watched
    gangs = session.roster.gangs
    for workload in gangs.values() if watched is None else session.added:
        if workload.key in gangs and any(t.node >= 0 for t in workload.tasks):
            watched = {} if watched is None else watched
            watched[workload.key] = workload
    context.watched = watched = watched or {}
    for key in [k for k, w in watched.items() if session.workloads.get(k) is not w]:
        del watched[key]
    return watched.values()


def _note(context: Context, workload: WorkloadState, since: int | None) -> None:
    if workload.stale_since != since:
        context.session.journal.set(workload, "stale_since", since)
        context.plan.stale[workload.key] = since


def _judge(context: Context, workload: WorkloadState) -> None:
    """Evict a stale workload once its grace is over; a negative grace never is."""
    session, own = context.session, workload.model.staleness_grace_period
    grace = session.settings.staleness_grace_period if own is None else own
    if workload.stale_since is None:
        _note(context, workload, session.now)
    since = workload.stale_since
    if grace < 0 or since is None:
        return
    if session.now < since + grace:
        context.evicting().wake_at(since + grace)
    elif not _gets_whole(context, workload):
        _evict(context, workload, grace)


def _gets_whole(context: Context, workload: WorkloadState) -> bool:
    """Whether what it lacks has a place once all that wait are served in order, as this cycle does: then it stays."""
    session = context.session
    if "allocate" not in session.settings.actions:
        return False
    with session.scenario():
        session.new_epoch()
        serve(session, context.placer, context.fairness.now())
        return workload.root.satisfied()


def _evict(context: Context, workload: WorkloadState, grace: int) -> None:
    session, state = context.session, context.evicting()
    pieces = [p for p in pieces_of(session, workload, frozenset(), core=True) if p.whole]
    price = prices(state, pieces, CAUSE, None)
    short = running_of_needed(workload.root)
    tasks = [t for p in pieces for t in p.tasks]
    refusal = state.plugins.budgets.validate(session, CAUSE, None, tasks, forced=tasks)
    if refusal is not None:
        _spare(context, workload, refusal)
        return
    context.give_up(nominated_tasks(workload))
    for task in tasks:
        evict(session, task)
    session.refresh(workload)
    _note(context, workload, None)

    def reason(_: WorkloadState, cost: float) -> str:
        return (
            f"{workload.key} {short}: it is stale, and its grace period of {format_duration(grace)} is over; "
            f"the eviction costs {weighted_hours(cost)}"
        )

    record(state, AcceptedSet(pieces, [], evicted=tasks), price, CAUSE, None, reason)


def _spare(context: Context, workload: WorkloadState, refusal: Refusal) -> None:
    """Note that a budget that names the cause, or a PodDisruptionBudget, keeps a stale gang; look again then."""
    context.plan.refused.append(Refused(workload.key, CAUSE, None, refusal.shield, refusal.until, refusal.message))
    if refusal.until is not None:
        context.evicting().wake_at(refusal.until)
