"""A plot as a figure of a page: SVG that stretches, and text around it that does not."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from tenure.report.drawing.plot import WIDTH, Plot
from tenure.report.drawing.scales import Tick

AT_END: Final = 0.02
"""So near to an end of the axis, as a part of it, a label stands beside its place instead of around it."""

NEAR_END: Final = 0.08
"""The same where the axis is short."""


def figure(plot: Plot) -> str:
    """Set a plot in HTML."""
    widest = max((len(tick.label) for tick in plot.y), default=0)
    style = f"--height:{plot.height}px;--labels:{min(widest, 18) * 0.62 + 1.2:.1f}em"
    kind = "plot rows" if plot.rows else "plot"
    return (
        f'{legend(plot)}<div class="{kind}" style="{style}">'
        f'<div class="y" aria-hidden="true">{"".join(map(_y_label, plot.y))}</div>'
        f'<div class="canvas"><svg viewBox="0 0 {WIDTH} {plot.height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(plot.label)}">{plot.marks}</svg>{_notes(plot)}</div>'
        f'<div class="x" aria-hidden="true">{"".join(map(_x_label, plot.x))}</div></div>'
    )


def legend(plot: Plot) -> str:
    """Name the classes of marks; a single one needs no name."""
    if len(plot.legend) < 2:  # noqa: PLR2004  one kind is clear without
        return ""
    return legend_list(plot.legend)


def legend_list(entries: Sequence[tuple[str, str]]) -> str:
    """Name classes of marks."""
    items = "".join(f'<li><i class="{kind}"></i>{escape(name)}</li>' for kind, name in entries)
    return f'<ul class="legend">{items}</ul>'


def _y_label(tick: Tick) -> str:
    return f'<span style="top:{(1 - tick.at) * 100:.2f}%" title="{escape(tick.label)}">{escape(tick.label)}</span>'


def _x_label(tick: Tick) -> str:
    kinds = [
        name
        for name, on in (
            ("minor", tick.minor),
            ("first", tick.at < AT_END),
            ("early", tick.at < NEAR_END),
            ("last", tick.at > 1 - AT_END),
            ("late", tick.at > 1 - NEAR_END),
        )
        if on
    ]
    named = f' class="{" ".join(kinds)}"' if kinds else ""
    return f'<span{named} style="left:{tick.at * 100:.2f}%">{escape(tick.label)}</span>'


def _notes(plot: Plot) -> str:
    return "".join(
        f'<span class="note{" left" if note.at > 0.6 else ""}" style="left:{note.at * 100:.2f}%;'  # noqa: PLR2004  keeps the words inside
        f'top:{index * 1.5}em">{escape(note.label)}</span>'
        for index, note in enumerate(plot.notes)
    )
