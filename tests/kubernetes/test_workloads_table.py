"""The table of a live cluster's workloads counts each task where it stands."""

from tests.kubernetes.pods import NOW, node, pod, watching

from tenure.cli.workloads import _rows

GOING = {"deletionTimestamp": "2026-11-20T09:59:50Z", "deletionGracePeriodSeconds": 30}


def counts(*pods):
    """Give by workload how many tasks run, wait, leave and have ended."""
    cluster = watching(node("n", cpu="99"), *pods).observe(NOW).cluster
    names = ("running", "waiting", "leaving", "ended")
    return {row["workload"].partition("/")[2]: tuple(row[name] for name in names) for row in _rows(cluster)}


def test_what_was_bound_runs_and_what_has_ended_is_not_left_out():
    """A Job of which all has ended is not shown as one of which nothing ever ran."""
    of = {"owner": ("Job", "job")}
    found = counts(
        pod("bound", node="n", phase="Pending"), pod("runs", node="n"), pod("waits"), pod("goes", node="n", **GOING),
        pod("done", node="n", phase="Succeeded"), pod("job-0", node="n", phase="Succeeded", **of),
        pod("job-1", node="n", phase="Failed", **of), pod("job-2", node="n", **of), pod("job-3", **of),
    )  # fmt: skip
    assert found == {
        "bound": (1, 0, 0, 0), "runs": (1, 0, 0, 0), "waits": (0, 1, 0, 0), "goes": (0, 0, 1, 0), "done": (0, 0, 0, 1),
        "job": (1, 1, 0, 2),
    }  # fmt: skip
