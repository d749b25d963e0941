"""Where a policy comes from: files of any kind, or folders of them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tenure.model.entries import CLUSTER_KIND, SETTINGS_KIND

SUFFIXES = (".yaml", ".yml", ".json")
"""Names of what is read in a folder."""


def files_in(paths: Iterable[str]) -> list[str]:
    """Give files as they are, and in place of a folder what is YAML or JSON in it, at any depth, by name.
    A folder without any stands for itself, so that whatever reads it refuses it.
    """
    found: list[str] = []
    for path in paths:
        if not Path(path).is_dir():
            found.append(path)
            continue
        inside = sorted(str(file) for file in Path(path).rglob("*") if file.suffix in SUFFIXES and file.is_file())
        found += inside or [path]
    return found


def may_be_manifest(value: Any) -> bool:
    """Tell quickly whether a document has to be looked at as the manifest of an object."""
    return isinstance(value, dict) and value.get("kind") not in (None, CLUSTER_KIND, SETTINGS_KIND)
