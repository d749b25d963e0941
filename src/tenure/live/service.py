"""The scheduler as a service: election, watches, the loop, probes, and an orderly end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from tenure.clusters.kubernetes.cache.informers import Options
from tenure.clusters.kubernetes.client.leader import Election, NotLeaderError
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.client.reviews import ReaderReview
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.external.controller import ReservationController
from tenure.clusters.kubernetes.external.read_only import NoReservations, ReadOnlyCluster
from tenure.clusters.kubernetes.keys import lease_name
from tenure.clusters.kubernetes.read.proofs import EvictionProof, proof_of
from tenure.clusters.kubernetes.write.outcome import Outcome
from tenure.clusters.record import BROKEN
from tenure.engine.state.session import Session
from tenure.history.record import Origin
from tenure.history.retention import Retention
from tenure.live.external import ExternalRescheduler
from tenure.live.figures import WRITTEN, Figures
from tenure.live.isolation import Fault
from tenure.live.log import Log
from tenure.live.loop import CycleOutcome, Loop, Pace
from tenure.live.metrics import LiveMetrics
from tenure.live.probes import Admits, Answer, Probes, plain
from tenure.live.records.account import EvictionAccount
from tenure.live.records.drain import MOST, HistoryDrain
from tenure.live.records.proof_inquiries import ProofInquiries
from tenure.live.records.pruner import Pruner
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder
from tenure.live.records.recording import Recording
from tenure.live.tables import WARNINGS
from tenure.model.documents.collector import collector_seldom
from tenure.model.settings import Settings
from tenure.telemetry.events import records_of

STALLED_SECONDS = 120.0
"""A loop from which nothing was heard for so long after it was to look again counts as dead."""

FAILED_PAUSE = 1.0

_WITHOUT_RIGHTS = "the service account may not list and watch what decisions need; apply the manifests of this version"

_LEFT_OPEN = (
    "the API server did not answer in time; the last requests were given up, and what came of them is not known"
)

DROPS_SECONDS = 60.0
"""So often at most the log says that events were not written."""


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
        history: str | None = None,
        history_backlog: int = MOST,
        retention: Retention | None = None,
        name: str = "kubernetes",
        queues: Sequence[str] = (),
    ) -> None:
        self.client = client
        self.log = log
        self.proofs = ProofInquiries(lambda entry: proof_of(client, entry))
        origin = Origin(name, options.pool)
        self.drain = None if history is None else HistoryDrain(
            history, origin, told=self._tell_of_history,
            lost=self._history_lost, most=history_backlog,
            tends=Pruner(
                retention or Retention(), client.clock.now,
                lambda gone: log.info("the history was pruned: records were too old", records=gone),
                lambda error: log.failed("the history could not be pruned", error),
            ).step,
        )  # fmt: skip
        self.recording = None if self.drain is None else Recording(
            LiveRecorder(options.pool, self.proofs), self.drain.add,
            lambda error: log.failed("the history misses a cycle", error),
        )  # fmt: skip
        self.account = None if history is None else EvictionAccount(
            history, origin, client.clock.now,
            lambda outcomes: self.figures.tell_of_outcomes(outcomes),  # noqa: PLW0108  they are made below
            leads=lambda: self.election.leads,
            failed=lambda error: log.failed("what evictions came to could not be read", error),
        )  # fmt: skip
        self._forget = threading.Event()
        self._term = 0
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
            waits=self._tell_of_watches,
            wall=client.clock.now,
            external=ExternalRescheduler(self.cluster.actor, self.reservation_controller),
            failed=self._fault,
            outcomes=lambda: None if self.account is None else self.account.outcomes,
            finished=lambda: () if self.account is None else self.account.finished,
        )
        self._stopped = threading.Event()
        self._without_usage = False
        self._dropped, self._dropped_at = 0, -DROPS_SECONDS
        self._broken: list[str] = []

    def run(self, address: tuple[str, int], *, guards_metrics: bool = False) -> bool:
        """Serve until `stop` is called; False where it could not go on.

        ``guards_metrics``: they are for whom the API server lets get that path.
        """
        guards: dict[str, Admits] = {"/metrics": ReaderReview(self.client).status} if guards_metrics else {}
        pages = {"/healthz": self._alive, "/readyz": self._ready, "/metrics": self._metrics}
        probes = Probes(address, pages, guards)
        probes.start()
        self.log.info("scheduler starts", pool=self.cluster.informers.options.pool, port=probes.port,
                      identity=self.election.identity)  # fmt: skip
        try:
            self._until_reachable()
            self.election.start()
            self.figures.start()
            if self.drain is not None and self.recording is not None:
                self.figures.tell_of_history(WRITTEN)
                self.drain.start()
                self.recording.start()
            if self.account is not None:
                self.figures.tell_of_outcomes(None)
                self.account.start()
            with collector_seldom():  # to look through all that runs takes several times as long as a cycle
                self._go_on()
        finally:
            if self.drain is not None and self.recording is not None:
                self.recording.stop()
                self.drain.stop()
            if self.account is not None:
                self.account.stop()
            self.proofs.stop()
            self.log.info("scheduler ends")
            self.figures.stop()
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
        """Look at what a cycle begins with; the first of a term is recorded before it decides, should it never end."""
        self.figures.look(session)
        if self.recording is not None and self.election.terms != self._term:
            self._term = self.election.terms
            self.recording.begin(session.now, self.election.identity)

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
        if self.account is not None:
            self.account.window = cluster.settings.worth.breaker.window
            self.account.wanted = cluster.settings.worth.survival.enabled
        if self.recording is not None:
            self._record(self.recording, cycle)
        self.metrics.aside.set(self.loop.isolation.quarantine.count(cluster.now))
        self.metrics.refused.set(self.loop.spared.count(cluster.now))
        self._tell_of_usage()
        self._tell_of_drops()
        self._tell_of_watches()
        self._log(cycle.outcome, cycle)
        if cycle.external is not None:
            self._log(cycle.external.outcome, cycle)
        for record in records_of(cycle.plan):
            self.log.debug(record.event, **record.fields)

    def _record(self, recording: Recording, cycle: CycleOutcome) -> None:
        """Hand on what the cycle says; nothing of what is made of it holds scheduling up."""
        now = cycle.observed.cluster.now
        if self._forget.is_set():
            self._forget.clear()
            recording.give_again()
        proofs = self.proofs.take()
        recording.cycle(recorded(cycle, self.cluster.paused_until(now), proofs))
        never = [entry for entry, proof in proofs if proof is EvictionProof.NEVER]
        if never:
            self.cluster.strike(never)

    def _tell_of_history(self, text: str) -> None:
        """Log what the drain says, and let the node pool's status say how the history is written."""
        self.log.warning("history", trouble=text)
        if self.drain is not None:
            self.figures.tell_of_history(self.drain.trouble or WRITTEN)

    def _history_lost(self) -> None:
        """Records were dropped: what stands in the cluster's own log and on its objects is given again."""
        self._forget.set()
        self.cluster.news.look_again()

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

    def _tell_of_drops(self) -> None:
        """Say, at most once a minute, that events were not written."""
        dropped, now = self.cluster.events.dropped, time.monotonic()
        if dropped > self._dropped and now - self._dropped_at >= DROPS_SECONDS:
            self.log.warning("events were not written: too many, or refused", events=dropped - self._dropped)
            self._dropped, self._dropped_at = dropped, now

    def _tell_of_usage(self) -> None:
        """Say once that a setting needs to know what is in use, and why that is not known."""
        informers = self.cluster.informers
        trouble = informers.usage.trouble or informers.gpu_usage.trouble
        if trouble and not self._without_usage:
            self.log.warning("no node is hot as long as it is not known what is in use", error=trouble)
        self._without_usage = bool(trouble)

    def _tell_of_watches(self) -> None:
        """Say of each watch that does not work that it does not, and again when that changes."""
        broken = self.cluster.informers.broken
        if broken != self._broken:
            for line in broken:
                self.log.error("a watch is broken; what it last said may be out of date", watch=line)
            if self.cluster.informers.forbidden:
                self.log.error(_WITHOUT_RIGHTS, paths=self.cluster.informers.forbidden)
            if not broken:
                self.log.info("all watches work again")
        self._broken = broken

    def _alive(self) -> Answer:
        silent = time.monotonic() - self.loop.health.due
        ok = silent < STALLED_SECONDS
        return plain("ok" if ok else f"a cycle is {silent:.0f}s late", ok=ok)

    def _ready(self) -> Answer:
        informers = self.cluster.informers
        if informers.forbidden:
            return plain(f"{_WITHOUT_RIGHTS}: {', '.join(informers.forbidden)}", ok=False)
        if not informers.synced:
            return plain("not everything was listed yet: " + ("; ".join(informers.troubles) or "wait"), ok=False)
        if informers.broken:
            return plain("a watch is broken: " + "; ".join(informers.broken), ok=False)
        return plain(
            "leads" if self.election.leads else f"stands by; {self.election.holder or 'no replica'} leads", ok=True
        )

    def _metrics(self) -> Answer:
        self.metrics.dropped.set(self.cluster.events.dropped)
        self.metrics.kept.set(sum(1 for _ in self.reservation_controller.seen.tainted()))
        if self.drain is not None:
            self.metrics.tell_of_history(self.drain.backlog, self.drain.dropped, away=bool(self.drain.trouble))
        self.metrics.leads.set(self.election.leads)
        self.metrics.broken.set(len(self.cluster.informers.broken))
        self.metrics.problems.set(self.cluster.informers.findings.count)
        self.metrics.lists.set(sum(r.lists for r in self.cluster.informers.reflectors.values()))
        return self.metrics.text()
