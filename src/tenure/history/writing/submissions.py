"""What workloads ask for when they come, as payloads of records."""

from __future__ import annotations

from tenure.history.record import encode, quoted
from tenure.history.who import Who
from tenure.history.writing.said import said_by
from tenure.model.amounts import Holder
from tenure.model.values.resources import MILLI
from tenure.model.workload import TaskSpec, Workload


class SubmissionWriter:
    """Writes the payloads of records of kind ``submitted``; what workloads have in common is written once."""

    def __init__(self, holder: Holder, who: Who) -> None:
        self.holder, self.who = holder, who
        self._asked: dict[tuple[int, int], str] = {}

    def payload(self, model: Workload) -> str:
        """Write what a workload asks for."""
        expected = "" if model.expected_runtime is None else f',"expected":{model.expected_runtime}'
        minimum = "" if model.min_member is None else f'"minMember":{model.min_member},'
        named = self.who.named(model)
        who = "".join([f",{quoted(name)}:{quoted(value)}" for name, value in named.items()]) if named else ""
        return f'{{"priority":{model.priority},{minimum}{self._ask(model)}{expected}{said_by(model)}{who}}}'

    def _ask(self, model: Workload) -> str:
        """Write ``tasks``, ``ask`` and ``specs``. Specs are told apart by identity, as the holder does."""
        specs: dict[int, tuple[TaskSpec, int]] = {}
        for task in model.tasks:
            spec = task.spec
            found = specs.get(id(spec))
            specs[id(spec)] = spec, 1 if found is None else found[1] + 1
        if len(specs) != 1:
            return self._written(list(specs.values()))
        ((number, (spec, count)),) = specs.items()
        known = self._asked.get((number, count))
        if known is None:
            known = self._asked[number, count] = self._written([(spec, count)])
        return known

    def _written(self, specs: list[tuple[TaskSpec, int]]) -> str:
        ask: dict[str, int] = {}
        told: list[str] = []
        for spec, count in specs:
            asked = self.holder.named(self.holder.asked(spec, -1))
            share = spec.gpu_share
            shared = "" if share is None else f",{share.milli or MILLI},{share.devices}"
            told.append(f"[{count},{encode(asked)}{shared}]")
            for resource, amount in self.holder.named(self.holder.held(spec, -1)).items():
                ask[resource] = ask.get(resource, 0) + amount * count
        return f'"tasks":{sum(count for _, count in specs)},"ask":{encode(ask)},"specs":[{",".join(told)}]'


def submission(model: Workload, holder: Holder, who: Who) -> str:
    """Write what one workload asks for when it comes."""
    return SubmissionWriter(holder, who).payload(model)
