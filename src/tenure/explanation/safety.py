"""How safe a workload that runs is: what protects it from which cause and until when, and what may evict it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

from tenure.engine.plan import Reason
from tenure.engine.quota_state import QuotaState
from tenure.engine.refusal import Refusal
from tenure.engine.state.queues import QueueTree
from tenure.engine.state.session import Session
from tenure.engine.state.shortage import running_of_needed
from tenure.engine.state.workloads import WorkloadState
from tenure.explanation.standing_rules import StandingRules
from tenure.model.modes import mode_of
from tenure.model.settings import Cause, Settings
from tenure.model.values.duration import format_time
from tenure.model.values.readable import amount_with_unit, bare_quantity
from tenure.shields.min_runtime import SHIELD as MIN_RUNTIME
from tenure.shields.opt_out import spared_until
from tenure.shields.policy import disabled
from tenure.shields.preemptibility import preemptibility
from tenure.victims.rules.pieces import held

CAUSES: Final[tuple[Cause, ...]] = ("reclaim", "preempt", "requeue", "quota")
"""Causes that take room away and give no other place for it."""


def safety(
    standing: StandingRules, workload: str, quota: Sequence[QuotaState], said: Collection[str] = ()
) -> Iterator[Reason]:
    """Say of a workload (namespace/name) that runs how safe it is from the causes that are enforced.

    What a single contender would make of it is not asked, nor whether there is one.

    Parameters
    ----------
    standing
        The rules of the cluster after its cycle.
    workload
        Its key. Of one that holds no room in a queue nothing is said.
    quota
        The queues that are over their max.
    said
        Messages of refusals that are told already.
    """
    session = standing.session
    running = session.workloads.get(workload)
    if running is None or running.leaf < 0 or not running.occupied():
        return
    yield from (stale := list(_stale(session, running)))
    if never := preemptibility(running) or disabled(session.queues, running.leaf):
        yield _protected(CAUSES, never, f"no {'other ' * len(stale)}cause evicts it")
        return
    ends_of_sparing = (spared_until(session, t) for t in running.tasks if t.node >= 0)
    if asked := max((at for at in ends_of_sparing if at is not None and session.now < at), default=None):
        until = format_time(asked)
        text = f"it is spared, at the longest until {until}: it is evicted only where nothing else helps"
        yield Reason("Spared", text, {"until": until})
    ends = _minimum_runtimes_end(standing, running)
    open_to, refused = _asked(standing, running, _acting(session.settings, quota), ends)
    for refusal, causes in refused.items():
        if refusal.message not in said:
            yield _protected(causes, refusal, f"from {' and '.join(causes)}")
    if any(refusal.core_only for refusal in refused) and (surplus := _surplus(running)):
        text = f"{surplus} of its tasks run beyond its minimum, which that does not protect"
        yield Reason("MayGiveWay", text, {"tasks": surplus})
    if "reclaim" in open_to and sum(session.queues.leaf) > 1:
        later = f"; from some queues its minimum runtime protects it until {format_time(ends[-1])}"
        yield _reclaim(standing, running, later if ends[-1] > session.now else "")
    if "preempt" in open_to:
        queue = session.queues.queues[running.leaf].name
        text = f"a workload of queue {queue} with a priority above {running.priority} may preempt it"
        yield Reason("MayGiveWay", text, {"cause": "preempt", "priority": running.priority})
    if "quota" in open_to:
        yield from (_quota(state) for state in _above(session.queues, running, quota))


def _stale(session: Session, running: WorkloadState) -> Iterator[Reason]:
    """Say from when on it is evicted because it runs below its core, if it is: no shield keeps it from that."""
    settings, since = session.settings, running.stale_since
    own = running.model.staleness_grace_period
    grace = settings.staleness_grace_period if own is None else own
    acts = "stale-gang" in settings.actions and mode_of(settings, "stale-gang") == "enforce"
    if since is not None and grace >= 0 and acts:
        until, short = format_time(since + grace), running_of_needed(running.root)
        text = f"from {until} on stale-gang evicts it, unless what it lacks has a place by then: it {short}"
        yield Reason("MayGiveWay", text, {"cause": "stale-gang", "from": until})


def _acting(settings: Settings, quota: Sequence[QuotaState]) -> list[Cause]:
    """Give the causes that evict on this cluster; a lowered quota does where a queue is over its max."""
    acting = [c for c in CAUSES if c in settings.actions and mode_of(settings, c) == "enforce"]
    return [c for c in acting if c != "quota" or quota]


def _asked(
    standing: StandingRules, running: WorkloadState, causes: Sequence[Cause], ends: Sequence[int]
) -> tuple[list[Cause], dict[Refusal, list[Cause]]]:
    """Ask the shields of each cause: give the causes that nothing holds back, and the others by what does."""
    open_to: list[Cause] = []
    refused: dict[Refusal, list[Cause]] = {}
    for cause in causes:
        refusal = standing.plugins.filter(standing.session, cause, None, running)
        if cause == "reclaim" and (refusal is None or refusal.shield == MIN_RUNTIME):
            refusal = _by_other_queue(standing.session.now, ends, refusal)
        if refusal is None:
            open_to.append(cause)
        else:
            refused.setdefault(refusal, []).append(cause)
    return open_to, refused


def _minimum_runtimes_end(standing: StandingRules, running: WorkloadState) -> list[int]:
    """Give when its minimum runtime ends or ended, in µs, against reclaim by each other leaf; soonest first."""
    session, shield = standing.session, standing.plugins.min_runtime
    others = (leaf for leaf, is_leaf in enumerate(session.queues.leaf) if is_leaf and leaf != running.leaf)
    return sorted({shield.protected_until(session, "reclaim", leaf, running) for leaf in others})


def _by_other_queue(now: int, ends: Sequence[int], refusal: Refusal | None) -> Refusal | None:
    """Give how minimum runtime holds reclaim back whichever queue takes: until the soonest of its ends, if any."""
    if not ends or (refusal is not None and ends == [refusal.until]):
        return refusal
    if ends[0] <= now:
        return None
    longer = ", and from some queues longer" if len(ends) > 1 else ""
    text = f"its minimum runtime protects it until {format_time(ends[0])}{longer}"
    return Refusal(MIN_RUNTIME, text, ends[0], core_only=True)


def _surplus(running: WorkloadState) -> int:
    return sum(max(0, sum(t.active for t in leaf.tasks) - leaf.minimum) for leaf in running.root.leaves())


def _protected(causes: Sequence[Cause], refusal: Refusal, scope: str) -> Reason:
    numbers = {
        "causes": list(causes), "shield": refusal.shield,
        "until": None if refusal.until is None else format_time(refusal.until),
    }  # fmt: skip
    return Reason("Protected", f"{scope}: {refusal.message}", numbers)


def _reclaim(standing: StandingRules, running: WorkloadState, later: str) -> Reason:
    """Say whether reclaim may take from its leaf: what that and the queues above it hold beyond their guaranteed.

    ``later`` ends a yes.
    """
    session, queues = standing.session, standing.session.queues
    amount = held(session, [t for t in running.tasks if t.node >= 0])
    rows = [row for row in standing.shares.rows if amount[row]]
    for queue in _below_meeting(queues, running.leaf):
        if not _beyond(queues, queue, rows):
            text = f"from reclaim: queue {queues.queues[queue].name} is within its guaranteed"
            text += f": {_standings(queues, queue, rows)}" if rows else ""
            return Reason("Protected", text, {"causes": ["reclaim"], "shield": "guaranteed", "until": None})
    leaf, name = running.leaf, queues.queues[running.leaf].name
    beyond = _beyond(queues, leaf, rows)
    told = _standings(queues, leaf, beyond)
    text = f"reclaim may evict it for a queue that is owed room: queue {name} holds {told}{later}"
    numbers = {"queue": name, "resources": [queues.resources[row] for row in beyond]}
    return Reason("MayGiveWay", text, {"cause": "reclaim", **numbers})


def _below_meeting(queues: QueueTree, leaf: int) -> Iterator[int]:
    """Give the queues from a leaf upward, up to the first that has another beside it: no contender is nearer."""
    for queue in queues.path[leaf]:
        yield queue
        if len(queues.siblings(queue)) > 1:
            return


def _beyond(queues: QueueTree, queue: int, rows: Sequence[int]) -> list[int]:
    """Give the rows of which a queue holds more than its guaranteed."""
    guaranteed = queues.guaranteed[queue]
    return [row for row in rows if queues.allocated[queue][row] > max(0, guaranteed[row])]


def _standings(queues: QueueTree, queue: int, rows: Sequence[int]) -> str:
    return ", ".join(_standing(queues, queue, row) for row in rows)


def _standing(queues: QueueTree, leaf: int, row: int) -> str:
    resource, floor = queues.resources[row], queues.guaranteed[leaf][row]
    due = f"guaranteed {bare_quantity(floor, resource)}" if floor > 0 else "none of it guaranteed"
    return f"{amount_with_unit(queues.allocated[leaf][row], resource)} ({due})"


def _above(queues: QueueTree, running: WorkloadState, quota: Sequence[QuotaState]) -> list[QuotaState]:
    names = {queues.queues[queue].name for queue in queues.path[running.leaf]}
    return [state for state in quota if state.queue in names]


def _quota(state: QuotaState) -> Reason:
    over = ", ".join(amount_with_unit(amount, resource) for resource, amount in sorted(state.over.items()))
    until = format_time(state.deadline)
    text = f"from {until} on quota may evict it: queue {state.queue} is {over} over its maximum"
    return Reason("MayGiveWay", text, {"cause": "quota", "queue": state.queue, "from": until})
