"""What a job of Slurm asks for, from the columns that say so: trackable resources, or counts of their own."""

from __future__ import annotations

import re
from decimal import Decimal

from tenure.simulator.traces.spreading import PodGroups, spread
from tenure.simulator.traces.table import TableRow

AMOUNT = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTPE]?)", re.IGNORECASE)
MEMORY = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([KMGTPE]?)B?([nc]?)", re.IGNORECASE)
GRES = re.compile(r"(?:gres[:/])?gpu(?::[^:=,()]+)?[:=](\d{1,6})(?:\([^)]*\))?")
POWERS = "KMGTPE"
MAX_NODES = 100_000
MAX_GPUS = 100_000
MAX_CORES = 10**8
MAX_MIB = 10**12

NODE_COLUMNS = ("reqnodes", "nnodes", "allocnodes")
CORE_COLUMNS = ("reqcpus", "ncpus", "alloccpus")


def pods_of(row: TableRow) -> PodGroups:
    """Give the pods of a job: one for each node, with an even share of what all have; or none."""
    nothing: dict[str, int] = {}
    tres = row.value("reqtres", parse_tres, nothing) or row.value("alloctres", parse_tres, nothing)
    nodes = max(tres.get("node", 0) or _first(row, NODE_COLUMNS, MAX_NODES), 1)
    cores = tres.get("cpu", 0) or _first(row, CORE_COLUMNS, MAX_CORES)
    memory = tres.get("mem", 0) or row.value("reqmem", lambda text: _memory(text, nodes, cores), 0)
    gpus = tres.get("gpu", 0) or row.value("reqgres", _gres, 0) * nodes
    for amount, most in ((nodes, MAX_NODES), (cores, MAX_CORES), (memory, MAX_MIB), (gpus, MAX_GPUS)):
        if amount > most:
            row.reject("reqtres", f"{amount} is more than {most}, which is implausible")
            return ()
    return spread(nodes, cores * 1000, memory, gpus) if cores or memory or gpus else ()


def parse_tres(text: str) -> dict[str, int]:
    """Read such as ``cpu=8,mem=64G,node=2,gres/gpu:a100=4``: ``cpu``, ``node``, ``gpu``, and ``mem`` in MiB.

    Raises
    ------
    ValueError
        A part is not ``name=amount``, or an amount that counts is no number.
    """
    found: dict[str, int] = {}
    typed = 0
    for part in text.split(","):
        name, equals, amount = part.strip().partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not NAME=AMOUNT; resources are written as cpu=8,mem=64G,node=2,gres/gpu=4")
        if name in {"cpu", "node"}:
            found[name] = _count(amount)
        elif name == "mem":
            found[name] = _mebibytes(amount)
        elif name == "gres/gpu":
            found["gpu"] = _count(amount)
        elif name.startswith("gres/gpu:"):
            typed += _count(amount)
    return {"gpu": typed, **found} if typed else found


def _first(row: TableRow, columns: tuple[str, ...], most: int) -> int:
    """Give the first of several counts that is not 0."""
    for column in columns:
        value = row.value(column, _count, 0)
        if value:
            return min(value, most + 1)
    return 0


def _count(text: str) -> int:
    """Read a count; sacct may write 2048 nodes as 2K."""
    found = AMOUNT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no count")
    return round(Decimal(found[1]) * Decimal(1024) ** _power(found[2]))


def _mebibytes(text: str) -> int:
    found = AMOUNT.fullmatch(text.removesuffix("B"))
    if found is None:
        raise ValueError(f"{text!r} is no amount of memory; it is written as 4000M or 62.50G")
    return _in_mebibytes(found[1], found[2])


def _memory(text: str, nodes: int, cores: int) -> int:
    """Read memory: of the job, or, as older versions write it, of each node (``n``) or each core (``c``)."""
    found = MEMORY.fullmatch(text)
    if text in {"?", "0"}:
        return 0
    if found is None:
        raise ValueError(f"{text!r} is no amount of memory; it is written as 4000M, 62.50G, 4000Mn or 4000Mc")
    each = {"n": nodes, "c": cores, "": 1}[found[3].lower()]
    return _in_mebibytes(found[1], found[2]) * each


def _in_mebibytes(number: str, unit: str) -> int:
    """Give memory in MiB, which is what a number without a unit is in."""
    return round(Decimal(number) * Decimal(1024) ** (_power(unit or "M") - 2))


def _power(unit: str) -> int:
    return POWERS.index(unit.upper()) + 1 if unit else 0


def _gres(text: str) -> int:
    return sum(int(found[1]) for part in text.split(",") if (found := GRES.fullmatch(part.strip())))
