"""``tenure generate``: a seeded workload after a published model."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Literal

import click

from tenure.cli.terminal.streams import reader_may_leave

if TYPE_CHECKING:
    from tenure.simulator.generate import GeneratorConfig
    from tenure.simulator.trace import Trace

STANDARD_OUTPUT = "-"


@click.command()
@click.option("--jobs", type=int, help="How many jobs.  [default: 1000]")
@click.option("--days", type=float, help="Days between the first and the last arrival.")
@click.option("--load", type=float, help="Offered load: work divided by capacity and time.  [default: 0.8]")
@click.option("--gpus", type=int, help="GPUs of the cluster that the workload is for.  [default: 64]")
@click.option("--processors", type=int, help="Processors of the cluster, instead of GPUs.")
@click.option("--per-node", type=int, default=8, show_default=True, help="GPUs or processors of a node.")
@click.option(
    "--queues", type=int, default=3, show_default=True, help="Leaf queues; the k-th gets 1/k of the first's jobs."
)
@click.option("--users", type=int, default=8, show_default=True, help="Users in each queue.")
@click.option("--shared", type=float, default=0.25, show_default=True, help="Part of one-GPU jobs that share the GPU.")
@click.option("--saving", type=float, default=0.5, show_default=True, help="Part of the jobs that make checkpoints.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Seed of all random numbers.")
@click.option("--out", default=STANDARD_OUTPUT, show_default=True, help="The trace: FILE.csv, FILE.parquet, or '-'.")
@click.option("--format", "form", type=click.Choice(["csv", "parquet"]), help="Form of the trace.  [default: by name]")
@click.option("--cluster", "cluster_file", help="Also write the matching cluster file: its nodes and queues.")
def generate(  # noqa: PLR0913  one parameter per option
    *,
    jobs: int | None,
    days: float | None,
    load: float | None,
    gpus: int | None,
    processors: int | None,
    per_node: int,
    queues: int,
    users: int,
    shared: float,
    saving: float,
    seed: int,
    out: str,
    form: str | None,
    cluster_file: str | None,
) -> None:
    """Write a workload in Tenure's own trace format, and a summary of it to standard error.

    Sizes, run times and arrivals with a daily cycle are those of Lublin and Feitelson's model of parallel workloads
    (2003), as gangs of pods with GPUs. Of jobs, days and load any two decide the third. The same options and seed
    give the same trace: 'tenure simulate' replays it.
    """
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.simulator.generate import DEFAULT_CAPACITY, GeneratorConfig, TooManyJobsError, cluster_for  # noqa: PLC0415  numpy is not needed for --help
    from tenure.simulator.generate import generate as make  # noqa: PLC0415

    check_targets({"--out": out, "--cluster": cluster_file})
    if gpus is not None and processors is not None:
        raise click.UsageError("--gpus and --processors are given: a cluster here has one or the other")
    unit: Literal["gpu", "cpu"] = "gpu" if processors is None else "cpu"
    given = gpus if processors is None else processors
    config = GeneratorConfig(
        jobs=jobs,
        days=days,
        load=load,
        capacity=DEFAULT_CAPACITY if given is None else given,
        unit=unit,
        node_size=per_node,
        queues=queues,
        users=users,
        shared=shared,
        saving=saving,
    )
    problems = config.problems()
    if problems:
        raise click.UsageError("; ".join(problems))
    try:
        trace = make(config, seed)
    except TooManyJobsError as error:
        raise click.UsageError(str(error)) from error
    with reader_may_leave():
        _write_trace(trace, out, form)
    if cluster_file is not None:
        _write_cluster(cluster_file, cluster_for(config))
    click.echo(_summary(trace, config, seed), err=True)


def _write_trace(trace: Trace, out: str, form: str | None) -> None:
    from tenure.model.documents.files import write_atomically  # noqa: PLC0415  only needed where something is written
    from tenure.simulator.traces.writer import trace_to_csv, trace_to_parquet  # noqa: PLC0415

    parquet = form == "parquet" or (form is None and out.endswith(".parquet"))
    content = trace_to_parquet(trace) if parquet else trace_to_csv(trace).encode()
    if out != STANDARD_OUTPUT:
        write_atomically(out, content)
        return
    sys.stdout.buffer.write(content)
    sys.stdout.buffer.flush()


def _write_cluster(path: str, cluster: object) -> None:
    import io  # noqa: PLC0415

    from tenure.model.cluster import Cluster  # noqa: PLC0415
    from tenure.model.documents.files import write_atomically  # noqa: PLC0415
    from tenure.model.file.dump import dump_cluster  # noqa: PLC0415

    assert isinstance(cluster, Cluster)
    text = io.StringIO()
    dump_cluster(cluster, text)
    write_atomically(path, text.getvalue())


def _summary(trace: Trace, config: GeneratorConfig, seed: int) -> str:
    """Say in one line what was made, and what load it really offers."""
    from tenure.simulator.generate.workload import offered_load  # noqa: PLC0415

    tasks = sum(len(job.workload.tasks) for job in trace.jobs)
    first, last = trace.jobs[0].workload.created_at, trace.jobs[-1].workload.created_at
    load = offered_load(trace, config)
    offered = "all at once" if load is None else f"offered load {load:.3f}"
    name = "GPUs" if config.unit == "gpu" else "processors"
    return (
        f"{len(trace.jobs)} jobs ({tasks} pods) for {config.capacity} {name} in {(last - first) / 86_400e6:.2f} days, "
        f"{offered}, seed {seed}"
    )
