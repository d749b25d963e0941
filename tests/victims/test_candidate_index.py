"""What a search chooses from: of which pieces the rules are asked, and in which order."""

from __future__ import annotations

from itertools import product

from tests.actions.helpers import cluster, queue, runs

from tenure.engine.snapshot import session_of
from tenure.victims.candidate_index import CandidateIndex
from tenure.victims.candidates import VictimCandidates
from tenure.victims.leaf_candidates import LeafCandidates
from tenure.victims.pieces import piece_memo


def test_pieces_on_one_node_are_asked_about_by_name():
    """What the rules say of them is listed in the order in which they are asked: it is the same in every run."""
    names = [f"{letter}{number}" for letter, number in product("zyxwvuts", range(2))]
    session = session_of(cluster([queue("q")], [runs(name, "q", ["n0"]) for name in names], gpus=len(names)))
    known, asked = piece_memo(session), []
    pieces = [piece for workload in session.workloads.values() for piece in known((workload, True, False))]
    candidates = VictimCandidates([LeafCandidates(session.queues.index["q"], 0, pieces)])
    index = CandidateIndex(session, candidates, lambda p: not asked.append(p.workload.key))
    assert len(index.at(0)) == len(names)
    assert asked == sorted(f"default/{name}" for name in names)
