"""What the selectors of requests say of devices, and how much of that may be asked.

Many selectors, or such as take long, cost their own namespace alone: all of its requests together may cost so much in a
cycle, and what is left is looked at in the next.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tenure.engine.devices.capacity import Consumed, consumed_of
from tenure.engine.devices.search import DeviceSearchError
from tenure.engine.devices.stock import DeviceStock, StockedDevice
from tenure.model.devices import DeviceClass, DeviceSelector, ExactDevices

Ints = NDArray[np.int64]
Passes = Consumed | DeviceSearchError | None
"""What a request would consume of a device; None if it does not take it, an error if that cannot be told."""

MOST_EFFORT_IN_ALL: Final = 2_000_000
"""Effort that selectors of one namespace may cost in a cycle, seconds at the very most: see `selector_form`."""

_FOR_EACH: Final = 5
"""Effort of a look at a device of which it is known what a selector says."""

_TO_COMPILE: Final = 10
"""Effort for each character of a selector that is made ready."""

TOO_MUCH: Final = DeviceSearchError(
    "the selectors of its namespace's claims take long together, and only so much of that is done in one cycle; the "
    "next one goes on"
)


@dataclass(slots=True)
class RequestKind:
    """A kind of requests. ``passes`` says by kind of device what it would consume of one (None: it does not take it).

    ``members`` are the numbers of those that no taint keeps from it. ``is_plain``: all of them are given out as
    wholes, and about each it is known. ``free`` is ``int64[2, nodes]``: those that are free then, and now and then.
    ``looked_at`` devices, in the order of their numbers, have been looked at for ``namespace``, which had it first, and
    all of these were ``plain_so_far``. ``said``: by selector and what it reads of a device, whether it takes it, or why
    that cannot be told.
    """

    asked: ExactDevices
    namespace: str
    free: Ints
    passes: dict[int, Passes] = field(default_factory=dict)
    members: set[int] = field(default_factory=set)
    said: dict[tuple[int, Hashable], bool | str] = field(default_factory=dict)
    is_plain: bool = False
    plain_so_far: bool = True
    looked_at: int = 0


class KnownAnswers(NamedTuple):
    """What is known of devices whatever nodes there are, so that a session that is made anew does not ask again.

    ``kinds`` are the numbers of kinds of devices, ``passes`` says by request what it would consume of one of a kind.
    Both hold for these ``classes``.
    """

    classes: Mapping[str, DeviceClass]
    kinds: dict[Any, int]
    passes: Mapping[Any, dict[int, Passes]]


class SelectorAnswers:
    """The answers of selectors about the devices of a stock; namespaces have spent so much on them in this cycle."""

    def __init__(self, stock: DeviceStock) -> None:
        self._stock = stock
        self._spent: dict[str, int] = {}

    def begin_anew(self) -> None:
        """Let every namespace spend as much as at first."""
        self._spent.clear()

    def may_begin(self, kind: RequestKind) -> bool:
        """Spend what it takes to compile the selectors of a kind; False if nothing is left of it."""
        return self._spend(kind, _TO_COMPILE * sum(len(s.cel.expression) for s in kind.asked.selectors))

    def judge(self, kind: RequestKind, device: StockedDevice) -> bool:
        """Find out what a request would consume of a device; False if the namespace has spent too much."""
        asked, passes = kind.asked, kind.passes
        if asked.class_name not in self._stock.classes:
            passes[device.kind] = None
            return True
        for place, (whose, selector) in enumerate(self._selectors(asked)):
            said = self._said(kind, place, selector, device)
            if said is None:
                return False
            if said is not True:
                passes[device.kind] = DeviceSearchError(f"a selector of {whose} {said}") if said else None
                return True
        passes[device.kind] = consumed_of(asked.capacity, device.model)
        return True

    def _said(
        self, kind: RequestKind, place: int, selector: DeviceSelector, device: StockedDevice
    ) -> bool | str | None:
        """Ask a selector about a device: whether it takes it, or why that cannot be told; None if it may not be asked.

        What it reads of a device is asked about once.
        """
        from tenure.engine.devices.selector_form import DeviceSelectorError  # noqa: PLC0415  takes long to import
        from tenure.engine.devices.selectors import compiled  # noqa: PLC0415

        program = compiled(selector.cel.expression)
        if isinstance(program, DeviceSelectorError):
            return str(program)
        driver, seen = device.key[0], program.form.seen_of(device.key[0], device.model)
        said = kind.said.get((place, seen)) if seen is not None else None
        if not self._spend(kind, _FOR_EACH + (program.form.effort if said is None else 0)):
            return None
        if said is None:
            try:
                said = program.matches(driver, device.model)
            except DeviceSelectorError as error:
                said = str(error)
            kind.said[place, seen] = said
        return f"fails for device {'/'.join(device.key)}: {said}" if isinstance(said, str) else said

    def _spend(self, kind: RequestKind, effort: int) -> bool:
        """Spend some of what the namespace of a kind may spend; False if nothing is left of it."""
        spent = self._spent.get(kind.namespace, 0)
        if kind.namespace and spent >= MOST_EFFORT_IN_ALL:
            return False
        self._spent[kind.namespace] = spent + effort
        return True

    def _selectors(self, asked: ExactDevices) -> Iterator[tuple[str, DeviceSelector]]:
        """Give the selectors that all have to take a device, each with where it stands: those of the class first."""
        found = self._stock.classes[asked.class_name]
        yield from ((f"device class {found.name}", selector) for selector in found.selectors)
        yield from (("the request", selector) for selector in asked.selectors)
