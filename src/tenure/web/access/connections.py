"""How many connections a server keeps, and who has to do with fewer when there are too many.

While there is room, any address may have as many as it likes: behind a proxy all of them come from one. Where there is
no more room, the address with most of them loses one for each that comes, so that no address keeps others out. The
server has no bound of its own beside: that would refuse all alike, and would be reached while ended ones are let go.
How many an address makes in a second is bounded far above what all users behind a proxy need, so that what one sender
begins and gives up at once does not take the time in which others are answered.
"""

from __future__ import annotations

import asyncio
import resource
import time
from collections import OrderedDict
from collections.abc import Callable
from itertools import islice
from typing import Final, Protocol

from tenure.web.access.senders import MOST_SENDERS, network_of

MOST_CONNECTIONS: Final = 1900
"""Connections that are kept."""

SPARE_FILES: Final = 200
"""Files that the process may open beside its connections."""

NEW_AT_ONCE: Final = 2000
"""New connections that an address may make at once."""

NEW_PER_SECOND: Final = 500
"""New connections that it may make in a second beyond these."""

LOOKED_AT: Final = 50
"""Connections among which one is looked for that nothing is sent on."""


class Connection(Protocol):
    """A connection that can be ended."""

    transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether no answer is being sent."""


class ConnectionShares:
    """The connections of one server, by where they come from. Used from one event loop."""

    def __init__(self, most: int | None = None, clock: Callable[[], float] = time.monotonic) -> None:
        self.most = most_connections() if most is None else most
        self.pace = ConnectionPace(clock)
        self._of: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def came(self, connection: Connection, host: str) -> None:
        """Take one more, unless it comes too soon; where there are too many, one of those who have most is ended."""
        address = network_of(host)
        if not self.pace.allows(address):
            connection.transport.abort()
            return
        self._of.setdefault(address, {})[connection] = None
        self._count += 1
        if self._count > self.most:
            most = max(self._of, key=lambda one: (len(self._of[one]), one == address))
            ended = self._least_missed(most)
            self.went(ended, most)
            ended.transport.abort()

    def _least_missed(self, address: str) -> Connection:
        """Give the oldest connection of an address on which nothing goes on, else the newest."""
        found = self._of[address]
        idle = (one for one in islice(found, LOOKED_AT) if one.is_idle)
        return next(idle, None) or next(reversed(found))

    def went(self, connection: Connection, host: str) -> None:
        """Note that one has ended."""
        address = network_of(host)
        found = self._of.get(address)
        if found is None or connection not in found:
            return
        del found[connection]
        self._count -= 1
        if not found:
            del self._of[address]


class ConnectionPace:
    """How many new connections each address may still make. Used from one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def allows(self, address: str) -> bool:
        """Whether an address may make one more now; it counts if so."""
        now = self._clock()
        left, before = self._left.pop(address, (float(NEW_AT_ONCE), now))
        left = min(NEW_AT_ONCE, left + (now - before) * NEW_PER_SECOND)
        self._left[address] = left - (left >= 1), now
        if len(self._left) > MOST_SENDERS:
            self._left.popitem(last=False)
        return left >= 1


def most_connections() -> int:
    """Give how many connections the process has room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files - SPARE_FILES))
