"""Whatever stands in a file, it is a cluster or a list of problems: nothing else comes out."""

import json

from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.effort import tries
from tests.model.strategies import clusters

from tenure.model.cluster import Cluster
from tenure.model.file.added import load_additions
from tenure.model.file.dump import cluster_to_plain
from tenure.model.file.load import load_cluster
from tenure.model.file.override import apply_overrides
from tenure.model.values.problems import InvalidInputError

tolerant = hypothesis_settings(
    max_examples=tries(50, 500),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["-1", "1e30", "1h", "-5m", "2026-11-20T10:00:00Z", "default", "Running", "9" * 100, 10**30])
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in inner:
        yield from places(item, (*path, key))


def replaced(value, path, new):
    if not path:
        return new
    copy = value.copy()
    copy[path[0]] = replaced(value[path[0]], path[1:], new)
    return copy


@st.composite
def damaged(draw, whole):
    plain = json.loads(json.dumps(cluster_to_plain(draw(whole))))
    for _ in range(draw(st.integers(1, 3))):
        plain = replaced(plain, draw(st.sampled_from(list(places(plain)))), draw(anything))
    return plain


def check(load, *arguments):
    try:
        return load(*arguments)
    except InvalidInputError as error:
        problems = error.problems
    assert problems
    assert all(problem.message and problem.line >= 0 and "\n" not in str(problem) for problem in problems)
    return None


@tolerant
@given(damaged(clusters()))
def test_a_damaged_cluster_file_loads_or_says_what_is_wrong(tmp_path, plain):
    path = tmp_path / "c.json"
    path.write_text(json.dumps(plain))
    loaded = check(load_cluster, path)
    assert loaded is None or isinstance(loaded.cluster, Cluster)


POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "labels": {"queue": "q"}, "annotations": {"tenure.dev/gpu-fraction": "0.5"}},
    "spec": {
        "containers": [{"name": "c", "resources": {"requests": {"cpu": 1}}, "ports": [{"hostPort": 80}]}],
        "initContainers": [{"restartPolicy": "Always", "resources": {"limits": {"memory": "1Gi"}}}],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}},
        "tolerations": [{"operator": "Exists"}],
        "volumes": [{"name": "v", "emptyDir": {}}],
        "resourceClaims": [{"name": "r"}],
        "schedulingGates": [{"name": "g"}],
    },
}
JOB = {
    "apiVersion": "batch/v1",
    "kind": "Job",
    "metadata": {"name": "j"},
    "spec": {"parallelism": 2, "completions": 2, "template": {"metadata": {"labels": {}}, "spec": POD["spec"]}},
}


@tolerant
@given(data=st.data(), manifest=st.sampled_from([POD, JOB, {"apiVersion": "v1", "kind": "List", "items": [POD, JOB]}]))
def test_a_damaged_manifest_is_added_or_says_what_is_wrong(tmp_path, data, manifest):
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.sampled_from(list(places(manifest))))
        manifest = replaced(manifest, place, data.draw(anything))
    path = tmp_path / "add.json"
    path.write_text(json.dumps(manifest))
    check(load_additions, path, Cluster(now=0))


@tolerant
@given(content=st.binary(max_size=60) | st.text("{}[]:,-&*!? \n\t'\"#|>%@a1~<", max_size=40).map(str.encode))
def test_bytes_are_read_or_say_what_is_wrong(tmp_path, content):
    path = tmp_path / "c.yaml"
    path.write_bytes(content)
    check(load_cluster, path)


words = st.sampled_from(["queue", "q", "max", "cpu", "scheduler", "workload", "default/w", "priority", "now", "weight"])


@tolerant
@given(st.lists(words | st.text(max_size=4), max_size=5), st.text(max_size=6) | scalars.map(str))
def test_an_override_is_applied_or_says_what_is_wrong(parts, value):
    check(apply_overrides, Cluster(now=0), [f"{'.'.join(parts)}={value}"])
