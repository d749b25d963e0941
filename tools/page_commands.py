"""The commands of a page in Markdown, and what the page says that they print."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

BLOCK: Final = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
INDENTED: Final = re.compile(r"(?:^ {4}.*\n)+", re.MULTILINE)
SHELL: Final = frozenset({"", "sh", "bash", "console", "shell"})
"""Languages of blocks that may hold commands."""

OUTPUT: Final = "text"
"""The language of a block that shows a part of what the commands before it print."""

PROGRAMS: Final = frozenset({
    "tenure", "make", "python", ".venv/bin/python", ".venv/bin/tenure", ".venv/bin/pytest", "curl", "kubectl", "pip",
    "pipx", "uv", "docker", "git", "helm", "psql", "promtool",
})  # fmt: skip
"""What a line of a block begins with that is a command."""


def commands_of(text: str) -> Iterator[str]:
    """Give every command of a page, each on one line; those of indented blocks come last."""
    blocks = [block for language, block in BLOCK.findall(text) if language in SHELL]
    blocks += INDENTED.findall(BLOCK.sub("", text))
    for block in blocks:
        yield from _lines(block)


def steps_of(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Give the commands of each block in order, and the lines that the page shows of what they print."""
    step: tuple[list[str], list[str]] | None = None
    for language, block in BLOCK.findall(text):
        if language in SHELL and (found := list(_lines(block))):
            if step is not None:
                yield step
            step = found, []
        elif language == OUTPUT and step is not None:
            step[1].extend(line.strip() for line in block.splitlines() if line.strip())
    if step is not None:
        yield step


def _lines(block: str) -> Iterator[str]:
    for line in block.replace("\\\n", " ").splitlines():
        command = " ".join(re.sub(r"\s+#.*", "", line.strip().removeprefix("$ ")).split())
        if command.split(" ")[0] in PROGRAMS and not (command.startswith("make ") and " " in command[5:]):
            yield command
