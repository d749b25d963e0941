"""Cluster files with what has to come out: each case's name is the sentence that it shows.

Beside ``NAME.yaml`` stands ``NAME.expected.yaml``: ``steps`` as ``ACTION TASK NODE [DEVICES]``, ``pending`` with the
codes of the reasons by workload, ``estimatedStart`` by workload where a case is about that, ``refused`` the shields
that kept a victim, ``cycles`` and ``every``.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tenure.model.duration import format_time, parse_duration
from tenure.model.load import load_cluster
from tenure.playthrough import play

CASES = sorted(path for path in Path(__file__).parent.glob("**/*.yaml") if path.with_suffix(".expected.yaml").exists())


def written(step):
    """Write a step as the cases do."""
    devices = f" {list(step.devices)}" if step.devices else ""
    return f"{step.action} {step.task} {step.node}{devices}"


def short(key):
    """Leave out the namespace where it is the usual one."""
    return key.removeprefix("default/")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path):
    expected = yaml.safe_load(path.with_suffix(".expected.yaml").read_text())
    loaded = load_cluster(path)
    assert loaded.warnings == ()
    every = parse_duration(expected.get("every", "1s"))
    played = play(loaded.cluster, cycles=expected.get("cycles", 1), every=every)
    assert [written(step) for step in played.steps] == expected.get("steps", [])
    assert {short(p.workload): [r.code for r in p.reasons] for p in played.pending} == expected.get("pending", {})
    assert sorted({r.shield for r in played.refused}) == expected.get("refused", [])
    starts = {short(p.workload): p.estimated_start for p in played.pending}
    for name, time in expected.get("estimatedStart", {}).items():
        assert (starts[name] and format_time(starts[name])) == time


def test_there_are_cases():
    assert len(CASES) >= 30
