"""The experiment on what evictions are worth, as users run it."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from tests.simulator.helpers import CHECKOUT

RUN = CHECKOUT / "examples" / "worth" / "run.py"


def run(*words):
    return subprocess.run([sys.executable, str(RUN), *words], capture_output=True, text=True, timeout=300, check=False)


def blocks(output):
    """Figures by policy: without a terminal, each row is its name and a line for each figure."""
    found, name = {}, None
    for line in output.splitlines():
        key, colon, value = line.strip().rpartition(": ")
        if line and not line.startswith(" "):
            name = line
        elif colon:
            found.setdefault(name, {})[key] = value
    return found


def test_policies_are_compared_with_no_reclaim_told_and_drawn(tmp_path):
    page, journal = tmp_path / "page.html", tmp_path / "done.jsonl"
    words = (
        "--generated",
        "0.9",
        "--jobs",
        "80",
        "--seeds",
        "2",
        "--mix",
        "half save",
        "--policy",
        "youngest first",
        "patience",
    )
    done = run(*words, "--processes", "2", "--html", str(page), "--journal", str(journal))
    assert done.returncode == 0, done.stderr
    rows = blocks(done.stdout)
    assert {"no reclaim", "youngest first", "patience"} <= rows.keys()
    assert rows["no reclaim"]["evictions"] == "0"
    assert all(rows[name]["violations"] == "0" for name in ("no reclaim", "youngest first", "patience"))
    assert page.read_text().count("<svg") == 2
    results = [json.loads(line)["result"] for line in journal.read_text().splitlines()]
    assert len(results) == 6
    assert len({result["due"] for result in results}) <= 2, "in each draw the same jobs are due under all policies"
    again = run(*words, "--journal", str(journal))
    assert again.stdout.splitlines()[:20] == done.stdout.splitlines()[:20]


def test_a_trace_of_its_own_queues(tmp_path):
    """Queue `small` comes back for its guaranteed; nothing that is due waits under youngest first."""
    lines = [
        "job_id,submit_s,runtime_s,req_time_s,pods,gpus_per_pod,cpu_milli_per_pod,mem_mib_per_pod,user,group,queue,status,logged_wait_s"
    ]
    lines += [f"{n},{n},40000,,1,8,,,,,big,," for n in range(4)]
    lines += [f"{100 + n},{10_300 + 3_600 * n},5000,,1,8,,,,,small,," for n in range(2)]
    path = tmp_path / "philly.csv"
    path.write_text("\n".join(lines) + "\n")
    done = run("--trace", str(path), "--nodes", "4", "--mix", "none save", "--policy", "youngest first", "patience")
    assert done.returncode == 0, done.stderr
    rows = blocks(done.stdout)
    assert float(rows["youngest first"]["due: wait (h)"]) == 0
    assert int(rows["youngest first"]["evictions"]) >= 1
    assert float(rows["patience"]["lost (weighted hours)"].replace(",", "")) >= 0


def test_what_is_missing_is_said():
    assert (
        run("--trace", "no-such.csv").stderr
        == "no-such.csv: there is no such file; say with --trace where traces are\n"
    )
    assert run().returncode == 2


@pytest.mark.parametrize(
    ("program", "words", "told"),
    [
        ("worth/run.py", ["--trace", "t.csv", "--html", "t.csv"], "--html t.csv would overwrite t.csv, which is read"),
        (
            "requeue/run.py",
            ["--trace", "t.csv", "--json", "t.csv"],
            "--json t.csv would overwrite t.csv, which is read",
        ),
        ("min-runtime/run.py", ["--trace", "t.csv", "--journal", "t.csv"], "would overwrite t.csv, which is read"),
        ("rescheduler/month.py", ["--html", "t.csv", "--svg", "t.csv"], "--html and --svg both name t.csv"),
    ],
)
def test_no_example_overwrites_what_it_reads_or_has_written(program, words, told, tmp_path):
    (tmp_path / "t.csv").write_text("id\n")
    path = str(CHECKOUT / "examples" / program)
    done = subprocess.run([sys.executable, path, *words], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 2, done.stderr
    assert told in done.stderr
    assert f"see '{path} --help'" in done.stderr
    assert (tmp_path / "t.csv").read_text() == "id\n"
