"""Runtime classes of manifests: what they add to their pods, as the API server's admission would have added it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from tenure.model.entries import EntryValues
from tenure.model.fields.containers import ExactAmountsKind, ListKind, PairsKind
from tenure.model.fields.records import record_of
from tenure.model.manifests.pods import entry_of, metadata_entry
from tenure.model.selectors import Toleration
from tenure.model.values.report import BAD, ProblemReport, Trail

RUNTIME_CLASS: Final = ("node.k8s.io/v1", "RuntimeClass")


@dataclass(frozen=True, slots=True)
class RuntimeClass:
    """What a pod of a class needs on top of its containers, and on which nodes the class is.

    ``overhead`` is by resource, in thousand-millionths of a unit.
    """

    overhead: Mapping[str, int] = field(default_factory=dict)
    node_selector: tuple[tuple[str, str], ...] = ()
    tolerations: tuple[Toleration, ...] = ()


@dataclass(slots=True)
class RuntimeClasses:
    """Classes by name."""

    known: dict[str, RuntimeClass] = field(default_factory=dict)

    def read(self, value: object, at: Trail, report: ProblemReport) -> None:
        """Read a manifest of ``node.k8s.io/v1``, and keep the class that it makes."""
        entry = entry_of(
            "RuntimeClass",
            metadata=metadata_entry(),
            overhead=entry_of("overhead", podFixed=ExactAmountsKind()),
            scheduling=entry_of(
                "scheduling", nodeSelector=PairsKind(), tolerations=ListKind(record_of(Toleration))
            ),
        ).decode(value, at, report)  # fmt: skip
        if entry is BAD:
            return
        name = _values(entry.values.get("metadata")).get("name")
        if not name:
            report.add(((at, "metadata"), "name"), "is missing; it is required")
        elif name in self.known:
            report.add(((at, "metadata"), "name"), f"runtime class {name} is there twice; keep one of the two")
        else:
            where = _values(entry.values.get("scheduling"))
            self.known[name] = RuntimeClass(
                overhead=_values(entry.values.get("overhead")).get("podFixed", {}),
                node_selector=where.get("nodeSelector", ()),
                tolerations=tuple(where.get("tolerations", ())),
            )

    def added_to(self, pod: EntryValues, report: ProblemReport) -> EntryValues:
        """Give the spec of a pod with what its class adds; a class that is not known is reported."""
        at, spec = pod
        name = spec.get("runtimeClassName")
        if not name:
            return pod
        found = self.known.get(name)
        if found is None:
            if "overhead" not in spec:  # else the pod has been through admission, which has added all there is
                words = "its overhead and its nodes would not count; add the class beside it"
                report.add((at, "runtimeClassName"), f"runtime class {name} is not known here: {words}")
            return pod
        selector = dict(spec.get("nodeSelector", ()))
        for label, wanted in found.node_selector:
            if selector.setdefault(label, wanted) != wanted:
                words = f"but runtime class {name} has its nodes at {wanted}"
                report.add(((at, "nodeSelector"), label), f"is {selector[label]}, {words}")
        own = tuple(spec.get("tolerations", ()))
        more = tuple(t for t in found.tolerations if t not in own)
        added = {"nodeSelector": tuple(sorted(selector.items())), "tolerations": (*own, *more)}
        return EntryValues(at, {"overhead": found.overhead, **spec, **added})


def _values(entry: Any) -> dict[str, Any]:
    return {} if entry is None else entry.values
