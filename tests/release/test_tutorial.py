"""The tutorial with a cluster, followed word by word: three shells, the control plane that it starts, what it shows."""

import os
import re
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.kubernetes.stage import wait_until
from tests.release.conftest import ROOT
from tools.controlplane import build
from tools.follow import not_printed
from tools.page_commands import steps_of

PAGE = (ROOT / "docs/tutorials/live-cluster.md").read_text()
STAYS = ("python tools/controlplane/start.py", "tenure scheduler")
"""What keeps its shell until the reader ends it."""


@pytest.fixture
def shell(tmp_path):
    """Give the folder of a checkout, and the environment of a shell in it as the page sets it up."""
    if not build.is_built():
        pytest.skip("no Kubernetes control plane here: run 'make controlplane' (needs Go 1.26)")
    for name in ("examples", "tools"):
        (tmp_path / name).symlink_to(ROOT / name)
    environment = {**os.environ, "PWD": str(tmp_path), "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    (line,) = re.findall(r"^export (.*)$", PAGE, re.MULTILINE)
    for word in line.split():
        name, _, value = word.partition("=")
        environment[name] = value.replace("$PWD", str(tmp_path)).replace("$PATH", environment["PATH"])
    return tmp_path, environment


def test_the_tutorial_with_a_cluster_is_followed_word_by_word(shell):
    """Each command of each step succeeds, and prints what the page shows below it."""
    folder, environment = shell
    missing = []
    with ExitStack() as stack:
        for step, (commands, shown) in enumerate(steps_of(PAGE.partition("## Play with it")[2])):
            printed = ""
            for command in commands:
                if command.startswith(STAYS):
                    stack.enter_context(staying(command, folder, environment, folder / f"{step}.log"))
                    continue
                done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True,
                                      text=True, check=False, timeout=300)  # fmt: skip
                assert done.returncode == 0, f"{command}: {done.stderr}"
                printed += done.stdout
            missing += not_printed(shown, printed)
    assert missing == []


class staying:  # noqa: N801  reads as what it does
    """A command that keeps its shell: it runs until the page has been followed, and then ends by Ctrl-C."""

    def __init__(self, command, folder, environment, log):
        self.log = log
        with log.open("wb") as written:
            self.process = subprocess.Popen(["bash", "-c", f"exec {command}"], cwd=folder, env=environment,
                                            stdout=written, stderr=written)  # fmt: skip

    def __enter__(self):
        wait_until(lambda: re.search(r"kubectl is|scheduler starts", self.log.read_text()) or self.process.poll(),
                   "it does not start")  # fmt: skip
        assert self.process.poll() is None, self.log.read_text()

    def __exit__(self, *_):
        self.process.send_signal(2)
        began = time.monotonic()
        assert self.process.wait(60) == 0, self.log.read_text()
        assert time.monotonic() - began < 60
