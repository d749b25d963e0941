"""Follow a page word by word in a clean checkout, and say how long each command takes.

python tools/follow.py docs/tutorials/ten-minutes.md

The checkout is a clone of the last commit in a temporary folder; what a page shows of an output has to be printed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

from tools.page_commands import steps_of  # noqa: E402  found by the line above


def main() -> int:
    """Follow the page that is named."""
    page = Path(sys.argv[1])
    with tempfile.TemporaryDirectory() as folder:
        checkout = Path(folder, "tenure")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(checkout)], check=True)
        outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}
        path = f"{checkout / '.venv' / 'bin'}{os.pathsep}{os.environ['PATH']}"
        began, missing = time.monotonic(), []
        for commands, shown in steps_of(page.read_text(encoding="utf-8")):
            printed = ""
            for command in commands:
                start = time.monotonic()
                done = subprocess.run(command, shell=True, cwd=checkout, env={**outside, "PATH": path},  # noqa: S602  what the page says
                                      capture_output=True, text=True, check=False)  # fmt: skip
                print(f"{time.monotonic() - start:6.1f} s  {command}", flush=True)
                if done.returncode:
                    print(done.stderr, file=sys.stderr)
                    return 1
                printed += done.stdout
            missing += not_printed(shown, printed)
        print(f"{time.monotonic() - began:6.1f} s  in all")
    for line in missing:
        print(f"the page shows, but nothing prints: {line}", file=sys.stderr)
    return 1 if missing else 0


def not_printed(shown: list[str], printed: str) -> list[str]:
    """Give the lines that are shown and were not printed; how words are spaced and broken does not count."""
    whole = " ".join(printed.split())
    return [line for line in shown if " ".join(line.split()) not in whole]


if __name__ == "__main__":
    sys.exit(main())
