"""The wheel on a machine that has nothing else of the project: an empty home, installed as users install programs."""

import os
import shutil
import subprocess
import sys

import pytest
from tests.release.conftest import ROOT
from tools.deploy.wheel import build_wheel


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Give an empty home with the wheel in it, and a cluster file as somebody would have one."""
    folder = tmp_path_factory.mktemp("home")
    build_wheel(folder)
    shutil.copy(ROOT / "examples/cluster.yaml", folder / "mine.yaml")
    return folder


def call(home, *command):
    """Run a command with nothing of this checkout in its environment."""
    environment = {"HOME": str(home), "PATH": f"{home / '.local/bin'}:/usr/bin:/bin", "LANG": "C.UTF-8"}
    environment |= {name: text for name, text in os.environ.items() if name.startswith(("PIP_", "UV_", "SSL_"))}
    return subprocess.run([*map(str, command)], cwd=home, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("installer", ["pipx", "uv tool"])
def test_the_wheel_is_installed_and_plans(home, installer):
    """`tenure plan` works, and so does the report, whose parts are in the wheel; then it is taken away again."""
    (wheel,) = home.glob("*.whl")
    if installer == "pipx":
        made = subprocess.run(
            [sys.executable, "-m", "uv", "venv", "--quiet", "--seed", str(home / "pipx")], check=False
        )
        assert made.returncode == 0
        assert call(home, home / "pipx/bin/pip", "install", "--quiet", "pipx").returncode == 0
        program = [home / "pipx/bin/pipx"]
    else:
        program = [sys.executable, "-m", "uv", "tool"]
    installed = call(home, *program, "install", wheel)
    assert installed.returncode == 0, installed.stderr
    planned = call(home, "tenure", "plan", "mine.yaml", "--report", f"{installer[:2]}.html")
    assert planned.returncode == 0, planned.stderr
    assert "14 bindings; 3 workloads wait" in planned.stdout
    assert (home / f"{installer[:2]}.html").read_text().rstrip().endswith("</html>")
    assert call(home, *program, "uninstall", "tenure").returncode == 0
    assert not (home / ".local/bin/tenure").exists()
