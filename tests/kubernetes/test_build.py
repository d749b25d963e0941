"""Building the control plane says how far it is: with Go itself, on programs of its own that are quick to build."""

from __future__ import annotations

import io
import os
import pty
import re
import shutil
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from tools.controlplane import progress
from tools.controlplane.progress import LongStep

ROOT = Path(__file__).resolve().parents[2]
QUICK = {"pack": "cmd/pack", "nm": "cmd/nm"}
BUILD = f"""
import sys
from tools.controlplane import build
build.PROGRAMS.clear()
build.PROGRAMS.update({QUICK})
build._copy_files = lambda wanted: (wanted.folder / wanted.beside).mkdir(exist_ok=True)
sys.exit(build.main([]))
"""

pytestmark = pytest.mark.skipif(shutil.which("go") is None, reason="no Go here to build anything with")


def environment(folder):
    """Give an environment in which programs are built into a folder, with Go's own cache."""
    asked = subprocess.run(["go", "env", "GOCACHE"], capture_output=True, text=True, check=True)
    changed = {"XDG_CACHE_HOME": str(folder), "PYTHONPATH": str(ROOT), "GOCACHE": asked.stdout.strip()}
    return {**os.environ, **changed}


def test_in_a_log_each_program_is_a_line_with_its_number_and_its_seconds(tmp_path):
    run = subprocess.run([sys.executable, "-c", BUILD], cwd=ROOT, env=environment(tmp_path), capture_output=True,
                         text=True, check=False)  # fmt: skip
    assert run.returncode == 0, run.stderr
    said = run.stderr.splitlines()
    assert [re.sub(r"\d+ s$", "N s", line) for line in said] == [
        "building pack (1 of 2) …", "building pack (1 of 2): done after N s",
        "building nm (2 of 2) …", "building nm (2 of 2): done after N s",
    ]  # fmt: skip
    assert sorted(p.name for p in Path(run.stdout.strip()).iterdir()) == ["lock", "nm", "pack", "stages"]


def test_on_a_terminal_one_line_takes_the_place_of_the_last(tmp_path):
    here, there = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", BUILD], cwd=ROOT, env=environment(tmp_path), stderr=there,
                               stdout=subprocess.DEVNULL)  # fmt: skip
    os.close(there)
    said = b""
    with suppress(OSError):  # how a terminal says that nobody writes to it any more
        while part := os.read(here, 4096):
            said += part
    os.close(here)
    assert process.wait() == 0
    blank, *lines = said.decode().replace("\r\n", "\n").split("\r\x1b[K")
    assert blank == ""
    assert lines[0] == "building pack (1 of 2) …"
    assert re.fullmatch(r"building nm \(2 of 2\): done after \d+ s\n", lines[-1])
    assert [line.endswith("\n") for line in lines] == ["done after" in line for line in lines]


def fail_once(enough):
    while not enough():
        time.sleep(0.01)
    raise KeyError


def test_what_lasts_is_told_of_again_and_again_and_what_fails_is_said_to_have_failed(monkeypatch):
    monkeypatch.setattr(progress, "IN_LOG", 0.01)
    told = io.StringIO()
    with pytest.raises(KeyError), LongStep("building x (2 of 6)", told):
        fail_once(lambda: told.getvalue().count("\n") >= 3)
    first, *again, last = told.getvalue().splitlines()
    assert first == "building x (2 of 6) …"
    assert set(again) == {"building x (2 of 6) … 0 s"}
    assert last == "building x (2 of 6): failed after 0 s"
