"""What authors of plugins import: the protocols are those that are asked."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from inspect import signature

from tests.builders import cluster, node, queue, spec, workload

from tenure import plugins
from tenure.engine.snapshot import session_of
from tenure.plugins import PlanValidator, VictimFilter
from tenure.shields.plugins import EvictionPlugins

TYPED = """
from tenure.plugins import Cause, PlanValidator, TaskName, VictimFilter, Workload

class Both:
    name = "both"

    def allow_victim(self, contender: Workload | None, victim: Workload, cause: Cause, now: int) -> bool:
        return victim.priority < 10

    def allow_plan(
        self, contender: Workload | None, victims: tuple[Workload, ...], tasks: tuple[TaskName, ...], cause: Cause,
        now: int,
    ) -> bool:
        return len(tasks) < 4

one: VictimFilter = Both()
other: PlanValidator = Both()
"""


class Recording:
    """A plugin that keeps what it is given."""

    name = "recording"

    def __init__(self):
        self.given = []

    def allow_victim(self, contender, victim, cause, now):
        self.given.append((VictimFilter.allow_victim, (contender, victim, cause, now)))
        return True

    def allow_plan(self, contender, victims, tasks, cause, now):
        self.given.append((PlanValidator.allow_plan, (contender, victims, tasks, cause, now)))
        return True


def test_what_is_asked_is_what_the_protocols_say():
    """Argument by argument, of the types that the module exports."""
    found = cluster([node("n")], [workload("w", of=spec(cpu=1), on="n", running=60, queue="q")], [queue("q")])
    session, plugin = session_of(found), Recording()
    assert isinstance(plugin, VictimFilter)
    assert isinstance(plugin, PlanValidator)
    asked, victim = EvictionPlugins([plugin]), session.workloads["default/w"]
    assert asked.filter(session, "quota", None, victim) is None
    assert asked.validate(session, "quota", None, victim.tasks) is None
    for method, given in plugin.given:
        names = list(signature(method).parameters)[1:]
        told = dict(zip(names, given, strict=True))
        assert told["contender"] is None
        assert told["cause"] == "quota"
        assert told["now"] == session.now
        for one in told.get("victims", (told.get("victim"),)):
            assert isinstance(one, plugins.Workload)
    assert [method for method, _ in plugin.given] == [VictimFilter.allow_victim, PlanValidator.allow_plan]


def test_the_package_is_typed_and_a_plugin_passes_a_strict_type_checker(tmp_path):
    """As its author would have it checked."""
    assert files("tenure").joinpath("py.typed").is_file()
    file = tmp_path / "both.py"
    file.write_text(TYPED)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path / "cache"), str(file)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
