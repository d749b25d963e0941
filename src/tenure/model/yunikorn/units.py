"""YuniKorn's units: whole numbers with ``k`` … ``E`` and ``Ki`` … ``Ei``; ``vcore`` in cores, or millicores with ``m``.

Source: YuniKorn, user guide, "Resource quota management". Unlike there, a number that does not fit its unit, and an
unknown resource, is reported.
"""

from __future__ import annotations

import re
from typing import Any, ClassVar

from tenure.model.fields.kinds import Schema, ValueKind, describe
from tenure.model.values.problems import nearest, shorten
from tenure.model.values.quantity import MAX_AMOUNT
from tenure.model.values.report import BAD, ProblemReport, Trail
from tenure.model.values.resources import CPU, GPU, MEMORY, MILLI, PODS

VCORE = "vcore"
STORAGE = "ephemeral-storage"
KNOWN = (VCORE, MEMORY, PODS, STORAGE)
"""Resources without a domain in their name."""

_AMOUNT = re.compile(r"(?P<sign>[+-]?)(?P<number>[0-9]{1,40})(?P<suffix>[A-Za-z]*)")
SUFFIXES = {"": 1} | {letter: 1000**power for power, letter in enumerate("kMGTPE", start=1)}
SUFFIXES |= {f"{letter}i": 1024**power for power, letter in enumerate("KMGTPE", start=1)}
"""What each suffix multiplies by."""


def parse_amount(value: Any, resource: str) -> int:
    """Parse an amount of a resource by YuniKorn's name into the units of queues: millicores, bytes, milli-GPU.

    Raises
    ------
    ValueError
        It is no whole number with a known suffix, is negative, or does not fit 64 bits.
    """
    if type(value) not in (int, str):
        raise ValueError(f"is {describe(value)}, but a whole number with a suffix is expected, such as 8, 500M or 16Gi")
    text = "".join(str(value).split())
    match = _AMOUNT.fullmatch(text)
    milli = resource == VCORE
    suffix = match["suffix"] if match else ""
    if match is None or not (suffix in SUFFIXES or (milli and suffix == "m")):
        more = ", or m for millicores" if milli else ""
        raise ValueError(
            f"is {shorten(str(value))}, but a whole number with one of the suffixes k M G T P E Ki Mi Gi Ti Pi Ei"
            f"{more} is expected"
        )
    amount = int(match["number"])
    if match["sign"] == "-" and amount:
        raise ValueError(f"is {text}, which is negative; an amount is 0 or more")
    if suffix != "m":
        amount *= SUFFIXES[suffix] * (MILLI if milli or resource == GPU else 1)
    if amount > MAX_AMOUNT:
        raise ValueError(f"is {shorten(text)}, which is too large; an amount fits 64 bits")
    return amount


def check_resource(name: str) -> str | None:
    """Say what is wrong with the name of a resource; None if nothing is."""
    if name in KNOWN or "/" in name or name.startswith("hugepages-"):
        return None
    if name == CPU:
        return f"unknown resource {name}; YuniKorn's name for it is {VCORE}"
    return f"unknown resource {shorten(name)}{nearest(name, KNOWN) or '; known are ' + ', '.join(KNOWN)}" + (
        "" if nearest(name, KNOWN) else ", and names with a domain such as nvidia.com/gpu"
    )


class ResourcesKind(ValueKind):
    """Amounts by resource. Read into Tenure's names and units."""

    shape: ClassVar[Schema] = {"type": "object"}

    def decode(self, value: Any, at: Trail, report: ProblemReport) -> dict[str, int]:
        """Read the amounts; those that are wrong are reported and left out."""
        if not isinstance(value, dict):
            report.add(at, f"is {describe(value)}, but amounts by resource are expected, such as {{{VCORE}: 8}}")
            return BAD  # type: ignore[no-any-return]
        amounts = {}
        for name, text in value.items():
            wrong = check_resource(name)
            if wrong is not None:
                report.add((at, name), wrong)
            elif text is not None:
                try:
                    amounts[CPU if name == VCORE else name] = parse_amount(text, name)
                except ValueError as error:
                    report.add((at, name), str(error))
        return amounts
