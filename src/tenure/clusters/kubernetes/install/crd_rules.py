"""CEL rules by the definition they belong to: what a structural schema cannot say, as `tenure.model` checks it.

What needs other objects (unknown and cyclic parents, sums over children) is left to the scheduler.
"""

from __future__ import annotations

from typing import Final

from tenure.clusters.kubernetes.install.structural import Rule, rule

_BUDGET: Final = [
    rule(
        "has(self.maxEvictions) || has(self.maxUnavailable) || has(self.minAvailable) || has(self.maxLost)",
        "bounds nothing; add maxEvictions, maxUnavailable, minAvailable or maxLost",
    ),
    rule(
        "!(has(self.maxLost) || (has(self.maxEvictions) && self.maxEvictions > 0))"
        " || has(self.per) || has(self.schedule)",
        "per is missing; say for which window the bound holds, such as 10m",
    ),
    rule(
        "!has(self.schedule) || has(self.duration)", "duration is missing; say how long the schedule lasts, such as 16h"
    ),
    rule("has(self.schedule) || !has(self.duration)", "duration stands alone; add a schedule, such as 0 6 * * *"),
    rule(
        "!has(self.schedule) || self.schedule.matches(r'^\\s*\\S+(\\s+\\S+){4}\\s*$')",
        "a schedule has five fields: minute, hour, day of month, month, day of week",
    ),
]

_NESTED: Final = [
    rule(
        "!has(self.minSubGroup) || (has(self.subGroups) && self.minSubGroup <= size(self.subGroups))",
        "minSubGroup is more than there are subGroups; lower it or add some",
    )
]

BY_DEFINITION: Final[dict[str, list[Rule]]] = {
    "QueueSpec": [
        rule(
            "!has(self.guaranteed) || !has(self.max) || self.guaranteed.all(r, !(r in self.max)"
            " || !isQuantity(string(self.guaranteed[r])) || !isQuantity(string(self.max[r]))"
            " || quantity(string(self.guaranteed[r])).compareTo(quantity(string(self.max[r]))) <= 0)",
            "guaranteed is more than max; lower it or raise max",
        )
    ],
    "PodGroupSpec": _NESTED,
    "WorkloadKindSpec": [
        rule(
            "(has(self.unit) && self.unit == 'label') == has(self.unitLabel)",
            "unitLabel goes with unit: label, and only with it; it names the label that tells workloads apart",
        ),
        rule(
            "!has(self.roleGroups) || size(self.roleGroups) == 0 || (has(self.subGroups) && self.subGroups)",
            "roleGroups goes with subGroups: true; only roles that are subgroups can be grouped",
        ),
    ],
    "SubGroup": [
        rule(
            "!(has(self.minMember) && has(self.subGroups))",
            "minMember stands beside subGroups; a subgroup has one of the two (and minSubGroup)",
        ),
        *_NESTED,
    ],
    "Topology": [
        rule(
            "has(self.required) || has(self.preferred)",
            "names no level; add required: LABEL or preferred: LABEL",
        )
    ],
    "DisruptionBudgetSpec": _BUDGET,
    "BudgetRule": _BUDGET,
    "Requirement": [
        rule("!(self.operator in ['In', 'NotIn']) || has(self.values)", "In and NotIn need at least one value"),
        rule(
            "!(self.operator in ['Exists', 'DoesNotExist']) || !has(self.values)",
            "Exists and DoesNotExist take no values",
        ),
    ],
}
