"""The fullest window of a budget: the most that was charged to it at one time, over a stream of evictions."""

from __future__ import annotations

from collections import Counter, deque
from dataclasses import dataclass, field

from tenure.ledger.entries import Charge
from tenure.ledger.rules import Rule


@dataclass(frozen=True, slots=True)
class FullestWindow:
    """What a window of a budget held when most of the budget was used.

    ``at`` (µs since the epoch) is the last eviction in it, ``used`` the share of the budget, of the bound that was used
    most: more than 1 where evictions took place that the budget could not refuse. ``lost`` is in resource-µs by
    resource. ``workload`` is whose window it was, of a rule that is applied to each workload singly.
    """

    at: int
    used: float
    evictions: int
    lost: dict[str, int] = field(default_factory=dict)
    workload: str | None = None


@dataclass(slots=True)
class _Counted:
    """The evictions of the window that ends now, and what they lost together."""

    charges: deque[Charge] = field(default_factory=deque)
    lost: Counter[str] = field(default_factory=Counter)

    def take(self, charge: Charge, after: int) -> None:
        """Take an eviction in, and let go what was not carried out later than ``after``."""
        self.charges.append(charge)
        self.lost.update(charge.ask.lost)
        while self.charges[0].at <= after:
            self.lost.subtract(self.charges.popleft().ask.lost)


class WindowFollower:
    """Follows the evictions that are charged to one rule, in the order of time, and remembers its fullest window."""

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.fullest: FullestWindow | None = None
        self._counted: dict[str, _Counted] = {}

    def charge(self, charge: Charge, since: int) -> bool:
        """Take the next eviction, and say whether it is charged; only windows that end at ``since`` or later count."""
        window = self.rule.scope.window(charge.at)
        if window is None or not self.rule.scope.covers(charge.ask):
            return False
        whose = "" if self.rule.model.each is None else charge.ask.workload
        counted = self._counted.setdefault(whose, _Counted())
        counted.take(charge, window[0])
        if charge.at >= since:
            self._compare(counted, whose)
        return True

    def _compare(self, counted: _Counted, whose: str) -> None:
        model, limits = self.rule.model, self.rule.model.max_lost or {}
        evictions = len(counted.charges)
        shares = [_share(counted.lost[name], most) for name, most in limits.items()]
        if model.max_evictions is not None:
            shares.append(_share(evictions, model.max_evictions))
        used = max(shares, default=0.0)
        if shares and (self.fullest is None or used > self.fullest.used):
            lost = {name: counted.lost[name] for name in limits}
            self.fullest = FullestWindow(counted.charges[-1].at, used, evictions, lost, whose or None)


def _share(used: int, most: int) -> float:
    """Give the share of a bound that is used; of a bound of nothing, as if it were 1, and that used up."""
    return used / most if most else float(used > 0) + used
