"""What ``tenure simulate`` starts from: a cluster and a trace, made of files and options."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import click

from tenure.cli.input.queues_option import read_queues
from tenure.model.cluster import DEFAULT_QUEUE, Cluster
from tenure.model.file.load import load_cluster, load_settings
from tenure.model.file.override import apply_overrides
from tenure.model.policy import Policy
from tenure.model.settings import Settings
from tenure.model.values.duration import parse_duration
from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.model.values.resources import GPU, MILLI
from tenure.report.words import count
from tenure.simulator.run import prepare
from tenure.simulator.trace import Trace, read_trace, scale_load, slice_trace
from tenure.simulator.traces.mapping import parse_columns
from tenure.simulator.traces.queue_from import names_in

ALONE = Settings(actions=("allocate",))
"""Settings of a trace that comes without any: its queues are all alike, so that only placing counts."""

INNER_QUEUE = "queue is not a leaf"

NO_END = "no job ever ends: the column runtime_s says when they do, and there is none of that name, or nothing in it"
"""Warns of a trace in Tenure's own format, in which the column may be left out."""

SECOND = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulationOptions:
    """The options of ``tenure simulate`` that say what is simulated, as they were given.

    ``base`` is a cluster that was read already, instead of one from ``cluster``; ``policy`` takes the place of the
    queues and settings of either.
    """

    trace: str
    trace_format: str | None = None
    columns: str | None = None
    queue_from: str | None = None
    beside: tuple[str, ...] = ()
    cluster: str | None = None
    queues: str | None = None
    nodes: str | None = None
    processors: int | None = None
    scheduler: str | None = None
    overrides: tuple[str, ...] = ()
    start: str | None = None
    end: str | None = None
    load: float | None = None
    inflate: str | None = None
    seed: int | None = None
    base: Cluster | None = None
    policy: Policy | None = None


@dataclass(frozen=True, slots=True)
class PreparedSimulation:
    """A cluster and a trace that go together, and what deserves a warning."""

    cluster: Cluster
    trace: Trace
    warnings: list[str] = field(default_factory=list)


def prepare_input(given: SimulationOptions) -> PreparedSimulation:
    """Read everything and put it together.

    Raises
    ------
    click.UsageError
        Options do not go together, or one is missing.
    InvalidInputError
        A file or an override is wrong.
    """
    begin, end, share = _check_options(given)
    warnings: list[str] = []
    policy, found = read_queues(given.queues)
    warnings += map(str, found)
    cluster = _cluster(given if policy is None else replace(given, policy=policy), warnings)
    trace = _trace(given, begin, end)
    warnings += [f"{given.trace}: {note}" for note in trace.notes]
    _check_together(given, trace, cluster)
    trace = slice_trace(trace, begin, end)
    if trace.format == "tenure" and trace.jobs and all(job.runtime is None for job in trace.jobs):
        warnings.append(f"{given.trace}: {NO_END}")
    if given.load is not None:
        trace = scale_load(trace, given.load)
    cluster = prepare(cluster, trace)
    _require_nodes(given, cluster, trace)
    if share is not None:
        trace = _inflated(given, trace, cluster, share)
    if not trace.jobs:
        warnings.append(f"{given.trace}: no jobs are left to simulate")
    overridden = apply_overrides(cluster, given.overrides)
    warnings += map(str, overridden.warnings)
    trace = _keep_to_leaves(given, trace, overridden.cluster, warnings)
    return PreparedSimulation(overridden.cluster, trace, warnings)


def _trace(given: SimulationOptions, begin: float | None, end: float | None) -> Trace:
    return read_trace(
        given.trace, format=given.trace_format, processors=given.processors, nodes_file=given.nodes, start_s=begin,
        end_s=end, columns=given.columns, queue_from=given.queue_from, beside=given.beside,
    )  # fmt: skip


def _check_options(given: SimulationOptions) -> tuple[float | None, float | None, float | None]:
    """Check what can be checked before anything is read; give from, to and inflate as numbers."""
    for option, text, read in (
        ("--columns", given.columns, parse_columns),
        ("--queue-from", given.queue_from, names_in),
    ):
        try:
            if text is not None:
                read(text)
        except ValueError as error:
            raise click.UsageError(f"{option}: {error}") from None
    begin, end = _seconds(given.start, "--from"), _seconds(given.end, "--to")
    if begin is not None and end is not None and begin >= end:
        raise click.UsageError(f"--from {given.start} is not before --to {given.end}")
    if given.load is not None and not 0 < given.load < math.inf:
        raise click.UsageError(f"--load {given.load} is not a positive number; 1.2 is 20% more load")
    if given.seed is not None and given.inflate is None:
        raise click.UsageError("--seed goes with --inflate, which draws; nothing else here is random")
    if given.inflate is None:
        return begin, end, None
    if given.load is not None or begin is not None or end is not None:
        raise click.UsageError("--inflate makes its own arrivals, so --from, --to and --load do not go with it")
    return begin, end, _share(given.inflate)


def _seconds(text: str | None, option: str) -> float | None:
    """Read a time of the trace: its own seconds, or a duration since its second 0."""
    if text is None:
        return None
    try:
        value = float(text)
    except ValueError:
        try:
            return parse_duration(text) / SECOND
        except ValueError:
            raise click.UsageError(f"{option} {text!r} is no time; write the trace's seconds, or such as 30d") from None
    if not math.isfinite(value) or abs(value) > 1e11:  # noqa: PLR2004  3,000 years, beyond which µs do not fit
        raise click.UsageError(f"{option} {text} is out of range")
    return value


def _share(text: str) -> float:
    try:
        value = float(text[:-1]) / 100 if text.endswith("%") else float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:  # noqa: PLR2004  a hundred times the cluster is a typing error
        raise click.UsageError(f"--inflate {text!r} is no share of the cluster's GPUs; write 1.3 or 130%")
    return value


def _cluster(given: SimulationOptions, warnings: list[str]) -> Cluster:
    if given.base is not None:
        return given.base if given.policy is None else given.policy.over(given.base)
    if given.cluster is None:
        settings = ALONE if given.scheduler is None else load_settings(given.scheduler)
        bare = Cluster(now=0, settings=settings)
        return bare if given.policy is None else given.policy.over(bare)
    loaded = load_cluster(given.cluster, given.policy)
    warnings += map(str, loaded.warnings)
    if given.scheduler is None:
        return loaded.cluster
    under = replace(loaded.cluster, settings=load_settings(given.scheduler))
    return under if given.policy is None else given.policy.over(under)


def _check_together(given: SimulationOptions, trace: Trace, cluster: Cluster) -> None:
    if given.inflate is not None and trace.format != "openb":
        raise click.UsageError(f"--inflate goes with an openb list of pods; {given.trace} is of format {trace.format}")
    if cluster.nodes and given.nodes is not None:
        raise click.UsageError(f"both {given.cluster} and --nodes {given.nodes} bring nodes; leave one of them out")


def _require_nodes(given: SimulationOptions, cluster: Cluster, trace: Trace) -> None:
    if cluster.nodes:
        return
    if given.nodes is not None:
        raise InvalidInputError([InputProblem(given.nodes, 0, "", "lists no nodes")])
    if given.cluster is not None:
        raise InvalidInputError([InputProblem(given.cluster, 0, "nodes", "there are none, so nothing could ever run")])
    needed = {
        "openb": "an openb list of pods needs its list of nodes: --nodes FILE, or --cluster FILE",
        "swf": "its header does not say how many processors there are (MaxProcs): --processors N, or --cluster FILE",
    }
    reason = needed.get(trace.format, f"a {trace.format} trace says nothing of nodes: give them with --cluster FILE")
    raise click.UsageError(f"{given.trace}: {reason}")


def _inflated(given: SimulationOptions, trace: Trace, cluster: Cluster, share: float) -> Trace:
    from tenure.simulator.traces.openb import inflate  # noqa: PLC0415  only for this experiment

    capacity = sum(node.allocatable.get(GPU, 0) for node in cluster.nodes) * MILLI
    if not capacity:
        raise click.UsageError("--inflate measures by the GPUs of the cluster, and it has none")
    try:
        return inflate(trace, capacity, share, given.seed or 0)
    except ValueError as error:
        raise InvalidInputError([InputProblem(given.trace, 0, "", str(error))]) from None


def _keep_to_leaves(given: SimulationOptions, trace: Trace, cluster: Cluster, warnings: list[str]) -> Trace:
    """Warn of jobs whose queue is not there (the simulation drops them), and drop those of inner queues."""
    named = Counter(job.workload.queue or DEFAULT_QUEUE for job in trace.jobs)
    known = {queue.name for queue in cluster.queues} or {DEFAULT_QUEUE}
    inner = {queue.parent for queue in cluster.queues if queue.parent is not None}
    for names, what in (
        (sorted(named.keys() - known), "queues that are not configured"),
        (sorted(named.keys() & inner), "queues that are not leaves"),
    ):
        if names:
            jobs = sum(named[name] for name in names)
            dropped = f"{count(jobs, 'job')} {'is' if jobs == 1 else 'are'} dropped"
            warnings.append(f"{given.trace}: {dropped}, of {what}: {_listed(names)}")
    if not named.keys() & inner:
        return trace
    kept = tuple(job for job in trace.jobs if (job.workload.queue or DEFAULT_QUEUE) not in inner)
    lost = len(trace.jobs) - len(kept)
    reasons = {**trace.drop_reasons, INNER_QUEUE: lost}
    return replace(trace, jobs=kept, dropped=trace.dropped + lost, drop_reasons=reasons)


def _listed(names: Sequence[str], limit: int = 10) -> str:
    more = len(names) - limit
    return ", ".join(names[:limit]) + (f" and {more} more" if more > 0 else "")
