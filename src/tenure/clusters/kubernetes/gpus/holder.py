"""What runs in a pod that holds a GPU: it tells which one the node gave it, and then waits until it is ended.

It is run as a module by the Python of Tenure's own image, which has no shell, and imports as little as it can.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

TELL: Final = "tell"
HOLD: Final = "hold"
TOLD_IN: Final = "/dev/termination-log"
"""The file whose text a kubelet gives as the message of a container's end."""

_GIVEN: Final = "NVIDIA_VISIBLE_DEVICES"
_NO_NAME: Final = frozenset({"", "void", "none", "all"})
_ASK: Final = ("nvidia-smi", "--query-gpu=uuid", "--format=csv,noheader")
_SECONDS: Final = 60


def command(what: str) -> list[str]:
    """Give the command of a container of the image in which this process runs: the scheduler's own."""
    return [sys.executable, "-m", __name__, what, *([TOLD_IN] if what == TELL else [])]


def main(arguments: list[str]) -> int:
    """Tell into a file, or hold; gives the exit code."""
    what, *files = arguments
    if what == HOLD:
        return _hold()
    try:
        Path(files[0]).write_text(_device(), encoding="utf-8")
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        sys.stderr.write(f"the device is not known: {error}\n")
        return 1
    return 0


def _device() -> str:
    """Give the name of the only device that there is.

    Raises
    ------
    OSError, SubprocessError
        It cannot be asked for.
    ValueError
        There is none, or several.
    """
    given = os.environ.get(_GIVEN, "").strip()
    if given in _NO_NAME:
        asked = subprocess.run(_ASK, capture_output=True, text=True, timeout=_SECONDS, check=True)  # noqa: S603  as it stands here
        given = asked.stdout.strip()
    if not given or "\n" in given:
        raise ValueError(f"{len(given.splitlines())} devices are there, and 1 was asked for")
    return given


def _hold() -> int:
    """Wait for SIGTERM, which as the first process of a container it gets only if it asks for it."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
