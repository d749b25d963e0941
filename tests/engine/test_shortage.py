"""How many tasks a gang lacks is counted in the subgroups that it needs: what others have too many does not help."""

from __future__ import annotations

import pytest
from tests.actions.helpers import MINUTE, NOW
from tests.builders import cluster, node, queue, task, workload

from tenure.explanation.explain import explain_workload
from tenure.model.workload import SubGroup
from tenure.playthrough import play

NONE_OF_Y_AND_Z = "subgroup y has 0 of 2, subgroup z has 0 of 2"
GROUPS = tuple(SubGroup(name=name, min_member=2) for name in "xyz")


def gang(counts, *, on=None, groups=GROUPS, **fields):
    """A gang with so many tasks in each of its subgroups."""
    fields["started_at"] = NOW - MINUTE if on else None
    tasks = [task(f"{g}{n}", sub_group=g, on=on) for g, count in counts.items() for n in range(count)]
    return workload("gang", tasks=tasks, queue="q", sub_groups=groups, **fields)


@pytest.mark.parametrize(
    ("counts", "least", "said", "more"),
    [
        ({"x": 5, "y": 1, "z": 2}, None, "it starts with 6 tasks, but only 5 of these exist: subgroup y has 1 of 2", 1),
        (
            {"x": 5, "y": 1, "z": 0}, 2,
            "it starts with 4 tasks, but only 3 of these exist: subgroup y has 1 of 2, subgroup z has 0 of 2", 1,
        ),
        (
            {"x": 1, "y": 0, "z": 0}, 1,
            f"it starts with 2 tasks, but only 1 of these exists: subgroup x has 1 of 2, {NONE_OF_Y_AND_Z}", 1,
        ),
    ],
)  # fmt: skip
def test_what_waits_for_tasks_is_told_how_many_it_lacks(counts, least, said, more):
    """Of fewer subgroups than there are, those count that lack the fewest."""
    played = play(cluster([node("n", cpu=32)], [gang(counts, min_sub_group=least)], [queue("q")]))
    assert [r.message for p in played.pending for r in p.reasons] == [said]
    story = explain_workload(played, played.after.workloads[0])
    assert story.helps == (f"{more} more task, or a smaller minMember",)


def test_a_gang_is_told_what_it_lacked_when_it_was_evicted():
    """It ran more tasks than it needed, but not of each subgroup."""
    stale = gang({"x": 5, "y": 2, "z": 1}, on="n", stale_since=NOW - 2 * MINUTE)
    played = play(cluster([node("n", cpu=32)], [stale], [queue("q")], actions=("stale-gang",)))
    assert {s.cause for s in played.steps} == {"stale-gang"}
    text = "default/gang runs 5 of the 6 tasks that it needs (subgroup z has 1 of 2): it is stale"
    assert played.steps[0].reason.startswith(text)


def test_of_many_subgroups_a_few_are_named():
    """Five lack a task, four of them are named."""
    groups = tuple(SubGroup(name=name, min_member=1) for name in "abcdef")
    played = play(cluster([node("n")], [gang({"a": 1}, groups=groups)], [queue("q")]))
    said = [r.message for p in played.pending for r in p.reasons]
    assert [text.partition(": ")[2] for text in said] == [
        "subgroup b has 0 of 1, subgroup c has 0 of 1, subgroup d has 0 of 1, subgroup e has 0 of 1, and 1 more"
    ]
