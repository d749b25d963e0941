"""A process that writes a history at once until it is done or killed: ADDRESS."""

from __future__ import annotations

import sys

from tests.history.writer import HERE, life_of

from tenure.history.writing.whole import write_whole

LIVES = 4_800
"""Five records each."""


def main() -> None:
    """Write it, once it was said that this begins."""
    drafts = [draft for number in range(LIVES) for draft in life_of(number)]
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    write_whole(sys.argv[1], HERE, drafts)
