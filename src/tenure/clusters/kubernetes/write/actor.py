"""Carrying plans out on an API server.

The order is that of the specification: what has to survive is written before what it is about. Each write says what it
is about, so that it counts once and only where the plan saw the truth; one that is refused is left out, and the next
cycle plans anew. Between any two writes the process may end. A step that cannot be written, whatever the reason, takes
no other with it but those of its own set.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tenure.clusters.kubernetes.cache.informers import InformerCache
from tenure.clusters.kubernetes.client.requests import ApiError, Client
from tenure.clusters.kubernetes.gpus.keeper import ReservationKeeper
from tenure.clusters.kubernetes.gpus.reservations import DevicePlace
from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.write import eviction_log_writer
from tenure.clusters.kubernetes.write.devices import DeviceWriter
from tenure.clusters.kubernetes.write.evicting import EvictionWriter
from tenure.clusters.kubernetes.write.kueue import KueueEvictions
from tenure.clusters.kubernetes.write.outcome import Failure, Outcome
from tenure.clusters.kubernetes.write.placing import PlacementWriter
from tenure.clusters.kubernetes.write.pod_writer import IN_FLIGHT, PodWriter
from tenure.clusters.kubernetes.write.queue_status import QueueStatuses
from tenure.engine.plan import Plan


class Actor:
    """The writer that carries plans out on an API server.

    ``allowed`` is asked before each write, and raises where this process may write no more.
    """

    def __init__(
        self,
        client: Client,
        informers: InformerCache,
        *,
        in_flight: int = IN_FLIGHT,
        allowed: Callable[[], None] = lambda: None,
    ) -> None:
        self.allowed = allowed
        self.logbook = eviction_log_writer.EvictionLogWriter(client, informers, allowed)
        self.statuses = QueueStatuses(client, informers)
        self.reservations = ReservationKeeper(client, informers)
        self._kueue = KueueEvictions(client, informers)
        self._pods = PodWriter(client, informers, in_flight, allowed)
        self._placing = PlacementWriter(self._pods, DeviceWriter(client, informers), self.reservations)
        self._evicting = EvictionWriter(self._pods, self.logbook)
        self.bindings = self._placing.bindings

    def close(self) -> None:
        """Finish what is under way, and begin nothing more."""
        self._pods.close()

    def stands(self, plan: Plan) -> bool:
        """Whether a plan may be carried out: not if it does more than bind, and a binding that it counts on failed.

        The plan that is made after that knows of it, and stands.
        """
        if _only_binds(plan):
            return True
        self.bindings.wait()
        return not self.bindings.is_any_refused_anew()

    def has_answers(self) -> bool:
        """Whether bindings were answered that no outcome has yet."""
        return self.bindings.is_any_answered()

    def carry_out(self, plan: Plan, observed: Observed) -> Outcome:
        """Carry out all steps of a plan that was made of what was observed.

        Bindings may go on after that, while there is something else to decide; then a later outcome has them.
        """
        outcome = Outcome()
        plan = _with_pods(plan, observed)
        plan, to_hold = self.reservations.held_back(plan, observed)
        self.allowed()
        self._write_statuses(plan, observed, outcome)
        self._placing.keep_promises(plan, observed, outcome)
        self._placing.expire(plan, observed, outcome)
        self._evicting.mark_stale(plan, observed, outcome)
        self._placing.bind(self._placing.prepare(plan, observed, outcome), plan, observed)
        self._placing.report_bindings(outcome, None if not _only_binds(plan) else observed.urgent)
        evictions = self._placing.promise(plan, observed, outcome)
        self._reserve(to_hold, observed, outcome)
        self._evicting.announce(plan, observed, outcome)
        self._evicting.carry_out(evictions, plan, observed, outcome)
        untold = self._kueue.tell(observed, outcome.evicted)
        outcome.failures += [Failure("status", "", "", error) for error in untold]
        return outcome

    def _write_statuses(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Write what was decided about queues; where that fails it is tried again in the next cycle."""
        try:
            self.statuses.write(plan, observed)
        except ApiError as error:
            if not error.status:
                raise  # nobody is there to be asked
            outcome.failures.append(Failure("status", "", "", error))

    def evict(self, plan: Plan, observed: Observed, outcome: Outcome) -> None:
        """Carry out the evictions of a plan and nothing else of it."""
        self._evicting.carry_out([s for s in plan.steps if s.action == "evict"], plan, observed, outcome)

    def _reserve(self, to_hold: set[DevicePlace], observed: Observed, outcome: Outcome) -> None:
        """Have devices held of which parts are promised, and let go those of which no part is in use."""
        if observed.shared_devices is None:
            return
        self.allowed()
        self.reservations.let_go(observed.shared_devices, to_hold)
        for (node, device), error in self.reservations.hold(to_hold):
            outcome.failures.append(Failure("reserve", "", f"device {device} of {node}", error))

    def refusals(self, plan: Plan, observed: Observed) -> list[Failure]:
        """Ask of each eviction of a plan whether it would be allowed; none is made."""
        return self._evicting.refusals(plan, observed)


def _only_binds(plan: Plan) -> bool:
    return all(step.action == "bind" for step in plan.steps)


def _with_pods(plan: Plan, observed: Observed) -> Plan:
    """Leave out steps of tasks that only stand in for pods that are expected."""
    steps = [s for s in plan.steps if observed.has_pod(s.workload, s.task_index)]
    expired = [(key, task) for key, task in plan.expired if observed.has_pod(key, task)]
    return (
        plan
        if len(steps) == len(plan.steps) and expired == plan.expired
        else replace(plan, steps=steps, expired=expired)
    )
