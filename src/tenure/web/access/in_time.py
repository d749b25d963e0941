"""Ends connections whose other side takes too long, so that nobody holds up others by sending or reading nothing."""

from __future__ import annotations

import asyncio
from typing import Final

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from tenure.web.access.connections import ConnectionShares

SENT_SECONDS: Final = 30.0
"""So long a request may take to come, from its first byte, or from when the connection was made, to its last."""

READ_SECONDS: Final = 60.0
"""So long an answer may wait for being read further."""

_COMING: Final = (h11.IDLE, h11.SEND_BODY)


class InTimeProtocol(H11Protocol):
    """HTTP by h11. A server has room for so many connections; one on which nothing goes on is ended.

    ``shares`` are those of the server.
    """

    shares = ConnectionShares()
    sent_seconds = SENT_SECONDS
    read_seconds = READ_SECONDS
    _sending: asyncio.TimerHandle | None = None
    _reading: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        """Begin: the first request has to come in time."""
        super().connection_made(transport)
        self.shares.came(self, self.host)
        self._await_request()

    @property
    def host(self) -> str:
        """Where the connection comes from."""
        return "" if self.client is None else self.client[0]

    @property
    def is_idle(self) -> bool:
        """Whether no answer is being sent."""
        return self.cycle is None or self.cycle.response_complete

    def data_received(self, data: bytes) -> None:
        """Take what came; while more of a request has to come, its time goes on."""
        super().data_received(data)
        self._await_request()

    def _await_request(self) -> None:
        is_coming = self.conn.their_state in _COMING
        if is_coming and self._sending is None:
            self._sending = self.loop.call_later(self.sent_seconds, self.transport.abort)
        elif not is_coming and self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def pause_writing(self) -> None:
        """Note that the other side does not read as fast as is written."""
        super().pause_writing()
        if self._reading is None:
            self._reading = self.loop.call_later(self.read_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """Note that what was written is read."""
        super().resume_writing()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def connection_lost(self, exc: Exception | None) -> None:
        """End: nothing is waited for any more."""
        super().connection_lost(exc)
        self.shares.went(self, self.host)
        for timer in (self._sending, self._reading):
            if timer is not None:
                timer.cancel()
