"""Hostile inputs by a grammar: cluster files, traces, settings and options, each made from a seed.

``python tests/cli/hostile.py 100000 [SEED]`` runs as many by hand.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import random
import sys
import tempfile
import time
from pathlib import Path

from tenure.cli.main import main

SLOWEST = 10.0
"""Seconds of the processor that one input may take."""

WORDS = (
    "", "a", "default", "x" * 300, "\u202e", "\x1b[2J", "a\nb", "-1", "0", "1", "2.5", "1e999", "NaN", "1Ei", "500m",
    "null", "true", "[]", "{}", "&a", "*a", "!!python/object:os.system", "1h", "-1h", "2026-11-20T10:00:00Z",
    "9999-12-31T23:59:59Z", "nvidia.com/gpu", "cpu", "<script>alert(1)</script>", "😀", "%s", "../../etc/passwd",
    "reclaim", "allocate", "running", "Running", "n", "q", "w", "10%", "200%", "9" * 400,
)  # fmt: skip
KEYS = {
    "file": ("apiVersion", "kind", "now", "scheduler", "nodes", "queues", "workloads", "disruptionBudgets",
             "evictions", "bogus"),
    "nodes": ("name", "count", "labels", "allocatable", "taints", "gpuMemory", "ready", "drain", "usage", "createdAt"),
    "queues": ("name", "parent", "guaranteed", "max", "weight", "priority", "reclaimMinRuntime", "status", "dynamic"),
    "workloads": ("name", "namespace", "queue", "priority", "minMember", "replicas", "requests", "tasks", "startedAt",
                  "gpuFraction", "gpuMemory", "gpuDevices", "subGroups", "affinity", "topology", "checkpoint",
                  "annotations", "tolerations", "phase", "expectedRuntime"),
    "tasks": ("name", "node", "phase", "devices", "requests", "gpuFraction", "nominated", "notice", "startedAt",
              "subGroup", "order"),
    "scheduler": ("actions", "placement", "backfill", "modes", "search", "rescheduler", "disruption", "fairness",
                  "minRuntime", "requeue", "nominators", "quotaPreemption", "victims"),
}  # fmt: skip
AMOUNTS = ("cpu", "memory", "pods", "nvidia.com/gpu", "example.com/x")
SETS = ("scheduler.backfill=easy", "queue.q.max.cpu=1", "queue.q.weight=0", "now=2026-11-21T00:00:00Z",
        "scheduler.=1", "workload.w.priority=5", "queue.q.max.nvidia.com/gpu=0", "a=b", "=",
        "scheduler.actions=[allocate]")  # fmt: skip


class Grammar:
    """Makes inputs from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def scalar(self):
        if self.chance(0.5):
            return self.random.choice(WORDS)
        return self.random.choice([0, 1, 2, 7, -1, 10**30, 0.5, True, None, 2**31, 2**63])

    def anything(self, depth: int = 0):
        if depth > 3 or self.chance(0.6):
            return self.scalar()
        if self.chance(0.5):
            return [self.anything(depth + 1) for _ in range(self.random.randrange(4))]
        return {str(self.random.choice(WORDS)): self.anything(depth + 1) for _ in range(self.random.randrange(4))}

    def amounts(self):
        return {r: self.random.choice([1, 2, 4, 8, "500m", "2Gi", 0]) for r in self.random.sample(AMOUNTS, 2)}

    def good(self, section: str) -> dict:
        number = self.random.randrange(4)
        placed = self.chance(0.5)
        task = {"name": f"t{number}", "node": "n", "phase": "Running"} if placed else {"name": f"t{number}"}
        return {
            "nodes": {"name": self.random.choice(["n", f"n{number}"]), "allocatable": self.amounts()},
            "queues": {"name": self.random.choice(["q", f"q{number}"]), "max": self.amounts()},
            "workloads": {"name": self.random.choice(["w", f"w{number}"]), "queue": "q", "requests": self.amounts(),
                          "tasks": [task], "startedAt": "2026-11-20T08:00:00Z"},
        }[section]  # fmt: skip

    def entry(self, section: str):
        if self.chance(0.05):
            return self.anything()
        made = self.good(section)
        for _ in range(self.random.choice([0, 0, 1, 3])):
            key = self.random.choice(KEYS[section])
            if key == "tasks":
                made[key] = [{k: self.anything() for k in self.random.sample(KEYS["tasks"], 3)}]
            else:
                made[key] = self.anything()
        return made

    def cluster(self) -> dict:
        made = {"now": "2026-11-20T10:00:00Z"}
        for section in ("nodes", "queues", "workloads"):
            made[section] = [self.entry(section) for _ in range(self.random.randrange(5))]
        if self.chance(0.3):
            made["scheduler"] = {k: self.anything() for k in self.random.sample(KEYS["scheduler"], 2)}
        if self.chance(0.2):
            made[self.random.choice(KEYS["file"])] = self.anything()
        return made

    def broken(self, text: str) -> bytes:
        """Cut, double or overwrite a part of a text, one time in three."""
        data = text.encode(errors="replace")
        if not data or self.chance(0.67):
            return data
        at = self.random.randrange(len(data))
        kind = self.random.randrange(4)
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data[:at] + data[max(0, at - 20) : at] + data[at:]
        return data[:at] + self.random.choice([b"\x00", b"\xff", b"\t", b"{", b"\n---\n", b"&a *a"]) + data[at + 1 :]

    def trace(self) -> tuple[str, str]:
        kind = self.random.choice(["csv", "swf", "openb", "philly"])
        cells = [*map(str, range(5)), "1", "2", "3", *(word.replace("\n", " ") for word in WORDS[::3])]
        head, width = {
            "csv": ("job,submit_s,runtime_s,cpu_milli,queue", 5), "swf": ("; MaxProcs: 4", 18),
            "openb": ("name,cpu_milli,memory_mib,num_gpu,gpu_milli", 5),
            "philly": ("job_id,submit_s,runtime_s,pods,gpus_per_pod", 5),
        }[kind]  # fmt: skip
        between = " " if kind == "swf" else ","
        lines = [
            between.join([str(i), *self.random.choices(cells, k=width - 1)]) for i in range(self.random.randrange(6))
        ]
        return kind, "\n".join([head, *lines]) + "\n"

    def command(self, folder: Path) -> list[str]:
        """Write the files of one input and give the command on them."""
        made = self.cluster()
        file = folder / self.random.choice(["c.yaml", "c.json"])
        file.write_bytes(self.broken(json.dumps(made)))
        kind = self.random.choice(["plan", "plan", "explain", "validate", "reschedule", "simulate", "simulate",
                                   "compare", "generate", "install"])  # fmt: skip
        words = {
            "plan": [file], "explain": [file, self.random.choice(["w", "w1", "", "default/w"])], "validate": [file],
            "reschedule": [file], "compare": [file], "generate": ["--jobs", "5", "--out", folder / "g.csv"],
            "simulate": [], "install": ["--pool", self.random.choice(WORDS)],
        }[kind]  # fmt: skip
        if kind == "simulate":
            form, text = self.trace()
            trace = folder / f"t.{'swf' if form == 'swf' else 'csv'}"
            trace.write_bytes(self.broken(text))
            words = [trace, "--cluster", file, "--jobs", folder / "jobs.csv"]
        if kind in ("plan", "explain", "reschedule", "simulate") and self.chance(0.4):
            words += ["--set", self.random.choice([*SETS, f"{self.random.choice(WORDS)}={self.random.choice(WORDS)}"])]
        if kind in ("plan", "reschedule", "simulate") and self.chance(0.4):
            words += ["--report", folder / "r.html"]
        if kind == "plan" and self.chance(0.2):
            words += [self.random.choice(["--actions", "--cycles", "--every", "--add"]), self.random.choice(WORDS)]
        if kind == "generate":
            words += [self.random.choice(["--load", "--gpus", "--queues", "--days", "--per-node", "--users"]),
                      self.random.choice(["0", "1", "-1", "1e300", "nan", "2", "1e-300", "9999999999"])]  # fmt: skip
        if self.chance(0.3) and kind not in ("generate", "install"):
            words += ["--format", "json"]
        return [kind, *(str(word).replace("\x00", "") for word in words)]


def run(seed: int) -> str:
    """Run one input; give what is wrong with how it ended, empty if nothing is."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        command = Grammar(seed).command(folder)
        before, began = {p.name for p in folder.iterdir()}, time.process_time()
        code, told = _call(command)
        took = time.process_time() - began
        left = {p.name for p in folder.iterdir()} - before
        partial = [n for n in left if n.endswith(".tmp") or (n.endswith(".html") and not _whole(folder / n))]
    faults = [
        (code not in (0, 1, 2), f"code {code}"), ("internal error" in told, "internal error"),
        ("Traceback" in told, "traceback"),
        (code != 0 and not told.strip() and command[0] != "validate", "says nothing"),
        (bool(partial), f"left {partial}"), (took > SLOWEST, f"took {took:.1f} s"),
        ("\x1b[2J" in told or "\u202e" in told, "passes control characters on"),
    ]  # fmt: skip
    wrong = [fault for happened, fault in faults if happened]
    return f"seed {seed}: {command}: {', '.join(wrong)}: {told[:300]}" if wrong else ""


def _whole(page: Path) -> bool:
    return page.read_text().rstrip().endswith("</html>")


def _call(command: list[str]) -> tuple[object, str]:
    errors = io.StringIO()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(errors):
        try:
            main(command)
        except SystemExit as ended:
            return ended.code, errors.getvalue()
    return None, errors.getvalue()


if __name__ == "__main__":
    os.environ.pop("TENURE_DEBUG", None)
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    found = [fault for seed in range(first, first + int(sys.argv[1])) if (fault := run(seed))]
    sys.stdout.write("\n".join(found or ["nothing wrong"]) + "\n")
    sys.exit(bool(found))
