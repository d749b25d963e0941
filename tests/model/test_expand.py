"""What a cluster file leaves out, and what its short forms stand for."""

from textwrap import dedent

import pytest

from tenure.model.file.load import load_cluster
from tenure.model.selectors import HostPort, LabelSelector, NodeSelectorTerm, Requirement, Toleration
from tenure.model.settings import Settings
from tenure.model.values.duration import parse_time
from tenure.model.workload import GpuShare, Phase

GPU = "nvidia.com/gpu"


@pytest.fixture
def load(tmp_path):
    def run(text):
        path = tmp_path / "c.yaml"
        path.write_text("now: 2026-11-20T10:00:00Z\n" + dedent(text))
        return load_cluster(path).cluster

    return run


def tasks_of(cluster):
    return [(task.name, str(task.phase)) for task in cluster.workloads[0].tasks]


def test_the_documented_example_is_what_it_says(load):
    cluster = load(
        """\
        apiVersion: tenure.dev/v1alpha1
        kind: Cluster
        scheduler: {}
        nodes:
          - name: node
            count: 4
            labels: {pool: a}
            allocatable: {cpu: "96", memory: 768Gi, pods: 110, nvidia.com/gpu: 8}
        queues:
          - {name: research, guaranteed: {nvidia.com/gpu: 16}}
          - name: vision
            parent: research
            guaranteed: {nvidia.com/gpu: 8}
            max: {nvidia.com/gpu: 16}
            reclaimMinRuntime: 1h
        workloads:
          - name: train
            queue: vision
            priority: 50
            minMember: 2
            replicas: 4
            requests: {nvidia.com/gpu: 4, cpu: "8"}
            createdAt: 2026-11-20T08:00:00Z
          - name: serve
            queue: vision
            startedAt: 2026-11-20T09:00:00Z
            tasks:
              - {name: serve-0, requests: {nvidia.com/gpu: 1}, node: node-0, phase: Running}
        """
    )
    assert [node.name for node in cluster.nodes] == ["node-0", "node-1", "node-2", "node-3"]
    assert cluster.nodes[3].allocatable == {"cpu": 96_000, "memory": 768 * 2**30, "pods": 110, GPU: 8}
    assert cluster.queues[1].guaranteed == {GPU: 8_000}
    assert cluster.queues[1].reclaim_min_runtime == 3_600_000_000
    train, serve = cluster.workloads
    assert [task.name for task in train.tasks] == ["train-0", "train-1", "train-2", "train-3"]
    assert train.tasks[0].spec.requests == (("cpu", 8_000), (GPU, 4))
    assert train.created_at == parse_time("2026-11-20T08:00:00Z")
    assert serve.created_at == cluster.now
    assert serve.tasks[0].phase is Phase.RUNNING
    assert (serve.min_member, serve.priority, serve.is_preemptible) == (None, 0, True)


def test_a_count_of_one_keeps_the_name(load):
    assert [n.name for n in load("nodes: [{name: a, count: 1}, {name: b}]").nodes] == ["a", "b"]


def test_a_workload_without_tasks_has_one_and_one_with_an_empty_list_none(load):
    cluster = load("workloads: [{name: w}, {name: v, tasks: []}, {name: u, replicas: 0}]")
    assert [[task.name for task in workload.tasks] for workload in cluster.workloads] == [["w-0"], [], []]


def test_replicas_fill_up_what_is_not_listed(load):
    cluster = load(
        """\
        nodes: [{name: n}]
        workloads: [{name: w, replicas: 4, tasks: [{name: w-1, node: n}, {name: extra, phase: Gated}]}]
        """
    )
    assert tasks_of(cluster) == [("w-1", "Running"), ("extra", "Gated"), ("w-0", "Pending"), ("w-2", "Pending")]


def test_a_phase_of_the_workload_holds_for_tasks_that_name_none(load):
    cluster = load("workloads: [{name: w, phase: Gated, replicas: 2, tasks: [{name: t, phase: Pending}]}]")
    assert tasks_of(cluster) == [("t", "Pending"), ("w-0", "Gated")]


def test_a_workload_without_a_queue_is_in_the_default_one(load):
    assert load("workloads: [{name: w}]").workloads[0].queue == "default"
    assert load("workloads: [{name: w, queue: default}]").workloads[0].queue == "default"


def test_what_a_workload_asks_for_holds_for_each_task_and_a_task_s_own_wins(load):
    cluster = load(
        """\
        workloads:
          - name: w
            requests: {cpu: 1, memory: 1Gi}
            labels: {app: x}
            nodeSelector: {pool: a}
            tasks:
              - {name: a}
              - {name: b, requests: {cpu: 2}}
              - {name: c, labels: {app: y}, nodeSelector: {}}
        """
    )
    a, b, c = (task.spec for task in cluster.workloads[0].tasks)
    assert a.requests == c.requests == (("cpu", 1_000), ("memory", 2**30))
    assert b.requests == (("cpu", 2_000),)
    assert (a.labels, b.labels, c.labels) == ((("app", "x"),), (("app", "x"),), (("app", "y"),))
    assert (a.node_selector, c.node_selector) == ((("pool", "a"),), ())
    assert cluster.workloads[0].labels == {"app": "x"}


def test_what_a_task_says_of_gpus_replaces_all_that_its_workload_says_of_them(load):
    cluster = load(
        """\
        workloads:
          - name: w
            gpuFraction: 500m
            gpuDevices: 2
            requests: {cpu: 1}
            tasks:
              - {name: a}
              - {name: b, gpuMemory: 20Gi}
              - {name: c, requests: {nvidia.com/gpu: 1}}
              - {name: d, requests: {cpu: 2}}
              - {name: e, gpuDevices: 3}
          - name: v
            requests: {nvidia.com/gpu: 1, cpu: 1}
            tasks: [{name: f, gpuFraction: "0.25"}]
        """
    )
    a, b, c, d, e = (task.spec for task in cluster.workloads[0].tasks)
    assert a.gpu_share == d.gpu_share == GpuShare(milli=500, devices=2)
    assert b.gpu_share == GpuShare(memory=20 * 2**30)
    assert (c.gpu_share, c.requests) == (None, ((GPU, 1),))
    assert e.gpu_share == GpuShare(milli=500, devices=3)
    f = cluster.workloads[1].tasks[0].spec
    assert (f.gpu_share, f.requests) == (GpuShare(milli=250), (("cpu", 1_000),))


def test_equal_tasks_share_one_spec(load):
    cluster = load(
        """\
        workloads:
          - {name: w, replicas: 2, requests: {cpu: 1}}
          - {name: v, tasks: [{name: t, requests: {cpu: 1000m, memory: 0}}]}
        """
    )
    specs = [task.spec for workload in cluster.workloads for task in workload.tasks]
    assert len(specs) == 3
    assert all(spec is specs[0] for spec in specs)


def test_tasks_are_in_the_order_that_they_say(load):
    cluster = load(
        "workloads: [{name: w, tasks: [{name: a, order: 3}, {name: b}, {name: c}, {name: d, order: 1}, {name: e}]}]"
    )
    assert [(task.name, task.order) for task in cluster.workloads[0].tasks] == [
        ("b", 1),
        ("d", 1),
        ("c", 2),
        ("a", 3),
        ("e", 4),
    ]


def test_constraints_are_those_of_a_pod_s_spec(load):
    cluster = load(
        """\
        workloads:
          - name: w
            affinity:
              nodeAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  nodeSelectorTerms:
                    - matchExpressions: [{key: pool, operator: In, values: [a, b]}]
                      matchFields: [{key: metadata.name, operator: NotIn, values: [n-3]}]
                preferredDuringSchedulingIgnoredDuringExecution:
                  - {weight: 5, preference: {matchExpressions: [{key: gen, operator: Gt, values: ["3"]}]}}
              podAntiAffinity:
                requiredDuringSchedulingIgnoredDuringExecution:
                  - {topologyKey: zone, labelSelector: {matchLabels: {app: x}}, namespaceSelector: {}}
            tolerations: [{key: gpu, operator: Exists, effect: NoSchedule, tolerationSeconds: 5}]
            topologySpreadConstraints:
              - {maxSkew: 1, topologyKey: zone, whenUnsatisfiable: ScheduleAnyway, labelSelector: {matchLabels: {a: b}}}
            hostPorts: [{hostPort: 80, protocol: UDP}, 443]
            unsupported: [volume data]
            schedulerName: other
        """
    )
    spec = cluster.workloads[0].tasks[0].spec
    pool = Requirement(key="pool", operator="In", values=("a", "b"))
    name = Requirement(key="metadata.name", operator="NotIn", values=("n-3",))
    assert spec.affinity.node.required == (NodeSelectorTerm(match_expressions=(pool,), match_fields=(name,)),)
    assert spec.affinity.node.preferred[0].weight == 5
    term = spec.affinity.pod_anti.required[0]
    assert term.namespace_selector == LabelSelector()
    assert term.selector == LabelSelector(match_labels=(("app", "x"),))
    assert spec.tolerations == (Toleration(key="gpu", operator="Exists", effect="NoSchedule"),)
    assert (spec.spread[0].max_skew, spec.spread[0].when_unsatisfiable) == (1, "ScheduleAnyway")
    assert spec.host_ports == (HostPort(port=80, protocol="UDP"), HostPort(port=443))
    assert spec.unsupported == ("volume data",)
    assert cluster.workloads[0].scheduler_name == "other"


def test_every_field_that_is_written_by_the_scheduler_is_read(load):
    cluster = load(
        """\
        nodes: [{name: n, usage: {nvidia.com/gpu: 500m}, usageFor: 6m, taints: [{key: a, effect: NoExecute}]}]
        queues:
          - name: q
            status:
              quotaPreemption:
                {armedAt: 2026-11-20T09:00:00Z, delay: 2h, deadline: 2026-11-20T11:00:00Z, max: {nvidia.com/gpu: 1}}
              usage: {cpu: 12.5}
        workloads:
          - name: w
            queue: q
            stalenessGracePeriod: -1s
            checkpoint: {interval: 30m, restartOverhead: 62s}
            tasks:
              - name: t
                node: n
                phase: Terminating
                gracePeriod: 40s
                terminates: never
                ready: false
                role: originator
                notice: {deadline: 2026-11-20T10:01:00Z, cause: reclaim, for: default/x}
              - {name: u, nominated: {node: n, devices: [0], at: 2026-11-20T09:59:00Z}}
        evictions:
          - {at: 2026-11-20T09:00:00Z, workload: default/w, task: t, cause: reclaim, for: default/x, from: n, to: n}
        """
    )
    assert cluster.nodes[0].usage == {GPU: 500}
    assert cluster.queues[0].status.quota_preemption.max == {GPU: 1_000}
    assert cluster.queues[0].status.usage == {"cpu": 12.5}
    workload = cluster.workloads[0]
    assert workload.staleness_grace_period == -1_000_000
    assert workload.checkpoint.restart_overhead == 62_000_000
    first, second = workload.tasks
    assert (first.never_terminates, first.ready, first.role) == (True, False, "originator")
    assert first.notice.beneficiary == "default/x"
    assert (second.nominated.node, second.nominated.devices) == ("n", (0,))
    assert (cluster.evictions[0].beneficiary, cluster.evictions[0].from_node) == ("default/x", "n")


def test_every_setting_has_its_documented_default_and_form(load):
    settings = load(
        """\
        scheduler:
          placement: {binpack: 1, fragmentation: 3}
          modes: {reclaim: shadow, preempt: off}
          fairness: {history: {halfLife: 12h}}
          disruption:
            cost: {nvidia.com/gpu: 2}
            budgets:
              - {name: web, selector: {matchLabels: {app: web}}, maxUnavailable: 30%}
              - {name: churn, causes: [reclaim], maxLost: {nvidia.com/gpu: 200h}, per: 1h}
          rescheduler: {hotNodes: {enabled: true, hot: 85%, for: 10m}}
          nominators: {over-share: true, idle: {below: 5%}}
        """
    ).settings
    assert settings.placement == {"binpack": 1.0, "fragmentation": 3.0}
    assert settings.modes == {"reclaim": "shadow", "preempt": "off"}
    assert settings.fairness.history.half_life == 12 * 3_600_000_000
    assert settings.disruption.cost == {GPU: 2.0}
    assert settings.disruption.budgets[0].selector == LabelSelector(match_labels=(("app", "web"),))
    assert settings.disruption.budgets[1].max_lost == {GPU: 200 * 3_600_000_000}
    assert (settings.rescheduler.hot_nodes.hot, settings.rescheduler.hot_nodes.for_) == (0.85, 600_000_000)
    assert settings.nominators.over_share
    assert settings.requeue_delay == 600_000_000


DEFAULTS = """\
scheduler:
  actions: [stale-gang, quota, allocate, consolidate, reclaim, preempt, requeue, reschedule]
  placement: binpack
  backfill: none
  preemptMinRuntime: 0
  reclaimMinRuntime: 0
  minRuntime:
    {method: lca, startsAt: allocated, appliesTo: [reclaim, preempt, requeue, consolidate, reschedule, quota]}
  expectedRuntime: null
  requeueDelay: 10m
  requeue: {contenders: more-deserving, maxCandidates: 8}
  preemptionDelay: 0
  evictionNotice: 0
  modes: {}
  nominationTimeout: 5m
  stalenessGracePeriod: 60s
  maxConsolidatedWorkloads: 16
  quotaPreemption: {enabled: false, inherit: true, overshoot: minimal, maxEvictionsPerCycle: null}
  fairness: {history: null}
  victims: cost
  search: {maxScenarios: 10000}
  disruption:
    cost: {nvidia.com/gpu: 1, cpu: 0.05}
    assumedCheckpoint: null
    maxRestartOverhead: 10m
    budgets: []
  rescheduler:
    pendingFor: 1m
    settle: 1h
    moves: evict-first
    exact: {enabled: true, nodeLimit: 10000, timeLimit: 60s}
    background: {interval: null, objective: {placement: 1}, minGain: 0.01}
    hotNodes: {enabled: false, hot: 90%, for: 5m}
    newNodes: {enabled: false, within: 1h}
  nominators: {over-share: false, idle: {enabled: false, below: 5%, for: 1h}}
"""


def test_the_documented_defaults_are_the_defaults(load):
    assert load(DEFAULTS).settings == Settings()
