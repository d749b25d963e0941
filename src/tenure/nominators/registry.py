"""Which nominators there are: those of this package that are switched on, and those that are installed.

A nominator of another package is found by the entry point group ``tenure.nominators``, which names an object, or a
class or function that makes it without arguments. It has a ``name`` and one method:

``nominate(workloads, now) -> iterable of str``
    Names (namespace/name) of those that could give way, among the running ones that it is given
    (`tenure.model.workload.Workload`). ``now`` is in µs since the epoch.

What it names passes the same checks as everything else: preemptible, cooldown, minimum runtime. One that raises, or
names what is not there, is reported, and nominates no workload.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tenure.model.installed import entry_points
from tenure.model.settings import Settings
from tenure.nominators.contract import (
    NominationContext,
    NominationSkip,
    Nominator,
    NominatorFindings,
    RequeueNomination,
    held_back,
)
from tenure.nominators.expected_runtime import ExpectedRuntime
from tenure.nominators.idle import Idle
from tenure.nominators.over_share import OverShare

GROUP = "tenure.nominators"

BUILT_IN = (ExpectedRuntime.name, OverShare.name, Idle.name)
"""Names that other nominators cannot have."""


class Registry:
    """The nominators of a scheduler, in the order in which their names are listed; ``complaints`` are to be reported.

    Parameters
    ----------
    settings
        Says which of this package's are on.
    others
        Nominators of other packages; those that are installed, where not given.
    """

    def __init__(self, settings: Settings, others: Sequence[Any] | None = None) -> None:
        self.complaints: dict[str, str] = {}
        self.nominators: list[Nominator] = [ExpectedRuntime()]
        if settings.nominators.over_share:
            self.nominators.append(OverShare())
        if settings.nominators.idle.enabled:
            self.nominators.append(Idle(settings.nominators.idle))
        found = self._installed() if others is None else list(others)
        names = set(BUILT_IN)
        for other in sorted(found, key=_name):
            if _name(other) in names:
                self.complain(_name(other), "the name is taken; it is not asked")
                continue
            names.add(_name(other))
            self.nominators.append(_Foreign(other, self))

    @property
    def due_only(self) -> bool:
        """Whether workloads can only be nominated for having reached their expected runtime."""
        return len(self.nominators) == 1

    def nominate(self, scene: NominationContext) -> dict[str, NominatorFindings]:
        """Ask all of them; what each found, by its name."""
        return {nominator.name: nominator.nominate(scene) for nominator in self.nominators}

    def complain(self, name: str, text: str) -> None:
        """Note what a nominator did wrong, once."""
        self.complaints.setdefault(name, f"nominator {name}: {text}")

    def _installed(self) -> list[Any]:
        found = []
        for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
            try:
                loaded = point.load()
                found.append(loaded() if callable(loaded) else loaded)
            except Exception as error:  # noqa: BLE001  whatever a plugin does wrong, it is named
                self.complain(point.name, f"could not be loaded ({_said(error)}), and is not asked")
        return found


class _Foreign:
    """A nominator of another package, behind the same contract."""

    def __init__(self, plugin: Any, registry: Registry) -> None:
        self.name = _name(plugin)
        self.plugin = plugin
        self.registry = registry

    def nominate(self, scene: NominationContext) -> NominatorFindings:
        """Ask it about everything that runs, and check what it names."""
        found, known = NominatorFindings(), scene.session.workloads
        running = tuple(w.model for w in scene.everyone if w.leaf >= 0 and w.occupied())
        try:
            names = sorted({str(name) for name in self.plugin.nominate(running, scene.session.now)})
        except Exception as error:  # noqa: BLE001  whatever a plugin does wrong, it is named
            self.registry.complain(self.name, f"raised {_said(error)}; it nominates no workload")
            return found
        for name in names:
            if name not in known or known[name].leaf < 0:
                self.registry.complain(self.name, f"named {name!r:.80}, which is no workload here")
                continue
            reason = held_back(scene, known[name])
            if reason is None:
                found.nominations.append(RequeueNomination(name))
            else:
                found.skips.append(NominationSkip(name, self.name, reason))
        return found


def _name(plugin: Any) -> str:
    return str(getattr(plugin, "name", type(plugin).__name__))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
