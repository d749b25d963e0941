"""Summaries side by side: changes relative to the first, the best value marked."""

from tenure.report.comparison import comparison_json, comparison_text, measures
from tenure.report.tables import Terminal, text_width


def summary(wait, used, **more):
    return {
        "jobs": 10, "finished": 10, "dropped": 0, "makespan_s": 100.0,
        "wait_s": {"mean": wait, "median": wait, "p95": wait, "max": wait},
        "boundedSlowdown": {"tau_s": 10, "mean": None, "p95": None},
        "utilization": {"cpu": used}, "goodput": {}, "allocated": {"milliGpu": 0.0, "cpu": 0.0},
        "lost": {"cpu": 0.0}, "evictions": {}, "jain": 1.0, "violations": 0, "wall_s": 1.0, **more,
    }  # fmt: skip


def by_name(found):
    return {measure.path: measure for measure in found}


def test_less_waiting_and_more_use_are_better():
    found = by_name(measures([summary(200.0, 0.5), summary(100.0, 0.75), summary(100.0, 0.5)]))
    assert found["wait_s.mean"].best() == {1, 2}
    assert [found["wait_s.mean"].change(index) for index in range(3)] == [None, -0.5, -0.5]
    assert found["utilization.cpu"].best() == {1}
    assert found["utilization.cpu"].change(1) == 0.25
    assert found["jobs"].best() == set()


def test_equal_values_are_all_right_and_none_is_marked():
    assert by_name(measures([summary(1.0, 0.5), summary(1.0, 0.5)]))["wait_s.mean"].best() == set()


def test_causes_that_one_of_them_lacks_count_as_none_and_empty_rows_are_left_out():
    found = by_name(measures([summary(1.0, 0.5), summary(1.0, 0.5, evictions={"reclaim": 3})]))
    assert found["evictions.reclaim"].values == (0.0, 3)
    assert not {"allocated.cpu", "lost.cpu", "boundedSlowdown.mean"} & found.keys()
    text = comparison_text(["a", "b"], [found["evictions.reclaim"]], Terminal(100))
    assert text.splitlines()[1].split() == ["evictions:", "reclaim", "0", "*", "3"]


def test_a_change_from_nothing_is_not_a_percentage():
    found = by_name(measures([summary(0.0, 0.5), summary(1.0, 0.5)]))
    assert found["wait_s.mean"].change(1) is None


def test_json_has_values_changes_and_the_best():
    found = measures([summary(200.0, 0.5), summary(100.0, 0.5)])
    figures = {figure["name"]: figure for figure in comparison_json(["a", "b"], found)["figures"]}
    assert figures["wait_s.mean"] == {
        "name": "wait_s.mean", "better": "less", "values": [200.0, 100.0], "change": [None, -0.5], "best": ["b"],
    }  # fmt: skip


def test_many_columns_become_several_tables_that_fit_and_begin_with_the_first():
    names = [f"simulation-{index}" for index in range(12)]
    found = measures([summary(100.0 + index, 0.5) for index in range(12)])
    text = comparison_text(names, found, Terminal(100))
    assert max(map(text_width, text.splitlines())) <= 100
    heads = [line.split()[1:] for line in text.splitlines() if line.startswith("figure")]
    assert len(heads) > 1
    assert all(head[0] == names[0] for head in heads)
    assert [name for head in heads for name in head[1:]] == names[1:]


def test_what_was_lost_stands_in_hours_of_its_resource():
    """Byte-seconds are a number that nobody can read."""
    lost = {"memory": 1 << 40, "nvidia.com/gpu": 7200.0}
    shown = comparison_text(["a"], measures([{"lost": lost}]), Terminal(100))
    found = {
        line.split("  ")[0]: line.split("  ")[-1].strip()
        for line in shown.replace("\N{NO-BREAK SPACE}", " ").splitlines()
    }
    assert (found["memory lost"], found["GPU lost"]) == ("291.27 MiB-hours", "2.0 GPU-hours")
