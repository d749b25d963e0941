"""How pages look: one style sheet, light and dark, with system fonts only.

The eight colours of groups are told apart with the common kinds of colour blindness when they stand in this order,
and reach a contrast of 3:1 against the surface, or are outlined.
"""

from __future__ import annotations

import re
from pathlib import Path

LIGHT = {
    "page": "#f6f6f3", "surface": "#ffffff", "ink": "#14140f", "soft": "#55544d", "grid": "#e7e6e0",
    "axis": "#b9b8ae", "edge": "#e3e2dc", "good": "#0a6b2e", "bad": "#b3261e", "wash": "#f1f0ec",
    "c0": "#2a78d6", "c1": "#e0662b", "c2": "#179a6b", "c3": "#d19a00",
    "c4": "#c95a92", "c5": "#4f7d12", "c6": "#5a4bb5", "c7": "#7d7b74",
}  # fmt: skip

DARK = {
    "page": "#111110", "surface": "#1b1b19", "ink": "#f4f3ee", "soft": "#b4b2a8", "grid": "#2d2d2a",
    "axis": "#56554f", "edge": "#30302c", "good": "#5fc98a", "bad": "#ff8a80", "wash": "#252522",
    "c0": "#4a93ea", "c1": "#e2733e", "c2": "#27a97b", "c3": "#c79313",
    "c4": "#d8709f", "c5": "#7fa63c", "c6": "#9488ea", "c7": "#8b8981",
}  # fmt: skip

COLOR_COUNT = 8

SANS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"


def variables(colors: dict[str, str]) -> str:
    """Write colours as CSS variables."""
    return "".join(f"--{name}:{value};" for name, value in colors.items())


def classes() -> str:
    """Give each group's class its colour, as ``--c``."""
    return "".join(f".c{index}{{--c:var(--c{index})}}" for index in range(COLOR_COUNT))


def sheet(name: str) -> str:
    """Read a style sheet of this package, without what is there for its readers."""
    text = (Path(__file__).parent / f"{name}.css").read_text(encoding="utf-8")
    return re.sub(r"\s*\n\s*", "", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))


def style_sheet(more: str = "") -> str:
    """Give the style sheet of a page, and what it needs beside."""
    return (
        f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
        f"@media(prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}"
        f"{classes()}{sheet('marks')}{sheet('page')}{more}"
    )
