"""Where requests come from, and how many wrong tokens may come from there.

Each token that is not known is a question to the API server, so that one sender with many wrong ones would cost
the log-ins of all. A sender is an address, and behind a proxy the address that the proxy says (the last one of
``X-Forwarded-For``). A sender that is no proxy and names others there only divides what its own address may.
"""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeVar

from starlette.requests import Request

from tenure.web.access.put_off import TOO_MANY, PutOffError

WRONG_AT_ONCE: Final = 20
"""Wrong tokens that a sender may send at once, and as many again each time they have come back."""

WRONG_PER_SECOND: Final = 1.0
"""So many of them come back in a second."""

FORWARDED: Final = 10
"""So many senders' worth of wrong tokens may come by one proxy."""

MOST_SENDERS: Final = 10_000
_IPV6_NETWORK: Final = 64
"""Bits of an address by IPv6 that say whose it is; the others each machine chooses as it likes."""


K = TypeVar("K")


class Sender(NamedTuple):
    """The address that a connection comes from, and the one that a proxy says it passes on; empty: there is none."""

    peer: str
    forwarded: str = ""


def sender_of(request: Request) -> Sender:
    """Say where a request comes from."""
    peer = "" if request.client is None else request.client.host
    said = request.headers.getlist("x-forwarded-for")
    return Sender(network_of(peer), network_of(said[-1].rpartition(",")[2].strip()) if said else "")


def network_of(address: str) -> str:
    """Give an address as it is told apart from others: of IPv6 the network; what is none is cut."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return address[:64]
    if found.version == 4:  # noqa: PLR2004  the version of IP
        return str(found)
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or ipaddress.ip_network((int(found), _IPV6_NETWORK), strict=False).network_address)


@dataclass(slots=True)
class _Left:
    """How many wrong tokens may still come, as of a moment (monotonic seconds)."""

    count: float
    at: float


class WrongTokens:
    """Counts the wrong tokens of each sender. Used from one event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._peers: OrderedDict[str, _Left] = OrderedDict()
        self._senders: OrderedDict[Sender, _Left] = OrderedDict()

    def take(self, sender: Sender) -> None:
        """Let a token be asked about that may be wrong; `give_back` says that it was right.

        Raises
        ------
        PutOffError
            Too many came from there.
        """
        both = self._left(sender)
        waits = max((1 - left.count) / per_second for left, per_second, _ in both)
        if waits > 0:
            seconds = math.ceil(waits)
            raise PutOffError(
                TOO_MANY, f"too many wrong tokens came from where you are; try again in {seconds} s", seconds
            )
        for left, _, _ in both:
            left.count -= 1

    def give_back(self, sender: Sender) -> None:
        """Note that a token was right, or that it could not be asked: it does not count."""
        for left, _, most in self._left(sender):
            left.count = min(most, left.count + 1)

    def _left(self, sender: Sender) -> list[tuple[_Left, float, float]]:
        """Give what is left of all that comes by the same peer, and of the sender's own, with what each grows by."""
        return [
            (_grown(self._peers, sender.peer, self._clock(), FORWARDED), WRONG_PER_SECOND * FORWARDED,
             WRONG_AT_ONCE * FORWARDED),
            (_grown(self._senders, sender, self._clock(), 1), WRONG_PER_SECOND, WRONG_AT_ONCE),
        ]  # fmt: skip


def _grown(kept: OrderedDict[K, _Left], key: K, now: float, senders: int) -> _Left:
    """Give what is left under a key, with what has come back since it was looked at; those looked at last are kept."""
    most = float(WRONG_AT_ONCE * senders)
    left = kept.setdefault(key, _Left(most, now))
    left.count = min(most, left.count + (now - left.at) * WRONG_PER_SECOND * senders)
    left.at = now
    kept.move_to_end(key)
    while len(kept) > MOST_SENDERS:
        kept.popitem(last=False)
    return left
