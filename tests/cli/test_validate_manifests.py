"""``tenure validate`` on manifests: policy as code, all problems of all files at once."""

import json

import pytest

HEAD = "apiVersion: tenure.dev/v1alpha1\n"
QUEUE = HEAD + "kind: Queue\nmetadata: {name: research}\nspec: {max: {cpu: 8}}\n"
CHILD = HEAD + "kind: Queue\nmetadata: {name: vision}\nspec: {parent: research, max: {cpu: 4}}\n"
POOL = HEAD + "kind: NodePool\nmetadata: {name: default}\nspec: {scheduler: {backfill: easy}}\n"
BUDGET = HEAD + "kind: DisruptionBudget\nmetadata: {name: calm}\nspec: {queue: vision, maxEvictions: 3, per: 10m}\n"
FOREIGN = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: d}\nspec: {whatever: 1}\n"
ALL = f"{QUEUE}---\n{CHILD}---\n{POOL}---\n{BUDGET}---\n{FOREIGN}"


@pytest.fixture
def validate(tmp_path, monkeypatch, run_command):
    monkeypatch.chdir(tmp_path)

    def run(files, *options):
        for name, content in files.items():
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (tmp_path / name).write_text(content)
        return run_command("validate", *options, *files)

    return run


def test_what_is_tenures_is_counted_by_kind_and_the_rest_passed_over(validate):
    code, out, err = validate({"p.yaml": ALL})
    assert (code, err) == (0, "")
    assert out == (
        "p.yaml: valid, 1 DisruptionBudget, 1 NodePool, 2 Queues; 1 other object passed over (1 Deployment)\n"
    )


def test_all_problems_of_all_documents_have_line_and_path(validate):
    broken = (
        ALL.replace("{max: {cpu: 4}}", "")
        .replace("parent: research, max: {cpu: 4}", "parent: reserch, quota: 4")
        .replace("easy", "hard")
        .replace("queue: vision", "queue: nope")
    )
    code, out, err = validate({"p.yaml": broken})
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "p.yaml:9: spec.quota: unknown key; leave it out",
        "p.yaml:9: spec.parent: there is no queue reserch; did you mean research?",
        "p.yaml:14: spec.scheduler.backfill: is 'hard' (text), but one of none | easy is expected",
        "p.yaml:19: spec.queue: there is no queue nope; name one of the queues",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            QUEUE.replace("v1alpha1", "v9"),
            "1: apiVersion: is tenure.dev/v9; write tenure.dev/v1beta1 or tenure.dev/v1alpha1",
        ),
        (QUEUE.replace("Queue", "Quue"), "2: kind: tenure.dev has no kind Quue; did you mean Queue?"),
        (QUEUE.replace(HEAD, ""), "1: apiVersion: is missing; write tenure.dev/v1beta1 or tenure.dev/v1alpha1"),
        (QUEUE.replace("{name: research}", "{}"), "3: metadata.name: is missing; it is required"),
        (QUEUE.replace("research", "a b"), "3: metadata.name: is 'a b', but a name has at least one character"),
        (QUEUE.replace("spec", "sepc"), "4: sepc: unknown key; did you mean spec?"),
        (QUEUE + "---\n" + QUEUE, "8: metadata.name:"),
        (BUDGET + "---\n" + BUDGET, "8: metadata.name: calm is there twice, first in p.yaml"),
        (BUDGET.replace(", per: 10m", ""), "4: spec.per: is missing; say for which window the bound holds"),
    ],
)
def test_each_kind_of_mistake_is_named(validate, text, said):
    code, _, err = validate({"p.yaml": text})
    assert code == 1
    assert any(line.startswith(f"p.yaml:{said}") for line in err.splitlines()), err


def test_a_kind_of_workloads_is_checked_with_its_own_rules(validate):
    kind = HEAD + "kind: WorkloadKind\nmetadata: {name: k}\nspec: {group: x.io, version: v1, kind: K, unit: label}\n"
    code, _, err = validate({"k.yaml": kind})
    assert code == 1
    assert err.startswith("k.yaml:4: spec.unit")
    code, out, _ = validate({"k.yaml": kind.replace("unit: label", "unit: owner")})
    assert (code, out) == (0, "k.yaml: valid, 1 WorkloadKind\n")


def test_a_queue_and_its_parent_may_stand_in_two_files(validate):
    assert validate({"a/child.yaml": CHILD, "a/parent.yaml": QUEUE})[0] == 0
    code, out, _ = validate({}, "a")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == ["a/child.yaml", "a/parent.yaml"]
    assert "there is no queue research" in validate({"a/child.yaml": CHILD})[2]


def test_a_list_is_its_items(validate):
    listed = HEAD.replace("tenure.dev/v1alpha1", "v1") + "kind: List\nitems:\n" + "".join(
        f"- {text.replace(chr(10), chr(10) + '  ').rstrip()}\n" for text in (QUEUE, CHILD)
    )  # fmt: skip
    assert validate({"l.yaml": listed})[1] == "l.yaml: valid, 2 Queues\n"
    typed = HEAD + "kind: QueueList\nitems:\n- {metadata: {name: a}, spec: {parent: b}}\n"
    assert validate({"t.yaml": typed})[2].startswith("t.yaml:4: items[0].spec.parent: there is no queue b")


def test_settings_in_a_config_map_are_checked_with_their_own_lines(validate):
    text = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  config.yaml: |\n    kind: SchedulerConfig\n"
    text += "    scheduler: {backfill: hard}\n"
    code, _, err = validate({"c.yaml": text})
    assert code == 1
    assert err.startswith("c.yaml:5: data.config.yaml: line 2: scheduler.backfill: is 'hard' (text)")


def test_what_install_prints_is_valid(validate, run_command):
    """All of it is read: its settings are checked, all else is passed over with a count."""
    code, printed, _ = run_command("install", "--console")
    assert code == 0
    code, out, err = validate({"install.yaml": printed}, "--format", "json")
    assert (code, err) == (0, "")
    (result,) = json.loads(out)["files"]
    assert result["objects"] == {"SchedulerConfig": 1}
    assert result["passedOver"]["CustomResourceDefinition"] >= 4
    assert sum(result["passedOver"].values()) == printed.count("\nkind: ")


def test_a_cluster_file_may_stand_beside_manifests(validate):
    cluster = HEAD + "kind: Cluster\nnow: soon\n"
    code, _, err = validate({"p.yaml": ALL + "---\n" + cluster})
    assert code == 1
    assert err.startswith("p.yaml:28: now: 'soon' is not a time")
