"""What was decided on a cluster, as text and as a page."""

import re
import subprocess
import sys
from dataclasses import replace

from tests.builders import cluster, node, queue, spec, task, workload
from tests.report.plans import GPU_1, after, before, result, running
from tests.report.simulations import read

from tenure.model.workload import Phase
from tenure.report.plans.plan_nodes import LEAVES, PROMISED, RUNS, views_of
from tenure.report.plans.plan_page import plan_page
from tenure.report.plans.plan_rows import headline, move_sentence, steps
from tenure.report.plans.plan_text import plan_text
from tenure.report.tables import Terminal, text_width

NOTHING = {"now": "2026-11-20T10:00:00Z", "steps": [], "pending": [], "queues": []}


def test_the_text_tells_all_that_is_in_the_plan():
    text = " ".join(plan_text(result(), Terminal(160)).split())
    for part in (
        "At 2026-11-20T10:00:00Z: 2 evictions, 1 binding, 1 nomination; 2 workloads wait.",
        "default/old", " 4 reclaim: queue vision holds more than its fair share",
        "node-0 (GPU 2-5)", "node-2 to node-3, wave 0", "NoRoom: no node has 8 GPUs free", "2026-11-20T12:00:00Z",
        "min-runtime", "2026-11-20T10:30:00Z", "armed", "2 cores", "expected-runtime: cooldown",
        "The moves cost 0.5 weighted hours; no plan can cost less than 0.5 weighted hours (exact). ",
        "No cheaper set makes room", "no moves make room", "evict-first",
    ):  # fmt: skip
        assert part in text.replace("\N{NO-BREAK SPACE}", " "), part
    assert re.search(r"vision GPU 7\.5 5 4 16", text)


def test_a_bound_of_nothing_is_not_told_of_moves_that_cost_something():
    greedy = {"method": "greedy", "cost": 3600.0, "lowerBound": 0.0, "reason": "no bound is proven"}
    move = {"feasible": True, "trigger": "pending", "for": ["a"], "waves": [[]], "certificate": greedy}
    assert move_sentence(move).endswith("The moves cost 1 weighted hour (greedy). No bound is proven.")
    free = move_sentence({**move, "certificate": {**greedy, "cost": 0.0}})
    assert "cost 0 weighted hours; no plan can cost less than 0 weighted hours (greedy)" in free


def test_the_text_fits_a_narrow_terminal():
    narrow = plan_text(result(), Terminal(100))
    assert max(map(text_width, narrow.splitlines())) <= 100


def test_where_there_is_little_room_reasons_have_a_table_of_their_own():
    """All of the text is still there, and no column is squeezed to a few letters by the others."""
    wide, narrow = (plan_text(result(), Terminal(width)) for width in (200, 80))
    assert "\nWHY\n" not in wide
    assert "\nWHY\n" in narrow
    assert "reclaim: queue vision holds more than its fair share" in " ".join(narrow.split())


def test_a_reason_that_names_its_cause_does_not_stand_behind_it():
    step = {"action": "evict", "workload": "a", "task": "a-0", "cause": "preempt", "cost": 0.0}
    told = [steps({**NOTHING, "steps": [{**step, "reason": text}]}).rows[0][-1] for text in ("a for b (preempt)", "x")]
    assert told == ["a for b (preempt)", "preempt: x"]


def test_an_eviction_is_one_of_a_workload_and_its_tasks_are_told_where_they_are_more():
    """As a simulation and a comparison of policies count them."""
    step = {"action": "evict", "workload": "a", "cause": "preempt", "cycle": 0}
    tasks = [{**step, "task": f"a-{n}"} for n in range(3)]
    again = [{**tasks[0], "cycle": 1}, {**tasks[0], "workload": "b"}]
    assert "10Z: 1 eviction (3 tasks); " in headline({**NOTHING, "now": "10Z", "steps": tasks})
    assert "10Z: 3 evictions (5 tasks); " in headline({**NOTHING, "now": "10Z", "steps": tasks + again})
    assert "10Z: 2 evictions; " in headline({**NOTHING, "now": "10Z", "steps": again})


def test_columns_that_would_be_empty_are_not_there():
    plain = {**NOTHING, "steps": [result()["steps"][3] | {"cycle": 0}]}
    assert steps(plain).headings == ("action", "workload", "task", "node")
    assert plan_text(NOTHING, Terminal()) == "At 2026-11-20T10:00:00Z: nothing to do; nothing waits.\n"


def test_the_text_is_printed_without_slow_imports():
    code = (
        "import sys, tenure.report.plans.plan_text\n"
        "print(sorted({'numpy', 'rich', 'pydantic', 'yaml', 'msgspec'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "[]\n"


def states(view):
    return [[(part.workload.removeprefix("default/"), part.amount, part.state) for part in gpu] for gpu in view.gpus]


def test_devices_show_who_holds_them_who_leaves_and_who_is_promised():
    views = views_of(after())
    held = [part for gpu in views["node-0"].gpus for part in gpu]
    assert sorted((part.workload, part.state) for part in held) == sorted(
        [("default/old", LEAVES)] * 4 + [("default/serve", RUNS)] * 2 + [("default/train", PROMISED)] * 4
    )
    assert states(views["node-2"])[3] == [("share", 500, RUNS), ("share", 500, RUNS)]
    assert views["cpu-0"].share == 0.5
    assert views["node-3"].remark == "draining"


def test_gpus_that_are_not_known_are_those_that_nobody_is_known_to_hold():
    cluster = before(1)
    known = running("known", "vision", GPU_1, "node-0", devices=(0,))
    unknown = running("unknown", "vision", GPU_1, "node-0", "node-0")
    views = views_of(replace(cluster, workloads=(unknown, known)))
    assert [gpu[0].workload for gpu in views["node-0"].gpus[:3]] == ["default/known", *["default/unknown"] * 2]


def test_the_page_has_all_sections_and_escapes_names():
    html = plan_page(before(), after(), result())
    reader = read(html)
    assert reader.ids == [
        "nodes", "steps", "queues-over-their-maximum", "waiting", "evictions-refused", "requeue", "moves", "queues",
    ]  # fmt: skip
    assert "<nlp>" not in html
    assert "4 nodes without a change" in reader.text
    assert "default/train train-1 (&lt;nlp&gt;)" in html


def test_many_nodes_become_one_picture_and_only_changes_are_shown_one_by_one():
    html = plan_page(before(5000), after(5000), result())
    reader = read(html)
    assert len(html) < 1_500_000
    assert html.count('class="who"') == 2
    assert "GPUs free" in reader.text
    assert "4,998" not in reader.text
    assert "4,997" in reader.text, "nodes with eight free GPUs"


def test_a_plan_in_which_nothing_is_decided_has_a_page_all_the_same():
    reader = read(plan_page(before(), before(), NOTHING))
    assert reader.ids == ["nodes"]
    assert any("nothing to do; nothing waits" in text for text in reader.text)


def test_a_task_that_moves_is_drawn_where_it_leaves_and_where_it_is_promised():
    """Its origin is hatched as leaving, its target as promised, and both nodes count as changed."""
    made = cluster([node("a", cpu=8, gpu=2), node("b", cpu=8, gpu=2)], [
        workload("w", tasks=[task("w-0", spec(cpu=2, gpu=1), on="a", devices=(0,), phase=Phase.TERMINATING,
                                  nominated_to="b", nominated_devices=(1,))]),
    ], [queue("default")])  # fmt: skip
    views = views_of(made)
    assert [[p.state for p in parts] for parts in views["a"].gpus] == [[LEAVES], []]
    assert [[p.state for p in parts] for parts in views["b"].gpus] == [[], [PROMISED]]
