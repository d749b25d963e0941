"""Each rule of a cluster file alone: what is wrong, in which line, at which path."""

from textwrap import dedent

import pytest
from tests.model.rule_cases import PLACEMENT, QUEUES, SETTINGS, WORKLOADS

from tenure.model.file.load import load_cluster
from tenure.model.values.problems import InvalidInputError

HEAD = "now: 2026-11-20T10:00:00Z\n"
NAMED = "apiVersion: tenure.dev/v1alpha1\nkind: Cluster\n" + HEAD


def load(tmp_path, text, head=HEAD):
    path = tmp_path / "c.yaml"
    path.write_text(head + dedent(text), encoding="utf-8")
    return load_cluster(path)


def problems_of(tmp_path, text):
    with pytest.raises(InvalidInputError) as caught:
        load(tmp_path, text)
    return caught.value.problems


ALL = {**QUEUES, **WORKLOADS, **PLACEMENT, **SETTINGS}


@pytest.mark.parametrize("case", ALL.values(), ids=ALL.keys())
def test_each_rule_names_its_place_and_what_would_be_right(tmp_path, case):
    text, path, words = case
    problems = problems_of(tmp_path, text)
    found = [problem for problem in problems if problem.path == path]
    assert found, problems
    assert words in found[0].message
    assert {problem.path for problem in problems} - {path} <= (set(_others(path)))
    assert found[0].line >= 2


def _others(path):
    """Of a cycle each queue is named; everything else is one problem alone."""
    return {f"queues[{i}].parent" for i in range(3)} if path == "queues[0].parent" else set()


WARNINGS = {
    "children that are guaranteed more than the parent": (
        "queues: [{name: p, guaranteed: {cpu: 1}}, {name: a, parent: p, guaranteed: {cpu: 2}}]",
        "queues[0].guaranteed.cpu",
        "more than the 1 of this one, which bind",
    ),
    "guarantees above the cluster": (
        "nodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}]\nqueues: [{name: a, guaranteed: {nvidia.com/gpu: 2}}]",
        "queues",
        "guaranteed 2 of nvidia.com/gpu together, more than the 1 that all nodes have",
    ),
    "guarantees of what is a typing error": (
        "nodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}]\nqueues: [{name: a, guaranteed: {nvidia.com/gpus: 2}}]",
        "queues",
        "guaranteed 2 of nvidia.com/gpus together, more than the 0 that all nodes have; did you mean nvidia.com/gpu?",
    ),
    "a max of what is a typing error": (
        "nodes: [{name: n, allocatable: {nvidia.com/gpu: 1}}]\nqueues: [{name: a, max: {nvidia.com/gpus: 2}}]",
        "queues[0].max.nvidia.com/gpus",
        "any nvidia.com/gpus, and nothing asks for it, so this bounds nothing; did you mean nvidia.com/gpu?",
    ),
    "a max of what is nowhere": (
        "nodes: [{name: n, allocatable: {cpu: 1}}]\nqueues: [{name: a, max: {example.org/licence: 2}}]",
        "queues[0].max.example.org/licence",
        "so this bounds nothing; leave it out, or name a resource that nodes have",
    ),
    "a node over its capacity": (
        (
            "nodes: [{name: n, allocatable: {cpu: 1}}]\n"
            "workloads: [{name: w, requests: {cpu: 600m}, tasks: [{name: t, node: n}, {name: u, node: n}]}]"
        ),
        "nodes[0].allocatable.cpu",
        "hold 1200m of cpu, more than its 1",
    ),
    "more pods than a node takes": (
        (
            "nodes: [{name: n, allocatable: {pods: 1}}]\n"
            "workloads: [{name: w, tasks: [{name: t, node: n}, {name: u, node: n}]}]"
        ),
        "nodes[0].allocatable.pods",
        "hold 2 of pods, more than its 1",
    ),
    "a delay of quota preemption under a minute": (
        "queues: [{name: q, quotaPreemptionDelay: 59s}]",
        "queues[0].quotaPreemptionDelay",
        "is under 60s",
    ),
    "a gang of which not all exist": (
        "workloads: [{name: w, minMember: 3, replicas: 2}]",
        "workloads[0].minMember",
        "2 tasks",
    ),
}


@pytest.mark.parametrize("case", WARNINGS.values(), ids=WARNINGS.keys())
def test_what_is_odd_but_possible_is_a_warning(tmp_path, case):
    text, path, words = case
    warnings = load(tmp_path, text, NAMED).warnings
    assert [warning.path for warning in warnings] == [path]
    assert words in warnings[0].message
    assert warnings[0].line >= 2


VALID = {
    "a pending fraction where no node has GPUs": "nodes: [{name: n}]\nworkloads: [{name: w, gpuFraction: 500m}]",
    "thirds of a device's memory": (
        "nodes: [{name: n, gpuMemory: 10, allocatable: {nvidia.com/gpu: 1}}]\n"
        "workloads: [{name: w, gpuMemory: 3, tasks: [{name: a, node: n, devices: [0]},"
        " {name: b, node: n, devices: [0]},"
        " {name: c, node: n, devices: [0]}]}]"
    ),
    "pods of another scheduler without a queue": (
        "queues: [{name: a}]\nworkloads: [{name: w, schedulerName: default-scheduler}]"
    ),
    "one name in two namespaces": "workloads: [{name: w}, {name: w, namespace: other}]",
    "priorities at the ends of int32": (
        "workloads: [{name: w, priority: 2147483647}, {name: v, priority: -2147483648}]"
    ),
    "a leaf queue named default": "queues: [{name: default}]\nworkloads: [{name: w}]",
    "an ended task on a node that is gone": (
        "workloads: [{name: w, tasks: [{name: t, phase: Succeeded, node: gone}]}]"
    ),
    "a workload that asks for nothing": "workloads: [{name: w, requests: {cpu: 0}}]",
    "a start in the future": "workloads: [{name: w, startedAt: 2030-01-01T00:00:00Z}]",
    "two queues that fence each other": (
        "queues: [{name: a, preemptionPolicy: fence}, {name: b, preemptionPolicy: fence}]"
    ),
    "keys with nothing behind them": "nodes:\nqueues:\nworkloads: [{name: w, labels: , queue: null}]",
    "a mode of off without quotes": "scheduler: {modes: {reclaim: off}}",
    "explicit zeros": "queues: [{name: a, reclaimMinRuntime: 0, max: {cpu: 0}, weight: 0}]",
}


@pytest.mark.parametrize("text", VALID.values(), ids=VALID.keys())
def test_what_the_rules_allow_loads_without_a_word(tmp_path, text):
    assert load(tmp_path, text, NAMED).warnings == ()


def test_all_problems_of_a_file_are_told_at_once_in_its_order(tmp_path):
    problems = problems_of(
        tmp_path,
        """\
        queues:
          - {name: a, guarantee: {cpu: 1}}
          - {name: b, parent: c}
        nodes:
          - {name: n, allocatable: {cpu: 1K}}
        workloads:
          - name: w
            queue: d
            tasks:
              - {name: t, node: m, started: now}
        """,
    )
    assert [(problem.line, problem.path) for problem in problems] == [
        (3, "queues[0].guarantee"),
        (4, "queues[1].parent"),
        (6, "nodes[0].allocatable.cpu"),
        (9, "workloads[0].queue"),
        (11, "workloads[0].tasks[0].started"),
        (11, "workloads[0].tasks[0].node"),
    ]


def test_a_problem_reads_file_line_path_and_words(tmp_path):
    problem = problems_of(tmp_path, "queues: [{name: a, weigth: 2}]")[0]
    assert str(problem) == f"{tmp_path}/c.yaml:2: queues[0].weigth: unknown key; did you mean weight?"


def test_lines_are_those_of_listed_tasks_where_order_moves_them(tmp_path):
    problems = problems_of(
        tmp_path,
        """\
        nodes: [{name: n}]
        workloads:
          - name: w
            tasks:
              - {name: a, order: 5, node: x}
              - {name: b, order: 1, node: n}
        """,
    )
    assert [(problem.line, problem.path) for problem in problems] == [(6, "workloads[0].tasks[0].node")]


def test_more_problems_than_anybody_reads_are_counted(tmp_path):
    text = "workloads:\n" + "".join(f"- {{name: w{i}, bad: 1}}\n" for i in range(1500))
    problems = problems_of(tmp_path, text)
    assert len(problems) == 1001
    assert problems[-1].message == "500 further problems are not shown"


def test_now_is_needed_where_there_are_workloads_and_only_there(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("workloads: [{name: w}]")
    with pytest.raises(InvalidInputError, match="now: is missing"):
        load_cluster(path)
    path.write_text("nodes: [{name: n}]")
    assert load_cluster(path).cluster.now == 0


def test_a_file_that_does_not_say_what_it_is_gets_a_warning(tmp_path):
    (warning,) = load(tmp_path, "nodes: []\n").warnings
    assert "'apiVersion: tenure.dev/v1beta1' and 'kind: Cluster' are missing" in warning.message
    (warning,) = load(tmp_path, "nodes: []\n", "kind: Cluster\n" + HEAD).warnings
    assert "'apiVersion: tenure.dev/v1beta1' is missing" in warning.message
    assert load(tmp_path, "nodes: []\n", NAMED).warnings == ()
