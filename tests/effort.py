"""How much tests try that could try for ever: in each run what shows a defect soon, by hand far more.

``TENURE_EXAMPLES=thorough`` asks for all of it. What is tried in each run is the beginning of the same, or is drawn by
the same means, so that nothing is shown by hand alone.
"""

import os

THOROUGH = os.environ.get("TENURE_EXAMPLES") == "thorough"


def tries(moderate: int, thorough: int) -> int:
    """Give how often a test tries: moderately in each run, thoroughly by hand."""
    return thorough if THOROUGH else moderate
