"""Exports, which other tools open as they are, and their way back: Parquet, JSON lines, OpenTelemetry logs as JSON.

One row is one record. Parquet has its columns, and its payload as JSON text; lines of JSON have all of it as an object,
and so have OpenTelemetry's log records, as the OTLP/JSON files that a collector's file receiver reads. What comes back
from Parquet or lines is the same, key by key, so that nothing is there twice. Of a history from which older records
were taken out, a gap comes first that says until when, so that what is left of them is not taken for all.
"""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy import Connection

from tenure.history.errors import HistoryError
from tenure.history.query import EVERYTHING, Query
from tenure.history.record import KEY_BYTES, KINDS, Draft, HistoryRecord, Origin, encode, key_of
from tenure.history.shapes import EARLIEST, LATEST, wrong_field
from tenure.history.store import IN_PARTS, HistoryStore, begin_of, set_begin
from tenure.model.documents.encoding import check_narrow
from tenure.model.documents.files import part_of
from tenure.model.values.duration import format_time
from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError

FORMATS: Final = ("parquet", "jsonl", "otlp")

CHUNK: Final = 20_000
"""Records that are written or read together, at most."""

CHUNK_TEXT: Final = 8 * 1024 * 1024
"""Characters of payloads after which a chunk ends, however few its records are."""

LOGS: Final = 1000
"""Records of one line of OpenTelemetry's logs, at most."""

MOST_LINE: Final = 16 * 1024 * 1024
"""Characters of one line that are read; the largest record is that of a cluster."""

_SQLITE: Final = b"SQLite format 3\0"

PRUNED: Final = "older records were taken out"
"""Why a gap stands at the begin of an export; it is of the export alone, and no record of a history."""

_TEXTS: Final = ("workload", "queue", "cause", "beneficiary")


def format_of(path: str) -> str:
    """Give the format that a file's name says; lines of JSON where it says none."""
    name = path.removesuffix(".gz")
    return "parquet" if name.endswith(".parquet") else "otlp" if name.endswith((".otlp.json", ".otlp")) else "jsonl"


def is_export(path: str) -> bool:
    """Whether a name is that of an export that can be read."""
    return path.removesuffix(".gz").endswith((".parquet", ".jsonl", ".ndjson"))


def export(store: HistoryStore, path: str, form: str, query: Query = EVERYTHING) -> int:
    """Write records into a file, which is there whole or not at all; gives how many.

    Raises
    ------
    HistoryError
        The store cannot be read.
    OSError
        The file cannot be written.
    """
    try:
        with part_of(path) as part, store.reading() as connection:
            pruned = _pruned(store, connection, query)
            records = chain(pruned, (record for record, _ in store.scan(connection, query)))
            return _WRITERS[form](records, part, packed=path.endswith(".gz")) - len(pruned)
    except HistoryError:
        raise
    except OSError as error:  # what a write says does not name the file
        raise OSError(error.errno, error.strerror or str(error), path) from error


def _pruned(store: HistoryStore, connection: Connection, query: Query) -> list[HistoryRecord]:
    """Give the gap that says until when older records were taken out, where some of them are left and wanted."""
    begin = begin_of(connection)
    if begin is None or (query.kinds and "gap" not in query.kinds):
        return []
    older = replace(query, kinds=(), until=begin if query.until is None else min(begin, query.until))
    for first, _ in store.scan(connection, older, limit=1):
        gap = {"since": first.at, "until": begin, "why": PRUNED}
        return [
            first._replace(kind="gap", workload=None, queue=None, cause=None, beneficiary=None, value=0, payload=gap,
                           plan="", sequence=0, key=key_of("pruned", begin))
        ]  # fmt: skip
    return []


def _chunks(records: Iterable[HistoryRecord], most: int) -> Iterator[list[tuple[HistoryRecord, str]]]:
    """Give records with their payloads as text, so many together that they need little memory."""
    chunk: list[tuple[HistoryRecord, str]] = []
    size = 0
    for record in records:
        payload = encode(record.payload)
        chunk.append((record._replace(payload={}), payload))
        size += len(payload)
        if len(chunk) >= most or size >= CHUNK_TEXT:
            yield chunk
            chunk, size = [], 0
    if chunk:
        yield chunk


def _write_lines(records: Iterable[HistoryRecord], path: Path, *, packed: bool) -> int:
    count = 0
    with _text(path, packed=packed) as out:
        for record in records:
            out.write(encode(plain(record)) + "\n")
            count += 1
    return count


def _text(path: Path, *, packed: bool) -> IO[str]:
    if packed:
        return io.TextIOWrapper(gzip.GzipFile(path, "wb", mtime=0), encoding="utf-8")
    return path.open("w", encoding="utf-8")


def plain(record: HistoryRecord) -> dict[str, Any]:
    """Give a record as plain data; its time both as text and in µs."""
    fields = record._asdict()
    fields["time"] = format_time(record.at)
    fields["key"] = record.key.hex()
    return fields


def _write_otlp(records: Iterable[HistoryRecord], path: Path, *, packed: bool) -> int:
    """One line for so many records, each a whole ``resourceLogs`` document."""
    count = 0
    with _text(path, packed=packed) as out:
        for chunk in _chunks(records, LOGS):
            count += len(chunk)
            by_origin: dict[tuple[str, str], list[dict[str, Any]]] = {}
            for record, payload in chunk:
                by_origin.setdefault((record.cluster, record.pool), []).append(_log_record(record, payload))
            logs = [
                {
                    "resource": {"attributes": [
                        _attribute("service.name", "tenure"), _attribute("k8s.cluster.name", cluster),
                        _attribute("tenure.node_pool", pool),
                    ]},
                    "scopeLogs": [{"scope": {"name": "tenure.history"}, "logRecords": found}],
                }
                for (cluster, pool), found in by_origin.items()
            ]  # fmt: skip
            out.write(encode({"resourceLogs": logs}) + "\n")
    return count


def _log_record(record: HistoryRecord, payload: str) -> dict[str, Any]:
    named = {name: getattr(record, name) for name in _TEXTS if getattr(record, name) is not None}
    attributes = {"kind": record.kind, **named, "key": record.key.hex(), "plan": record.plan}
    return {
        "timeUnixNano": str(record.at * 1000),
        "severityNumber": 9,
        "severityText": "INFO",
        "eventName": f"tenure.{record.kind}",
        "body": {"stringValue": payload},
        "attributes": [_attribute(f"tenure.{name}", str(value)) for name, value in attributes.items()]
        + [{"key": "tenure.value", "value": {"intValue": str(record.value)}}],
    }


def _attribute(name: str, value: str) -> dict[str, Any]:
    return {"key": name, "value": {"stringValue": value}}


def _write_parquet(records: Iterable[HistoryRecord], path: Path, *, packed: bool) -> int:  # noqa: ARG001  it is packed
    pa, pq = _pyarrow()
    schema = _parquet_schema(pa)
    count = 0
    with pq.ParquetWriter(path, schema, compression="zstd") as writer:
        for chunk in _chunks(records, CHUNK):
            count += len(chunk)
            columns = {
                name: [getattr(record, name) for record, _ in chunk]
                for name in schema.names
                if name not in {"time", "payload"}
            }
            columns["time"] = columns["at"]
            columns["payload"] = [payload for _, payload in chunk]
            writer.write_table(pa.table({name: columns[name] for name in schema.names}, schema=schema))
    return count


def _parquet_schema(pa: Any) -> Any:
    text = pa.string()
    return pa.schema([
        ("time", pa.timestamp("us", tz="UTC")), ("at", pa.int64()), ("kind", text), ("workload", text), ("queue", text),
        ("cause", text), ("beneficiary", text), ("value", pa.int64()), ("payload", text), ("cluster", text),
        ("pool", text), ("plan", text), ("sequence", pa.int64()), ("version", pa.int16()),
        ("key", pa.binary(KEY_BYTES)),
    ])  # fmt: skip


def _pyarrow() -> tuple[Any, Any]:
    import pyarrow as pa  # type: ignore[import-untyped]  # noqa: PLC0415  an extra
    import pyarrow.parquet as pq  # type: ignore[import-untyped]  # noqa: PLC0415

    return pa, pq


_WRITERS: Final = {"parquet": _write_parquet, "jsonl": _write_lines, "otlp": _write_otlp}


def check_export(path: str) -> None:
    """Refuse what cannot be read, before anything is made for it.

    Raises
    ------
    InvalidInputError
        It is no file, or one of another kind.
    """
    if not Path(path).is_file():
        what = IS_FOLDER if Path(path).is_dir() else "there is no such file"
        raise InvalidInputError([InputProblem(path, 0, "", what)])
    with Path(path).open("rb") as file:
        begin = file.read(len(_SQLITE))
    if begin == _SQLITE:
        what = "is a history itself; export it first: tenure history export FILE.jsonl --history"
        raise InvalidInputError([InputProblem(path, 0, "", f"{what} {path}")])
    check_narrow(path, begin)


def import_file(store: HistoryStore, path: str) -> tuple[int, int]:
    """Read an export into a store; gives how many records it holds, and how many of them were new.

    Raises
    ------
    InvalidInputError
        The file is no export; what stands before the wrong line is in the store already.
    HistoryError
        The store cannot be written.
    """
    check_export(path)
    read = _read_parquet if format_of(path) == "parquet" else _read_lines
    found = new = size = 0
    is_pruned = False
    first: int | None = None
    waiting: dict[Origin, list[Draft]] = {}
    for origin, draft in read(path):
        until = _taken_out_until(draft)
        if until is not None:
            is_pruned = True
            _begin_with(store, until)
            continue
        waiting.setdefault(origin, []).append(draft)
        found, size, first = found + 1, size + len(draft.payload), draft.at if first is None else min(first, draft.at)
        if found % CHUNK == 0 or size >= CHUNK_TEXT:
            new += sum(store.append(whose, drafts) for whose, drafts in waiting.items())
            waiting, size = {}, 0
    new += sum(store.append(whose, drafts) for whose, drafts in waiting.items())
    if first is not None and new and not is_pruned:
        with store.writing() as connection:
            known = begin_of(connection)
            if known is not None and first < known:
                set_begin(connection, first)  # what was missing has come back
    return found, new


def _taken_out_until(draft: Draft) -> int | None:
    """Give until when older records were taken out of what is read; None where a record says something else."""
    if draft.kind != "gap":
        return None
    gap = json.loads(draft.payload)
    return int(gap["until"]) if gap.get("why") == PRUNED else None


def _begin_with(store: HistoryStore, at: int) -> None:
    """Note from when on a store has what happened, once it has what was kept from ``at`` on."""
    span = store.span()
    if span is None or span[0] > at:
        with store.writing() as connection:
            set_begin(connection, at)


def _read_lines(path: str) -> Iterator[tuple[Origin, Draft]]:
    opened = gzip.open if path.endswith(".gz") else open
    try:
        with opened(path, "rt", encoding="utf-8") as lines:
            number = 0
            while line := lines.readline(MOST_LINE):
                number += 1
                if line.strip():
                    yield _draft(line, path, number)
    except UnicodeDecodeError as error:
        what = f"is no export in lines of JSON: byte 0x{error.object[error.start]:02x} is not UTF-8"
        raise InvalidInputError([InputProblem(path, 0, "", what)]) from None
    except (gzip.BadGzipFile, EOFError) as error:
        raise InvalidInputError([InputProblem(path, 0, "", f"is no export in lines of JSON: {error}")]) from None


def _draft(line: str, path: str, number: int) -> tuple[Origin, Draft]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise InvalidInputError(
            [InputProblem(path, number, "", "is no JSON; a record is one object on one line")]
        ) from None
    if not isinstance(fields, dict):
        raise InvalidInputError([InputProblem(path, number, "", "is no record; a record is one object on one line")])
    return checked(fields, path, number)


def checked(fields: dict[str, Any], path: str, number: int) -> tuple[Origin, Draft]:
    """Make a record of plain data, all of which is looked at.

    Raises
    ------
    InvalidInputError
        Something is missing, or of the wrong kind.
    """
    wrong = _wrong(fields)
    if wrong is not None:
        raise InvalidInputError([InputProblem(path, number, wrong[0], wrong[1])])
    told = fields["payload"]
    wrong = wrong_field(fields["kind"], json.loads(told) if isinstance(told, str) else told)
    if wrong is not None:
        raise InvalidInputError([InputProblem(path, number, f"payload.{wrong[0]}", wrong[1])])
    try:
        payload = _in_one_form(fields)
    except (ValueError, RecursionError):
        what = "holds what cannot be kept: half a character, or a number that is none"
        raise InvalidInputError([InputProblem(path, number, "", what)]) from None
    draft = Draft(
        fields["at"], fields["kind"], fields.get("workload"), fields.get("queue"), fields.get("cause"),
        fields.get("beneficiary"), fields["value"], payload,
        fields["plan"], fields["sequence"], bytes.fromhex(fields["key"]),
    )  # fmt: skip
    return Origin(fields["cluster"], fields["pool"]), draft


def _in_one_form(fields: Mapping[str, Any]) -> str:
    """Write the payload of a record as Tenure does, whoever wrote it; all texts have to be whole."""
    payload = fields["payload"]
    text = encode(json.loads(payload) if isinstance(payload, str) else payload)
    for part in (text, fields["cluster"], fields["pool"], fields["plan"], *(fields.get(name) or "" for name in _TEXTS)):
        part.encode()
    return text


_LARGEST: Final = 1 << 62


def _wrong(fields: dict[str, Any]) -> tuple[str, str] | None:
    """Name the first field that is wrong, and what would be right."""
    for name, right, what in _CHECKS:
        if not right(fields.get(name)):
            return name, what
    return None


def _whole(low: int, high: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and low <= value <= high


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_object(payload: Any) -> bool:
    if isinstance(payload, str):
        try:
            payload = json.loads(payload)
        except (ValueError, RecursionError):
            return False
    return isinstance(payload, dict)


def _is_key(value: Any) -> bool:
    return isinstance(value, str) and len(value) == 2 * KEY_BYTES and not set(value) - set("0123456789abcdef")


_CHECKS: Final = (
    ("at", _whole(EARLIEST, LATEST), "is no time in µs since the epoch"),
    ("value", _whole(-_LARGEST, _LARGEST), "is no whole number in range"),
    ("sequence", _whole(-_LARGEST, _LARGEST), "is no whole number in range"),
    *((name, _is_text, "is no text") for name in ("cluster", "pool", "plan")),
    *((name, lambda v: v is None or isinstance(v, str), "is neither text nor null") for name in _TEXTS),
    ("kind", lambda v: v in KINDS, f"is none of {', '.join(KINDS)}"),
    ("key", _is_key, f"is not {KEY_BYTES} bytes in hexadecimal"),
    ("payload", _is_object, "is no object"),
)


def _read_parquet(path: str) -> Iterator[tuple[Origin, Draft]]:
    pa, pq = _pyarrow()
    try:
        file = pq.ParquetFile(path)
        missing = set(_parquet_schema(pa).names) - set(file.schema_arrow.names)
        if missing:
            raise InvalidInputError([InputProblem(path, 0, "", f"is no export of a history: no column {min(missing)}")])
        number = 0
        for batch in file.iter_batches(batch_size=IN_PARTS["yield_per"]):
            for row in batch.to_pylist():
                number += 1
                key = row["key"]
                fields = {**row, "key": key.hex() if isinstance(key, bytes) else key}
                yield checked(fields, path, number)
    except pa.ArrowException as error:
        what = " ".join(str(error).split())[:200]
        raise InvalidInputError([InputProblem(path, 0, "", f"is no Parquet file that can be read: {what}")]) from None
