"""Captions and alternative texts of pages say what is there to be seen, and nothing else."""

import re
from dataclasses import replace

import numpy as np
import pytest
from tests.builders import cluster, node, queue, spec, workload
from tests.report import plans
from tests.report.simulations import example, page

from tenure.playthrough import play
from tenure.report.drawing.charts import slowdown_plot, waiting_plot
from tenure.report.drawing.figure import figure
from tenure.report.drawing.series import Series
from tenure.report.page import Cell, html_table
from tenure.report.plans.plan_json import plan_json
from tenure.report.plans.plan_page import MAX_LINES, plan_page

CAPTION = re.compile(r'id="nodes"><h2>[^<]*</h2><p class="caption">([^<]*)')


def page_of(found):
    played = play(found)
    return plan_page(played.before, played.after, plan_json(played))


def test_the_caption_of_nodes_explains_only_what_is_drawn():
    drawn = CAPTION.search(plan_page(plans.before(), plans.after(), plans.result()))[1]
    assert drawn == (
        "6 nodes. Squares are GPUs, bars CPU and memory; what is hatched leaves; "
        "what is hatched in a frame is promised."
    )
    assert CAPTION.search(page_of(cluster([node("n")])))[1] == "1 node. Bars are CPU and memory."
    assert CAPTION.search(page_of(cluster([])))[1] == "There are no nodes."
    outside = replace(node("elsewhere"), outside=True)
    assert CAPTION.search(page_of(cluster([node("n", gpu=1), outside])))[1] == (
        "1 node. Squares are GPUs, bars CPU and memory."
    )


def test_the_picture_of_many_nodes_says_how_much_of_them_is_in_use():
    one = workload("w", of=spec(cpu=8), on=["n-0"], running=10)
    text = page_of(cluster([node(f"n-{number}") for number in range(100)], [one], queues=[queue("default")]))
    assert 'aria-label="100 nodes before, 1% in use on average, each square as strong as its node is in use"' in text


def test_evictions_are_told_apart_from_the_tasks_that_they_take():
    *_, summary, _ = example()
    told = re.search(r"Evicted tasks by cause: (\d+) in (\d+) evictions? of workloads\.", page())
    assert [int(told[1]), int(told[2])] == [sum(summary["evictedTasks"].values()), sum(summary["evictions"].values())]
    assert int(told[1]) == int(re.search(r"evicted tasks over time by cause; ([\d,]+) in all", page())[1])


def test_red_edges_are_explained_where_there_are_any():
    assert ("What has a red edge was evicted." in page()) is (
        " evicted" in re.search(r'id="gantt".*?</section>', page(), re.DOTALL)[0].split("</p>", 1)[1]
    )


def test_what_is_counted_has_no_halves():
    nothing = Series(np.array([0, 1]), np.zeros((1, 1)), ("a",))
    assert [tick.label for tick in waiting_plot(nothing).y] == ["0", "1"]


def test_labels_of_a_long_axis_make_room_for_each_other():
    text = figure(slowdown_plot(np.array([1.0, 90_000.0])))
    assert re.findall(r'<span class="([^"]*)" style="left:[\d.]+%">(\d[\d,]*)</span>', text) == [
        ("minor first early", "1"), ("minor", "100"), ("minor", "10,000"), ("last late", "100,000"),
    ]  # fmt: skip


def test_a_long_name_is_broken_and_a_short_one_is_not():
    text = html_table([Cell("name")], [[Cell("x" * 60)], [Cell("y" * 61)]])
    assert f"<td>{'x' * 60}</td>" in text
    assert f'<td class="long">{"y" * 61}</td>' in text


def test_queues_are_bounded_and_the_caption_says_so():
    text = page_of(cluster([node("n")], queues=[queue(f"q{number}", guaranteed={"cpu": 1}) for number in range(1200)]))
    assert f"The first {MAX_LINES:,} of 1,200 lines." in text
    assert text.count('<td><div class="due">') == MAX_LINES


@pytest.mark.parametrize(("many", "each"), [(1, 20_000), (20_000, 1), (1, MAX_LINES - 1)])
def test_moves_are_bounded_and_the_caption_says_so(many, each):
    made = cluster([node("n")])
    move = {"workload": "default/a", "task": "a-0", "from": "n", "to": "m", "mode": "evict-first"}
    found = [{"for": [], "trigger": "hot-node", "nodes": [f"n{p}"], "feasible": True, "waves": [[move] * each]}
             for p in range(many)]  # fmt: skip
    text = plan_page(made, made, {**plan_json(play(made)), "moves": found})
    lines = many * (1 + each)
    assert (f"The first {MAX_LINES:,} of {lines:,} lines." in text) == (lines > MAX_LINES)
    told = text[text.index('id="moves"') :]
    assert told.count("<td>a-0</td>") + told.count("To cool n") == MAX_LINES
