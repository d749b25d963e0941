"""A thousand hostile inputs over all commands and formats: each is answered in words, in bounds, and leaves no ruin."""

import pytest
from tests.cli.hostile import run

EACH = 50


@pytest.mark.parametrize("first", range(0, 1100, EACH))
def test_hostile_inputs_are_answered_in_words(first, monkeypatch):
    monkeypatch.delenv("TENURE_DEBUG", raising=False)
    assert [fault for seed in range(first, first + EACH) if (fault := run(seed))] == []
