"""``tenure simulate``: replay a trace on virtual time with the engine that decides for live clusters."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.history_option import writes_history
from tenure.cli.input.queues_option import queues_option
from tenure.cli.input.simulation_input import PreparedSimulation, SimulationOptions, prepare_input
from tenure.cli.input.trace_options import trace_options
from tenure.cli.terminal.errors import DONE, INTERRUPTED
from tenure.cli.terminal.progress import ProgressLine, busy, interruptible, reading
from tenure.cli.terminal.streams import reader_may_leave
from tenure.cli.terminal.targets import check_targets
from tenure.history.address import written_file
from tenure.report.summary_text import summary_text
from tenure.report.tables import terminal
from tenure.report.words import common_blanks, duration
from tenure.simulator.checker import Violations
from tenure.simulator.outcomes import PENDING, RUNNING, Outcomes
from tenure.simulator.run import Progress, Simulation
from tenure.simulator.whole_run import FinishedSimulation, finished, setup_of, summary_of

if TYPE_CHECKING:
    from tenure.history.store import HistoryStore
    from tenure.history.writing.simulation import PlanListener

EVENTS_BETWEEN_LOOKS = 16
"""Events after which progress is shown and Ctrl-C is heeded."""

SECOND = 1_000_000

MOST_NAMED = 3
"""Jobs that a warning names."""

LACKING = "they lack tasks to start with, or some are gated"


@click.command()
@click.argument("trace", type=click.Path())
@trace_options
@click.option("--cluster", metavar="FILE", help="Cluster file: nodes, queues, settings, and what runs already.")
@queues_option
@click.option("--scheduler", metavar="FILE", help="Settings of the scheduler, instead of the cluster file's.")
@click.option(
    "--set",
    "overrides",
    multiple=True,
    metavar="PATH=VALUE",
    help="Change one value: scheduler.KEY, queue.NAME.KEY, workload.NS/NAME.KEY or now. Any number of times.",
)
@click.option("--load", type=float, metavar="X", help="Divide the times between arrivals by X.")
@click.option(
    "--inflate",
    metavar="X",
    help="openb: arrivals only, drawn until they ask for X times the cluster's GPUs (1.3 or 130%); "
    "a pod that does not fit is dropped.",
)
@click.option("--seed", type=click.IntRange(0), metavar="N", help="Seed of --inflate; default 0.")
@click.option("--jobs", metavar="FILE.csv", help="Write one line per job.")
@click.option("--report", metavar="FILE.html", help="Write one self-contained page with pictures.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="Form of the output.",
)
@writes_history
def simulate(jobs: str | None, report: str | None, form: str, history: str | None, **given: Any) -> int:
    """Replay TRACE on virtual time and print a summary of its jobs.

    The same engine decides as for a live cluster, and an independent checker counts broken invariants. Without
    --cluster and --scheduler only the action 'allocate' is taken. Ctrl-C prints what is known so far and exits
    with 130.
    """
    source = SimulationOptions(**given)
    reads = (source.trace, *source.beside, source.cluster, source.queues, source.nodes, source.scheduler)
    check_targets({"--jobs": jobs, "--report": report, "--history": written_file(history)}, reads)
    store = _store(history)
    with reading():
        prepared = prepare_input(source)
    for warning in prepared.warnings:
        click.echo(f"warning: {warning}", err=True)
    run, listener = _run(prepared, source, records=store is not None)
    summary = summary_of(run, prepared.trace, source.trace)
    if not run.result.complete:
        at = common_blanks(duration(run.result.now / SECOND))
        click.echo(f"interrupted at {at}: this is what is known so far", err=True)
    else:
        for stranded in _stranded(run.outcomes, run.result.incomplete):
            click.echo(f"warning: {stranded}", err=True)
    with reader_may_leave():
        _print(summary, run.violations, form)
    _write_files(jobs, report, run, summary)
    if store is not None and listener is not None:
        _write_history(store, source.trace, run, listener)
    return DONE if run.result.complete else INTERRUPTED


def _stranded(outcomes: Outcomes, incomplete: Mapping[int, str]) -> Iterator[str]:
    """Say which jobs wait at the end of a complete simulation although nothing runs, and why, as far as that is known.

    ``incomplete``: what jobs lack, by number.
    """
    if RUNNING in outcomes.state:
        return
    arrived = (outcomes.submit >= 0).tolist()
    waiting = [n for n, state in enumerate(outcomes.state) if arrived[n] and state == PENDING]
    lacking = [n for n in waiting if n in incomplete]
    if lacking:
        why = {incomplete[n] for n in lacking}
        yield _left([outcomes.names[n] for n in lacking], min(why) if len(why) == 1 else LACKING)
    others = [outcomes.names[n] for n in waiting if n not in incomplete]
    if others:
        yield _left(others, "what is asked for never fits these nodes, or the limits of the queue forbid it")


def _left(names: Sequence[str], why: str) -> str:
    """Say why jobs wait at the end."""
    named = ", ".join(repr(name)[1:-1] for name in names[:MOST_NAMED])
    more = f" and {len(names) - MOST_NAMED:,} more" if len(names) > MOST_NAMED else ""
    waits = "job waits" if len(names) == 1 else "jobs wait"
    return f"{len(names):,} {waits} at the end although nothing runs any more ({named}{more}): {why}"


def _print(summary: dict[str, Any], violations: Violations, form: str) -> None:
    if form == "json":
        click.echo(json.dumps(summary, indent=2, ensure_ascii=False, allow_nan=False))
        return
    click.echo(summary_text(summary, terminal()), nl=False)
    for example in violations.examples:
        click.echo(f"broken: {example}")


def _store(history: str | None) -> HistoryStore | str | None:
    """Open the history to be written, before a long simulation rather than after it; a new file is named."""
    if history is None:
        return None
    from tenure.history import open_history  # noqa: PLC0415  only on demand
    from tenure.history.address import new_file  # noqa: PLC0415
    from tenure.history.writing.whole import may_be_made  # noqa: PLC0415

    path = new_file(history)
    if path is None:
        return open_history(history, write=True)
    may_be_made(path)
    return path


def _run(
    prepared: PreparedSimulation, source: SimulationOptions, *, records: bool
) -> tuple[FinishedSimulation, PlanListener | None]:
    """Simulate, and check what happened; with ``records`` what a history needs of the plans is kept."""
    line, arrivals_only = ProgressLine(), source.inflate is not None
    setup = setup_of(prepared.cluster, arrivals_only=arrivals_only)
    with interruptible() as interruption:

        def look(progress: Progress) -> None:
            line(progress)
            interruption.check()

        began = time.perf_counter()
        simulation, listener = Simulation(setup, prepared.trace), None
        if records:
            from tenure.history.writing.simulation import PlanListener  # noqa: PLC0415  only on demand

            simulation.heard = listener = PlanListener(prepared.cluster.now)
        result = simulation.run(look, EVENTS_BETWEEN_LOOKS)
        wall_s = time.perf_counter() - began
    line.show("checking what happened …")
    run = finished(result, prepared.trace, wall_s)
    line.clear()
    return run, listener


def _write_history(store: HistoryStore | str, trace: str, run: FinishedSimulation, listener: PlanListener) -> None:
    """Write what happened, once all else is told: a history that cannot be written takes nothing of that along."""
    from tenure.history.writing.simulation import write_simulation, write_simulation_file  # noqa: PLC0415  only on demand

    cluster, log = run.result.setup.cluster, run.result.log
    with busy("writing the history"):
        if isinstance(store, str):
            write_simulation_file(store, trace, cluster, log, run.outcomes, listener)
            return
        with store:
            write_simulation(store, trace, cluster, log, run.outcomes, listener)


def _write_files(jobs: str | None, report: str | None, run: FinishedSimulation, summary: dict[str, Any]) -> None:
    if jobs is not None:
        from tenure.simulator.jobs_csv import write_jobs_csv  # noqa: PLC0415  only on demand

        write_jobs_csv(run.outcomes, jobs)
    if report is not None:
        from tenure.model.documents.files import write_atomically  # noqa: PLC0415  only on demand
        from tenure.report.simulation_page import simulation_page  # noqa: PLC0415  only on demand

        page = simulation_page(run.outcomes, run.result.setup.cluster, summary, run.violations)
        write_atomically(report, page)
