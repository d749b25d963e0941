"""``tenure queues``: the queues of a live cluster."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options

if TYPE_CHECKING:
    from tenure.model.cluster import Cluster


@click.command()
@click.option("--format", "form", type=click.Choice(["text", "json"]), default="text", show_default=True,
              help="Form of the output.")  # fmt: skip
@click.option("--watch", "-w", is_flag=True, help="Keep running, and print the table again whenever it changes.")
@cluster_options()
def queues(form: str, watch: bool, where: ClusterAddress) -> int:
    """List the queues of a live cluster, with their allocated, fair share, guaranteed and max."""
    from tenure.cli.live_tables import show  # noqa: PLC0415  loaded when it runs

    return show(where, partial(_rows, readable=form == "text"), form=form, watch=watch)


def _rows(cluster: Cluster, *, readable: bool) -> list[dict[str, Any]]:
    """Give a row for each queue and resource of which it holds, is due, is guaranteed or may hold something.

    Amounts are Kubernetes quantities (``13500m``), or as people read them (``13.5``).
    """
    from tenure.engine.snapshot import session_of  # noqa: PLC0415
    from tenure.model.values.quantity import format_queue_quantity  # noqa: PLC0415
    from tenure.model.values.readable import bare_quantity  # noqa: PLC0415
    from tenure.playthrough import queue_views  # noqa: PLC0415

    written = bare_quantity if readable else format_queue_quantity
    rows = []
    status = {q.name: q.status for q in cluster.queues}
    for view in queue_views(session_of(cluster)):
        named = [r for r in view.fair_share if view.allocated.get(r) or r in view.guaranteed or r in view.maximum]
        armed = status.get(view.name)
        for resource in named or [""]:
            shown = {
                "allocated": view.allocated.get(resource), "fair share": view.fair_share.get(resource),
                "guaranteed": view.guaranteed.get(resource), "max": view.maximum.get(resource),
            }  # fmt: skip
            amounts = {key: "" if n is None else written(n, resource) for key, n in shown.items()}
            rows.append({"queue": view.name, "resource": resource, **amounts, "over until": _deadline(armed)})
    return rows


def _deadline(status: Any) -> str:
    from tenure.model.values.duration import format_time  # noqa: PLC0415

    armed = status.quota_preemption if status is not None else None
    return format_time(armed.deadline) if armed is not None else ""
