"""The tables of replays are what the script writes of the figures that are kept, and those are what the text says."""

import json
from pathlib import Path

import pytest
from tests.docs.scripts import load

ROOT = Path(__file__).resolve().parents[2]


MADE = load("make_experiments")


@pytest.mark.parametrize("name", MADE.PAGES)
def test_a_page_is_what_the_script_writes(name):
    """No figure between the marks was written by hand, and none is out of date."""
    page = MADE.DOCS / name
    assert MADE.MARKED.search(page.read_text(encoding="utf-8")), "the page names no file"
    assert MADE.written(page) == page.read_text(encoding="utf-8")


@pytest.mark.parametrize("file", list(MADE.files()), ids=lambda path: path.name)
def test_no_replay_broke_a_rule(file):
    """The pages say so of all replays."""
    rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
    assert rows
    assert [row for row in rows if row["violations"]] == []


def test_every_file_is_on_a_page():
    """Figures that no page shows do not stay behind."""
    assert set(MADE.files()) == set((MADE.DOCS / "experiments").glob("*.json"))
