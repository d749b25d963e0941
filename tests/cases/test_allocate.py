"""Cluster files with what has to come out: each case's name is the sentence that it shows.

Beside ``NAME.yaml`` stands ``NAME.expected.yaml``: ``steps`` as ``ACTION TASK NODE [DEVICES]``, ``pending`` with the
codes of the reasons by workload, ``estimatedStart`` by workload where a case is about that, ``moves`` the certificates
where one is about those, ``refused`` the shields that kept a victim, ``cycles`` and ``every``. ``without`` is the
difference to a file in which one rule is taken away, entries of lists by name, null for nothing; ``evicted`` are the
tasks that go then: so this rule alone kept them.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from tenure.model.file.load import load_cluster
from tenure.model.values.duration import format_time, parse_duration
from tenure.playthrough import play

CASES = sorted(path for path in Path(__file__).parent.glob("**/*.yaml") if path.with_suffix(".expected.yaml").exists())
RULES = [path for path in CASES if "without:" in path.with_suffix(".expected.yaml").read_text()]


def written(step):
    """Write a step as the cases do."""
    devices = f" {list(step.devices)}" if step.devices else ""
    return f"{step.action} {step.task} {step.node}{devices}"


def short(key):
    """Leave out the namespace where it is the usual one."""
    return key.removeprefix("default/")


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path):
    expected = yaml.load(path.with_suffix(".expected.yaml").read_text(), yaml.CSafeLoader)
    loaded = load_cluster(path)
    assert loaded.warnings == ()
    every = parse_duration(expected.get("every", "1s"))
    played = play(loaded.cluster, cycles=expected.get("cycles", 1), every=every)
    assert [written(step) for step in played.steps] == expected.get("steps", [])
    assert {short(p.workload): [r.code for r in p.reasons] for p in played.pending} == expected.get("pending", {})
    assert sorted({r.shield for r in played.refused}) == expected.get("refused", [])
    if "moves" in expected:
        assert [{"cost": m.cost, "lowerBound": m.lower_bound} for m in played.moves] == expected["moves"]
    starts = {short(p.workload): p.estimated_start for p in played.pending}
    for name, time in expected.get("estimatedStart", {}).items():
        assert (starts[name] and format_time(starts[name])) == time


def patched(value, patch):
    """Change a document: mappings key by key, lists of what has names entry by entry, everything else as a whole."""
    if isinstance(value, dict) and isinstance(patch, dict):
        merged = {
            key: patched(value.get(key), patch[key]) if key in patch else value[key] for key in {**value, **patch}
        }
        return {key: kept for key, kept in merged.items() if kept is not None}
    if isinstance(value, list) and all(isinstance(entry, dict) and "name" in entry for entry in (*value, *patch)):
        changes = {entry["name"]: entry for entry in patch}
        known = [patched(entry, changes.pop(entry["name"], {})) for entry in value]
        return [*known, *changes.values()]
    return patch


@pytest.mark.parametrize("path", RULES, ids=lambda path: path.stem)
def test_without_the_one_rule_the_victim_goes(path, tmp_path):
    expected = yaml.load(path.with_suffix(".expected.yaml").read_text(), yaml.CSafeLoader)
    other = tmp_path / path.name
    other.write_text(yaml.safe_dump(patched(yaml.load(path.read_text(), yaml.CSafeLoader), expected["without"])))
    steps = play(load_cluster(other).cluster).steps
    assert sorted(s.task for s in steps if s.action == "evict") == expected["evicted"]


def test_every_case_in_which_nothing_is_taken_says_what_forbids_it():
    kinds = "nothing-is-taken", "nothing-is-moved", "nobody-is-evicted"
    named = [path for path in CASES if path.name.startswith(kinds)]
    assert len(named) >= 25
    assert set(named) <= set(RULES)


def test_there_are_cases():
    assert len(CASES) >= 30
