"""Memos hold as long as what they depend on is as it was, and say where they would give what is not so any more."""

import pytest

from tenure.engine.memo import Memo, StaleMemoError
from tenure.engine.snapshot import session_of
from tenure.model.cluster import Cluster
from tenure.model.node import Node
from tenure.model.queue import Queue


@pytest.mark.parametrize("checked", [True, False])
def test_a_value_is_worked_out_again_for_another_version(monkeypatch, checked):
    monkeypatch.setattr(Memo, "checked", checked)
    version, value = [1], [10]
    memo = Memo(lambda key: key * value[0], lambda _: version[0])
    assert memo(2) == 20
    version[0], value[0] = 2, 11
    assert memo(2) == 22
    assert memo(3) == 33
    assert set(memo.known) == (set() if checked else {2, 3})


def test_what_depends_on_more_than_it_says_is_an_error():
    value = [10]
    memo = Memo(lambda key: key * value[0], lambda _: 1)
    memo(2)
    value[0] = 11
    with pytest.raises(StaleMemoError, match="of 2 was 20, and would be 22"):
        memo(2)


def test_a_version_is_the_old_one_again_once_what_changed_is_undone():
    queues = (Queue(name="a"), Queue(name="b", parent="a"), Queue(name="c"))
    cluster = Cluster(now=0, nodes=(Node(name="n", allocatable={"cpu": 1000}),), queues=queues, workloads=())
    session = session_of(cluster)
    tree, leaf = session.queues, session.queues.index["b"]
    before, amount = list(tree.versions), tuple(1 for _ in tree.resources)
    with session.scenario() as scenario:
        tree.allocate(leaf, amount, fixed=False)
        first = list(tree.versions)
        undone = scenario.remember()
    changed = {q for q, (old, new) in enumerate(zip(before, first, strict=True)) if old != new}
    assert changed == set(tree.path[leaf])
    assert tree.versions == before
    session.repeat(undone)
    assert tree.versions == first
    with session.scenario() as scenario:
        tree.release(leaf, amount, fixed=False)
        scenario.keep()
    assert all(tree.versions[q] not in (before[q], first[q]) for q in changed)
