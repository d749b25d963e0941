"""The sample on the page about plugins: the very code is laid out as an installed package, found, and asked."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from pathlib import Path

import pytest
from tests.actions.helpers import cluster, queue, runs, waits

from tenure.cli.terminal.outputs import write_cluster

PAGE = Path(__file__).parents[2] / "docs" / "plugins.md"
SOURCE = Path(__file__).parents[2] / "src"
TREE = [queue("a", guaranteed=2), queue("b", guaranteed=0)]


def block(language):
    """The only piece of code of one language on the page."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return found


def installed(where, code, entry=None):
    """Lay a package out as an installer leaves it, with the entry points that the page's project file names."""
    project = tomllib.loads(block("toml"))["project"]
    (where / "keepers.py").write_text(code, encoding="utf-8")
    about = where / f"{project['name']}-{project['version']}.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = entry or project["entry-points"]["tenure.plugins"]
    lines = "".join(f"{name} = {target}\n" for name, target in points.items())
    (about / "entry_points.txt").write_text(f"[tenure.plugins]\n{lines}")


def planned(where, state):
    """What the command says of a cluster, in a process of its own that sees the package."""
    write_cluster(state, str(where / "cluster.json"))
    path = os.pathsep.join((str(where), str(SOURCE)))
    done = subprocess.run(
        [sys.executable, "-c", "from tenure.cli.main import main; main()",
         "plan", str(where / "cluster.json"), "--format", "json"],
        capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": path},
    )  # fmt: skip
    return json.loads(done.stdout)


def state(labels=None, *, tasks=2):
    """One that could be taken cheaply, one that costs more, and one that waits for room."""
    cheap = replace(runs("cheap", "b", ["n0"] * tasks, minutes=1), labels=labels or {})
    work = [cheap, runs("dear", "b", ["n0"] * 2, minutes=50), waits("c", "a", gpus=2)]
    return cluster(TREE, work, gpus=2 + tasks)


def evicted(plan):
    return {step["workload"] for step in plan["steps"] if step["action"] == "evict"}


def test_without_the_sample_the_cheaper_one_goes(tmp_path):
    assert evicted(planned(tmp_path, state({"keep": "true"}))) == {"default/cheap"}


def test_the_sample_keeps_what_carries_its_label(tmp_path):
    """Both of its methods are asked: one victim is shielded, and no plan takes more than four tasks."""
    installed(tmp_path, block("python"))
    assert evicted(planned(tmp_path, state())) == {"default/cheap"}
    plan = planned(tmp_path, state({"keep": "true"}))
    assert evicted(plan) == {"default/dear"}
    alone = state({"keep": "true"})
    alone = replace(alone, workloads=tuple(replace(w, labels={"keep": "true"}) for w in alone.workloads))
    plan = planned(tmp_path, alone)
    assert evicted(plan) == set()
    assert {(r["workload"], r["shield"]) for r in plan["refused"]} >= {("default/cheap", "keepers")}
    large = state(tasks=5)
    large = replace(large, workloads=tuple(w for w in large.workloads if w.name != "dear"), nodes=(
        replace(large.nodes[0], allocatable={"nvidia.com/gpu": 5}),))  # fmt: skip
    plan = planned(tmp_path, large)
    assert evicted(plan) == set()
    assert "keepers" in json.dumps(plan["refused"]) + json.dumps(plan["pending"])


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('return cause == "quota" or', 'raise RuntimeError("no database") #'), "no database"),
        (("return len(tasks) <= 4", 'return "perhaps"'), "'perhaps'"),
    ],
)
def test_a_sample_that_misbehaves_is_named_and_counts_as_no(tmp_path, change, said):
    code = block("python")
    assert change[0] in code
    installed(tmp_path, code.replace(*change))
    plan = planned(tmp_path, state())
    assert evicted(plan) == set()
    (warning,) = [w for w in plan["warnings"] if "keepers" in w]
    assert said in warning
    assert "counts as no" in warning


def test_a_sample_that_cannot_be_loaded_is_named(tmp_path):
    installed(tmp_path, block("python"), {"keepers": "keepers:Keeper"})
    plan = planned(tmp_path, state({"keep": "true"}))
    assert evicted(plan) == {"default/cheap"}
    assert any("keepers" in w and "could not be loaded" in w for w in plan["warnings"])
