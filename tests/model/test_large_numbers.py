"""A number that is too large for what is worked out with it is refused where it stands."""

from __future__ import annotations

import pytest

from tenure.model.file.load import load_cluster
from tenure.model.values.problems import InvalidInputError

HEAD = "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\nnodes: []\n"


@pytest.mark.parametrize(
    ("given", "place"),
    [
        ("disruption: {cost: {nvidia.com/gpu: 1.0e+308}}", "scheduler.disruption.cost.nvidia.com/gpu"),
        ("worth: {repeatFactor: 1.0e+308}", "scheduler.worth.repeatFactor"),
        ("worth: {patience: {reclaim: {factor: 1.0e+308}}}", "scheduler.worth.patience.reclaim.factor"),
        ("worth: {weights: [{weight: 1.0e+308}]}", "scheduler.worth.weights[0].weight"),
    ],
)
def test_it_is_named(tmp_path, given, place):
    """Sums of costs are whole numbers, which infinity is not."""
    file = tmp_path / "cluster.yaml"
    file.write_text(f"{HEAD}scheduler: {{{given}}}\n")
    with pytest.raises(InvalidInputError) as raised:
        load_cluster(file)
    assert f"{place}: is 1e+308, but 0 to 1e+12 is expected" in str(raised.value)
