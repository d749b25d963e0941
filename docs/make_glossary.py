"""Makes the second part of ``glossary.md`` anew: every public class, its room, and the sentence that says what it is.

python docs/make_glossary.py
"""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from tenure.model.documents.files import write_atomically

TARGET: Final = Path(__file__).with_name("glossary.md")
SOURCE: Final = Path(__file__).parents[1] / "src" / "tenure"
MARK: Final = "## Classes\n"


class DefinedClass(NamedTuple):
    """A public class of the package: its name, the file that defines it, and the first sentence of its docstring."""

    name: str
    file: str
    sentence: str


def defined_classes() -> Iterator[DefinedClass]:
    """Give every public class that a module of the package defines, by name."""
    found = []
    for path in SOURCE.rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                paragraph = (ast.get_docstring(node) or "").split("\n\n")[0]
                sentence = re.split(r"(?<=\.)\s", re.sub(r"\s+", " ", paragraph), maxsplit=1)[0]
                found.append(DefinedClass(node.name, path.relative_to(SOURCE).as_posix(), sentence.rstrip(".:;")))
    yield from sorted(found)


def generate() -> str:
    """Give the page with its first part as it is, and its second part made of the code."""
    terms = TARGET.read_text(encoding="utf-8").split(MARK)[0]
    lines = [MARK, "Made by `docs/make_glossary.py`; a class name is unique in the project.", ""]
    lines += ["| class | what it is | file |", "|---|---|---|"]
    for made in defined_classes():
        sentence = made.sentence.replace("|", "\\|")
        lines.append(f"| `{made.name}` | {sentence} | `{made.file}` |")
    return terms + "\n".join(lines) + "\n"


if __name__ == "__main__":
    write_atomically(TARGET, generate())
