"""What krew installs: its own check of the manifest, and the plugin installed by krew itself from the archive."""

import os
import subprocess

import pytest
from tools.controlplane import build
from tools.deploy import krew

URL = "https://example.org/v0.1.0/kubectl-tenure.tar.gz"


@pytest.fixture(scope="module")
def programs():
    if not build.KREW.is_built:
        pytest.skip("no krew here: run 'python tools/controlplane/build.py --krew' (needs Go 1.26)")
    return build.build(build.KREW)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("krew")
    krew.make(folder, URL)
    return folder


def test_krew_s_own_check_finds_nothing_wrong(programs, made):
    run = subprocess.run([str(programs / "validate-krew-manifest"), "-manifest", str(made / krew.MANIFEST),
                          "-skip-install"], capture_output=True, text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    assert "structural validation OK" in run.stderr


def test_krew_installs_it_and_kubectl_runs_it(programs, made, tmp_path):
    """From manifest and archive alone; the first call makes an environment of its own, later ones use it."""
    environment = {**os.environ, "KREW_ROOT": str(tmp_path / "krew"), "HOME": str(tmp_path), "XDG_CACHE_HOME": ""}
    command = [str(programs / "krew"), "install", "--manifest", str(made / krew.MANIFEST), "--archive",
               str(made / krew.ARCHIVE)]  # fmt: skip
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    environment["PATH"] = f"{tmp_path / 'krew/bin'}:{os.environ['PATH']}"
    environment.pop("XDG_CACHE_HOME")
    for said in ("installing into", ""):
        told = subprocess.run([str(build.build() / "kubectl"), "tenure", "--help"], env=environment, cwd=tmp_path,
                              capture_output=True, text=True, check=False)  # fmt: skip
        assert told.returncode == 0, told.stderr
        assert "kubectl tenure" in told.stdout
        assert said in told.stderr
    assert told.stderr == ""
