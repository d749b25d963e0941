"""``tenure diff``: what a change of policy does to a cluster or a trace."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options
from tenure.cli.input.queues_option import queues_option, read_queues
from tenure.cli.input.trace_options import trace_options
from tenure.cli.terminal.errors import DIFFERS, DONE

if TYPE_CHECKING:
    from tenure.cli.input.policy_input import PolicySource
    from tenure.model.cluster import Cluster
    from tenure.model.values.problems import InputProblem


@click.command()
@click.argument("old", type=click.Path())
@click.argument("new", type=click.Path())
@click.option("--cluster", metavar="FILE", help="The cluster file to which both are applied.")
@queues_option
@click.option("--trace", metavar="FILE", help="Replay this trace under both, instead of cycles on a cluster.")
@trace_options
@click.option("--load", type=float, metavar="X", help="With --trace: divide the times between arrivals by X.")
@click.option("--cycles", type=click.IntRange(1, 1_000_000), default=10, show_default=True, help="How many cycles.")
@click.option("--every", default="1m", show_default=True, metavar="D", help="Time between two cycles.")
@click.option("--exit-code", is_flag=True, help=f"Exit with {DIFFERS} if the change does anything.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True,
              help="Form of the output; markdown is for pull requests.")  # fmt: skip
@cluster_options(live=True, runs=True)
def diff(  # noqa: PLR0913, PLR0917  one parameter for each option
    old: str, new: str, cluster: str | None, queues: str | None, trace: str | None, load: float | None, cycles: int,
    every: str, exit_code: bool, form: str, live: bool, where: ClusterAddress, **of_trace: Any,
) -> int:  # fmt: skip
    """Say what a change of policy from OLD to NEW does: evictions, what they destroy, and who waits longer.

    OLD and NEW are cluster files, settings, YuniKorn's queues.yaml, manifests, or folders of these. Both are applied
    to the cluster in --cluster, to a live one, or to a trace; without any of these to the cluster file that OLD is.
    Nothing is changed.
    """
    from tenure.cli.input.inputs import warn  # noqa: PLC0415  loaded when it runs
    from tenure.cli.input.policy_input import read_policy  # noqa: PLC0415
    from tenure.report.policy_diff import diff_markdown, diff_text, policy_changes, sentences  # noqa: PLC0415
    from tenure.report.tables import terminal  # noqa: PLC0415
    from tenure.report.words import common_blanks  # noqa: PLC0415

    live = live or where.given
    of_trace["load"] = load
    _check_options(cluster, trace, live, of_trace)
    base, odd = read_queues(queues)
    warn(odd)
    sources = _read_both(old, new, lambda path: read_policy(path, where.pool, base))
    for source in sources:
        warn(source.warnings)
    if trace is not None:
        sides, found = _simulated(sources, cluster, trace, **of_trace)
    else:
        sides, found = _played(sources, cluster, where if live else None, cycles, every)
    result: dict[str, Any] = {"old": old, "new": new, "changes": policy_changes(*sides), **found}
    result["summary"] = [common_blanks(sentence) for sentence in sentences(result)]
    if form == "json":
        click.echo(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        click.echo(diff_markdown(result) if form == "markdown" else diff_text(result, terminal()), nl=False)
    return DIFFERS if exit_code and result["differs"] else DONE


def _check_options(cluster: str | None, trace: str | None, live: bool, of_traces: dict[str, Any]) -> None:
    if live and (cluster is not None or trace is not None):
        raise click.UsageError("a live cluster and a file are both named; leave one out")
    named = [option for option, value in of_traces.items() if value not in {None, ()}]
    if named and trace is None:
        option = {"start": "from", "end": "to"}.get(named[0], named[0].replace("_", "-"))
        raise click.UsageError(f"--{option} goes with --trace")


def _read_both(old: str, new: str, read: Callable[[str], PolicySource]) -> list[PolicySource]:
    """Read both policies; what is wrong with either is told together."""
    from tenure.model.values.problems import InvalidInputError  # noqa: PLC0415

    found: list[PolicySource] = []
    problems: list[InputProblem] = []
    for path in (old, new):
        try:
            found.append(read(path))
        except InvalidInputError as error:
            problems += error.problems
    if problems:
        raise InvalidInputError(problems)
    return found


def _played(
    sources: Sequence[PolicySource], file: str | None, where: ClusterAddress | None, cycles: int, every: str
) -> tuple[list[Cluster], dict[str, Any]]:
    """Play cycles under both policies on one cluster."""
    from tenure.cli.input.inputs import duration_of  # noqa: PLC0415
    from tenure.cli.terminal.progress import busy  # noqa: PLC0415
    from tenure.playthrough import play  # noqa: PLC0415
    from tenure.report.policy_diff import plan_diff  # noqa: PLC0415

    step = duration_of(every, "--every")
    sides = _clusters(sources, file, where)
    with busy("planning under both policies"):
        old, new = (play(side, cycles=cycles, every=step) for side in sides)
    return sides, {"mode": "plan", **plan_diff(old, new, step)}


def _clusters(sources: Sequence[PolicySource], file: str | None, where: ClusterAddress | None) -> list[Cluster]:
    if where is not None:
        from tenure.cli.input.live_cluster import look  # noqa: PLC0415

        base = look(where)
        return [_checked(source, base) for source in sources]
    if file is not None:
        from tenure.cli.input.inputs import warn  # noqa: PLC0415
        from tenure.model.file.load import load_cluster  # noqa: PLC0415

        loaded = [load_cluster(file, source.policy) for source in sources]
        warn(dict.fromkeys(w for one in loaded for w in one.warnings))
        return [one.cluster for one in loaded]
    old, new = sources
    if old.cluster is None:
        raise click.UsageError(f"{old.name} has no nodes, so it says nothing of a cluster; add --cluster FILE, --trace "
                               "FILE or --live")  # fmt: skip
    return [old.cluster, _checked(new, old.cluster) if new.cluster is None else new.cluster]


def _checked(source: PolicySource, base: Cluster) -> Cluster:
    """Put a cluster under a policy; what does not go with it is a problem of the policy's."""
    from tenure.model.checks.cluster import check_cluster  # noqa: PLC0415
    from tenure.model.values.problems import InputProblem, InvalidInputError  # noqa: PLC0415
    from tenure.model.values.report import path_text  # noqa: PLC0415

    cluster = source.policy.over(base)
    known = {(f.path, f.message) for f in check_cluster(base)}
    broken = [f for f in check_cluster(cluster) if not f.is_warning and (f.path, f.message) not in known]
    if broken:
        raise InvalidInputError(InputProblem(source.name, 0, path_text(f.path), f.message) for f in broken)
    return cluster


def _simulated(
    sources: Sequence[PolicySource], file: str | None, trace: str, **options: Any
) -> tuple[list[Cluster], dict[str, Any]]:
    """Replay a trace under both policies."""
    from tenure.cli.input.simulation_input import SimulationOptions, prepare_input  # noqa: PLC0415
    from tenure.cli.terminal.progress import ProgressLine  # noqa: PLC0415
    from tenure.report.policy_diff import simulation_diff  # noqa: PLC0415
    from tenure.simulator.whole_run import run_whole, setup_of, summary_of  # noqa: PLC0415

    given = SimulationOptions(trace=trace, cluster=file, **options)
    old_cluster = sources[0].cluster
    prepared = []
    for source in sources:
        base = (source.cluster or old_cluster) if file is None else None
        prepared.append(prepare_input(replace(given, base=base, policy=source.policy)))
    for warning in dict.fromkeys(w for one in prepared for w in one.warnings):
        click.echo(f"warning: {warning}", err=True)
    line, summaries = ProgressLine(), []
    for one in prepared:
        run = run_whole(setup_of(one.cluster, arrivals_only=False), one.trace, line, every=100)
        summaries.append(summary_of(run, one.trace, trace))
    line.clear()
    return [one.cluster for one in prepared], {"mode": "simulation", **simulation_diff(*summaries)}
