"""Run times as users estimate them.

After D. Tsafrir, Y. Etsion and D. G. Feitelson, "Modeling user runtime estimates", JSSPP 2005, who found that nearly
all estimates are among some twenty round values, that a tenth or more of the jobs ask for the longest one allowed, and
that the accuracy (run time / estimate) of the others is spread nearly evenly. This is simplified: accuracy is uniform,
and the estimate is the next round value above, instead of ranks of values fitted to each site.
"""

from __future__ import annotations

import numpy as np

from tenure.simulator.generate.lublin import Floats, Ints

MINUTE, HOUR = 60, 3600

ROUND_S = np.array(
    [
        *(minutes * MINUTE for minutes in (5, 10, 15, 20, 30, 45)),
        *(hours * HOUR for hours in (1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12, 15, 18, 24, 36, 48)),
    ],
    dtype=np.int64,
)
"""The round values, in seconds. The last is the longest that a job may ask for."""

ASK_LONGEST = 0.1
MIN_ACCURACY = 0.05


def draw_estimates(generator: np.random.Generator, runtimes_s: Floats) -> Ints:
    """Draw an estimate for each run time, in seconds; never shorter than the run time itself."""
    accuracy = MIN_ACCURACY + (1 - MIN_ACCURACY) * generator.random(len(runtimes_s))
    longest = generator.random(len(runtimes_s)) < ASK_LONGEST
    wanted = np.where(longest, ROUND_S[-1], runtimes_s / accuracy)
    index = np.minimum(np.searchsorted(ROUND_S, wanted), len(ROUND_S) - 1)
    return np.maximum(ROUND_S[index], np.ceil(runtimes_s).astype(np.int64))
