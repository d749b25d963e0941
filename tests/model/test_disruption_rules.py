"""What is wrong with budgets and the log of evictions is said with its place."""

import pytest

from tenure.model.file.load import load_cluster
from tenure.model.values.problems import InvalidInputError

HEAD = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
queues: [{name: vision}]
"""


def problems(tmp_path, text):
    file = tmp_path / "c.yaml"
    file.write_text(HEAD + text)
    try:
        return [], [str(w) for w in load_cluster(file).warnings]
    except InvalidInputError as error:
        return [str(p) for p in error.problems], []


@pytest.mark.parametrize(
    ("rule", "path", "says"),
    [
        ('{name: a, maxEvictions: 0, schedule: "0 25 * * *", duration: 1h}', "schedule", "'25' is no hour"),
        ('{name: a, maxEvictions: 0, schedule: "0 6 * *", duration: 1h}', "schedule", "has 4 fields"),
        ('{name: a, maxEvictions: 0, schedule: "0 6 * * *"}', "duration", "is missing"),
        ("{name: a, maxEvictions: 0, duration: 1h}", "duration", "stands alone"),
        ("{name: a, maxEvictions: 0, timeZone: Europe/Berlinn}", "timeZone", "is no time zone"),
        ("{name: a, maxEvictions: 0, maxUnavailable: 30 %}", "maxUnavailable", "30%"),
        ("{name: a, maxEvictions: 0, maxUnavailable: x%}", "maxUnavailable", "a percentage such as 30%"),
        ("{name: a, maxEvictions: 1}", "per", "is missing"),
        ("{name: a}", "", "bounds nothing"),
        ("{name: a, maxEvictions: 0, selector: {matchExpressions: [{key: a, operator: In}]}}", "selector", "at least"),
        ("{name: a, maxEvictions: 0, selector: [a]}", "selector", "a mapping is expected"),
        ("{name: a, maxEvictions: 0, queue: visoin}", "queue", "vision"),
        ("{name: a, maxEvictions: 0, causes: [reshedule]}", "causes", "reschedule"),
    ],
)
def test_a_malformed_budget_is_told_with_its_path(tmp_path, rule, path, says):
    """One problem, at the key that is wrong, with what would be right."""
    found, _ = problems(tmp_path, f"scheduler: {{disruption: {{budgets: [{rule}]}}}}\n")
    assert len(found) == 1, found
    assert f"scheduler.disruption.budgets[0]{'.' if path else ''}{path}" in found[0]
    assert says in found[0]


def test_two_budgets_of_one_name(tmp_path):
    """A refusal names the budget: it has to be clear which."""
    rule = "{name: a, maxEvictions: 0}"
    found, _ = problems(tmp_path, f"scheduler: {{disruption: {{budgets: [{rule}, {rule}]}}}}\n")
    assert len(found) == 1
    assert "is there twice" in found[0]


def test_a_log_from_the_future_is_a_warning(tmp_path):
    """Clocks differ; the entry counts as now."""
    found, warnings = problems(
        tmp_path, "evictions: [{at: 2026-11-20T11:00:00Z, workload: default/a, task: a-0, cause: reclaim}]\n"
    )
    assert not found
    assert len(warnings) == 1
    assert "evictions[0].at" in warnings[0]
    assert "lies ahead of now" in warnings[0]
