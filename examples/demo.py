"""What Tenure is for, in a minute: a plan and its reasons, a quota what-if, a move, and evictions off and on."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
TENURE = (sys.executable, "-m", "tenure")


def show(what: str, *words: str, into: Path | None = None) -> None:
    """Say what comes, show the command as one would type it, and run it."""
    target = f" > {shlex.quote(str(into))}" if into is not None else ""
    print(f"\n\033[1m{what}\033[0m\n$ tenure {shlex.join(words)}{target}\n", flush=True)
    if into is None:
        done = subprocess.run([*TENURE, *words], check=False)
    else:
        with into.open("w") as stream:
            done = subprocess.run([*TENURE, *words], check=False, stdout=stream)
    if done.returncode:
        sys.exit(done.returncode)


def seen(off: dict[str, Any], on: dict[str, Any]) -> str:
    """Say in one sentence what evictions changed, with the figures of both simulations."""
    evictions = sum(on["evictions"].values())
    lost = on["lost"].get("nvidia.com/gpu", 0.0) / 3600
    less = 1 - on["wait_s"]["mean"] / off["wait_s"]["mean"] if off["wait_s"]["mean"] else 0.0
    change = f"{abs(less):.0%} {'less' if less >= 0 else 'more'}"
    return (
        f"What you saw: with {evictions} evictions, each made for a job that then ran, the mean job waited {change} "
        f"(half of all jobs at most {on['wait_s']['median']:,.0f} s instead of {off['wait_s']['median']:,.0f} s), "
        f"at the price of {lost:,.0f} GPU-hours of work done again."
    )


def simulate(folder: Path) -> str:
    """Simulate one workload with evictions off and on, compare the two, and give the sentence about them."""
    jobs, cluster = str(folder / "jobs.csv"), str(folder / "cluster.yaml")
    show("A workload after a published model, more than the cluster can take, and the cluster",
         "generate", "--jobs", "600", "--gpus", "64", "--load", "1.0", "--seed", "1", "--out", jobs,
         "--cluster", cluster)  # fmt: skip
    for name, actions in (("evictions-off", "[allocate]"), ("evictions-on", "[allocate,reclaim]")):
        show(f"Nine days of it, {name.replace('-', ' ')}", "simulate", jobs, "--cluster", cluster,
             "--set", f"scheduler.actions={actions}", "--report", str(folder / f"{name}.html"),
             "--history", str(folder / f"{name}.db"), "--format", "json", into=folder / f"{name}.json")  # fmt: skip
    off, on = folder / "evictions-off.json", folder / "evictions-on.json"
    show("The two side by side", "compare", str(off), str(on))
    return seen(json.loads(off.read_text()), json.loads(on.read_text()))


def typed() -> str:
    """Give what one has to type here to run Tenure: its name where the shell finds it, else where it was installed."""
    if shutil.which("tenure"):
        return "tenure"
    return os.path.relpath(Path(sys.executable).with_name("tenure"))


def main() -> None:
    """Run the demo; what it writes stays in a folder that it names at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    cluster = str(HERE / "cluster.yaml")
    show("What would be done on this cluster, and why does the rest wait?", "plan", cluster,
         "--report", str(folder / "plan.html"))  # fmt: skip
    show("Why does train-large wait, and what would it take?", "explain", cluster, "train-large")
    show("Who would go if this quota were lowered, and when?", "plan", str(HERE / "quota" / "cluster.yaml"),
         "--queues", str(HERE / "quota" / "queues.yaml"), "--set", "queue.prod.max.vcore=500",
         "--cycles", "20", "--every", "1m", "--report", str(folder / "quota.html"))  # fmt: skip
    show("What has to move so that a large job fits?", "reschedule", str(HERE / "rescheduler" / "make-room.yaml"),
         "--report", str(folder / "moves.html"))  # fmt: skip
    sentence = simulate(folder)
    print("\nReports to look at in a browser:")
    for page in sorted(folder.glob("*.html")):
        print(f"  {page}")
    print(f"\n{sentence}")
    print("\nA closer look, and who took the room of the one that waited longest:")
    print(f"  {shlex.join((typed(), 'console', '--simulation', str(folder / 'evictions-on.db')))}")


if __name__ == "__main__":
    main()
