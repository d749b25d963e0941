"""What makes no room for a contender is not tried again with tasks that stand alike: it is refused as they would be."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.builders import cluster, node, queue, spec, task, workload
from tests.effort import tries
from tests.properties.adding_up import played
from tests.properties.loaded import states, varied

from tenure.engine.refusal import Refusal
from tenure.engine.snapshot import session_of
from tenure.victims.candidates.index import sorted_pieces
from tenure.victims.rules.pieces import pieces_of
from tenure.victims.search.alike_pieces import AlikePieces
from tenure.victims.search.trials import SetTrials


@pytest.fixture
def hits(monkeypatch):
    """Play each set through that is refused without that, and compare."""
    found, play = [], SetTrials.play

    def played_anyway(self, pieces, **asked):
        known = None
        if frozenset(pieces) not in self._verdicts and self._in_vain:
            known = self._in_vain.get(self.alike.kind_of(pieces))
        verdict = play(self, pieces, **asked)
        if known is not None:
            anyway = self.dry_runs.play(self.rules, sorted_pieces(pieces))
            assert isinstance(anyway, Refusal)
            assert anyway.shield == known.shield
            found.append(known.shield)
        return verdict

    monkeypatch.setattr(SetTrials, "play", played_anyway)
    return found


def test_it_would_be_refused_all_the_same_at_real_scale(hits):
    for seed in range(1, 1 + tries(1, 20)):
        for state in list(states(seed, 120))[-tries(3, 100) :]:
            given = varied(state, seed)
            played(replace(given, settings=replace(given.settings, backfill="easy")), 1)
    assert len(hits) > 20


def kinds(*beside, cpu=(4, 4), labels=({}, {})):
    """Give of how many kinds the two surplus tasks of a workload are, each on a node."""
    nodes = [node("n", cpu=2), *(node(f"n{i}", cpu=cpu[i], labels=labels[i]) for i in (0, 1))]
    tasks = [task(f"e-{i}", spec(cpu=2), on=on) for i, on in enumerate(("n", "n0", "n1"))]
    elastic = workload("e", tasks=tasks, queue="q", min_member=1)
    session = session_of(cluster(nodes, [elastic, *beside], [queue("q")]))
    pieces = pieces_of(session, session.workloads["default/e"], frozenset(), core=False)
    assert len(pieces) == 2
    alike = AlikePieces(session)
    return len({alike.kind_of([p]) for p in pieces})


def test_tasks_that_stand_alone_on_nodes_that_are_alike_are_of_one_kind():
    assert kinds() == 1


def test_other_room_or_another_neighbour_makes_another_kind():
    assert kinds(cpu=(4, 5)) == 2
    assert kinds(workload("b", of=spec(cpu=1), on=["n1"], queue="q")) == 2


def test_a_label_makes_another_kind_where_some_task_selects_by_it():
    chosen = workload("s", of=spec(cpu=1, node_selector=(("disk", "ssd"),)), queue="q")
    assert kinds(labels=({"disk": "ssd"}, {})) == 1
    assert kinds(chosen, labels=({"disk": "ssd"}, {})) == 2
