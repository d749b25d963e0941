"""``tenure scheduler``: the scheduler of a live cluster."""

from __future__ import annotations

import os
import socket
import sys
from dataclasses import replace
from typing import Any

import click

from tenure.cli.input.history_option import retention_of, writes_history
from tenure.cli.input.live_cluster import ClusterAddress, cluster_options
from tenure.cli.terminal.errors import DONE, OUTSIDE_FAILED
from tenure.cli.terminal.signals import on_end


@click.command()
@click.option("--listen", metavar="HOST:PORT", default="127.0.0.1:8080", show_default=True,
              help="The address of /healthz, /readyz and /metrics; port 0 takes a free port.")  # fmt: skip
@click.option("--in-flight", type=click.IntRange(1, 256), default=16, show_default=True,
              help="The most writes to the API server at a time.")  # fmt: skip
@click.option("--log-format", type=click.Choice(["json", "text"]), default="json", show_default=True,
              help="Form of the log on standard error.")  # fmt: skip
@click.option("--verbose", is_flag=True, help="Also log each step and each refusal.")
@click.option("--read-only", is_flag=True,
              help="Bind and evict nothing; report by events what would be evicted.")  # fmt: skip
@click.option("--metrics-access", type=click.Choice(["open", "authorized"]), default="open", show_default=True,
              help="Whether /metrics is open to all clients, or to those that the API server authorizes.")  # fmt: skip
@click.option("--queue-metrics", metavar="A,B,…", default="",
              help="Queues with metrics of their own, at most 200; all others are summed up as 'other'.")  # fmt: skip
@click.option("--cluster-name", envvar="TENURE_CLUSTER", default="kubernetes", show_default=True, metavar="NAME",
              help="The name of this cluster in its history.")  # fmt: skip
@click.option("--history-backlog", type=click.IntRange(1), default=200_000, show_default=True, metavar="N",
              help="The most records that wait while the history cannot be written.")  # fmt: skip
@click.option("--history-keep", envvar="TENURE_HISTORY_KEEP", metavar="D",
              help="Take out of the history what is older than this, once a day; default: 13 months.")  # fmt: skip
@click.option("--history-keep-kind", "history_kinds", multiple=True, metavar="KIND=D",
              help="Keep records of one kind for another time, e.g. usage=90d; any number of times.")  # fmt: skip
@click.option("--share-gpus", is_flag=True,
              help="Hold GPUs of which parts are given out by pods like the one in which it runs; else parts are only "
                   "counted.")  # fmt: skip
@click.option("--gpu-reservation-image", default="", metavar="IMAGE",
              help="Hold such GPUs by pods of this image of Tenure's; needed where it runs in no pod.")  # fmt: skip
@click.option("--prometheus", default="", metavar="URL",
              help="The address of a Prometheus: what pods use of their GPUs, for the nominator of idle ones, and "
                   "without a metrics API what nodes use.")  # fmt: skip
@writes_history
@cluster_options()
def scheduler(listen: str, in_flight: int, where: ClusterAddress, **others: Any) -> int:
    """Schedule the pods of a live cluster that have schedulerName tenure, until it is stopped."""
    from tenure.cli.input.live_cluster import connect, options_of, server_address, settings_of  # noqa: PLC0415  loaded when it runs

    host, _, port = listen.rpartition(":")
    if not port.isdecimal():
        raise click.UsageError(f"--listen: {listen!r} is not HOST:PORT, such as 0.0.0.0:8080")
    kept = None
    if others["history"] is not None:
        kept = retention_of(others["history_keep"], others["history_kinds"], "--history-keep")
    elif others["history_keep"] is not None or others["history_kinds"]:
        raise click.UsageError("--history-keep says how long a history is kept; name it with --history")
    settings = settings_of(where)
    options = replace(options_of(where), prometheus=server_address(others["prometheus"]),
                      **_holders(share=others["share_gpus"], image=others["gpu_reservation_image"]))  # fmt: skip
    client = connect(where, connections=in_flight + 64)
    from tenure.live.log import set_up  # noqa: PLC0415
    from tenure.live.records.live_history import HistoryOptions  # noqa: PLC0415
    from tenure.live.service import Service  # noqa: PLC0415

    log = set_up(sys.stderr, form=others["log_format"], verbose=others["verbose"])
    identity = os.environ.get("POD_NAME") or f"{socket.gethostname()}_{os.getpid()}"
    history = None if kept is None else HistoryOptions(others["history"], others["cluster_name"],
                                                       others["history_backlog"], kept)  # fmt: skip
    service = Service(client, options, settings, identity=identity, in_flight=in_flight, log=log,
                      read_only=others["read_only"], history=history,
                      queues=_names(others["queue_metrics"]))  # fmt: skip
    on_end(service.stop)
    guards = others["metrics_access"] == "authorized"
    done = service.run((host.strip("[]"), int(port)), guards_metrics=guards)
    return DONE if done else OUTSIDE_FAILED


def _holders(*, share: bool, image: str) -> dict[str, Any]:
    """Give the options about pods that hold GPUs."""
    pod_name = os.environ.get("POD_NAME", "")
    if share and not (pod_name or image):
        raise click.UsageError("--share-gpus is for a scheduler in a pod, whose name is in POD_NAME; it has none here, "
                               "so name an image with --gpu-reservation-image")  # fmt: skip
    return {"holds_gpus": share or bool(image), "pod_name": pod_name, "reservation_image": image}


def _names(text: str) -> list[str]:
    """Read names that commas part."""
    return [name.strip() for name in text.split(",") if name.strip()]
