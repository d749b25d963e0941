"""The demonstration followed as a new user would: its last line is a command, which opens the console on what it made.

Who took the room of the workload that waited longest is found there within three clicks, and is held against the
records themselves.
"""

import json
import os
import re
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from tests import preloaded
from tests.browser.test_console import Watched
from tests.browser.test_pages import browser  # noqa: F401  the fixture

ROOT = Path(__file__).parents[2]
CLICKS = 3


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """Give a folder with what is shipped beside the package, as ``make demo`` finds it."""
    folder = tmp_path_factory.mktemp("demo")
    shutil.copytree(ROOT / "examples", folder / "examples")
    return folder


@pytest.fixture(scope="module")
def told(checkout):
    """Run what ``make demo`` runs, once, and give what it prints."""
    done = subprocess.run(
        [sys.executable, "examples/demo.py"], cwd=checkout, env={**os.environ, "TMPDIR": str(checkout)},
        capture_output=True, text=True, check=False, timeout=600,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def last_line(told):
    return told.rstrip().rpartition("\n")[2].strip()


@pytest.fixture(scope="module")
def opened(last_line, checkout):
    """Start exactly what the last line says; gives where it listens. Only where its port is taken, another is named."""
    with socket.socket() as tried:
        taken = tried.connect_ex(("127.0.0.1", 8765)) == 0
    command = f"exec {last_line}{' --port 0' if taken else ''}"
    process = subprocess.Popen(["/bin/sh", "-c", command], cwd=checkout, stdout=subprocess.PIPE, text=True)
    try:
        line = process.stdout.readline()
        address = re.fullmatch(r"listening on (http://127\.0\.0\.1:\d+)\n", line)
        assert address, line
        yield address[1]
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_it_runs_in_a_clean_checkout_and_writes_the_pages_that_it_names(told, checkout):
    """They are of a quota what-if, of a move, and of evictions off and on; it ends with a sentence of what one saw."""
    pages = {checkout / name for name in re.findall(r"[\w/.-]+\.html", told)}
    assert {page.stem for page in pages} == {
        "plan", "quota", "moves", "evictions-off", "evictions-on", "evictions-pay"
    }  # fmt: skip
    assert all(page.read_text().rstrip().endswith("</html>") for page in pages)
    assert re.search(r"\nWhat you saw: \d+ evictions made the mean wait \d+% shorter, at the price of .*\.\n", told)


def lives(history, folder):
    """Read of the records when each workload came and started first, and who was evicted for whom."""
    made = folder / "records.jsonl"
    preloaded.run(["history", "export", made, "--history", history], check=True, capture_output=True)
    came, started, evicted, end = {}, {}, {}, 0
    for line in made.read_text().splitlines():
        record = json.loads(line)
        key, at, kind = record.get("workload"), record["at"], record["kind"]
        end = max(end, at)
        if kind == "submitted":
            came.setdefault(key, at)
        elif kind == "started":
            started.setdefault(key, at)
        elif kind == "evicted":
            evicted.setdefault(key, set()).add(record.get("beneficiary"))
    return came, started, evicted, end


def test_who_took_the_room_of_the_one_that_waited_longest(browser, last_line, opened, tmp_path):  # noqa: F811
    came, started, evicted, end = lives(shlex.split(last_line)[-1], tmp_path)
    clicks = 0
    with Watched(browser, opened) as found:
        found.go("/")
        longest = found.page.locator("#longest a.name").first
        name = longest.text_content()
        found.follow(longest)
        clicks += 1
        assert found.page.locator("h1").text_content() == name
        row = found.page.locator("#takers tbody tr").first
        taker = row.locator("a.name").first.text_content()
        found.follow(row.locator("a.name").first)
        clicks += 1
        assert found.page.locator("h1").text_content() == taker
        assert clicks <= CLICKS
        assert found.told == []
    waited = {key: started.get(key, end) - at for key, at in came.items()}
    assert waited[name] == max(waited.values())
    if name in evicted:
        assert taker in evicted[name]
    else:
        assert came[name] <= started[taker] < started.get(name, end)
