"""What the etcd of a control plane holds, and how to put it back as it was.

It is looked at as a whole, whatever the kinds of the objects: nothing that is left can be overlooked. The API server
and its clients hear of what goes and comes back by their watches, as of any other change.
"""

from __future__ import annotations

import base64
import json
import time
import urllib.request
from typing import Any, Final

_OBJECTS: Final = {
    "key": base64.b64encode(b"/registry/").decode(),
    "range_end": base64.b64encode(b"/registry0").decode(),
}
"""Every key of an object. What the API server keeps beside them, of the store itself, is its own."""

_BEATS: Final = ("/registry/leases/", "/registry/masterleases/", "/registry/peerserverleases/", "/registry/events/")
"""What is written again and again, or goes by itself: it may change, and what is new of it goes with the rest."""

_FOLLOWS: Final = b"kube-aggregator.kubernetes.io/automanaged"
"""The label of what the API server makes of the definition of a kind, and takes away after it.

It is waited for: who deletes it before the API server has heard that the definition went finds it made again.
"""

_AT_ONCE: Final = 100
"""Changes of one transaction; etcd takes 128."""

_LOOK_EVERY: Final = 0.1
_QUIET: Final = 3
"""Looks in a row that find nothing to put back: controllers answer what goes with changes of their own."""


class LeftError(RuntimeError):
    """Something does not go, or does not stay as it was. The message names it."""


class Store:
    """The store at an address, and what it is to hold; keys and values are those of etcd, in base64."""

    def __init__(self, address: str) -> None:
        self.address = address
        self._kept: dict[str, str] = {}

    def keep(self, seconds: float = 60.0) -> None:
        """Take what it holds for what it is to hold again, once that does not change by itself any more.

        Raises
        ------
        LeftError
            If it goes on changing.
        """
        until, same = time.monotonic() + seconds, 0
        self._kept = self._held()
        while same < _QUIET:
            wrong, there = self._wrong()
            if wrong and time.monotonic() > until:
                raise LeftError("goes on changing: " + ", ".join(map(_plain, wrong)))
            self._kept, same = (there, 0) if wrong else (self._kept, same + 1)
            time.sleep(_LOOK_EVERY)

    def put_back(self, seconds: float = 120.0) -> set[str]:
        """Have it hold what was kept and nothing else; ``seconds`` are for a machine that is slow and busy.

        Returns
        -------
        set[str]
            The keys that were taken out or put back.

        Raises
        ------
        LeftError
            If that does not last.
        """
        until, quiet = time.monotonic() + seconds, 0
        touched: set[str] = set()
        while quiet < _QUIET:
            wrong, there = self._wrong()
            touched.update(map(_plain, wrong))
            quiet = 0 if wrong else quiet + 1
            if wrong and time.monotonic() > until:
                raise LeftError("left or changed: " + ", ".join(map(_plain, wrong)))
            own = [key for key in wrong if not _follows(self._kept.get(key) or there[key])]
            for begin in range(0, len(own), _AT_ONCE):
                self._change(own[begin : begin + _AT_ONCE])
            time.sleep(_LOOK_EVERY)
        return touched

    def _wrong(self) -> tuple[list[str], dict[str, str]]:
        """Give the keys of what is to be changed, and all that is there; what follows need only be there."""
        there = self._held()
        changed = (
            key for key, value in self._kept.items()
            if there.get(key) != value and not _beats(key) and not (key in there and _follows(value))
        )  # fmt: skip
        return sorted([*changed, *(key for key in there if key not in self._kept)]), there

    def _change(self, wrong: list[str]) -> None:
        """Put back what was kept of some keys, and take out the others."""
        kept = [key for key in wrong if key in self._kept]
        puts = [{"request_put": {"key": key, "value": self._kept[key]}} for key in kept]
        gone = [{"request_delete_range": {"key": key}} for key in wrong if key not in self._kept]
        self._ask("txn", {"success": [*puts, *gone]})

    def _held(self) -> dict[str, str]:
        return {entry["key"]: entry.get("value", "") for entry in self._ask("range", _OBJECTS).get("kvs", [])}

    def _ask(self, what: str, body: dict[str, Any]) -> Any:
        request = urllib.request.Request(f"{self.address}/v3/kv/{what}", json.dumps(body).encode())  # noqa: S310  loopback
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310
            return json.load(answer)


def _plain(key: str) -> str:
    return base64.b64decode(key).decode(errors="replace")


def _follows(value: str) -> bool:
    return _FOLLOWS in base64.b64decode(value)


def _beats(key: str) -> bool:
    return _plain(key).startswith(_BEATS)
