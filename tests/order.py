"""The order in which the suite runs over several workers: what mostly waits begins first, and the longest of it.

Tests on a control plane, a database or a browser share what they start with those of their file, so a file of theirs is
one piece of work; any other test is one by itself, so that no worker ends long after the others. One worker of four
computes meanwhile: what waits leaves half of the processors idle.
"""

from __future__ import annotations

from xdist.scheduler.loadscope import LoadScopeScheduling

SHARING = ("tests/kubernetes/", "tests/history/", "tests/browser/")
"""Folders whose tests share with their file what takes long to start. They wait more than they compute."""

TOGETHER = (
    "tests/cli/test_plain_install.py", "tests/cli/test_bulky.py", "tests/cli/test_exit_codes.py",
    "tests/cli/test_hostile.py",
    "tests/cli/test_terminal.py", "tests/docs/test_glossary.py", "tests/docs/test_site.py", "tests/docs/test_words.py",
    "tests/requeue/test_experiment.py", "tests/simulator/test_min_runtime_experiment.py", "tests/web/",
)  # fmt: skip
"""Files elsewhere whose tests share what takes the processor long to make: it is made once, by one worker."""

LONGEST = (
    "tests/kubernetes/test_tenants.py", "tests/kubernetes/test_integrations.py", "tests/kubernetes/test_outages.py",
    "tests/kubernetes/test_crashes.py", "tests/kubernetes/test_moves.py", "tests/kubernetes/test_scheduler.py",
    "tests/kubernetes/test_history_trouble.py", "tests/kubernetes/foreign/test_ends.py",
    "tests/kubernetes/test_cases.py", "tests/kubernetes/test_referee.py", "tests/kubernetes/test_history.py",
    "tests/kubernetes/test_volumes.py", "tests/browser/test_console.py", "tests/history/test_sums_kept.py",
    "tests/kubernetes/test_demo.py", "tests/kubernetes/test_history_records.py", "tests/kubernetes/test_install.py",
    "tests/kubernetes/foreign/test_moves.py", "tests/kubernetes/test_rights.py",
)  # fmt: skip
"""Files whose tests take a minute and more, the longest first."""

LONG = (
    "tests/properties/test_causes_add_up.py", "tests/cli/test_exit_codes.py", "tests/cli/test_bulky.py",
    "tests/rescheduler/test_month.py",
    "tests/cli/test_hostile.py", "tests/simulator/test_easy_traces.py", "tests/docs/test_commands.py",
    "tests/requeue/test_simulation.py", "tests/requeue/test_memory.py", "tests/rescheduler/test_dies_out.py",
    "tests/cli/test_silent_server.py",
    "tests/rescheduler/test_triggers.py", "tests/rescheduler/test_decompose.py", "tests/notices/test_properties.py",
    "tests/rescheduler/test_reassignment.py", "tests/simulator/test_philly_replay.py",
)  # fmt: skip
"""Files of tests that take long, of the processor."""


ALIKE = (
    ("test_integrations.py", "test_cases.py", "test_kueue.py", "test_frameworks.py", "test_bindings.py"),
    ("test_crashes.py", "test_framework_volumes.py", "test_device_crashes.py", "test_volume_crashes.py"),
    ("foreign/test_ends.py", "foreign/test_moves.py", "foreign/test_policy.py", "foreign/test_read.py"),
)  # fmt: skip
"""Files with a control plane unlike that of most: a worker that has begun one goes on with its others.

On some the tests are the controllers and the nodes themselves, on one kube-scheduler runs.
"""


LAST = ("tests/kubernetes/test_gpu_parts.py",)
"""Files with an installation unlike that of most: who goes on after one starts another control plane."""


def piece_of(nodeid: str) -> str:
    """Name the piece of work that a test belongs to."""
    for files in ALIKE:
        if nodeid.partition("::")[0].removeprefix("tests/kubernetes/") in files:
            return files[0]
    return nodeid.partition("::")[0] if nodeid.startswith((*SHARING, *TOGETHER)) else nodeid


def rank(nodeid: str) -> tuple[int, int]:
    """Give what tests are sorted by: those that wait, then the long ones, then all others as they stand.

    A worker ends its control plane with the last of the tests that have one, so these come first.
    """
    file = nodeid.partition("::")[0]
    for place, folder in enumerate(SHARING):
        if nodeid.startswith(folder):
            first = LONGEST.index(file) if file in LONGEST else len(LONGEST)
            return min(place, 1), len(LONGEST) + 1 if file in LAST else first
    return (2, LONG.index(file)) if file in LONG else (3, 0)


def waits(piece: str) -> bool:
    """Tell whether a piece of work, or a test, mostly waits."""
    return piece.startswith(SHARING) or any(piece == files[0] for files in ALIKE)


def computes(worker: str) -> bool:
    """Tell whether a worker, ``gw0`` and so on, begins with what computes: the fourth, the eighth …"""
    return int(worker.removeprefix("gw")) % 4 == 3


class LongestFirst(LoadScopeScheduling):
    """Gives pieces of work to workers in the order of the tests; some begin with the first that computes."""

    def __init__(self, config, log=None) -> None:
        super().__init__(config, log)
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        return piece_of(nodeid)

    def _assign_work_unit(self, node) -> None:
        if computes(node.gateway.id):
            first = next((piece for piece in self.workqueue if not waits(piece)), next(iter(self.workqueue)))
            self.workqueue.move_to_end(first, last=False)
        super()._assign_work_unit(node)
