"""``tenure plan``: play cycles on a cluster file and print what would be done."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from tenure.cli.input.history_option import writes_history
from tenure.cli.input.live_cluster import ClusterAddress, asked_for, cluster_options
from tenure.cli.input.queues_option import queues_option
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster
    from tenure.model.settings import Action
    from tenure.playthrough import PlayThrough
    from tenure.report.tables import Colored


@click.command()
@click.argument("file", type=click.Path(dir_okay=True), required=False)
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--actions", metavar="A,B,…", help="Run only these actions, in this order.")
@click.option("--set", "overrides", metavar="PATH=VALUE", multiple=True,
              help="Change a value first, such as queue.NAME.max.cpu=10 or scheduler.backfill=easy.")  # fmt: skip
@click.option("--add", "additions", type=click.Path(), multiple=True,
              help="Also what is in this file, created now: workloads, manifests of Pods and Jobs.")  # fmt: skip
@queues_option
@click.option("--cycles", type=click.IntRange(1, 1_000_000), default=1, show_default=True, help="How many cycles.")
@click.option("--every", default="1s", show_default=True, metavar="D", help="Time between two cycles.")
@click.option(
    "--queue", "queue_name", metavar="NAME", help="Print only what concerns this queue and the queues below it."
)
@click.option("--workload", metavar="NS/NAME", help="Print only what concerns this workload.")
@click.option(
    "--top",
    type=click.IntRange(0),
    metavar="N",
    help="Rows of each table, and plans of moves; 0: all. Default: all of a small plan.",
)
@click.option("--color", type=click.Choice(["auto", "always", "never"]), default="auto", show_default=True,
              help="Colours: where the terminal shows them and NO_COLOR is not set, or as said.")  # fmt: skip
@click.option("--pager/--no-pager", default=True, help="Show output that is longer than the terminal page by page.")
@click.option("--report", type=click.Path(), help="Write the cluster before and after as an HTML page.")
@click.option("--output", type=click.Path(), help="Write the cluster file that results.")
@writes_history
@cluster_options(live=True, runs=True)
def plan(  # noqa: PLR0913, PLR0917  one parameter for each option
    file: str | None, form: str, actions: str | None, overrides: tuple[str, ...], additions: tuple[str, ...],
    queues: str | None, cycles: int, every: str, report: str | None, output: str | None, live: bool,
    where: ClusterAddress, history: str | None, queue_name: str | None, workload: str | None, top: int | None,
    color: Colored, pager: bool,
) -> int:  # fmt: skip
    """Decide for the cluster in FILE, or a live one, and print the plan with its reasons; nothing is changed."""
    from tenure.cli.input.inputs import cluster_from, duration_of, warn  # noqa: PLC0415  loaded when it runs
    from tenure.cli.terminal.progress import busy, reading  # noqa: PLC0415
    from tenure.cli.terminal.targets import check_targets  # noqa: PLC0415
    from tenure.history.address import written_file  # noqa: PLC0415
    from tenure.playthrough import play  # noqa: PLC0415
    from tenure.report.plans.plan_json import plan_json  # noqa: PLC0415

    address = asked_for(file, where, live=live)
    check_targets(
        {"--report": report, "--output": output, "--history": written_file(history)},
        (file, queues, *additions, *(address.files() if address else ())),
    )
    with reading(live=address is not None):
        cluster, warnings = cluster_from(file or "", overrides, additions, queues, address)
    warn(warnings)
    if actions is not None:
        cluster = replace(cluster, settings=replace(cluster.settings, actions=_actions(actions)))
    step = duration_of(every, "--every")
    with busy("planning"):
        played = play(cluster, cycles=cycles, every=step)
    if history is not None:
        _record(history, file or "live", played, cycles, step)
    result = plan_json(played)
    if output is not None:
        from tenure.cli.terminal.outputs import write_cluster  # noqa: PLC0415

        write_cluster(played.after, output)
    if report is not None:
        from tenure.model.documents.files import write_atomically  # noqa: PLC0415
        from tenure.report.plans.plan_page import plan_page  # noqa: PLC0415

        write_atomically(
            Path(report), plan_page(played.before, (played.external or played).after, result, played.quota_tracks)
        )
    if queue_name is not None or workload is not None:
        result = _about(result, played.after, queue_name, workload)
    if form == "json":
        click.echo(json.dumps(result, indent=1, ensure_ascii=False))
    else:
        from tenure.report.plans.plan_text import print_plan  # noqa: PLC0415

        print_plan(result, top=top, color=color, paged=pager)
    return DONE


def _about(result: dict[str, Any], cluster: Cluster, queue: str | None, workload: str | None) -> dict[str, Any]:
    """Give of a plan what is about a queue, or a workload, or one of that queue."""
    from tenure.explanation.explain import find_workload  # noqa: PLC0415  only where one is named
    from tenure.model.cluster import DEFAULT_QUEUE  # noqa: PLC0415
    from tenure.model.values.problems import nearest  # noqa: PLC0415
    from tenure.report.plans.plan_summary import of_some  # noqa: PLC0415

    known = {entry["name"] for entry in result["queues"]}
    if queue is not None and queue not in known:
        raise click.UsageError(f"--queue: there is no queue {queue!r}{nearest(queue, sorted(known))}")
    queues = known if queue is None else {queue}
    if queue is not None:
        while below := {q.name for q in cluster.queues if q.parent in queues} - queues:
            queues |= below
    keys = {w.key for w in cluster.workloads if (w.queue or DEFAULT_QUEUE) in queues}
    if workload is not None:
        found = find_workload(cluster, workload, "--workload")
        keys &= {found.key}
        queues &= {found.queue or DEFAULT_QUEUE}
    return of_some(result, keys, queues)


def _record(history: str, file: str, played: PlayThrough, cycles: int, every: int) -> None:
    from tenure.history import open_history  # noqa: PLC0415  SQLAlchemy takes long to import
    from tenure.history.writing.playing import write_play  # noqa: PLC0415

    with open_history(history, write=True) as store:
        write_play(store, Path(file).name, played, cycles, every)


def _actions(text: str) -> tuple[Action, ...]:
    from tenure.cycle import ACTIONS  # noqa: PLC0415
    from tenure.model.values.problems import nearest  # noqa: PLC0415

    chosen = tuple(part.strip() for part in text.split(",") if part.strip())
    for name in chosen:
        if name not in ACTIONS:
            known = ", ".join(ACTIONS)
            raise click.UsageError(f"--actions: there is no action {name!r}{nearest(name, ACTIONS)}; there are {known}")
    if not chosen:
        raise click.UsageError("--actions: name at least one action")
    twice = [name for number, name in enumerate(chosen) if name in chosen[:number]]
    if twice:
        raise click.UsageError(f"--actions: {twice[0]} is there twice; name each action once")
    return cast("tuple[Action, ...]", chosen)
