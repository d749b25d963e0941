"""The commands of README and docs run, word by word, in a clean checkout that has nothing but what it ships."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(?:sh|bash|console|shell)?\n(.*?)^```", re.MULTILINE | re.DOTALL)

ELSEWHERE = {
    r"--live\b|--kubeconfig|^tenure (scheduler|snapshot|queues|workloads|pause)\b|kubectl|--drain|--dry-run":
        "needs a cluster; tests/kubernetes runs these against a real control plane",
    r"KTH-SP2|openb_pod_list|philly": "needs a trace that is not ours to ship; tests/simulator replays them",
    r"^make\b|^pip|^uv\b|^git\b|^docker\b": "installs, or is run by the integration itself",
    r"tenure console\b": "serves until it is ended; tests/browser looks at it",
    r"[A-Z]{3,}\b(?!\.|=)|…|\bc\.yaml\b|<": "has a placeholder for what is the reader's own",
}  # fmt: skip
"""Commands that do not run here, and why."""


def commands():
    """Give page and command of each line of a fenced block that begins with ``tenure``."""
    for page in PAGES:
        for block in FENCE.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                command = re.sub(r"\s+#.*", "", line.strip().removeprefix("$ ")).strip()
                if command.startswith("tenure ") and not any(re.search(p, command) for p in ELSEWHERE):
                    yield page.name, " ".join(command.split())


COMMANDS: dict[str, list[str]] = {}
for _page, _command in commands():
    COMMANDS.setdefault(_page, []).append(_command)


def test_commands_are_found():
    assert len(COMMANDS["README.md"]) >= 10


@pytest.mark.parametrize("page", COMMANDS)
def test_the_commands_of_a_page_run_word_by_word_one_after_the_other(page, tmp_path):
    for name in ("examples", "docs", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    environment = {**os.environ, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    for command in COMMANDS[page]:
        done = subprocess.run(["bash", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True,
                              check=False, timeout=600)  # fmt: skip
        assert done.returncode == 0, f"{page}: {command}: {done.stderr}"
