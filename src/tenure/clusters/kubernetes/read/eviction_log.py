"""The eviction log, kept in ConfigMaps of the scheduler's namespace.

An entry is written before its eviction, with the identity of the pod: one whose pod is still there and does not
terminate is of an eviction that never happened, and does not count.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Mapping
from operator import itemgetter
from typing import Final

import msgspec

from tenure.clusters.kubernetes.api import micros
from tenure.clusters.kubernetes.decoding import decoder_of
from tenure.clusters.kubernetes.read.workloads import EvictionHistory
from tenure.model.cluster import Eviction
from tenure.model.values.duration import format_time

LABEL: Final = "tenure.dev/eviction-log"
DATA: Final = "log"
MOST_BYTES = 200_000
"""So much one ConfigMap of the log holds; then another is begun."""

MOST_LABELS: Final = 32
MOST_LABEL_BYTES: Final = 4096
"""What an entry keeps of its pod's labels: those that budgets ask for come first."""


class EvictionEntry(msgspec.Struct, rename="camel", omit_defaults=True, frozen=True):
    """An eviction as it is written to the log. Times are RFC 3339; ``lost`` and ``saved`` in resource-µs.

    ``version`` is the pod's when it was announced; ``done``: the API server is known to have carried it out. ``times``:
    how often its workload was evicted as a whole, this time included; 0: this was a part of it.
    """

    at: str
    workload: str
    task: str
    uid: str
    cause: str
    workload_uid: str = ""
    beneficiary: str | None = msgspec.field(default=None, name="for")
    from_node: str | None = msgspec.field(default=None, name="from")
    to_node: str | None = msgspec.field(default=None, name="to")
    labels: dict[str, str] = {}
    queue: str | None = None
    beneficiary_queue: str | None = msgspec.field(default=None, name="forQueue")
    lost: dict[str, int] | None = None
    not_before: str | None = None
    saved: dict[str, int] | None = None
    version: str = ""
    done: bool = False
    times: int = 0


_DECODER = decoder_of(EvictionEntry)
_ENCODER = msgspec.json.Encoder()


def entry_of(
    eviction: Eviction,
    uid: str,
    workload_uid: str,
    not_before: int | None,
    asked: Container[str] = (),
    *,
    saved: dict[str, int] | None = None,
    version: str = "",
) -> EvictionEntry:
    """Make the entry of an eviction that is about to be asked for. ``asked``: keys of labels that budgets look at."""
    return EvictionEntry(
        at=format_time(eviction.at), workload=eviction.workload, task=eviction.task, uid=uid, cause=eviction.cause,
        workload_uid=workload_uid, beneficiary=eviction.beneficiary, from_node=eviction.from_node,
        to_node=eviction.to_node, labels=_few(eviction.labels, asked), queue=eviction.queue,
        beneficiary_queue=eviction.beneficiary_queue, lost=eviction.lost,
        not_before=None if not_before is None else format_time(not_before), saved=saved or None, version=version,
    )  # fmt: skip


def _few(labels: Mapping[str, str], asked: Container[str]) -> dict[str, str]:
    """Give the labels that are kept: a pod may have a megabyte of them."""
    kept: dict[str, str] = {}
    left = MOST_LABEL_BYTES
    for key in sorted(labels, key=lambda k: (k not in asked, k)):
        left -= len(key.encode()) + len(labels[key].encode())
        if left < 0 or len(kept) == MOST_LABELS:
            break
        kept[key] = labels[key]
    return kept


def pages(entries: Iterable[EvictionEntry], first: int = MOST_BYTES) -> Iterator[tuple[list[EvictionEntry], str]]:
    """Divide entries into pages, each with its text; ``first``: bytes that the first of them may take."""
    part: list[EvictionEntry] = []
    lines: list[str] = []
    left = first
    for entry in entries:
        line = _ENCODER.encode(entry).decode() + "\n"
        size = len(line.encode())
        if size > left and (part or first < MOST_BYTES):
            yield part, "".join(lines)
            part, lines, left, first = [], [], MOST_BYTES, MOST_BYTES
        part.append(entry)
        lines.append(line)
        left -= size
    yield part, "".join(lines)


def eviction_of(entry: EvictionEntry) -> Eviction:
    """Give an entry as the model has it."""
    return Eviction(
        at=micros(entry.at) or 0, workload=entry.workload, task=entry.task, cause=entry.cause,
        beneficiary=entry.beneficiary, from_node=entry.from_node, to_node=entry.to_node, labels=entry.labels,
        queue=entry.queue, beneficiary_queue=entry.beneficiary_queue, lost=entry.lost,
    )  # fmt: skip


def write(entries: Iterable[EvictionEntry]) -> str:
    """Write entries, one a line."""
    return "".join(_ENCODER.encode(entry).decode() + "\n" for entry in entries)


def parse(text: str) -> tuple[list[EvictionEntry], int]:
    """Read entries; gives also how many lines could not be read."""
    found, bad = [], 0
    for line in text.splitlines():
        try:
            entry = _DECODER.decode(line)
            found.append(entry) if micros(entry.at) is not None else None
            bad += micros(entry.at) is None
        except msgspec.MsgspecError:
            bad += 1
    return found, bad


def happened(entries: Iterable[EvictionEntry], alive: Container[str]) -> list[EvictionEntry]:
    """Leave out what was announced and never done. ``alive``: uids of pods that are there and do not terminate.

    A pod is evicted once: where a scheduler ended before the eviction and the next one announced it again, the entry
    counts that is known to have been carried out, else the last.
    """
    told: dict[str, EvictionEntry] = {}
    for entry in entries:
        if entry.uid not in alive and (entry.uid not in told or not told[entry.uid].done):
            told[entry.uid] = entry
    return list(told.values())


def pasts(entries: Iterable[EvictionEntry]) -> dict[tuple[str, str], EvictionHistory]:
    """Give by workload and its uid when and how often it was evicted, and until when it is not requeued again.

    How often it was is what the last entry says that took all that ran: what came before may have been forgotten then.
    """
    found: dict[tuple[str, str], EvictionHistory] = {}
    for at, entry in sorted(((micros(entry.at) or 0, entry) for entry in entries), key=itemgetter(0)):
        key = entry.workload, entry.workload_uid
        before, until = found.get(key, EvictionHistory()), micros(entry.not_before)
        found[key] = EvictionHistory(
            at or None,
            max(filter(None, (before.not_before, until)), default=None),
            max(before.evictions, entry.times) if at == before.last_evicted_at else entry.times or before.evictions,
        )
    return found
