"""Which sets of pieces fail alike: tasks of one workload that stand alone on nodes which are alike without them.

A large elastic workload holds dozens of nodes so; what one of its tasks makes no room for, no other does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from functools import cache, partial

from tenure.engine.state.session import Session
from tenure.victims.rules.pieces import Piece


class AlikePieces:
    """Gives pieces their kind, as the session stands while one contender is searched for.

    Nodes are alike if they have the same room and devices, admit the same classes of tasks, and stand in the same
    domains. Where tasks have terms about others, no two pieces are alike, nor are those beside which others stand.
    """

    def __init__(self, session: Session) -> None:
        self._kind = cache(partial(_kind_of, session, cache(partial(_kind_of_node, session))))

    def kind_of(self, pieces: Sequence[Piece]) -> Hashable:
        """Give what a set of pieces has in common with those that fail like it."""
        return frozenset(Counter(map(self._kind, pieces)).items())

    def first_of_each(self, pieces: Iterable[Piece]) -> Iterator[Piece]:
        """Give the pieces, of those of one kind the first alone."""
        seen = set[Hashable]()
        for piece in pieces:
            kind = self._kind(piece)
            if kind not in seen:
                seen.add(kind)
                yield piece


def _kind_of(session: Session, node_kind: Callable[[int], Hashable], piece: Piece) -> Hashable:
    own = set(piece.tasks)
    if session.terms.used or any(t.terms is not None for t in own):
        return piece
    if any(other not in own for t in own for other in session.on_node[t.node]):
        return piece
    tasks = sorted((t.cls.id, id(t.group), node_kind(t.node)) for t in own)
    core = tuple(is_core for _, is_core in piece.stages)
    return piece.workload, piece.whole, piece.group, piece.fresh, piece.spared, core, tuple(tasks)


def _kind_of_node(session: Session, number: int) -> Hashable:
    nodes, classes = session.nodes, session.classes.classes
    admits = bytes(cls.static_list[number] for cls in classes)
    room, devices = nodes.room[:, number].tobytes(), nodes.device[:, number].tobytes()
    return room, devices, admits, nodes.domains.places(number)
