"""``tenure install``: the manifests of an installation."""

from __future__ import annotations

import re
from dataclasses import replace
from importlib.metadata import version
from typing import Any, Final

import click

from tenure.cli.input.live_cluster import server_address
from tenure.clusters.kubernetes.install.console import POOL as CONSOLE_POOL
from tenure.clusters.kubernetes.install.console import console_objects
from tenure.clusters.kubernetes.install.installation import (
    POSTGRESQL_PORT,
    HistorySecret,
    HistoryVolume,
    Installation,
)
from tenure.clusters.kubernetes.install.manifests import objects, write
from tenure.clusters.kubernetes.install.rbac import Role
from tenure.clusters.kubernetes.keys import DEFAULT_POOL
from tenure.model.fields.records import record_of
from tenure.model.file.load import load_file
from tenure.model.settings import Settings
from tenure.model.values.problems import InputProblem, InvalidInputError
from tenure.model.values.quantity import parse_quantity

_MAP_FORM: Final = "NAMESPACE/NAME, such as yunikorn/yunikorn-configs"
_KEY_FORM: Final = "NAME/KEY, such as tenure-history/url"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,48}[a-z0-9])?")
_KEY: Final = re.compile(r"[-._a-zA-Z0-9]{1,253}")
_NAME: Final = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?")


@click.command()
@click.option("--namespace", default="tenure-system", show_default=True, help="The namespace in which Tenure runs.")
@click.option("--pool", default=DEFAULT_POOL, show_default=True, help="The node pool that it schedules.")
@click.option("--image", help="The container image.  [default: tenure:VERSION]")
@click.option(
    "--replicas",
    type=click.IntRange(1, 20),
    default=2,
    show_default=True,
    help="The number of replicas, of which one leads.",
)
@click.option("--config", type=click.Path(), help="Settings (kind: SchedulerConfig) for the ConfigMap.")
@click.option(
    "--read-only",
    is_flag=True,
    help="Decide and record, but change nothing: Tenure gets rights to read and watch only.",
)
@click.option("--yunikorn-config", metavar="NAMESPACE/NAME", help="Read queues from YuniKorn's ConfigMap.")
@click.option(
    "--scheduler-name", "schedulers", multiple=True, metavar="NAME",
    help="Pods with this schedulerName count as Tenure's too. Repeatable.",
)  # fmt: skip
@click.option("--console", is_flag=True, help="Add a console: a Deployment of its own, which may only read.")
@click.option(
    "--console-host", "hosts", multiple=True, metavar="NAME",
    help="A name under which browsers ask for the console, such as an Ingress's. Repeatable.",
)  # fmt: skip
@click.option("--share-gpus", is_flag=True,
              help="Hold GPUs of which parts are given out, so that containers are told which they have.")  # fmt: skip
@click.option("--kueue-queues", is_flag=True, help="Read Kueue's queues, where there are no others.")
@click.option("--prometheus", default="", metavar="URL",
              help="A Prometheus to be asked what pods use of their GPUs, and nodes of their CPU.")  # fmt: skip
@click.option("--history-secret", metavar="NAME/KEY",
              help="Keep a history in PostgreSQL; the Secret has its address, with user and password.")  # fmt: skip
@click.option("--history-port", type=click.IntRange(1, 65_535), metavar="PORT",
              help="The port in that address, which the NetworkPolicy opens.  [default: 5432]")  # fmt: skip
@click.option("--history-volume", metavar="SIZE", help="Keep a history on a volume of this size; takes --replicas 1.")
@click.option(
    "--pull-secret", "pull_secrets", multiple=True, metavar="NAME",
    help="A Secret of that namespace with credentials for the image's registry. Repeatable.",
)  # fmt: skip
@click.option("--priority-class", metavar="NAME", help="Use this PriorityClass instead of installing one.")
@click.option(
    "--network-policy/--no-network-policy",
    default=True,
    show_default=True,
    help="Restrict connections to it and from it.",
)
@click.option("--service-monitor", is_flag=True, help="Add a Service and a ServiceMonitor for the Prometheus operator.")
def install(
    namespace: str,
    pool: str,
    image: str | None,
    config: str | None,
    read_only: bool,
    yunikorn_config: str | None,
    console: bool,
    hosts: tuple[str, ...],
    **others: Any,
) -> int:
    """Print what `kubectl apply -f -` installs: namespace, resource definitions, rights, settings, Deployment.

    Nothing is contacted and nothing changed.
    """
    for option, name in (("--namespace", namespace), ("--pool", pool)):
        if not _LABEL.fullmatch(name):
            message = "small letters, digits and '-' are, 50 at most"
            raise click.UsageError(f"{option} is {name!r}, which is no name that Kubernetes takes; {message}")
    if pool == CONSOLE_POOL:
        raise click.UsageError(
            f"--pool is {pool!r}, whose objects would be named like the console's; name it otherwise"
        )
    secrets = others.pop("pull_secrets")
    for option, names in (
        ("--priority-class", [] if others["priority_class"] is None else [others["priority_class"]]),
        ("--scheduler-name", others["schedulers"]), ("--console-host", hosts), ("--pull-secret", secrets),
    ):  # fmt: skip
        for name in names:
            if not _NAME.fullmatch(name):
                message = "name one by small letters, digits, '-' and '.', or leave the option out"
                raise click.UsageError(f"{option} is {name!r}, which is no name that Kubernetes takes; {message}")
    if image == "":
        raise click.UsageError("--image is empty; name an image, or leave the option out")
    if image is not None and not image.isprintable():
        raise click.UsageError(f"--image is {image!r}, which has letters that cannot be printed; leave them out")
    others["prometheus"] = server_address(others["prometheus"])
    plain, credentials = Installation(image=""), [{"name": name} for name in secrets]
    asked = Installation(
        image=image or f"tenure:{version('tenure')}",
        namespace=namespace,
        pool=pool,
        role=Role.READ_ONLY if read_only else Role.SCHEDULER,
        config=_settings(config) if config else None,
        yunikorn=_pair("--yunikorn-config", yunikorn_config, _MAP_FORM) if yunikorn_config else None,
        pod=replace(plain.pod, pull_secrets=credentials),
        console_pod=replace(plain.console_pod, pull_secrets=credentials),
        history=_history(
            others.pop("history_secret"), others.pop("history_port"), others.pop("history_volume"), others["replicas"]
        ),
        **others,
    )
    if hosts and not console:
        raise click.UsageError("--console-host names a host of the console; add --console")
    click.echo(write([*objects(asked), *(console_objects(asked, hosts) if console else ())]), nl=False)
    return 0


def _settings(path: str) -> dict[str, Any]:
    """Read settings and give what of them is not as by default."""
    loaded = load_file(path)
    if not isinstance(loaded, Settings):
        raise InvalidInputError([InputProblem(path, 0, "kind", "is no SchedulerConfig; name the scheduler's settings")])
    return record_of(Settings).encode(loaded)


def _history(
    secret: str | None, port: int | None, volume: str | None, replicas: int
) -> HistorySecret | HistoryVolume | None:
    """Give where the history is kept: a server that several replicas reach, or a volume that one mounts."""
    if secret and volume:
        raise click.UsageError("--history-secret and --history-volume are two places for one history; keep one of them")
    if secret:
        name, key = _pair("--history-secret", secret, _KEY_FORM, _KEY)
        return HistorySecret(name=name, key=key, port=port or POSTGRESQL_PORT)
    if port is not None:
        raise click.UsageError("--history-port is that of a PostgreSQL server; add --history-secret, or leave it out")
    if volume is None:
        return None
    if replicas > 1:
        raise click.UsageError("--history-volume is mounted by one replica; add --replicas 1, or use --history-secret")
    try:
        if parse_quantity(volume, "memory") > 0:
            return HistoryVolume(size=volume)
    except ValueError:
        pass
    raise click.UsageError(f"--history-volume is {volume!r}, which is no size; write one such as 10Gi")


def _pair(option: str, text: str, example: str, inner: re.Pattern[str] = _NAME) -> tuple[str, str]:
    """Read a name and one within it."""
    first, _, second = text.partition("/")
    if _NAME.fullmatch(first) and inner.fullmatch(second):
        return first, second
    form = example.partition(",")[0]
    raise click.UsageError(f"{option} is {text!r}, but {form} is expected{example.removeprefix(form)}")
