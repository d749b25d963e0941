"""Which changes a viewer may have played: of workloads, their own alone, so that no answer tells who else is there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from tenure.web.access.viewer import Viewer
from tenure.web.playing.player import WrongError

_DEFAULT: Final = "default"
_DEEPEST: Final = 8
"""Lists of manifests that may stand in each other."""


class OwnChanges(NamedTuple):
    """Changes that a viewer may have played: overrides as ``tenure plan --set`` takes them, and workloads to add."""

    overrides: list[str]
    additions: list[Any]


def own_changes(
    viewer: Viewer, workloads: Collection[str], overrides: Sequence[str], additions: Sequence[Any]
) -> OwnChanges:
    """Give changes as they are played for a viewer; what is added without a namespace is added to one of theirs.

    Whether a workload that they do not see is there would be told by any answer, so that none is asked for.

    Parameters
    ----------
    viewer
        Who asks.
    workloads
        The keys of all workloads, namespace/name.
    overrides, additions
        What they ask for.

    Raises
    ------
    WrongError
        Something is about workloads of namespaces that they do not see.
    """
    if viewer.namespaces is None:
        return OwnChanges(list(overrides), list(additions))
    wrong = [
        f"--set: {text}: there is no such workload among yours; write it as NAMESPACE/NAME"
        for text in overrides
        if _is_withheld(text, viewer, workloads)
    ]
    home = _home(viewer.namespaces)
    added = [_at_home(entry, home, _DEEPEST) for entry in additions]
    for namespace in sorted({name for entry in added for name in _namespaces(entry, _DEEPEST)} - viewer.namespaces):
        among = f"you may add to {', '.join(sorted(viewer.namespaces)[:8])}" if home else "none of them is yours"
        wrong.append(f"add: namespace {namespace[:63]!r} is not one of those whose pods you may list; {among}")
    if wrong:
        raise WrongError(wrong)
    return OwnChanges(list(overrides), added)


def _is_withheld(text: str, viewer: Viewer, workloads: Collection[str]) -> bool:
    """Whether an override is about a workload that the viewer does not see, or that is not there."""
    head, _, rest = text.partition("=")[0].strip().partition(".")
    if head != "workload":
        return False
    return not any(rest.startswith(f"{key}.") for key in workloads if viewer.sees(key))


def _home(namespaces: Collection[str]) -> str:
    """Give the namespace to which is added what names none; empty where a viewer has none."""
    return _DEFAULT if _DEFAULT in namespaces else min(namespaces, default="")


def _at_home(entry: Any, home: str, deep: int) -> Any:
    """Give a workload or a manifest in a namespace: its own, or one of the viewer's."""
    if not isinstance(entry, dict) or not home:
        return entry
    if "kind" not in entry:
        return {"namespace": home, **entry}
    if isinstance(entry.get("items"), list):
        return entry | {"items": [_at_home(one, home, deep - 1) if deep else one for one in entry["items"]]}
    metadata = entry.get("metadata")
    return entry | {"metadata": {"namespace": home, **metadata}} if isinstance(metadata, dict) else entry


def _namespaces(entry: Any, deep: int) -> set[str]:
    """Give the namespaces that are named by a workload, or by manifests; `default` where none is."""
    if not isinstance(entry, dict):
        return set()
    if "kind" not in entry:
        return {_text(entry.get("namespace"))}
    if isinstance(entry.get("items"), list):
        return set().union(*(_namespaces(one, deep - 1) for one in entry["items"])) if deep else {_DEFAULT}
    metadata: Mapping[str, Any] = entry["metadata"] if isinstance(entry.get("metadata"), dict) else {}
    return {_text(metadata.get("namespace"))}


def _text(namespace: Any) -> str:
    return namespace if isinstance(namespace, str) and namespace else _DEFAULT
