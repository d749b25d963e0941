"""Builds the wheel of the project, the same each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
EPOCH: Final = "1767225600"
"""The time that files of what is built have, where ``SOURCE_DATE_EPOCH`` gives no other: seconds since 1970."""


def epoch() -> int:
    """Give the time that files of what is built have."""
    return int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH))


def build_wheel(folder: Path) -> Path:
    """Build it into a folder and give its path.

    Raises
    ------
    subprocess.CalledProcessError
        If uv fails; it has said why on standard error.
    """
    command = [sys.executable, "-m", "uv", "build", "--quiet", "--wheel", "--out-dir", str(folder), str(ROOT)]
    subprocess.run(command, check=True, env=os.environ | {"SOURCE_DATE_EPOCH": str(epoch())})
    (made,) = folder.glob("*.whl")
    return made
