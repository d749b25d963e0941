"""``tenure sweep``: simulations over settings, traces and seeds, side by side."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click

from tenure.cli.input.queues_option import queues_option
from tenure.cli.input.trace_options import trace_options
from tenure.cli.terminal.errors import DONE, INTERRUPTED
from tenure.cli.terminal.signals import end_as_interruption

if TYPE_CHECKING:
    from tenure.cli.input.simulation_input import SimulationOptions
    from tenure.report.sweep_page import SweepRow
    from tenure.simulator.sweep.points import SweepPoint
    from tenure.simulator.sweep.runners import SweepRunner

JOURNAL, PAGE, PARQUET, CSV = "results.jsonl", "index.html", "results.parquet", "results.csv"
BAR = 24
"""Letters of the progress bar."""

_FILES = ("trace", "cluster", "queues", "nodes", "scheduler")


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One simulation of a sweep: what is simulated, and by how much (µs) and with which seed the trace is shaken."""

    options: SimulationOptions
    shaking: int
    seed: int


@click.command()
@click.argument("traces", nargs=-1, required=True, type=click.Path(), metavar="TRACE…")
@click.option("--set", "axes", multiple=True, metavar="PATH=V1,V2,…",
              help="Values of a setting, as for simulate. Of several, every combination is simulated.")  # fmt: skip
@click.option("--seeds", type=click.IntRange(1, 10_000), default=1, show_default=True, metavar="N",
              help="Simulate each point N times: with seeds of --inflate, else with the trace shaken.")  # fmt: skip
@click.option("--shake", default="1m", show_default=True, metavar="D",
              help="Submit each job up to D earlier or later; with seed 0 nothing is moved.")  # fmt: skip
@click.option("--load", "loads", metavar="X,Y,…", help="Divide the times between arrivals by X, then by Y, ….")
@trace_options
@click.option("--cluster", metavar="FILE", help="Cluster file: nodes, queues, settings, and what runs already.")
@queues_option
@click.option("--scheduler", metavar="FILE", help="Settings of the scheduler, instead of the cluster file's.")
@click.option("--inflate", metavar="X", help="openb: arrivals only, drawn until they ask for X times the GPUs.")
@click.option("--processes", type=click.IntRange(1, 1024), metavar="N", help="Simulations side by side here.  "
              "[default: one for each processor]")  # fmt: skip
@click.option("--dask", metavar="ADDRESS", help="Simulate on the Dask cluster of this scheduler: tcp://HOST:PORT.")
@click.option("--out", default="sweep", show_default=True, type=click.Path(), metavar="FOLDER",
              help="Folder for results; a sweep that was stopped goes on with what is there.")  # fmt: skip
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
def sweep(  # noqa: PLR0913, PLR0917  one parameter for each option
    traces: tuple[str, ...], axes: tuple[str, ...], seeds: int, shake: str, loads: str | None,
    processes: int | None, dask: str | None, out: str, form: str, **given: Any,
) -> int:  # fmt: skip
    """Simulate TRACEs under all combinations of settings, loads and seeds.

    The folder of --out gets a page of curves (index.html), everything in columns (results.parquet, or results.csv
    without pyarrow), and a journal (results.jsonl), by which the same command goes on where it was stopped and does
    nothing twice.
    """
    from tenure.cli.input.inputs import duration_of  # noqa: PLC0415  loaded when it runs
    from tenure.report.sweep_page import SweepRow  # noqa: PLC0415
    from tenure.simulator.sweep.carry_out import carry_out  # noqa: PLC0415
    from tenure.simulator.sweep.journal import SweepJournal  # noqa: PLC0415

    if processes is not None and dask is not None:
        raise click.UsageError("--processes says how many simulations run here, --dask that they run elsewhere; leave "
                               "one of them out")  # fmt: skip
    _check_written(out, traces, given)
    points = _points(traces, _axes(axes), _loads(loads), seeds, duration_of(shake, "--shake"), given)
    folder = _folder(out)
    with SweepJournal(folder / JOURNAL) as journal, _Progress() as progress, end_as_interruption():
        try:
            results = carry_out(points, simulate_point, _runner(processes, dask), journal, progress)
        except KeyboardInterrupt:
            done = sum(point.key in journal.results for point in points)
            progress.clear()
            click.echo(f"interrupted: {done} of {len(points)} simulations are done; the same command goes on", err=True)
            return INTERRUPTED
    rows = [SweepRow(point.values, result) for point, result in zip(points, results, strict=True)]
    _tell(rows, _written(folder, rows), form)
    return DONE


def simulate_point(task: SweepTask) -> dict[str, Any]:
    """Simulate one point of a sweep and give its summary. It runs wherever the sweep says."""
    from tenure.cli.input.simulation_input import prepare_input  # noqa: PLC0415  loaded when it runs
    from tenure.simulator.shaking import shake  # noqa: PLC0415
    from tenure.simulator.whole_run import run_whole, setup_of, summary_of  # noqa: PLC0415

    arrivals_only = task.options.inflate is not None
    prepared = prepare_input(task.options)
    trace = prepared.trace if arrivals_only else shake(prepared.trace, task.shaking, task.seed)
    run = run_whole(setup_of(prepared.cluster, arrivals_only=arrivals_only), trace)
    if not run.result.complete:
        raise KeyboardInterrupt  # a part of a simulation is none of a sweep's results
    return summary_of(run, trace, task.options.trace)


def _axes(given: Sequence[str]) -> dict[str, list[str]]:
    from tenure.simulator.sweep.points import split_values  # noqa: PLC0415

    found: dict[str, list[str]] = {}
    for text in given:
        path, equals, values = text.partition("=")
        if not equals:
            raise click.UsageError(
                f"--set {text}: has no '='; write PATH=V1,V2,…, such as scheduler.backfill=none,easy"
            )
        if path in found:
            raise click.UsageError(f"--set {path} is there twice; write its values behind one '=', with commas")
        try:
            found[path.strip()] = split_values(values)
        except ValueError as error:
            raise click.UsageError(f"--set {path}: {error}") from None
    return found


def _loads(text: str | None) -> list[float | None]:
    from tenure.simulator.sweep.points import split_values  # noqa: PLC0415

    if text is None:
        return [None]
    try:
        return [float(value) for value in split_values(text)]
    except ValueError as error:
        raise click.UsageError(f"--load: {error}; write numbers such as 0.8,1.0,1.2") from None


def _points(
    traces: Sequence[str], axes: dict[str, list[str]], loads: Sequence[float | None], seeds: int, shaking: int,
    given: dict[str, Any],
) -> list[SweepPoint]:  # fmt: skip
    """Give all points of the sweep; whatever would be wrong with any of them is told before the first is simulated."""
    from tenure.cli.input.simulation_input import SimulationOptions  # noqa: PLC0415
    from tenure.simulator.sweep.points import SweepPoint, combinations, key_of  # noqa: PLC0415

    sets = combinations(axes)
    base = SimulationOptions(trace=traces[0], **given)
    _check(traces, base, sets, loads)
    digests: dict[str, str] = {}
    release = version("tenure")  # looked up in what is installed, which takes longer than all else of a point
    points = []
    for trace, name in zip(traces, _names(traces), strict=True):
        for load in loads:
            for chosen in sets:
                overrides = tuple(f"{path}={value}" for path, value in chosen.items())
                for seed in range(seeds):
                    own = seed if base.inflate is not None else None
                    options = replace(base, trace=trace, overrides=overrides, load=load, seed=own)
                    task = SweepTask(options, shaking, seed)
                    values: dict[str, str | int | float] = {"trace": name}
                    values |= {} if load is None else {"load": load}
                    key = key_of(release, *_told(task, digests))
                    points.append(SweepPoint(key, {**values, **chosen, "seed": seed}, task))
    return points


def _told(task: SweepTask, digests: dict[str, str]) -> Iterator[Any]:
    """Give all that the outcome of a task depends on: files by their content, everything else by its value."""
    from tenure.simulator.sweep.points import key_of  # noqa: PLC0415

    plain = asdict(task.options)
    for path in (*(plain.pop(name) for name in _FILES), *plain.pop("beside")):
        if path is not None and path not in digests:
            digests[path] = key_of(Path(path).read_bytes())
        yield digests.get(path)
    yield plain
    yield task.seed, task.shaking if task.seed else 0


def _check(
    traces: Sequence[str], base: SimulationOptions, sets: Sequence[dict[str, str]], loads: Sequence[float | None]
) -> None:
    from tenure.cli.input.simulation_input import prepare_input  # noqa: PLC0415
    from tenure.model.file.override import apply_overrides  # noqa: PLC0415
    from tenure.model.values.problems import InputProblem, InvalidInputError  # noqa: PLC0415

    read = [*traces, *base.beside, *filter(None, (getattr(base, name) for name in _FILES))]
    why = "can be read only once, and a sweep reads it for each simulation; write it to a file first"
    problems = [InputProblem(path, 0, "", why) for path in dict.fromkeys(read) if _is_stream(path)]
    if problems:
        raise InvalidInputError(problems)
    warnings: dict[str, None] = {}
    for trace in dict.fromkeys(traces):
        try:
            prepared = prepare_input(replace(base, trace=trace, load=loads[0]))
        except InvalidInputError as error:
            problems += error.problems
            continue
        warnings |= dict.fromkeys(prepared.warnings)
        for chosen in sets:
            try:
                apply_overrides(prepared.cluster, [f"{path}={value}" for path, value in chosen.items()])
            except InvalidInputError as error:
                problems += error.problems
    if problems:
        raise InvalidInputError(dict.fromkeys(problems))
    for warning in warnings:
        click.echo(f"warning: {warning}", err=True)


def _is_stream(path: str) -> bool:
    return Path(path).exists() and not Path(path).is_file() and not Path(path).is_dir()


def _names(traces: Sequence[str]) -> list[str]:
    """Name traces by their files, as short as they can still be told apart."""
    stems = [Path(trace).name.partition(".")[0] for trace in traces]
    return [trace if stems.count(stem) > 1 else stem for trace, stem in zip(traces, stems, strict=True)]


def _check_written(out: str, traces: Sequence[str], given: dict[str, Any]) -> None:
    """Refuse a folder in which something is read that would be written anew."""
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415

    reads = [*traces, *given["beside"], *(given.get(name) for name in _FILES)]
    for path in (Path(out) / name for name in (JOURNAL, PAGE, PARQUET, CSV)):
        if path.exists():
            check_targets({"--out": str(path)}, reads)


def _folder(out: str) -> Path:
    from tenure.model.values.problems import InputProblem, InvalidInputError  # noqa: PLC0415

    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise InvalidInputError([InputProblem(out, 0, "", "is no folder; name one for the results")])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _runner(processes: int | None, dask: str | None) -> SweepRunner:
    from tenure.simulator.sweep.runners import DaskCluster, LocalProcesses  # noqa: PLC0415

    return LocalProcesses(processes) if dask is None else DaskCluster(dask)


class _Progress:
    """A bar on the terminal: how many simulations are done, and how long the rest takes at this pace."""

    def __init__(self) -> None:
        from tenure.cli.terminal.progress import ProgressLine  # noqa: PLC0415

        self.line = ProgressLine()
        self.began = time.monotonic()
        self.first: int | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.clear()

    def __call__(self, done: int, count: int) -> None:
        """Show how far it is."""
        from tenure.report.words import duration  # noqa: PLC0415

        if self.first is None:
            self.first = done
        passed, now = time.monotonic() - self.began, done - self.first
        left = f"{duration(round((count - done) * passed / now))} left" if now else "just begun"
        full = BAR * done // max(count, 1)
        self.line.show(f"{'█' * full}{'░' * (BAR - full)} {done:,} of {count:,} simulations  {left}")

    def clear(self) -> None:
        """Take the bar away."""
        self.line.clear()


def _written(folder: Path, rows: Sequence[SweepRow]) -> list[str]:
    """Write the page and the columns; give the names of the files."""
    from tenure.model.documents.files import write_atomically  # noqa: PLC0415
    from tenure.report.sweep_page import flat_rows, sweep_page  # noqa: PLC0415
    from tenure.simulator.traces.parquet import to_parquet  # noqa: PLC0415

    write_atomically(folder / PAGE, sweep_page(rows))
    flat = flat_rows(rows)
    names = list(dict.fromkeys(name for row in flat for name in row))
    columns = {name: [row.get(name) for row in flat] for name in names}
    types = {name: _arrow_type(values) for name, values in columns.items()}
    try:
        write_atomically(folder / PARQUET, to_parquet(_cast(columns, types), types))
        table = PARQUET
    except ModuleNotFoundError:
        text = io.StringIO()
        writer = csv.DictWriter(text, names, lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)
        write_atomically(folder / CSV, text.getvalue())
        table = CSV
        click.echo("pyarrow is not installed, so the columns are written as CSV; for Parquet: pip install "
                   "'tenure[parquet]'", err=True)  # fmt: skip
    return [str(folder / name) for name in (PAGE, table, JOURNAL)]


def _arrow_type(values: Sequence[Any]) -> str:
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return "bool"
    if kinds <= {int} and kinds:
        return "int64"
    return "float64" if kinds <= {int, float} else "string"


def _cast(columns: dict[str, list[Any]], types: dict[str, str]) -> dict[str, list[Any]]:
    kinds: dict[str, Any] = {"string": str, "float64": float}
    return {
        name: [None if value is None else kinds.get(types[name], lambda same: same)(value) for value in values]
        for name, values in columns.items()
    }


def _tell(rows: Sequence[SweepRow], files: list[str], form: str) -> None:
    from tenure.model.values.problems import printable  # noqa: PLC0415
    from tenure.report.sweep_page import flat_rows, sweep_text  # noqa: PLC0415
    from tenure.report.tables import terminal  # noqa: PLC0415

    if form == "json":
        click.echo(json.dumps({"points": flat_rows(rows), "files": files}, indent=1, ensure_ascii=False))
        return
    click.echo(sweep_text(rows, terminal()), nl=False)
    for file in files:
        click.echo(f"written: {printable(file)}")
