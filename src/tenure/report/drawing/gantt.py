"""Gantt chart: nodes by time, each node as high as what it has, each task as high as what it holds of it."""

from __future__ import annotations

from tenure.model.node import Node
from tenure.model.values.resources import CPU, GPU, MILLI
from tenure.report.drawing.busiest import BusiestStretch
from tenure.report.drawing.plot import WIDTH, Plot, line, rect
from tenure.report.drawing.scales import Tick, time_ticks
from tenure.report.drawing.series import SimulationSeries
from tenure.report.words import amount, bare_amount, duration, resource_label
from tenure.simulator.traces.records import SECOND

ALONE = 360
"""Height of the picture of one node."""

LEAST, MOST = 16, 60
"""Height of a node among others."""

OUTLINED = 4
"""Height from which a task has an outline; a lower one would be all outline."""

Piece = tuple[int, int]
"""From where to where on a node, in units of its resource."""


class Lanes:
    """The units of one node's resource, and until when each piece of them is taken."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.free: list[Piece] = [(0, size)]

    def take(self, amount: int, within: Piece | None = None) -> list[Piece]:
        """Take the lowest free units (of ``within``, if given): in one piece if possible, else in several."""
        bounds = within or (0, self.size)
        free = [(max(low, bounds[0]), min(high, bounds[1])) for low, high in self.free]
        free = [(low, high) for low, high in free if high > low]
        whole = next(((low, low + amount) for low, high in free if high - low >= amount), None)
        taken: list[Piece] = [] if whole is None else [whole]
        if whole is None:
            for low, high in free:
                part = min(amount, high - low)
                amount -= part
                if part:
                    taken.append((low, low + part))
        for piece in taken:
            self._remove(piece)
        return taken

    def _remove(self, piece: Piece) -> None:
        index = next(index for index, (low, high) in enumerate(self.free) if low <= piece[0] and piece[1] <= high)
        low, high = self.free[index]
        self.free[index : index + 1] = [part for part in ((low, piece[0]), (piece[1], high)) if part[1] > part[0]]

    def give_back(self, pieces: list[Piece]) -> None:
        """Free what was taken."""
        self.free = joined([*self.free, *pieces])


def joined(pieces: list[Piece]) -> list[Piece]:
    """Put pieces in order and make one of those that touch."""
    merged: list[Piece] = []
    for low, high in sorted(pieces):
        if merged and merged[-1][1] == low:
            merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return merged


def gantt(history: SimulationSeries, stretch: BusiestStretch) -> Plot:
    """Draw a stretch of a simulation."""
    nodes = [history.nodes[index] for index in stretch.nodes.tolist()]
    each = ALONE if len(nodes) == 1 else max(LEAST, min(MOST, 480 // max(1, len(nodes))))
    height = each * len(nodes)
    marks = [line(0, row * each, WIDTH, row * each, "grid") for row in range(len(nodes) + 1)]
    for row, number in enumerate(stretch.nodes.tolist()):
        marks += _node(history, stretch, number, row * each, each)
    origin = history.outcomes.began
    x = time_ticks((stretch.begin - origin) / SECOND, (stretch.end - origin) / SECOND)
    y = [Tick(1 - (row + 0.5) / len(nodes), node.name) for row, node in enumerate(nodes)]
    if len(nodes) == 1:
        y = _amount_ticks(*_measure(nodes[0], history.main))
    legend = [(f"c{index}", name) for index, name in enumerate(history.groups.names)]
    shown = f"{len(nodes)} of {stretch.of_nodes} nodes" if len(nodes) < stretch.of_nodes else "all nodes"
    return Plot(f"tasks on {shown} in the busiest stretch", height, "".join(marks), x, y, legend=legend, rows=True)


def _amount_ticks(resource: str, size: int) -> list[Tick]:
    """Make the axis of a single node: what it has, in quarters."""
    milli = resource == GPU
    return [Tick(part / 4, bare_amount(resource, size * part // 4, milli_gpu=milli)) for part in range(5)]


def _node(history: SimulationSeries, stretch: BusiestStretch, number: int, top: float, height: float) -> list[str]:
    """Draw the tasks of one node."""
    holdings = history.outcomes.holdings
    here = stretch.holdings[holdings.node[stretch.holdings] == number].tolist()
    resource, size = _measure(history.nodes[number], history.main)
    amounts = history.amounts(resource)
    lanes = Lanes(size)
    held: list[tuple[int, list[Piece]]] = []
    marks = []
    for index in sorted(here, key=lambda index: (int(holdings.since[index]), index)):
        since = int(holdings.since[index])
        for until, pieces in held:
            if until <= since:
                lanes.give_back(pieces)
        held = [(until, pieces) for until, pieces in held if until > since]
        pieces = _take(lanes, int(amounts[index]), holdings.devices[index] if resource == GPU else ())
        held.append((int(history.until[index]), pieces))
        marks += _task(history, stretch, index, [(top, height, size, piece) for piece in joined(pieces)], resource)
    return marks


def _measure(node: Node, main: str) -> tuple[str, int]:
    """Say by which resource a node is drawn, and how much of it there is: its GPUs, or what it has."""
    for resource in (main, GPU, CPU):
        if size := node.allocatable.get(resource, 0):
            return resource, size * (MILLI if resource == GPU else 1)
    return main, 1


def _take(lanes: Lanes, amount: int, devices: tuple[int, ...]) -> list[Piece]:
    """Take units for a task, on its own GPUs where these are known."""
    if not devices:
        return lanes.take(amount)
    each = amount // len(devices)
    return [piece for device in sorted(devices) for piece in lanes.take(each, (device * MILLI, (device + 1) * MILLI))]


def _task(
    history: SimulationSeries,
    stretch: BusiestStretch,
    index: int,
    places: list[tuple[float, float, int, Piece]],
    resource: str,
) -> list[str]:
    holdings = history.outcomes.holdings
    span = stretch.end - stretch.begin
    since, until = int(holdings.since[index]), int(history.until[index])
    left = max(0.0, (since - stretch.begin) / span) * WIDTH
    right = min(1.0, (until - stretch.begin) / span) * WIDTH
    job = int(history.job[index])
    kind = f"task c{int(history.groups.of_job[job])}" + (" odd" if job % 2 else "")
    kind += " evicted" if holdings.evicted[index] else ""
    title = _title(history, index, resource)
    marks = []
    for top, height, size, (low, high) in places:
        tall = height * (high - low) / size
        fine = "" if tall > OUTLINED else " fine"
        marks.append(rect(left, top + height * (1 - high / size), max(right - left, 0.5), tall, kind + fine, title))
        title = ""
    return marks


def _title(history: SimulationSeries, index: int, resource: str) -> str:
    outcomes, holdings = history.outcomes, history.outcomes.holdings
    job = int(history.job[index])
    origin = outcomes.began
    since, until = ((int(at) - origin) / SECOND for at in (holdings.since[index], history.until[index]))
    held = amount(resource, int(history.amounts(resource)[index]), milli_gpu=resource == GPU)
    end = "evicted at" if holdings.evicted[index] else "to"
    queue = outcomes.workloads[job].queue or "default"
    return f"{outcomes.names[job]} ({queue}): {held}, {duration(since)} {end} {duration(until)}"


def caption(history: SimulationSeries, stretch: BusiestStretch) -> str:
    """Say what the chart shows."""
    origin = history.outcomes.began
    begin, end = (stretch.begin - origin) / SECOND, (stretch.end - origin) / SECOND
    since = f"{duration(begin)} on" if begin >= 1 else "the start on"
    text = f"The {duration(end - begin)} in which most {resource_label(history.main)} was in use, from {since}."
    if len(stretch.nodes) < stretch.of_nodes:
        text += f" The {len(stretch.nodes)} of {stretch.of_nodes:,} nodes on which most tasks ran are shown."
    text += " Each task is as high as its part of the node."
    return text + (
        " What has a red edge was evicted." if history.outcomes.holdings.evicted[stretch.holdings].any() else ""
    )
