"""Parquet files, through pyarrow, which is an optional dependency and imported only here."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from typing import Any

from tenure.simulator.traces.source import MAX_BYTES, TraceSource

MAX_ROWS = 1_000_000
MAX_COLUMNS = 100
BATCH = 1_000
"""Rows that are unpacked at a time: a file of a few bytes can stand for very many."""


def _module() -> tuple[Any, Any]:
    return import_module("pyarrow"), import_module("pyarrow.parquet")


def read_parquet(source: TraceSource) -> Iterator[tuple[str, ...]]:
    """Give a table as text, the column names first; a missing value is empty.

    Raises
    ------
    InvalidInputError
        The content is damaged.
    ModuleNotFoundError
        Pyarrow is not installed.
    """
    arrow, parquet = _module()
    try:
        file = parquet.ParquetFile(io.BytesIO(source.data))
        if file.metadata.num_rows > MAX_ROWS or file.metadata.num_columns > MAX_COLUMNS:
            raise source.fail(f"has more than {MAX_ROWS:,} rows or {MAX_COLUMNS} columns: cut it into parts")
        rows = [tuple(map(str, file.schema_arrow.names))]
        size = 0
        for batch in file.iter_batches(batch_size=BATCH):
            columns = [[_text(value) for value in column.to_pylist()] for column in batch.columns]
            size += sum(len(text) for column in columns for text in column)
            if size > MAX_BYTES:
                raise source.fail(f"holds more than {MAX_BYTES >> 20} MiB of text: cut it into parts")
            rows += zip(*columns, strict=True)
    except UnicodeDecodeError:
        raise source.fail("a column holds bytes that are no text: a trace has UTF-8 text") from None
    except (arrow.ArrowException, OSError) as error:
        raise source.fail(f"no valid Parquet file: {error}") from error
    return iter(rows)


def _text(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, bytes):  # text that whoever wrote the file did not mark as such
        return value.decode()
    return str(value)


def to_parquet(columns: Mapping[str, Sequence[object]], types: Mapping[str, str]) -> bytes:
    """Write columns as Parquet; ``types`` names the Arrow type of each.

    Raises
    ------
    ModuleNotFoundError
        Pyarrow is not installed.
    """
    arrow, parquet = _module()
    schema = arrow.schema([(name, arrow.type_for_alias(types[name])) for name in columns])
    table = arrow.table({name: list(values) for name, values in columns.items()}, schema=schema)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()
