"""Gangs with subgroups and topology: what is placed together, and where."""

from __future__ import annotations

from tests.builders import bound, cluster, node, spec, task, workload

from tenure.model.selectors import Topology
from tenure.model.workload import SubGroup
from tenure.playthrough import play

RACK = Topology(required="rack")


def racks(*sizes):
    """One node of so many CPUs for each rack."""
    return [node(f"n{i}", cpu=cpu, labels={"rack": f"r{i}"}) for i, cpu in enumerate(sizes)]


def grouped(name, groups, **fields):
    """A workload of subgroups: name, number of tasks, CPUs of each, further fields of the group."""
    tasks, subs = [], []
    for group, count, cpu, more in groups:
        subs.append(SubGroup(name=group, **more))
        tasks += [task(f"{name}-{group}{i}", spec(cpu=cpu), sub_group=group) for i in range(count)]
    return workload(name, tasks=tasks, sub_groups=tuple(subs), **fields)


def test_each_subgroup_has_a_rack_of_its_own_where_none_holds_both():
    gang = grouped("w", [("a", 2, 2, {"topology": RACK}), ("b", 2, 2, {"topology": RACK})])
    found = bound(play(cluster(racks(4, 4), [gang])))
    assert found["w-a0"] == found["w-a1"] != found["w-b0"] == found["w-b1"]


def test_another_subgroup_does_where_the_first_does_not_fit_and_one_is_enough():
    gang = grouped("w", [("large", 1, 9, {}), ("small", 1, 1, {})], min_sub_group=1)
    assert bound(play(cluster(racks(4), [gang]))) == {"w-small0": "n0"}


def test_a_further_subgroup_finds_the_rack_in_which_all_of_it_fits():
    """One task of it would fit into the fuller rack, but both only into the other."""
    more = {"topology": RACK}
    gang = grouped("w", [("core", 1, 6, more), ("more", 2, 2, more)], min_sub_group=1)
    found = bound(play(cluster(racks(8, 9, 4), [gang])))
    assert found == {"w-core0": "n0", "w-more0": "n2", "w-more1": "n2"}


def test_a_task_joins_the_rack_of_those_that_run():
    gang = workload("w", tasks=3, of=spec(cpu=2), on=["n1"], min_member=1, topology=RACK, running=10)
    assert bound(play(cluster(racks(2, 4, 9), [gang]))) == {"w-1": "n1"}


def test_a_rack_is_chosen_though_some_of_it_runs_where_there_is_no_label():
    nodes = [node("z", cpu=9), *racks(2)]
    gang = workload("w", tasks=2, on=["z"], min_member=1, topology=RACK, running=10)
    assert bound(play(cluster(nodes, [gang]))) == {"w-1": "n0"}
