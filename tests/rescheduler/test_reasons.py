"""What users read of moves: which nodes they are about, which waves wait, why none helps, and of whom a pod is told."""

from pathlib import Path

import pytest

from tenure.rescheduler.problem.infeasible import too_little

EXAMPLES = Path(__file__).parents[2] / "examples/rescheduler"

CLUSTER = """
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
scheduler: {rescheduler: {hotNodes: {enabled: true, hot: 50%, for: 1m}}}
nodes:
  - {name: n-0, allocatable: {cpu: "8"}, usage: {cpu: 7}, usageFor: 5m}
  - {name: n-1, allocatable: {cpu: "8"}, usage: {cpu: 3500m}, usageFor: 5m}
workloads:
  - {name: web, minMember: 1, requests: {cpu: 3}, createdAt: 2026-11-20T08:00:00Z, startedAt: 2026-11-20T09:00:00Z,
     tasks: [{name: web-0, node: n-0, usage: {cpu: 4}}, {name: web-1, node: n-0, usage: {cpu: 3}},
             {name: web-2, node: n-1, usage: {cpu: 3}}]}
  - {name: big, replicas: 3, requests: {cpu: 5}, createdAt: 2026-11-20T09:50:00Z}
"""


@pytest.fixture
def words(command):
    """What a command prints, without its line breaks."""
    return lambda *arguments: " ".join(command(*arguments).split())


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER)
    return path


def test_where_no_moves_help_each_plan_says_what_it_was_for_and_why_not(words, file):
    """In units that people use, and without figures that there are not."""
    text = words("reschedule", file, "--drain", "n-0")
    assert (
        "To cool n-0 (hot-node): no moves cool it enough (impossible). All nodes together have "
        "0.5 cores of use below hot free; it takes 3 cores of use below hot." in text
    )
    assert "To empty n-0 (drain): what is there cannot all be moved off (impossible)." in text
    assert (
        "For default/big (pending): no moves make room (impossible). All nodes together have "
        "7 cores free; it takes 15 cores." in text
    )
    assert "cost less than —" not in text


def test_one_of_a_resource_is_one():
    assert too_little("pods", 0, 1) == "all nodes together have 0 pods free; it takes 1 pod"
    assert too_little("nvidia.com/gpu", 1000, 2000) == "all nodes together have 1 GPU free; it takes 2 GPUs"
    assert too_little("x.io/GPUs", 1, 2) == "all nodes together have 1 of x.io/GPUs free; it takes 2 of x.io/GPUs"


def test_a_plan_in_waves_says_which_leave_now_and_the_contender_knows(words):
    """The rest is planned anew, so its steps are not among those of this cycle."""
    file = EXAMPLES / "make-room.yaml"
    text = words("reschedule", file)
    assert "3 moves in 2 waves, of which 1 leaves now: what follows is planned anew once that has landed." in text
    told = words("explain", file, "big", "--set", "scheduler.actions=[reschedule]")
    assert "MovesUnderWay: room is made for it in 2 waves of moves, of which the first leaves now" in told


def test_a_contender_waits_for_a_wave_to_land_and_says_so(words, tmp_path):
    """What the first cycle leaves behind, looked at a second later."""
    after = tmp_path / "after.yaml"
    words("reschedule", EXAMPLES / "make-room.yaml", "--output", after)
    told = words("explain", after, "big", "--set", "scheduler.actions=[reschedule]")
    assert "MovesUnderWay: what moves so that it fits has not landed yet" in told


def test_explain_tells_of_each_task_that_moves_from_where_to_where(words):
    """A line for each."""
    told = words("explain", EXAMPLES / "improve.yaml", "shop")
    assert "1 of its tasks is evicted in this cycle: default/shop moves off a node that is hot (hot-node);" in told
    assert "Moves: shop-2 leaves node-0 and goes on at node-1" in told


def test_why_no_move_helps_says_as_well_what_holds_the_pods_that_run(words, tmp_path):
    """A budget that is used up is no reason to buy a node."""
    path = tmp_path / "held.yaml"
    path.write_text(
        "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnow: 2026-11-20T10:00:00Z\n"
        "scheduler: {actions: [reschedule], disruption: {budgets: [{name: b, maxEvictions: 0, queue: one}]}}\n"
        "nodes: [{name: n, count: 2, allocatable: {cpu: '8'}}]\nqueues: [{name: one}, {name: two}]\nworkloads:\n"
        "  - {name: big, queue: one, createdAt: 2026-11-20T09:50:00Z, requests: {cpu: 8}}\n"
        "  - {name: a, queue: one, requests: {cpu: 4}, createdAt: 2026-11-20T08:00:00Z,\n"
        "     tasks: [{name: a-0, node: n-0}]}\n"
        "  - {name: b, queue: two, requests: {cpu: 2}, createdAt: 2026-11-20T08:00:00Z, preemptible: false,\n"
        "     tasks: [{name: b-0, node: n-1}]}\n"
    )
    told = words("explain", path, "big")
    assert "the largest hole is 6 cores on n-1; pods held where they are: 1 by budget, 1 by preemptibility" in told


PART = """
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
scheduler: {rescheduler: {pendingFor: 0, settle: 0}}
nodes:
- {name: n, gpuMemory: 16Gi, allocatable: {cpu: 4, nvidia.com/gpu: 1}}
- {name: m, gpuMemory: 16Gi, allocatable: {cpu: 4, nvidia.com/gpu: 1}}
queues: [{name: q}]
workloads:
- {name: old, queue: q, requests: {cpu: 1}, gpuFraction: 0.5, startedAt: 2026-11-20T08:00:00Z,
   tasks: [{name: t, node: n, phase: Running, devices: [0]}]}
- {name: big, queue: q, requests: {cpu: 1}, gpuMemory: 80Gi, createdAt: 2026-11-20T08:00:00Z}
- {name: two, queue: q, requests: {cpu: 1}, gpuFraction: 0.5, gpuDevices: 2, createdAt: 2026-11-20T08:00:00Z}
"""


def test_a_part_of_a_gpu_that_no_device_could_give_has_no_plan_and_a_reason(words, tmp_path):
    """More memory than a GPU has, or parts of more GPUs than a node has."""
    file = tmp_path / "cluster.yaml"
    file.write_text(PART)
    for command in ("reschedule", "plan"):
        text = " ".join(words(command, file).split())
        assert "no node that it may use has any room" in text


def test_a_part_of_a_gpu_where_no_node_has_any_is_told_so(words, tmp_path):
    """Whoever asks for one keeps nobody else from being planned for."""
    path = tmp_path / "cluster.yaml"
    path.write_text("""
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, count: 2, allocatable: {cpu: 4}}]
workloads:
  - {name: part, gpuFraction: 500m, requests: {cpu: 1}, createdAt: 2026-11-20T08:00:00Z}
  - {name: plain, requests: {cpu: 1}}
""")
    assert "bind" in words("plan", path)
    told = words("explain", path, "part")
    assert "NeverFits: no node could take one of its tasks even if it were empty: 2 insufficient nvidia.com/gpu" in told
    assert "one node that admits it and has 1 core and room for its part of 1 GPU free" in told
