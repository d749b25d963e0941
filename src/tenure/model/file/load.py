"""Loading cluster files and the scheduler's settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.checks.cluster import check_cluster
from tenure.model.cluster import Cluster, DisruptionBudget
from tenure.model.device_resources import vendors_apart
from tenure.model.devices import DeviceInventory
from tenure.model.documents.collector import collector_paused, count_as_old
from tenure.model.documents.document import Document
from tenure.model.documents.source import read_document
from tenure.model.entries import API_VERSION, CLUSTER_KIND, SETTINGS_KIND, file_entry, settings_entry
from tenure.model.fields.records import record_of
from tenure.model.file.expand import Expanded, Expander
from tenure.model.manifests.device_uses import with_device_uses
from tenure.model.policy import Policy
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.storage import with_mounts
from tenure.model.values.problems import InputProblem
from tenure.model.values.report import BAD, Path, ProblemReport, Trail, trail_of, unroll
from tenure.model.volumes import Storage

if TYPE_CHECKING:
    from tenure.model.yunikorn.convert import YuniKornQueues

MANY = 1_000
"""Workloads from which on a cluster that was loaded is not looked through for garbage."""

_SECTIONS = frozenset({"nodes", "queues", "workloads"})


@dataclass(frozen=True, slots=True)
class Loaded:
    """A cluster from a file, and what deserves a look there."""

    cluster: Cluster
    warnings: tuple[InputProblem, ...] = ()


def load_cluster(path: str | FilePath, policy: Policy | None = None) -> Loaded:
    """Load a cluster file (YAML or JSON, gzipped or not; ``-`` is standard input).

    Parameters
    ----------
    path
        The file.
    policy
        What to take instead of the file's own queues and settings.

    Raises
    ------
    InvalidInputError
        With all problems of the file, each with line and path; nothing of it is used.

    """
    return _cluster_of(read_document(path), policy)


def cluster_of(plain: dict[str, Any], name: str) -> Cluster:
    """Make a cluster of the plain values of a file that was read elsewhere; ``name`` says where.

    Raises
    ------
    InvalidInputError
        With all problems, each with its path.

    """
    return _cluster_of(Document(name, plain, lambda _: {})).cluster


def load_settings(path: str | FilePath) -> Settings:
    """Load settings from the scheduler's own file (``kind: SchedulerConfig``), or those of a cluster file.

    The settings stand under ``scheduler:``; the scheduler's own file may also have them at its top.

    Raises
    ------
    InvalidInputError
        With all problems of the file, each with line and path; nothing of it is used.

    """
    document = read_document(path)
    if _is_cluster(document.value):
        return _cluster_of(document).cluster.settings
    return _settings_of(document)


def load_file(path: str | FilePath) -> Loaded | Settings | YuniKornQueues:
    """Load a file of any kind; one that names none is a cluster file, or YuniKorn's ``queues.yaml`` by its content.

    Raises
    ------
    InvalidInputError
        With all problems of the file, each with line and path.

    """
    return load_document(read_document(path))


def load_document(document: Document, policy: Policy | None = None) -> Loaded | Settings | YuniKornQueues:
    """Load a document that was read already; see `load_file`.

    A cluster file is taken under ``policy``, which stands instead of its own queues and settings.

    Raises
    ------
    InvalidInputError
        With all problems of the document, each with line and path.

    """
    if isinstance(document.value, dict) and document.value.get("kind") == SETTINGS_KIND:
        return _settings_of(document)
    if isinstance(document.value, dict) and "partitions" in document.value:
        from tenure.model.yunikorn.convert import is_yunikorn, queues_of  # noqa: PLC0415  rarely needed

        if is_yunikorn(document.value):
            return queues_of(document)
    return _cluster_of(document, policy)


def _is_cluster(value: Any) -> bool:
    return isinstance(value, dict) and (value.get("kind") == CLUSTER_KIND or not _SECTIONS.isdisjoint(value))


def _cluster_of(document: Document, policy: Policy | None = None) -> Loaded:
    report = ProblemReport()
    with collector_paused():
        cluster = _read_cluster(document.value, report, policy)
        if len(cluster.workloads) > MANY:
            count_as_old()
    document.require_clean(report)
    return Loaded(cluster, document.warnings(report))


def _settings_of(document: Document) -> Settings:
    report = ProblemReport()
    settings = _read_settings(document.value, report)
    document.require_clean(report)
    return settings


def _warn_of_missing_head(value: Mapping[str, Any], kind: str, report: ProblemReport) -> None:
    """Warn where a document does not say what it is: another version might read it otherwise."""
    missing = [f"'{key}: {said}'" for key, said in (("apiVersion", API_VERSION), ("kind", kind)) if key not in value]
    if missing:
        report.warn(
            None, f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing; begin the file with it"
        )


def _read_settings(value: Any, report: ProblemReport) -> Settings:
    if isinstance(value, dict) and "scheduler" not in value and value.get("kind", SETTINGS_KIND) == SETTINGS_KIND:
        inner = {key: item for key, item in value.items() if key not in ("apiVersion", "kind")}
        read = record_of(Settings).decode(inner, None, report)
        return Settings() if read is BAD else read
    entry = settings_entry().decode(value, None, report)
    return Settings() if entry is BAD else entry.values.get("settings", Settings())


def _read_cluster(value: Any, report: ProblemReport, policy: Policy | None = None) -> Cluster:
    """Make a cluster of a document. What cannot be read is left out, so that all the rest is checked as well."""
    entry = file_entry().decode(value, None, report)
    if entry is BAD:
        return Cluster(now=0)
    values = entry.values
    _warn_of_missing_head(value, CLUSTER_KIND, report)
    if "now" not in values and values.get("workloads"):
        report.add((None, "now"), "is missing; say which moment the file describes, such as 2026-11-20T10:00:00Z")
    expander = Expander(report, values.get("now", 0))
    expander.add_nodes(values.pop("nodes", ()))
    expander.add_workloads(values.pop("workloads", ()))
    made = expander.result
    queues, budgets = values.get("queues", ()), values.get("disruption_budgets", ())
    tree = tuple(Queue(**read.values) for read in queues)
    cluster = Cluster(
        now=values.get("now", 0),
        settings=vendors_apart(values.get("settings", Settings()), tree),
        nodes=tuple(made.nodes),
        queues=tree,
        workloads=tuple(made.workloads),
        disruption_budgets=tuple(DisruptionBudget(**read.values) for read in budgets),
        evictions=values.get("evictions", ()),
        outcomes=values.get("outcomes", ()),
        finished_runs=values.get("finished_runs", ()),
        namespaces=values.get("namespaces", ()),
        storage=Storage(**{field.name: values[field.name] for field in fields(Storage) if field.name in values}),
        attachments=values.get("attachments", ()),
        devices=DeviceInventory(
            slices=values.get("device_slices", ()),
            classes=values.get("device_classes", ()),
            claims=values.get("device_claims", ()),
        ),
    )
    cluster = with_device_uses(with_mounts(cluster if policy is None else policy.over(cluster)))
    trails = {
        "nodes": made.node_trails,
        "queues": [read.at for read in queues],
        "workloads": made.workload_trails,
        "disruptionBudgets": [read.at for read in budgets],
    }
    if policy is not None and policy.queues is not None:
        del trails["queues"]
    _report_findings(cluster, made, trails, report)
    return cluster


def _report_findings(cluster: Cluster, made: Expanded, trails: dict[str, list[Trail]], report: ProblemReport) -> None:
    """Check a cluster as a whole and note what is found at the place in the file that it comes from.

    What is found at a value of which a part could not be read is a consequence of that, and left out; so is what is
    found at queues that come from a file of their own, which has been checked.
    """
    unread = {path[:length] for path, _ in report.problems for length in range(1, len(path) + 1)}
    for finding in check_cluster(cluster):
        path = _place(finding.path, trails, made)
        if path in unread or (finding.path[0] == "queues" and "queues" not in trails and len(path) > 1):
            continue
        if finding.is_warning:
            report.warn(trail_of(path), finding.message)
        else:
            report.add(trail_of(path), finding.message)


def _place(path: Path, trails: dict[str, list[Trail]], made: Expanded) -> Path:
    section, *rest = path
    if section not in trails or not rest:
        return path
    index, *steps = rest
    rows = made.task_rows.get(index) if section == "workloads" else None
    if rows is not None and steps[:1] == ["tasks"] and len(steps) > 1:
        steps[1] = rows[steps[1]]
    return (*unroll(trails[section][index]), *steps)
