"""The report of a simulation: complete, valid, self-contained, and not larger than a page should be."""

import re

import numpy as np
from tests.report.simulations import example, page, read
from tests.simulator.helpers import gang, node, spec

from tenure.model.cluster import Cluster
from tenure.report.picture import simulation_picture
from tenure.report.simulation_page import simulation_page
from tenure.simulator.checker import check
from tenure.simulator.log import EventLog
from tenure.simulator.metrics import summarize
from tenure.simulator.outcomes import outcomes_of
from tenure.simulator.traces.records import SECOND, Trace, TraceJob


def test_the_page_has_every_section_and_fetches_nothing():
    reader = read(page())
    assert reader.ids == [
        "use", "waiting", "slowdown", "wait", "gantt", "evictions", "violations", "queues", "settings",
    ]  # fmt: skip


def test_names_from_the_input_are_text_and_never_markup():
    html = page()
    assert "<b> & c" not in html
    assert "&lt;b&gt; &amp; c" in html
    assert "Simulation of &lt;trace&gt;.csv" in html


def test_what_was_broken_is_told_with_examples():
    assert "None. A checker" in page()
    html = page(broken=True)
    assert "node over capacity" in html
    assert "n0 holds" in html


def test_an_interrupted_simulation_says_so():
    assert "Interrupted" not in page()
    assert "Interrupted" in page(complete=False)


def test_settings_that_are_all_the_defaults_are_said_and_not_shown_empty():
    chosen, plain = page(), page(scheduler={})
    assert "differ from the defaults stand below" in chosen
    assert "&quot;backfill&quot;: &quot;easy&quot;" in chosen
    assert "All settings of the scheduler are the defaults." in plain
    assert "differ from the defaults stand below" not in plain
    assert "<pre>{}</pre>" not in plain


def test_the_same_simulation_gives_the_same_page():
    assert page() == page()


def test_the_gantt_chart_shows_each_run_of_each_task_where_it_was():
    gantt = re.search(r'id="gantt".*?</section>', page(), re.DOTALL)[0]
    tasks = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="([\d.]+)" height="([\d.]+)" class="task', gantt)
    places = sorted(tuple(map(float, task)) for task in tasks)
    begin, height = 1000 * 60 / 260, 60
    high, low = height * 2 / 4, height * 0.5 / 4
    assert np.allclose(
        places,
        sorted([
            (0, high, begin, high),  # low-0 on two GPUs of n0, until it is evicted
            (0, height + high, begin, high),
            (1000 * 10 / 260, height / 4 + low, 1000 * 90 / 260, low),  # half of GPU 2
            (begin, high, 1000 * 100 / 260, high),
            (1000 * 160 / 260, high, 1000 * 100 / 260, high),
            (1000 * 160 / 260, height, 1000 * 100 / 260, high),  # low-1 again, on GPUs 2 and 3 of n1
        ]),
        atol=0.06,
    )  # fmt: skip
    assert gantt.count("evicted at 1") == 2


def test_a_simulation_in_which_nothing_happened_has_a_page_all_the_same():
    log, nodes = EventLog(), (node("n"),)
    outcomes = outcomes_of(log, Trace("tenure"))
    summary = summarize(outcomes, Trace("tenure"), nodes, violations=0, wall_s=0.0)
    html = simulation_page(outcomes, Cluster(now=0, nodes=nodes), summary, check(log, nodes))
    assert "No job has started." in read(html).text


def many_jobs(count, queues, nodes):
    """Jobs of many queues, one after the other on each node."""
    log = EventLog()
    jobs, ask = [], spec()
    for index in range(count):
        workload = gang(str(index), of=ask, queue=f"team-{index % queues}", created_at=index * SECOND)
        log.add(workload)
        jobs.append(TraceJob(workload, nodes * SECOND, str(index)))
    for index in range(count + nodes):
        if index >= nodes:
            log.end(index * SECOND, index - nodes, 0)
        if index < count:
            log.submit(index * SECOND, index)
            log.bind(index * SECOND, index, 0, index % nodes)
    return log, Trace("tenure", tuple(jobs)), tuple(node(f"n{index}") for index in range(nodes))


def test_a_page_about_many_jobs_queues_and_nodes_stays_small():
    log, trace, nodes = many_jobs(20_000, 40, 300)
    outcomes = outcomes_of(log, trace)
    summary = summarize(outcomes, trace, nodes, violations=0, wall_s=1.0)
    html = simulation_page(outcomes, Cluster(now=0, nodes=nodes), summary, check(log, nodes))
    reader = read(html)
    assert len(html) < 1_000_000
    assert "other queues" in reader.text
    assert any("40 of 300 nodes" in text for text in reader.text)


def test_the_picture_stands_alone_and_is_small():
    outcomes, cluster, summary, _ = example()
    svg = simulation_picture(outcomes, cluster, summary)
    assert len(svg) < 100_000
    assert "prefers-color-scheme:dark" in svg
    assert not re.search(r"(href|src|url\()", svg)
    assert svg.count("<title>") == 1
    assert "&lt;b&gt; &amp; c" in svg
