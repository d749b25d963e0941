"""A command on a history that is killed at one of the records that it reads: AT WORDS….

``AT`` counts from nought; the process is killed after the last record where there is none so far on.
"""

from __future__ import annotations

import itertools
import os
import signal
import sys

from tenure.cli.main import main as command
from tenure.history.store import HistoryStore


def main() -> None:
    """Run the command until then."""
    scan, at = HistoryStore.scan, int(sys.argv.pop(1))

    def until_killed(self, connection, query):
        for number, found in enumerate(itertools.chain(scan(self, connection, query), [None])):
            if number == at or found is None:
                os.kill(os.getpid(), signal.SIGKILL)
            yield found

    HistoryStore.scan = until_killed
    command(sys.argv[1:])
