"""For how long work may be spared because it asks for it."""

from __future__ import annotations

from collections.abc import Iterable

from tenure.model.queue import Queue
from tenure.model.settings import Settings


def opt_out_of(upward: Iterable[Queue], settings: Settings) -> int:
    """Give the longest opt-out in µs: that of the first queue on the way up that sets one, else the node pool's."""
    found = (queue.max_opt_out for queue in upward)
    return next((limit for limit in found if limit is not None), settings.disruption.max_opt_out)
