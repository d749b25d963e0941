"""How much hypothesis tries, and the command line as a test runs it.

A moderate number of examples, or many with ``TENURE_EXAMPLES=thorough``.

Moderately, the examples are the same in each run, and one that fails is shown as it was found: making a random cluster
smaller takes minutes. Thoroughly, they are new each time, and what fails is made as small as it goes.
"""

from __future__ import annotations

import gc
import os
import signal
from functools import wraps

import pytest
from hypothesis import HealthCheck, Phase, settings

from tenure.cli.main import main
from tenure.cycle import Scheduler
from tenure.engine.memo import Memo
from tenure.engine.state import lifecycle
from tenure.engine.state.audit import audit
from tenure.victims.recording.record import PLACING

COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}

settings.register_profile(
    "moderate", max_examples=30, derandomize=True, phases=[Phase.explicit, Phase.generate], **COMMON
)
settings.register_profile("thorough", max_examples=3000, **COMMON)
settings.load_profile(os.environ.get("TENURE_EXAMPLES", "moderate"))

MOST_WHY, MOST_LETTERS = 40, 1000
"""Lines that are shown of why a test was run once more, and letters of each."""

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell lets what it starts in the background ignore Ctrl-C, and so would all commands that tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """What is loaded and collected stays until the end: the garbage collector never looks through it.

    It looks through what is new after fifty thousand objects: after seven hundred, as it is used to, it takes a tenth
    of the processor.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()
        gc.set_threshold(50_000, 10, 10)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Several workers are given the longest first, and what shares a control plane together."""
    from tests.order import LongestFirst  # noqa: PLC0415  pytest-xdist is there where this is asked

    return LongestFirst(config, log)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    """Sort for several workers; one runs the tests as they stand."""
    if hasattr(config, "workerinput"):
        from tests.order import rank  # noqa: PLC0415

        items.sort(key=lambda item: rank(item.nodeid))


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter):
    """Say at the end, in few lines, why tests were run once more: what passes then is else hard to understand later."""
    again = terminalreporter.stats.get("rerun", ())
    if again:
        terminalreporter.write_sep("=", "run once more")
    for report in again:
        terminalreporter.write_line(report.nodeid)
        why = [line for line in str(report.longrepr).splitlines() if line.startswith("E ")]
        for line in why[:MOST_WHY]:
            terminalreporter.write_line(line[:MOST_LETTERS])


@pytest.fixture(autouse=True, scope="session")
def _audited():
    """In every test, each change of a task's state is one of the table, and what a cycle leaves behind adds up.

    Whatever a memo gives is worked out once more and compared.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Memo, "checked", True)
        for name, allowed in lifecycle.TRANSITIONS.items():
            patch.setattr(lifecycle, name, _by_the_table(name, getattr(lifecycle, name), allowed))
        patch.setattr(Scheduler, "cycle", _adding_up(Scheduler.cycle))
        yield


def _by_the_table(name, change, allowed):
    @wraps(change)
    def changed(journal, task, *given):
        before = lifecycle.life_of(task)
        change(journal, task, *given)
        assert lifecycle.life_of(task) is allowed.get(before, name), (name, before, lifecycle.life_of(task))

    return changed


def _is_outcome(session, step):
    """Whether what a step binds or promises is so at the end of the cycle."""
    task = session.workloads[step.workload].tasks[step.task_index]
    return session.nodes.names[task.node if step.action == "bind" else task.nominated] == step.node


def _adding_up(cycle):
    @wraps(cycle)
    def cycled(scheduler, now):
        plan = cycle(scheduler, now)
        last = {(step.workload, step.task_index): step for step in plan.steps if step.action in PLACING}
        assert [step for step in last.values() if not _is_outcome(scheduler.session, step)] == []
        if not scheduler.cycles & (scheduler.cycles - 1):  # of many cycles the 1st, 2nd, 4th, 8th …
            assert audit(scheduler.session) == []
        return plan

    return cycled


@pytest.fixture
def run_command(capsys):
    """Run the command line; gives its exit code, what it printed, and what it complained of."""

    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        printed = capsys.readouterr()
        return ended.value.code, printed.out, printed.err

    return call
