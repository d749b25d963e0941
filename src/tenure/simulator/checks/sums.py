"""Running sums over time, per group: what of a resource is held on a node, a device or in a queue."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tenure.simulator.checks.columns import Ints, Mask


@dataclass(frozen=True, slots=True)
class Timeline:
    """Changes sorted by group and, within it, in time.

    ``sign`` is +1 where entry ``entry`` starts to hold and -1 where it stops; ``first`` marks the first of a group.
    """

    group: Ints
    entry: Ints
    at: Ints
    position: Ints
    sign: Ints
    first: Mask

    def running(self, amount: Ints) -> Ints:
        """Sum ``amount`` (per entry) up to and with each change, from zero in each group."""
        return sum_by_group(self.sign * amount[self.entry], self.first)

    def rises(self, over: Mask) -> Ints:
        """Give the indices at which ``over`` becomes true in a group: each excursion counts once."""
        previous = np.zeros_like(over)
        previous[1:] = over[:-1] & ~self.first[1:]
        return np.flatnonzero(over & ~previous)


def sum_by_group(change: Ints, first: Mask) -> Ints:
    """Running sum that starts anew at each entry that is the ``first`` of its group."""
    total: Ints = np.cumsum(change)
    starts = np.flatnonzero(first)
    sums: Ints = total - np.repeat(total[starts] - change[starts], np.diff(np.append(starts, len(total))))
    return sums


def timeline(group: Ints, since: Ints, until: Ints, bound: Ints, freed: Ints) -> Timeline:
    """Build a timeline from entries that each hold from ``since`` to ``until`` (-1: for ever).

    ``bound`` and ``freed`` are positions in the log: at one instant, changes count in the log's order. What stops
    at another time than its event in the log (an evicted task that takes a while to leave: ``freed`` is -1 then)
    stops before anything else happens at that instant.
    """
    entries = np.arange(len(group))
    stops = np.flatnonzero(until >= 0)
    entry = np.concatenate((entries, stops))
    at = np.concatenate((since, until[stops]))
    position = np.concatenate((bound, freed[stops]))
    sign = np.concatenate((np.ones(len(entries), dtype=np.int64), np.full(len(stops), -1, dtype=np.int64)))
    groups = group[entry]
    order = np.lexsort((position, at, groups))
    groups = groups[order]
    first = np.ones(len(groups), dtype=np.bool_)
    first[1:] = groups[1:] != groups[:-1]
    return Timeline(groups, entry[order], at[order], position[order], sign[order], first)
