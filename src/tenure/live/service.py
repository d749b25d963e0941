"""The scheduler as a service: election, watches, the loop, probes, and an orderly end."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.leader import Election, NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.client.reviews import ReaderReview
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.external.controller import ReservationController
from tenure.clusters.kubernetes.external.read_only import NoReservations, ReadOnlyCluster
from tenure.clusters.kubernetes.keys import lease_name
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.clusters.record import BROKEN
from tenure.engine.state.session import Session
from tenure.live.external import ExternalRescheduler
from tenure.live.figures import Figures
from tenure.live.isolation import Fault
from tenure.live.log import Log
from tenure.live.loop import CycleOutcome, Loop, Pace
from tenure.live.metrics import LiveMetrics
from tenure.live.probes import Admits, Answer, Probes, alive, ready
from tenure.live.records.live_history import HistoryOptions, LiveHistory
from tenure.live.tables import WARNINGS
from tenure.live.trouble_log import TroubleLog
from tenure.model.documents.collector import collector_seldom
from tenure.model.settings import Settings
from tenure.telemetry.events import records_of

FAILED_PAUSE = 1.0

_LEFT_OPEN = (
    "the API server did not answer in time; the last requests were given up, and what came of them is not known"
)


class Service:
    """A replica of the scheduler."""

    def __init__(  # noqa: PLR0913  what a replica is made of
        self,
        client: Client,
        options: Options,
        settings: Settings | None,
        *,
        identity: str,
        in_flight: int,
        log: Log,
        pace: Pace | None = None,
        read_only: bool = False,
        history: HistoryOptions | None = None,
        queues: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.log = log
        self.election = Election(
            client,
            options.namespace,
            lease_name(options.pool),
            identity,
            stands=lambda: self.cluster.ready(),  # noqa: PLW0108  the cluster is made below, of the election
        )
        self.cluster = (ReadOnlyCluster if read_only else KubernetesCluster)(
            client,
            options,
            settings,
            identity=identity,
            in_flight=in_flight,
            allowed=self.election.require,
            warnings=WARNINGS,
            failed=lambda what, error: self._fault(Fault("read", what, error)),
        )
        self.figures = Figures(
            self.cluster.client,
            self.cluster.informers,
            identity,
            look_again=self.cluster.news.look_again,
            failed=lambda error: log.failed("figures could not be made", error),
        )
        self.history = None if history is None else LiveHistory(
            history, client, self.cluster, election=self.election, figures=self.figures, log=log
        )  # fmt: skip
        self.trouble_log = TroubleLog(log, self.cluster)
        self.metrics = LiveMetrics(queues)
        self.reservation_controller = (NoReservations if read_only else ReservationController)(
            self.cluster.client, self.cluster.informers
        )
        self.loop = Loop(
            self.cluster,
            lambda: self.election.terms if self.election.leads else 0,
            pace=pace,
            paused_until=self.cluster.paused_until,
            looked=self._looked,
            told=self._told,
            waits=self.trouble_log.tell_of_watches,
            wall=client.clock.now,
            external=ExternalRescheduler(self.cluster.actor, self.reservation_controller),
            failed=self._fault,
            outcomes=lambda: None if self.history is None else self.history.account.outcomes,
            finished=lambda: () if self.history is None else self.history.account.finished,
        )
        self._stopped = threading.Event()

    def run(self, address: tuple[str, int], *, guards_metrics: bool = False) -> bool:
        """Serve until `stop` is called; False where it could not go on.

        ``guards_metrics``: they are for whom the API server lets get that path.
        """
        guards: dict[str, Admits] = {"/metrics": ReaderReview(self.client).status} if guards_metrics else {}
        pages = {
            "/healthz": lambda: alive(self.loop.health),
            "/readyz": lambda: ready(self.cluster.informers, self.election),
            "/metrics": self._metrics,
        }
        probes = Probes(address, pages, guards)
        probes.start()
        self.log.info("scheduler starts", pool=self.cluster.informers.options.pool, port=probes.port,
                      identity=self.election.identity)  # fmt: skip
        try:
            self._until_reachable()
            self.election.start()
            self.figures.thread.start()
            if self.history is not None:
                self.history.start()
            with collector_seldom():  # to look through all that runs takes several times as long as a cycle
                self._go_on()
        finally:
            if self.history is not None:
                self.history.stop()
            self.log.info("scheduler ends")
            self.figures.thread.stop()
            self.cluster.close()
            self.election.stop()
            probes.stop()
            if self.client.opened.given_up.is_set():
                self.log.warning(_LEFT_OPEN)
        return True

    def stop(self) -> None:
        """End after the present cycle: what is under way is finished, and the Lease is given back."""
        self._stopped.set()
        self.client.opened.end()
        self.loop.stop()

    def _until_reachable(self) -> None:
        """Begin to watch, as soon as the API server answers."""
        while not self._stopped.is_set():
            try:
                self.cluster.start()
            except OSError as error:
                if not self._stopped.is_set():
                    self.log.warning("the API server cannot be asked yet", error=str(error))
                self._stopped.wait(FAILED_PAUSE)
            else:
                return

    def _go_on(self) -> None:
        """Run the loop; a cycle that failed is told of, and the next one begins with what is there then."""
        while not self._stopped.is_set():
            try:
                self.loop.run()
            except NotLeaderError:
                self.log.warning("the lease is lost; nothing more is written until it is held again")
            except OSError as error:
                self.log.warning("a cycle was broken off", error=str(error))
                self._stopped.wait(FAILED_PAUSE)
            except Exception as error:  # noqa: BLE001  a bug in one cycle must not end the scheduler; it is told with its place
                self.log.failed("a cycle failed", error)
                self._stopped.wait(FAILED_PAUSE)

    def _fault(self, fault: Fault) -> None:
        """Tell of a fault that cost no more than what it was about."""
        self.metrics.faults.labels(fault.stage).inc()
        self.log.failed("a fault was kept to what it is about", fault.error, stage=fault.stage, about=fault.workload)

    def _looked(self, session: Session) -> None:
        """Look at what a cycle begins with."""
        self.figures.look(session)
        if self.history is not None:
            self.history.begin(session)

    def _told(self, cycle: CycleOutcome) -> None:
        try:
            self._tell(cycle)
        except (OSError, NotLeaderError):
            raise
        except Exception as error:  # noqa: BLE001  what is told of a cycle must not keep the next from coming
            self._fault(Fault("tell", "", error))

    def _tell(self, cycle: CycleOutcome) -> None:
        cluster = cycle.observed.cluster
        self.figures.tell(cluster, self.cluster.paused_until(cluster.now), self.cluster.news.version)
        self.metrics.count(cycle)
        if self.history is not None:
            self.history.record(cycle)
        self.metrics.aside.set(self.loop.isolation.quarantine.count(cluster.now))
        self.metrics.refused.set(self.loop.spared.count(cluster.now))
        self.trouble_log.tell()
        self._log(cycle.outcome, cycle)
        if cycle.external is not None:
            self._log(cycle.external.outcome, cycle)
        for record in records_of(cycle.plan):
            self.log.debug(record.event, **record.fields)

    def _log(self, outcome: Outcome, cycle: CycleOutcome) -> None:
        for failure in outcome.failures:
            if failure.error.reason == BROKEN:
                self.metrics.faults.labels("write").inc()
            self.log.info("refused", action=failure.action, workload=failure.workload, task=failure.task,
                          error=str(failure.error))  # fmt: skip
        for step in outcome.done:
            if step.action == "evict":
                self.log.info("evicted", workload=step.workload, task=step.task, node=step.node, cause=step.cause,
                              beneficiary=step.beneficiary, cost=step.cost, reason=step.reason)  # fmt: skip
            else:
                self.log.debug(step.action, workload=step.workload, task=step.task, node=step.node)
        if outcome.done or outcome.failures or outcome.skipped:
            self.log.info("cycle", done=len(outcome.done), refused=len(outcome.failures), skipped=len(outcome.skipped),
                          seconds=round(cycle.seconds, 4), deciding=round(cycle.deciding, 4))  # fmt: skip

    def _metrics(self) -> Answer:
        self.metrics.dropped.set(self.cluster.events.dropped)
        self.metrics.kept.set(sum(1 for _ in self.reservation_controller.seen.tainted()))
        if self.history is not None:
            drain = self.history.drain
            self.metrics.tell_of_history(drain.backlog, drain.dropped, away=bool(drain.trouble))
        self.metrics.leads.set(self.election.leads)
        self.metrics.broken.set(len(self.cluster.informers.broken))
        self.metrics.problems.set(self.cluster.informers.findings.count)
        self.metrics.lists.set(sum(r.lists for r in self.cluster.informers.reflectors.values()))
        return self.metrics.text()
