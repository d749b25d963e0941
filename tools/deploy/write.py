"""Writes all that is generated in the folder ``deploy``."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Final

from tools.deploy.chart import chart
from tools.deploy.kustomize import kustomize

DEPLOY: Final = Path(__file__).parents[2] / "deploy"
"""The folder of the project."""


def files() -> dict[str, str]:
    """Give all files by their paths in it."""
    made = {f"helm/tenure/{path}": text for path, text in chart().items()}
    return made | {f"kustomize/{path}": text for path, text in kustomize().items()}


def write_all(folder: Path) -> None:
    """Write them, and take away what is no longer one."""
    for part in ("helm", "kustomize"):
        shutil.rmtree(folder / part, ignore_errors=True)
    for path, text in files().items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
