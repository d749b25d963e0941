"""The choices that the chart leaves open, each with the value that makes it, and what stands for a value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Final

from tenure.clusters.kubernetes.install.console import console_objects
from tenure.clusters.kubernetes.install.installation import HistorySecret, HistoryVolume, Installation, PodOptions
from tenure.clusters.kubernetes.install.manifests import own_objects
from tenure.clusters.kubernetes.install.rbac import Role

Object = dict[str, Any]
Setting = frozenset[str]
"""The choices that are made, by name; all others are not."""

CHOICES: Final = {
    "read-only": ".Values.readOnly",
    "moves": '(include "tenure.moves" .)',
    "measures": '(include "tenure.measures" .)',
    "gpus": ".Values.shareGpus",
    "kueue": ".Values.kueueQueues",
    "prometheus": ".Values.prometheus",
    "yunikorn": ".Values.yunikorn.configMap",
    "console": ".Values.console.enabled",
    "monitor": ".Values.serviceMonitor.enabled",
    "several": "(gt (int .Values.replicas) 1)",
    "restricted network": ".Values.networkPolicy.enabled",
    "own priority class": ".Values.priorityClass.create",
    "history on a server": ".Values.history.secret.name",
    "history on a volume": ".Values.history.volume.enabled",
    "storage class": ".Values.history.volume.storageClass",
}
"""What is true in a template where the choice is made."""

_PLACES: Final = {
    "zznamespacezz": "{{ .Release.Namespace }}",
    "tenure-zzpoolzz": '{{ include "tenure.name" . }}',
    "tenure:zzpoolzz": '{{ include "tenure.role" . }}',
    "zzpoolzz": "{{ .Values.pool }}",
    "http://zzprometheuszz:54327": "{{ .Values.prometheus }}",
    "zzimagezz": '{{ include "tenure.image" . }}',
    "zzpullzz": "{{ .Values.image.pullPolicy }}",
    "zzyunikornspacezz": "{{ .Values.yunikorn.namespace }}",
    "zzyunikornmapzz": "{{ .Values.yunikorn.configMap }}",
    "zzpriorityzz": "{{ .Values.priorityClass.name }}",
    "zzsecretzz": "{{ .Values.history.secret.name }}",
    "zzkeyzz": "{{ .Values.history.secret.key }}",
    "zzsizezz": "{{ .Values.history.volume.size }}",
    "zzstoragezz": "{{ .Values.history.volume.storageClass }}",
}
_TOGETHER: Final = 3
_REPLICAS: Final = 987_654
_NUMBERS: Final = {
    _REPLICAS: "{{ int .Values.replicas }}",
    54_329: "{{ int .Values.history.secret.port }}",
    54_327: '{{ include "tenure.prometheusPort" . }}',
}
_EACH: Final = {"zzschedulerzz": ".Values.schedulerNames", "zzhostzz": ".Values.console.hosts"}
"""What stands for each of several values, in an item of a list of its own or behind a comma in a text."""

WHOLE: Final = "zzwhole "
"""Begins a text that stands for a value of any form, under its path."""

ENTRIES: Final = "zzentries "
"""Begins a text that stands for further items of a list, or keys of a mapping."""


@dataclass(frozen=True)
class Expression:
    """A text of the manifests as a template. ``each``: the path of the list for each of whose values it is repeated."""

    text: str
    each: str = ""


def expression(value: object) -> Expression | None:
    """Give what a value that stands for another is in a template; None for one that stands for itself."""
    if isinstance(value, int) and not isinstance(value, bool) and value in _NUMBERS:
        return Expression(_NUMBERS[value])
    if not isinstance(value, str):
        return None
    made, each = value, ""
    for word, path in _EACH.items():
        made = made.replace(f", '{word}'", f"{{{{ range {path} }}}}, '{{{{ . }}}}'{{{{ end }}}}")
        if word in made:
            made, each = made.replace(word, "{{ . }}"), path
    for word, text in _PLACES.items():
        made = made.replace(word, text)
    return Expression(made, each) if made != value else None


def settings() -> Iterator[Setting]:
    """Give all combinations of as many choices as ever decide one thing together."""
    for chosen in map(frozenset, chain.from_iterable(combinations(CHOICES, count) for count in range(_TOGETHER + 1))):
        on_volume = "history on a volume" in chosen
        if on_volume and {"several", "history on a server"} & chosen:
            continue  # a volume is mounted by one replica, and a history is in one place
        if "storage class" in chosen and not on_volume:
            continue
        yield chosen


def manifests(chosen: Setting) -> list[Object]:
    """Give the manifests of an installation in which texts stand for what the values say."""
    asked = Installation(
        image="zzimagezz",
        namespace="zznamespacezz",
        pool="zzpoolzz",
        replicas=_REPLICAS if "several" in chosen else 1,
        role=Role.READ_ONLY if "read-only" in chosen else Role.SCHEDULER,
        config=_config(chosen),
        yunikorn=("zzyunikornspacezz", "zzyunikornmapzz") if "yunikorn" in chosen else None,
        schedulers=("zzschedulerzz",),
        service_monitor="monitor" in chosen,
        share_gpus="gpus" in chosen,
        kueue_queues="kueue" in chosen,
        prometheus="http://zzprometheuszz:54327" if "prometheus" in chosen else "",
        network_policy="restricted network" in chosen,
        priority_class=None if "own priority class" in chosen else "zzpriorityzz",
        history=_history(chosen),
        pod=_pod(""),
        console_pod=_pod("console."),
    )
    made = own_objects(asked)
    if "console" in chosen:
        made += console_objects(asked, ("zzhostzz",))
    for item in made:
        if item["kind"] == "Deployment" and "zzpoolzz" in item["metadata"]["name"]:
            item["spec"]["replicas"] = _REPLICAS  # one replica is a number of them as well
    return made


def _config(chosen: Setting) -> Object:
    moved: Object = {"schedulers": ["other"]} if "moves" in chosen else {}
    return {"rescheduler": {**moved, "hotNodes": {"enabled": "measures" in chosen}}}


def _history(chosen: Setting) -> HistorySecret | HistoryVolume | None:
    if "history on a server" in chosen:
        return HistorySecret(name="zzsecretzz", key="zzkeyzz", port=54_329)
    if "history on a volume" in chosen:
        return HistoryVolume(size="zzsizezz", storage_class="zzstoragezz" if "storage class" in chosen else None)
    return None


def _pod(of: str) -> PodOptions:
    """Give options of pods that the values say, the console's under a key of its own where it has any."""
    return PodOptions(
        resources=f"{WHOLE}.Values.{of}resources",
        pod_security=f"{WHOLE}.Values.{of}podSecurityContext",
        container_security=f"{WHOLE}.Values.{of}securityContext",
        annotations=f"{WHOLE}.Values.{of}podAnnotations",
        labels={f"{ENTRIES}.Values.{of}podLabels": ""},
        node_selector=f"{WHOLE}.Values.{of}nodeSelector",
        tolerations=f"{WHOLE}.Values.{of}tolerations",
        pull_secrets=f"{WHOLE}.Values.image.pullSecrets",
        pull_policy="zzpullzz",
        env=[f"{ENTRIES}.Values.{of}extraEnv"],
        arguments=[f"{ENTRIES}.Values.{of}extraArgs"],
    )
