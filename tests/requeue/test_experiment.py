"""The experiment on real traces, on small slices of them."""

from __future__ import annotations

import gzip
import importlib.util
import itertools
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TRACES = Path(os.environ.get("TENURE_TRACES") or ROOT.parent / "shared" / "traces")
SLICES = {
    "philly": ("philly/philly.csv.gz", 200, ["--nodes", "4", "--median", "0.8"]),
    "sdsc": (
        "swf/SDSC-BLUE-2000-4.2-cln.swf.gz",
        800,
        ["--priorities", str(ROOT / "examples" / "requeue" / "sdsc-blue.json")],
    ),
}


def beginning(trace, count, folder):
    """The first lines of a trace as a file of its own."""
    with gzip.open(trace, "rt", encoding="utf-8", errors="replace") as lines:
        kept = list(itertools.islice(lines, count))
    found = folder / trace.name.removesuffix(".gz")
    found.write_text("".join(kept), encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def experiment():
    """The example as a module."""
    spec = importlib.util.spec_from_file_location("requeue_experiment", ROOT / "examples" / "requeue" / "run.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["requeue_experiment"] = module
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", SLICES)
def test_scenarios_on_a_slice_of_a_real_trace(experiment, tmp_path, name):
    """Only requeue requeues, only the hard limit kills; saving destroys less; no invariant is broken."""
    trace, count, words = SLICES[name]
    if not (TRACES / trace).exists():
        pytest.skip(f"there is no {TRACES / trace}")
    asked = experiment._arguments(["--trace", str(beginning(TRACES / trace, count, tmp_path)), *words])
    (given,) = experiment.each(asked)
    rows = [experiment.replay(s, given) for s in experiment.SCENARIOS]
    none, requeue, patient, saving, _, limit = rows
    assert [r.violations for r in rows] == [0] * 6
    assert len({r.jobs for r in rows}) == 1
    assert (none.requeues, none.killed, none.destroyed) == (0, 0, 0)
    assert (requeue.killed, limit.requeues) == (0, 0)
    assert limit.killed > 0
    if name == "philly":
        assert requeue.requeues > 0
        assert 0 <= saving.destroyed < requeue.destroyed
        assert patient.requeues > 0
        assert requeue.urgent_mean < none.urgent_mean
    found = [(given, rows)]
    assert experiment.document(found).count("<svg") == 3
    assert experiment.drawing(found).count(' class="bar c') == 18
    text = experiment.table([none, requeue])
    assert [text.count(f"{row.urgent_mean:.3f}") for row in (none, requeue)] == [1, 1]
    assert text.count(none.name) >= 1 <= text.count(requeue.name)


def test_a_log_says_what_was_asked_for(experiment, tmp_path):
    """The expected run time is the requested one, though the run was longer; of what asked for none it is unset."""
    log = tmp_path / "log.swf"
    lines = [
        "; MaxProcs: 4",
        "1 0 0 90 2 -1 -1 2 60 -1 1 1 1 1 0 -1 -1 -1",
        "2 5 0 30 2 -1 -1 2 -1 -1 1 1 1 1 3 -1 -1 -1",
    ]
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    words = ["--trace", str(log), "--priorities", "0=90,3=7"]
    jobs = experiment.load(*experiment.each(experiment._arguments(words))).jobs
    assert [(j.workload.expected_runtime, j.workload.priority) for j in jobs] == [(60_000_000, 90), (None, 7)]


def test_priorities_come_from_the_mapping_that_is_given_and_are_drawn_without_one(experiment, tmp_path):
    """What the mapping does not have is normal; the label may be another than the queue."""
    log, file = tmp_path / "log.swf", tmp_path / "map.json"
    rows = [f"{n} {n} 0 90 2 -1 -1 2 60 -1 1 {n % 3} 1 1 0 -1 -1 -1" for n in range(1, 61)]
    log.write_text("\n".join(["; MaxProcs: 4", *rows]) + "\n", encoding="utf-8")
    file.write_text('{"1": 80, "2": 5}', encoding="utf-8")

    def priorities(*words):
        given = experiment._arguments(["--trace", str(log), *words])
        return [j.workload.priority for j in experiment.load(*experiment.each(given)).jobs]

    assert priorities("--priorities", str(file), "--priority-of", "user") == [80, 5, 30] * 20
    drawn = priorities()
    assert set(drawn) == {30, 60}
    assert 0 < drawn.count(60) < 20


@pytest.mark.parametrize("text", ["none.json", "high=much"])
def test_a_mapping_that_is_none_is_refused(experiment, text, capsys):
    with pytest.raises(SystemExit):
        experiment._arguments(["--trace", "t", "--priorities", text])
    assert "maps nothing to priorities" in capsys.readouterr().err


def test_one_command_replays_all_scenarios_of_several_traces_side_by_side(experiment, tmp_path):
    """What is printed, the page and the picture name them all; what its journal has is not replayed again."""
    log = tmp_path / "small.swf"
    rows = [f"{n} {n * 20} 0 90 2 -1 -1 2 60 -1 1 1 1 1 {n % 5} -1 -1 -1" for n in range(1, 20)]
    log.write_text("\n".join(["; MaxProcs: 4", *rows]) + "\n", encoding="utf-8")
    other = tmp_path / "other.swf"
    other.write_text(log.read_text(encoding="utf-8"), encoding="utf-8")
    page, drawn, journal = tmp_path / "page.html", tmp_path / "drawn.svg", tmp_path / "done.jsonl"
    words = ["--trace", log, other, "--html", page, "--picture", drawn, "--journal", journal]
    command = [sys.executable, experiment.__file__, *map(str, words)]
    told = subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout
    for scenario in experiment.SCENARIOS:
        assert sum(line.split("  ")[0] == scenario for line in told.splitlines()) == 2
    assert "Made by Tenure" in page.read_text(encoding="utf-8")
    assert "other: work destroyed" in drawn.read_text(encoding="utf-8")
    done = journal.read_bytes()
    assert done.count(b"\n") == 12
    assert subprocess.run(command, capture_output=True, text=True, timeout=300, check=True).stdout == told
    assert journal.read_bytes() == done


def test_a_trace_that_is_not_there_is_named(experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["run.py", "--trace", str(tmp_path / "none.csv")])
    with pytest.raises(SystemExit, match=r"none\.csv: there is no such file"):
        experiment.main()
