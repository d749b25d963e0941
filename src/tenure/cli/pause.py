"""``tenure pause``: no evictions for a while."""

from __future__ import annotations

import time

import click

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options
from tenure.cli.terminal.errors import DONE


@click.command()
@click.option("--for", "length", metavar="D", help="How long, such as 2h; the pause ends by itself.")
@click.option("--reason", default="", help="Why; it is stored in the cluster beside the end.")
@click.option("--end", is_flag=True, help="End a pause now.")
@cluster_options()
def pause(length: str | None, reason: str, end: bool, where: ClusterAddress) -> int:
    """Pause all evictions in a live cluster for a while; pending workloads are still placed where there is room."""
    from tenure.cli.input.inputs import duration_of  # noqa: PLC0415  loaded when it runs
    from tenure.cli.input.live_cluster import connect  # noqa: PLC0415
    from tenure.model.values.duration import format_time  # noqa: PLC0415

    if end == (length is not None):
        raise click.UsageError("say for how long with --for, or end a pause with --end")
    client = connect(where)
    from tenure.clusters.kubernetes.write.pause import Pause, write_pause  # noqa: PLC0415

    if length is None:
        write_pause(client, where.namespace, where.pool, None)
        click.echo(f"evictions in pool {where.pool} go on")
        return DONE
    length_micros = duration_of(length, "--for")
    if not length_micros:
        raise click.UsageError("--for: 0 is no pause; end one with --end")
    until = (time.time_ns() // 1000 + length_micros) // 1_000_000 * 1_000_000
    write_pause(client, where.namespace, where.pool, Pause(until, reason))
    click.echo(f"no evictions in pool {where.pool} until {format_time(until)}")
    return DONE
