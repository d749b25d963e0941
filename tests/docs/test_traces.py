"""The page about traces says what the readers read."""

import re
from pathlib import Path

import click
import pytest
from tests.docs.scripts import load

from tenure.cli.diff import diff
from tenure.cli.input.trace_options import FORMAT_NAMES, OPTIONS
from tenure.cli.simulate import simulate
from tenure.cli.sweep import sweep
from tenure.simulator.traces.mapping import MOST_LABELS, MOST_LETTERS
from tenure.simulator.traces.registry import FORMATS
from tenure.simulator.traces.source import MAX_BYTES
from tenure.simulator.traces.table import MAX_TASKS

ROOT = Path(__file__).resolve().parents[2]


MADE = load("make_traces")
PAGE = MADE.TARGET.read_text(encoding="utf-8")


def test_the_page_is_what_the_code_says():
    """The page is up to date; if this fails, run: python docs/make_traces.py."""
    assert MADE.generate() == PAGE


@pytest.mark.parametrize("name", FORMATS)
def test_every_column_of_every_format_is_there(name):
    part = PAGE.split(f"### `{name}`\n")[1].split("\n### ")[0]
    for table in FORMATS[name].tables:
        assert [column.name for column in table.columns if f"`{column.name}`" not in part] == []


@pytest.mark.parametrize("name", sorted(FORMATS.keys() - {"tenure", "sacct"}))
def test_where_a_published_trace_is_from_is_a_link(name):
    """The other two are written by Tenure and by one's own Slurm."""
    assert re.search(r"\]\(https://[^)\s]+\)", FORMATS[name].origin)


def test_bounds_are_those_of_the_code():
    bounds = (
        f"{MAX_BYTES >> 20} MiB unpacked",
        f"{MAX_TASKS:,} pods",
        f"the first {MOST_LABELS},",
        f"{MOST_LETTERS}\nletters",
    )
    assert [bound for bound in bounds if bound not in PAGE] == []


def test_commands_name_the_formats_that_there_are():
    assert tuple(FORMATS) == FORMAT_NAMES


@pytest.mark.parametrize("command", [simulate, sweep, diff], ids=lambda command: command.name)
def test_every_command_that_takes_traces_takes_the_same_options(command):
    @click.command()
    def bare():
        pass

    for add in OPTIONS:
        bare = add(bare)
    wanted = {name for option in bare.params for name in option.opts if name.startswith("--")}
    assert wanted - {name for option in command.params for name in option.opts} == set()
    assert [name for name in wanted if f"`{name}" not in PAGE] == []
