"""What commands on a live cluster share: how it is reached, and one look at it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import click

if TYPE_CHECKING:
    from tenure.clusters.kubernetes.cache.informers import InformerCache, Options
    from tenure.clusters.kubernetes.client.requests import Client
    from tenure.clusters.kubernetes.read.observe import Observed, Observer
    from tenure.model.cluster import Cluster, FinishedRuns
    from tenure.model.settings import Settings

F = TypeVar("F", bound=Callable[..., Any])

SYNC_SECONDS = 60.0
"""So long a command waits for the API server to list everything."""


class ClusterAddress(NamedTuple):
    """Which cluster, and what of it; ``given`` says that one of the options that name it was given.

    ``runs_from``: a history that says for how long finished workloads ran; ``history_name``: the cluster's in it.
    """

    kubeconfig: str | None
    context: str | None
    namespace: str
    pool: str
    yunikorn: str | None
    config: str | None = None
    schedulers: tuple[str, ...] = ()
    kueue_queues: bool = False
    runs_from: str | None = None
    history_name: str | None = None

    @property
    def given(self) -> bool:
        """Whether a cluster was named."""
        return self.kubeconfig is not None or self.context is not None

    def files(self) -> list[str | None]:
        """Give the files that are read to look at it."""
        from tenure.clusters.kubernetes.client.access import kubeconfigs  # noqa: PLC0415  loaded when it is looked at
        from tenure.history.address import written_file  # noqa: PLC0415

        return [self.config, written_file(self.runs_from), *map(str, kubeconfigs(self.kubeconfig, self.context))]


def cluster_options(*, live: bool = False, runs: bool = False) -> Callable[[F], F]:
    """Give a command the options that say which cluster, as its argument ``where``.

    With ``live`` there is an option of that name too, for commands that otherwise read a file; with ``runs`` one that
    says where finished runs are read.
    """

    def wrap(command: F) -> F:
        @wraps(command)
        def together(**values: Any) -> Any:
            where = ClusterAddress(**{name: values.pop(name) for name in ClusterAddress._fields if name in values})
            return command(where=where, **values)

        wrapped: Any = together
        for option in reversed((*((_LIVE,) if live else ()), *_OPTIONS, *(_RUNS if runs else ()))):
            wrapped = option(wrapped)
        return wrapped  # type: ignore[no-any-return]

    return wrap


def asked_for(file: str | None, where: ClusterAddress, *, live: bool) -> ClusterAddress | None:
    """Give the live cluster that is meant, None where it is the file.

    Raises
    ------
    UsageError
        Neither is named, or both are.
    """
    live = live or where.given
    if live == (file is not None):
        both = "FILE and a live cluster are both named; leave one out"
        raise click.UsageError(both if live else "name a FILE, or look at a live cluster with --live")
    if where.runs_from is not None and not live:
        raise click.UsageError("--runs-from is for a live cluster; a FILE has its own finishedRuns")
    return where if live else None


_LIVE = click.option("--live", is_flag=True, help="Use a live cluster instead of a FILE.")
_RUNS = (
    click.option(
        "--runs-from", metavar="FILE|URL",
        help="Read from this history for how long finished workloads ran (worth.survival).",
    ),
    click.option(
        "--cluster-name", "history_name", envvar="TENURE_CLUSTER", metavar="NAME",
        help="The name of this cluster in that history, if it is one of several clusters; default: $TENURE_CLUSTER.",
    ),
)  # fmt: skip
_OPTIONS = (
    click.option(
        "--kubeconfig", type=click.Path(dir_okay=False),
        help="The kubeconfig file; else KUBECONFIG, a pod's own, ~/.kube/config.",
    ),
    click.option("--context", help="The context of the kubeconfig; default: the current one."),
    click.option(
        "--namespace", default=lambda: os.environ.get("POD_NAMESPACE", "tenure-system"), show_default="tenure-system",
        help="The namespace in which the scheduler is installed.",
    ),
    click.option("--pool", default="default", show_default=True, help="The node pool."),
    click.option(
        "--yunikorn-config", "yunikorn", metavar="NAMESPACE/NAME",
        help="Queues from YuniKorn's ConfigMap, e.g. yunikorn/yunikorn-configs.",
    ),
    click.option(
        "--config", type=click.Path(dir_okay=False),
        help="Settings for a pool without a NodePool object: kind SchedulerConfig.",
    ),
    click.option(
        "--scheduler-name", "schedulers", multiple=True, metavar="NAME",
        help="Pods with this schedulerName count as Tenure's too. Repeatable.",
    ),
    click.option("--kueue-queues", is_flag=True, help="Queues from Kueue, where there are none of Tenure's or KAI's."),
)  # fmt: skip


def connect(where: ClusterAddress, *, connections: int = 64) -> Client:
    """Give a client of the cluster.

    Raises
    ------
    InvalidInputError
        It is not known how to reach it.
    ModuleNotFoundError
        What is needed for that is not installed.
    """
    from tenure.clusters.kubernetes.client.access import find_access  # noqa: PLC0415  loaded when it runs
    from tenure.clusters.kubernetes.client.requests import Client  # noqa: PLC0415

    return Client(find_access(where.kubeconfig, where.context), connections=connections)


def options_of(where: ClusterAddress, *, only_reads: bool = False) -> Options:
    """Give what of a cluster is read."""
    from tenure.clusters.kubernetes.cache.informers import Options  # noqa: PLC0415

    found = None
    if where.yunikorn is not None:
        namespace, _, name = where.yunikorn.partition("/")
        if not namespace or not name or "/" in name:
            raise click.UsageError(f"--yunikorn-config: {where.yunikorn!r} is not NAMESPACE/NAME")
        found = (namespace, name)
    return Options(namespace=where.namespace, pool=where.pool, yunikorn=found, only_reads=only_reads,
                   schedulers=frozenset(where.schedulers), kueue=where.kueue_queues)  # fmt: skip


def server_address(text: str) -> str:
    """Read the address of a Prometheus; empty for none."""
    if text and not re.fullmatch(r"https?://[^\s/?#@]+(/[^\s?#]*)?", text):
        raise click.UsageError(f"--prometheus: {text!r} is no address, such as http://prometheus.monitoring:9090")
    return text


def settings_of(where: ClusterAddress) -> Settings | None:
    """Give the settings of the file that was named, if one was."""
    if where.config is None:
        return None
    from tenure.model.file.load import load_settings  # noqa: PLC0415

    return load_settings(where.config)


class LiveObservation(NamedTuple):
    """An observation of a live cluster."""

    observed: Observed
    informers: InformerCache
    observer: Observer

    @property
    def cluster(self) -> Cluster:
        """Give the cluster."""
        return self.observed.cluster


@contextmanager
def looking(where: ClusterAddress) -> Iterator[Callable[[], LiveObservation]]:
    """Watch a cluster; what is given looks at it as it is then."""
    from tenure.clusters.kubernetes.cache.informers import InformerCache, start_synced  # noqa: PLC0415
    from tenure.clusters.kubernetes.read.observe import Observer  # noqa: PLC0415

    settings = settings_of(where)
    client = connect(where)
    informers = InformerCache(client, options_of(where, only_reads=True))
    start_synced(informers, SYNC_SECONDS)
    try:
        observer = Observer(informers, settings)
        yield lambda: LiveObservation(observer.observe(client.clock.now()), informers, observer)
    finally:
        informers.stop()


def look(where: ClusterAddress) -> Cluster:
    """Give a live cluster as it is now; what is wrong with objects there goes to standard error.

    What the scheduler leaves alone since its eviction was refused is left alone here too. Finished runs are those that
    the scheduler would read off its history now.
    """
    from tenure.clusters.kubernetes.read.refused import refused_evictions  # noqa: PLC0415  loaded when it runs

    with looking(where) as now:
        found = now()
        for kind, meta, message in list(found.informers.findings.new):
            place = f"{meta.namespace}/{meta.name}" if meta.namespace else meta.name
            click.echo(f"warning: {kind} {place}: {message}", err=True)
        refused = refused_evictions(found.informers.client, found.observed)
        devices = replace(found.cluster.devices, claims=found.observer.inventory.all_claims())
        storage = found.observer.claims.storage()
        cluster = replace(found.cluster, refused_evictions=refused, storage=storage, devices=devices)
    return (
        cluster
        if where.runs_from is None
        else replace(cluster, finished_runs=_runs_of(where.runs_from, where, cluster))
    )


def _runs_of(history: str, where: ClusterAddress, cluster: Cluster) -> tuple[FinishedRuns, ...]:
    """Give for how long workloads ran that finished lately.

    Raises
    ------
    HistoryError
        It cannot be read.
    """
    from tenure.history import open_history  # noqa: PLC0415  SQLAlchemy takes long to import
    from tenure.history.reading.finished_runs import latest_runs  # noqa: PLC0415
    from tenure.history.scope import Scope  # noqa: PLC0415

    with open_history(history) as store:
        if len(store.origins()) > 1:
            store.see(Scope(where.history_name, where.pool), alone=True)
        return latest_runs(store, cluster.now)
