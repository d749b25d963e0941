"""One self-contained HTML page: nothing in it is fetched from anywhere, and no script runs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Final, NamedTuple

from tenure.report.theme import style_sheet

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

LONG: Final = 60
"""Letters from which on a text in a table is broken, so that the other columns are still seen."""


class Tile(NamedTuple):
    """A figure on a page: what it is, its value, a word about it, and whether it is ``good`` or ``bad``."""

    name: str
    value: str
    more: str = ""
    mood: str = ""


class Cell(NamedTuple):
    """A cell of a table: a number is set right, a group shows its colour, a badge is set off in its kind's colour."""

    text: str
    right: bool = False
    color: int | None = None
    kind: str = ""
    badge: str = ""


def page(title: str, lead: str, body: Iterable[str], *, style: str = "") -> str:
    """Make a page of a title, a sentence about it, and sections."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(title)}</title>\n<style>{style_sheet(style)}</style>\n</head>\n<body>\n"
        f'<header><h1>{escape(title)}</h1><p class="lead">{escape(lead)}</p></header>\n<main>\n'
        + "\n".join(part for part in body if part)
        + "\n</main>\n<footer>Made by Tenure. This file needs no network.</footer>\n</body>\n</html>\n"
    )


def section(title: str, caption: str, *content: str, kind: str = "", name: str = "") -> str:
    """Make a section with a heading, a sentence about it, and its content, which is HTML."""
    attributes = (f' class="{kind}"' if kind else "") + (f' id="{name}"' if name else "")
    told = f'<p class="caption">{escape(caption)}</p>' if caption else ""
    return f"<section{attributes}><h2>{escape(title)}</h2>{told}{''.join(content)}</section>"


def tiles(figures: Iterable[Tile]) -> str:
    """Show figures side by side."""
    items = (
        f"<li{f' class={chr(34)}{tile.mood}{chr(34)}' if tile.mood else ''}><span>{escape(tile.name)}</span>"
        f"<b>{escape(tile.value)}</b><span>{escape(tile.more)}</span></li>"
        for tile in figures
    )
    return f'<ul class="tiles">{"".join(items)}</ul>'


def html_table(headings: Sequence[Cell], rows: Iterable[Sequence[Cell]]) -> str:
    """Make a table, which scrolls sideways where it is too wide."""
    head = "".join(f'<th scope="col"{_right(cell)}>{escape(cell.text)}</th>' for cell in headings)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    return f'<div class="scroll" tabindex="0"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'


def _cell(cell: Cell) -> str:
    mark = "" if cell.color is None else f'<i class="c{cell.color}"></i>'
    text = escape(cell.text)
    if len(cell.text) > LONG and not cell.kind:
        cell = cell._replace(kind="long")
    if cell.badge:
        text = f'<span class="badge {escape(cell.badge)}">{text}</span>'
    return f"<td{_right(cell)}>{mark}{text}</td>"


def _right(cell: Cell) -> str:
    kinds = " ".join(part for part in ("n" if cell.right else "", cell.kind) if part)
    return f' class="{kinds}"' if kinds else ""


def details(summary: str, content: str) -> str:
    """Fold content away under a word."""
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"


def listed(sentences: Iterable[str]) -> str:
    """Make a list of sentences."""
    return f'<ul class="plain">{"".join(f"<li>{escape(text)}</li>" for text in sentences)}</ul>'
