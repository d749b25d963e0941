"""The table of ``tenure queues``: amounts as people read them; as quantities where a program reads them."""

from tests.builders import cluster, node, queue, spec, workload

from tenure.cli.queues import _rows


def test_amounts_are_readable_in_text_and_quantities_in_json():
    """A core and a half is 1.5 on a terminal, and 1500m in JSON."""
    found = cluster(
        [node("n", cpu=4)],
        [workload("w", of=spec(cpu=1), on="n", queue="q", running=60)],
        [queue("q", guaranteed={"cpu": 1.5}, max={"cpu": 3})],
    )
    (text,) = [row for row in _rows(found, readable=True) if row["resource"] == "cpu"]
    (plain,) = [row for row in _rows(found, readable=False) if row["resource"] == "cpu"]
    assert (text["allocated"], text["guaranteed"], text["max"]) == ("1", "1.5", "3")
    assert (plain["allocated"], plain["guaranteed"], plain["max"]) == ("1", "1500m", "3")
