"""What is tried before a release: minutes of work, so `make test-release` runs it and not `make test`."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.kubernetes.running import Scheduler
from tools.controlplane import build
from tools.controlplane.plane import ControlPlane, Options
from tools.deploy.write import DEPLOY

ROOT = Path(__file__).parents[2]
LANDED = "84a33e4"
"""The revision before there was a chart, from which users upgrade."""

if os.environ.get("TENURE_RELEASE") != "yes":
    collect_ignore_glob = ["test_*.py"]


class SchedulerOfCheckout(Scheduler):
    """A scheduler of whichever checkout its environment names, so by an interpreter that starts anew."""

    def launch(self, log):
        """Start its process."""
        return subprocess.Popen([sys.executable, "-m", "tenure", *self.options], stderr=log, env=self.environment)


class Helm:
    """Helm on a control plane, with the chart of this checkout."""

    def __init__(self, program, plane):
        self.program, self.plane = program, plane

    def __call__(self, *arguments):
        command = [str(self.program), "--kubeconfig", str(self.plane.kubeconfig), "--namespace", "tenure-system"]
        run = subprocess.run([*command, *arguments], capture_output=True, text=True, check=False)
        assert run.returncode == 0, run.stderr
        return run.stdout

    def chart(self, word, *arguments):
        """Install or upgrade the chart, and wait until it runs."""
        return self(word, "tenure", str(DEPLOY / "helm/tenure"), "--wait", "--timeout=120s", *arguments)


@pytest.fixture
def plane(tmp_path):
    """Give a control plane with nodes, on which kube-scheduler places what is not Tenure's."""
    if not build.is_built():
        pytest.skip("no Kubernetes control plane here: run 'make controlplane' (needs Go 1.26)")
    with ControlPlane(tmp_path / "plane", Options(scheduler=True)) as started:
        for number in range(3):
            started.add_node(f"node-{number}", {"cpu": "8", "memory": "32Gi", "nvidia.com/gpu": "4"})
        yield started


@pytest.fixture
def helm(plane):
    if not build.HELM.is_built:
        pytest.skip("no Helm here: run 'make helm' (needs Go 1.26)")
    return Helm(build.build(build.HELM) / "helm", plane)


@pytest.fixture
def scheduling(plane, tmp_path):
    """Give a context in which a scheduler runs with the rights that are installed, of this checkout or another."""

    @contextmanager
    def run(name, source=ROOT):
        token = plane.token_of("tenure", "tenure-system")
        scheduler = SchedulerOfCheckout(plane.kubeconfig_for(token, name), tmp_path, name)
        scheduler.environment["PYTHONPATH"] = str(source / "src")
        scheduler.start()
        try:
            yield scheduler
        finally:
            scheduler.stop()

    return run
