"""Which extra of the package brings a module that is not installed."""

from __future__ import annotations

import re
from importlib.metadata import PackageNotFoundError, requires
from typing import Final

_FOR_DEVELOPERS: Final = "dev"
_REQUIREMENT: Final = re.compile(r"\s*([A-Za-z0-9._-]+).*extra\s*==\s*['\"]([^'\"]+)['\"]")


def extra_with(module: str) -> str | None:
    """Give the extra that installs a module; None where no extra does.

    The package's own metadata say it, so that an extra that is new needs no line here. Names of modules and of
    packages are compared with ``-`` and ``.`` as ``_``.
    """
    try:
        listed = requires("tenure") or []
    except PackageNotFoundError:
        return None
    wanted = _plain(module.partition(".")[0])
    found = (_REQUIREMENT.match(line) for line in listed)
    extras = [m[2] for m in found if m is not None and m[2] != _FOR_DEVELOPERS and _plain(m[1]) == wanted]
    return extras[0] if extras else None


def _plain(name: str) -> str:
    return re.sub(r"[-._]+", "_", name).lower()
