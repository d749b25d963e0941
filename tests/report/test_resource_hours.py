"""Resource-seconds are written in hours of what people count."""

from __future__ import annotations

import pytest

from tenure.report.words import resource_hours


@pytest.mark.parametrize(
    ("resource", "seconds", "written"),
    [
        ("nvidia.com/gpu", 48_600, "13.5 GPU-hours"),
        ("cpu", 7_200, "2.0 core-hours"),
        ("cpu", 9_000_000, "2,500.0 core-hours"),
        ("memory", 3600 * (3 << 30), "3 GiB-hours"),
        ("nvidia.com/gpu", 0, "0 GPU-hours"),
        ("example.com/thing", 3600, "1.0 example.com/thing-hours"),
    ],
)
def test_hours_of_what_is_held(resource, seconds, written):
    assert resource_hours(resource, seconds).replace("\N{NO-BREAK SPACE}", " ").replace(".0 GiB", " GiB") == written
