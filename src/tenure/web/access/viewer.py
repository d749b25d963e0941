"""Who looks at the console, and what of a text that names workloads may be told them."""

from __future__ import annotations

import re
from collections.abc import Container
from dataclasses import dataclass, replace
from typing import Final

ANOTHER: Final = "another workload"
"""Stands for a workload of a namespace that the viewer does not see."""

A_NODE: Final = "a node"
"""Stands for a node, for those who may not list nodes."""

SOMEBODY: Final = "a user"
"""Stands for the name of a user who has logged in."""

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAMED = re.compile(rf"(?<![^\s:;,()'\"])({_LABEL})/[^\s:;,()'\"]+")
_WORD = re.compile(r"(?:\bnode )?([^\s:;,()'\"]+)")


@dataclass(frozen=True, slots=True)
class Viewer:
    """A viewer: the ``namespaces`` that they see (None: all), and whether they see nodes one by one."""

    name: str = ""
    namespaces: frozenset[str] | None = None
    nodes: bool = True

    @property
    def unnamed(self) -> Viewer:
        """A viewer who sees the same, and of whom only is known whether they have logged in."""
        return replace(self, name=SOMEBODY if self.name else "")

    @property
    def sees_all(self) -> bool:
        """Whether they see every workload."""
        return self.namespaces is None

    @property
    def sees_everything(self) -> bool:
        """Whether nothing is kept from them: neither workloads nor nodes."""
        return self.sees_all and self.nodes

    def sees(self, key: str | None) -> bool:
        """Whether they see a workload, named by namespace/name, or all of several; nobody's is everybody's."""
        seen = self.namespaces
        return seen is None or key is None or all(one.partition("/")[0] in seen for one in key.split(", "))

    def named(self, key: str | None) -> str | None:
        """Name a workload, or say that it is another one."""
        return key if self.sees(key) else ANOTHER

    def told(self, text: str, nodes: Container[str] = ()) -> str:
        """Give a sentence that names no workload of namespaces that they do not see, and no node that they do not.

        ``nodes``: the names of nodes that may stand in it.
        """
        seen = self.namespaces
        if seen is not None and "/" in text:
            text = _NAMED.sub(lambda found: found[0] if found[1] in seen else ANOTHER, text)
        if self.nodes or not nodes:
            return text
        return _WORD.sub(lambda found: _without_node(found[0], found[1], nodes), text)


def _without_node(text: str, word: str, nodes: Container[str]) -> str:
    """Give a word, and what stands before it, without the name of a node; a full stop at its end stays."""
    bare = word.rstrip(".")
    return A_NODE + word[len(bare) :] if bare in nodes else text


def others(count: int) -> str:
    """Name so many workloads that the viewer does not see."""
    return ANOTHER if count == 1 else f"{count:,} other workloads"


EVERYTHING: Final = Viewer()
"""A viewer of a file of their own, or with their own credentials."""
