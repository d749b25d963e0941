"""AccaSim on a log of the Parallel Workloads Archive, under its own EASY backfilling: the anchor of B5.

Runs in an environment of its own, which ``make accasim`` makes, and prints what it took as JSON: jobs, seconds of the
processor of the simulation, and the mean wait (s) that it says. What AccaSim writes is switched off: that is the work
of a second process, which takes three times as long as the simulation.

    .accasim/bin/python benchmarks/accasim_easy.py LOG.swf PROCESSORS
"""

from __future__ import annotations

import collections
import collections.abc
import contextlib
import json
import os
import re
import sys
import tempfile
import time
from pathlib import Path

collections.Mapping = collections.abc.Mapping  # type: ignore[attr-defined]  AccaSim 1.1.3 was written for Python 3.9


def simulated(log: Path, processors: int, folder: Path) -> dict[str, float]:
    """Simulate a log, which may not be compressed; ``folder`` is for what AccaSim needs and writes."""
    from accasim.base.allocator_class import FirstFit  # noqa: PLC0415  after what it needs was put in place
    from accasim.base.scheduler_class import EASYBackfilling  # noqa: PLC0415
    from accasim.base.simulator_class import Simulator  # noqa: PLC0415

    system = folder / "system.json"
    system.write_text(json.dumps({
        "groups": {"all": {"core": processors}}, "resources": {"all": 1}, "system_name": "one machine",
        "equivalence": {"processor": {"core": 1}},
    }))  # fmt: skip
    (folder / "found").mkdir()
    began = time.process_time()
    simulator = Simulator(
        str(log), str(system), EASYBackfilling(FirstFit()), scheduling_output=False, show_statistics=False,
        RESULTS_FOLDER_NAME=str(folder / "found"),
    )  # fmt: skip
    simulator.start_simulation()
    took = time.process_time() - began
    told = next((folder / "found").glob("stats-*")).read_text()
    wait = re.search(r"waiting times: ([\d.]+)", told)
    return {"jobs": simulator.dispatched_jobs, "seconds": took, "wait": float(wait[1]) if wait else float("nan")}


def main() -> None:
    """Simulate and print; what AccaSim itself prints goes nowhere."""
    log, processors = Path(sys.argv[1]).resolve(), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        with Path(os.devnull).open("w") as nowhere, contextlib.redirect_stderr(nowhere), \
                contextlib.redirect_stdout(nowhere):  # fmt: skip
            found = simulated(log, processors, Path(folder))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
