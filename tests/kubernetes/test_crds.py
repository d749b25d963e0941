"""The custom resources on a real API server: what it takes, what it refuses and with what words."""

import json
from dataclasses import replace
from itertools import count

import pytest
import yaml
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from tests.model.strategies import objects
from tools.controlplane.client import ApiError
from tools.controlplane.plane import KubectlError

from tenure.clusters.kubernetes.install.crds import RESOURCES, custom_resource_definitions, spec_record
from tenure.clusters.kubernetes.read.values import read, texts
from tenure.model.checks.queues import check_queues
from tenure.model.checks.workloads import check_workloads
from tenure.model.fields.descriptions import FIELDS, described_as
from tenure.model.fields.records import NOT_WRITTEN, record_of, write_field
from tenure.model.manifests.workload_kind import WorkloadKind, built_in_kinds
from tenure.model.queue import Queue
from tenure.model.settings import BudgetRule, Settings
from tenure.model.values.report import ProblemReport
from tenure.model.workload import Workload

PATHS = {
    "Queue": "/apis/tenure.dev/v1beta1/queues",
    "PodGroup": "/apis/tenure.dev/v1beta1/namespaces/default/podgroups",
    "DisruptionBudget": "/apis/tenure.dev/v1beta1/disruptionbudgets",
    "NodePool": "/apis/tenure.dev/v1beta1/nodepools",
    "WorkloadKind": "/apis/tenure.dev/v1beta1/workloadkinds",
}
GROUPED = built_in_kinds().by_key["LeaderWorkerSet.leaderworkerset.x-k8s.io"]
NAMES = (f"fuzz-{number}" for number in count())


@pytest.fixture(scope="module")
def client(plane):
    return plane.client()


def made(kind, spec, name="x"):
    return {"apiVersion": "tenure.dev/v1beta1", "kind": kind, "metadata": {"name": name}, "spec": spec}


def verdict(client, kind, spec):
    """Give what the API server says against an object; nothing if it would take it."""
    try:
        client.create(f"{PATHS[kind]}?dryRun=All&fieldValidation=Strict", made(kind, spec, next(NAMES)))
    except ApiError as error:
        return str(error)
    return ""


REFUSED = {
    "a queue that is its own parent": ("Queue", {"parent": "x"}, "a queue is not its own parent"),
    "guaranteed over max": (
        "Queue",
        {"guaranteed": {"cpu": 3}, "max": {"cpu": "2500m"}},
        "guaranteed is more than max; lower it or raise max",
    ),
    "a negative amount": ("Queue", {"max": {"cpu": "-1"}}, "an amount is a quantity of 0 or more"),
    "an amount that is none": ("Queue", {"max": {"cpu": "much"}}, "an amount is a quantity of 0 or more"),
    "a duration without unit": ("Queue", {"reclaimMinRuntime": 600}, "spec.reclaimMinRuntime"),
    "a negative duration": ("Queue", {"reclaimMinRuntime": "-5m"}, "spec.reclaimMinRuntime"),
    "a policy that is not there": ("Queue", {"preemptionPolicy": "fenced"}, '"default", "fence", "disabled"'),
    "a field that is not there": ("Queue", {"quota": 1}, 'unknown field "spec.quota"'),
    "a priority beyond int32": ("Queue", {"priority": 2**31}, "spec.priority"),
    "a core of none": ("PodGroup", {"minMember": 0}, "spec.minMember"),
    "a subgroup with a core and parts": (
        "PodGroup",
        {"subGroups": [{"name": "a", "minMember": 1, "subGroups": [{"name": "b"}]}]},
        "minMember stands beside subGroups",
    ),
    "more subgroups than there are": (
        "PodGroup",
        {"subGroups": [{"name": "a"}], "minSubGroup": 2},
        "minSubGroup is more than there are subGroups",
    ),
    "two subgroups of one name": (
        "PodGroup",
        {"subGroups": [{"name": "a"}, {"name": "a"}]},
        "Duplicate value",
    ),
    "a topology of no level": ("PodGroup", {"topology": {}}, "names no level"),
    "a time that is none": ("PodGroup", {"allowPreemptionUntil": "tomorrow"}, "date-time"),
    "a path that is none": (
        "WorkloadKind",
        {"version": "v1", "kind": "A", "queue": ["spec.queue"]},
        "should match",
    ),
    "workloads by a label that is not named": (
        "WorkloadKind",
        {"version": "v1", "kind": "A", "unit": "label"},
        "unitLabel goes with",
    ),
    "a budget that bounds nothing": ("DisruptionBudget", {"queue": "a"}, "bounds nothing"),
    "a rate without a window": ("DisruptionBudget", {"maxEvictions": 3}, "per is missing"),
    "a schedule without duration": (
        "DisruptionBudget",
        {"maxEvictions": 0, "schedule": "0 6 * * *"},
        "duration is missing",
    ),
    "a schedule of four fields": (
        "DisruptionBudget",
        {"maxEvictions": 0, "schedule": "0 6 * *", "duration": "16h"},
        "a schedule has five fields",
    ),
    "a cause that is not there": (
        "DisruptionBudget",
        {"maxEvictions": 0, "causes": ["drain"]},
        '"reclaim"',
    ),
    "a selector without values": (
        "DisruptionBudget",
        {"maxUnavailable": 1, "selector": {"matchExpressions": [{"key": "a", "operator": "In"}]}},
        "In and NotIn need at least one value",
    ),
    "a mode that is not there": ("NodePool", {"scheduler": {"modes": {"reclaim": "on"}}}, '"enforce", "shadow", "off"'),
    "a cause of a mode that is not there": (
        "NodePool",
        {"scheduler": {"modes": {"drain": "off"}}},
        "the keys are stale-gang, quota, reclaim",
    ),
    "a wildcard within the name of a resource": (
        "NodePool",
        {"scheduler": {"deviceResources": {"amd.com/*gpu": {"nvidia.com/gpu": 1}}}},
        "the keys match",
    ),
    "an action twice": ("NodePool", {"scheduler": {"actions": ["allocate", "allocate"]}}, "Duplicate value"),
    "two budgets of one name": (
        "NodePool",
        {
            "scheduler": {
                "disruption": {"budgets": [{"name": "a", "maxEvictions": 0}, {"name": "a", "maxEvictions": 0}]}
            }
        },
        "Duplicate value",
    ),
}


@pytest.mark.parametrize("case", REFUSED, ids=str)
def test_bad_object_is_refused(plane, case):
    """What is wrong with an object by itself is refused by the API server, in words that name it."""
    kind, spec, words = REFUSED[case]
    with pytest.raises(KubectlError) as refused:
        plane.kubectl("create", "--dry-run=server", "-f", "-", given=json.dumps(made(kind, spec)))
    assert words in str(refused.value)


GOOD = {
    "Queue": {
        "parent": "research",
        "guaranteed": {"nvidia.com/gpu": "2500m", "cpu": 8, "memory": "1.5Ti"},
        "max": {"nvidia.com/gpu": 16},
        "weight": {"nvidia.com/gpu": 2.5, "cpu": 1},
        "priority": -5,
        "reclaimMinRuntime": "1h30m",
        "preemptMinRuntime": 0,
        "quotaPreemptionDelay": "2d",
        "preemptionPolicy": "fence",
    },
    "PodGroup": {
        "queue": "vision",
        "minMember": 4,
        "subGroups": [
            {"name": "workers", "subGroups": [{"name": "left", "minMember": 2}, {"name": "right"}], "minSubGroup": 1},
            {"name": "leader", "minMember": 1, "topology": {"required": "rack"}},
        ],
        "stalenessGracePeriod": "-1s",
        "checkpoint": {"interval": "15m", "restartOverhead": "2m"},
        "allowPreemption": False,
        "allowPreemptionUntil": "2026-11-20T10:00:00Z",
        "priorityClassName": "high",
    },
    "DisruptionBudget": {
        "namespace": "shop",
        "selector": {
            "matchLabels": {"app": "web"},
            "matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}],
        },
        "maxUnavailable": "30%",
        "maxEvictions": 0,
        "schedule": "0 6 * * 1-5",
        "duration": "16h",
        "timeZone": "Europe/Berlin",
        "maxLost": {"nvidia.com/gpu": "200h"},
        "causes": ["reschedule", "consolidate"],
    },
    "NodePool": {
        "scheduler": {
            "placement": {"binpack": 1, "fragmentation": 3},
            "modes": {"reclaim": "shadow", "requeue": "off"},
            "disruption": {"cost": {"cpu": 0.05}, "budgets": [{"name": "all", "maxEvictions": 20, "per": "10m"}]},
            "rescheduler": {"hotNodes": {"enabled": True, "hot": "85%"}, "background": {"objective": {"pack": 1}}},
            "nominators": {"over-share": True},
        }
    },
}
GOOD["WorkloadKind"] = record_of(WorkloadKind).encode(GROUPED)


@pytest.mark.parametrize("kind", GOOD)
def test_good_object_comes_back_as_it_was(plane, client, kind):
    """An object with all kinds of fields is taken, nothing of it is pruned, and applying it again changes nothing."""
    text = yaml.safe_dump(made(kind, GOOD[kind], "good"))
    plane.kubectl("apply", "-f", "-", given=text)
    assert client.get(f"{PATHS[kind]}/good")["spec"] == GOOD[kind]
    assert "unchanged" in plane.kubectl("apply", "-f", "-", given=text)
    plane.kubectl("delete", f"{kind.lower()}.tenure.dev", "good")


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize(("written", "read_as"), [("v1beta1", "v1alpha1"), ("v1alpha1", "v1beta1")])
def test_what_is_written_in_one_version_reads_the_same_in_the_other(client, kind, written, read_as):
    """Both versions are served, and an object of one is that of the other under another name, status included."""
    path = {version: PATHS[kind].replace("v1beta1", version) for version in (written, read_as)}
    body = {**made(kind, GOOD[kind], "both"), "apiVersion": f"tenure.dev/{written}"}
    client.create(f"{path[written]}?fieldValidation=Strict", body)
    status = {"status": {"observedGeneration": 1}}
    client.patch(f"{path[read_as]}/both/status", status)
    one, other = (client.get(f"{at}/both") for at in path.values())
    client.delete(f"{path[read_as]}/both")
    assert other == {**one, "apiVersion": f"tenure.dev/{read_as}"}
    assert (one["apiVersion"], one["spec"]) == (f"tenure.dev/{written}", GOOD[kind])
    assert one["status"]["observedGeneration"] == 1


def test_versions_differ_in_their_name_alone():
    """Each definition serves two versions of one schema and one set of columns, and stores the first."""
    for definition in custom_resource_definitions():
        first, second = definition["spec"]["versions"]
        assert (first["name"], first["storage"], second["name"], second["storage"]) == (
            "v1beta1", True, "v1alpha1", False,
        )  # fmt: skip
        assert {**second, "name": "v1beta1", "storage": True} == first


def test_status_is_a_subresource_and_conditions_are_keyed_by_type(client):
    """Writing the status leaves the spec alone, and the other way round; what the scheduler writes is not pruned."""
    path = f"{PATHS['Queue']}/with-status"
    client.create(PATHS["Queue"], made("Queue", {"max": {"cpu": 1}}, "with-status"))
    condition = {
        "type": "Accepted",
        "status": "False",
        "reason": "Invalid",
        "message": "its parent is not there",
        "lastTransitionTime": "2026-11-20T10:00:00Z",
        "observedGeneration": 1,
    }
    status = {
        "conditions": [condition],
        "observedGeneration": 1,
        "allocated": {"cpu": "500m", "nvidia.com/gpu": 2},
        "quotaPreemption": {
            "armedAt": "2026-11-20T10:00:00Z",
            "delay": "10m",
            "deadline": "2026-11-20T10:10:00Z",
            "max": {"cpu": 1},
        },
        "usage": {"cpu": 12.5},
        "usageAt": "2026-11-20T10:00:00.5Z",
        "runningWorkloads": 1,
    }
    client.patch(f"{path}/status", {"spec": {"max": {"cpu": 9}}, "status": status})
    found = client.get(path)
    assert found["status"] == status
    assert found["spec"] == {"max": {"cpu": 1}}
    client.patch(path, {"spec": {"max": {"cpu": 2}}, "status": {"runningWorkloads": 7}})
    assert client.get(path)["status"]["runningWorkloads"] == 1
    with pytest.raises(ApiError, match="Duplicate value"):
        client.patch(f"{path}/status", {"status": {"conditions": [condition, condition]}})
    client.delete(path)


def test_kubectl_shows_columns_by_short_names(plane, client):
    """``kubectl get`` knows the short names and the category, and shows what one wants to see at a glance."""
    client.create(PATHS["Queue"], made("Queue", {"parent": "research", "max": {"nvidia.com/gpu": 16}}, "vision"))
    header, row = plane.kubectl("get", "tq", "vision").splitlines()
    assert header.split() == [
        "NAME",
        "PARENT",
        "GUARANTEED",
        "MAX",
        "ALLOCATED",
        "RUNNING",
        "PENDING",
        "ACCEPTED",
        "AGE",
    ]
    assert row.split()[:3] == ["vision", "research", '{"nvidia.com/gpu":16}']
    for short in ("tpg", "tdb", "tnp", "twk"):
        plane.kubectl("get", short)
    assert "queue.tenure.dev/vision" in plane.kubectl("get", "tenure", "-o", "name")
    client.delete(f"{PATHS['Queue']}/vision")


def test_kubectl_explains_every_field(plane):
    """``kubectl explain`` says of each field what it means, in the words of the documentation."""
    shown = " ".join(plane.kubectl("explain", "queues.tenure.dev.spec").split())
    for sentence in described_as("QueueSpec").values():
        if sentence not in (FIELDS["Queue"][key] for key in ("name", "createdAt", "status")):
            assert sentence in shown


def plain(kind, value):
    """Write the spec of an object as the model would."""
    listed = spec_record(kind).fields.values() if kind != "NodePool" else ()
    if kind == "NodePool":
        return {"scheduler": write_field(next(iter(spec_record(kind).fields.values())), _Pool(value))}
    written = {f.key: write_field(f, value) for f in listed if hasattr(value, f.attribute)}
    return {key: inner for key, inner in written.items() if inner is not NOT_WRITTEN}


class _Pool:
    def __init__(self, scheduler):
        self.scheduler = scheduler


CLASSES = {"Queue": Queue, "PodGroup": Workload, "DisruptionBudget": BudgetRule, "NodePool": Settings}
values = st.sampled_from(sorted(CLASSES)).flatmap(lambda kind: st.tuples(st.just(kind), objects(CLASSES[kind])))
JUNK = st.sampled_from(
    [None, True, 0, 1, -1, 2**31, 0.5, "", "x", "1h", "-1h", "50%", "1/2", [], {}, [{}], {"cpu": "-1"}]
)


def _places(value, at=()):
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*at, key)
            yield from _places(inner, (*at, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield (*at, index)
            yield from _places(inner, (*at, index))


def _with(value, place, junk):
    if not place:
        return junk
    copied = dict(value) if isinstance(value, dict) else list(value)
    copied[place[0]] = _with(value[place[0]], place[1:], junk)
    return copied


@hypothesis_settings(max_examples=150)
@given(values, st.data())
def test_what_the_server_takes_the_scheduler_can_read(client, drawn, data):
    """An object that the API server takes can be read, but for what a structural schema cannot say."""
    kind, spec = drawn[0], plain(*drawn)
    places = list(_places(spec))
    if places:
        spec = _with(spec, data.draw(st.sampled_from(places)), data.draw(JUNK))
    if not verdict(client, kind, spec):
        said = problems(kind, spec)
        assert all(any(word in line for word in LEFT_TO_THE_SCHEDULER) for line in said), said


def problems(kind, spec):
    """Give what the scheduler would say against a spec."""
    if kind == "DisruptionBudget":
        _, said = read(record_of(BudgetRule), {**spec, "name": "x"})
        return said
    report = ProblemReport()
    spec_record(kind).read(spec, (None, "spec"), report)
    return texts(report.problems)


@hypothesis_settings(max_examples=150)
@given(values)
def test_what_the_model_writes_the_server_takes(client, drawn):
    """A valid spec as the model writes it is taken, but for what a structural schema narrows down."""
    kind, value = drawn
    said = verdict(client, kind, plain(kind, value))
    assert not said or list(findings(value)) or any(words in said for words in NARROWED), said


def findings(value):
    """Give what the model finds wrong with a value as a whole."""
    if isinstance(value, Queue):
        return check_queues([replace(value, parent=None)], ())
    return check_workloads([replace(value, queue="default")], ()) if isinstance(value, Workload) else ()


NARROWED = (
    'Invalid value: "number"',  # a share as a number: a percentage as text says the same
    "subGroups[0].subGroups[0].subGroups[0].subGroups",  # deeper than a schema that is written out
    "subGroups[0].subGroups[0].subGroups[1].subGroups",
    "may not be longer than",
    "Too many",
)
LEFT_TO_THE_SCHEDULER = (
    "weight", "placement", "objective", "timeZone", "schedule", "is a list, but a time is expected",
)  # fmt: skip
"""Unions of a number and a mapping, what needs a time zone or a calendar, and a list, which an API server takes for a
text that has a format."""


def test_definitions_are_made_of_the_model():
    """Each field of the model's spec is in the schema, with its sentence, and nothing else is."""
    for resource, definition in zip(RESOURCES, custom_resource_definitions(), strict=True):
        schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
        record = spec_record(resource.kind)
        assert set(schema["properties"]) == set(record.fields)
        said = described_as(record.name)
        assert {key: inner.get("description") for key, inner in schema["properties"].items()} == {
            key: said[key] for key in record.fields
        }
