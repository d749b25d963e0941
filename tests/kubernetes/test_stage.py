"""What tests wait for: how long that may take, and what is told of it."""

from __future__ import annotations

import pytest
from tests.kubernetes import stage
from tests.kubernetes.stage import wait_until


def test_a_wait_that_was_long_is_told_of_though_it_ended_well(monkeypatch):
    monkeypatch.setattr(stage, "LONG", 0.0)
    holds = iter([False, True])
    with pytest.warns(UserWarning, match="nothing comes"):
        wait_until(lambda: next(holds), "nothing comes")


def test_a_wait_that_does_not_end_fails_with_what_it_was_for(monkeypatch):
    monkeypatch.setattr(stage, "PATIENCE", 0.0)
    with pytest.raises(AssertionError, match="nothing comes"):
        wait_until(lambda: False, lambda: "nothing comes")
