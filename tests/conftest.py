"""How much hypothesis tries: a moderate number of examples, or many with ``TENURE_EXAMPLES=thorough``."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

COMMON = {
    "deadline": None,
    "suppress_health_check": [HealthCheck.too_slow, HealthCheck.data_too_large],
    "print_blob": True,
}

settings.register_profile("moderate", max_examples=100, derandomize=True, **COMMON)
settings.register_profile("thorough", max_examples=3000, **COMMON)
settings.load_profile(os.environ.get("TENURE_EXAMPLES", "moderate"))
