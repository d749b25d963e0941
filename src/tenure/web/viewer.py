"""Who looks at the console, and what of a text that names workloads may be told them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

ANOTHER: Final = "another workload"
"""Stands for a workload of a namespace that the viewer does not see."""

SOMEBODY: Final = "a user"
"""Stands for the name of a user who has logged in."""

_LABEL = r"[a-z0-9](?:[-a-z0-9]{0,61}[a-z0-9])?"
_NAMED = re.compile(rf"(?<![^\s:;,()'\"])({_LABEL})/[^\s:;,()'\"]+")


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
        """Whether nothing is kept from them."""
        return self.namespaces is None

    def sees(self, key: str | None) -> bool:
        """Whether they see a workload, named by namespace/name; nobody's is everybody's."""
        return self.namespaces is None or key is None or key.partition("/")[0] in self.namespaces

    def named(self, key: str | None) -> str | None:
        """Name a workload, or say that it is another one."""
        return key if self.sees(key) else ANOTHER

    def told(self, text: str) -> str:
        """Give a sentence in which workloads of namespaces that they do not see are not named."""
        seen = self.namespaces
        if seen is None or "/" not in text:
            return text
        return _NAMED.sub(lambda found: found[0] if found[1] in seen else ANOTHER, text)


EVERYTHING: Final = Viewer()
"""A viewer of a file of their own, or with their own credentials."""
