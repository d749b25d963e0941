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
from tests.cli.forking import Answer, ForkingServer


def main() -> int:
    """Run the benchmark; 1 if an answer took too much, or was none."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=float, default=10.0)
    parser.add_argument("--only", default="", help="only inputs whose names hold this")
    given = parser.parse_args()
    rows, bad, results = [], 0, Results("B27")
    answers: list[tuple[str, Answer]] = []
    with ForkingServer(seconds=120) as server:
        for case in inputs(int(given.megabytes * 1_000_000)):
            if given.only not in case.name:
                continue
            with tempfile.TemporaryDirectory() as folder:
                answer = ask(case, Path(folder), server)
            wrong = faults(case, answer)
            answers.append((case.name, answer))
            bad += bool(wrong)
            first = " ".join(answer.said.split())[:70]
            rows.append((case.name, f"{answer.seconds:.1f}", f"{answer.mebibytes:.0f}", answer.code, first))
            if wrong:
                print(f"{case.name}: {', '.join(wrong)}: {first}", flush=True)
    what = f"{given.megabytes:g} MB of each of {len(answers)} inputs"
    slowest = max(answers, key=lambda answer: answer[1].seconds)
    largest = max(answers, key=lambda answer: answer[1].mebibytes)
    results.add(f"{what}: the most", slowest[1].seconds, "s", at_most=10, note=slowest[0])
    results.add(f"{what}: the most memory", largest[1].mebibytes, "MiB", at_most=500, note=largest[0])
    results.add(f"{what}: those that were answered wrongly", bad, "", at_most=0)
    results.write()
    print_table(f"{given.megabytes:g} MB", ("input", "cpu s", "MiB", "exit", "says"), rows)
    return bool(bad)


if __name__ == "__main__":
    sys.exit(main())
