"""How many connections a server keeps, and who has to do with fewer when there are too many.

While there is room, any address may have as many as it likes: behind a proxy all of them come from one. Where there is
no more room, the address with most of them loses one for each that comes, so that no address keeps others out. The
server has no bound of its own beside: that would refuse all alike, and would be reached while ended ones are let go.
"""

from __future__ import annotations

import asyncio
import resource
from itertools import islice
from typing import Final, Protocol

from tenure.web.senders import network_of

MOST_CONNECTIONS: Final = 1900
"""Connections that are kept."""

SPARE_FILES: Final = 200
"""Files that the process may open beside its connections."""

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

    def __init__(self, most: int | None = None) -> None:
        self.most = most_connections() if most is None else most
        self._of: dict[str, dict[Connection, None]] = {}
        self._count = 0

    def came(self, connection: Connection, host: str) -> None:
        """Take one more; where there are too many, one of those who have most is ended."""
        address = network_of(host)
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


def most_connections() -> int:
    """Give how many connections the process has room for."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST_CONNECTIONS if files == resource.RLIM_INFINITY else max(1, min(MOST_CONNECTIONS, files - SPARE_FILES))
