"""Nothing is said of moves where there are none."""

import pytest
from tests.report.plans import before

from tenure.report.plan_page import plan_page

STEP = {"workload": "default/a", "task": "a-0", "from": "n0", "to": "n1", "mode": "evict-first"}


@pytest.mark.parametrize(("waves", "is_told"), [([[STEP]], True), ([], False)])
def test_a_page_tells_of_waves_only_where_something_moves(waves, is_told):
    certificate = {"cost": 2.0 if waves else None, "lowerBound": 2.0, "gap": None, "method": "exact", "reason": ""}
    move = {"for": ["default/big"], "trigger": "pending", "feasible": bool(waves), "waves": waves,
            "certificate": certificate}  # fmt: skip
    plan = {"now": "2026-11-20T10:00:00Z", "steps": [], "pending": [], "queues": [], "moves": [move]}
    assert ("the moves of a wave may be made at once" in plan_page(before(), before(), plan)) == is_told
