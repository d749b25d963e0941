"""What may be taken from a running workload: each surplus task alone, its core as a whole.

Of a surplus subgroup, what is below its own minimum goes together as well. Taking the core takes everything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from operator import add, attrgetter

from tenure.engine.memo import Memo
from tenure.engine.serving.nominations import nominated_tasks
from tenure.engine.state.queues import Amount, add_at
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import SUCCEEDED, SubgroupState, TaskState, WorkloadState
from tenure.model.settings import Settings
from tenure.shields.opt_out import count_spared
from tenure.shields.price import growth_of_all, price_of_all

Rank = tuple[object, ...]

Stage = tuple[tuple[TaskState, ...], bool]
"""Tasks that are taken in one go, and whether they are a core: what the rules are asked about one after the other."""


@dataclass(slots=True, eq=False)
class Piece:
    """A choice that a set may contain. ``cost`` is its price, in millionths of a weighted resource-second.

    ``whole``: all of the workload, in stages, surplus first. ``group``: it cuts a subgroup below its minimum.
    ``fresh``: all of it was placed in this cycle and runs nothing yet, so taking it is no eviction and costs nothing;
    ``ran`` are those of its tasks that were not. ``growth`` is by how much its cost grows in a second, at most.
    ``amount`` is what its queue holds less without it, ``ran_amount`` what of it ran before this cycle, ``rows`` those
    in which it holds something. ``frees`` lists node and amounts by row of the node table. ``rank`` orders pieces of
    one queue, the best to take first; its first item is the workload's priority. ``floor`` comes before the key of
    every set that holds it. ``spared``: how many of its tasks asked to be spared.
    """

    workload: WorkloadState
    stages: tuple[Stage, ...]
    tasks: tuple[TaskState, ...]
    ran: tuple[TaskState, ...]
    whole: bool
    group: bool
    fresh: bool
    cost: int
    growth: int
    age: int
    leaf_priority: int
    amount: Amount
    ran_amount: Amount
    rows: tuple[int, ...]
    frees: tuple[tuple[int, Amount], ...]
    rank: Rank
    floor: Rank
    spared: int

    @property
    def compound(self) -> bool:
        """Whether other choices of its workload lie within it, or beside it within a larger one."""
        return self.group or len(self.stages) > 1

    @property
    def youth(self) -> Rank:
        """Give what comes first of two that are equal otherwise: the younger, then the last in the order of tasks."""
        return self.rank[-4:]


PieceMemo = Memo[tuple[WorkloadState, bool, bool], list[Piece]]
"""Pieces by workload, whether with its core, and whether of single tasks: `singles_of` and not `pieces_of`."""

_content = attrgetter(*Piece.__slots__)


def alike_in_content(some: Sequence[Piece], others: Sequence[Piece]) -> bool:
    """Whether pieces say the same, one by one."""
    return list(map(_content, some)) == list(map(_content, others))


def piece_memo(session: Session) -> PieceMemo:
    """Give a memo of the pieces of workloads of which the present cycle placed nothing."""

    def work_out(key: tuple[WorkloadState, bool, bool]) -> list[Piece]:
        workload, core, singly = key
        return (singles_of if singly else pieces_of)(session, workload, frozenset(), core=core)

    def version(key: tuple[WorkloadState, bool, bool]) -> object:
        return session.queues.versions[key[0].leaf], key[0].started_at, key[0].saved_at

    return Memo(work_out, version, alike_in_content)


def held(session: Session, tasks: Sequence[TaskState]) -> Amount:
    """Give the amount that tasks hold where they are bound or nominated, by row."""
    amount: Amount = (0,) * len(session.queues.resources)
    for number, task in enumerate(tasks):
        cls = task.cls
        own = cls.amount_at(task.node if task.node >= 0 else task.nominated, session.nodes)
        if not number and cls.milli is None and all(t.cls is cls for t in tasks):
            return tuple(each * len(tasks) for each in own) if len(tasks) > 1 else own
        amount = tuple(map(add, amount, own))
    return amount


def pieces_of(
    session: Session,
    workload: WorkloadState,
    fresh: frozenset[TaskState],
    *,
    core: bool,
    paid: frozenset[TaskState] = frozenset(),
) -> list[Piece]:
    """Give everything that may be taken from a running workload; without ``core``, what it runs beyond it.

    ``fresh`` was placed in this cycle and may be undone, ``paid`` was bound in it on a nomination and stays.
    """
    found = _pieces_of(session, workload, fresh, core=core)
    return [p for p in found if paid.isdisjoint(p.tasks)] if paid else found


def _pieces_of(session: Session, workload: WorkloadState, fresh: frozenset[TaskState], *, core: bool) -> list[Piece]:
    everything = tuple(workload.placed())
    if not workload.root.children and len(workload.tasks) <= workload.root.minimum:  # a core and nothing else
        return [_piece(session, workload, ((everything, True),), fresh, whole=True)] if core and everything else []
    surplus, units = _beyond_core(workload.root)
    found = [_piece(session, workload, (((t,), False),), fresh) for t in surplus]
    if not core:
        return found
    for unit in units:
        singles = tuple(((t,), False) for t in unit if t in surplus)
        rest = tuple(t for t in unit if t not in surplus)
        found.append(_piece(session, workload, (*singles, (rest, False)), fresh, group=True))
    optional = [t for unit in units for t in unit]
    stages: list[Stage] = [((t,), False) for t in surplus if t not in optional]
    stages += [((t,), False) for t in surplus if t in optional]
    stages += [(rest, False) for unit in units if (rest := tuple(t for t in unit if t not in surplus))]
    last = tuple(t for t in everything if t not in surplus and t not in optional)
    if last:
        found.append(_piece(session, workload, (*stages, (last, True)), fresh, whole=True))
    return found


def needed_of(
    pieces: Sequence[Piece], enough: Callable[[list[Piece]], bool], order: Iterable[Piece] | None = None
) -> list[Piece]:
    """Give pieces back, the last first or in some ``order``, as long as those that are left are ``enough``."""
    kept = list(pieces)
    for piece in reversed(pieces) if order is None else order:
        fewer = [p for p in kept if p is not piece]
        if fewer and enough(fewer):
            kept = fewer
    return kept


def core_of(workload: WorkloadState) -> list[TaskState]:
    """Give what a workload runs and cannot do without one by one: all but its surplus tasks."""
    surplus = _beyond_core(workload.root)[0]
    return [t for t in workload.placed() if t not in surplus]


def singles_of(
    session: Session,
    workload: WorkloadState,
    fresh: frozenset[TaskState],
    *,
    core: bool,
    paid: frozenset[TaskState] = frozenset(),
) -> list[Piece]:
    """Give every task of a running workload as a piece of its own, as they are moved; see `pieces_of`."""
    surplus = _beyond_core(workload.root)[0]
    placed = [t for t in workload.placed() if t not in paid]
    return [_piece(session, workload, (((t,), t not in surplus),), fresh) for t in placed if core or t in surplus]


def _beyond_core(root: SubgroupState) -> tuple[list[TaskState], list[list[TaskState]]]:
    """Surplus tasks, and the tasks of each subgroup that the core does without."""
    if root.rigid or not root.satisfied():
        return [], []
    surplus: list[TaskState] = []
    units: list[list[TaskState]] = []
    _look(root, surplus, units)
    return surplus, units


def _look(group: SubgroupState, surplus: list[TaskState], units: list[list[TaskState]]) -> None:
    if not group.children:
        active = sum(t.active for t in group.tasks)
        takeable = [t for t in group.tasks if t.active and t.phase is not SUCCEEDED]
        beyond = max(0, active - group.minimum)
        surplus += takeable[len(takeable) - min(beyond, len(takeable)) :]
        return
    satisfied = [c for c in group.children if c.satisfied()]
    spare = [c for c in group.children if c not in satisfied] + satisfied[group.minimum :]
    for child in group.children:
        _look(child, surplus, units)
        if child in spare:
            tasks = [t for leaf in child.leaves() for t in leaf.tasks if t.active and t.phase is not SUCCEEDED]
            if any(t not in surplus for t in tasks):
                units.append(tasks)


def _piece(
    session: Session,
    workload: WorkloadState,
    stages: tuple[Stage, ...],
    fresh: frozenset[TaskState],
    *,
    whole: bool = False,
    group: bool = False,
) -> Piece:
    stages = tuple(s for s in stages if s[0])
    tasks = tuple(t for stage, _ in stages for t in stage)
    ran = tuple(t for t in tasks if t not in fresh) if fresh else tasks
    is_fresh = not ran
    price, growth = (0, 0) if is_fresh else (price_of_all(session, ran), growth_of_all(session, ran))
    age = -(workload.created_at if workload.started_at is None else workload.started_at)
    stage = cost_or_age(session.settings, (age,), price)
    names = age, -workload.created_at, -tasks[-1].index, workload.key
    rank = (workload.priority, *stage, whole, len(ran), *names)
    level = session.queues.queues[workload.leaf].priority
    promised = nominated_tasks(workload) if whole else []  # which they lose once it is gone
    amount = held(session, [*tasks, *promised] if promised else tasks)
    ran_amount = amount if not promised and (len(ran) == len(tasks) or not ran) else held(session, ran)
    rows = tuple(row for row, each in enumerate(amount) if each > 0)
    asked = count_spared(session, ran) if workload.sparing else 0
    floor: Rank = (asked, level, stage[0])
    if is_fresh:
        floor = (0, -(1 << 40), cost_or_age(session.settings, (), 0)[0])
    return Piece(
        workload, stages, tasks, ran, whole, group, is_fresh, price, growth, age,
        level, amount, ran_amount, rows, _frees(session, tasks), rank, floor, asked,
    )  # fmt: skip


def cost_or_age(settings: Settings, ages: Iterable[int], cost: int) -> Rank:
    """Give what decides between sets of equal priority: cost, or before it age, where the settings say so.

    Of ages those come first that should go last.
    """
    if settings.victims == "cost":
        return (cost,)
    first = sorted(ages if settings.victims == "youngest" else (-age for age in ages), reverse=True)
    return tuple(first), cost


def _frees(session: Session, tasks: Sequence[TaskState]) -> tuple[tuple[int, Amount], ...]:
    nodes = session.nodes
    found: dict[int, Amount] = {}
    for task in tasks:
        add_at(found, task.node, task.cls.frees(task.node, task.devices, nodes))
    return tuple(sorted(found.items()))
