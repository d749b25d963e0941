"""What Tenure is for, in a minute: a plan and its reasons, a quota what-if, a move, and evictions that pay."""

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

try:
    from tenure.cli.terminal.errors import run_program
except ModuleNotFoundError:
    sys.exit(f"{sys.executable} does not know Tenure; run this by: make demo")

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


RECLAIM = "scheduler.actions=[allocate,reclaim]"
OFF, ON, PAY = "evictions-off", "evictions-on", "evictions-pay"
SETTINGS = {
    OFF: ("without evictions", ("scheduler.actions=[allocate]",)),
    ON: ("what a queue is guaranteed it gets at once", (RECLAIM,)),
    PAY: ("nothing goes before the wait is worth what is lost",
          (RECLAIM, "scheduler.worth={patience: {reclaim: {}}, maxEvictions: 4, forgottenAfter: 30d}")),
}  # fmt: skip
"""By name what a simulation shows, and its settings."""


def seen(found: dict[str, dict[str, Any]]) -> str:
    """Say in one sentence what evictions changed, with the figures of the simulations."""
    useful = {name: f"{one['goodput']['nvidia.com/gpu']:.1%}" for name, one in found.items()}
    evictions = {name: sum(one["evictions"].values()) for name, one in found.items()}
    return (
        f"What you saw: {evictions[ON]} evictions made {_changed(found[OFF], found[ON])}; "
        f"{evictions[PAY]} that have to pay for themselves made {_changed(found[OFF], found[PAY])}: "
        f"GPUs did useful work for {useful[PAY]} of the time instead of {useful[ON]} ({useful[OFF]} without evictions)."
    )


def _changed(off: dict[str, Any], on: dict[str, Any]) -> str:
    lost = on["lost"].get("nvidia.com/gpu", 0.0) / 3600
    less = 1 - on["wait_s"]["mean"] / off["wait_s"]["mean"] if off["wait_s"]["mean"] else 0.0
    change = f"{abs(less):.0%} {'shorter' if less >= 0 else 'longer'}"
    return f"the mean wait {change}, at the price of {lost:,.0f} GPU-hours of work done again"


def simulate(folder: Path) -> str:
    """Simulate one workload under each of the settings, compare them, and give the sentences about them."""
    jobs, cluster = str(folder / "jobs.csv"), str(folder / "cluster.yaml")
    show("A workload after a published model, more than the cluster can take, and the cluster",
         "generate", "--jobs", "600", "--gpus", "64", "--load", "1.0", "--seed", "1", "--out", jobs,
         "--cluster", cluster)  # fmt: skip
    written = {name: folder / f"{name}.json" for name in SETTINGS}
    for name, (what, settings) in SETTINGS.items():
        given = [word for setting in settings for word in ("--set", setting)]
        show(f"Nine days of it: {what}", "simulate", jobs, "--cluster", cluster, *given,
             "--report", str(folder / f"{name}.html"), "--history", str(folder / f"{name}.db"), "--format", "json",
             into=written[name])  # fmt: skip
    show("Side by side", "compare", *map(str, written.values()))
    return seen({name: json.loads(path.read_text()) for name, path in written.items()})


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
    print(f"  {shlex.join((typed(), 'console', '--simulation', str(folder / f'{PAY}.db')))}")


if __name__ == "__main__":
    run_program(main)
