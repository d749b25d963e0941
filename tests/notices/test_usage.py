"""What counts as used, and as asked for, while evictions are announced."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.actions.helpers import MINUTE, play, queue, waits
from tests.actions.test_modes import CASES
from tests.notices.test_notices import GPU, told

from tenure.engine.snapshot import session_of
from tenure.fairness.current import Fairness
from tenure.model.settings import FairnessSettings, HistorySettings


def test_usage_for_history_is_what_runs_under_notice_and_nothing_of_what_is_promised():
    """Four GPUs for two minutes by the queue that gives way, none by the one that is promised two of them."""
    after = play(told(fairness=FairnessSettings(history=HistorySettings())), cycles=3, every=MINUTE).after
    assert {t.notice is not None for w in after.workloads if w.name == "x" for t in w.tasks} == {True}
    used = {q.name: q.status.usage.get(GPU, 0.0) for q in after.queues}
    assert used["a"] == 0.0
    assert used["b"] == pytest.approx(4 * 120, rel=0.01)


def test_usage_for_history_is_counted_where_a_moved_task_still_is():
    state = CASES["consolidate"]()
    chosen = replace(state.settings, eviction_notice=5 * MINUTE, fairness=FairnessSettings(history=HistorySettings()))
    after = play(replace(state, settings=chosen), cycles=3, every=MINUTE).after
    (queue_a,) = after.queues
    assert queue_a.status.usage[GPU] == pytest.approx(2 * 120, rel=0.01)


def test_shares_do_not_change_by_an_announcement():
    """What is told to go will want its room again, as it did when that was decided."""
    state = told(queues=[queue("a"), queue("b")], contender=waits("c", "a", gpus=1))
    before, after = (session_of(s) for s in (state, play(state).after))
    assert after.noticed
    assert Fairness(after).now().request == Fairness(before).now().request
    assert Fairness(after).now().fair == Fairness(before).now().fair
