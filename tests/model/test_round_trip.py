"""What is written is read as the same cluster, with every field of every type."""

import io
import json

import pytest
import yaml
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.model.strategies import clusters, settings

from tenure.model.file.dump import cluster_to_plain, dump_cluster, dump_settings
from tenure.model.file.load import load_cluster, load_settings
from tenure.model.manifests.device_uses import with_device_uses
from tenure.model.storage import with_mounts

slow = hypothesis_settings(
    max_examples=tries(40, 400),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)


@slow
@given(cluster=clusters(), form=st.sampled_from(["yaml", "json"]))
def test_loading_what_was_written_gives_the_same_cluster(tmp_path, cluster, form):
    stream = io.StringIO()
    dump_cluster(cluster, stream, format=form)
    path = tmp_path / f"cluster.{form}"
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    assert load_cluster(path).cluster == with_device_uses(with_mounts(cluster))


@slow
@given(cluster=clusters())
def test_both_forms_hold_the_same(cluster):
    texts = {}
    for form in ("yaml", "json"):
        stream = io.StringIO()
        dump_cluster(cluster, stream, format=form)
        texts[form] = stream.getvalue()
    assert json.loads(texts["json"]) == json.loads(json.dumps(cluster_to_plain(cluster)))
    assert yaml.compose(texts["yaml"], Loader=yaml.CSafeLoader) is not None


@slow
@given(original=settings)
def test_settings_survive_writing(tmp_path, original):
    stream = io.StringIO()
    dump_settings(original, stream)
    path = tmp_path / "settings.yaml"
    path.write_text(stream.getvalue(), encoding="utf-8", newline="")
    assert load_settings(path) == original


def test_what_is_as_by_default_is_not_written(tmp_path):
    path = tmp_path / "in.yaml"
    path.write_text(
        "{kind: Cluster, now: 2026-11-20T10:00:00Z, scheduler: {backfill: easy, requeueDelay: 10m},"
        " nodes: [{name: n, ready: true}], queues: [{name: q, priority: 100}],"
        " workloads: [{name: w, queue: q, replicas: 3, minMember: 2, requests: {cpu: 1}}]}"
    )
    plain = cluster_to_plain(load_cluster(path).cluster)
    assert plain["scheduler"] == {"backfill": "easy"}
    assert plain["nodes"] == [{"name": "n"}]
    assert plain["queues"] == [{"name": "q"}]
    assert plain["workloads"] == [{"name": "w", "queue": "q", "minMember": 2, "requests": {"cpu": 1}, "replicas": 3}]


@pytest.mark.parametrize("form", ["yaml", "json"])
def test_the_same_cluster_is_written_in_the_same_bytes(tmp_path, form):
    path = tmp_path / "in.yaml"
    path.write_text(
        "{now: 2026-11-20T10:00:00Z, nodes: [{name: n, count: 3, labels: {b: x, a: y}}],"
        " workloads: [{name: w, tasks: [{name: t, node: n-1, requests: {memory: 1Gi, cpu: 1}}]}]}"
    )
    written = []
    for _ in range(2):
        stream = io.StringIO()
        dump_cluster(load_cluster(path).cluster, stream, format=form)
        written.append(stream.getvalue())
    assert written[0] == written[1]
