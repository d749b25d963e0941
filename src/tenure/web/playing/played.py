"""The process in which the console plays cycles: what takes long does not hold up pages, and can be ended.

It reads pickled requests from standard input, ``(task, arguments)``, and answers on standard output: ``("done",
value)``; ``("wrong", lines)`` where what was asked for cannot be; ``("failed", text)`` where playing it failed. It
keeps the cluster that it was given last, and what was played of it.
"""

from __future__ import annotations

import gc
import json
import os
import pickle
import struct
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import IO, Any, Final

from tenure.engine.plan import Pending
from tenure.engine.reasons import why_pending
from tenure.engine.serving.order import QueueOrder
from tenure.engine.serving.reserved_start import NextPass
from tenure.engine.snapshot import session_of
from tenure.engine.state.session import Session
from tenure.explanation.explain import explain_workload
from tenure.fairness.current import Fairness
from tenure.model.cluster import Cluster
from tenure.model.file.added import load_additions
from tenure.model.file.override import apply_overrides
from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.model.values.resources import plain_amounts
from tenure.model.workload import Phase, Workload
from tenure.playthrough import PlayThrough, play, queue_views
from tenure.report.plans.plan_json import plan_json

HEADER: Final = struct.Struct(">Q")
"""The length of what follows, in bytes."""

MANY: Final = 10_000
"""Workloads from which on one is explained without playing a cycle."""

MOST_IN_ORDER: Final = 200_000
"""Places in the order that are worked out."""


class Playing:
    """A cluster, and what was played of it."""

    def __init__(self) -> None:
        self.cluster = Cluster(now=0)
        self._played: PlayThrough | None = None
        self._session: Session | None = None
        self._coming: list[Workload] = []

    def keep(self, cluster: Cluster) -> None:
        """Take another cluster, to which workloads may still come; what was played of the last one is let go first."""
        self.cluster, self._played, self._session = cluster, None, None
        gc.collect()  # sessions refer to themselves, and those of a large cluster have to go before the next one comes
        self._coming = list(cluster.workloads)

    def add(self, workloads: Sequence[Workload]) -> None:
        """Take further workloads of it."""
        self._coming += workloads

    def settle(self) -> None:
        """Take it as it is: all of its workloads have come."""
        self.cluster = replace(self.cluster, workloads=tuple(self._coming))
        self._coming.clear()

    @property
    def played(self) -> PlayThrough:
        """One cycle of it."""
        if self._played is None:
            self._played = play(self.cluster)
        return self._played

    def shares(self) -> dict[str, Any]:
        """Give what queues hold and are due before anything is decided, and the order in which who waits is served."""
        session = self._session or session_of(self.cluster)
        if len(self.cluster.workloads) > MANY:
            self._session = session
        return {
            "queues": [
                {
                    "name": view.name,
                    "allocated": plain_amounts(view.allocated),
                    "fairShare": plain_amounts(view.fair_share),
                }
                for view in queue_views(session)
            ],
            "order": _order(session),
        }

    def outlook(self) -> dict[str, Any]:
        """Give what the next cycle would do. What was refused is left out: there is far more of it than of the rest."""
        if len(self.cluster.workloads) <= MANY:
            return plan_json(replace(self.played, refused=[]))
        self._session = None  # there is room for one session of a large cluster at a time
        gc.collect()
        plan = _large_outlook(self.cluster)
        gc.collect()
        return plan

    def explain(self, key: str) -> dict[str, Any] | None:
        """Say where a workload stands, why, and what it would take; None where there is none of that name."""
        workload = next((w for w in self.cluster.workloads if w.key == key), None)
        if workload is None:
            return None
        if len(self.cluster.workloads) > MANY:
            return explain_workload(self._alone(workload), workload).plain()
        played = self.played
        if played.external is not None and workload.scheduler_name in self.cluster.settings.rescheduler.schedulers:
            played = played.external
        return explain_workload(played, workload).plain()

    def _alone(self, workload: Workload) -> PlayThrough:
        """Say why one workload waits, without a cycle: in a very large cluster that takes too long."""
        if self._session is None:
            self._session = session_of(self.cluster)
        state = self._session.workloads.get(workload.key)
        pending = []
        if state is not None and any(task.phase in (Phase.PENDING, Phase.GATED) for task in workload.tasks):
            following = NextPass(self._session, Fairness(self._session).now)
            pending = [Pending(workload.key, why_pending(self._session, state, following))]
        return PlayThrough(before=self.cluster, after=self.cluster, pending=pending)

    def plan(self, overrides: Sequence[str], additions: Sequence[Any]) -> dict[str, Any]:
        """Play one cycle of a changed copy."""
        cluster = self.cluster
        if overrides:
            cluster = apply_overrides(cluster, overrides).cluster
        if additions:
            cluster = replace(cluster, workloads=(*cluster.workloads, *_added(additions, cluster)))
        return plan_json(play(cluster))

    def moves(self, drain: str | None) -> dict[str, Any]:
        """Play the rescheduler alone: to empty a node, or to make room for what waits."""
        cluster = self.cluster
        settings = replace(cluster.settings, actions=("reschedule",))
        if drain is None:
            settings = replace(settings, rescheduler=replace(settings.rescheduler, pending_for=0))
        nodes = tuple(replace(node, drain=True) if node.name == drain else node for node in cluster.nodes)
        return plan_json(play(replace(cluster, settings=settings, nodes=nodes)))


def _large_outlook(cluster: Cluster) -> dict[str, Any]:
    """Play a cycle of a large cluster; once this has returned, all that was needed for it can be collected."""
    played = play(cluster)
    played.refused = []
    return plan_json(played)


def _order(session: Session) -> list[str]:
    """Give who waits, in the order in which they would be looked at if none of them found a place."""
    order = QueueOrder(session, Fairness(session).now(), lambda _, __: False)
    found: list[str] = []
    while len(found) < MOST_IN_ORDER and (workload := order.next()) is not None:
        found.append(workload.key)
        order.pass_over(workload)
    return found


def _added(additions: Sequence[Any], cluster: Cluster) -> list[Any]:
    """Read workloads and manifests as ``tenure plan --add`` reads them from a file.

    Raises
    ------
    InvalidInputError
        With all problems; the place of each is named as if all stood in a file ``add``.
    """
    plain = [entry for entry in additions if not (isinstance(entry, dict) and "kind" in entry)]
    manifests = [entry for entry in additions if isinstance(entry, dict) and "kind" in entry]
    documents: list[Any] = [{"workloads": plain}] if plain else []
    if manifests:
        documents.append({"apiVersion": "v1", "kind": "List", "items": manifests})
    found: list[Any] = []
    for document in documents:
        with tempfile.NamedTemporaryFile("w", suffix=".json", encoding="utf-8") as file:
            json.dump(document, file)
            file.flush()
            try:
                found += load_additions(file.name, replace(cluster, workloads=(*cluster.workloads, *found)))
            except InvalidInputError as error:
                raise InvalidInputError([_elsewhere(problem) for problem in error.problems]) from None
    return found


def _elsewhere(problem: InputProblem) -> InputProblem:
    return InputProblem("add", 0, problem.path, problem.message)


def answer(playing: Playing, task: str, arguments: Sequence[Any]) -> tuple[str, Any]:
    """Do what was asked for."""
    does: dict[str, Callable[..., Any]] = {
        "keep": playing.keep, "add": playing.add, "settle": playing.settle, "shares": playing.shares,
        "outlook": playing.outlook, "explain": playing.explain, "plan": playing.plan, "moves": playing.moves,
    }  # fmt: skip
    try:
        return "done", does[task](*arguments)
    except InvalidInputError as error:
        return "wrong", [str(problem) for problem in error.problems]
    except Exception as error:  # noqa: BLE001  whoever asked hears of it; what others ask is played all the same
        return "failed", f"{type(error).__name__}: {error}"


def write(stream: IO[bytes], value: Any) -> None:
    """Write a value with its length before it."""
    data = pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL)
    stream.write(HEADER.pack(len(data)))
    stream.write(data)
    stream.flush()


def read(stream: IO[bytes]) -> Any:
    """Read a value that `write` wrote.

    Raises
    ------
    EOFError
        There is none.
    """
    head = stream.read(HEADER.size)
    if len(head) < HEADER.size:
        raise EOFError("the other side has ended")
    (length,) = HEADER.unpack(head)
    data = stream.read(length)
    if len(data) < length:
        raise EOFError("the other side ended in the middle of a message")
    return pickle.loads(data)  # noqa: S301  what this program's other process wrote


def main() -> None:
    """Answer until nobody asks any more."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "wb")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing that prints may get between the answers
    playing = Playing()
    while True:
        try:
            task, arguments = read(sys.stdin.buffer)
        except EOFError:
            return
        write(answers, answer(playing, task, arguments))


if __name__ == "__main__":
    main()
