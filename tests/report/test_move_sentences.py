"""What is said of moves: nothing where there are none, and once what is the same of many workloads."""

import re

import pytest
from tests.report.plans import before

from tenure.report.plans.plan_page import plan_page
from tenure.report.plans.plan_rows import move_sentence
from tenure.report.plans.plan_text import plan_text
from tenure.report.tables import Terminal

STEP = {"workload": "default/a", "task": "a-0", "from": "n0", "to": "n1", "mode": "evict-first"}


@pytest.mark.parametrize(("waves", "is_told"), [([[STEP]], True), ([], False)])
def test_a_page_tells_of_waves_only_where_something_moves(waves, is_told):
    certificate = {"cost": 2.0 if waves else None, "lowerBound": 2.0, "gap": None, "method": "exact", "reason": ""}
    move = {"for": ["default/big"], "trigger": "pending", "feasible": bool(waves), "waves": waves,
            "certificate": certificate}  # fmt: skip
    plan = {"now": "2026-11-20T10:00:00Z", "steps": [], "pending": [], "queues": [], "moves": [move]}
    assert ("the moves of a wave may be made at once" in plan_page(before(), before(), plan)) == is_told


@pytest.mark.parametrize(("leaving", "words"), [(1, "1 leaves"), (2, "2 leave"), (0, "none leave")])
def test_of_how_many_waves_leave_now_is_said_in_their_number(leaving, words):
    move = {"for": ["default/a"], "trigger": "pending", "waves": [[STEP]] * 3, "leaving": leaving}
    assert f"3 moves in 3 waves, of which {words} now: what follows" in move_sentence(move)


def test_what_a_better_layout_gains_is_written_out():
    certificate = {"cost": 0.0, "gain": 12_345.6, "net": 999.7, "bound": 1.234, "method": "exact"}
    sentence = move_sentence({"trigger": "background", "waves": [[STEP]], "certificate": certificate})
    assert "gain 12,346 weighted resources, 1,000 after their cost, and no plan can leave more than 1.23 (" in sentence


def outcome(name, reason, waves=()):
    certificate = {"cost": 2.0 if waves else None, "lowerBound": 2.0, "gap": None, "method": "exact", "reason": reason}
    return {"for": [f"default/{name}"], "trigger": "pending", "feasible": bool(waves), "waves": list(waves),
            "certificate": certificate}  # fmt: skip


def many():
    """Forty workloads in vain for three reasons, and the last plan is one that moves something."""
    vain = [outcome(f"w{number}", f"{number % 3} are free") for number in range(40)]
    moves = [*vain, outcome("big", "", [[STEP] * 4])]
    return {"now": "2026-11-20T10:00:00Z", "steps": [], "pending": [], "queues": [], "moves": moves}


def told(plan, top=None):
    return " ".join(plan_text(plan, Terminal(100), top).split())


def test_outcomes_that_are_the_same_are_one_paragraph_with_their_number_and_the_first_names():
    text = told(many())
    assert "For 14 workloads (default/w0; default/w3; default/w6; and 11 more) (pending): no moves make" in text
    assert len(re.findall("no moves make room", text)) == 3
    assert "For default/big (pending): 4 moves in 1 wave." in text
    assert "more outcome" not in text
    assert plan_page(before(), before(), many()).count("no moves make room") == 3


def test_as_many_outcomes_are_told_as_were_asked_for_first_those_that_move_something():
    text = told(many(), 2)
    assert "For default/big (pending): 4 moves in 1 wave." in text
    assert "MOVES (THE FIRST 2 OF 4)" in text
    assert len(re.findall("no moves make room", text)) == 1
    assert "2 more outcomes of looking for moves for 26 workloads: --top 0 shows all." in text
