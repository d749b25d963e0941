"""Reading a document from a file: bytes (gzipped or not) to plain values, with the line of each value on demand.

Limits, so that no file can hang the program or exhaust memory: YAML up to `MAX_YAML` bytes, JSON up to `MAX_JSON`
bytes (after unpacking). JSON is read about ten times as fast; large snapshots are written as JSON.
"""

from __future__ import annotations

import sys
from pathlib import Path as FilePath
from typing import IO, Final, cast

from tenure.model.documents.collector import collector_paused
from tenure.model.documents.document import Document
from tenure.model.documents.encoding import decoded
from tenure.model.documents.interruptible import read_interruptibly
from tenure.model.values.problems import IS_FOLDER, InputProblem, InvalidInputError

MAX_YAML = 16 * 1024 * 1024
"""Bytes of YAML that are read; about 35,000 workloads of three tasks each."""

MAX_JSON = 160 * 1024 * 1024
"""Bytes of JSON that are read; several 100,000 tasks."""

MAX_EXPANSION = 200
"""How many times its size a packed file may unpack to, beyond `MAX_YAML`; cluster files pack to a thirtieth at best."""

STDIN = "-"
"""The name of standard input where a file is expected."""

_GZIP_MAGIC = b"\x1f\x8b"
_CHUNK = 1 << 20
_BEGINS: Final = "apiVersion: tenure.dev/v1beta1"


def read_document(path: str | FilePath, begins: str = _BEGINS) -> Document:
    """Read a file that holds exactly one document. ``begins``: how one of that kind may begin.

    Raises
    ------
    InvalidInputError
        It cannot be read, is too large, or is not well-formed YAML or JSON.

    """
    documents = read_documents(path, begins)
    if len(documents) != 1:
        raise InvalidInputError(
            [
                InputProblem(
                    str(path), 0, "", f"holds {len(documents)} documents; one is expected, without '---' in between"
                )
            ]
        )
    return documents[0]


def read_documents(path: str | FilePath, begins: str = _BEGINS) -> tuple[Document, ...]:
    """Read a file of one or more YAML documents, or one of JSON; empty documents are left out.

    Raises
    ------
    InvalidInputError
        It cannot be read, is too large, is not well-formed, or holds nothing.

    """
    name = str(path)
    text = decoded(name, _read_bytes(name))
    with collector_paused():
        documents = _parse(name, text)
    if not documents or all(document.value == {} for document in documents):
        raise _fault(name, f"is empty; a file begins with '{begins}'")
    return documents


def _parse(name: str, text: str) -> tuple[Document, ...]:
    if _is_json(text[:_CHUNK].encode()):
        from tenure.model.documents.json_source import parse_json  # noqa: PLC0415  only one of the two is needed

        try:
            return (parse_json(name, text),)
        except InvalidInputError:
            # YAML's flow style begins like JSON. What is named .json, or is too large for YAML, is meant as JSON.
            if name.removesuffix(".gz").endswith(".json") or len(text) > MAX_YAML:
                raise
    from tenure.model.documents.yaml_source import parse_yaml  # noqa: PLC0415  PyYAML takes long to import

    return parse_yaml(name, text)


def _is_json(start: bytes) -> bool:
    return start.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _read_bytes(name: str) -> bytes:
    try:
        if name == STDIN:
            return _read_limited(name, sys.stdin.buffer)
        with FilePath(name).open("rb") as stream:
            return _read_limited(name, stream)
    except FileNotFoundError:
        raise _fault(name, "there is no such file") from None
    except IsADirectoryError:
        raise _fault(name, IS_FOLDER) from None
    except PermissionError:
        raise _fault(name, "may not be read; its permissions forbid it") from None
    except (NotADirectoryError, ValueError) as error:
        raise _fault(name, f"is not the name of a file that can be read: {error}") from None


def _read_limited(name: str, stream: IO[bytes]) -> bytes:
    """Read a stream up to the limit of what it holds: JSON by its first character, YAML otherwise."""
    start = read_interruptibly(stream, _CHUNK)
    if start[:2] != _GZIP_MAGIC:
        return _read_rest(name, start, stream)
    import gzip  # noqa: PLC0415  most files are not packed
    import io  # noqa: PLC0415
    import zlib  # noqa: PLC0415

    packed = start + _read_rest(name, b"{", stream)[1:]
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(packed)) as unpacked:
            return _read_rest(name, unpacked.read(_CHUNK), cast("IO[bytes]", unpacked), len(packed))
    except EOFError:
        raise _fault(name, "the gzip data are cut off; fetch or pack the file again") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise _fault(name, f"the gzip data are damaged ({error}); fetch or pack the file again") from None


def _read_rest(name: str, start: bytes, stream: IO[bytes], packed: int | None = None) -> bytes:
    limit = MAX_JSON if _is_json(start) else MAX_YAML
    if packed is not None and (most := max(MAX_YAML, MAX_EXPANSION * packed)) < limit:
        data = _up_to(start, stream, most)
        if data is None:
            what = f"unpacks to more than {MAX_EXPANSION} times its size, which no cluster file does; unpack it first"
            raise _fault(name, what)
        return data
    data = _up_to(start, stream, limit)
    if data is not None:
        return data
    hint = "" if limit == MAX_JSON else f"; JSON may have {MAX_JSON >> 20} MiB and is read faster"
    kind = "JSON" if limit == MAX_JSON else "YAML"
    raise _fault(name, f"is larger than the {limit >> 20} MiB of {kind} that are read{hint}")


def _up_to(start: bytes, stream: IO[bytes], limit: int) -> bytes | None:
    """Read a stream to its end; None where it has more bytes than the limit."""
    chunks, size = [start], len(start)
    while size <= limit and (chunk := read_interruptibly(stream, _CHUNK)):
        chunks.append(chunk)
        size += len(chunk)
    return b"".join(chunks) if size <= limit else None


def _fault(name: str, message: str) -> InvalidInputError:
    return InvalidInputError([InputProblem(name, 0, "", message)])
