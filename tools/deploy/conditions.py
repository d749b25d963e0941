"""Says of a set of variants which choices lead to it, as a condition of a template."""

from __future__ import annotations

from collections.abc import Sequence

from tools.deploy.choices import CHOICES, Setting


class Conditions:
    """Finds conditions; variants are numbered as the settings are given."""

    def __init__(self, settings: Sequence[Setting]) -> None:
        self._settings = settings
        self.all = (1 << len(settings)) - 1

    def of(self, variants: int, within: int) -> str:
        """Give the condition under which a variant of ``within`` is one of ``variants``; empty where all are."""
        if variants == within:
            return ""
        decisive = list(CHOICES)
        for name in CHOICES:
            fewer = [other for other in decisive if other != name]
            if self._rows(fewer, variants, within) is not None:
                decisive = fewer
        rows = self._rows(decisive, variants, within) or {}
        wanted = [row for row, holds in rows.items() if holds]
        others = [row for row, holds in rows.items() if not holds]
        if len(wanted) > 1 and others == [frozenset()]:
            return f"(or {' '.join(CHOICES[name] for name in decisive)})"
        terms = [self._all_of(decisive, row) for row in wanted]
        return terms[0] if len(terms) == 1 else f"(or {' '.join(terms)})"

    def _rows(self, names: Sequence[str], variants: int, within: int) -> dict[Setting, bool] | None:
        """Give by the choices of these names whether a variant is one of them; None if these do not decide it."""
        rows: dict[Setting, bool] = {}
        for number, setting in enumerate(self._settings):
            if within >> number & 1:
                holds = bool(variants >> number & 1)
                if rows.setdefault(setting & frozenset(names), holds) != holds:
                    return None
        return rows

    @staticmethod
    def _all_of(decisive: Sequence[str], made: Setting) -> str:
        terms = [CHOICES[name] if name in made else f"(not {CHOICES[name]})" for name in decisive]
        return terms[0] if len(terms) == 1 else f"(and {' '.join(terms)})"
