"""``tenure reschedule``: the rescheduler alone, on a cluster file."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tenure.cli.input.live_cluster import ClusterAddress, asked_for, cluster_options
from tenure.cli.input.queues_option import queues_option
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster


@click.command()
@click.argument("file", type=click.Path(dir_okay=True), required=False)
@click.option("--drain", "drains", metavar="NODE", multiple=True, help="Also drain this node. Repeatable.")
@click.option("--dry-run", is_flag=True, help="Print the plan and change nothing; a cluster file is never changed.")
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--set", "overrides", metavar="PATH=VALUE", multiple=True,
              help="Change a value first, such as scheduler.rescheduler.pendingFor=0.")  # fmt: skip
@queues_option
@click.option("--report", type=click.Path(), help="Write the nodes before and after, and the moves, as an HTML page.")
@click.option("--output", type=click.Path(), help="Write the cluster file that results.")
@cluster_options(live=True, runs=True)
def reschedule(  # noqa: PLR0913, PLR0917  one parameter for each option
    file: str | None, drains: tuple[str, ...], dry_run: bool, form: str, overrides: tuple[str, ...],
    queues: str | None, report: str | None, output: str | None, live: bool, where: ClusterAddress,
) -> int:  # fmt: skip
    """Print which running tasks to move in the cluster in FILE, or in a live one, wave by wave, with a certificate."""
    from dataclasses import replace  # noqa: PLC0415  loaded when it runs

    from tenure.cli.input.inputs import cluster_from, warn  # noqa: PLC0415
    from tenure.cli.terminal.progress import busy, reading  # noqa: PLC0415
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.playthrough import play  # noqa: PLC0415
    from tenure.report.plans.plan_json import plan_json  # noqa: PLC0415

    if dry_run and output is not None:
        raise click.UsageError("--output writes what results, and --dry-run lets nothing result; leave one of them out")
    address = asked_for(file, where, live=live)
    check_targets({"--report": report, "--output": output}, (file, queues, *(address.files() if address else ())))
    with reading(live=address is not None):
        cluster, warnings = cluster_from(file or "", overrides, queues=queues, live=address)
    warn(warnings)
    cluster = replace(cluster, settings=replace(cluster.settings, actions=("reschedule",)))
    drained = _with_drains(cluster, drains)
    with busy("planning moves"):
        played = play(drained)
    result = plan_json(played)
    if output is not None:
        from tenure.cli.terminal.outputs import write_cluster  # noqa: PLC0415

        write_cluster(played.after, output)
    if report is not None:
        from pathlib import Path  # noqa: PLC0415

        from tenure.model.documents.files import write_atomically  # noqa: PLC0415
        from tenure.report.plans.plan_page import plan_page  # noqa: PLC0415

        write_atomically(Path(report), plan_page(played.before, (played.external or played).after, result))
    if form == "json":
        click.echo(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        from tenure.report.plans.plan_text import print_plan  # noqa: PLC0415

        print_plan(result)
    return DONE


def _with_drains(cluster: Cluster, names: tuple[str, ...]) -> Cluster:
    from dataclasses import replace  # noqa: PLC0415

    from tenure.model.values.problems import nearest  # noqa: PLC0415

    known = {n.name for n in cluster.nodes}
    for name in names:
        if name not in known:
            raise click.UsageError(f"--drain: there is no node {name!r}{nearest(name, sorted(known))}")
    nodes = tuple(replace(n, drain=True) if n.name in names else n for n in cluster.nodes)
    return replace(cluster, nodes=nodes)
