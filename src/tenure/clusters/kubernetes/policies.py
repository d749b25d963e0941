"""Policy as manifests: Tenure's own objects in files, checked together as the scheduler would read them.

What is not Tenure's (CRDs, RBAC, Deployments beside them) is passed over and counted. Settings and YuniKorn's queues
inside a ConfigMap are checked as files of their own. This module needs nothing of the extra ``kubernetes``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final

from tenure.clusters.kubernetes.install.crds import GROUP, RESOURCES, custom_resource_definitions, spec_record
from tenure.model.checks.disruption import check_disruption
from tenure.model.checks.findings import ClusterFinding
from tenure.model.checks.queues import check_queues
from tenure.model.cluster import Cluster
from tenure.model.documents.document import Document, problems_of
from tenure.model.entries import CLUSTER_KIND, SETTINGS_KIND
from tenure.model.fields.kinds import NameKind, describe
from tenure.model.fields.records import check_value
from tenure.model.file.load import Loaded, load_document
from tenure.model.manifests.workload_kind import WorkloadKind
from tenure.model.policy import Policy, policy_of
from tenure.model.queue import Queue
from tenure.model.settings import BudgetRule, Settings
from tenure.model.values.problems import InputProblem, InvalidInputError, nearest
from tenure.model.values.report import BAD, Path, ProblemReport, Trail, trail_of, unroll
from tenure.model.yunikorn.convert import YuniKornQueues

_OWN: Final = tuple(resource.kind for resource in RESOURCES)
_TOP: Final = ("apiVersion", "kind", "metadata", "spec", "status")
_IN_FILES: Final = (CLUSTER_KIND, SETTINGS_KIND)
_SETTINGS_IN: Final = ("scheduler", "disruption", "budgets")
"""Where a budget stands in a cluster; a ``DisruptionBudget`` stands for one such."""


def is_manifest(value: Any) -> bool:
    """Tell the manifest of an object from a cluster file, settings, and YuniKorn's ``queues.yaml``."""
    if not isinstance(value, dict) or value.get("kind") in (None, *_IN_FILES):
        return False
    return "apiVersion" in value or value["kind"] in _OWN


MOST_WRONG: Final = 20
"""Problems of a file after which documents in it that are no manifests are not read: each costs a look through it."""


@dataclass(frozen=True, slots=True)
class PolicyObject:
    """An object of a manifest that takes part in checks over all of them: what was made of it, and where it stands."""

    made: Any
    name: str
    document: Document
    report: ProblemReport
    at: Trail


@dataclass(slots=True)
class PolicyManifests:
    """What the documents of some files say of policy, all of them together. `read` takes a file, `finish` checks all.

    ``kinds`` counts by file what was read, ``passed_over`` what was not Tenure's; ``others`` has what whole documents
    of a file hold that are no manifests.
    """

    kinds: dict[str, Counter[str]] = field(default_factory=dict)
    passed_over: dict[str, Counter[str]] = field(default_factory=dict)
    queues: list[PolicyObject] = field(default_factory=list)
    budgets: list[PolicyObject] = field(default_factory=list)
    pools: list[PolicyObject] = field(default_factory=list)
    others: list[Loaded | Settings | YuniKornQueues] = field(default_factory=list)
    reports: dict[str, list[tuple[Document, ProblemReport]]] = field(default_factory=dict)
    problems: dict[str, list[InputProblem]] = field(default_factory=dict)
    warnings: dict[str, list[InputProblem]] = field(default_factory=dict)

    def read(self, file: str, documents: Sequence[Document]) -> None:
        """Read the documents of a file; problems are kept until `finish`."""
        self.kinds[file], self.passed_over[file] = Counter(), Counter()
        self.reports[file], self.problems[file], self.warnings[file] = [], [], []
        unread = 0
        for document in documents:
            if is_manifest(document.value):
                reader = _ManifestReader(self, document)
                reader.read(document.value, None)
                self.reports[file].append((document, reader.report))
            elif len(self.problems[file]) < MOST_WRONG:
                self._read_other(file, document)
            else:
                unread += 1
        if unread:
            text = f"{unread} further documents are not read; only manifests may stand in one file by the hundred"
            self.problems[file].append(InputProblem(file, 0, "", text))

    def finish(self) -> None:
        """Check what goes over several objects: the tree of queues, names, and the queues of budgets."""
        self._check_names()
        tree = tuple(o.made for o in self.queues)
        for finding in check_queues(tree):
            self._tell(finding)
        rules = tuple(o.made for o in self.budgets)
        for finding in check_disruption(Cluster(now=0, queues=tree, settings=_with_rules(Settings(), rules))):
            self._tell(finding)
        for file, reports in self.reports.items():
            self.problems[file] += problems_of(reports)
            self.warnings[file] += [w for document, report in reports for w in document.warnings(report)]

    def all_problems(self) -> list[InputProblem]:
        """Give what is wrong, file by file."""
        return [problem for problems in self.problems.values() for problem in problems]

    def policy(self, pool: str) -> Policy:
        """Give the policy for a pool: its ``NodePool``, else settings from a ConfigMap or a file of their own.

        Raises
        ------
        InvalidInputError
            Something is wrong with what was read.
        """
        if problems := self.all_problems():
            raise InvalidInputError(problems)
        queues = tuple(o.made for o in self.queues) or None
        settings = next((o.made for o in self.pools if o.name == pool), None)
        quota: dict[str, Any] = {}
        for other in self.others:
            if isinstance(other, Settings):
                settings = settings or other
            elif isinstance(other, Loaded):
                own = policy_of(other.cluster)
                queues, settings = queues or own.queues, settings or own.settings
            else:
                queues, quota = queues or other.queues, other.quota
        rules = tuple(o.made for o in self.budgets) or None
        return Policy(queues=queues, settings=settings, budgets=rules, quota=quota)

    def _read_other(self, file: str, document: Document) -> None:
        try:
            loaded = load_document(document)
        except InvalidInputError as error:
            self.problems[file] += error.problems
            return
        self.others.append(loaded)
        self.kinds[file][kind_of_loaded(loaded)] += 1
        if not isinstance(loaded, Settings):
            self.warnings[file] += loaded.warnings

    def _check_names(self) -> None:
        for objects in (self.budgets, self.pools):
            seen: dict[str, PolicyObject] = {}
            for o in objects:
                if o.name in seen:
                    first = seen[o.name].document.file
                    o.report.add(((o.at, "metadata"), "name"), f"{o.name} is there twice, first in {first}")
                seen.setdefault(o.name, o)

    def _tell(self, finding: ClusterFinding) -> None:
        found = self._object_of(finding.path)
        if found is None:
            return
        o, rest = found
        head: Path = ("metadata", "name") if rest == ("name",) else ("spec", *rest)
        trail = trail_of((*unroll(o.at), *head))
        if finding.is_warning:
            o.report.warn(trail, finding.message)
        else:
            o.report.add(trail, finding.message)

    def _object_of(self, path: Path) -> tuple[PolicyObject, Path] | None:
        if path[0] == "queues" and len(path) > 1:
            return self.queues[path[1]], path[2:]
        if path[:3] == _SETTINGS_IN and path[4:] != ("name",):  # names were compared over files already
            return self.budgets[path[3]], path[4:]
        return None


@dataclass(slots=True)
class _ManifestReader:
    """Reads one document, which holds an object or a list of them."""

    whole: PolicyManifests
    document: Document
    report: ProblemReport = field(default_factory=ProblemReport)

    def read(self, value: Any, at: Trail) -> None:
        if not isinstance(value, dict) or not isinstance(value.get("kind"), str):
            self.report.add(at, f"is {describe(value)}, but the manifest of an object is expected, with its kind")
            return
        kind, version = value["kind"], value.get("apiVersion")
        group, _, number = str(version or "").partition("/")
        if kind.endswith("List") and isinstance(value.get("items"), list):
            for index, item in enumerate(value["items"]):
                self.read(_typed(item, kind, version), ((at, "items"), index))
        elif group == GROUP or (version is None and kind in _OWN):
            self._own(value, kind, number, at)
        else:
            if kind == "ConfigMap":
                self._read_config_map(value, at)
            self.whole.passed_over[self.document.file][kind] += 1

    def _own(self, value: dict[str, Any], kind: str, version: str, at: Trail) -> None:
        if kind not in _OWN:
            hint = nearest(kind, _OWN) or f"; there are {', '.join(_OWN)}"
            self.report.add((at, "kind"), f"{GROUP} has no kind {kind}{hint}")
            return
        self.whole.kinds[self.document.file][kind] += 1
        if version not in served_versions(kind):
            said = " or ".join(f"{GROUP}/{v}" for v in served_versions(kind))
            self.report.add((at, "apiVersion"), f"is {value.get('apiVersion') or 'missing'}; write {said}")
        for key in [key for key in value if key not in _TOP]:
            hint = nearest(key, _TOP) or "; known here: " + ", ".join(_TOP)
            self.report.add((at, key), f"unknown key{hint}")
        name = self._name(value.get("metadata"), (at, "metadata"))
        if "spec" not in value:
            self.report.add((at, "spec"), "is missing; it is required")
            return
        spec = value["spec"] if value["spec"] is not None else {}
        values = spec_record(kind).read(spec, (at, "spec"), self.report)
        if name is not BAD and values is not BAD:
            self._keep(kind, name, values, at)

    def _name(self, metadata: Any, at: Trail) -> Any:
        if not isinstance(metadata, dict) or metadata.get("name") is None:
            self.report.add((at, "name"), "is missing; it is required")
            return BAD
        return NameKind().decode(metadata["name"], (at, "name"), self.report)

    def _keep(self, kind: str, name: str, values: dict[str, Any], at: Trail) -> None:
        made: Any
        if kind == "NodePool":
            made = values.get("scheduler", Settings())  # its values were checked as they were read
            self.whole.pools.append(PolicyObject(made, name, self.document, self.report, at))
            return
        if kind == "WorkloadKind":
            check_value(WorkloadKind(**values), (at, "spec"), self.report)
            return
        if kind not in ("Queue", "DisruptionBudget"):
            return
        is_queue = kind == "Queue"
        made = Queue(name=name, **values) if is_queue else BudgetRule(name=name, **values)
        check_value(made, (at, "spec"), self.report)
        kept = self.whole.queues if is_queue else self.whole.budgets
        kept.append(PolicyObject(made, name, self.document, self.report, at))

    def _read_config_map(self, value: dict[str, Any], at: Trail) -> None:
        """Check what of a ConfigMap is a file of Tenure's or YuniKorn's; lines are those of the text inside."""
        from tenure.model.documents.yaml_source import parse_yaml  # noqa: PLC0415  it takes long to import

        data = value.get("data")
        for key, text in data.items() if isinstance(data, dict) else ():
            if not isinstance(text, str) or not ("kind: SchedulerConfig" in text or "partitions:" in text):
                continue
            try:
                documents = parse_yaml(self.document.file, text)
                loaded = [load_document(document) for document in documents]
            except InvalidInputError as error:
                for problem in error.problems:
                    place = f"line {problem.line}: {problem.path}: " if problem.path else f"line {problem.line}: "
                    self.report.add(((at, "data"), key), f"{place}{problem.message}")
                continue
            self.whole.others += loaded
            for one in loaded:
                self.whole.kinds[self.document.file][kind_of_loaded(one)] += 1


def kind_of_loaded(loaded: Loaded | Settings | YuniKornQueues) -> str:
    """Name the kind of what a file holds."""
    if isinstance(loaded, Settings):
        return SETTINGS_KIND
    return CLUSTER_KIND if isinstance(loaded, Loaded) else "YuniKornQueues"


@cache
def served_versions(kind: str) -> tuple[str, ...]:
    """Give the versions in which one of Tenure's kinds is served."""
    plural = next(resource.plural for resource in RESOURCES if resource.kind == kind)
    definition = next(d for d in custom_resource_definitions() if d["metadata"]["name"] == f"{plural}.{GROUP}")
    return tuple(v["name"] for v in definition["spec"]["versions"] if v["served"])


def _typed(item: Any, kind: str, version: Any) -> Any:
    """Give an item of a list its kind, which items of a typed list need not repeat."""
    if kind == "List" or not isinstance(item, dict) or "kind" in item:
        return item
    return {"apiVersion": version, "kind": kind.removesuffix("List"), **item}


def _with_rules(settings: Settings, rules: tuple[BudgetRule, ...]) -> Settings:
    return replace(settings, disruption=replace(settings.disruption, budgets=rules))
