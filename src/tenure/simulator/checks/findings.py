"""Broken invariants, counted by kind, with the first few of each in words."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

MAX_EXAMPLES = 5
"""Sentences kept of each kind."""


@dataclass(frozen=True, slots=True)
class Violations:
    """The violations that a check found: how many, how often each kind, and the first examples in words."""

    total: int = 0
    by_kind: dict[str, int] = field(default_factory=dict)
    examples: tuple[str, ...] = ()


@dataclass(slots=True)
class ViolationCollector:
    """A collector of violations while checks run."""

    counts: dict[str, int] = field(default_factory=dict)
    sentences: list[str] = field(default_factory=list)

    def add(self, kind: str, where: Iterable[int], count: int, describe: Callable[[int], str]) -> None:
        """Count ``count`` violations of a kind at the indices ``where``; the first few are put in words."""
        if not count:
            return
        before = self.counts.get(kind, 0)
        self.counts[kind] = before + count
        for position, index in enumerate(where):
            if before + position >= MAX_EXAMPLES:
                break
            self.sentences.append(f"{kind}: {describe(int(index))}")

    def result(self) -> Violations:
        """Give everything found, kinds in alphabetical order."""
        by_kind = dict(sorted(self.counts.items()))
        return Violations(sum(by_kind.values()), by_kind, tuple(self.sentences))
