"""Changes given on the command line: ``--set PATH=VALUE``, with the validation of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tenure.model import rules as _rules  # noqa: F401  registers the checks of single values
from tenure.model.checks.cluster import check_cluster
from tenure.model.cluster import Cluster
from tenure.model.device_resources import vendors_apart
from tenure.model.fields.containers import AmountsKind, ListKind, MapKind, OneOrMap
from tenure.model.fields.kinds import ValueKind, describe
from tenure.model.fields.records import RecordKind, check_value, record_of
from tenure.model.queue import Queue
from tenure.model.settings import Settings
from tenure.model.values.problems import InputProblem, InvalidInputError, nearest
from tenure.model.values.report import BAD, ProblemReport, path_text
from tenure.model.values.resources import CPU, MEMORY, PODS
from tenure.model.values.scalars import resolve_scalar
from tenure.model.workload import Workload

SOURCE = "--set"
"""What stands for the file in problems of overrides."""

_FIXED = {Queue: ("name",), Workload: ("name", "namespace", "uid", "tasks")}
_SETTINGS_ALONE = "write scheduler.KEY=VALUE"
_ALL_FORMS = (
    "write queue.NAME.max.RESOURCE=N, queue.NAME.KEY=VALUE, scheduler.KEY=VALUE, workload.NS/NAME.KEY=VALUE or now=TIME"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Overridden:
    """A cluster with changes.

    ``max_changes`` has, by queue, the resources whose ``max`` was changed and what it was before (`None`: unlimited):
    these are changes of configuration in the sense of quota preemption.
    """

    cluster: Cluster
    max_changes: Mapping[str, Mapping[str, int | None]] = field(default_factory=dict)
    warnings: tuple[InputProblem, ...] = ()


class _RefusedError(Exception):
    """An override cannot be applied; the text says why."""


def apply_overrides(cluster: Cluster, overrides: Sequence[str]) -> Overridden:
    """Apply overrides, in order, and check the outcome as a cluster file is checked.

    Raises
    ------
    InvalidInputError
        With all problems, each naming the override; nothing is applied.

    """
    problems: list[InputProblem] = []
    changed = cluster
    for text in overrides:
        changed = _attempt(changed, text, _apply, problems)
    if problems:
        raise InvalidInputError(problems)
    if changed is not cluster:
        changed = replace(changed, settings=vendors_apart(changed.settings, changed.queues))
    warnings = _check(cluster, changed, overrides)
    return Overridden(cluster=changed, max_changes=_max_changes(cluster, changed), warnings=warnings)


def apply_settings_overrides(settings: Settings, overrides: Sequence[str]) -> Settings:
    """Apply overrides of ``scheduler.`` to settings.

    Raises
    ------
    InvalidInputError
        With all problems, each naming the override; nothing is applied.

    """
    problems: list[InputProblem] = []
    for text in overrides:
        settings = _attempt(settings, text, _apply_to_settings, problems)
    if problems:
        raise InvalidInputError(problems)
    return settings


def _attempt(whole: Any, text: str, apply: Any, problems: list[InputProblem]) -> Any:
    path, equals, value = text.partition("=")
    if not equals:
        problems.append(InputProblem(SOURCE, 0, text, f"has no '='; {_ALL_FORMS}"))
        return whole
    try:
        return apply(whole, path.strip(), _plain(value))
    except _RefusedError as error:
        problems.append(InputProblem(SOURCE, 0, text, str(error)))
    except InvalidInputError as error:
        problems.extend(InputProblem(SOURCE, 0, text, problem.message) for problem in error.problems)
    return whole


def _plain(text: str) -> Any:
    """Read a value: a word as in YAML, or a list or mapping in brackets."""
    text = text.strip()
    if text[:1] not in ("[", "{", '"', "'"):
        return resolve_scalar(text)
    from tenure.model.documents.yaml_source import parse_yaml  # noqa: PLC0415  rare, and PyYAML takes long to import

    return parse_yaml(SOURCE, text)[0].value


def _apply_to_settings(settings: Settings, path: str, value: Any) -> Settings:
    head, _, rest = path.partition(".")
    if head != "scheduler" or not rest:
        raise _RefusedError(f"is not a setting; {_SETTINGS_ALONE}")
    return _set(record_of(Settings), settings, rest, value)  # type: ignore[no-any-return]


def _apply(cluster: Cluster, path: str, value: Any) -> Cluster:
    head, _, rest = path.partition(".")
    if path == "now":
        return _set(record_of(Cluster), cluster, "now", value)  # type: ignore[no-any-return]
    if head == "scheduler" and rest:
        return replace(cluster, settings=_apply_to_settings(cluster.settings, path, value))
    if head == "queue" and rest:
        return _apply_to_queue(cluster, rest, value)
    if head == "workload" and rest:
        return _apply_to_workload(cluster, rest, value)
    raise _RefusedError(f"names nothing that can be set; {_ALL_FORMS}")


def _apply_to_queue(cluster: Cluster, path: str, value: Any) -> Cluster:
    name, rest = _split_queue(path, [queue.name for queue in cluster.queues])
    limits, _, resource = rest.partition(".")
    if limits in ("max", "guaranteed") and resource == "vcore":  # YuniKorn's word for it
        rest, resource = f"{limits}.cpu", CPU
    if limits in ("max", "guaranteed") and resource:
        _refuse_unknown(cluster, resource)
    queues = [_set(record_of(Queue), q, rest, value) if q.name == name else q for q in cluster.queues]
    return replace(cluster, queues=tuple(queues))


def _refuse_unknown(cluster: Cluster, resource: str) -> None:
    """Refuse a resource that is neither one of Kubernetes' own or of some domain, nor named anywhere in the cluster."""
    if resource in (CPU, MEMORY, PODS) or "/" in resource:
        return
    named = {name for node in cluster.nodes for name in node.allocatable}
    named |= {name for queue in cluster.queues for amounts in (queue.max, queue.guaranteed) for name in amounts}
    named |= {name for w in cluster.workloads for task in w.tasks for name, _ in task.spec.requests}
    if resource not in named:
        known = sorted({*named, CPU, MEMORY, PODS})
        raise _RefusedError(
            f"there is no resource {resource}{nearest(resource, known) or _listing(known, 'resources')}"
        )


def _split_queue(path: str, names: Sequence[str]) -> tuple[str, str]:
    """Split a path into the queue's name, which may hold dots or be the unique last part of one, and what follows."""
    full = [name for name in names if path.startswith(f"{name}.")]
    if full:
        name = max(full, key=len)
        return name, path[len(name) + 1 :]
    short = [name for name in names if path.startswith(f"{name.rpartition('.')[2]}.")]
    if len(short) == 1:
        return short[0], path[len(short[0].rpartition(".")[2]) + 1 :]
    if short:
        raise _RefusedError(f"may mean {' or '.join(short)}; write the full name")
    word = path.partition(".")[0]
    if path in names:
        raise _RefusedError(f"names a queue, but nothing of it; write queue.{path}.max.RESOURCE=N")
    raise _RefusedError(f"there is no queue {word}{nearest(word, names) or _listing(names, 'queues')}")


def _apply_to_workload(cluster: Cluster, path: str, value: Any) -> Cluster:
    keys = [workload.key for workload in cluster.workloads if path.startswith(f"{workload.key}.")]
    if not keys:
        word = path.rpartition(".")[0] or path
        named = [w.key for w in cluster.workloads if path.startswith(f"{w.name}.")]
        hint = f"; did you mean {named[0]}?" if named else nearest(word, [w.key for w in cluster.workloads])
        raise _RefusedError(f"there is no workload {word}{hint or '; write it as NAMESPACE/NAME'}")
    key = max(keys, key=len)
    changed = (
        _set(record_of(Workload), w, path[len(key) + 1 :], value) if w.key == key else w for w in cluster.workloads
    )
    return replace(cluster, workloads=tuple(changed))


def _listing(names: Sequence[str], what: str) -> str:
    return f"; there are {', '.join(names[:8])}" if names else f"; no {what} are configured"


def _set(record: RecordKind, whole: Any, path: str, value: Any) -> Any:
    """Give a copy of an object with the value at a path of keys changed."""
    key, _, rest = path.partition(".")
    found = record.fields.get(key)
    fixed = _FIXED.get(record.cls, ())
    if found is None or found.attribute in fixed:
        known = [name for name, entry in record.fields.items() if entry.attribute not in fixed]
        raise _RefusedError(f"unknown key {key}{nearest(key, known) or '; known here: ' + ', '.join(known)}")
    current = getattr(whole, found.attribute)
    if rest:
        new = _set_part(found.kind, current, key, rest, value)
    else:
        new = found.default if value is None and not found.required else _decode(found.kind, value)
    changed = replace(whole, **{found.attribute: new})
    report = ProblemReport()
    check_value(changed, None, report)
    _refuse(report)
    return changed


def _set_part(kind: ValueKind, current: Any, key: str, rest: str, value: Any) -> Any:
    if isinstance(kind, RecordKind):
        return _set(kind, kind.cls() if current is None else current, rest, value)
    many = kind.many if isinstance(kind, OneOrMap) else kind
    if not isinstance(many, MapKind | AmountsKind):
        raise _RefusedError(f"{key} has no parts; write {key}=VALUE")
    own = current if isinstance(current, Mapping) else {}
    name, _, inner = rest.partition(".")
    if inner and isinstance(many, MapKind) and isinstance(many.values, RecordKind):
        made = _decode(many, {name: {}}) if name not in own else own
        return {**own, name: _set(many.values, made[name], inner, value)}
    kept = {name: item for name, item in own.items() if name != rest}
    return {**kept, **_decode(many, {rest: value})}


def _decode(kind: ValueKind, value: Any) -> Any:
    if isinstance(kind, ListKind) and isinstance(value, str):
        value = [part.strip() for part in value.split(",")]
    report = ProblemReport()
    read = kind.decode(value, None, report)
    _refuse(report)
    if read is BAD:
        raise _RefusedError(f"is {describe(value)}, which does not do here")
    return read


def _refuse(report: ProblemReport) -> None:
    if report.problems:
        path, message = report.problems[0]
        raise _RefusedError(f"{path_text(path)}: {message}" if len(path) > 1 else message)


def _check(before: Cluster, after: Cluster, overrides: Sequence[str]) -> tuple[InputProblem, ...]:
    """Raise what the changes broke; give the warnings that were not there before."""
    if not overrides:
        return ()
    known = {(finding.path, finding.message) for finding in check_cluster(before)}
    found = [finding for finding in check_cluster(after) if (finding.path, finding.message) not in known]
    broken = [finding for finding in found if not finding.is_warning]
    if broken:
        raise InvalidInputError(_problem(after, f.path, f.message, overrides) for f in broken)
    return tuple(_problem(after, finding.path, finding.message, overrides) for finding in found)


def _problem(cluster: Cluster, path: Sequence[Any], message: str, overrides: Sequence[str]) -> InputProblem:
    """Name the override that a finding is about: the last one of that queue or workload, else the last of all."""
    section, index = path[0], path[1] if len(path) > 1 else None
    subject = ""
    if section == "queues" and index is not None:
        subject = cluster.queues[index].name
    elif section == "workloads" and index is not None:
        subject = cluster.workloads[index].key
    about = [text for text in overrides if subject and f"{subject.rpartition('.')[2]}." in text]
    what = f"{subject}: {message}" if subject and not about else message
    return InputProblem(SOURCE, 0, (about or overrides)[-1], what)


def _max_changes(before: Cluster, after: Cluster) -> dict[str, dict[str, int | None]]:
    changes: dict[str, dict[str, int | None]] = {}
    for old, new in zip(before.queues, after.queues, strict=True):
        for resource in _joined(old.max, new.max):
            if old.max.get(resource) != new.max.get(resource):
                changes.setdefault(new.name, {})[resource] = old.max.get(resource)
    return changes


def _joined(*mappings: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(key for mapping in mappings for key in mapping))
