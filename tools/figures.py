"""Figures of the house: large classes, complex functions, lines by room, and places that undo by hand.

``python -m tools.figures`` prints them; `tests/docs/test_figures.py` holds that they do not grow.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

SOURCE = Path(__file__).resolve().parents[1] / "src" / "tenure"

MOST_METHODS, MOST_COMPLEX = 12, 15

DECIDING = ("victims", "requeue", "quota")
"""Rooms whose lines are counted together: the choice of who has to go."""

UNDOING = {
    "engine/state/state.py",
    "engine/state/transaction.py",
    "engine/journal.py",
    "engine/state/waiting.py",
    "engine/room/nodes.py",
}
"""Files that make up the transaction itself."""


class HouseFigures(NamedTuple):
    """Figures of the source tree: names of what is large, and lines by room."""

    large_classes: dict[str, int]
    complex_functions: dict[str, int]
    by_hand: list[str]
    lines: dict[str, int]

    @property
    def deciding(self) -> int:
        """Lines of the rooms that choose who has to go."""
        return sum(self.lines.get(room, 0) for room in DECIDING)


def figures() -> HouseFigures:
    """Read the source tree."""
    classes: dict[str, int] = {}
    lines: dict[str, int] = {}
    by_hand = []
    for path in sorted(SOURCE.rglob("*.py")):
        name, text = path.relative_to(SOURCE).as_posix(), path.read_text()
        room = name.split("/", maxsplit=1)[0]
        lines[room] = lines.get(room, 0) + text.count("\n")
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef):
                methods = sum(isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) for each in node.body)
                if methods > MOST_METHODS:
                    classes[f"{name}:{node.name}"] = methods
            undoes = isinstance(node, ast.Call) and getattr(node.func, "attr", "") in {"checkpoint", "rollback"}
            if undoes and room not in {"history", "web"} and name not in UNDOING:
                by_hand.append(f"{name}:{node.lineno}")
    return HouseFigures(classes, _complex(), by_hand, lines)


def _complex() -> dict[str, int]:
    """Give functions by their cyclomatic complexity, as ruff counts it, where that is too large."""
    options = ["--isolated", "--select", "C901", "--output-format", "concise", "--ignore-noqa"]
    limit = ["--config", f"lint.mccabe.max-complexity={MOST_COMPLEX}"]
    command = [sys.executable, "-m", "ruff", "check", *options, *limit, str(SOURCE)]
    told = subprocess.run(command, capture_output=True, text=True, check=False)
    if told.returncode not in (0, 1):
        raise RuntimeError(told.stderr)
    found = {}
    for line in told.stdout.splitlines():
        if " C901 " in line:
            place, text = line.split(" C901 ")
            found[f"{place.split(':')[0].rsplit('src/tenure/')[-1]}:{text.split('`')[1]}"] = int(
                text.split("(")[1].split()[0]
            )
    return found


def main() -> None:
    """Print them."""
    found = figures()
    for title, each in (
        (f"classes with more than {MOST_METHODS} methods", found.large_classes),
        (f"functions above complexity {MOST_COMPLEX}", found.complex_functions),
    ):
        sys.stdout.write(f"{len(each)} {title}\n")
        for name, count in sorted(each.items(), key=lambda item: (-item[1], item[0])):
            sys.stdout.write(f"  {count:4} {name}\n")
    sys.stdout.write(f"{len(found.by_hand)} places that undo by hand {' '.join(found.by_hand)}\n")
    sys.stdout.write(f"{found.deciding} lines in {', '.join(DECIDING)}\n")
    for room, count in sorted(found.lines.items(), key=lambda item: (-item[1], item[0])):
        sys.stdout.write(f"  {count:6} {room}\n")


if __name__ == "__main__":
    main()
