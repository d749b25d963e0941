"""``tenure explain``: why a workload waits or was evicted, and what it would take."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from tenure.cli.input.live_cluster import ClusterAddress, asked_for, cluster_options
from tenure.cli.input.queues_option import queues_option
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.explanation.explain import Story


@click.command()
@click.argument("file", type=click.Path())
@click.argument("workload", required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--set", "overrides", metavar="PATH=VALUE", multiple=True, help="Change a value first. Repeatable.")
@click.option("--add", "additions", type=click.Path(), multiple=True,
              help="Also what is in this file: workloads, or manifests of Pods and Jobs. Repeatable.")  # fmt: skip
@queues_option
@cluster_options(live=True, runs=True)
def explain(
    file: str, workload: str | None, form: str, overrides: tuple[str, ...], additions: tuple[str, ...],
    queues: str | None, live: bool, where: ClusterAddress,
) -> int:  # fmt: skip
    """Explain why one WORKLOAD (NAMESPACE/NAME, or NAME alone) in the cluster in FILE waits, and what would help.

    For a live cluster, give WORKLOAD alone.
    """
    from tenure.model.documents.collector import collector_paused, count_as_old  # noqa: PLC0415  loaded when it runs

    asked = file if workload is None else workload
    if workload is None and not live and not where.given:
        raise click.UsageError("name a WORKLOAD behind the FILE, or look at a live cluster with --live")
    given = None if workload is None else file
    with collector_paused():  # modules and one cycle leave little garbage, and then the process ends
        story = _story(asked, given, overrides, additions, queues, asked_for(given, where, live=live))
        count_as_old()
    if form == "json":
        click.echo(json.dumps(story.plain(), indent=1, ensure_ascii=False))
    else:
        from tenure.report.tables import folded  # noqa: PLC0415

        click.echo(folded(story.lines()), nl=False)
    return DONE


def _story(
    asked: str, given: str | None, overrides: tuple[str, ...], additions: tuple[str, ...], queues: str | None,
    address: ClusterAddress | None,
) -> Story:  # fmt: skip
    """Play a cycle on the cluster of a file, or of an address, and tell the story of one workload."""
    from tenure.cli.input.inputs import cluster_from, warn  # noqa: PLC0415  loaded when it runs
    from tenure.cli.terminal.progress import busy, reading  # noqa: PLC0415
    from tenure.explanation.explain import explain_workload, find_workload  # noqa: PLC0415
    from tenure.playthrough import play  # noqa: PLC0415

    with reading(live=address is not None):
        cluster, warnings = cluster_from(given or "", overrides, additions, queues, address)
    warn(warnings)
    found = find_workload(cluster, asked, given or "the cluster")
    with busy("working out what would happen"):
        played = play(cluster, about=found.key)
        if played.external is not None and found.scheduler_name in cluster.settings.rescheduler.schedulers:
            played = played.external
        return explain_workload(played, found)
