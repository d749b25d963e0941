"""What a page of a plan says in pictures of the state of a task: each state looks as the legend says."""

import re
from pathlib import Path

import pytest

from tenure.cli.main import main
from tenure.report.plans.plan_nodes import LEAVES, PROMISED

CSS = (Path(__file__).parents[2] / "src/tenure/report/plan.css").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    written = tmp_path_factory.mktemp("page") / "plan.html"
    with pytest.raises(SystemExit):
        main(["reschedule", "examples/rescheduler/make-room.yaml", "--report", str(written)])
    return written.read_text(encoding="utf-8")


def test_what_is_promised_and_what_leaves_is_drawn_unlike_what_runs(page):
    states = set(re.findall(r'<i class="\w+ (\w+)"', page))
    assert PROMISED in states
    assert all(f"i.{state}" in CSS for state in states - {"runs"})


@pytest.mark.parametrize("state", [LEAVES, PROMISED])
def test_each_state_has_a_look(state):
    assert re.search(rf"i\.{state}\b[^{{]*{{[^}}]*background", CSS)
