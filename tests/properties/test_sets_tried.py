"""A plan for sixteen GPUs tries few sets, also where a search ahead is made inside of a search ahead."""

from __future__ import annotations

import pytest
from tests.properties.adding_up import drawn, played, priced

from tenure.victims.dry_run.dry_runs import DryRuns
from tenure.victims.search.exact import PieceSubsets


@pytest.mark.parametrize(
    ("cluster", "cycles", "most_played", "most_looked_at"),
    [
        pytest.param(drawn(13485), 2, 1500, 6000, id="no minimum runtime holds against moves"),
        pytest.param(drawn(501689), 1, 500, 2000, id="whatever moves would put off a reserved start"),
        pytest.param(priced(300173), 1, 2800, 160_000, id="what pays in the one queue there is was tried before"),
    ],
)
def test_few_sets_are_tried(cluster, cycles, most_played, most_looked_at, monkeypatch):
    """Sets that are played through, and subsets that are looked at."""
    counts, play, subsets_of = {"played": 0, "looked at": 0}, DryRuns.play, PieceSubsets.of

    def counted(self, *arguments, **options):
        counts["played"] += 1
        return play(self, *arguments, **options)

    def looked_at(self, *arguments):
        for subset in subsets_of(self, *arguments):
            counts["looked at"] += 1
            yield subset

    monkeypatch.setattr(DryRuns, "play", counted)
    monkeypatch.setattr(PieceSubsets, "of", looked_at)
    played(cluster, cycles)
    assert counts["played"] <= most_played
    assert counts["looked at"] <= most_looked_at
