"""One rule of the ledger: the bounds that follow from it, and what is used of them (spec: disruption SLOs)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace

from tenure.ledger.entries import Charge, EvictionRequest, LedgerPod, LinearBound, RuleAccount
from tenure.ledger.scope import RuleScope
from tenure.model.cluster import DisruptionBudget
from tenure.model.settings import BudgetRule
from tenure.model.values.duration import format_duration

HUNDRED = 100


class Rule:
    """A rule with the part of the log and of the pods that it is about.

    Parameters
    ----------
    model
        The rule as configured.
    strict
        It is a PodDisruptionBudget: it counts pods that never were up, and refuses whatever the cause.
    blocked_since
        Since when it has allowed nothing, in µs since the epoch.
    """

    def __init__(
        self,
        model: BudgetRule,
        log: Iterable[Charge],
        pods: Iterable[LedgerPod],
        *,
        strict: bool = False,
        blocked_since: int | None = None,
    ) -> None:
        self.model = model
        self.scope = RuleScope(model, strict=strict)
        self.blocked_since = blocked_since
        self.log = sorted((c for c in log if self.scope.covers(c.ask)), key=lambda c: c.at)
        self.pods = [p for p in pods if self.scope.counts_pods and self.scope.counts(p)]

    def rows(
        self,
        asks: Sequence[EvictionRequest],
        charged: Sequence[Charge],
        now: int,
        risen: AbstractSet[tuple[str, str]] = frozenset(),
    ) -> list[LinearBound]:
        """Give the bounds that hold at ``now`` for a set that is asked for, one for each workload where it says so.

        Pods that have ``risen`` are up by then, by workload and task.
        """
        window = self.scope.window(now)
        concerned = [i for i, a in enumerate(asks) if self.scope.covers(a) and not self._lets_go(a, now)]
        if window is None or not concerned:
            return []
        since, ends = window
        log = self.log + [c for c in charged if self.scope.covers(c.ask)]
        fallen = {(c.ask.workload, c.ask.task) for c in charged} - risen
        there = [replace(p, up=True) if (p.workload, p.task) in risen else p for p in self.pods] if risen else self.pods
        recent = self._recent(log, since, now)
        if self.model.each is None:
            return self._bounds(asks, concerned, recent, there, fallen, ends, now)
        found: list[LinearBound] = []
        for workload in dict.fromkeys(asks[i].workload for i in concerned):
            mine = [i for i in concerned if asks[i].workload == workload]
            own = [c for c in recent if c.ask.workload == workload]
            pods = [p for p in there if p.workload == workload]
            found += self._bounds(asks, mine, own, pods, fallen, ends, now)
        return found

    def account(self, now: int) -> RuleAccount:
        """Say what is used of it at ``now`` (µs since the epoch)."""
        window = self.scope.window(now)
        if window is None:
            return RuleAccount(in_force=False)
        recent = self._recent(self.log, window[0], now)
        if self.model.each is None:
            return self._account(recent, self.pods, window[1])
        names = {c.ask.workload for c in recent} | {p.workload for p in self.pods}
        accounts = [
            self._account(
                [c for c in recent if c.ask.workload == name], [p for p in self.pods if p.workload == name], window[1]
            )
            for name in sorted(names)
        ]
        return min(accounts, key=_tightness, default=self._account([], [], window[1]))

    def _recent(self, log: Iterable[Charge], since: int, now: int) -> list[Charge]:
        return [c for c in log if since < (at := min(c.at, now)) <= now and self.scope.window(at) is not None]

    def _account(self, recent: Sequence[Charge], pods: Sequence[LedgerPod], ends: int | None) -> RuleAccount:
        model, up = self.model, sum(p.up for p in pods)
        bounds = [bound for bound, _ in _allowances(self.model, len(pods), up)]
        if model.max_evictions is not None:
            bounds.append(model.max_evictions - len(recent))
        limits = model.max_lost or {}
        lost = {name: sum(c.ask.lost.get(name, 0) for c in recent) for name in sorted(limits)}
        spent = any(lost[name] >= most for name, most in limits.items())
        allowed = 0 if spent else max(0, min(bounds)) if bounds else None
        return RuleAccount(
            in_force=True,
            evictions=len(recent),
            allowed=allowed,
            down=len(pods) - up if self.scope.counts_pods else None,
            lost=lost,
            next_at=self._more_at(recent, ends) if allowed == 0 else None,
        )

    def _more_at(self, recent: Sequence[Charge], ends: int | None) -> int | None:
        """When the first charges have fallen out of the window of which the bounds on charges allow more."""
        model, times = self.model, [] if ends is None else [ends]
        for dropped in range(1, len(recent) + 1 if model.per is not None else 0):
            left = recent[dropped:]
            few = model.max_evictions is None or len(left) < model.max_evictions
            if few and all(
                sum(c.ask.lost.get(n, 0) for c in left) < most for n, most in (model.max_lost or {}).items()
            ):
                times.append(recent[dropped - 1].at + (model.per or 0))
                break
        return min(times, default=None)

    def _lets_go(self, ask: EvictionRequest, now: int) -> bool:
        """Whether it has no say: what is forced it may not refuse, or it has refused for longer than one may."""
        return (ask.forced and not self.scope.insists(ask)) or (
            ask.outlasted and self._is_stuck(ask.patience or 0, now)
        )

    def _is_stuck(self, patience: int, now: int) -> bool:
        """Whether it can allow nothing, not even if all were up, or has allowed nothing for so long (µs)."""
        if not self.scope.strict:
            return False
        if self.blocked_since is not None and now - self.blocked_since >= patience:
            return True
        expected = len(self.pods)
        return any(bound <= 0 for bound, _ in _allowances(self.model, expected, expected))

    def _bounds(
        self,
        asks: Sequence[EvictionRequest],
        mine: Sequence[int],
        recent: Sequence[Charge],
        pods: Sequence[LedgerPod],
        fallen: AbstractSet[tuple[str, str]],
        ends: int | None,
        now: int,
    ) -> list[LinearBound]:
        model, rows = self.model, []
        if model.max_evictions is not None:
            text = f"{model.max_evictions} evictions{_span(model)}, of which {len(recent)} were used"
            left = model.max_evictions - len(recent)
            later = self._later(recent, [1] * len(recent), left, ends)
            rows.append(_row(model, dict.fromkeys(mine, 1), left, later, text))
        for resource, most in sorted((model.max_lost or {}).items()):
            each = [c.ask.lost.get(resource, 0) for c in recent]
            used = sum(each)
            weights = {i: lost for i in mine if (lost := asks[i].lost.get(resource, 0))}
            text = f"{format_duration(most)} of {resource} lost{_span(model)}, of which {format_duration(used)} were"
            row = _row(model, weights, most - used, self._later(recent, each, most - used, ends), text)
            rows.append(replace(row, now=now, growth={i: asks[i].growth.get(resource, 0) for i in weights}))
        if self.scope.counts_pods:
            rows += self._concurrent(asks, mine, pods, fallen, ends)
        return rows

    def _concurrent(
        self,
        asks: Sequence[EvictionRequest],
        mine: Sequence[int],
        pods: Sequence[LedgerPod],
        fallen: AbstractSet[tuple[str, str]],
        ends: int | None,
    ) -> list[LinearBound]:
        expected = len(pods)
        up = sum(p.up and (p.workload, p.task) not in fallen for p in pods)
        weights = {i: 1 for i in mine if asks[i].up and (asks[i].workload, asks[i].task) not in fallen}
        rows = []
        for bound, text in _allowances(self.model, expected, up):
            counted = weights
            if self.scope.strict and bound < 0:  # then the Eviction API keeps what runs and is not ready as well
                counted = {i: 1 for i in mine if not asks[i].pending}
            later = () if ends is None else ((ends, None),)
            rows.append(replace(_row(self.model, counted, bound, later, text), concurrent=True))
        return rows

    def _later(
        self, recent: Sequence[Charge], used: Sequence[int], left: int, ends: int | None
    ) -> tuple[tuple[int, int | None], ...]:
        """Give how much will be left as charges fall out of the window, ``used`` of each, until the rule rests."""
        per, found = self.model.per, list[tuple[int, int | None]]()
        for charge, amount in sorted(zip(recent, used, strict=True), key=lambda pair: pair[0].at) if per else ():
            left += amount
            found.append((charge.at + (per or 0), left))
        rests = [] if ends is None else [(ends, None)]
        return (*(f for f in found if ends is None or f[0] < ends), *rests)


def _allowances(model: BudgetRule, expected: int, up: int) -> list[tuple[int, str]]:
    """Give how many more of so many pods may be down while so many are up, bound by bound, and say why."""
    found = []
    if model.max_unavailable is not None:
        most = portion(model.max_unavailable, expected)
        text = f"{most} of {expected} pods may be down at a time, and {expected - up} are"
        found.append((most - (expected - up), text))
    if model.min_available is not None:
        least = portion(model.min_available, expected)
        found.append((up - least, f"{least} of {expected} pods have to be up, and {up} are"))
    return found


def _row(
    model: BudgetRule, weights: dict[int, int], bound: int, later: tuple[tuple[int, int | None], ...], text: str
) -> LinearBound:
    return LinearBound(rule=model.name, weights=weights, bound=bound, later=later, message=text)


def _span(model: BudgetRule) -> str:
    return "" if model.per is None else f" in {format_duration(model.per)}"


def _tightness(account: RuleAccount) -> tuple[bool, int, int]:
    """Give a key by which what allows least comes first."""
    return account.allowed is None, account.allowed or 0, -account.evictions


def portion(bound: int | str, expected: int) -> int:
    """Turn a count or a percentage of ``expected`` into a count; percentages round up, as Kubernetes does."""
    if isinstance(bound, int):
        return bound
    return -(-int(bound.removesuffix("%")) * expected // HUNDRED)


def of_budget(budget: DisruptionBudget) -> BudgetRule:
    """Read a PodDisruptionBudget as a rule."""
    return BudgetRule(
        name=f"PodDisruptionBudget {budget.namespace}/{budget.name}",
        namespace=budget.namespace,
        selector=budget.selector,
        max_unavailable=budget.max_unavailable,
        min_available=budget.min_available,
    )
