"""``tenure workloads``: the workloads of a live cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--watch", "-w", is_flag=True, help="Keep running, and print the table again whenever it changes.")
@click.option("--queue", "only", help="Only the workloads of this queue.")
@click.option("--in", "inside", metavar="NAMESPACE", help="Only the workloads of this namespace.")
@cluster_options()
def workloads(form: str, watch: bool, only: str | None, inside: str | None, where: ClusterAddress) -> int:
    """List the workloads of a live cluster: their state, how long they have run, and why they wait."""
    from tenure.cli.live_tables import show  # noqa: PLC0415  loaded when it runs

    def rows(cluster: Cluster) -> list[dict[str, Any]]:
        return [
            row
            for row in _rows(cluster)
            if only in (None, row["queue"]) and inside in (None, row["workload"].partition("/")[0])
        ]

    return show(where, rows, form=form, watch=watch)


def _rows(cluster: Cluster) -> list[dict[str, Any]]:
    from tenure.engine.reasons import why_pending  # noqa: PLC0415
    from tenure.engine.serving.reserved_start import NextPass  # noqa: PLC0415
    from tenure.engine.snapshot import session_of  # noqa: PLC0415
    from tenure.fairness.current import Fairness  # noqa: PLC0415
    from tenure.model.values.duration import format_duration  # noqa: PLC0415
    from tenure.model.workload import Phase  # noqa: PLC0415

    session = session_of(cluster)
    following = NextPass(session, Fairness(session).now)
    rows = []
    for key, state in sorted(session.workloads.items()):
        if state.leaf < 0:
            continue
        tasks = state.model.tasks
        counts = {phase: sum(t.phase is phase for t in tasks) for phase in Phase}
        running = counts[Phase.RUNNING] + counts[Phase.BOUND]
        waits = counts[Phase.PENDING] + counts[Phase.GATED]
        ran = None if state.started_at is None else max(0, cluster.now - state.started_at) // 1_000_000 * 1_000_000
        why = "; ".join(f"{r.code}: {r.message}" for r in why_pending(session, state, following)) if waits else ""
        rows.append(
            {
                "workload": key,
                "queue": state.model.queue,
                "priority": state.priority,
                "running": running,
                "waiting": waits,
                "leaving": counts[Phase.TERMINATING],
                "ended": counts[Phase.SUCCEEDED] + counts[Phase.FAILED],
                "runs for": "" if ran is None or not running else format_duration(ran),
                "why it waits": why,
            }
        )
    return rows
