"""Work on an input is bounded: names, levels, cycles, tasks, hints."""

import time

import pytest

from tenure.model.file.load import load_cluster
from tenure.model.values.problems import InvalidInputError, NearestNames, nearest

NOW = "now: 2026-11-20T10:00:00Z\n"


def problems(tmp_path, text):
    path = tmp_path / "c.yaml"
    path.write_text(NOW + text)
    with pytest.raises(InvalidInputError) as caught:
        load_cluster(path)
    return [str(problem) for problem in caught.value.problems]


def test_a_name_has_the_length_that_kubernetes_takes(tmp_path):
    load = tmp_path / "ok.yaml"
    load.write_text(NOW + f"nodes: [{{name: {'n' * 253}}}]\n")
    assert len(load_cluster(load).cluster.nodes[0].name) == 253
    (told,) = problems(tmp_path, f"nodes: [{{name: {'n' * 254}}}]\n")
    assert "254 letters long, but a name has 253 at most" in told


@pytest.mark.parametrize("control", ["\u202e", "\u2066", "\u200f", "\u0007"])
def test_a_name_holds_no_bidirectional_control(control, tmp_path):
    (told,) = problems(tmp_path, f'queues: [{{name: "a\\u{ord(control):04x}b"}}]\n')
    assert "queues[0].name" in told
    assert control not in told


def test_a_tree_of_queues_has_a_deepest_level_and_the_first_beyond_it_is_named(tmp_path):
    rows = "".join(f"- {{name: q{i}, parent: q{i - 1}}}\n" for i in range(1, 5000))
    (told,) = problems(tmp_path, f"queues:\n- {{name: q0}}\n{rows}")
    assert "c.yaml:67: queues[64].parent: queue q64 lies more than 64 levels deep" in told


def test_a_cycle_of_thousands_is_shortened(tmp_path):
    rows = "".join(f"- {{name: q{i}, parent: q{(i + 1) % 3000}}}\n" for i in range(3000))
    told = problems(tmp_path, f"queues:\n{rows}")
    assert len(told) == 1001
    assert max(map(len, told)) < 400
    assert told[-1].endswith("2000 further problems are not shown")


def test_unknown_references_cost_linear_time_and_are_counted(tmp_path):
    queues = "".join(f"- {{name: queue{i}}}\n" for i in range(3000))
    workloads = "".join(f"- {{name: w{i}, queue: quee{i}x}}\n" for i in range(5000))
    began = time.process_time()
    told = problems(tmp_path, f"queues:\n{queues}workloads:\n{workloads}")
    assert time.process_time() - began < 20
    assert told[-1].endswith("4000 further problems are not shown")


def test_hints_are_given_while_they_are_cheap():
    names = NearestNames(["alpha", "beta"])
    assert names.hint("alpa") == "; did you mean alpha?"
    many = NearestNames([f"name{i}" for i in range(15_000)])
    assert many.hint("NAME7") == "; did you mean name7?"
    assert many.hint("NAME8") == ""
    assert nearest("x" * 10_000, ["x" * 9_999]) == ""
