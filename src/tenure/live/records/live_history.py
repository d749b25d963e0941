"""The history as a running scheduler keeps it: written beside the loop, and read for what evictions came to."""

from __future__ import annotations

import threading
from typing import NamedTuple

from tenure.clusters.kubernetes.client.leader import Election
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.cluster import KubernetesCluster
from tenure.clusters.kubernetes.read.proofs import EvictionProof, proof_of
from tenure.engine.state.session import Session
from tenure.history.record import Origin
from tenure.history.retention import Retention
from tenure.live.figures import WRITTEN, Figures
from tenure.live.log import Log
from tenure.live.loop import CycleOutcome
from tenure.live.records.account import EvictionAccount
from tenure.live.records.drain import HistoryDrain
from tenure.live.records.proof_inquiries import ProofInquiries
from tenure.live.records.pruner import Pruner
from tenure.live.records.recorded_cycle import recorded
from tenure.live.records.recorder import LiveRecorder
from tenure.live.records.recording import Recording


class HistoryOptions(NamedTuple):
    """The history as it is asked for: where it is, what this cluster is called in it, and how long records are kept.

    ``backlog``: so many records wait at most while the store cannot be written.
    """

    address: str
    cluster: str
    backlog: int
    retention: Retention


class LiveHistory:
    """The history of what this process decides: cycles are brought into it, and what became of them is read off it."""

    def __init__(
        self,
        asked: HistoryOptions,
        client: Client,
        cluster: KubernetesCluster,
        *,
        election: Election,
        figures: Figures,
        log: Log,
    ) -> None:
        self._cluster, self._election, self._figures, self._log = cluster, election, figures, log
        pool = cluster.informers.options.pool
        origin = Origin(asked.cluster, pool)
        self._proofs = ProofInquiries(lambda entry: proof_of(client, entry))
        self.drain = HistoryDrain(
            asked.address, origin, told=self._tell, lost=self._lost, most=asked.backlog,
            tends=Pruner(
                asked.retention, client.clock.now,
                lambda gone: log.info("the history was pruned: records were too old", records=gone),
                lambda error: log.failed("the history could not be pruned", error),
            ).step,
        )  # fmt: skip
        self._recording = Recording(
            LiveRecorder(pool, self._proofs), self.drain.add,
            lambda error: log.failed("the history misses a cycle", error),
        )  # fmt: skip
        self.account = EvictionAccount(
            asked.address, origin, client.clock.now, figures.tell_of_outcomes,
            leads=lambda: election.leads,
            failed=lambda error: log.failed("what evictions came to could not be read", error),
        )  # fmt: skip
        self._give_again = threading.Event()
        self._term = 0

    def start(self) -> None:
        """Begin."""
        self._figures.tell_of_history(WRITTEN)
        self.drain.start()
        self._recording.start()
        self._figures.tell_of_outcomes(None)
        self.account.start()

    def stop(self) -> None:
        """Record and write what waits, as far as there is time for it, and end."""
        self._recording.stop()
        self.drain.stop()
        self.account.stop()
        self._proofs.stop()

    def begin(self, session: Session) -> None:
        """Record the first cycle of a term before it decides, should it never end."""
        if self._election.terms != self._term:
            self._term = self._election.terms
            self._recording.begin(session.now, self._election.identity)

    def record(self, cycle: CycleOutcome) -> None:
        """Hand on what a cycle says; nothing of what is made of it holds scheduling up."""
        cluster = cycle.observed.cluster
        self.account.window = cluster.settings.worth.breaker.window
        self.account.wanted = cluster.settings.worth.survival.enabled
        if self._give_again.is_set():
            self._give_again.clear()
            self._recording.give_again()
        proofs = self._proofs.take()
        self._recording.cycle(recorded(cycle, self._cluster.paused_until(cluster.now), proofs))
        never = [entry for entry, proof in proofs if proof is EvictionProof.NEVER]
        if never:
            self._cluster.strike(never)

    def _tell(self, text: str) -> None:
        """Log what the drain says, and let the node pool's status say how the history is written."""
        self._log.warning("history", trouble=text)
        self._figures.tell_of_history(self.drain.trouble or WRITTEN)

    def _lost(self) -> None:
        """Records were dropped: what stands in the cluster's own log and on its objects is given again."""
        self._give_again.set()
        self._cluster.news.look_again()
