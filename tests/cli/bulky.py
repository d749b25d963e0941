"""Large inputs of every kind that Tenure reads, made to a size: valid ones, and such as are made to take long.

Each is a command and its files. An answer, which may be that something is wrong and where, comes within `SECONDS` of
the processor and `MEBIBYTES` of memory for 10 MB; ``python benchmarks/b27_large_inputs.py`` measures all of them.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.cli.forking import Answer, ForkingServer

SECONDS = 10.0
"""Seconds of the processor that an answer may take."""

MEBIBYTES = 500
"""Most memory that it may hold."""

NOW = "2026-11-20T10:00:00Z"
HEAD = f"apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnow: {NOW}\n"
NODE = "nodes: [{name: n, allocatable: {cpu: 8}}]\n"


class BulkyInput(NamedTuple):
    """An input: the files by name, and the words of the command, in which a file stands by its name."""

    name: str
    files: dict[str, bytes]
    words: tuple[str, ...]


def ask(given: BulkyInput, folder: Path, server: ForkingServer) -> Answer:
    """Write the files of an input and run its command on them, in a process of its own."""
    (answer,) = ask_together([given], folder, server)
    return answer


def ask_together(given: Sequence[BulkyInput], folder: Path, server: ForkingServer) -> list[Answer]:
    """Write the files of inputs, each in a folder of its own, and run their commands, one after the other."""
    commands = []
    for number, one in enumerate(given):
        own = folder / str(number)
        own.mkdir()
        for name, data in one.files.items():
            (own / name).write_bytes(data)
        commands.append((list(one.words), own))
    return server.run_together(commands)


def faults(given: BulkyInput, answer: Answer, *, seconds: float = SECONDS, letters: int = 2_000_000) -> list[str]:
    """Give what is wrong with the answer to an input; what it may take of the processor, and say, at most."""
    codes = (0, 1, 2, 3) if given.name.startswith("history") else (0, 1, 2)  # a store that cannot be read is outside
    found = {
        f"exit code {answer.code}": answer.code not in codes,
        "a traceback": "Traceback" in answer.said or "internal error" in answer.said,
        "says nothing": answer.code != 0 and not answer.said.strip(),
        f"{answer.seconds:.1f} s": answer.seconds > seconds,
        f"{answer.mebibytes:.0f} MiB": answer.mebibytes > MEBIBYTES,
        f"{len(answer.said):,} letters of errors": len(answer.said) > letters,
    }
    return [what for what, is_wrong in found.items() if is_wrong]


def lines(size: int, line: Callable[[int], str], head: str = "") -> str:
    """Repeat a line, made of its number, up to a size."""
    made, total, number = [head], len(head), 0
    while total < size:
        text = line(number)
        made.append(text)
        total += len(text)
        number += 1
    return "".join(made)


def inputs(size: int) -> Iterator[BulkyInput]:
    """Give all inputs of about so many bytes, one after the other: they do not fit into memory together."""
    for group in (clusters, yaml_of_its_own, settings, json_of_its_own, additions, queues_files, traces, parquet,
                  packed, summaries, histories):  # fmt: skip
        yield from group(size)


def clusters(size: int) -> Iterator[BulkyInput]:
    """Cluster files, as YAML and as JSON."""
    for name, text in cluster_texts(size):
        yield BulkyInput(f"cluster: {name}", {"c.yaml": text.encode()}, ("validate", "c.yaml"))


def cluster_texts(size: int) -> Iterator[tuple[str, str]]:
    """Give cluster files with what there is much of."""
    bare = HEAD + NODE
    yield (
        "nodes",
        lines(size, lambda i: f"- {{name: n{i}, allocatable: {{cpu: 8, memory: 64Gi}}}}\n", HEAD + "nodes:\n"),
    )
    yield (
        "workloads",
        lines(
            size, lambda i: f"- {{name: w{i}, requests: {{cpu: 1}}, tasks: [{{name: t{i}}}]}}\n", bare + "workloads:\n"
        ),
    )
    yield (
        "running gangs",
        lines(
            size,
            lambda i: (
                f"- name: w{i}\n  requests: {{cpu: 1m, memory: 1Ki}}\n  startedAt: {NOW}\n  tasks:\n"
                f"  - {{name: w{i}-a, node: n, phase: Running}}\n  - {{name: w{i}-b, node: n, phase: Running}}\n"
            ),
            bare + "workloads:\n",
        ),
    )
    yield "queues", lines(size, lambda i: f"- {{name: q{i}, max: {{cpu: 1}}}}\n", bare + "queues:\n")
    yield (
        "queues, each the next's parent",
        lines(size, lambda i: f"- {{name: q{i}, parent: q{i + 1}}}\n", bare + "queues:\n"),
    )
    yield (
        "queues, each the last's parent",
        lines(size, lambda i: f"- {{name: q{i}, parent: q{max(0, i - 1)}}}\n", bare + "queues:\n"),
    )
    yield "queues under one", lines(size, lambda i: f"- {{name: q{i}, parent: q0}}\n", bare + "queues:\n")
    yield "queues of unknown parents", lines(size, lambda i: f"- {{name: q{i}, parent: p{i}}}\n", bare + "queues:\n")
    yield (
        "workloads of unknown queues",
        lines(size, lambda i: f"- {{name: w{i}, queue: x{i}, requests: {{cpu: 1}}}}\n", bare + "workloads:\n"),
    )
    yield (
        "tasks on unknown nodes",
        lines(
            size,
            lambda i: f"  - {{name: t{i}, node: m{i}, phase: Running}}\n",
            f"{bare}workloads:\n- name: w\n  requests: {{cpu: 1}}\n  startedAt: {NOW}\n  tasks:\n",
        ),
    )
    yield (
        "tasks of one name",
        lines(size, lambda _: "  - {name: t}\n", f"{bare}workloads:\n- name: w\n  requests: {{cpu: 1}}\n  tasks:\n"),
    )
    yield "nodes of one name", lines(size, lambda _: "- {name: n, allocatable: {cpu: 8}}\n", HEAD + "nodes:\n")
    yield "unknown keys", lines(size, lambda i: f"key{i}: 1\n", bare)
    yield "wrong amounts", lines(size, lambda i: f"- {{name: n{i}, allocatable: {{cpu: many}}}}\n", HEAD + "nodes:\n")
    yield "resources", lines(
        size, lambda i: f"example.com/r{i}: 1, ", f"{HEAD}nodes:\n- name: n\n  allocatable: {{"
    ) + "cpu: 1}\n"  # fmt: skip
    yield "labels", lines(size, lambda i: f"    l{i}: v{i}\n", f"{HEAD}nodes:\n- name: n\n  labels:\n")
    yield (
        "taints",
        lines(size, lambda i: f"  - {{key: k{i}, effect: NoSchedule}}\n", f"{HEAD}nodes:\n- name: n\n  taints:\n"),
    )
    yield (
        "tolerations",
        lines(
            size, lambda i: f"  - {{key: k{i}, operator: Exists}}\n", f"{bare}workloads:\n- name: w\n  tolerations:\n"
        ),
    )
    yield (
        "affinity terms",
        lines(
            size,
            lambda i: f"      - matchExpressions: [{{key: k{i}, operator: In, values: [v{i}]}}]\n",
            f"{bare}workloads:\n- name: w\n  affinity:\n    nodeAffinity:\n"
            "     requiredDuringSchedulingIgnoredDuringExecution:\n      nodeSelectorTerms:\n",
        ),
    )
    yield (
        "subgroups",
        lines(size, lambda i: f"  - {{name: g{i}, minMember: 1}}\n", f"{bare}workloads:\n- name: w\n  subGroups:\n"),
    )
    yield (
        "subgroups in each other",
        lines(
            size,
            lambda i: f"  - {{name: g{i}, parent: g{i + 1}}}\n",
            f"{bare}workloads:\n- name: w\n  subGroups:\n",
        ),
    )
    yield (
        "disruption budgets",
        lines(
            size,
            lambda i: f"- {{name: b{i}, selector: {{matchLabels: {{a: v{i}}}}}, maxUnavailable: 1}}\n",
            bare + "disruptionBudgets:\n",
        ),
    )
    yield (
        "evictions",
        lines(
            size, lambda i: f"- {{workload: default/w{i}, task: t, at: {NOW}, cause: reclaim}}\n", bare + "evictions:\n"
        ),
    )
    yield "namespaces", lines(size, lambda i: f"- {{name: s{i}, labels: {{a: b}}}}\n", bare + "namespaces:\n")
    yield "one long name", f"{bare}queues: [{{name: {'q' * size}}}]\n"
    yield "one long amount", f"{HEAD}nodes: [{{name: n, allocatable: {{cpu: {'9' * size}}}}}]\n"
    yield "one long fraction", f"{HEAD}nodes: [{{name: n, allocatable: {{cpu: 0.{'9' * size}}}}}]\n"
    yield "one long duration", f"{bare}scheduler: {{requeueDelay: {'1h' * (size // 2)}}}\n"
    yield "one long moment", f"{bare}queues: [{{name: q, createdAt: 2026-11-20T10:00:00.{'0' * size}Z}}]\n"
    yield "one long expression", lines(size, lambda i: f"{i},", f"{bare}scheduler: {{x: '") + "'}\n"
    yield "empty entries", lines(size, lambda _: "- {}\n", HEAD + "nodes:\n")
    yield (
        "a count beyond all bounds",
        HEAD + lines(size, lambda i: f"- {{name: n{i}-, count: 60000, allocatable: {{cpu: 8}}}}\n", "nodes:\n"),
    )
    yield (
        "replicas beyond all bounds",
        lines(size, lambda i: f"- {{name: w{i}, replicas: 160000, requests: {{cpu: 1}}}}\n", bare + "workloads:\n"),
    )


def yaml_of_its_own(size: int) -> Iterator[BulkyInput]:
    """What YAML itself can do."""
    deep = int((2 * size) ** 0.5)
    texts = {
        "depth, in lines": "".join(f"{' ' * i}a:\n" for i in range(deep)),
        "depth, in brackets": "[" * size,
        "depth, in braces": "{a: " * (size // 4),
        "dashes": "- " * (size // 2),
        "question marks": "? " * (size // 2),
        "one mapping of aliases": lines(size, lambda i: f"k{i}: *a\n", "a: &a 1\n"),
        "anchors": lines(size, lambda i: f"- &a{i} {i}\n"),
        "aliases of unknown anchors": lines(size, lambda i: f"- *a{i}\n"),
        "aliases that double": "".join(
            f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 9) if i else 'x'}]\n" for i in range(60)
        )
        + "#" * size,
        "aliases of a large list": lines(size, lambda _: "- *a\n", f"- &a [{'1, ' * 1000}1]\n"),
        "merges of a large mapping": lines(
            size, lambda _: "- {<<: *a}\n", "- &a {" + ", ".join(f"k{i}: {i}" for i in range(1000)) + "}\n"
        ),
        "merges into one mapping": "anchors:\n"
        + lines(size // 2, lambda i: f"- &a{i} {{k{i}: 1}}\n")
        + "all:\n"
        + lines(size // 2, lambda i: f"  <<: *a{i}\n", ""),
        "a list of merges": (merged := lines(size // 2, lambda i: f"- &a{i} {{k{i}: 1}}\n", "anchors:\n"))
        + "all:\n  <<: ["
        + ", ".join(f"*a{i}" for i in range(merged.count("&")))
        + "]\n",
        "keys that are there twice": "a: 1\n" * (size // 5),
        "unknown tags": lines(size, lambda i: f"- !t{i} 1\n"),
        "documents": "---\n{a: 1}\n" * (size // 11),
        "empty documents": "---\n" * (size // 4),
        "comments": "# a comment\n" * (size // 12),
        "empty lines": "\n" * size,
        "blanks": " " * size,
        "tabs": "a:\n" + "\t" * size,
        "one text in quotes": f'a: "{"x" * size}"\n',
        "escapes": f'a: "{chr(92)}u0041{f"{chr(92)}n" * (size // 2)}"\n',
        "an open quote": f'a: "{"x" * size}\n',
        "one text over lines": "a: |\n" + "  text\n" * (size // 7),
        "one number": "a: " + "1" * size,
        "one exponent": "a: 1e" + "9" * size,
        "a word like a time": "a: " + "1:" * (size // 2),
        "small lists": "[" + "[]," * (size // 3) + "]",
        "small mappings": "[" + "{}," * (size // 3) + "]",
        "one list": "[" + "1," * (size // 2) + "]",
        "control characters": "a: b" + "\x01" * size,
        "wide characters": "a: " + "\U0001f600" * (size // 4),
    }
    for name, text in texts.items():
        yield BulkyInput(f"YAML: {name}", {"c.yaml": text.encode()}, ("validate", "c.yaml"))


def settings(size: int) -> Iterator[BulkyInput]:
    """Settings of the scheduler, a price list, and values on the command line."""
    head = "apiVersion: tenure.dev/v1alpha1\nkind: SchedulerConfig\nscheduler:\n"
    cases = {
        "unknown keys": lines(size, lambda i: f"  key{i}: 1\n", head),
        "actions": lines(size, lambda _: "allocate, ", head + "  actions: [") + "quota]\n",
        "unknown actions": lines(size, lambda i: f"act{i}, ", head + "  actions: [") + "quota]\n",
        "budgets": lines(
            size,
            lambda i: f"    - {{nodes: {i % 99}, schedule: '0 9 * * 1-5', duration: 8h}}\n",
            head + "  disruption:\n    budgets:\n",
        ),
        "costs": lines(size, lambda i: f"      example.com/r{i}: 1\n", head + "  disruption:\n    cost:\n"),
        "modes": lines(size, lambda i: f"    cause{i}: shadow\n", head + "  modes:\n"),
        "weights": lines(size, lambda i: f"    w{i}: 1\n", head + "  placement:\n"),
        "one schedule": head
        + "  disruption:\n    budgets:\n    - {nodes: 1, schedule: '"
        + "1," * (size // 2)
        + "1 * * * *'}\n",
        "schedulers": lines(size, lambda i: f"    - s{i}\n", head + "  rescheduler:\n    schedulers:\n"),
    }
    for name, text in cases.items():
        yield BulkyInput(f"settings: {name}", {"s.yaml": text.encode()}, ("validate", "s.yaml"))
    yield BulkyInput("settings to install: unknown keys", {"s.yaml": cases["unknown keys"].encode()},
                     ("install", "--config", "s.yaml"))  # fmt: skip
    kubeconfig = lines(
        size, lambda i: f"- {{name: u{i}, user: {{token: t}}}}\n", "apiVersion: v1\nkind: Config\nusers:\n"
    )
    yield BulkyInput("kubeconfig: users", {"k.yaml": kubeconfig.encode()}, ("queues", "--kubeconfig", "k.yaml"))
    yield BulkyInput("changes: one that is long", {"c.yaml": (HEAD + NODE).encode()},
                     ("plan", "c.yaml", "--set", f"queue.{'q' * 100_000}.weight=1"))  # fmt: skip
    many = [word for i in range(min(size // 100, 20_000)) for word in ("--set", f"queue.q{i}.max.cpu=1")]
    yield BulkyInput("changes: many", {"c.yaml": (HEAD + NODE).encode()}, ("plan", "c.yaml", *many))


def json_of_its_own(size: int) -> Iterator[BulkyInput]:
    """Cluster files as JSON, and what JSON itself can do."""
    workload = {"name": "w", "requests": {"cpu": 1}, "tasks": [{"name": "t"}]}
    texts = {
        "workloads": json.dumps(
            {"apiVersion": "tenure.dev/v1alpha1", "kind": "Cluster", "now": NOW,
             "nodes": [{"name": "n", "allocatable": {"cpu": 8}}],
             "workloads": [{**workload, "name": f"w{i}"} for i in range(size // 75)]}
        ),
        "depth, in brackets": "[" * size,
        "depth, in braces": '{"a":' * (size // 5),
        "depth, closed": "[" * (size // 2) + "]" * (size // 2),
        "keys that are there twice": "{" + '"a":1,' * (size // 6) + '"a":1}',
        "a key twice at the end": "{" + lines(size, lambda i: f'"k{i}":1,') + '"k0":1}',
        "small lists": "[" + "[]," * (size // 3) + "[]]",
        "small mappings": "[" + "{}," * (size // 3) + "{}]",
        "one list": "[" + "1," * (size // 2) + "1]",
        "unknown keys": "{" + lines(size, lambda i: f'"k{i}":1,') + '"k":1}',
        "one number": "[" + "1" * size + "]",
        "one exponent": "[1e" + "9" * size + "]",
        "one text": '["' + "x" * size + '"]',
        "escapes": '["' + "\\u0041" * (size // 6) + '"]',
        "halves of characters": '["' + "\\ud800" * (size // 6) + '"]',
        "blanks": "[" + " " * size + "]",
        "cut off": '[{"a": "' + "x" * size,
        "words that are none": "[" + "NaN," * (size // 4) + "nul]",
    }  # fmt: skip
    for name, text in texts.items():
        yield BulkyInput(f"JSON: {name}", {"c.json": text.encode()}, ("validate", "c.json"))
    # A file in flow style is tried as JSON first, then read as YAML.
    yield BulkyInput("JSON: read as YAML in the end", {"c.yaml": ("[" + "[]," * (size // 3) + "a]").encode()},
                     ("validate", "c.yaml"))  # fmt: skip


def additions(size: int) -> Iterator[BulkyInput]:
    """Files of ``--add``: workloads, and manifests of Pods and Jobs."""
    base = (HEAD + NODE).encode()
    pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d}\nspec: {containers: [{name: c, image: i}]}\n"
    job = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j%d}\nspec:\n  parallelism: 160000\n"
    job += "  template: {spec: {containers: [{name: c}]}}\n"
    one = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n"
    cases = {
        "workloads of unknown queues": lines(size, lambda i: f"- {{name: w{i}, queue: x{i}}}\n", "workloads:\n"),
        "pods that are wrong": lines(size, lambda i: f"---\n{pod % i}".replace("containers", "bottles")),
        "objects of unknown kinds": lines(size, lambda i: f"---\nkind: K{i}\nmetadata: {{name: a}}\n"),
        "jobs beyond all bounds": lines(size, lambda i: f"---\n{job % i}"),
        "one object's kind": f"kind: {'K' * size}\n",
        "containers": lines(
            size, lambda i: f"  - {{name: c{i}, resources: {{requests: {{cpu: x}}}}}}\n",
            one + "  containers:\n",
        ),
        "environment": lines(
            size, lambda i: f"    - {{name: E{i}, value: v}}\n", one + "  containers:\n  - name: c\n    env:\n"
        ),
        "list": lines(
            size, lambda i: f"- {{apiVersion: v1, kind: Nothing, metadata: {{name: p{i}}}}}\n",
            "apiVersion: v1\nkind: List\nitems:\n",
        ),
    }  # fmt: skip
    for name, text in cases.items():
        yield BulkyInput(f"--add: {name}", {"c.yaml": base, "a.yaml": text.encode()},
                         ("plan", "c.yaml", "--add", "a.yaml"))  # fmt: skip


def queues_files(size: int) -> Iterator[BulkyInput]:
    """YuniKorn's ``queues.yaml``."""
    head = "partitions:\n- name: default\n  queues:\n"
    deep = int((size / 4) ** 0.5)
    nested = "".join(f"{'  ' * (2 * i + 1)}- name: q{i}\n{'  ' * (2 * i + 2)}queues:\n" for i in range(min(deep, 40)))
    cases = {
        "queues": lines(size, lambda i: f"    - {{name: q{i}}}\n", head + "  - name: root\n    queues:\n"),
        "depth": head + nested + "#" * size,
        "depth, in braces": "partitions: [{name: default, queues: " + "[{name: a, queues: " * (size // 19),
        "limits": lines(
            size, lambda i: f"    - {{users: [u{i}], maxapplications: 1}}\n",
            head + "  - name: root\n    limits:\n",
        ),
        "users of a limit": lines(
            size, lambda i: f"u{i}, ",
            head + "  - name: root\n    limits:\n    - users: [",
        ) + "u]\n",
        "rules": lines(
            size, lambda _: "  - {name: tag, value: namespace, create: true}\n",
            "partitions:\n- name: default\n  placementrules:\n",
        ),
        "partitions": lines(size, lambda i: f"- {{name: p{i}, queues: [{{name: root}}]}}\n", "partitions:\n"),
        "queues of one name": lines(size, lambda _: "    - {name: q}\n", head + "  - name: root\n    queues:\n"),
        "unknown keys": lines(size, lambda i: f"    key{i}: 1\n", head + "  - name: root\n"),
        "wrong amounts": lines(
            size, lambda i: f"    - {{name: q{i}, resources: {{max: {{vcore: x}}}}}}\n",
            head + "  - name: root\n    queues:\n",
        ),
    }  # fmt: skip
    for name, text in cases.items():
        yield BulkyInput(f"queues.yaml: {name}", {"queues.yaml": text.encode()}, ("validate", "queues.yaml"))


SWF = "{i} {i} 1 10 1 -1 -1 1 20 -1 1 1 1 -1 1 -1 -1 -1\n"
HEADERS = {
    "swf": "; MaxProcs: 4\n",
    "openb": "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n",
    "philly": "job_id,submit_s,runtime_s,pods,gpus_per_pod,queue\n",
    "tenure": "job,submit_s,runtime_s,queue,pods,labels\n",
    "helios": "job_id,submit_time,gpu_num,node_num,start_time,end_time,vc\n",
    "pai": "job_name,inst_num,start_time,end_time,plan_cpu,plan_mem,plan_gpu\n",
    "sacct": "JobID|Submit|Start|End|ReqTRES|Account\n",
    "google": "time,type,collection_id,instance_index,cpus\n",
    "azure": "vmid,vmcreated,vmdeleted,vmcorecount,vmmemory\n",
}
ROWS = {
    "swf": SWF,
    "openb": "p{i},1000,1024,1,500,\n",
    "philly": "j{i},{i},10,1,1,q{i}\n",
    "tenure": "j{i},{i},10,q{i},1,a=b\n",
    "helios": "{i},2020-06-09 18:41:01,1,1,2020-06-09 18:41:01,2020-06-09 18:42:01,q{i}\n",
    "pai": "j{i},1.0,10.0,20.0,100.0,1.0,50.0\n",
    "sacct": "{i}|2024-01-05T10:00:00|2024-01-05T10:00:00|2024-01-05T11:00:00|cpu=10|q{i}\n",
    "google": "{i},3,1{i},0,0.5\n",
    "azure": "v{i},0,600,2,4\n",
}
WRONG = {
    "swf": "{i} x 1\n",
    "openb": "p{i},x,1024,1,500,\n",
    "philly": "j{i},x,10,1,1,q\n",
    "tenure": "j{i},x,10,q,1,a=b\n",
    "helios": "{i},soon,1,1,,,q\n",
    "pai": "j{i},many,10.0,20.0,100.0,1.0,50.0\n",
    "sacct": "{i}|soon|||cpu=10|q\n",
    "google": "{i},x,1,0,0.5\n",
    "azure": "v{i},x,600,2,4\n",
}
TWICE = {
    "swf": SWF.replace("{i} {i}", "1 1"),
    "openb": "p,1000,1024,1,500,\n",
    "philly": "j,1,10,1,1,q\n",
    "tenure": "j,1,10,q,1,a=b\n",
    "helios": "1,2020-06-09 18:41:01,1,1,2020-06-09 18:41:01,2020-06-09 18:42:01,q\n",
    "pai": "j,1.0,10.0,20.0,100.0,1.0,50.0\n",
    "sacct": "1|2024-01-05T10:00:00|2024-01-05T10:00:00|2024-01-05T11:00:00|cpu=10|q\n",
    "google": "1,3,1,0,0.5\n",
    "azure": "v,0,600,2,4\n",
}
LARGEST = {
    "swf": SWF.replace(" 1 10 1 ", " 1 10 1000000000 "),
    "openb": "p{i},1000000000000,1000000000000,1024,1000,\n",
    "philly": "j{i},{i},10,100000,8,q\n",
    "tenure": "j{i},{i},10,q,100000,a=b\n",
    "helios": "{i},2020-06-09 18:41:01,99999,100000,2020-06-09 18:41:01,2020-06-09 18:42:01,q\n",
    "pai": "j{i},100000,10.0,20.0,100.0,1.0,50.0\n",
    "sacct": "{i}|2024-01-05T10:00:00|2024-01-05T10:00:00|2024-01-05T11:00:00|cpu=99999,node=100000|q\n",
    "google": "1,3,1,{i},0.5\n",
    "azure": "v{i},0,600,100,100\n",
}

JSON_RECORDS = {
    "philly-json": '{"jobid": "a#", "submitted_time": "2017-10-07 01:00:00", "attempts": []}',
    "google": '{"time": "#", "type": "3", "collection_id": "1#", "instance_index": "0"}',
    "sacct": '{"jobs": [{"job_id": 1#, "time": {"submission": 1}}]}',
}
"""Records of JSON; ``#`` stands for a number."""


def traces(size: int) -> Iterator[BulkyInput]:
    """Traces of every format, read and cut to nothing, so that reading is what is measured."""
    for form, head in HEADERS.items():
        last = ROWS[form].format(i=0).rstrip("\n")
        long_cell = last.replace("0", "9" * size, 1) if form == "swf" else last.replace("0", "0" * size, 1)
        cases = {
            "jobs": lines(size, lambda i, f=form: ROWS[f].format(i=i), head),
            "wrong lines": lines(size, lambda i, f=form: WRONG[f].format(i=i), head),
            "jobs of one name": lines(size, lambda _, f=form: TWICE[f], head),
            "jobs as large as can be": lines(size, lambda i, f=form: LARGEST[f].format(i=i), head),
            "one long cell": head + long_cell + "\n",
            "one long line": head + "a " * (size // 2) + "," * 5 + "\n",
            "cells": head + "," * size + "\n",
            "columns": head.rstrip("\n") + lines(size, lambda i: f",c{i}") + "\n",
            "an open quote": head + '"' + "x" * size,
            "quotes": head + '""' * (size // 2) + "\n",
            "empty lines": head + "\n" * size,
            "header lines": head + "; MaxProcs: 4\n" * (size // 14),
            "NUL": head + "\0" * size,
        }
        for name, text in cases.items():
            yield BulkyInput(f"trace, {form}: {name}", {"t.trace": text.encode(), "c.yaml": (HEAD + NODE).encode()},
                             cut_to_nothing(form))  # fmt: skip
    for form, record in JSON_RECORDS.items():
        cases = {
            "jobs": "[" + lines(size, lambda i, r=record: r.replace("#", str(i)) + ",\n") + record + "]",
            "lines": lines(size, lambda i, r=record: r.replace("#", str(i)) + "\n"),
            "jobs of one name": "[" + lines(size, lambda _, r=record: r + ",\n") + record + "]",
            "one long text": "[" + record.replace("#", "9" * size) + "]",
            "wrong jobs": "[" + lines(size, lambda _: "{},\n") + record + "]",
            "nesting": '[{"attempts": ' + "[" * size,
            "blanks": "[" + " \n" * (size // 2) + record + "]",
            "keys": '{"a": 1,' * (size // 8),
        }
        for name, text in cases.items():
            files = {"t.trace": text.encode(), "c.yaml": (HEAD + NODE).encode()}
            yield BulkyInput(f"trace, {form}, JSON: {name}", files,
                             cut_to_nothing(form))  # fmt: skip
    nodes = lines(size, lambda i: f"n{i},8000,1024,1,T4\n", "sn,cpu_milli,memory_mib,gpu,model\n")
    pods = HEADERS["openb"] + ROWS["openb"].format(i=1)
    words = ("simulate", "pods.csv", "--nodes", "nodes.csv", "--from", "1e9")
    yield BulkyInput("trace, openb: list of nodes", {"pods.csv": pods.encode(), "nodes.csv": nodes.encode()}, words)
    labels = HEADERS["tenure"] + "j,1,1,q,1," + lines(size, lambda i: f"k{i}=v;") + "k=v\n"
    yield BulkyInput("trace, tenure: labels", {"t.trace": labels.encode(), "c.yaml": (HEAD + NODE).encode()},
                     cut_to_nothing("tenure"))  # fmt: skip


def cut_to_nothing(form: str) -> tuple[str, ...]:
    """Give the command that reads a trace and simulates none of its jobs."""
    return ("simulate", "t.trace", "--trace-format", form, "--cluster", "c.yaml", "--from", "1e10")


def parquet(size: int) -> Iterator[BulkyInput]:
    """Tables as Parquet: a trace, and few bytes that stand for many rows."""
    import pyarrow as pa  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # noqa: PLC0415

    def written(columns: dict[str, list[object]], **options: object) -> bytes:
        out = io.BytesIO()
        pq.write_table(pa.table(columns), out, **options)
        return out.getvalue()

    rows = size // 20
    jobs = {"job": [f"j{i}" for i in range(rows)], "submit_s": list(range(rows)), "runtime_s": [10.0] * rows}
    alike = {"job": ["j"] * 990_000, "submit_s": [1] * 990_000}
    for name, data in {
        "jobs": written(jobs),
        "rows that are alike": written(alike, compression="zstd"),
        "one long cell": written({"job": ["j" * size], "submit_s": [1]}, compression="none"),
        "columns": written({f"c{i}": [1] for i in range(min(size // 500, 5_000))}),
        "cut off": written(jobs)[: size // 2],
        "no Parquet behind its mark": b"PAR1" + b"\xff" * size + b"PAR1",
    }.items():
        yield BulkyInput(f"trace, Parquet: {name}", {"t.trace": data, "c.yaml": (HEAD + NODE).encode()},
                         cut_to_nothing("tenure"))  # fmt: skip


def packed(size: int) -> Iterator[BulkyInput]:
    """What is gzipped: as large as its content says, and bombs, of which a few bytes stand for very many."""
    jobs = lines(size, lambda i: ROWS["tenure"].format(i=i), HEADERS["tenure"]).encode()
    yield BulkyInput("gzip: trace", {"t.trace": gzip.compress(jobs, 1), "c.yaml": (HEAD + NODE).encode()},
                     cut_to_nothing("tenure"))  # fmt: skip
    swf = lines(size, lambda i: SWF.format(i=i), HEADERS["swf"]).encode()
    yield BulkyInput("gzip: swf trace", {"t.trace": gzip.compress(swf, 1), "c.yaml": (HEAD + NODE).encode()},
                     cut_to_nothing("swf"))  # fmt: skip
    zeros = 100 * size
    bombs = {"zeros": b"\0", "lists": b"[],", "numbers": b"1,", "mappings": b"{},", "blanks": b" ", "lines": b"a,1\n"}
    for name, piece in bombs.items():
        start = b"[" if name in ("lists", "numbers", "mappings") else b""
        data = gzip.compress(start + piece * (zeros // len(piece)), 1)
        yield BulkyInput(f"gzip: a bomb of {name}, as a cluster file", {"c.json.gz": data}, ("validate", "c.json.gz"))
        yield BulkyInput(f"gzip: a bomb of {name}, as a trace", {"t.trace": data, "c.yaml": (HEAD + NODE).encode()},
                         cut_to_nothing("tenure"))  # fmt: skip
    yield BulkyInput("gzip: cut off", {"c.yaml.gz": gzip.compress(jobs, 1)[:-20]}, ("validate", "c.yaml.gz"))
    yield BulkyInput("gzip: damaged", {"c.yaml.gz": gzip.compress(jobs, 1)[:100] + b"\xff" * size},
                     ("validate", "c.yaml.gz"))  # fmt: skip


def summaries(size: int) -> Iterator[BulkyInput]:
    """Summaries that are compared, and price lists."""
    real = {"jobs": 1, "wait_s": {"mean": 1}, "boundedSlowdown": {"mean": 1}}
    many = {**real, "queues": [{"name": f"q{i}", "wait_s": {"mean": 1.0}} for i in range(size // 45)]}
    texts = {
        "queues": json.dumps(many),
        "evictions": json.dumps({**real, "evictions": {f"cause{i}": i for i in range(size // 18)}}),
        "unknown fields": json.dumps({**real, **{f"f{i}": i for i in range(size // 16)}}),
        "something else": "[" + "{}," * (size // 3) + "{}]",
        "depth": "[" * size,
    }
    for name, text in texts.items():
        yield BulkyInput(f"summary: {name}", {"a.json": text.encode(), "b.json": text.encode()},
                         ("compare", "a.json", "b.json"))  # fmt: skip
    prices = lines(size, lambda i: f"example.com/r{i}: 1\n")
    record = history_line(0)
    yield BulkyInput("prices", {"p.yaml": prices.encode(), "h.jsonl": record.encode()},
                     ("report", "--prices", "p.yaml", "--history", "h.jsonl"))  # fmt: skip


def history_line(number: int, payload: str = '{"message": "x"}') -> str:
    """Give a record of a history as it stands in an export."""
    head = f'"at": {1_763_632_800_000_000 + number}, "kind": "evicted", "workload": "default/w{number}", "queue": "q"'
    rest = '"cause": "reclaim", "beneficiary": "default/b", "value": 1, "cluster": "c", "pool": "default", "plan": ""'
    return f'{{{head}, {rest}, "sequence": {number}, "version": 1, "key": "{number:032x}", "payload": {payload}}}\n'


def histories(size: int) -> Iterator[BulkyInput]:
    """Exports of a history, brought in and read as they are."""
    records = lines(size, history_line).encode()
    cases = {
        "records": records,
        "records that are wrong": lines(size, lambda i: f'{{"at": {i}}}\n').encode(),
        "one line": b'{"at": "' + b"x" * size,
        "depth": b"[" * size,
        "empty lines": b"\n" * size,
        "one payload": history_line(0, json.dumps({"message": "x" * size})).encode(),
        "deep payload": history_line(0, '{"a":' * (size // 6) + "1" + "}" * (size // 6)).encode(),
        "wide payload": history_line(0, json.dumps({f"k{i}": i for i in range(size // 14)})).encode(),
        "NUL": b"\0" * size,
    }
    for name, data in cases.items():
        yield BulkyInput(f"history: import of {name}", {"e.jsonl": data},
                         ("history", "import", "e.jsonl", "--history", "h.db"))  # fmt: skip
    yield BulkyInput("history: import, packed", {"e.jsonl.gz": gzip.compress(records, 1)},
                     ("history", "import", "e.jsonl.gz", "--history", "h.db"))  # fmt: skip
    yield BulkyInput("history: import of a bomb", {"e.jsonl.gz": gzip.compress(b"x" * (100 * size), 1)},
                     ("history", "import", "e.jsonl.gz", "--history", "h.db"))  # fmt: skip
    yield BulkyInput("history: report", {"h.jsonl": records}, ("report", "--history", "h.jsonl"))
    yield BulkyInput("history: story", {"h.jsonl": records}, ("story", "default/w1", "--history", "h.jsonl"))
    yield BulkyInput("history: replay", {"h.jsonl": records}, ("replay", "--from", "h.jsonl"))
    yield BulkyInput("history: no database behind its name", {"h.db": b"SQLite format 3\0" + b"\xff" * size},
                     ("report", "--history", "h.db"))  # fmt: skip
