"""Writes a merged document as a Helm template."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from tools.deploy.choices import ENTRIES, WHOLE, expression
from tools.deploy.conditions import Conditions
from tools.deploy.merge import Branch, Either, Keyed, Leaf, Listing, Tree

_PLAIN: Final = re.compile(r"[A-Za-z/][A-Za-z0-9_./-]*")
_NOT_TEXT: Final = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"}


class TemplateWriter:
    """Writes YAML with conditions: lines of two spaces for each level, every condition on a line of its own."""

    def __init__(self, conditions: Conditions) -> None:
        self._conditions = conditions

    def document(self, tree: Tree, variants: int) -> str:
        """Write one document that is there in these variants."""
        return "\n".join(self._node(tree, variants, 0)) + "\n"

    def _node(self, tree: Tree, within: int, depth: int) -> Iterator[str]:
        if isinstance(tree, Keyed):
            for branch in tree.branches:
                yield from self._guarded(branch, within, depth, self._entry(branch, depth))
        elif isinstance(tree, Listing):
            for branch in tree.branches:
                yield from self._guarded(branch, within, depth, self._item(branch, depth))
        else:
            raise TypeError(tree)

    def _guarded(self, branch: Branch, within: int, depth: int, lines: Iterator[str]) -> Iterator[str]:
        condition = self._conditions.of(branch.variants, within)
        indent = "  " * depth
        if condition:
            yield f"{indent}{{{{- if {without_brackets(condition)} }}}}"
        yield from lines
        if condition:
            yield f"{indent}{{{{- end }}}}"

    def _entry(self, branch: Branch, depth: int) -> Iterator[str]:
        indent, tree = "  " * depth, branch.tree
        if branch.key.startswith(ENTRIES):
            yield from _entries(branch.key.removeprefix(ENTRIES), depth)
            return
        key = _text(branch.key)
        if isinstance(tree, Leaf) and isinstance(tree.value, str) and tree.value.startswith(WHOLE):
            path = tree.value.removeprefix(WHOLE)
            yield f"{indent}{{{{- with {path} }}}}"
            yield f"{indent}{key}:"
            yield f"{indent}  {{{{- toYaml . | nindent {2 * depth + 2} }}}}"
            yield f"{indent}{{{{- end }}}}"
        elif isinstance(tree, Leaf):
            yield f"{indent}{key}: {_value(tree.value)}"
        elif isinstance(tree, Either):
            yield f"{indent}{key}: {self._either(tree, branch.variants)}"
        elif not tree.branches:
            yield f"{indent}{key}: {'{}' if isinstance(tree, Keyed) else '[]'}"
        else:
            yield f"{indent}{key}:"
            yield from self._node(tree, branch.variants, depth + 1)

    def _item(self, branch: Branch, depth: int) -> Iterator[str]:
        indent, tree = "  " * depth, branch.tree
        if isinstance(tree, Leaf):
            if isinstance(tree.value, str) and tree.value.startswith(ENTRIES):
                yield from _entries(tree.value.removeprefix(ENTRIES), depth)
                return
            each = expression(tree.value)
            if each is not None and each.each:
                yield f"{indent}{{{{- range {each.each} }}}}"
            yield f"{indent}- {_value(tree.value)}"
            if each is not None and each.each:
                yield f"{indent}{{{{- end }}}}"
            return
        lines = list(self._node(tree, branch.variants, depth + 1))
        assert not lines[0].lstrip().startswith("{{"), f"an item begins with what is not always there: {lines[0]}"
        yield f"{indent}- {lines[0].lstrip()}"
        yield from lines[1:]

    def _either(self, tree: Either, within: int) -> str:
        *first, last = tree.branches
        made = ""
        for number, branch in enumerate(first):
            assert isinstance(branch.tree, Leaf)
            word = "if" if number == 0 else "else if"
            made += f"{{{{ {word} {self._conditions.of(branch.variants, within)} }}}}{_value(branch.tree.value)}"
        assert isinstance(last.tree, Leaf)
        return f"{made}{{{{ else }}}}{_value(last.tree.value)}{{{{ end }}}}"


def without_brackets(condition: str) -> str:
    """Give a condition without the pair of brackets around all of it, if there is one."""
    depth = 0
    for number, letter in enumerate(condition):
        depth += (letter == "(") - (letter == ")")
        if depth == 0:
            return condition[1:-1] if number and number == len(condition) - 1 else condition
    return condition


def _entries(path: str, depth: int) -> Iterator[str]:
    indent = "  " * depth
    yield f"{indent}{{{{- with {path} }}}}"
    yield f"{indent}{{{{- toYaml . | nindent {2 * depth} }}}}"
    yield f"{indent}{{{{- end }}}}"


def _value(value: Any) -> str:
    if expression(value) is None:
        return _text(value) if isinstance(value, str) else json.dumps(value)
    made = expression(value if isinstance(value, int) else json.dumps(value, ensure_ascii=False))
    assert made is not None
    return made.text


def _text(text: str) -> str:
    assert "{{" not in text, f"is read as a template: {text}"
    if _PLAIN.fullmatch(text) and text.lower() not in _NOT_TEXT:
        return text
    return json.dumps(text, ensure_ascii=False)
