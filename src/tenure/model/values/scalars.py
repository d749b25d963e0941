"""What a word without quotes means: a number, a boolean, nothing, or text (the core schema of YAML 1.2)."""

from __future__ import annotations

import re
from typing import Any

_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]{0,40})")
_FLOAT = re.compile(r"[-+]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?")
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def resolve_scalar(text: str) -> Any:
    """Give the value of a plain scalar by YAML 1.2's core schema, without octal and hexadecimal numbers."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if text[0] in "+-.0123456789":
        if _INTEGER.fullmatch(text):
            return int(text)
        if _FLOAT.fullmatch(text):
            return float(text)
    return text
