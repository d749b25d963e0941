"""One record of the history, and the fixed set of kinds.

A record is never changed once it is written. Times are µs since the epoch (in a simulation: of its virtual time),
amounts are integers in the units of `tenure.model.values.resources` with GPUs in milli-GPU, and sums over time are
amount times µs.

==================  ====================  ==============================================================================
kind                ``value``             ``payload``
==================  ====================  ==============================================================================
origin              0                     ``nodes``: [[name, {resource: allocatable}]], ``queues``: [{…}], ``by``
submitted           0                     ``priority``, ``tasks``, ``ask`` {resource: amount of all tasks}, ``expected``
                                          ``checkpoint`` {interval, lastAt, restart} (null: it says nothing of it),
                                          ``preemptible``, ``grace``, ``notice`` and others: see
                                          `tenure.history.writing.said`
started             wait in µs            ``entitled``, ``tasks``: [[task, node, [device]]], ``again``: it was evicted
placed              0                     ``tasks``: surplus and replacements, as above
ended               ran for µs            ``state``: finished or dropped or gone, ``reason``
noticed             cost                  as evicted, with ``deadline``
withdrawn           0                     ``task``
planned             cost                  ``task``, ``node``, ``to``, ``reason``, ``considered``: [[workload, shield]]
                                          of those not taken, and how many ``more``, ``next``: [[workload, cause]]
evicted             cost                  ``task``, ``node``, ``to``, ``lost`` {}, ``saved`` {}, ``held`` {},
                                          ``reason``, ``forQueue``, ``unproven``: nobody knows that it was done
failed              0                     ``task``, ``node``, ``error``: an eviction that was planned and not made
shadow              cost                  as evicted: what a cause in shadow would have done
outcome             gain                  ``evictedAt``, ``estimated``, ``start``, ``gained`` {}, ``cause``
nominated           0                     ``tasks`` as above
nomination-ended    0                     ``how``: bound, expired or beaten
held                0                     ``victim``, ``shield``, ``until``, ``message``
quota-armed, …      0                     ``deadline``, ``tasks``
setting             0                     ``path``, ``from``, ``to``, ``by``
leader              0                     ``identity``
pause               0                     ``until``, ``reason``
usage               span in µs            ``held`` {}, ``within`` {} (what was held inside the guaranteed), amount·µs;
                                          ``level`` {resource: [held, within]} as it was from the first whole minute on;
                                          of queue "": ``capacity`` {}
gap                 records missing       ``since``, ``until``, ``why``
==================  ====================  ==============================================================================

``cost`` and ``gain`` are in millionths of a weighted resource-second (the weights are `disruption.cost`).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b
from json.encoder import encode_basestring
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias, cast

VERSION: Final = 1
"""The version of the payloads that are written now."""

SCHEMA: Final = 2
"""The version of the schema that is written now; `tenure.history.migrations` leads here from every earlier one."""

KINDS: Final = (
    "origin", "submitted", "started", "placed", "ended", "noticed", "withdrawn", "planned", "evicted", "failed",
    "shadow", "outcome",
    "nominated", "nomination-ended", "held", "quota-armed", "quota-moved", "quota-cleared", "quota-fired",
    "setting", "leader", "pause", "usage", "gap",
)  # fmt: skip
"""Every kind of record."""

KEY_BYTES: Final = 16


class HistoryRecord(NamedTuple):
    """What happened at one time; the module says what each kind carries. ``key`` tells it from all others for ever."""

    at: int
    kind: str
    workload: str | None
    queue: str | None
    cause: str | None
    beneficiary: str | None
    value: int
    payload: dict[str, Any]
    cluster: str
    pool: str
    plan: str
    sequence: int
    version: int
    key: bytes


class Draft(NamedTuple):
    """A record on its way into a store: its payload is JSON already, and whose history it belongs to is said once."""

    at: int
    kind: str
    workload: str | None = None
    queue: str | None = None
    cause: str | None = None
    beneficiary: str | None = None
    value: int = 0
    payload: str = "{}"
    plan: str = ""
    sequence: int = 0
    key: bytes = b""


DraftRow: TypeAlias = tuple[
    int, str, str | None, str | None, str | None, str | None, int, str, str, int, bytes
]  # fmt: skip
"""The fields of a draft, as a plain tuple."""

made_draft: Final = cast("Callable[[tuple[object, ...]], Draft]", partial(tuple.__new__, Draft))
"""Make a draft of all its fields in their order; a simulation makes a hundred thousand."""


@dataclass(frozen=True, slots=True)
class Origin:
    """Whose history it is: a cluster (the name of a file or of a live cluster) and its node pool."""

    cluster: str
    pool: str = ""


def named_after(path: str) -> Origin:
    """Give the origin that is named after a file; what of its name is no text is spelt out."""
    return Origin(Path(path).name.encode("utf-8", "backslashreplace").decode())


def key_of(*parts: object) -> bytes:
    """Give the key of a record that stands for something with a name of its own: the same parts, the same key."""
    return blake2b("\0".join(map(str, parts)).encode("utf-8", "surrogatepass"), digest_size=KEY_BYTES).digest()


def payload_of(**fields: Any) -> str:
    """Write a payload; fields that are None are left out."""
    return encode({name: value for name, value in fields.items() if value is not None})


def encode(fields: dict[str, Any]) -> str:
    """Write fields as JSON, with names in their order of insertion."""
    return _ENCODE(fields)


_ENCODE: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode


quoted: Final[Callable[[str], str]] = encode_basestring
"""Write a text as JSON."""


def insertion(table: str, source: int, mark: str, *, unique: bool = False) -> str:
    """Give the statement that inserts a draft as it is, past SQLAlchemy; ``unique``: no key can be there already."""
    marks = ", ".join([mark] * len(Draft._fields))
    return (
        f"INSERT INTO {table} ({', '.join(Draft._fields)}, source, version) "  # noqa: S608  names of the schema alone
        f"VALUES ({marks}, {source:d}, {VERSION:d})" + ("" if unique else " ON CONFLICT (key) DO NOTHING")
    )
