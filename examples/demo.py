"""The main job in a minute: plan and explain a cluster file, then simulate a generated workload under two settings."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
TENURE = Path(sys.executable).with_name("tenure")


def show(what: str, *words: str) -> None:
    """Say what comes, show the command as one would type it, and run it."""
    command = [str(w) for w in words]
    print(f"\n\033[1m{what}\033[0m\n$ tenure {shlex.join(command)}\n", flush=True)
    done = subprocess.run([str(TENURE), *command], check=False)
    if done.returncode:
        sys.exit(done.returncode)


def main() -> None:
    """Run the demo; what it writes stays in a folder that it names at the end."""
    folder = Path(tempfile.mkdtemp(prefix="tenure-demo-"))
    cluster = str(HERE / "cluster.yaml")
    show("What would be done on this cluster, and why does the rest wait?", "plan", cluster,
         "--report", str(folder / "plan.html"))  # fmt: skip
    show("Why does train-large wait, and what would it take?", "explain", cluster, "train-large")
    show("A workload after a published model, and a cluster for it", "generate", "--jobs", "2000", "--gpus", "128",
         "--load", "0.9", "--seed", "1", "--out", str(folder / "jobs.csv"),
         "--cluster", str(folder / "cluster.yaml"))  # fmt: skip
    for backfill in ("none", "easy"):
        print(f"\n\033[1mA month of it, with backfill {backfill}\033[0m", flush=True)
        words = ["simulate", str(folder / "jobs.csv"), "--cluster", str(folder / "cluster.yaml"),
                 "--set", f"scheduler.backfill={backfill}", "--set", "scheduler.actions=[allocate]",
                 "--report", str(folder / f"{backfill}.html"),
                 "--history", str(folder / f"{backfill}.db"), "--format", "json"]  # fmt: skip
        print(f"$ tenure {shlex.join(words)} > {folder / backfill}.json", flush=True)
        with (folder / f"{backfill}.json").open("w") as out:
            subprocess.run([str(TENURE), *words], check=True, stdout=out)
    show("The two side by side", "compare", str(folder / "none.json"), str(folder / "easy.json"))
    print("\nReports to look at in a browser:")
    for page in sorted(folder.glob("*.html")):
        print(f"  {page}")
    print("\nA closer look, and who took the room of the one that waited longest:")
    print(f"  {shlex.quote(os.path.relpath(TENURE))} console --simulation {shlex.quote(str(folder / 'easy.db'))}")


if __name__ == "__main__":
    main()
