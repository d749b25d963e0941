"""A ``queues.yaml`` as Tenure's queues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path as FilePath
from typing import Any

from tenure.model.documents.document import Document
from tenure.model.documents.source import read_document
from tenure.model.entries import MOST, EntryValues
from tenure.model.policy import Policy
from tenure.model.queue import Queue
from tenure.model.settings import MINUTE
from tenure.model.values.problems import InputProblem
from tenure.model.values.report import BAD, Path, ProblemReport, Trail, unroll
from tenure.model.yunikorn import rules
from tenure.model.yunikorn.properties import PREEMPTION_POLICY, QUOTA_DELAY, USED
from tenure.model.yunikorn.schema import INHERIT, MOST_EVICTIONS, OVERSHOOT, TENURES_OWN, file_entry

DEFAULT_PARTITION = "default"
_USED = {
    "partition": {"name", "queues", "preemption", "properties", *TENURES_OWN},
    "preemption": {"quotapreemptionenabled", *TENURES_OWN},
    "queue": {"name", "parent", "resources", "properties", "queues"},
}
"""Keys that decide something, or are looked into."""


@dataclass(frozen=True, slots=True, kw_only=True)
class YuniKornQueues:
    """The queues of a ``queues.yaml``.

    ``queues`` are named by their full path (``root.prod.batch``). ``quota`` has the settings of quota preemption
    that the file sets, by attribute of `QuotaPreemptionSettings`.
    """

    queues: tuple[Queue, ...]
    quota: dict[str, Any]
    partition: str
    partitions: int = 1
    warnings: tuple[InputProblem, ...] = ()

    @property
    def policy(self) -> Policy:
        """Give the policy that the file is: its queues instead of others, and what it sets of quota preemption."""
        return Policy(queues=self.queues, quota=self.quota)


def load_queues(path: str | FilePath) -> YuniKornQueues:
    """Load a ``queues.yaml``.

    Raises
    ------
    InvalidInputError
        With all problems of the file, each with line and path; nothing of it is used.
    """
    return queues_of(read_document(path, "partitions:"))


def is_yunikorn(value: Any) -> bool:
    """Tell a ``queues.yaml`` by its content."""
    return isinstance(value, dict) and "partitions" in value and "kind" not in value


def queues_of(document: Document) -> YuniKornQueues:
    """Read a document.

    Raises
    ------
    InvalidInputError
        With all problems of the document.
    """
    report = ProblemReport()
    read = file_entry().decode(document.value, None, report)
    found = None if read is BAD else _Reader(report).file(read)
    document.require_clean(report)
    assert found is not None
    return replace(found, warnings=document.problems(report.warnings))


class _Reader:
    """Checks what was read and makes queues of it."""

    def __init__(self, report: ProblemReport) -> None:
        self.report = report
        self.ignored: dict[str, list[Path]] = {}

    def file(self, read: EntryValues) -> YuniKornQueues | None:
        partitions: Sequence[EntryValues] = read.values["partitions"]
        if not partitions:
            self.report.add((None, "partitions"), f"is empty; add one, - name: {DEFAULT_PARTITION}")
            return None
        made = [self._partition(partition) for partition in partitions]
        names = [name for name, _, _ in made]
        seen: set[str] = set()
        for index, name in enumerate(names):
            if name.lower() in seen:
                self.report.add((partitions[index].at, "name"), f"partition {name} is there twice; keep one of the two")
            seen.add(name.lower())
        chosen = next((i for i, name in enumerate(names) if name.lower() == DEFAULT_PARTITION), 0)
        for index, partition in enumerate(partitions):
            if index != chosen:
                self.report.warn(partition.at, f"partition {names[index]} is checked and not used: {names[chosen]} is")
        self._tell_ignored()
        name, queues, quota = made[chosen]
        return YuniKornQueues(queues=tuple(queues), quota=quota, partition=name, partitions=len(made))

    def _partition(self, read: EntryValues) -> tuple[str, list[Queue], dict[str, Any]]:
        values = read.values
        name = values.get("name") or DEFAULT_PARTITION
        tops: Sequence[EntryValues] = values.get("queues", ())
        if not tops:
            self.report.add((read.at, "queues"), f"is missing; add at least - name: {rules.ROOT}")
        rules.check_tops(tops, self.report)
        rules.check_partition_limits(values.get("limits", ()), self.report)
        self._note_ignored(read, "partition")
        quota = self._quota(read)
        written = len(tops) == 1 and tops[0].values["name"].lower() == rules.ROOT
        top = tops[0] if written else EntryValues(read.at, {"name": rules.ROOT, "queues": tops})
        for tree in tops if any(t.values["name"].lower() == rules.ROOT for t in tops) else (top,):
            rules.check_tree(tree, {}, self.report)
        if rules.amounts_of(top, "max") or rules.amounts_of(top, "guaranteed"):
            self.report.warn((top.at, "resources"), f"YuniKorn refuses resources on {rules.ROOT}; here they count")
        queues: list[Queue] = []
        self._add(top, None, queues)
        if len(queues) > MOST["queues"]:
            self.report.add((read.at, "queues"), f"has more than {MOST['queues']:,} queues in all; drop some of them")
        return name, queues, quota

    def _quota(self, read: EntryValues) -> dict[str, Any]:
        """Give the settings that a partition makes, wherever of the three places they stand."""
        preemption: EntryValues = read.values.get("preemption") or EntryValues(read.at, {})
        own: EntryValues = read.values.get("properties") or EntryValues(read.at, {})
        self._note_ignored(preemption, "preemption")
        values = {**preemption.values, **own.values, **read.values}
        keys = {
            "quotapreemptionenabled": "enabled",
            INHERIT: "inherit",
            OVERSHOOT: "overshoot",
            MOST_EVICTIONS: "max_evictions_per_cycle",
        }
        return {attribute: values[key] for key, attribute in keys.items() if key in values}

    def _add(self, read: EntryValues, parent: str | None, queues: list[Queue]) -> None:
        values = read.values
        own = values["name"] if parent is not None else rules.ROOT
        name = own if parent is None else f"{parent}.{own}"
        properties: dict[str, Any] = values.get("properties", {})
        self._note_ignored(read, "queue")
        for key in properties:
            if key not in USED:
                self._ignore(key, ((read.at, "properties"), key))
        delay = properties.get(QUOTA_DELAY)
        if delay is not None and 0 < delay < MINUTE:
            self.report.warn(
                ((read.at, "properties"), QUOTA_DELAY),
                "is under 60s, which leaves running work hardly any time to end by itself",
            )
        queues.append(
            Queue(
                name=name,
                parent=parent,
                guaranteed=rules.amounts_of(read, "guaranteed"),
                max=rules.amounts_of(read, "max"),
                quota_preemption_delay=delay,
                preemption_policy=properties.get(PREEMPTION_POLICY, "default"),
            )
        )
        for child in values.get("queues", ()):
            self._add(child, name, queues)

    def _note_ignored(self, read: EntryValues, what: str) -> None:
        for key in read.values:
            if key not in _USED[what]:
                self._ignore(key, (read.at, key))

    def _ignore(self, key: str, at: Trail) -> None:
        self.ignored.setdefault(key, []).append(unroll(at))

    def _tell_ignored(self) -> None:
        for key, places in self.ignored.items():
            more = f" (the same in {len(places) - 1} further places)" if len(places) > 1 else ""
            self.report.warnings.append((places[0], f"{key} is ignored: it decides nothing in Tenure{more}"))
