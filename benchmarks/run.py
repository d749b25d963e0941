"""Runs all benchmarks one after the other, each in a process of its own. Run: python benchmarks/run.py [b01 b06 …]"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def main() -> int:
    """Run those whose names begin with one of the arguments, or all; 1 if any failed."""
    folder = Path(__file__).resolve().parent
    wanted = tuple(sys.argv[1:]) or ("b",)
    files = [file for file in sorted(folder.glob("b[0-9]*.py")) if file.name.startswith(wanted)]
    if not files:
        print(f"no benchmark begins with {' or '.join(wanted)}", file=sys.stderr)
        return 2
    failed = []
    for file in files:
        print(f"\n== {file.stem}", flush=True)
        if subprocess.run([sys.executable, str(file)], check=False).returncode:
            failed.append(file.stem)
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
