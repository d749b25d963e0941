"""Extension points: victim filters and plan validators, minimum runtime and budgets being the first on both.

A plugin is an object with a ``name`` and one or both of these methods; it is found by the entry point group
``tenure.plugins``, which names the object, or a class or function that makes it without arguments:

``allow_victim(contender, victim, cause, now) -> bool``
    Whether a workload may be a victim at all. Asked only after the rules of the cause and the other shields agree.

``allow_plan(contender, victims, tasks, cause, now) -> bool``
    Whether a finished set may be evicted. ``tasks`` are pairs of workload (namespace/name) and task name.

Contender and victims are `tenure.model.workload.Workload`, the contender None without a beneficiary; ``now`` is in µs
since the epoch. All plugins must agree. One that raises, or answers anything but True or False, is reported by its
name, and its answer counts as no.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import copy
from typing import Any

from tenure.engine.refusal import Refusal
from tenure.engine.state.session import Session
from tenure.engine.state.workloads import TaskState, WorkloadState
from tenure.model.installed import entry_points
from tenure.model.settings import Cause
from tenure.shields.budget import BudgetShield
from tenure.shields.lost_work import LossShield
from tenure.shields.min_runtime import MinRuntimeOver, MinRuntimeShield
from tenure.shields.patience import Patience, PatienceOver, PricedPart, waits_since
from tenure.shields.recreated import COMES_BACK, recreated
from tenure.shields.repeated import evicted_often, is_owed

GROUP = "tenure.plugins"


class EvictionPlugins:
    """The registered shields and validators, asked in the order of their names; ``complaints`` are to be reported.

    Parameters
    ----------
    others
        Plugins to ask; those that are installed, where not given.
    """

    def __init__(self, others: Sequence[Any] | None = None) -> None:
        self.complaints: dict[str, str] = {}
        self.min_runtime = MinRuntimeShield()
        self.budgets = BudgetShield()
        self.losses = LossShield()
        self.patience = Patience()
        found = self._installed() if others is None else list(others)
        self.others = sorted(found, key=_name)

    def _installed(self) -> list[Any]:
        found = []
        for point in sorted(entry_points(group=GROUP), key=lambda p: p.name):
            try:
                loaded = point.load()
                found.append(loaded() if callable(loaded) else loaded)
            except Exception as error:  # noqa: BLE001  whatever a plugin does wrong, it is named
                self._complain(point.name, f"could not be loaded ({_said(error)}), and is not asked")
        return found

    def without_times(self) -> EvictionPlugins:
        """Give the same, with every minimum runtime over, and every wait."""
        other = copy(self)
        other.min_runtime, other.patience = MinRuntimeOver(), PatienceOver()
        return other

    def begin(self, session: Session) -> None:
        """Look at how things stand when a cycle begins. To be called before anything of it is asked."""
        self.losses.begin(session, self.budgets.begin(session))

    def silent(self, session: Session, cause: Cause, contender: WorkloadState | None, leaf: int) -> bool:
        """Whether it is clear that no plugin refuses victims of a leaf."""
        if self.others or self.budgets.active or cause in COMES_BACK:
            return False
        if leaf in session.often_evicted or leaf in self.losses.leaves:
            return False
        return not self.min_runtime.minimum(session, cause, contender.leaf if contender is not None else -1, leaf)

    def filter(
        self,
        session: Session,
        cause: Cause,
        contender: WorkloadState | None,
        victim: WorkloadState,
        *,
        forced: Collection[TaskState] = (),
    ) -> Refusal | None:
        """Give the first no to a victim. ``forced``: tasks on which only budgets that name the cause have a say."""
        refusal = recreated(cause, victim) or evicted_often(session, cause, contender, victim)
        refusal = refusal or self.losses.filter(session, cause, contender, victim)
        refusal = refusal or self.min_runtime.filter(session, cause, contender, victim)
        if refusal is None or refusal.core_only:
            refusal = self.budgets.filter(session, cause, contender, victim, forced=forced) or refusal
        if refusal is None or refusal.core_only:  # its surplus may still be taken, unless somebody else says no
            refusal = self.ask_others(session, cause, contender, victim) or refusal
        return refusal

    def is_owed(self, session: Session, cause: Cause, contender: WorkloadState) -> bool:
        """Whether a contender may have what was evicted often or has lost much, where there is any."""
        return bool(session.often_evicted or self.losses.leaves) and is_owed(session, cause, contender)

    def ask_others(
        self, session: Session, cause: Cause, contender: WorkloadState | None, victim: WorkloadState
    ) -> Refusal | None:
        """Give the first no to a victim from what is neither minimum runtime nor a budget."""
        asked = contender.model if contender is not None else None
        for plugin in self.others:
            refusal = self._ask(plugin, "allow_victim", victim.key, (asked, victim.model, cause, session.now))
            if refusal is not None:
                return refusal
        return None

    def validate(
        self, session: Session, cause: Cause, contender: WorkloadState | None, tasks: Sequence[TaskState]
    ) -> Refusal | None:
        """Give the first no to a set of tasks, which are not evicted yet."""
        refusal = self.min_runtime.validate(session, cause, contender, tasks)
        refusal = refusal or self.budgets.validate(session, cause, contender, tasks)
        return refusal or self.ask_others_of_plan(session, cause, contender, tasks)

    def ask_others_of_plan(
        self, session: Session, cause: Cause, contender: WorkloadState | None, tasks: Sequence[TaskState]
    ) -> Refusal | None:
        """Give the first no to a set from what is neither minimum runtime nor a budget."""
        if not self.others:
            return None
        victims = tuple(dict.fromkeys(t.workload.key for t in tasks))
        models = tuple(session.workloads[key].model for key in victims)
        pairs = tuple((t.workload.key, t.name) for t in tasks)
        asked = contender.model if contender is not None else None
        for plugin in self.others:
            arguments = (asked, models, pairs, cause, session.now)
            refusal = self._ask(plugin, "allow_plan", ", ".join(victims), arguments)
            if refusal is not None:
                return refusal
        return None

    def _ask(self, plugin: Any, method: str, about: str, arguments: tuple[Any, ...]) -> Refusal | None:
        question = getattr(plugin, method, None)
        if question is None:
            return None
        name = _name(plugin)
        try:
            answer = question(*arguments)
        except Exception as error:  # noqa: BLE001  whatever a plugin does wrong, it is named
            self._complain(name, f"{method} raised {_said(error)}; that counts as no")
            answer = False
        if answer is True:
            return None
        if answer is not False:
            self._complain(name, f"{method} answered {answer!r:.80} and not True or False; that counts as no")
        return Refusal(name, f"plugin {name} says no to {about}")

    def _complain(self, name: str, text: str) -> None:
        self.complaints.setdefault(name, f"plugin {name}: {text}")


def puts_off(
    plugins: EvictionPlugins, session: Session, cause: Cause, contender: WorkloadState, pieces: Sequence[PricedPart]
) -> bool:
    """Whether a minimum runtime that is not over puts a set off, or that its contender has not waited enough.

    As when candidates are gathered, surplus alone is taken before: one task of a core is not, whatever else stays.
    """
    cores = {piece.workload for piece in pieces if any(core for _, core in piece.stages)}
    if any(plugins.min_runtime.filter(session, cause, contender, victim) is not None for victim in cores):
        return True
    patience = plugins.patience
    if not patience.applies(session, cause):
        return False
    return patience.not_yet(session, cause, contender, pieces, waits_since(contender)) is not None


def _name(plugin: Any) -> str:
    return str(getattr(plugin, "name", type(plugin).__name__))


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:200]
