"""Where a scheduler writes on objects that all node pools share: each pool has a part of their status.

What is said for the pool ``default`` stands at the top of the status, where ``kubectl get`` shows it; what is said for
another pool stands below ``nodePools`` under its name. So every part has one writer.
"""

from __future__ import annotations

from typing import Any, Final

from tenure.clusters.kubernetes.keys import DEFAULT_POOL

PARTS: Final = "nodePools"
"""Key of the parts of the other pools."""

Status = dict[str, Any]


def part_of(status: Any, pool: str) -> Status:
    """Give what a status says for a pool, as it was read; nothing where that has no such form."""
    whole: Status = status if isinstance(status, dict) else {}
    if pool == DEFAULT_POOL:
        return whole
    parts = whole.get(PARTS)
    part = parts.get(pool) if isinstance(parts, dict) else None
    return part if isinstance(part, dict) else {}


def as_part(part: Status, pool: str) -> Status:
    """Give the patch of a status that changes what it says for a pool."""
    return part if pool == DEFAULT_POOL else {PARTS: {pool: part}}
