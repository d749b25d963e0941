"""Hostile inputs by a grammar: files of every kind that commands read, and options, each made from a seed.

Some inputs are valid but odd, so that they get as far as they can; some are wrong in a place or two, and some in most.
``python -m tests.cli.hostile 100000 [SEED]`` runs as many by hand, and says how far it is.
"""
# ruff: noqa: E501  tables of values are lines

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import yaml
from tests.cli.forking import Answer, ForkingServer

SLOWEST = 10.0
"""Seconds of the processor that one input may take."""

LARGEST = 500
"""MiB of memory that one input may take."""

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
GOOD_AMOUNTS = {"cpu": [1, 4, 8, "500m"], "memory": ["2Gi", "64Mi"], "pods": [10, 100]}
SETS = ("scheduler.backfill=easy", "queue.q.max.cpu=1", "queue.q.weight=0", "now=2026-11-21T00:00:00Z",
        "scheduler.=1", "workload.w.priority=5", "queue.q.max.nvidia.com/gpu=0", "a=b", "=",
        "scheduler.actions=[allocate]")  # fmt: skip


TIMES = ("2026-11-20T09:00:00Z", "2026-11-20T08:00:00Z", "2026-11-19T10:00:00+01:00")
LENGTHS = (0, "30s", "10m", "1h", "2d", "1h30m")
TERM = {"labelSelector": {"matchLabels": {"a": "b"}}, "topologyKey": "zone"}
PLAUSIBLE = {
    "count": (1, 2, 3), "labels": ({"a": "b"}, {"zone": "z1"}, {}), "gpuMemory": ("16Gi", "80Gi"), "ready": (True, False),
    "taints": ([{"key": "k", "effect": "NoSchedule"}], []), "drain": (True, False), "createdAt": TIMES, "startedAt": TIMES,
    "usage": ({"cpu": 1}, {"cpu": 99, "memory": "1Gi"}), "parent": ("q1", None), "weight": (1, 2.5, {"cpu": 2}),
    "guaranteed": ({"cpu": 1}, {"cpu": "100m"}), "max": ({"cpu": 4}, {"nvidia.com/gpu": 0.5}, {"cpu": 2}),
    "priority": (0, 1, 100, -5), "reclaimMinRuntime": LENGTHS, "dynamic": (True, False), "namespace": ("default", "other"),
    "queue": ("q", "q", "q2"), "minMember": (1,), "replicas": (1, 2, 5), "gpuFraction": (0.5, "250m"),
    "tolerations": ([{"key": "k", "operator": "Exists"}],), "phase": ("Pending", "Gated"), "expectedRuntime": LENGTHS, "checkpoint": ({"interval": "10m"}, {}),
    "annotations": ({"tenure.dev/eviction-ack": "true"}, {"x": "y"}), "topology": ({"required": "zone"}, {"preferred": "zone"}),
    "affinity": ({"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [TERM]}},
                 {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [
                     {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["z1"]}]}]}}}),
    "subGroups": ([{"name": "g", "minMember": 1}], [{"name": "g"}, {"name": "h", "minMember": 1}]), "subGroup": ("g", "h"),
    "devices": ([0], [0, 1], []), "node": ("n", "n1", "n2"), "order": (0, 1, 2), "notice": ({"at": TIMES[0],
    "deadline": "2026-11-20T10:05:00Z", "cause": "reclaim"},), "nominated": ({"node": "n", "at": TIMES[0]},),
    "actions": (["allocate"], ["allocate", "reclaim", "preempt"], ["requeue", "reschedule"], ["quota", "stale-gang"]),
    "placement": ("binpack", "spread", "fragmentation", {"binpack": 1, "fragmentation": 3}), "backfill": ("none", "easy"),
    "modes": ({"reclaim": "shadow"}, {"quota": "off", "preempt": "enforce"}), "victims": ("cost", "youngest", "oldest"),
    "search": ({"maxScenarios": 10},), "rescheduler": ({"pendingFor": 0, "settle": 0}, {"moves": "reserve-first"},
    {"background": {"interval": "1m", "objective": "pack"}}, {"hotNodes": {"enabled": True}}), "requeue": ({"maxCandidates": 1},),
    "disruption": ({"assumedCheckpoint": "1h"}, {"budgets": [{"name": "b", "maxEvictions": 1, "per": "1h"}]}, {"cost": {"cpu": 1}}),
    "fairness": ({"history": {"halfLife": "24h"}}, {"history": None}), "minRuntime": ({"method": "lca"},),
    "nominators": ({"over-share": True}, {"idle": {"enabled": True}}), "quotaPreemption": ({"enabled": True},),
}  # fmt: skip
"""Values that are right for a key, though perhaps not beside others."""

LEVELS = (0.0, 0.0, 0.02, 0.1, 0.5)
"""How often a value is anything at all instead of a plausible one; each input has one of these."""


class Grammar:
    """Makes inputs from a seed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.level = self.random.choice(LEVELS)

    def value(self, key: str):
        """Give a value for a key: plausible, or anything."""
        if key not in PLAUSIBLE or self.chance(self.level):
            return self.anything()
        return self.random.choice(PLAUSIBLE[key])

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
        if self.chance(self.level):
            return {r: self.random.choice([1, 8, "500m", "2Gi", 0, "1e3", -1]) for r in self.random.sample(AMOUNTS, 2)}
        return {r: self.random.choice(GOOD_AMOUNTS.get(r, [1, 2, 4])) for r in self.random.sample(AMOUNTS, 2)}

    def good(self, section: str, number: int) -> dict:
        """Give an entry without anything odd; the first of each section has a name that the others may use."""
        name = {"nodes": "n", "queues": "q", "workloads": "w"}[section]
        made = {"name": f"{name}{number}" if number else name}
        if section == "nodes":
            whole = {"cpu": self.random.choice([4, 16]), "memory": "64Gi", "nvidia.com/gpu": self.random.choice([1, 4])}
            return {
                **made,
                "gpuMemory": "16Gi",
                "labels": {"zone": f"z{number}"},
                "allocatable": {**self.amounts(), **whole},
            }
        if section == "queues":
            return made if self.chance(0.5) else {**made, "max": {"cpu": self.random.choice([2, 8])}}
        placed = self.chance(0.5)
        task = {"name": "t", "node": "n", "phase": "Running"} if placed else {"name": "t"}
        started = {"startedAt": "2026-11-20T08:00:00Z"} if placed else {}
        return {
            **made,
            "queue": "q",
            "requests": {"cpu": self.random.choice(["500m", 1, 2])},
            "tasks": [task],
            **started,
        }

    def entry(self, section: str, number: int = 0):
        if self.chance(self.level / 2):
            return self.anything()
        made = self.good(section, number)
        for _ in range(self.random.choice([0, 1, 2, 4])):
            key = self.random.choice(
                [k for k in KEYS[section] if k in PLAUSIBLE or self.chance(self.level)] or ["labels"]
            )
            if key == "tasks":
                made[key] = [{k: self.value(k) for k in self.random.sample(KEYS["tasks"], 3)}]
            else:
                made[key] = self.value(key)
        if section == "workloads" and self.chance(0.4):
            made["tasks"] = [self.task(number) for number in range(self.random.randrange(1, 4))]
        if not self.chance(self.level):
            self.mend(made)
        return made

    def mend(self, made: dict) -> None:
        """Take from an entry what would not go with the rest of it."""
        listed = made.get("tasks")
        tasks = [t for t in listed if isinstance(t, dict)] if isinstance(listed, list) else []
        if tasks:
            made.pop("replicas", None)
            made.pop("phase", None)
        if isinstance(made.get("subGroups"), list) and made["subGroups"]:
            for task, group in zip(tasks, ["g", "h", "g"], strict=False):
                task["subGroup"] = group if len(made["subGroups"]) > 1 else "g"
        if any(t.get("phase") in ("Running", "Bound", "Terminating") for t in tasks):
            made.setdefault("startedAt", TIMES[1])
        if made.get("name") in ("q", "q1"):
            made.pop("parent", None)

    def task(self, number: int) -> dict:
        made = {"name": f"t{number}"}
        if self.chance(0.5):
            made["phase"] = self.random.choice(["Running", "Bound", "Terminating", "Pending", "Succeeded", "Failed"])
        for key in self.random.sample(
            [k for k in KEYS["tasks"] if k in PLAUSIBLE and k not in ("phase", "subGroup")],
            self.random.choice([0, 0, 1]),
        ):
            made[key] = self.value(key)
        if made.get("phase") in ("Running", "Bound", "Terminating"):
            made.setdefault("node", "n")
        return made

    def cluster(self) -> dict:
        made = {"now": "2026-11-20T10:00:00Z"}
        for section in ("nodes", "queues", "workloads"):
            fewest = 3 if section != "workloads" and not self.chance(self.level) else 0
            made[section] = [self.entry(section, number) for number in range(self.random.randrange(fewest, 6))]
        if self.chance(0.3):
            made["scheduler"] = self.settings()
        if self.chance(self.level):
            made[self.random.choice(KEYS["file"])] = self.anything()
        for section in ("nodes", "queues", "workloads"):
            if isinstance(made[section], list) and not self.chance(
                self.level
            ):  # two of one name are wrong, which hides all else
                made[section] = list(
                    {str(e.get("name")) if isinstance(e, dict) else id(e): e for e in made[section]}.values()
                )
        return made

    def settings(self) -> dict:
        return {k: self.value(k) for k in self.random.sample(KEYS["scheduler"], self.random.randrange(1, 4))}

    def broken(self, text: str) -> bytes:
        """Cut, double or overwrite a part of a text, more often the more is wrong already."""
        data = text.encode(errors="replace")
        if not data or not self.chance(min(0.4, self.level * 3)):
            return data
        at = self.random.randrange(len(data))
        kind = self.random.randrange(4)
        if kind == 0:
            return data[:at]
        if kind == 1:
            return data[:at] + data[max(0, at - 20) : at] + data[at:]
        return data[:at] + self.random.choice([b"\x00", b"\xff", b"\t", b"{", b"\n---\n", b"&a *a"]) + data[at + 1 :]

    def trace(self) -> tuple[str, str]:
        kind = self.random.choice(list(TRACES))
        head, cells = TRACES[kind]
        between = {"swf": " ", "sacct": "|"}.get(kind, ",")
        rows = []
        for number in range(self.random.randrange(8)):
            row = [str(self.random.choice(cell)).replace("{i}", str(number)) for cell in cells]
            for place in range(len(row)):
                if self.chance(self.level / 4):
                    row[place] = str(self.random.choice(WORDS)).replace("\n", " ")
            rows.append(self.record(row) if kind.endswith("json") else between.join(row))
        if kind == "philly-json":
            return kind, "[" + ",\n".join(rows) + "]\n"
        return kind, "\n".join([head, *rows]) + "\n"

    def record(self, cells: list[str]) -> str:
        """Write cells such as ``@key=value`` as a JSON object; what is no such cell has an odd key."""
        made: dict = {}
        for cell in cells:
            key, _, value = cell.removeprefix("@").partition("=")
            made[key] = json.loads(value) if value[:1] in {"[", "{"} and not self.chance(self.level / 4) else value
        if self.chance(self.level / 2):
            made[self.random.choice(list(made))] = self.anything()
        return json.dumps(made)

    def text(self, value) -> str:
        """Write plain values as JSON, or as YAML in one of its styles."""
        if self.chance(0.5):
            return json.dumps(value)
        return yaml.safe_dump(
            value, default_flow_style=self.random.choice([None, False, True]), allow_unicode=self.chance(0.5)
        )

    def write(self, path: Path, text: str) -> Path:
        """Write a text, perhaps broken and perhaps packed."""
        data = self.broken(text)
        if self.chance(0.1):
            packed = gzip.compress(data, 1, mtime=0)
            data = packed[: self.random.randrange(len(packed))] if self.chance(self.level) else packed
        path.write_bytes(data)
        return path

    def manifests(self) -> str:
        """Give manifests of pods and Jobs, or workloads, as ``--add`` takes them."""
        if self.chance(0.4):
            return self.text({"workloads": [self.entry("workloads") for _ in range(self.random.randrange(1, 3))]})
        documents = []
        for number in range(self.random.randrange(1, 4)):
            container = {"name": "c", "image": "i", "resources": {"requests": self.amounts()}}
            pod = {
                "containers": [container],
                "priority": self.value("priority"),
                "tolerations": self.value("tolerations"),
            }
            meta = {"name": f"p{number}", "labels": {"tenure.dev/queue": "q"}}
            if self.chance(self.level):
                pod[self.random.choice(["containers", "affinity", "nodeSelector", "initContainers", "volumes"])] = (
                    self.anything()
                )
            if self.chance(0.5):
                documents.append({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": pod})
            else:
                spec = {"parallelism": self.random.choice([1, 2, 3]), "template": {"metadata": meta, "spec": pod}}
                documents.append({"apiVersion": "batch/v1", "kind": "Job", "metadata": meta, "spec": spec})
            if self.chance(self.level):
                documents[-1][self.random.choice(["kind", "metadata", "spec", "apiVersion"])] = self.anything()
        return "---\n".join(yaml.safe_dump(document) for document in documents)

    def parquet(self, text: str) -> bytes:
        """Write a table as Parquet, its cells as text."""
        import pyarrow as pa  # noqa: PLC0415  an extra
        import pyarrow.parquet as pq  # noqa: PLC0415

        head, *rows = [line.split(",") for line in text.splitlines()]
        columns = {name: [row[n] if n < len(row) else None for row in rows] for n, name in enumerate(head)}
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out)
        return out.getvalue()

    def yunikorn(self) -> str:
        """Give YuniKorn's queues."""

        def queue(name: str, depth: int) -> dict:
            made = {"name": name}
            if self.chance(0.6):
                made["resources"] = {self.random.choice(["max", "guaranteed"]): {"vcore": 4, "memory": "8Gi"}}
            if self.chance(0.3):
                made["properties"] = {"priority.offset": "1", "preemption.policy": "fence", "preemption.delay": "10s"}
            if self.chance(0.2):
                made["limits"] = [{"limit": "x", "users": ["*"], "maxapplications": 3}]
            if self.chance(self.level):
                made[self.random.choice(["name", "queues", "resources", "limits", "parent", "submitacl"])] = (
                    self.anything()
                )
            elif depth < 3 and self.chance(0.5):
                made["queues"] = [queue(f"q{n}", depth + 1) for n in range(self.random.randrange(3))]
            return made

        return self.text({"partitions": [{"name": "default", "queues": [queue("root", 0)]}]})

    def export(self) -> str:
        """Give lines of an export of a history."""
        lines = []
        for number in range(self.random.randrange(6)):
            record = {
                "at": 1_763_632_800_000_000 + number * 60_000_000,
                "kind": self.random.choice(["started", "evicted", "ended", "placed", "submitted", "origin", "held"]),
                "workload": f"default/w{number % 2}", "queue": "q", "cause": self.random.choice(["reclaim", None]),
                "beneficiary": None, "value": self.random.choice([0, 1, 3600]), "cluster": "c", "pool": "default", "plan": "",
                "sequence": number, "version": 1, "key": f"{number:032x}", "payload": self.random.choice([
                    {}, {"message": "m"}, {"user": "u"}, {"used": {"cpu": 1000}}, {"nodes": [], "queues": []}]),
            }  # fmt: skip
            for key in list(record):
                if self.chance(self.level / 4):
                    record[key] = self.anything()
            lines.append(json.dumps(record))
        return "\n".join(lines) + "\n"

    def command(self, folder: Path) -> list[str]:
        """Write the files of one input and give the command on them."""
        file = self.write(folder / self.random.choice(["c.yaml", "c.json"]), self.text(self.cluster()))
        kind = self.random.choice([k for k in COMMANDS if k != "sweep" or self.level == LEVELS[-1]])
        words = COMMANDS[kind](self, folder, file)
        changes = kind in ("plan", "explain", "reschedule", "simulate", "sweep")  # which starts processes: few of those
        if changes and self.chance(0.4):
            word = self.random.choice([*SETS, f"{self.random.choice(WORDS)}={self.random.choice(WORDS)}"])
            words += ["--set", self.random.choice(SETS) if not self.level else word]
        if kind in ("plan", "reschedule", "simulate") and self.chance(0.4):
            words += ["--report", folder / "r.html"]
        if kind in ("plan", "reschedule") and self.chance(0.3):
            words += ["--output", folder / self.random.choice(["o.yaml", "o.json"])]
        if kind in ("plan", "explain") and self.chance(0.3):
            words += ["--add", self.write(folder / "a.yaml", self.manifests())]
        if kind == "plan":
            words += self.plan_options(folder)
        if self.chance(0.3) and kind not in ("generate", "install", "history", "completion", "pause"):
            words += ["--format", self.random.choice(["json", "json", "text", *WORDS]) if self.level else "json"]
        if self.chance(self.level / 5):
            words.insert(self.random.randrange(len(words) + 1), self.random.choice(WORDS))
        return [kind, *(str(word).replace("\x00", "") for word in words)]

    def plan_options(self, folder: Path) -> list:
        words: list = []
        if self.chance(0.2):
            words += ["--queues", self.write(folder / "queues.yaml", self.yunikorn())]
        if self.chance(0.3):
            words += ["--cycles", self.random.choice(["1", "3", "5", "-1", "x"] if self.level else ["2", "4"])]
            words += ["--every", self.random.choice(["1m", "1h", *WORDS] if self.level else ["1m", "1h"])]
        if self.chance(0.2):
            words += ["--history", folder / "h.db"]
        if self.chance(0.2):
            words += [self.random.choice(["--queue", "--workload"]), self.random.choice(["q", "default/w", *WORDS])]
        if self.chance(0.1):
            words += [self.random.choice(["--actions", "--top", "--color"]), self.random.choice(WORDS)]
        return words


TRACES = {
    "tenure": ("job,submit_s,runtime_s,expected_runtime_s,queue,pods,cpu_milli,gpus,gpu_milli,priority,checkpoint_s",
               [["j{i}"], range(0, 50, 7), [10, 100, ""], [10, 200, ""], ["q", "q1", "default"], [1, 2, 3], [0, 500, 1000],
                [0, 1, 2], [1000, 500], [0, 5], ["", 5]]),
    "swf": ("; MaxProcs: 4", [["{i}"], range(0, 50, 7), [1], [10, 100, -1], [1, 2, 8], [-1], [-1], [1, 2, -1], [20, -1],
                              [-1], [1, 0, 5], [1, 2], [1], [-1], [1], [-1], [-1], [-1]]),
    "openb": ("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,creation_time,deletion_time",
              [["p{i}"], [0, 1000], [0, 1024], [0, 1, 2], [1000, 500], ["", "T4", "T4|V100M16"], ["LS", "BE"], [0, 5],
               [100, 10]]),
    "helios": ("job_id,user,vc,gpu_num,cpu_num,node_num,state,submit_time,start_time,end_time,duration,queue",
               [["{i}"], ["u"], ["q", "q1"], [0, 1, 9], [1, 4], [1, 2], ["COMPLETED", "RUNNING", "CANCELLED"],
                ["2020-06-09 18:41:01"], ["2020-06-09 18:42:01", "", "None"], ["2020-06-09 18:43:01", ""], [60, ""], [0]]),
    "pai": ("job_name,task_name,inst_num,status,start_time,end_time,plan_cpu,plan_mem,plan_gpu,gpu_type",
            [["j{i}", "j"], ["ps", "worker"], ["1.0", "2.0", ""], ["Terminated", "Running", "Waiting"], ["10.0", "", "0"],
             ["70.0", ""], ["100.0", ""], ["0.5", "1.25"], ["", "50.0", "150.0"], ["T4", "MISC", ""]]),
    "azure": ("vmid,subscriptionid,deploymentid,vmcreated,vmdeleted,maxcpu,avgcpu,p95maxcpu,vmcategory,vmcorecount,vmmemory",
              [["v{i}"], ["s"], ["d"], [0, 300], [600, 900], [9.5], [1.5], [3], ["Interactive", "Unknown"], [1, 2, ">24"],
               ["0.75", 4, ">64"]]),
    "google": ("time,type,collection_id,priority,instance_index,resource_request.cpus,resource_request.memory",
               [[0, 1000000, 9000000, 2**63 - 1], [0, 3, 3, 4, 6, "SCHEDULE"], [1, 2], [0, 200], [0, 1], ["0.01", ""],
                ["0.02", "1e-5"]]),
    "sacct": ("JobID|Account|State|Submit|Start|End|Timelimit|ReqTRES|ReqMem",
              [["{i}", "7_{i}", "8+{i}", "{i}.batch", "9_[1-{i}]"], ["q", "q1"],
               ["COMPLETED", "RUNNING", "CANCELLED by 5", "PENDING"], ["2024-01-05T10:00:00", 1704448800],
               ["2024-01-05T10:01:00", "Unknown", "None"], ["2024-01-05T10:02:00", "Unknown"],
               ["01:00:00", "UNLIMITED", "1-00:00:00"], ["", "cpu=1,mem=1G,node=1", "cpu=2,gres/gpu:a100=1,node=2"],
               ["", "4000Mn", "1Gc"]]),
    "google-json": ("", [["@collection_id=1", "@collection_id=2"], ["@instance_index=0", "@instance_index=1"], ["@type=0", "@type=3", "@type=6"],
                         ["@time=0", "@time=5000000", "@priority=1"], ['@resource_request={"cpus": 0.01}', "@x=1"]]),
    "philly-json": ("", [["@jobid=a{i}"], ["@submitted_time=2017-10-07 01:00:00", "@submitted_time=None"], ["@vc=q"],
                         ["@attempts=[]", '@attempts=[{"start_time": "2017-10-07 01:00:10", "end_time": "2017-10-07 01:01:00", "detail": [{"gpus": ["g0"]}]}]',
                          '@attempts=[{"start_time": null, "detail": 5}]']]),
    "philly": ("job_id,submit_s,runtime_s,pods,gpus_per_pod,queue,user", [["j{i}"], range(0, 50, 7), [10, 100], [1, 2],
                                                                         [0, 1, 9], ["q", "q1"], ["u", "v"]]),
}  # fmt: skip
"""The head of a trace of each format, and what its cells hold where nothing is wrong."""


def simulation(grammar: Grammar, folder: Path, file: Path) -> list:
    form, text = grammar.trace()
    trace = grammar.write(folder / f"t.{'swf' if form == 'swf' else 'csv'}", text)
    words = [trace, "--cluster", file]
    if form == "tenure" and grammar.chance(0.2):
        trace.write_bytes(grammar.parquet(text))
    if grammar.chance(0.5):
        words += ["--jobs", folder / "jobs.csv"]
    if grammar.chance(0.2):
        words += ["--history", folder / "h.db"]
    if grammar.chance(0.2):
        words += [
            "--scheduler",
            grammar.write(
                folder / "s.yaml", grammar.text({"kind": "SchedulerConfig", "scheduler": grammar.settings()})
            ),
        ]
    if form == "openb" and grammar.chance(0.3):
        nodes = "sn,cpu_milli,memory_mib,gpu,model\nn0,8000,9999,2,T4\nn1,8000,9999,0,\n"
        words = [trace, "--nodes", grammar.write(folder / "nodes.csv", nodes), "--inflate", "1.3", "--seed", "1"]
    if grammar.chance(0.2):
        option = grammar.random.choice(
            ["--from", "--to", "--load", "--inflate", "--seed", "--processors", "--trace-format"]
        )
        words += [option, grammar.random.choice(["10", "1.5", "1d", *TRACES, *WORDS])]
    if grammar.chance(0.2):
        words += ["--queue-from", grammar.random.choice(["user", "{queue}-{user}", "vc", *WORDS])]
    if grammar.chance(0.1):
        words += ["--columns", grammar.random.choice(["job=job", "job_id=job,submit_s=submit_s", "JobID=job", *WORDS])]
    if grammar.chance(0.1):
        words += ["--beside", trace]
    return words


def sweeping(grammar: Grammar, folder: Path, file: Path) -> list:
    trace = grammar.write(folder / "t.csv", grammar.trace()[1])
    words = [trace, "--cluster", file, "--processes", "1", "--out", folder / "sweep"]
    for option, values in {"--load": ["1,2", "0", *WORDS], "--seeds": ["2", "0", *WORDS], "--shake": LENGTHS}.items():
        if grammar.chance(0.5):
            words += [option, grammar.random.choice(values)]
    return words


def difference(grammar: Grammar, folder: Path, file: Path) -> list:
    settings = {"kind": "SchedulerConfig", "scheduler": grammar.settings()}
    queues = {"kind": "Queue", "apiVersion": "tenure.dev/v1beta1", "metadata": {"name": "q"},
              "spec": {k: grammar.value(k) for k in grammar.random.sample(("max", "weight", "priority"), 2)}}  # fmt: skip
    policies = [
        grammar.write(folder / "one.yaml", grammar.text(grammar.random.choice([settings, queues]))),
        grammar.write(folder / "other.yaml", grammar.random.choice([grammar.yunikorn(), grammar.text(settings)])),
        file,
    ]
    words = [*(grammar.random.choice(policies) for _ in range(2)), "--cluster", file, "--cycles", "2"]
    if grammar.chance(0.2):
        form, text = grammar.trace()
        words = [*words[:4], "--trace", grammar.write(folder / "t.csv", text), "--trace-format", form]
    return words


def live(grammar: Grammar, folder: Path, _file: Path) -> list:
    """Give a kubeconfig that leads nowhere."""
    config = {name: grammar.anything() for name in ("clusters", "users", "contexts")}
    text = grammar.text({"apiVersion": "v1", "kind": "Config", **config})
    return ["--kubeconfig", grammar.write(folder / "k.yaml", text)]


def exported(grammar: Grammar, folder: Path) -> Path:
    return grammar.write(folder / "e.jsonl", grammar.export())


def generation(grammar: Grammar, folder: Path, _file: Path) -> list:
    option = grammar.random.choice(
        ["--load", "--gpus", "--queues", "--days", "--per-node", "--users", "--shared", "--seed"]
    )
    number = grammar.random.choice(["0", "1", "-1", "1e300", "nan", "2", "1e-300", "9999999999", "0.5"])
    return ["--jobs", "5", "--out", folder / "g.csv", option, number]


def comparison(grammar: Grammar, folder: Path, _file: Path) -> list:
    files = []
    for name in ("a.json", "b.json"):
        made = {"jobs": 3, "finished": 3, "wait_s": {"mean": 1.5, "median": 1, "p95": 3, "max": 4}, "evictions": {"reclaim": 1},
                "boundedSlowdown": {"tau_s": 10, "mean": 1.0, "p95": 2.0}, "utilization": {"cpu": 0.5}, "jain": 1.0,
                "queues": [{"name": "q", "wait_s": {"mean": 1}, "lost": {}}], "lost": {}, "violations": 0}  # fmt: skip
        for key in list(made):
            if grammar.chance(grammar.level / 2):
                made[key] = grammar.anything()
        files.append(grammar.write(folder / name, json.dumps(made)))
    return files


def history(grammar: Grammar, folder: Path, _file: Path) -> list:
    what = grammar.random.choice(["import", "export", "prune", "forget", "migrate"])
    source = exported(grammar, folder)
    if what == "import":
        return [what, source, "--history", folder / "h.db"]
    more = {"export": [folder / grammar.random.choice(["x.jsonl", "x.otlp.json", "x.parquet", "x.jsonl.gz"])],
            "prune": ["--keep", grammar.random.choice(["1d", *WORDS])], "forget": ["--user", grammar.random.choice(["u", *WORDS])],
            "migrate": []}[what]  # fmt: skip
    return [what, *more, "--history", source]


COMMANDS = {
    "plan": lambda _g, _f, file: [file],
    "explain": lambda g, _f, file: [file, g.random.choice(["w", "w1", "w2", "default/w", *(WORDS if g.level else ())])],
    "validate": lambda g, f, file: g.random.choice([[file], [file, g.write(f / "queues.yaml", g.yunikorn())],
                                                    [g.write(f / "s.yaml", g.text({"kind": "SchedulerConfig", "scheduler": g.settings()}))]]),
    "reschedule": lambda g, _f, file: [file, *(["--drain", g.random.choice(["n", "n1", *WORDS])] if g.chance(0.3) else [])],
    "simulate": simulation,
    "compare": comparison,
    "generate": generation,
    "install": lambda g, f, _file: [g.random.choice(["--pool", "--namespace", "--image"]), g.random.choice(WORDS),
                                    "--config", g.write(f / "s.yaml", g.text({"kind": "SchedulerConfig", "scheduler": g.settings()}))],
    "report": lambda g, f, _file: ["--history", exported(g, f), "--by", g.random.choice(["cause", "queue", "workload", "user"]),
                                   *(["--since", g.random.choice(["1d", *WORDS])] if g.chance(0.3) else [])],
    "story": lambda g, f, _file: [g.random.choice(["default/w1", "w1", *WORDS]), "--history", exported(g, f)],
    "replay": lambda g, f, _file: ["--from", exported(g, f)],
    "history": history,
    "diff": difference,
    "sweep": sweeping,
    "queues": live,
    "workloads": live,
    "snapshot": lambda g, f, file: [*live(g, f, file), "--output", f / g.random.choice(["o.yaml", "o.json", "k.yaml"])],
    "pause": lambda g, f, file: [*live(g, f, file), "--for", str(g.random.choice([*LENGTHS, *WORDS]))],
    "completion": lambda g, _f, _file: [g.random.choice(["bash", "zsh", "fish", *WORDS])],
}  # fmt: skip
"""For each command what makes its words; ``--format`` and what several take comes afterwards."""


TOGETHER = 20
"""Inputs that one process answers, one after the other. What is wrong with one is tried again by its seed alone."""


def run(server: ForkingServer, seeds: Sequence[int], base: Path, seen: Counter | None = None) -> list[str]:
    """Run some inputs, each in a folder of its own; give what is wrong with how they ended.

    ``seen`` counts commands and codes.
    """
    wrong = []
    for begin in range(0, len(seeds), TOGETHER):
        made = [_made(seed, base / str(seed)) for seed in seeds[begin : begin + TOGETHER]]
        answers = server.run_together([(one.command, one.folder) for one in made])
        for one, answer in zip(made, answers, strict=True):
            if seen is not None:
                seen[one.command[0], answer.code] += 1
            left = {p.name for p in one.folder.iterdir()} - one.files
            if found := faults(one.command, answer, one.folder, left):
                wrong.append(f"seed {one.seed}: {one.command}: {', '.join(found)}: {answer.said[:300]}")
            shutil.rmtree(one.folder)
    return wrong


class HostileInput(NamedTuple):
    """An input that was made: its command, and the files that are in its folder."""

    seed: int
    folder: Path
    command: list[str]
    files: set[str]


def _made(seed: int, folder: Path) -> HostileInput:
    folder.mkdir()
    command = Grammar(seed).command(folder)
    return HostileInput(seed, folder, command, {p.name for p in folder.iterdir()})


OUTSIDE = ("queues", "workloads", "snapshot", "pause", "history", "report", "story", "replay")
"""Commands that go to a cluster or to a database: that there is none behind a name is something outside (3)."""


def faults(command: list[str], answer: Answer, folder: Path, left: set[str]) -> list[str]:
    """Give what is wrong with an answer and with what it left in its folder."""
    told = answer.said
    partial = [n for n in left if n.endswith((".tmp", ".part")) or (n.endswith(".html") and not _whole(folder / n))]
    found = [
        (answer.code not in ((0, 1, 2, 3) if command[0] in OUTSIDE else (0, 1, 2)), f"code {answer.code}"),
        ("internal error" in told, "internal error"), ("Traceback" in told, "traceback"),
        (answer.code != 0 and not told.strip() and command[0] != "validate", "says nothing"),
        (bool(partial), f"left {partial}"), (answer.seconds > SLOWEST, f"took {answer.seconds:.1f} s"),
        (answer.mebibytes > LARGEST, f"took {answer.mebibytes:.0f} MiB"),
        (any(c in told + answer.printed for c in ("\x1b[2J", "\u202e")), "passes control characters on"),
    ]  # fmt: skip
    return [fault for happened, fault in found if happened]


def _whole(page: Path) -> bool:
    return page.read_text().rstrip().endswith("</html>")


def main() -> int:
    """Run as many as the first argument says, from the seed that the second says."""
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    count, wrong, seen = int(sys.argv[1]), 0, Counter()
    with ForkingServer() as server, tempfile.TemporaryDirectory() as base:
        for begin in range(0, count, TOGETHER):
            end = min(begin + TOGETHER, count)
            for fault in run(server, range(first + begin, first + end), Path(base), seen):
                wrong += 1
                sys.stdout.write(fault + "\n")
                sys.stdout.flush()
            if end // 1000 > begin // 1000:
                sys.stderr.write(f"{end} of {count}: {wrong} wrong\n")
    for (command, code), times in sorted(seen.items()):
        sys.stdout.write(f"{command}: exit code {code}: {times}\n")
    sys.stdout.write(f"{count} inputs, seeds {first} to {first + count - 1}: {wrong or 'nothing'} wrong\n")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
