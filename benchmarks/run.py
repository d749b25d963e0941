"""Runs benchmarks one after the other, each in a process of its own, and prints one table of all results.

    python benchmarks/run.py                        # all
    python benchmarks/run.py b01 b13                # those whose names begin so
    python benchmarks/run.py b05 -- --log KTH-SP2   # with options: only the rows that it reports are replaced
    python benchmarks/run.py --table                # only print what benchmarks/results.json has

The results of those that ran are put into benchmarks/results.json, from which docs/make_benchmarks.py writes the page.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from common import print_table
from results import HEAD, KEPT, WHERE, cells, merged, read, write


def main() -> int:
    """Run those whose names begin with one of the arguments, or all; 1 if any failed."""
    words = sys.argv[1:]
    own = words.index("--") if "--" in words else len(words)
    options = words[own + 1 :]
    parser = argparse.ArgumentParser(
        description=__doc__.splitlines()[0], epilog="Behind -- stand a benchmark's options."
    )
    parser.add_argument("names", nargs="*", help="beginnings of names; default: all")
    parser.add_argument("--results", type=Path, default=KEPT, help="where results are kept (default: beside this file)")
    parser.add_argument("--table", action="store_true", help="run nothing; print the table of what is kept")
    given = parser.parse_args(words[:own])
    failed = [] if given.table else run(tuple(given.names) or ("b",), options, given.results)
    print_table("figure beside anchor; machine: seconds of sum(range(10**7))", HEAD, [*map(cells, read(given.results))])
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


def run(wanted: tuple[str, ...], options: list[str], kept: Path) -> list[str]:
    """Run benchmarks and keep their results; gives those that failed."""
    folder = Path(__file__).resolve().parent
    files = [file for file in sorted(folder.glob("b[0-9]*.py")) if file.name.startswith(wanted)]
    if not files:
        return [f"no benchmark begins with {' or '.join(wanted)}"]
    failed = []
    for file in files:
        print(f"\n== {file.stem}", flush=True)
        with tempfile.TemporaryDirectory() as scratch:
            reported = Path(scratch) / "results.json"
            around = {**os.environ, WHERE: str(reported)}
            code = subprocess.run([sys.executable, str(file), *options], check=False, env=around).returncode
            if code:
                failed.append(file.stem)
            found = read(reported)
            if found:
                is_whole = not options and not code
                write(kept, merged(read(kept), found, whole=file.stem if is_whole else ""))
    return failed


if __name__ == "__main__":
    sys.exit(main())
