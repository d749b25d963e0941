"""``--set``: the same values, checks and words as in files."""

import pytest

from tenure.model.cluster import Cluster
from tenure.model.file.load import load_cluster
from tenure.model.file.override import apply_overrides, apply_settings_overrides
from tenure.model.settings import PatienceRule, Settings
from tenure.model.values.duration import parse_time
from tenure.model.values.problems import InvalidInputError

GPU = "nvidia.com/gpu"


@pytest.fixture
def cluster(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text(
        """\
now: 2026-11-20T10:00:00Z
nodes: [{name: n, allocatable: {nvidia.com/gpu: 8}}]
queues:
- {name: root, max: {nvidia.com/gpu: 8}}
- {name: root.prod, parent: root, max: {nvidia.com/gpu: 4}}
- {name: root.prod.batch, parent: root.prod}
- {name: root.dev, parent: root}
- {name: root.dev.web, parent: root.dev}
- {name: root.prod.web, parent: root.prod}
workloads:
- {name: train, queue: root.prod.batch}
- {name: train.v2, queue: root.prod.batch}
"""
    )
    return load_cluster(path).cluster


def queue(cluster, name):
    return next(queue for queue in cluster.queues if queue.name == name)


def problems_of(cluster, *overrides):
    with pytest.raises(InvalidInputError) as caught:
        apply_overrides(cluster, overrides)
    return [str(problem) for problem in caught.value.problems]


def test_a_changed_max_is_a_change_of_configuration_and_told_with_what_it_was(cluster):
    done = apply_overrides(cluster, ["queue.root.prod.max.nvidia.com/gpu=2500m", "queue.root.prod.batch.max.cpu=4"])
    assert queue(done.cluster, "root.prod").max == {GPU: 2_500}
    assert done.max_changes == {"root.prod": {GPU: 4_000}, "root.prod.batch": {"cpu": None}}
    assert queue(cluster, "root.prod").max == {GPU: 4_000}


def test_a_max_can_be_taken_away(cluster):
    done = apply_overrides(cluster, ["queue.root.prod.max.nvidia.com/gpu=null"])
    assert queue(done.cluster, "root.prod").max == {}
    assert done.max_changes == {"root.prod": {GPU: 4_000}}


def test_setting_what_is_there_already_changes_nothing(cluster):
    assert apply_overrides(cluster, ["queue.root.prod.max.nvidia.com/gpu=4"]).max_changes == {}
    assert apply_overrides(cluster, []).cluster is cluster


def test_a_last_part_that_is_unique_names_a_queue(cluster):
    done = apply_overrides(cluster, ["queue.batch.reclaimMinRuntime=1h", "queue.batch.max.vcore=2"])
    assert queue(done.cluster, "root.prod.batch").reclaim_min_runtime == 3_600_000_000
    assert queue(done.cluster, "root.prod.batch").max == {"cpu": 2_000}
    assert problems_of(cluster, "queue.web.priority=5") == [
        "--set: queue.web.priority=5: may mean root.dev.web or root.prod.web; write the full name"
    ]


def test_everything_that_is_documented_can_be_set(cluster):
    done = apply_overrides(
        cluster,
        [
            "now=2026-11-20T11:00:00Z",
            "workload.default/train.priority=-7",
            "workload.default/train.v2.priority=9",
            "workload.default/train.checkpoint.interval=30m",
            "scheduler.backfill=easy",
            "scheduler.placement.binpack=1",
            "scheduler.placement.spread=1e-1",
            "scheduler.actions=allocate,reclaim",
            "scheduler.modes={reclaim: off}",
            "scheduler.fairness.history.strength=2",
            "scheduler.disruption.cost.nvidia.com/gpu=3",
            "scheduler.rescheduler.exact.enabled=false",
            "scheduler.nominators.idle.below=7%",
            "scheduler.worth.patience.reclaim.factor=2",
            "scheduler.worth.patience.reclaim.atMost=4h",
            "queue.root.dev.patience.requeue.ahead=0",
            "queue.root.dev.weight.cpu=2",
            "queue.root.dev.preemptionPolicy=fence",
        ],
    ).cluster
    assert done.now == parse_time("2026-11-20T11:00:00Z")
    assert [workload.priority for workload in done.workloads] == [-7, 9]
    assert done.workloads[0].checkpoint.interval == 1_800_000_000
    settings = done.settings
    assert (settings.backfill, settings.placement) == ("easy", {"binpack": 1.0, "spread": 0.1})
    assert (settings.actions, settings.modes) == (("allocate", "reclaim"), {"reclaim": "off"})
    assert settings.fairness.history.strength == 2
    assert settings.fairness.history.half_life == 24 * 3_600_000_000
    assert settings.disruption.cost == {GPU: 3.0, "cpu": 0.05}
    assert not settings.rescheduler.exact.enabled
    assert settings.nominators.idle.below == 0.07
    assert settings.worth.patience == {"reclaim": PatienceRule(factor=2.0, at_most=4 * 3_600_000_000)}
    assert queue(done, "root.dev").patience == {"requeue": PatienceRule(ahead=0)}
    assert queue(done, "root.dev").weight == {"cpu": 2.0}
    assert queue(done, "root.dev").preemption_policy == "fence"


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("queue.rot.max.cpu=1", "there is no queue rot; did you mean root?"),
        ("queue.root=1", "names a queue, but nothing of it"),
        ("queue.root.name=x", "unknown key name"),
        ("queue.root.maxx.cpu=1", "unknown key maxx; did you mean max?"),
        ("queue.root.max.cpu=-1", "-1 is negative"),
        ("queue.root.max.cpu=1K", "'1K' is not a quantity"),
        ("queue.root.max=5", "amounts by resource are expected"),
        ("queue.root.priority.x=5", "priority has no parts"),
        ("queue.root.reclaimMinRuntime=600", "600 has no unit"),
        ("queue.root.reclaimMinRuntime=-1h", "is negative"),
        ("queue.root.max.nvidia.com/gpu=2", "root.prod: 4 is more than 2, the max of queue root above it"),
        ("queue.root.parent=root.prod", "is its own ancestor"),
        ("queue.root.guaranteed.nvidia.com/gpu=9", "9 is more than the queue's max of 8"),
        ("scheduler.backfil=easy", "unknown key backfil; did you mean backfill?"),
        ("scheduler.backfill=hard", "one of none | easy is expected"),
        ("scheduler.placement.binpack=0", "no weight above 0"),
        ("scheduler.actions=alocate", "did you mean allocate?"),
        ("scheduler.worth.patience.reclam.factor=2", "did you mean reclaim?"),
        ("scheduler.worth.patience.reclaim.fctor=2", "unknown key fctor; did you mean factor?"),
        ("scheduler.modes={reclaim: [}", "is not YAML"),
        ("scheduler=1", "names nothing that can be set"),
        ("workload.train.priority=1", "there is no workload train; did you mean default/train?"),
        ("workload.default/train.priority=2147483648", "-2147483648 to 2147483647 is expected"),
        ("workload.default/train.name=x", "unknown key name"),
        ("workload.default/train.queue=root", "workloads live in leaf queues only"),
        ("now=5", "a time is expected"),
        ("now=", "a time is expected"),
        ("now", "has no '='"),
        ("", "has no '='"),
        ("=", "names nothing that can be set"),
        ("colour=blue", "names nothing that can be set"),
    ],
)
def test_a_wrong_override_is_named_with_what_would_be_right(cluster, override, words):
    problems = problems_of(cluster, override)
    assert all(problem.startswith(f"--set: {override}: " if override else "--set: ") for problem in problems)
    assert any(words in problem for problem in problems), problems


def test_all_wrong_overrides_are_told_at_once(cluster):
    assert len(problems_of(cluster, "queue.x.max.cpu=1", "now=5", "scheduler.backfill=easy", "y=1")) == 3


def test_where_no_queues_are_configured_none_can_be_set():
    assert problems_of(Cluster(now=0), "queue.a.max.cpu=1") == [
        "--set: queue.a.max.cpu=1: there is no queue a; no queues are configured"
    ]


def test_a_warning_that_an_override_causes_names_it(cluster):
    overrides = ["queue.root.dev.guaranteed.cpu=1", "queue.root.dev.web.guaranteed.cpu=2"]
    warnings = apply_overrides(cluster, overrides).warnings
    assert warnings[0].path in overrides
    assert "more than the 1 of this one" in warnings[0].message


def test_settings_alone_take_only_settings():
    assert apply_settings_overrides(Settings(), ["scheduler.backfill=easy"]).backfill == "easy"
    with pytest.raises(InvalidInputError, match=r"write scheduler\.KEY=VALUE") as caught:
        apply_settings_overrides(Settings(), ["queue.a.max.cpu=1", "now=x", "scheduler.victims=youngest"])
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("typed", ["gpu", "gpus", "GPU"])
def test_a_resource_is_also_guessed_by_what_stands_behind_its_domain(cluster, typed):
    assert problems_of(cluster, f"queue.root.prod.max.{typed}=3")[0].endswith("did you mean nvidia.com/gpu?")


def test_a_max_of_a_resource_that_is_nowhere_gives_a_warning(cluster):
    (warning,) = apply_overrides(cluster, ["queue.root.prod.max.nvidia.com/gp=3"]).warnings
    assert "so this bounds nothing; did you mean nvidia.com/gpu?" in str(warning)
