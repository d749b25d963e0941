"""``tenure simulate`` from end to end: traces in, figures, tables and pages out, and what it says of bad input."""

import contextlib
import csv
import errno
import gzip
import json
import os
import pty
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.report.simulations import read
from tests.simulator.helpers import OPENB_NODES, PHILLY, real_trace

from tenure.cli import simulate as module
from tenure.cli.main import main
from tenure.cli.terminal.progress import ProgressLine, interruptible, progress_text
from tenure.history.errors import HistoryError
from tenure.simulator.jobs_csv import HEADER

HEAD = "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\n"
CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
queues: [{name: all}, {name: a, parent: all}, {name: b, parent: all}]
"""
JOBS = "job,submit_s,runtime_s,queue,pods,cpu_milli\n"


def swf(*jobs, header="; MaxProcs: 4\n"):
    """Write jobs as (number, submit, run, processors)."""
    lines = (f"{n} {submit} -1 {run} {cpus} -1 -1 {cpus} {run} -1 1 1 1 -1 1 -1 -1 -1" for n, submit, run, cpus in jobs)
    return header + "".join(f"{line}\n" for line in lines)


FOUR = swf((1, 0, 100, 3), (2, 10, 100, 4), (3, 20, 50, 1), (4, 30, 10, 9))


@pytest.fixture
def simulate(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments, **files):
        for name, content in files.items():
            path = tmp_path / name.replace("_", ".")
            path.write_bytes(content) if isinstance(content, bytes) else path.write_text(content)
        with pytest.raises(SystemExit) as caught:
            main(["simulate", *map(str, arguments)])
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    return run


def figures(simulate, *arguments, **files):
    code, out, err = simulate(*arguments, "--format", "json", **files)
    assert (code, err) == (0, "")
    return json.loads(out)


def test_the_summary_has_all_documented_fields(simulate):
    found = figures(simulate, "t.swf", t_swf=FOUR)
    assert {
        "jobs", "finished", "dropped", "makespan_s", "wait_s", "boundedSlowdown", "utilization", "allocated", "goodput",
        "lost", "evictions", "jain", "queues", "violations", "wall_s",
    } <= found.keys()  # fmt: skip
    assert (found["jobs"], found["finished"], found["dropped"]) == (3, 3, 1)
    assert found["wait_s"] == {"mean": 30.0, "median": 0.0, "p95": 81.0, "max": 90.0}
    assert found["makespan_s"] == 200.0
    assert found["scheduler"] == {"actions": ["allocate"]}


def test_text_is_a_table_that_names_what_was_dropped(simulate):
    code, out, err = simulate("t.swf", t_swf=FOUR)
    assert (code, err) == (0, "")
    assert "3, 3 finished, 1 dropped (more processors than the machine)" in out
    assert "broken invariants            none" in out
    assert max(map(len, out.splitlines())) <= 100


def test_settings_of_the_command_line_are_used(simulate):
    easy = swf((1, 0, 100, 3), (2, 10, 100, 4), (3, 20, 200, 1))
    greedy = figures(simulate, "t.swf", t_swf=easy)
    kept = figures(simulate, "t.swf", "--set", "scheduler.backfill=easy", t_swf=easy)
    assert greedy["wait_s"]["max"] == 210.0, "job 3 overtakes job 2, which then waits for it"
    assert kept["wait_s"]["max"] == 180.0, "job 3 would delay job 2, and so it waits"
    assert kept["scheduler"]["backfill"] == "easy"


def test_a_settings_file_takes_the_place_of_the_clusters(simulate):
    found = figures(
        simulate, "t.csv", "--cluster", "c.yaml", "--scheduler", "s.yaml",
        t_csv=JOBS + "1,0,10,a,1,1000\n", c_yaml=CLUSTER + "scheduler: {placement: spread}\n",
        s_yaml="kind: SchedulerConfig\nscheduler: {backfill: easy}\n",
    )  # fmt: skip
    assert found["scheduler"] == {"backfill": "easy"}


def test_queues_can_be_changed(simulate):
    jobs = JOBS + "1,0,10,a,1,2000\n2,0,10,a,1,2000\n"
    free = figures(simulate, "t.csv", "--cluster", "c.yaml", t_csv=jobs, c_yaml=CLUSTER)
    held = figures(simulate, "t.csv", "--cluster", "c.yaml", "--set", "queue.a.max.cpu=2", t_csv=jobs, c_yaml=CLUSTER)
    assert (free["wait_s"]["max"], held["wait_s"]["max"]) == (0.0, 10.0)


def test_jobs_of_unknown_and_of_inner_queues_are_dropped_with_a_warning(simulate):
    jobs = JOBS + "1,0,10,a,1,1000\n2,0,10,nowhere,1,1000\n3,0,10,all,1,1000\n"
    code, out, err = simulate("t.csv", "--cluster", "c.yaml", "--format", "json", t_csv=jobs, c_yaml=CLUSTER)
    assert code == 0
    assert err.splitlines() == [
        "warning: t.csv: 1 job is dropped, of queues that are not configured: nowhere",
        "warning: t.csv: 1 job is dropped, of queues that are not leaves: all",
    ]
    found = json.loads(out)
    assert (found["finished"], found["dropped"]) == (1, 2)


RUNNING = CLUSTER + (
    "workloads: [{name: old, queue: b, expectedRuntime: 1h, startedAt: 2026-11-20T09:30:00Z, createdAt: "
    "2026-11-20T09:00:00Z, requests: {cpu: 4}, tasks: [{name: x, node: n-0}, {name: y, node: n-1}]}]\n"
)


def test_what_runs_already_keeps_its_room_until_it_ends(simulate):
    words = ("t.csv", "--cluster", "c.yaml", "--set", "scheduler.actions=allocate")
    found = figures(simulate, *words, t_csv=JOBS + "1,5,10,a,1,1000\n", c_yaml=RUNNING)
    assert found["jobs"] == 1
    assert found["wait_s"]["mean"] == 1795.0


def test_what_runs_already_gives_way_where_the_settings_say_so(simulate):
    words = ("t.csv", "--cluster", "c.yaml", "--set", "scheduler.actions=allocate,reclaim")
    found = figures(simulate, *words, t_csv=JOBS + "1,5,10,a,1,1000\n", c_yaml=RUNNING)
    assert found["evictions"] == {"reclaim": 1}
    assert found["lost"]["cpu"] > 0
    assert found["wait_s"]["mean"] < 1795.0
    assert found["violations"] == 0


HALF_DONE = """\
workloads:
- {name: low, queue: a, startedAt: 2026-11-20T09:00:00Z,
   tasks: [{name: l, node: n-0, requests: {cpu: 4}}, {name: m, node: n-1, requests: {cpu: 4}}]}
- name: high
  queue: a
  priority: 1
  minMember: 1
  expectedRuntime: 100s
  tasks: [{name: h-0, phase: Succeeded}, {name: h-1, requests: {cpu: 4}}]
"""


def test_what_has_half_succeeded_starts_with_what_is_bound_and_not_with_a_promise(simulate):
    """It is evicted for, waits until that has gone, runs as long as it says, and gives its room back."""
    words = ("t.csv", "--cluster", "c.yaml", "--set", "scheduler.actions=[allocate,preempt]")
    after = JOBS.replace("\n", ",priority\n") + "1,5,10,a,2,4000,1\n"
    found = figures(simulate, *words, t_csv=after, c_yaml=CLUSTER + HALF_DONE)
    assert found["evictions"] == {"preempt": 1}
    assert (found["finished"], found["wait_s"]["mean"], found["violations"]) == (1, 95.0, 0)


def test_nodes_are_told_apart_in_whatever_order_the_file_has_them(simulate, capsys):
    """What is larger is listed first, and a node that is on its way before it."""
    listed = "[{name: m, awaitedUntil: 2026-11-20T11:00:00Z}, {name: z, allocatable: {cpu: 4}}, {name: a}]"
    nodes = CLUSTER.replace("[{name: n, count: 2, allocatable: {cpu: 4}}]", listed)
    words = ("t.csv", "--cluster", "c.yaml", "--history", "run.db", "--report", "page.html")
    found = figures(simulate, *words, t_csv=JOBS + "1,5,10,a,1,4000\n", c_yaml=nodes)
    assert (found["finished"], found["violations"]) == (1, 0)
    with pytest.raises(SystemExit):
        main(["story", "default/1", "--history", "run.db"])
    assert ", on z\n" in capsys.readouterr().out


def test_what_claims_serve_is_there_in_a_simulation(simulate):
    """What asks for GPUs that a driver publishes starts as in a plan, and no node is said to hold too much."""
    example = Path(__file__).parents[2] / "examples" / "devices" / "extended.yaml"
    code, out, _ = simulate("t.csv", "--cluster", example, "--format", "json", t_csv=JOBS + "1,5,10,team,1,1000\n")
    assert code == 0
    found = json.loads(out)
    assert found["violations"] == 0
    assert found["allocated"]["example.com/gpu"] > 0


OVER = CLUSTER.replace("parent: all}]", "parent: all, max: {cpu: 4}, quotaPreemptionDelay: 1m}]") + (
    "scheduler: {actions: [quota, allocate], quotaPreemption: {enabled: true}}\n"
    "workloads: [{name: x, queue: b, tasks: [{name: x, node: n-0, requests: {cpu: 4}}]}, "
    "{name: y, queue: b, tasks: [{name: y, node: n-1, requests: {cpu: 4}}]}]\n"
)


def test_what_is_due_from_the_start_does_not_wait_for_the_first_arrival(simulate):
    """A queue that is over its max when the simulation begins is brought back a minute later."""
    found = figures(simulate, "t.csv", "--cluster", "c.yaml", t_csv=JOBS + "1,20,10,a,1,1000\n", c_yaml=OVER)
    assert found["evictions"] == {"quota": 1}
    assert found["wait_s"]["mean"] == 40.0


EVICTED_LATELY = """\
scheduler: {disruption: {budgets: [{name: few, each: workload, maxEvictions: 2, per: 30m}]}}
evictions: [{at: 2026-11-20T09:50:00Z, workload: default/old, task: x, cause: reclaim}]
"""


@pytest.mark.parametrize(
    ("more", "wait"),
    [
        ("disruptionBudgets: [{name: all, selector: {}, maxUnavailable: 0}]\n", 1795.0),
        (EVICTED_LATELY, 1195.0),
    ],
    ids=["PodDisruptionBudgets", "what was evicted lately"],
)
def test_what_bounds_evictions_in_the_cluster_file_bounds_them_in_the_simulation(simulate, more, wait):
    """As in a plan: a PodDisruptionBudget holds to the end, and the log counts for the window of a budget."""
    words = ("t.csv", "--cluster", "c.yaml", "--set", "scheduler.actions=allocate,reclaim")
    found = figures(simulate, *words, t_csv=JOBS + "1,5,10,a,1,1000\n", c_yaml=RUNNING + more)
    assert found["wait_s"]["mean"] == wait


def test_the_jobs_table_can_go_to_a_pipe(tmp_path):
    (tmp_path / "t.swf").write_text(FOUR)
    code = "from tenure.cli.main import main; main()"
    words = ["simulate", str(tmp_path / "t.swf"), "--jobs", "/dev/stdout"]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\n2,default,10,100,100,200,0,0,finished\n" in done.stdout


def test_a_part_of_a_trace_and_more_load(simulate):
    jobs = swf((1, 100, 10, 1), (2, 200, 10, 1), (3, 300, 10, 1))
    assert figures(simulate, "t.swf", "--from", "150", "--to", "5m", t_swf=jobs)["jobs"] == 1
    assert figures(simulate, "t.swf", "--from", "100", "--to", "301", t_swf=jobs)["jobs"] == 3
    assert figures(simulate, "t.swf", "--load", "2", t_swf=jobs)["makespan_s"] == 110.0


def test_the_jobs_table_has_the_traces_own_times(simulate, tmp_path):
    simulate("t.swf", "--jobs", "out.csv", t_swf=FOUR)
    rows = list(csv.reader((tmp_path / "out.csv").read_text().splitlines()))
    assert rows[0] == list(HEADER)
    assert rows[1:] == [
        ["1", "default", "0", "0", "0", "100", "0", "0", "finished"],
        ["2", "default", "10", "100", "100", "200", "0", "0", "finished"],
        ["3", "default", "20", "20", "20", "70", "0", "0", "finished"],
    ]


def test_the_report_is_one_valid_page(simulate, tmp_path):
    code, _, err = simulate("t.swf", "--report", "out.html", t_swf=FOUR)
    assert (code, err) == (0, "")
    assert {"use", "waiting", "gantt"} <= set(read((tmp_path / "out.html").read_text()).ids)


NEVER = "x,0,10,a,1,5000\n"


def test_a_report_is_written_where_no_task_ran(simulate, tmp_path):
    code, _, _ = simulate(
        "j.csv", "--cluster", "c.yaml", "--report", "out.html", "--jobs", "jobs.csv", j_csv=JOBS + NEVER, c_yaml=CLUSTER
    )
    assert code == 0
    assert "waiting" in read((tmp_path / "out.html").read_text()).ids
    assert "pending" in (tmp_path / "jobs.csv").read_text()


@pytest.mark.parametrize(("cells", "warned"), [(("", ""), True), (("", "10"), False)])
def test_that_no_job_of_a_trace_ends_is_warned_of_with_the_column(simulate, cells, warned):
    """A cell without a value is one of a job that goes on; that none has one may be a typing error in a name."""
    jobs = "".join(f"j{number},0,{cell},b,1,100\n" for number, cell in enumerate(cells))
    _, _, err = simulate("j.csv", "--cluster", "c.yaml", j_csv=JOBS + jobs, c_yaml=CLUSTER)
    assert ("warning: j.csv: no job ever ends: the column runtime_s says" in err) == warned
    bare = simulate("j.csv", "--cluster", "c.yaml", j_csv="job,submit_s,queue\na,0,b\n")[2]
    assert "there is none of that name" in bare


def test_jobs_that_wait_at_the_end_on_an_idle_cluster_are_warned_of(simulate):
    many = "".join(f"x{number},0,10,a,1,5000\n" for number in range(5))
    code, _, err = simulate("j.csv", "--cluster", "c.yaml", j_csv=JOBS + "ok,0,10,b,1,100\n" + many, c_yaml=CLUSTER)
    assert code == 0
    assert err.startswith(
        "warning: 5 jobs wait at the end although nothing runs any more (x0, x1, x2 and 2 more): what is asked for"
    )
    assert err.count("\n") == 1
    assert simulate("j.csv", "--cluster", "c.yaml", j_csv=JOBS + "ok,0,10,b,1,100\n")[2] == ""


LACKING = """\
workloads:
- name: gang
  minMember: 4
  createdAt: 2026-11-20T09:00:00Z
  queue: a
  tasks: [{name: m-0, requests: {cpu: 1}}, {name: m-1, requests: {cpu: 1}}]
"""
LEFT = "warning: 1 job waits at the end although nothing runs any more"


def test_a_gang_that_lacks_tasks_at_the_end_is_not_said_to_be_too_large(simulate):
    """Others that wait are warned of by themselves."""
    large = "large,0,10,a,1,5000\n"
    _, _, err = simulate("j.csv", "--cluster", "c.yaml", j_csv=JOBS + large, c_yaml=CLUSTER + LACKING)
    assert err.splitlines()[1:] == [
        f"{LEFT} (default/gang): it starts with 4 tasks, but only 2 exist",
        f"{LEFT} (large): what is asked for never fits these nodes, or the limits of the queue forbid it",
    ]
    smaller = LACKING.replace("gang", "other").replace("4", "3").removeprefix("workloads:\n")
    _, _, err = simulate(
        "j.csv", "--cluster", "c.yaml", j_csv=JOBS + "ok,0,10,b,1,100\n", c_yaml=CLUSTER + LACKING + smaller
    )
    assert err.endswith("(default/gang, default/other): they lack tasks to start with, or some are gated\n")


OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn,8000,1000,2,T4\n"


def test_inflating_draws_until_the_share_is_asked_for_and_nothing_ends(simulate):
    pods = OPENB + "".join(f"p{i},1000,10,1,{share},,LS,Running,0,10,0\n" for i, share in enumerate((1000, 500, 300)))
    words = ("p.csv", "--nodes", "n.csv", "--inflate", "150%")
    one = figures(simulate, *words, "--seed", "1", p_csv=pods, n_csv=NODES)
    assert one["finished"] == 0
    assert one["running"] + one["dropped"] == one["jobs"]
    assert 0.5 < one["allocated"]["milliGpu"] <= 1
    again = figures(simulate, *words, "--seed", "1", p_csv=pods, n_csv=NODES)
    assert {**one, "wall_s": 0} == {**again, "wall_s": 0}
    assert figures(simulate, "p.csv", "--nodes", "n.csv", "--inflate", "1.5", p_csv=pods, n_csv=NODES)["jobs"] > 3


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["p.csv"], "an openb list of pods needs its list of nodes: --nodes FILE, or --cluster FILE"),
        (
            ["p.csv", "--nodes", "n.csv", "--inflate", "x"],
            "--inflate 'x' is no share of the cluster's GPUs; write 1.3 or 130%",
        ),
        (
            ["p.csv", "--nodes", "n.csv", "--inflate", "1", "--load", "2"],
            "so --from, --to and --load do not go with it",
        ),
        (["p.csv", "--nodes", "n.csv", "--cluster", "c.yaml"], "both c.yaml and --nodes n.csv bring nodes"),
        (["h.csv"], "a philly trace says nothing of nodes: give them with --cluster FILE"),
        (["bare.swf"], "(MaxProcs): --processors N, or --cluster FILE"),
        (["t.swf", "--inflate", "1.3"], "--inflate goes with an openb list of pods; t.swf is of format swf"),
        (["t.swf", "--seed", "1"], "--seed goes with --inflate"),
        (["t.swf", "--from", "20", "--to", "10"], "--from 20 is not before --to 10"),
        (["t.swf", "--from", "soon"], "--from 'soon' is no time; write the trace's seconds, or such as 30d"),
        (["t.swf", "--to", "inf"], "--to inf is out of range"),
        (["t.swf", "--load", "0"], "--load 0.0 is not a positive number"),
        (["t.swf", "--load", "nan"], "--load nan is not a positive number"),
        (["t.swf", "--processors", "0"], "--processors"),
        (["t.swf", "--jobs", "x", "--report", "./x"], "--jobs and --report both name x"),
        ([], "Missing argument 'TRACE'"),
    ],
)
def test_wrong_usage_is_told_in_one_line(simulate, words, told):
    code, out, err = simulate(
        *words, t_swf=FOUR, bare_swf=swf((1, 0, 1, 1), header=""), c_yaml=CLUSTER, n_csv=NODES,
        p_csv=OPENB + "p,1000,10,1,1000,,LS,Running,0,10,0\n",
        h_csv="job_id,submit_s,runtime_s,pods,gpus_per_pod,queue\nj,0,10,1,1,q\n",
    )  # fmt: skip
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert told in err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["nowhere.swf"], "nowhere.swf: there is no such file"),
        (["."], ".: is a folder; name a file in it"),
        (["t.swf", "--cluster", "nowhere.yaml"], "nowhere.yaml: "),
        (["t.swf", "--set", "scheduler.backfil=easy"], "unknown key backfil; did you mean backfill?"),
        (["t.swf", "--set", "queue.x.weight=2"], "there is no queue x"),
        (["h.csv", "--cluster", "none.yaml"], "none.yaml: nodes: there are none, so nothing could ever run"),
        (["t.swf", "--jobs", "no/such/x.csv"], "no/such/x.csv: there is no folder no/such; make it first"),
        (["t.swf", "--report", "."], ".: is a folder; name a file in it"),
        (["bad.swf"], "bad.swf:2: "),
        (["cut.gz"], "cut.gz: "),
        (["t.swf", "--nodes", "n.csv"], "a node list goes with an openb list of pods"),
        (["h.csv", "--processors", "3", "--cluster", "c.yaml"], "the number of processors goes with an swf log"),
        (["c.yaml"], "c.yaml: no known trace format"),
    ],
)
def test_wrong_input_is_told_in_one_line(simulate, words, told):
    code, out, err = simulate(
        *words, t_swf=FOUR, bad_swf="; MaxProcs: 4\n1 0 -1 ten 1 -1 -1 1 10 -1 1 1 1 -1 1 -1 -1 -1\n", c_yaml=CLUSTER,
        none_yaml="kind: Cluster\nnodes: []\n", n_csv=NODES, cut_gz=gzip.compress(FOUR.encode())[:-20],
        h_csv="job_id,submit_s,runtime_s,pods,gpus_per_pod,queue\nj,0,10,1,1,q\n",
    )  # fmt: skip
    assert (code, out) == (1, "")
    assert err.count("\n") == 1
    assert told in err


def test_a_report_that_cannot_be_written_leaves_the_old_one_and_the_summary_is_printed(simulate, tmp_path, monkeypatch):
    (tmp_path / "old.html").write_text("old")

    def full(_file):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    code, out, err = simulate("t.swf", "--report", "old.html", t_swf=FOUR)
    assert code == 3
    assert "mean wait" in out
    assert err == "old.html: no space left on device\n"
    assert (tmp_path / "old.html").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["old.html", "t.swf"]


def test_a_history_that_cannot_be_written_takes_nothing_else_along(simulate, tmp_path, monkeypatch):
    def full(*_):
        raise HistoryError("h.db", "the disk is full")

    monkeypatch.setattr("tenure.history.writing.simulation.write_simulation_file", full)
    code, out, err = simulate("t.swf", "--report", "r.html", "--jobs", "j.csv", "--history", "h.db", t_swf=FOUR)
    assert (code, err) == (3, "h.db: the disk is full\n")
    assert "mean wait" in out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["j.csv", "r.html", "t.swf"]


def test_no_jobs_at_all_are_a_warning(simulate):
    code, out, err = simulate("t.swf", "--from", "1d", t_swf=FOUR)
    assert code == 0
    assert err == "warning: t.swf: no jobs are left to simulate\n"
    assert "mean wait                    —" in out


def test_broken_invariants_are_counted_and_shown(simulate, monkeypatch):
    """A fault in the log is found by the checker, whatever the engine thinks of it."""
    run = module.Simulation.run

    def faulty(self, *rest):
        result = run(self, *rest)
        self.log.add(self.log.workloads[1])
        self.log.submit(0, 3)
        self.log.bind(0, 3, 0, 0)
        return result

    monkeypatch.setattr(module.Simulation, "run", faulty)
    code, out, _ = simulate("t.swf", t_swf=FOUR)
    assert code == 0
    assert "broken: " in out
    assert "node over capacity" in out or "order" in out


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_progress_and_an_early_end_on_a_terminal(tmp_path, number):
    """The line shows rate and time left; Ctrl-C and SIGTERM print what is known, consistent, and exit with 130."""
    trace = tmp_path / "long.swf"
    trace.write_text(swf(*((job, job, 400, 1 + job % 4) for job in range(1, 60_000)), header="; MaxProcs: 900\n"))
    master, slave = pty.openpty()
    code = "from tenure.cli.main import main; main()"
    command = [sys.executable, "-c", code, "simulate", str(trace), "--format", "json"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=slave, text=True) as process:
        os.close(slave)
        shown = b""
        while not re.search(rb"%  [1-9][0-9,]* of", shown):
            shown += os.read(master, 1000)
        process.send_signal(number)
        out, _ = process.communicate(timeout=60)
    with contextlib.suppress(OSError):  # what a terminal says once nobody writes to it any more
        while more := os.read(master, 10_000):
            shown += more
    os.close(master)
    assert process.returncode == 130
    found = json.loads(out)
    assert found["complete"] is False
    assert found["violations"] == 0
    assert 0 < found["finished"] < 59_999
    text = shown.decode()
    assert "jobs/s" in text
    assert " left" in text
    assert re.search(r"interrupted at \d[\w. ]*: ", text)


class Screen:
    """A terminal that remembers what was written."""

    def __init__(self):
        self.text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


class At:
    done, jobs, now = 500, 1000, 3_600_000_000


def test_the_progress_line_is_renewed_ten_times_a_second_and_taken_away(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    now, screen = [0.0], Screen()
    line = ProgressLine(screen, lambda: now[0])
    for tenth in range(1, 40):
        now[0] = tenth * 0.01
        line(At)
    assert screen.text.count("\r") == 3
    line.clear()
    assert screen.text.endswith("\r")
    plain = progress_text(500, 1000, 3_600_000_000, 5.0).replace("\N{NO-BREAK SPACE}", " ")
    assert plain == "50%  500 of 1,000 jobs  100 jobs/s  5 s left  virtual time 1 h"
    assert "just begun" in progress_text(0, 10, 0, 0.1)


def test_a_second_ctrl_c_does_not_wait():
    with interruptible() as interruption:
        os.kill(os.getpid(), signal.SIGINT)
        assert interruption.wanted
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            interruption.check()
        interruption.check()


def test_philly_replays_with_its_virtual_clusters_as_queues(simulate):
    trace = real_trace(PHILLY)
    cluster = HEAD + "nodes: [{name: g, count: 56, allocatable: {nvidia.com/gpu: 8}}]\n"
    found = figures(simulate, trace, "--cluster", "c.yaml", "--from", "60d", "--to", "62d", c_yaml=cluster)
    assert found["violations"] == 0
    assert found["finished"] == found["jobs"] > 500
    assert len(found["queues"]) > 5


def test_openb_runs_with_its_nodes(simulate):
    trace, nodes = real_trace("openb/openb_pod_list_default.csv.gz"), real_trace(OPENB_NODES)
    found = figures(simulate, trace, "--nodes", nodes, "--inflate", "0.2", "--seed", "1")
    assert found["violations"] == 0
    assert 0 < found["dropped"] < found["running"]
