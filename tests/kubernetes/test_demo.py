"""The demonstration, run as one would run it: what it announces happens on the control plane that it starts."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_all_scenes_happen(programs):
    """A reclaim after the minimum runtime, a requeue, a move, and tries of a tenant that are refused: all live."""
    assert programs.exists()
    command = [sys.executable, "examples/demo_kubernetes.py"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, timeout=400)
    assert run.returncode == 0, run.stdout + run.stderr
    scenes = run.stdout.split("\033[1m")[1:]
    assert [scene[0] for scene in scenes] == ["1", "2", "3", "4"]
    for scene, words in zip(
        scenes,
        ("gives way to team/training", "is requeued for", "has a place to land", "refused: "),
        strict=True,
    ):
        assert words in scene
    assert "vision had its 20 s" in scenes[0]
