"""YuniKorn's ``queues.yaml``: read as it is, its rules, and mistakes told with their line."""

# ruff: noqa: E501  one case on a line reads best

from __future__ import annotations

import pytest
from click.testing import CliRunner

from tenure.cli.main import cli
from tenure.model.cluster import Cluster
from tenure.model.entries import MOST
from tenure.model.settings import QuotaPreemptionSettings, Settings
from tenure.model.values.problems import InvalidInputError
from tenure.model.yunikorn.convert import load_queues

MINUTE = 60_000_000
HEAD = "partitions:\n- name: default\n  queues:\n  - name: root\n    queues:\n"


def load(tmp_path, text):
    path = tmp_path / "queues.yaml"
    path.write_text(text)
    return load_queues(path)


def problems(tmp_path, text):
    with pytest.raises(InvalidInputError) as caught:
        load(tmp_path, text)
    return [(p.line, p.path.rpartition("queues")[2], p.message) for p in caught.value.problems]


def test_queues_have_their_full_path_as_names_and_tenures_units(tmp_path):
    found = load(
        tmp_path,
        HEAD
        + """\
    - name: prod
      resources:
        guaranteed: {vcore: 1500m, memory: 1Gi}
        max: {memory: 10T, vcore: 1000, nvidia.com/gpu: 4, pods: 2k}
      properties: {quota.preemption.delay: 15m, preemption.policy: fence}
      queues: [{name: batch}]
""",
    )
    root, prod, batch = found.queues
    assert [q.name for q in found.queues] == ["root", "root.prod", "root.prod.batch"]
    assert (root.parent, prod.parent, batch.parent) == (None, "root", "root.prod")
    assert prod.max == {"memory": 10 * 1000**4, "cpu": 1_000_000, "nvidia.com/gpu": 4000, "pods": 2000}
    assert prod.guaranteed == {"cpu": 1500, "memory": 1 << 30}
    assert prod.quota_preemption_delay == 15 * MINUTE
    assert prod.preemption_policy == "fence"


def test_a_root_that_is_not_written_down_is_added(tmp_path):
    found = load(tmp_path, "partitions: [{name: default, queues: [{name: a}, {name: b}]}]")
    assert [q.name for q in found.queues] == ["root", "root.a", "root.b"]


def test_settings_of_the_partition_count_where_they_are_set(tmp_path):
    text = (
        "partitions: [{name: default, preemption: {quotapreemptionenabled: true}, quota.preemption.inherit: false, "
        "queues: [{name: root}]}]"
    )
    got = under(load(tmp_path, text), QuotaPreemptionSettings(overshoot="never"))
    assert got == QuotaPreemptionSettings(enabled=True, inherit=False, overshoot="never")
    silent = load(tmp_path, "partitions: [{name: default, queues: [{name: root}]}]")
    assert under(silent, QuotaPreemptionSettings(enabled=True)).enabled


def under(queues, before):
    """The settings of quota preemption of a cluster that had others before it was put under these queues."""
    return queues.policy.over(Cluster(now=0, settings=Settings(quota_preemption=before))).settings.quota_preemption


def test_what_decides_nothing_is_accepted_and_listed(tmp_path):
    found = load(
        tmp_path,
        """\
partitions:
- name: default
  placementrules: [{name: tag, value: namespace, create: true}]
  nodesortpolicy: {type: binpacking, resourceweights: {vcore: 1.5}}
  queues:
  - name: root
    submitacl: '*'
    adminacl: admin devs
    queues:
    - name: a
      maxapplications: 5
      limits: [{limit: one, users: [joe], maxapplications: 2}]
      childtemplate: {maxapplications: 1, resources: {max: {vcore: 2}}}
      properties: {application.sort.policy: fifo, owner: somebody}
""",
    )
    listed = {w.message.split(" ")[0]: w.line for w in found.warnings}
    assert listed == {
        "placementrules": 3, "nodesortpolicy": 4, "submitacl": 7, "adminacl": 8, "maxapplications": 11,
        "limits": 12, "childtemplate": 13, "application.sort.policy": 14, "owner": 14,
    }  # fmt: skip


BAD = {
    "a switch that is neither true nor false": (
        "partitions:\n- name: default\n  preemption:\n    quotapreemptionenabled: yes please\n  queues: [{name: root}]\n",
        4, "true or false",
    ),
    "a delay without unit": (HEAD + "    - name: a\n      properties:\n        quota.preemption.delay: 15\n", 8, "no unit"),
    "a negative delay": (HEAD + "    - name: a\n      properties:\n        quota.preemption.delay: -1m\n", 8, "negative"),
    "a delay with a space": (HEAD + "    - name: a\n      properties: {quota.preemption.delay: 15 m}\n", 7, "not a duration"),
    "a delay in years": (HEAD + "    - name: a\n      properties: {quota.preemption.delay: 1y}\n", 7, "not a duration"),
    "a misspelt property": (HEAD + "    - name: a\n      properties: {quota.preemption.dealy: 15m}\n", 7, "quota.preemption.delay"),
    "an unknown property of a known family": (HEAD + "    - name: a\n      properties: {quota.colour: red}\n", 7, "unknown property"),
    "a misspelt key": (HEAD + "    - name: a\n      submitacls: '*'\n", 7, "did you mean submitacl?"),
    "a resource by another name": (HEAD + "    - name: a\n      resources: {max: {cpu: 5}}\n", 7, "vcore"),
    "an unknown resource": (HEAD + "    - name: a\n      resources: {max: {memroy: 5}}\n", 7, "did you mean memory?"),
    "a fraction": (HEAD + "    - name: a\n      resources: {max: {vcore: 1.5}}\n", 7, "whole number"),
    "millicores of memory": (HEAD + "    - name: a\n      resources: {max: {memory: 5m}}\n", 7, "suffixes"),
    "a negative amount": (HEAD + "    - name: a\n      resources: {max: {vcore: -5}}\n", 7, "negative"),
    "guaranteed over max": (HEAD + "    - name: a\n      resources: {guaranteed: {vcore: 6}, max: {vcore: 5}}\n", 7, "more than 5"),
    "a child's max over its parent's": (
        HEAD + "    - name: a\n      resources: {max: {vcore: 5}}\n      queues:\n      - name: b\n        resources: {max: {vcore: 6}}\n",
        10, "queues above it",
    ),
    "guarantees over the parent's": (
        HEAD + "    - name: a\n      resources: {guaranteed: {vcore: 1}}\n      queues: [{name: b, resources: {guaranteed: {vcore: 2}}}]\n",
        7, "together",
    ),
    "more applications than above": (HEAD + "    - name: a\n      maxapplications: 2\n      queues:\n      - name: b\n        maxapplications: 3\n", 10, "more than the 2"),
    "two queues of one name": (HEAD + "    - name: a\n    - name: A\n", 7, "twice"),
    "two roots": ("partitions:\n- name: default\n  queues:\n  - name: root\n  - name: root\n", 5, "second root"),
    "a queue beside the root": ("partitions:\n- name: default\n  queues:\n  - name: root\n  - name: other\n", 5, "beside root"),
    "no queues": ("partitions:\n- name: default\n", 2, "missing"),
    "two partitions of one name": ("partitions:\n- {name: default, queues: [{name: root}]}\n- {queues: [{name: root}]}\n", 3, "twice"),
    "a key that is there twice": (HEAD + "    - name: a\n      parent: true\n      parent: false\n", 8, "twice"),
    "a tab": (HEAD + "    - name: a\n\t  parent: true\n", 7, "tab"),
    "a file cut in the middle": (HEAD + "    - name: a\n      resources: {max: {vcore: 5", 8, "not YAML"),
    "a limit of nobody": (HEAD + "    - name: a\n      limits:\n      - {limit: x, maxapplications: 1}\n", 8, "neither users nor groups"),
    "a name with a space": (HEAD + "    - name: a b\n", 6, "letters, digits"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_a_mistake_is_told_with_its_line(tmp_path, case):
    text, line, words = case
    found = problems(tmp_path, text)
    assert [n for n, _, _ in found] == [line]
    assert words in found[0][2]


def test_all_mistakes_are_told_together(tmp_path):
    text = HEAD + "    - name: a\n      colour: red\n      resources: {guaranteed: {vcore: 6}, max: {vcore: 5}}\n"
    assert [line for line, _, _ in problems(tmp_path, text)] == [7, 8]


def test_validate_knows_the_file_by_its_content(tmp_path):
    path = tmp_path / "anything.yaml"
    path.write_text(HEAD + "    - name: a\n")
    result = CliRunner().invoke(cli, ["validate", str(path)], standalone_mode=False)
    assert "YuniKorn's queues, 1 partition, 2 queues" in result.output


def test_a_short_delay_is_a_warning(tmp_path):
    found = load(tmp_path, HEAD + "    - name: a\n      properties: {quota.preemption.delay: 30s}\n")
    assert [w.line for w in found.warnings] == [7]
    assert "under 60s" in found.warnings[0].message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("partitions:\n" + "- {name: p, queues: [{name: root}]}\n" * 1001, "has 1,001 entries; 1,000 are the most"),
        (HEAD + "    - {name: a}\n" * 100_001, "has 100,001 entries; 100,000 are the most"),
    ],
)
def test_more_than_is_read_is_refused_as_a_whole(tmp_path, text, words):
    with pytest.raises(InvalidInputError) as caught:
        load(tmp_path, text)
    (problem,) = caught.value.problems
    assert words in problem.message


def test_queues_in_all_are_bounded_as_well(tmp_path, monkeypatch):
    monkeypatch.setitem(MOST, "queues", 2)
    load(tmp_path, HEAD + "    - {name: a}\n")
    with pytest.raises(InvalidInputError, match="more than 2 queues in all"):
        load(tmp_path, HEAD + "    - name: a\n      queues: [{name: b}]\n")
