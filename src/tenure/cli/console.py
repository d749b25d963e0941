"""``tenure console``: a page and a JSON API over a cluster file, a history or a live cluster."""

from __future__ import annotations

import os
import signal
import sys
from typing import TYPE_CHECKING

import click
from click.core import ParameterSource

from tenure.cli.input.live_cluster import ClusterAddress, cluster_options, connect
from tenure.cli.input.queues_option import queues_option
from tenure.cli.terminal.errors import DONE

if TYPE_CHECKING:
    from tenure.clusters.kubernetes.client.requests import Client
    from tenure.web.sources.source import ConsoleSource

EXTRA = "tenure[console]"


@click.command()
@click.option("--file", type=click.Path(), metavar="FILE", help="Look at a cluster file.")
@queues_option
@click.option("--simulation", metavar="FILE", help="Look at what `tenure simulate --history` wrote.")
@click.option("--history", metavar="FILE|URL", help="Look at a history: a file, or postgresql://…")
@click.option("--port", type=click.IntRange(0, 65_535), default=8765, show_default=True,
              help="Where to listen; 0 takes a free port.")  # fmt: skip
@click.option("--host", default="127.0.0.1", show_default=True,
              help="The address to listen on; others than loopback only with --live, where viewers log in")  # fmt: skip
@click.option("--allow-host", "allowed", multiple=True, metavar="NAME",
              help="A name under which browsers ask for it, beside loopback's. Repeatable.")  # fmt: skip
@click.option("--cluster-name", metavar="NAME",
              help="Of a history of several clusters, this one, by the name that its scheduler was given; with --live "
              "the default is $TENURE_CLUSTER.")  # fmt: skip
@cluster_options(live=True)
def console(  # noqa: PLR0913, PLR0917  one parameter for each option
    file: str | None, queues: str | None, simulation: str | None, history: str | None,
    port: int, host: str, allowed: tuple[str, ...], cluster_name: str | None, live: bool, where: ClusterAddress,
) -> int:  # fmt: skip
    """Serve a read-only page and a JSON API that show a cluster; nothing is ever changed.

    Without an option that names what to look at, TENURE_HISTORY is taken.
    """
    try:
        from tenure.web.access.guard import LOOPBACK  # noqa: PLC0415  loaded when it runs
        from tenure.web.access.server import listen, serve  # noqa: PLC0415
    except ModuleNotFoundError as error:
        raise click.UsageError(f"{error.name} is missing; install {EXTRA}") from None
    live = live or where.given
    named = [name for name, value in (("--file", file), ("--simulation", simulation), ("--history", history),
                                      ("--live", live)) if value]  # fmt: skip
    if not named and os.environ.get("TENURE_HISTORY"):
        history, named = os.environ["TENURE_HISTORY"], ["--history"]
    if not named or (len(named) > 1 and set(named) != {"--history", "--live"}):
        told = f"{' and '.join(named)} are both named; leave one out" if named else "say what to look at"
        raise click.UsageError(f"{told}: --file FILE, --simulation FILE, --history FILE|URL or --live")
    if queues is not None and file is None:
        raise click.UsageError("--queues goes with --file")
    if host not in LOOPBACK and not live:
        raise click.UsageError(f"--host: {host} is not loopback. Outside a cluster there is no authentication, so only "
                               "loopback is allowed; leave the option out")  # fmt: skip
    from tenure.web.app import application  # noqa: PLC0415
    from tenure.web.console import Console  # noqa: PLC0415

    taken = listen(host, port)
    try:
        client = connect(where) if live else None
        named_pool = click.get_current_context().get_parameter_source("pool") is not ParameterSource.DEFAULT
        pool = where.pool if live or named_pool else None
        if live:  # what a live cluster is called says nothing of a simulation, or of a history that was named
            cluster_name = cluster_name or os.environ.get("TENURE_CLUSTER") or None
        source = _source(file, queues, simulation or history, (cluster_name, pool), where, client)
    except BaseException:
        taken.close()
        raise
    whose, more, ends = None, None, lambda: None
    if client is not None:
        from tenure.web.login import Logins  # noqa: PLC0415

        logins = Logins(client, source, required=host not in LOOPBACK)
        whose, more, ends = logins.whose, logins.routes, client.opened.end
    shown = Console(source)
    app = application(shown, hosts=(*LOOPBACK, *allowed), whose=whose, more=more)
    address = f"http://{f'[{host}]' if ':' in host else host}:{taken.getsockname()[1]}"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(DONE))  # once it serves, the server ends in order and hands it on
    try:
        app.state.console.pages.warm()
        serve(app, taken, lambda: click.echo(f"listening on {address}"), ends)
    finally:
        shown.close()
        taken.close()
    return DONE


def _source(
    file: str | None, queues: str | None, history: str | None, whose: tuple[str | None, str | None],
    where: ClusterAddress, client: Client | None,
) -> ConsoleSource:  # fmt: skip
    """Open what is looked at."""
    if file is not None:
        from tenure.cli.input.inputs import cluster_from, warn  # noqa: PLC0415
        from tenure.web.sources.still import StillSource  # noqa: PLC0415

        cluster, warnings = cluster_from(file, queues=queues)
        warn(warnings)
        return StillSource(cluster, file)
    from tenure.history.scope import Scope  # noqa: PLC0415
    from tenure.web.sources.past import PastSource  # noqa: PLC0415

    past = None if history is None else PastSource(history, Scope(*whose), may_begin=client is not None)
    if client is None:
        assert past is not None
        return past
    from tenure.cli.input.live_cluster import options_of, settings_of  # noqa: PLC0415
    from tenure.web.sources.both import BothSource  # noqa: PLC0415
    from tenure.web.sources.live import LiveSource  # noqa: PLC0415

    shown = LiveSource(client, options_of(where, only_reads=True), settings_of(where), name=_named(where))
    return shown if past is None else BothSource(shown, past)


def _named(where: ClusterAddress) -> str:
    return where.context or "the cluster"
