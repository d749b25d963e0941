"""What the simulator's parts do not import."""

import subprocess
import sys

import pytest


def imported(code):
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_the_checker_shares_no_code_with_the_engine():
    modules = imported("import tenure.simulator.checker")
    foreign = ("tenure.engine", "tenure.actions", "tenure.fairness", "tenure.clusters", "tenure.cycle")
    assert "tenure.simulator.checker" in modules
    assert not {module for module in modules if module.startswith(foreign)}


@pytest.mark.parametrize("code", ["import tenure.cli.generate", "import tenure.simulator.trace"])
def test_commands_and_readers_load_without_heavy_libraries(code):
    assert not imported(code) & {"numpy", "pydantic", "rich", "pyarrow"}
