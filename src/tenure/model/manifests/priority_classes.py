"""Priority classes of manifests: the value that they stand for, and whether their pods ask to be spared."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tenure.model.fields.kinds import BooleanKind, ChoiceKind
from tenure.model.fields.records import kind_of
from tenure.model.fields.vocabulary import Priority
from tenure.model.manifests.pods import entry_of, metadata_entry
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.workload import SPARING, ContenderPolicy

SYSTEM_CLASSES = {"system-cluster-critical": 2_000_000_000, "system-node-critical": 2_000_001_000}
"""Priority classes that every cluster has."""


@dataclass(frozen=True, slots=True)
class PriorityClass:
    """The properties of pods by class: their priority, and the annotations that hold for them as well."""

    value: int = 0
    preemption_policy: ContenderPolicy | None = None
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class PriorityClasses:
    """Classes by name; ``default`` is that of pods that name none."""

    known: dict[str, PriorityClass] = field(
        default_factory=lambda: {name: PriorityClass(value) for name, value in SYSTEM_CLASSES.items()}
    )
    default: PriorityClass = field(default_factory=PriorityClass)

    def of(self, name: str | None) -> PriorityClass | None:
        """Give the class of a name; None if there is none of that name."""
        return self.known.get(name) if name else self.default

    def read(self, value: object, at: Trail, report: ProblemReport) -> None:
        """Read a manifest of ``scheduling.k8s.io/v1``, and keep the class that it makes."""
        entry = entry_of(
            "PriorityClass",
            metadata=metadata_entry(),
            value=kind_of(Priority),
            globalDefault=BooleanKind(),
            preemptionPolicy=ChoiceKind(("PreemptLowerPriority", "Never")),
        ).decode(value, at, report)
        if entry is BAD:
            return
        metadata = entry.values.get("metadata")
        described = metadata.values if metadata is not None else {}
        name = described.get("name")
        if not name:
            report.add(((at, "metadata"), "name"), "is missing; it is required")
        if "value" not in entry.values:
            report.add((at, "value"), "is missing; it is required")
        if not name or "value" not in entry.values:
            return
        if name in self.known:
            report.add(((at, "metadata"), "name"), f"priority class {name} is there twice; keep one of the two")
            return
        asked = {k: v for k, v in described.get("annotations", {}).items() if k in SPARING}
        self.known[name] = PriorityClass(entry.values["value"], entry.values.get("preemptionPolicy"), asked)
        if entry.values.get("globalDefault"):
            self.default = self.known[name]
