"""What users may list in the cluster, as the API server says it (SubjectAccessReview), for however many namespaces.

About each namespace has to be asked. A user who may list the pods of all of them is asked about once; for the others
every namespace is asked about once, and then again and again: those whose pods they may list each minute, so that a
right that was taken away is soon gone, and a few of the others each second, so that one that was given is noticed.
So what a user costs is bounded, however many namespaces there are, and no user is shown a part of what is theirs.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine, Hashable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import accumulate, compress
from typing import Any, Final

import msgspec

from tenure.clusters.kubernetes.client.requests import Client
from tenure.web.access.put_off import UNAVAILABLE, PutOffError
from tenure.web.access.viewer import Viewer

HOLDS: Final = 60.0
"""Seconds for which holds what a user may."""

AGAIN_PER_SECOND: Final = 10
"""Namespaces of one user about which is asked again in a second: of those whose pods they may not list so many, and of
the others so many once there are more than a minute's."""

PATIENCE: Final = 20.0
"""Seconds that a request waits until it is asked about every namespace."""

MOST_USERS: Final = 10_000
"""Users whose rights are known, those looked at last."""

AT_ONCE: Final = 8
"""Questions that are asked at once, of all users together."""

PIECE: Final = 16
"""Questions of one user before it is another one's turn."""

MOST_AGAIN: Final = 600
"""Questions that are asked again in one go."""

SPARE: Final = 1000
"""Numbers of namespaces that are gone, beyond as many as there are, after which they are numbered anew."""

LOOKED: Final = 1.0
"""Seconds after which is looked which namespaces there are."""

_ACCESS: Final = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

User = Mapping[str, Any]
"""A user as a TokenReview names them: ``username``, ``groups``, ``uid``, ``extra``."""


@dataclass(slots=True)
class _Known:
    """What is known of one user. Times in monotonic seconds."""

    pods: bool = False
    nodes: bool = False
    at: float = float("-inf")
    """When was asked about all namespaces together, and about nodes."""

    seen: dict[str, float] = field(default_factory=dict)
    """The namespaces whose pods they may list, each with when was asked."""

    asked: int = 0
    """So many of the numbered namespaces were asked about at least once."""

    numbering: int = 0
    next: int = 0
    """The number of the namespace that is asked about again next."""

    again: float = 0.0
    """Until when all were asked about again that were due."""

    asking: asyncio.Task[None] | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Rights:
    """Asks what users may. Used from one event loop; ``namespaces`` gives all that there are."""

    def __init__(
        self, client: Client, namespaces: Callable[[], set[str]], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._client, self._namespaces, self._clock = client, namespaces, clock
        self._users: OrderedDict[Hashable, _Known] = OrderedDict()
        self._threads = ThreadPoolExecutor(max_workers=AT_ONCE, thread_name_prefix="console-asks")
        self._numbered: list[str] = []
        self._there: set[str] = set()
        self._numbering, self._looked = 0, float("-inf")
        self._looking = asyncio.Lock()

    async def viewer(self, user: User) -> Viewer:
        """Say what a user may see.

        Raises
        ------
        ApiError
            It cannot be asked.
        PutOffError
            There are so many namespaces that it is still being asked about some.
        """
        name = str(user.get("username", ""))
        key = _identity(user)
        known = self._users.setdefault(key, _Known(numbering=self._numbering, again=self._clock()))
        self._users.move_to_end(key)
        while len(self._users) > MOST_USERS:
            self._users.popitem(last=False)
        async with known.lock:
            if self._clock() - known.at >= HOLDS:
                known.pods, known.nodes = await asyncio.gather(
                    self._may(user, "pods", None), self._may(user, "nodes", None)
                )
                known.at = self._clock()
        if known.pods:
            return Viewer(name, None, known.nodes)
        await self._look()
        await self._ask_what_is_due(user, known)
        return Viewer(name, frozenset(known.seen), known.nodes)

    async def _ask_what_is_due(self, user: User, known: _Known) -> None:
        """Wait for what has to be known, and have asked again beside what may have changed."""
        loop = asyncio.get_running_loop()
        until = loop.time() + PATIENCE
        while due := self._due(known):
            if known.asking is None or known.asking.done():
                known.asking = _beside(self._ask(user, known, due))
            await asyncio.wait({known.asking}, timeout=until - loop.time())
            if not known.asking.done():
                left = f"{len(due):,} of {len(self._numbered):,} are left"
                raise PutOffError(UNAVAILABLE, f"it is still being asked in which namespaces you may list pods; {left}")
            known.asking.result()
        if (known.asking is None or known.asking.done()) and (again := self._due_again(known)):
            known.asking = _beside(self._ask(user, known, again))

    def _due(self, known: _Known) -> list[str]:
        """Give the namespaces without an answer that holds; those that were not asked about yet come last."""
        now, holds = self._clock(), _holds(known)
        return [name for name, at in known.seen.items() if now - at >= holds] + self._numbered[known.asked :]

    def _due_again(self, known: _Known) -> list[str]:
        """Give those whose answer will not hold much longer, and a few of those whose pods they may not list."""
        now, holds = self._clock(), _holds(known)
        found = [name for name, at in known.seen.items() if now - at >= holds / 2]
        few = min(int((now - known.again) * AGAIN_PER_SECOND), known.asked, MOST_AGAIN)
        if few > 0:
            known.again = max(known.again + few / AGAIN_PER_SECOND, now - known.asked / AGAIN_PER_SECOND)
            some = [self._numbered[(known.next + number) % known.asked] for number in range(few)]
            known.next = (known.next + few) % known.asked
            found += [name for name in some if name not in known.seen]
        return found

    async def _ask(self, user: User, known: _Known, names: Sequence[str]) -> None:
        """Ask about namespaces, a piece at a time: in between it is other users' turn."""
        numbering = known.numbering
        for first in range(0, len(names), PIECE):
            piece = names[first : first + PIECE]
            answers = await asyncio.gather(*(self._may(user, "pods", name) for name in piece))
            now = self._clock()
            if known.numbering != numbering:
                return
            for name, may in zip(piece, answers, strict=True):
                if may:
                    known.seen[name] = now
                else:
                    known.seen.pop(name, None)
                known.asked += known.asked < len(self._numbered) and self._numbered[known.asked] == name

    async def _may(self, user: User, resource: str, namespace: str | None) -> bool:
        """Ask whether a user may list something, everywhere or in a namespace."""
        return await asyncio.get_running_loop().run_in_executor(
            self._threads, _allowed, self._client, user, resource, namespace
        )

    # -- which namespaces there are -----------------------------------------------------------------------------------

    async def _look(self) -> None:
        """Number the namespaces that have come; where most that have a number are gone, number anew."""
        async with self._looking:
            if self._clock() - self._looked < LOOKED:
                return
            there = await asyncio.get_running_loop().run_in_executor(None, self._namespaces)
            self._looked = self._clock()
            self._numbered += sorted(there - self._there)
            self._there = there
            if len(self._numbered) > 2 * len(there) + SPARE:
                self._number_anew()

    def _number_anew(self) -> None:
        """Leave out those that are gone; the others stay in their order, so that what was asked about stays known."""
        last = {name: number for number, name in enumerate(self._numbered)}
        stays = [name in self._there and last[name] == number for number, name in enumerate(self._numbered)]
        before = [0, *accumulate(stays)]
        self._numbered = list(compress(self._numbered, stays))
        self._numbering += 1
        for known in self._users.values():
            known.seen = {name: at for name, at in known.seen.items() if name in self._there}
            known.asked, known.next, known.numbering = before[known.asked], 0, self._numbering


def _beside(asks: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Begin to ask; what goes wrong is told to those who wait for it, if any do."""
    task = asyncio.create_task(asks)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


def _holds(known: _Known) -> float:
    """Give for how many seconds it holds that a user may list the pods of a namespace: of very many, for longer."""
    return max(HOLDS, len(known.seen) / AGAIN_PER_SECOND)


def _identity(user: User) -> Hashable:
    """Give what rights depend on."""
    extra = {name: sorted(values or ()) for name, values in (user.get("extra") or {}).items()}
    return (
        user.get("username", ""),
        user.get("uid", ""),
        tuple(sorted(user.get("groups") or ())),
        repr(sorted(extra.items())),
    )


def _allowed(client: Client, user: User, resource: str, namespace: str | None) -> bool:
    wanted = {"verb": "list", "resource": resource, "group": "", **({"namespace": namespace} if namespace else {})}
    spec = {
        "user": user.get("username", ""), "groups": user.get("groups") or [], "uid": user.get("uid", ""),
        "extra": user.get("extra") or {}, "resourceAttributes": wanted,
    }  # fmt: skip
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": spec}
    status = msgspec.json.decode(client.create(_ACCESS, body)).get("status") or {}
    return bool(status.get("allowed"))
