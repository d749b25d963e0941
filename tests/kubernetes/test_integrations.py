"""The manifests of the pages on integrations, as they stand, on a real API server with the definitions of their kinds.

Controllers make of them the pods that those of the frameworks make. Each workload starts as a whole and not before, and
goes as a whole for what another queue is owed.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from tests.builders import SECOND, cluster, node, queue
from tests.kubernetes.controllers import JOBS, Controllers
from tests.kubernetes.framework_fields import written_definitions
from tests.kubernetes.frameworks import GPU, PODS
from tests.kubernetes.theatre import Theatre
from tools.controlplane import build
from tools.controlplane.plane import Options as PlaneOptions
from tools.controlplane.plane import Paths

MANIFESTS = Path(__file__).parents[2] / "examples/integrations"
PLANE = PlaneOptions(controllers=False, nodes=False)
POD = {"containers": [{"name": "main", "image": "none"}]}
GPUS = 8
"""GPUs of each of the two nodes."""


class Case(NamedTuple):
    """A manifest and what it comes to: its workload, how many of its pods are needed (by subgroup where it has such).

    ``beyond`` are pods that are not needed; ``late`` come when all others run.
    """

    file: str
    workload: str
    needed: int | dict[str, int]
    beyond: int = 0
    late: int = 0

    @property
    def core(self):
        """How many pods it starts with."""
        return self.needed if isinstance(self.needed, int) else sum(self.needed.values())


CASES = (
    Case("pytorchjob.yaml", "finetune", 3, beyond=1),
    Case("tfjob.yaml", "mnist", 3),
    Case("xgboostjob.yaml", "boost", 3),
    Case("mpijob.yaml", "allreduce", 3),
    Case("appwrapper.yaml", "study", 2),
    Case("trainjob.yaml", "llm", {"node": 2}),
    Case("jobset.yaml", "rollout", {"driver": 1, "workers": 2}),
    Case("raycluster.yaml", "sweep", 2, beyond=3),
    Case("rayjob.yaml", "embed", 3, late=1),
    Case("rayservice.yaml", "chat-q4m9z", 3),
    Case("notebook.yaml", "explore", 1),
    Case("grove.yaml", "serve-0", {"serve-0-prefill": 1, "serve-0-decode": 2}, beyond=1),
    Case("kai.yaml", "rollout", {"actor": 2, "critic": 1}),
    Case("volcano.yaml", "ranking", 2, beyond=1),
    Case("volcano-queue.yaml", "detect", {"master": 1, "worker": 2}),
)


def names_in(value):
    """Give every key in plain values, however deep."""
    if isinstance(value, dict):
        yield from value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for one in inner:
        yield from names_in(one)


def real_definitions():
    """Give the definitions of kinds as the frameworks' own modules have them.

    It is megabytes in all that an API server works through again with each definition, for seconds. Most of that
    describes fields, is older versions than the one that is stored, which is that of the manifests, or is the fields of
    pods' templates of which no manifest has any.
    """
    written = (one for path in MANIFESTS.glob("*.yaml") for one in yaml.safe_load_all(path.read_text()))
    named = frozenset(names_in(list(written)))
    for path in sorted((build.build(build.FRAMEWORKS) / build.FRAMEWORKS.beside).glob("*.yaml")):
        one = yaml.load(path.read_text(), getattr(yaml, "CSafeLoader", yaml.SafeLoader))
        one["spec"]["versions"] = [version for version in one["spec"]["versions"] if version["storage"]]
        yield thinned(one, named)


def thinned(schema, named, *, in_pods=False):
    """Give a schema without what it says in words, and in specs of pods without fields that are never ``named``.

    What is not in a schema is refused: a manifest with a field that its kind does not have is refused as ever. A field
    may be called ``description`` as well.
    """
    if isinstance(schema, list):
        return [thinned(one, named, in_pods=in_pods) for one in schema]
    if not isinstance(schema, dict):
        return schema
    fields = schema.get("properties")
    if not isinstance(fields, dict):
        said = isinstance(schema.get("description"), str)
        return {k: thinned(v, named, in_pods=in_pods) for k, v in schema.items() if not (said and k == "description")}
    in_pods = in_pods or "containers" in fields
    kept = named.union(schema.get("required", ())) if in_pods else fields
    rest = {key: value for key, value in schema.items() if key not in ("properties", "description")}
    return {
        **thinned(rest, named, in_pods=in_pods),
        "properties": {k: thinned(v, named, in_pods=in_pods) for k, v in fields.items() if k in kept},
    }


def kinds():
    if not build.FRAMEWORKS.is_built and shutil.which("go") is None:
        pytest.skip("no definitions of frameworks' kinds here, and no Go to get them with")
    for one in (*real_definitions(), *written_definitions()):
        one["metadata"].setdefault("annotations", {})["api-approved.kubernetes.io"] = "unapproved, for tests"
        yield one


def lending():
    """Give two nodes whose GPUs one of two queues is owed: the other has them while that needs none."""
    nodes = [node(f"n{number}", cpu=96, memory=512, gpu=GPUS) for number in range(2)]
    queues = [queue("vision"), queue("language", guaranteed={"gpu": 2 * GPUS})]
    actions = ("allocate", "reclaim", "stale-gang")
    return cluster(nodes, [], queues, actions=actions, staleness_grace_period=SECOND)


class ManifestTheatre(Theatre):
    """A cluster on which a manifest is applied, with the controllers of its kinds."""

    def __init__(self, plane, file):
        self.plane = plane
        self.applied = []
        told = lending()
        if "kind: Queue" in (MANIFESTS / file).read_text():  # then it is these that count
            told = replace(told, queues=())
        super().__init__(plane, told)
        self.controllers = Controllers(self.operators)

    def apply(self, file):
        """Apply a manifest as it stands, and let controllers act on each object of it."""
        path_of = Paths(self.client)
        for one in yaml.load_all((MANIFESTS / file).read_text(), yaml.CSafeLoader):
            path = path_of(one)
            self.applied.append(f"{path}/{one['metadata']['name']}")
            self.controllers.act(self.client.create(f"{path}?fieldValidation=Strict", one))

    def names(self):
        """Give the names of the pods that are placed."""
        return {p["metadata"]["name"] for p in self.client.get(PODS)["items"] if p["spec"].get("nodeName")}

    def seen(self, name):
        """Give a workload as the scheduler saw it last."""
        (found,) = (w for w in self.play.observed.workloads if w.name == name)
        return found

    def clear(self):
        for path in self.applied:
            self.client.discard(path, {"propagationPolicy": "Background"})
        if self.applied:
            self.controllers.clear()
        super().clear()


@pytest.fixture
def theatre(plane):
    """Give a function that opens the theatre for a manifest, with nothing left of it in the end."""
    made = []

    def opened(file):
        made.append(ManifestTheatre(plane, file))
        return made[-1]

    yield opened
    for one in made:
        one.clear()


def test_kubectl_takes_each_manifest_as_it_stands(plane):
    """All fields are known, and nothing is refused."""
    files = [f"--filename={MANIFESTS / case.file}" for case in CASES]
    said = plane.kubectl("apply", "--validate=strict", "--dry-run=server", *files)
    assert len(said.splitlines()) >= len(files)


def claim_all(theatre):
    """Let the queue that is owed all GPUs ask for them: a gang of a pod for each node."""
    limits = {"limits": {GPU: str(GPUS)}, "requests": {"cpu": "1"}}
    spec = {"schedulerName": "tenure", "restartPolicy": "Never",
            "containers": [{"name": "main", "image": "none", "resources": limits}]}  # fmt: skip
    body = {"metadata": {"name": "owed", "labels": {"tenure.dev/queue": "language"}},
            "spec": {"parallelism": 2, "completions": 2, "template": {"spec": spec}}}  # fmt: skip
    made = theatre.client.create(JOBS, {"apiVersion": "batch/v1", "kind": "Job", **body})
    theatre.controllers.made.append(f"{JOBS}/owed")
    theatre.controllers.job({"apiVersion": "batch/v1", "kind": "Job", **made})


def give_up(theatre):
    """Let what claimed all of them be gone."""
    for name in [name for name in theatre.operators.plans if name.startswith("owed")]:
        del theatre.operators.plans[name]
        theatre.client.delete(f"{PODS}/{name}", {"gracePeriodSeconds": 0})


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.file.removesuffix(".yaml"))
def test_what_a_manifest_makes_starts_as_a_whole_and_goes_as_a_whole(theatre, case):
    """Without one needed pod none is bound; with it all are. For what is owed all go, and all come back after it."""
    theatre = theatre(case.file)
    theatre.apply(case.file)
    names = set(theatre.operators.plans)
    assert len(names) == case.core + case.beyond + case.late
    kept = dict(theatre.operators.plans)
    late = {name for name, plan in kept.items() if plan.after}
    held = sorted(names - late)[: case.beyond + 1]
    for name in held:
        del theatre.operators.plans[name]
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == set(), f"{held} are missing"

    theatre.operators.plans.update(kept)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == names
    seen = theatre.seen(case.workload)
    assert {task.name for task in seen.tasks} == names
    assert seen.queue == "vision"
    if isinstance(case.needed, int):
        assert seen.min_member == case.needed
    else:
        assert {group.name: group.min_member for group in seen.sub_groups} == case.needed

    claim_all(theatre)
    theatre.act()
    theatre.play.go_on()
    owed = {"owed-0", "owed-1"}
    assert theatre.names() == owed
    assert {entry.task for entry in theatre.play.log()} == names
    assert {entry.workload for entry in theatre.play.log()} == {f"default/{case.workload}"}

    give_up(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == names


def test_each_group_of_a_leader_worker_set_starts_and_goes_as_a_whole(theatre):
    """The group whose worker is missing waits, the other one starts; the worker's set is owned by the leader's pod."""
    theatre = theatre("leaderworkerset.yaml")
    theatre.apply("leaderworkerset.yaml")
    kept = dict(theatre.operators.plans)
    assert set(kept) == {"serve-0", "serve-0-1", "serve-1", "serve-1-1"}
    del theatre.operators.plans["serve-1-1"]
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == {"serve-0", "serve-0-1"}
    theatre.operators.plans.update(kept)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == set(kept)
    for group in ("serve-0", "serve-1"):
        seen = theatre.seen(group)
        assert ([task.name for task in seen.tasks], seen.min_member) == ([group, f"{group}-1"], 2)
        assert seen.queue == "vision"
    claim_all(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == {"owed-0", "owed-1"}
    assert {(entry.workload, entry.task) for entry in theatre.play.log()} == {
        (f"default/{name[:7]}", name) for name in kept
    }
    give_up(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == set(kept)


def test_executors_of_a_spark_application_leave_before_its_driver_which_has_no_gpus(theatre):
    """They come when the driver runs and are not needed; what is owed all GPUs takes these, and they come back."""
    theatre = theatre("sparkapplication.yaml")
    theatre.apply("sparkapplication.yaml")
    executors = {"etl-exec-1", "etl-exec-2"}
    theatre.act()
    assert {p["metadata"]["name"] for p in theatre.client.get(PODS)["items"]} == {"etl-driver"}
    theatre.play.go_on()
    assert theatre.names() == {"etl-driver", *executors}
    seen = theatre.seen("etl")
    assert ({task.name for task in seen.tasks}, seen.min_member) == ({"etl-driver", *executors}, 1)
    assert seen.queue == "vision"
    claim_all(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == {"etl-driver", "owed-0", "owed-1"}
    assert {entry.task for entry in theatre.play.log()} == executors
    give_up(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == {"etl-driver", *executors}


def test_a_driver_as_spark_submit_makes_it_is_one_workload_with_its_executors(theatre):
    """Nothing owns the driver, and it owns them."""
    theatre = theatre("spark.yaml")
    theatre.apply("spark.yaml")
    template = yaml.load((MANIFESTS / "spark.yaml").read_text(), yaml.CSafeLoader)
    for number in (1, 2):
        labels = {"spark-role": "executor", "spark-app-name": "etl"}
        body = {"metadata": {"name": f"etl-exec-{number}", "labels": labels}, "spec": template["spec"]}
        theatre.operators.keep(body, driver="etl-driver")
    theatre.play.go_on()
    assert theatre.names() == {"etl-driver", "etl-exec-1", "etl-exec-2"}
    seen = theatre.seen("etl-driver")
    assert ({task.name for task in seen.tasks}, seen.min_member) == (theatre.names(), 1)
    assert seen.queue == "vision"


def test_each_pod_of_an_argo_workflow_is_a_workload_of_its_own(theatre):
    """The first step runs though the second, which depends on it, is not there; each is evicted by itself."""
    theatre = theatre("workflow.yaml")
    theatre.apply("workflow.yaml")
    theatre.act()
    assert {p["metadata"]["name"] for p in theatre.client.get(PODS)["items"]} == {"etl-fetch", "etl-index"}
    theatre.play.go_on()
    assert theatre.names() == {"etl-fetch", "etl-index", "etl-train"}
    for name in theatre.names():
        seen = theatre.seen(name)
        assert ([task.name for task in seen.tasks], seen.queue) == ([name], "vision")
    claim_all(theatre)
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == {"etl-fetch", "etl-index", "owed-0", "owed-1"}, "only the last has GPUs"
    assert {entry.workload for entry in theatre.play.log()} == {"default/etl-train"}


def test_a_pod_of_a_workflow_that_is_not_there_is_placed_by_itself(theatre):
    """The pod of the page as it stands: its owner cannot be found, and it waits for nobody."""
    theatre = theatre("argo.yaml")
    theatre.apply("argo.yaml")
    theatre.play.go_on()
    assert theatre.names() == {"etl-1337"}
    assert theatre.seen("etl-1337").queue == "vision"


def near(tier):
    return {"mode": "hard", "highestTierAllowed": tier}


def volcano_group(tier):
    """Give a PodGroup of two subgroups of three pods, each of which is to be near one another, and all in a tier."""
    policy = {"name": "part", "matchLabelKeys": ["part"], "subGroupSize": 3, "minSubGroups": 2,
              "networkTopology": near(1)}  # fmt: skip
    return {
        "apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup",
        "metadata": {"name": "parted", "namespace": "default"},
        "spec": {"minMember": 6, "queue": "vision", "subGroupPolicy": [policy], "networkTopology": near(tier)},
    }  # fmt: skip


def hyper_nodes():
    """Give a HyperNode for each node, and one around both."""
    for name, tier, kind, inside in (("r0", 1, "Node", "n0"), ("r1", 1, "Node", "n1"), ("row", 2, "HyperNode", "r.")):
        members = [{"type": kind, "selector": {"regexMatch": {"pattern": f"^{inside}$"}}}]
        yield {"apiVersion": "topology.volcano.sh/v1alpha1", "kind": "HyperNode", "metadata": {"name": name},
               "spec": {"tier": tier, "members": members}}  # fmt: skip


def test_subgroups_of_volcano_start_together_and_each_under_one_hyper_node(theatre, tmp_path):
    """A node has room for four of the pods: without the constraint one of the second subgroup would be on the first."""
    theatre = theatre("tfjob.yaml")
    file = tmp_path / "parted.yaml"
    file.write_text(yaml.safe_dump_all([*hyper_nodes(), volcano_group(tier=1)]))
    theatre.apply(file)
    owner = theatre.operators.create("ReplicaSet", "parted", {
        "selector": {"matchLabels": {"app": "parted"}},
        "template": {"metadata": {"labels": {"app": "parted"}}, "spec": POD},
    })  # fmt: skip
    for part in "ab":
        for number in range(3):
            theatre.operators.wants(f"parted-{part}-{number}", owner, 2, part=part)
            plan = theatre.operators.plans[f"parted-{part}-{number}"]
            plan.body["metadata"]["annotations"] = {"scheduling.k8s.io/group-name": "parted"}
    theatre.act()
    theatre.play.go_on()
    assert theatre.names() == set(), "all of it is to be under one HyperNode, and none has room"
    theatre.plane.apply(volcano_group(tier=2))
    theatre.play.go_on()
    places = {p["metadata"]["name"]: p["spec"].get("nodeName") for p in theatre.client.get(PODS)["items"]}
    assert {places[f"parted-a-{n}"] for n in range(3)} | {places[f"parted-b-{n}"] for n in range(3)} == {"n0", "n1"}
    assert all(len({places[f"parted-{part}-{n}"] for n in range(3)}) == 1 for part in "ab")


def test_a_field_that_a_kind_does_not_have_is_refused(plane, tmp_path):
    """What the manifests are checked with knows the fields: another is an error."""
    for name, right, wrong in (("tfjob.yaml", "replicas: 2", "replica: 2"), ("grove.yaml", "minAvailable", "minimum")):
        changed = tmp_path / name
        changed.write_text((MANIFESTS / name).read_text().replace(right, wrong))
        with pytest.raises(Exception, match="unknown field"):
            plane.kubectl("apply", "--validate=strict", "-f", str(changed))
