"""The records of the lives of workloads, as they are seen from look to look."""

from dataclasses import replace

from tests.builders import NOW, SECOND, cluster, node, workload

from tenure.clusters.kubernetes.read.observe import Observed
from tenure.clusters.kubernetes.read.workloads import ObservedWorkload
from tenure.engine.plan import Plan
from tenure.engine.snapshot import session_of
from tenure.history import open_history
from tenure.history.reading.views import cluster_then
from tenure.history.record import Draft, Origin, encode, key_of
from tenure.history.who import Who
from tenure.live.records.life_records import LifeRecords
from tenure.live.records.queue_levels import levels_of
from tenure.model.file.dump import cluster_to_plain


def test_one_that_is_made_anew_between_two_looks_comes_when_the_one_before_it_is_gone(tmp_path):
    """It waits in what its history says of the cluster, with what it asks for."""
    records = LifeRecords("pool", lambda _uid: False)
    first = replace(workload("w", tasks=1, age=100), uid="first")
    second = replace(workload("w", tasks=2), uid="second", created_at=NOW + 30 * SECOND)
    with open_history(str(tmp_path / "h.db"), write=True) as store:
        for second_of, model in ((0, first), (60, second)):
            here = replace(cluster(nodes=[node("n", cpu=4)], workloads=[model]), now=NOW + second_of * SECOND)
            seen = Observed(here, {model.key: ObservedWorkload(model, ())})
            levels = levels_of(session_of(here).queues)
            store.append(Origin("c", "pool"), records.records(seen, Plan(here.now), levels, Who(here)))
        shown = encode(cluster_to_plain(replace(here, workloads=())))
        origin = Draft(here.now, "origin", payload=f'{{"cluster":{shown}}}', key=key_of("origin"))
        store.append(Origin("c", "pool"), [origin])
        told = [(record.kind, record.at) for record in store.story(first.key)]
        (there,) = cluster_then(store, here.now).workloads
    assert told == [("submitted", first.created_at), ("ended", second.created_at), ("submitted", second.created_at)]
    assert (there.created_at, len(there.tasks)) == (second.created_at, 2)
