"""There is one pass that serves those that wait, in order; the action, every scenario and estimates are this pass."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path

from tests.actions.helpers import NOW, cluster, queue, waits

import tenure
from tenure.engine.serving.allocation import InTurn, ScenarioPass, serve
from tenure.engine.serving.placement import Placer
from tenure.engine.snapshot import session_of
from tenure.engine.state.workloads import BOUND
from tenure.fairness.current import Fairness

ROOT = Path(tenure.__file__).parent


def loops_that_serve():
    """Loops in which an order is told that somebody was served, or that a place was given to somebody in its turn."""
    found = set()
    for path in sorted(ROOT.rglob("*.py")):
        text = path.read_text()
        if ".served" not in text and not (".next" in text and ".place" in text):
            continue  # to parse all of them takes seconds
        for loop in ast.walk(ast.parse(text)):
            if isinstance(loop, ast.For | ast.While):
                calls = {c.func.attr for c in ast.walk(loop) if isinstance(c, ast.Call) and hasattr(c.func, "attr")}
                if "served" in calls or {"next", "place"} <= calls:
                    found.add(str(path.relative_to(ROOT)))
    return found


def test_one_loop_serves_those_that_wait():
    """Nowhere else is an order of service followed by placing."""
    assert loops_that_serve() == {"engine/serving/allocation.py"}


def test_in_turn_each_goes_on_until_it_is_passed_over_or_waits_no_longer():
    """So an elastic workload gets all that fits before the next has its turn."""
    session = session_of(cluster([queue("q")], [waits("a", "q", tasks=3), waits("b", "q"), waits("c", "q")]))
    first, second, third = (session.workloads[f"default/{name}"] for name in "abc")
    order = InTurn([first, second, third])
    assert order.next() is first
    order.served(first)
    assert order.next() is first
    order.pass_over(first)
    session.waiting.drop(second)
    assert order.next() is third
    order.pass_over(third)
    assert order.next() is None


def test_a_pass_up_to_a_contender_ends_with_it():
    """Whom nobody waits for any more is left to the next cycle; without a contender everybody is served."""
    work = [waits(name, "q", minutes=9 - n) for n, name in enumerate("abc")]
    for contender, expected in (("b", 2), ("c", 3), (None, 3)):
        session = session_of(cluster([queue("q")], work))
        session.now = NOW
        who = None if contender is None else session.workloads[f"default/{contender}"]
        outcome = serve(session, Placer(session), Fairness(session).now(), who)
        assert [t.phase for t in outcome.placed] == [BOUND] * expected
        assert outcome.reached is (contender is not None)


def test_a_contender_that_finds_no_place_ends_the_pass():
    """Those behind it are not served, and it is not said to have been reached."""
    work = [waits("large", "q", gpus=8, minutes=9), waits("small", "q", minutes=1)]
    session = session_of(cluster([queue("q")], [replace(w) for w in work]))
    outcome = serve(session, Placer(session), Fairness(session).now(), session.workloads["default/large"])
    assert (outcome.placed, outcome.reached) == ([], False)


def test_no_order_is_made_where_it_is_known_that_nothing_fits(monkeypatch):
    """It makes a difference for what serves in a scenario what is left over: on a full cluster that is nothing."""
    made, begin = [], ScenarioPass.begin
    monkeypatch.setattr(ScenarioPass, "begin", lambda *given: made.append(given) or begin(*given))
    work = [waits("large", "q", gpus=5), waits("larger", "p", gpus=6)]
    for more, names in ([], []), ([waits("small", "p")], ["default/small"]):
        session = session_of(cluster([queue("q"), queue("p")], [*work, *more]))
        outcome = serve(session, Placer(session), Fairness(session).now())
        assert [t.workload.key for t in outcome.placed] == names
        assert bool(made) is bool(names)
