"""The page of benchmarks is what the script writes of the results that are kept; results are replaced row by row."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


RESULTS = load(ROOT / "benchmarks" / "results.py")
MADE = load(ROOT / "docs" / "make_benchmarks.py")


def row(case, figure=2.0, file="b90_none", benchmark="B90", goal=None, more=False, anchor=None):
    return RESULTS.Result(file, benchmark, case, figure, "s", anchor, "", goal, more, 0.25)


def test_the_page_is_what_the_script_writes():
    """No figure between the marks was written by hand, and none is out of date."""
    text = MADE.PAGE.read_text(encoding="utf-8")
    assert MADE.written(text, RESULTS.read(RESULTS.KEPT)) == text


def test_every_result_is_of_a_benchmark_that_is_there():
    """Rows of a benchmark that was renamed do not stay behind; each has the machine's speed, and no two are one."""
    kept = RESULTS.read(RESULTS.KEPT)
    assert kept
    for found in kept:
        assert (ROOT / "benchmarks" / f"{found.file}.py").exists(), found
        assert 0 < found.machine < 5, found
    assert len({(r.file, r.benchmark, r.case) for r in kept}) == len(kept)


def test_what_is_said_of_ratio_and_goal_follows_from_the_figure():
    """Whoever changes a figure by hand changes what stands beside it."""
    for line in json.loads(RESULTS.KEPT.read_text(encoding="utf-8")):
        found = RESULTS.Result(**{k: v for k, v in line.items() if k not in ("ratio", "reached")})
        assert (line["ratio"], line["reached"]) == (RESULTS.shortened(found.ratio), found.reached)


def test_a_goal_is_reached_from_the_side_that_is_better():
    """A time has to stay below its goal, a rate has to get there."""
    assert row("time", 2.0, goal=2).reached is True
    assert row("time", 2.1, goal=2).reached is False
    assert row("rate", 1.9, goal=2, more=True).reached is False
    assert row("rate", 2.0, goal=2, more=True).reached is True
    assert row("none").reached is None
    assert row("anchored", 3.0, anchor=2).ratio == 1.5


def test_new_rows_replace_their_own_alone():
    """Others stay where they are; what a whole run no longer reports goes."""
    old = [row("a"), row("b"), row("c", file="b91_other", benchmark="B91")]
    new = [row("b", 5.0), row("d")]
    part = RESULTS.merged(old, new)
    assert [(r.case, r.figure) for r in part] == [("a", 2.0), ("b", 5.0), ("d", 2.0), ("c", 2.0)]
    whole = RESULTS.merged(old, new, whole="b90_none")
    assert [r.case for r in whole] == ["b", "d", "c"]


def test_results_come_back_as_they_were_written(tmp_path):
    """Ratio and goal are for readers; they are worked out anew."""
    rows = [row("a", 7, goal=3), row("b", 0.1234, anchor=0.5)]
    RESULTS.write(tmp_path / "results.json", rows)
    assert RESULTS.read(tmp_path / "results.json") == rows
    assert RESULTS.read(tmp_path / "none.json") == []


def test_a_benchmark_reports_where_it_is_told(tmp_path):
    """A benchmark's rows are put among those that are kept, and the table shows all."""
    kept = tmp_path / "kept.json"
    RESULTS.write(kept, [row("of before")])
    command = [sys.executable, ROOT / "benchmarks" / "run.py", "b03", "--results", kept, "--", "--nodes", "20"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found = RESULTS.read(kept)
    assert {r.benchmark for r in found} == {"B3", "B90"}
    assert all(r.figure > 0 and r.machine > 0 for r in found)
    assert "rest, 20 nodes: full cycle" in done.stdout
    assert "of before" in done.stdout
