"""``tenure sweep``: every point once, here or on a Dask cluster, and again from where a sweep was stopped."""

import contextlib
import csv
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tenure.simulator.shaking import shake
from tenure.simulator.sweep.carry_out import carry_out
from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.points import SweepPoint, combinations, key_of, split_values
from tenure.simulator.sweep.runners import LocalProcesses
from tenure.simulator.trace import read_trace

SETS = ("--set", "scheduler.reclaimMinRuntime=0,1h", "--set", "scheduler.actions=[allocate,reclaim],[allocate]")


class InThisProcess:
    """Works on one point after the other where it is called."""

    def __init__(self, count=None):
        self.count = count

    def __call__(self, work, tasks):
        return ((number, work(task)) for number, task in enumerate(tasks))


@pytest.fixture
def in_this_process(monkeypatch):
    """Have sweeps start no process, which takes the processor a second: other tests here have real ones."""
    monkeypatch.setattr("tenure.simulator.sweep.runners.LocalProcesses", InThisProcess)


@pytest.fixture
def trace(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)
    made = run_command("generate", "--jobs", "60", "--gpus", "16", "--load", "1.2", "--seed", "3",
                       "--out", "jobs.csv", "--cluster", "cluster.yaml")  # fmt: skip
    assert made[0] == 0
    return tmp_path


def test_every_combination_is_simulated_as_simulate_does(trace, run_command):
    pyarrow = pytest.importorskip("pyarrow.parquet")
    code, out, err = run_command("sweep", "jobs.csv", "--cluster", "cluster.yaml", *SETS, "--seeds", "2",
                                 "--processes", "2", "--format", "json")  # fmt: skip
    assert (code, err) == (0, "")
    points = json.loads(out)["points"]
    assert len(points) == 8
    named = [(p["scheduler.reclaimMinRuntime"], p["scheduler.actions"], p["seed"]) for p in points]
    assert named == [(t, a, s) for t in ("0", "1h") for a in ("[allocate,reclaim]", "[allocate]") for s in (0, 1)]
    for point in points:
        if point["seed"]:
            continue
        own = [f"{path}={point[path]}" for path in ("scheduler.reclaimMinRuntime", "scheduler.actions")]
        sets = [word for text in own for word in ("--set", text)]
        summary = json.loads(
            run_command("simulate", "jobs.csv", "--cluster", "cluster.yaml", *sets, "--format", "json")[1]
        )
        assert point["wait_s.mean"] == summary["wait_s"]["mean"]
        assert point.get("evictions.reclaim", 0) == summary["evictions"].get("reclaim", 0)
        assert point["queues.queue-1.wait_s.mean"] == summary["queues"][0]["wait_s"]["mean"]
        assert point["violations"] == 0
    table = pyarrow.read_table("sweep/results.parquet").to_pylist()
    assert [row["wait_s.mean"] for row in table] == [point["wait_s.mean"] for point in points]
    assert {row["trace"] for row in table} == {"jobs"}
    page = (trace / "sweep" / "index.html").read_text()
    assert page.count('<path class="curve"') == 2 * page.count("<svg")
    assert page.count("<svg") >= 4
    assert 'class="range"' in page  # the seeds differ


@pytest.mark.usefixtures("in_this_process")
def test_what_is_done_is_not_done_again_and_more_can_be_added(trace, run_command):
    first = ("sweep", "jobs.csv", "--cluster", "cluster.yaml", "--processes", "1",
             "--set", "scheduler.actions=[allocate]")  # fmt: skip
    assert run_command(*first, "--set", "scheduler.backfill=none")[0] == 0
    journal = trace / "sweep" / "results.jsonl"
    (before,) = journal.read_text().splitlines()
    assert run_command(*first, "--set", "scheduler.backfill=none,easy")[0] == 0
    lines = journal.read_text().splitlines()
    assert len(lines) == 2
    assert lines[0] == before
    (trace / "cluster.yaml").write_text((trace / "cluster.yaml").read_text().replace("guaranteed", "max"))
    assert run_command(*first, "--set", "scheduler.backfill=none")[0] == 0
    assert len(journal.read_text().splitlines()) == 3, "another cluster is another sweep"


@pytest.mark.usefixtures("in_this_process")
def test_without_pyarrow_columns_are_csv_and_that_is_said(trace, run_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    code, out, err = run_command("sweep", "jobs.csv", "--cluster", "cluster.yaml", "--load", "0.8,1.2", "--processes",
                                 "2", "--out", "here/it/is")  # fmt: skip
    assert code == 0
    assert err.startswith("pyarrow is not installed, so the columns are written as CSV")
    with (trace / "here/it/is/results.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["load"] for row in rows] == ["0.8", "1.2"]
    assert float(rows[0]["wait_s.mean"]) < float(rows[1]["wait_s.mean"])
    assert "written: here/it/is/results.csv" in out


def test_what_can_be_read_only_once_is_refused_before_it_is_read(trace, run_command):
    """Each simulation reads its trace; the second would wait for ever for a pipe."""
    os.mkfifo(trace / "pipe")
    found, out, err = run_command("sweep", "jobs.csv", "pipe", "--cluster", "cluster.yaml")
    assert (found, out) == (1, "")
    assert err == "pipe: can be read only once, and a sweep reads it for each simulation; write it to a file first\n"


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["jobs.csv"], 2, "give them with --cluster FILE"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--set", "a"], 2, "has no '='"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--set", "scheduler.backfill=none,,easy"], 2, "has an empty value"),
        (
            ["jobs.csv", "--cluster", "cluster.yaml", "--set", "scheduler.backfill=easy,easy"],
            2,
            "'easy' is there twice",
        ),
        (["jobs.csv", "--cluster", "cluster.yaml", "--set", "scheduler.actions=[allocate"], 2, "not closed"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--set", "scheduler.backfill=none,hard"], 1, "'hard' (text)"),
        (["gone.csv", "--cluster", "cluster.yaml"], 1, "gone.csv: there is no such file"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--load", "a"], 2, "write numbers such as 0.8"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--out", "jobs.csv"], 1, "jobs.csv: is no folder"),
        (["jobs.csv", "--cluster", "cluster.yaml", "--dask", "x", "--processes", "1"], 2, "leave one of them out"),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_simulated(trace, run_command, arguments, code, said):
    found, out, err = run_command("sweep", *arguments)
    assert (found, out) == (code, "")
    assert said in err
    assert not (trace / "sweep" / "results.jsonl").exists()


@pytest.mark.usefixtures("trace", "in_this_process")
def test_a_dask_cluster_gives_the_same_results(run_command):
    """Over a connection, as from elsewhere; another process as a worker is in the experiment on minimum runtimes."""
    distributed = pytest.importorskip("distributed")
    command = ("sweep", "jobs.csv", "--cluster", "cluster.yaml", "--set", "scheduler.backfill=none,easy", "--format",
               "json")  # fmt: skip
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=1, processes=False, protocol="tcp", host="127.0.0.1", dashboard_address=None
    ) as cluster:
        done = run_command(*command, "--dask", cluster.scheduler_address, "--out", "dask")
    assert done[0] == 0, done[2]
    here = run_command(*command, "--processes", "2", "--out", "here")
    rows = [[{**p, "wall_s": 0} for p in json.loads(out)["points"]] for _, out, _ in (done, here)]
    assert rows[0] == rows[1]


@pytest.mark.usefixtures("trace")
def test_a_dask_scheduler_that_is_not_there_is_something_outside(run_command, monkeypatch):
    pytest.importorskip("distributed")
    monkeypatch.setattr("tenure.simulator.sweep.runners.CONNECT_SECONDS", 1)
    code, _, err = run_command("sweep", "jobs.csv", "--cluster", "cluster.yaml", "--dask", "tcp://127.0.0.1:1")
    assert code == 3
    assert "127.0.0.1:1" in err
    assert "Traceback" not in err


# -- killed in the middle ---------------------------------------------------------------------------------------------

KILLED = """\
import sys
from pathlib import Path
from tests.cli.test_sweep import slow_points, note_and_wait
from tenure.simulator.sweep.carry_out import carry_out
from tenure.simulator.sweep.journal import SweepJournal
from tenure.simulator.sweep.runners import LocalProcesses

if __name__ == "__main__":
    with SweepJournal(Path(sys.argv[1], "j.jsonl")) as journal:
        carry_out(slow_points(sys.argv[1]), note_and_wait, LocalProcesses(2), journal)
"""


def slow_points(folder):
    return [SweepPoint(key_of(n), {"n": n}, (str(folder), n)) for n in range(8)]


def note_and_wait(task):
    """Work that leaves a mark when it is done."""
    folder, number = task
    time.sleep(0.3)
    fd = os.open(f"{folder}/done", os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    os.write(fd, f"{number}\n".encode())
    os.close(fd)
    return {"square": number * number, "pid": os.getpid()}


def test_a_sweep_that_is_killed_goes_on_where_it_was_and_does_nothing_twice(tmp_path):
    """What the journal has is not worked on again; its processes end with it; a line that was cut off is no result."""
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
    environment = {**os.environ, "PYTHONPATH": root}
    sweep = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], env=environment, cwd=root)
    journal = tmp_path / "j.jsonl"
    limit = time.monotonic() + 60
    while not (journal.exists() and journal.read_bytes().count(b"\n") >= 3) and time.monotonic() < limit:
        time.sleep(0.02)
    sweep.send_signal(signal.SIGKILL)
    sweep.wait()
    lines = [json.loads(line) for line in journal.read_text().splitlines()]
    assert 3 <= len(lines) < 8
    workers = {line["result"]["pid"] for line in lines}
    while any(os.path.exists(f"/proc/{pid}") for pid in workers) and time.monotonic() < limit:  # noqa: PTH110
        time.sleep(0.1)
    assert not [pid for pid in workers if os.path.exists(f"/proc/{pid}")]  # noqa: PTH110
    marks = (tmp_path / "done").read_text().split()
    with journal.open("ab") as stream:
        stream.write(b'{"key": "cut o')
    with SweepJournal(journal) as again:
        known = set(again.results)
        found = carry_out(slow_points(tmp_path), note_and_wait, LocalProcesses(2), again)
    assert [result["square"] for result in found] == [n * n for n in range(8)]
    after = (tmp_path / "done").read_text().split()[len(marks) :]
    assert sorted(map(int, after)) == [n for n in range(8) if key_of(n) not in known]
    assert len(journal.read_text().splitlines()) == 8


def note_soon(task):
    """Work that leaves a mark, and takes a few milliseconds of the processor."""
    folder, number = task
    until = time.process_time() + 0.005
    while time.process_time() < until:
        pass
    with Path(folder, "done").open("a", encoding="utf-8") as done:
        done.write(f"{number}\n")
    return {}


def interrupted_at_the_first(done, *_):
    if done:
        raise KeyboardInterrupt


def test_what_has_not_begun_when_a_sweep_is_interrupted_is_left(tmp_path):
    """Its process goes on with what was handed to it already, and not with all the rest, for which nobody waits."""
    points = [SweepPoint(key_of(n), {"n": n}, (str(tmp_path), n)) for n in range(300)]
    with SweepJournal(tmp_path / "j.jsonl") as journal, pytest.raises(KeyboardInterrupt):
        carry_out(points, note_soon, LocalProcesses(1), journal, interrupted_at_the_first)
    for process in multiprocessing.active_children():
        process.join(60)
    assert len((tmp_path / "done").read_text().split()) < 150


def end_itself(task):
    """Work that ends its process, as the system does where memory is short, or Ctrl-C on a terminal."""
    os.kill(os.getpid(), task)
    time.sleep(60)
    return {}


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_process_that_is_killed_is_told_in_words(number, capfd):
    with pytest.raises(ChildProcessError, match="was killed"):
        list(LocalProcesses(1)(end_itself, [number]))
    assert capfd.readouterr().err == ""


def interrupt_often(pid):
    """Send Ctrl-C to a process again and again while it starts."""
    limit = time.monotonic() + 1
    with contextlib.suppress(ProcessLookupError):
        while time.monotonic() < limit:
            os.kill(pid, signal.SIGINT)
            time.sleep(0.005)


def test_processes_that_start_while_a_sweep_is_interrupted_tell_nothing(capfd, monkeypatch):
    """Ctrl-C on a terminal goes to all of them at once, and may find them before they know what to do with it."""
    start, threads = subprocess._fork_exec, []

    def interrupted(*arguments):
        pid = start(*arguments)
        threads.append(threading.Thread(target=interrupt_often, args=(pid,)))
        threads[-1].start()
        return pid

    monkeypatch.setattr("_posixsubprocess.fork_exec", interrupted)
    with pytest.raises(ChildProcessError):
        list(LocalProcesses(1)(note_and_wait, [(".", 0)]))
    for thread in threads:
        thread.join()
    assert threads
    assert capfd.readouterr().err == ""


@pytest.mark.usefixtures("in_this_process")
def test_a_simulation_that_is_interrupted_is_no_result(trace, run_command, monkeypatch):
    monkeypatch.setattr("tenure.simulator.run.Simulation._run", interrupted_at_the_first)
    code, _, err = run_command("sweep", "jobs.csv", "--cluster", "cluster.yaml", *SETS)
    assert code == 130
    assert "interrupted: 0 of 4 simulations are done" in err
    assert not (trace / "sweep" / "results.jsonl").read_text()


def test_what_a_killed_sweep_writes_in_the_end_is_what_one_that_went_through_writes(trace, run_command, monkeypatch):
    """The page byte by byte, and every column but how long each simulation took."""
    pyarrow = pytest.importorskip("pyarrow.parquet")
    command = ("sweep", "jobs.csv", "--cluster", "cluster.yaml", *SETS, "--seeds", "2", "--processes", "2")
    with monkeypatch.context() as patch:
        patch.setattr("tenure.simulator.sweep.runners.LocalProcesses", InThisProcess)
        assert run_command(*command, "--out", "whole")[0] == 0
    killed = subprocess.Popen([sys.executable, "-c", "from tenure.cli.main import main; main()", *command],
                              stdout=subprocess.DEVNULL)  # fmt: skip
    journal = trace / "sweep" / "results.jsonl"
    limit = time.monotonic() + 120
    while not (journal.exists() and journal.read_bytes().count(b"\n")) and time.monotonic() < limit:
        time.sleep(0.005)
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    assert 1 <= journal.read_bytes().count(b"\n") < 8
    assert not (trace / "sweep" / "results.parquet").exists()
    assert run_command(*command)[0] == 0
    again, whole = (pyarrow.read_table(f"{folder}/results.parquet").drop(["wall_s"]) for folder in ("sweep", "whole"))
    assert again.equals(whole)
    assert (trace / "sweep/index.html").read_bytes() == (trace / "whole/index.html").read_bytes()


def test_two_sweeps_do_not_write_one_journal(tmp_path):
    from tenure.model.values.problems import InvalidInputError  # noqa: PLC0415

    with SweepJournal(tmp_path / "j"), pytest.raises(InvalidInputError, match="another sweep writes to it"):
        SweepJournal(tmp_path / "j").__enter__()
    (tmp_path / "k").write_text('{"no": "journal"}\n')
    with pytest.raises(InvalidInputError, match=r"k:1: is no line of a sweep's journal"):
        SweepJournal(tmp_path / "k").__enter__()


# -- parts ------------------------------------------------------------------------------------------------------------


def test_values_are_split_outside_of_brackets():
    assert split_values("a, [b,c],{d: (e,f)}") == ["a", "[b,c]", "{d: (e,f)}"]
    assert combinations({"a": ["1", "2"], "b": ["3"]}) == [{"a": "1", "b": "3"}, {"a": "2", "b": "3"}]
    assert combinations({}) == [{}]


def test_a_key_tells_its_parts_apart():
    assert key_of("ab", "c") != key_of("a", "bc")
    assert key_of({"a": 1, "b": 2}) == key_of({"b": 2, "a": 1})
    assert key_of(b"a", 1) != key_of(b"a", 2)


@pytest.mark.usefixtures("trace")
def test_a_shaken_trace_has_the_same_jobs_near_their_time():
    """Seed 0 is the trace itself; each other seed moves every job, by no more than was said, and always alike."""
    whole = read_trace("jobs.csv")
    assert shake(whole, 60_000_000, 0) is whole
    shaken = shake(whole, 60_000_000, 1)
    assert shaken == shake(whole, 60_000_000, 1) != shake(whole, 60_000_000, 2)
    before = {job.workload.key: job for job in whole.jobs}
    first = min(job.workload.created_at for job in whole.jobs)
    assert {job.workload.key for job in shaken.jobs} == before.keys()
    for job in shaken.jobs:
        old = before[job.workload.key]
        assert abs(job.workload.created_at - old.workload.created_at) <= 60_000_000
        assert job.workload.created_at >= first
        assert job.runtime == old.runtime
    times = [job.workload.created_at for job in shaken.jobs]
    assert times == sorted(times)
