"""What MkDocs does beside reading the pages: the reference of the commands, and the decisions in the navigation."""
# ruff: noqa: INP001  a script, not a package

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import click

from tenure.cli.main import NAME, cli

COMMANDS: Final = "reference/commands.md"
MARK: Final = "<!-- commands -->"
WIDTH: Final = 100


def on_config(config: Any) -> Any:
    """Put the pages of a folder behind the page of its name, so that a new one need not stand in the navigation."""
    for folder in ("decisions", "integrations"):
        pages = sorted(page.name for page in Path(config.docs_dir, folder).glob("*.md"))
        for listed in _lists(config.nav):
            if listed == [f"{folder}.md"]:
                listed.extend(f"{folder}/{name}" for name in pages)
    return config


def _lists(entry: Any) -> Iterator[list[Any]]:
    """Give every list of the navigation."""
    if isinstance(entry, list):
        yield entry
    for inner in entry if isinstance(entry, list) else entry.values() if isinstance(entry, dict) else ():
        yield from _lists(inner)


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Write the reference of the commands where its page has the mark; a page without sections has all the width."""
    if "\n## " not in markdown:
        page.meta["hide"] = ["toc"]
    return markdown.replace(MARK, commands_text()) if page.file.src_uri == COMMANDS else markdown


def commands_text() -> str:
    """Give what every command says of itself, under a heading each."""
    return "\n".join(f"## {name}\n\n```text\n{help_text}\n```\n" for name, help_text in helps())


def helps() -> Iterator[tuple[str, str]]:
    """Give the name of every command and its help; of groups, those of their commands as well."""
    parent = click.Context(cli, info_name=NAME)
    yield from _helps(cli, parent, NAME)


def _helps(group: click.Group, parent: click.Context, name: str) -> Iterator[tuple[str, str]]:
    for word in group.list_commands(parent):
        command = group.get_command(parent, word)
        assert command is not None
        context = click.Context(command, info_name=word, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH)
        yield f"{name} {word}", command.get_help(context)
        if isinstance(command, click.Group):
            yield from _helps(command, context, f"{name} {word}")
