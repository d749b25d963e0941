"""B27: large inputs of every kind, valid and hostile: the processor and the memory that an answer takes.

Each input is written to a size and given to a command in a process of its own that has everything imported, so the
start (0.3 s) is not counted. Wanted for 10 MB: at most 10 s of the processor and 500 MiB, an answer in words, and no
traceback.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from common import ROOT, print_table
from results import Results

sys.path.insert(0, str(ROOT))

from tests.cli.bulky import ask, faults, inputs
from tests.cli.forking import ForkingServer


def main() -> int:
    """Run the benchmark; 1 if an answer took too much, or was none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--only", default="", help="only inputs whose names hold this")
    given = parser.parse_args()
    rows, bad, results = [], 0, Results("B27")
    with ForkingServer(seconds=120) as server:
        for case in inputs(int(given.megabytes * 1_000_000)):
            if given.only not in case.name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                answer = ask(case, Path(folder), server)
            wrong = faults(case, answer)
            what, note = f"{given.megabytes:g} MB, {case.name}", f"{answer.mebibytes:.0f} MiB of at most 500"
            results.add(what, answer.seconds, "s", at_most=10, note=note)
            bad += bool(wrong)
            first = " ".join(answer.said.split())[:70]
            rows.append((case.name, f"{answer.seconds:.1f}", f"{answer.mebibytes:.0f}", answer.code, first))
            if wrong:
                print(f"{case.name}: {', '.join(wrong)}: {first}", flush=True)
    results.write()
    print_table(f"{given.megabytes:g} MB", ("input", "cpu s", "MiB", "exit", "says"), rows)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
