"""A source that is a live cluster: watched all the time, and looked at anew whenever something has changed."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import Any, Final

from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.cache.informers import InformerCache, Options, start_synced
from tenure.clusters.kubernetes.client.leader import DURATION
from tenure.clusters.kubernetes.client.requests import Client
from tenure.clusters.kubernetes.keys import lease_name
from tenure.clusters.kubernetes.read.observe import Observer
from tenure.model.cluster import Cluster
from tenure.model.settings import Settings
from tenure.model.values.duration import format_time
from tenure.web.sources.picture import Held
from tenure.web.sources.source import Trouble, UseSeries
from tenure.web.sources.still import StillSource

SYNC_SECONDS: Final = 60.0
"""So long the API server has to list everything at the beginning."""

PACE: Final = 1.0
"""Seconds between two looks, at least."""

SAMPLED: Final = 30.0
"""Seconds between two samples of what queues hold."""

SAMPLES: Final = 2880
"""Samples that are kept: a day."""

MOST_SILENT: Final = 2 * DURATION
"""Seconds without a renewal of the Lease after which nobody is said to lead."""


class LiveSource(StillSource):
    """A live cluster. What queues held is known since the console runs."""

    is_live = True
    kind = "live"
    note = "Read-only. What queues held is known since this console runs; evictions since the scheduler keeps its log."

    def __init__(self, client: Client, options: Options, settings: Settings | None, *, name: str) -> None:
        self._clock = client.clock
        self.informers = InformerCache(client, options)
        start_synced(self.informers, SYNC_SECONDS)
        self._observer = Observer(self.informers, settings)
        super().__init__(self._observe(), name)
        self._number = 1
        self._trouble = ""
        self._begun = self._picture.now
        self._samples: deque[tuple[int, dict[str, Held], int]] = deque(maxlen=SAMPLES)
        self._sampled = -SAMPLED
        self._ended = threading.Event()
        self._sample()
        self._thread = threading.Thread(target=self._follow, name="console-follows", daemon=True)
        self._thread.start()

    def _observe(self) -> Cluster:
        return self._observer.observe(self._clock.now()).cluster

    def _follow(self) -> None:
        """Look again and again, until this is closed."""
        seen, told = -1, self.troubles()
        while not self._ended.wait(PACE):
            try:
                version = self.informers.version()
                self.informers.discover_at_times()
                if version != seen:
                    seen = version
                    self._picture = self._picture.after(self._observe())
                    self._number += 1
                self._trouble = ""
            except Exception as error:  # noqa: BLE001  the page goes on with what was seen last, and says so
                self._trouble = f"the cluster could not be looked at: {type(error).__name__}: {error}"
                self._number += 1
            if (troubles := self.troubles()) != told:
                told = troubles
                self._number += 1
            self._sample()

    def _sample(self) -> None:
        if time.monotonic() - self._sampled >= SAMPLED:
            self._sampled = time.monotonic()
            picture = self._picture
            queues = {name: dict(held) for name, held in picture.queues.items()}
            self._samples.append((time.time_ns() // 1000, queues, picture.states["waiting"]))

    @property
    def version(self) -> int:
        """Number of the present state."""
        return self._number

    def span(self) -> tuple[int, int]:
        """Give since when the console runs, and now."""
        return self._begun, max(self._picture.now, self._begun + 1)

    def series(self, points: int) -> UseSeries | None:
        """Give what queues held since the console runs, a day at most."""
        samples = list(self._samples)
        main = self._picture.main
        capacity = self._picture.nodes.size.get(main, 0)
        samples = samples[:: max(1, -(-len(samples) // points))]
        names = sorted({name for _, queues, _ in samples for name, held in queues.items() if held.get(main)})
        values = {name: [float(queues.get(name, {}).get(main, 0)) for _, queues, _ in samples] for name in names}
        return UseSeries(main, capacity, [at for at, _, _ in samples], values, [float(count) for *_, count in samples])

    def troubles(self, at: int | None = None) -> list[Trouble]:
        """Say what is wrong with the watches, and whether somebody leads now."""
        found = [Trouble("bad", f"not all can be read: {text}") for text in self.informers.troubles]
        if self._trouble:
            found.append(Trouble("bad", self._trouble))
        return found if at is not None else [*found, *self._of_the_lease()]

    def _of_the_lease(self) -> list[Trouble]:
        options = self.informers.options
        leases = self.informers.objects.get("leases")
        item = None if leases is None else leases.items.get((options.namespace, lease_name(options.pool)))
        spec: dict[str, Any] = item.spec if item is not None and isinstance(item.spec, dict) else {}
        holder, renewed = spec.get("holderIdentity"), micros(spec.get("renewTime"))
        if not holder or renewed is None:
            return [Trouble("bad", f"no scheduler leads node pool {options.pool}: nothing is decided")]
        silent = time.time() - renewed / 1e6
        if silent > MOST_SILENT:
            return [
                Trouble("bad", f"{holder} leads, but was not heard of since {format_time(renewed)}: nothing is decided")
            ]
        return []

    def close(self) -> None:
        """End all watches."""
        self._ended.set()
        self._thread.join(timeout=5)
        self.informers.stop()
