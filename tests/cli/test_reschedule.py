"""`tenure reschedule` on a cluster file: nodes to be emptied by name, plans that change nothing, wrong usage."""

from pathlib import Path

import pytest

from tenure.cli.main import main

FILE = Path(__file__).parents[2] / "examples/rescheduler/make-room.yaml"


@pytest.fixture
def command(capsys):
    def call(*arguments):
        with pytest.raises(SystemExit) as ended:
            main(["reschedule", *map(str, arguments)])
        printed = capsys.readouterr()
        return ended.value.code, printed.out + printed.err

    return call


def test_a_node_is_drained_by_name(command):
    """What runs on it moves, and the plan says that this is why."""
    code, output = command(FILE, "--drain", "gpu-2")
    assert code == 0, output
    assert "(drain)" in output
    assert "(drain)" not in command(FILE)[1]


def test_a_node_that_is_not_there_is_told_with_one_that_is(command):
    """Wrong usage, and no plan."""
    code, output = command(FILE, "--drain", "gpu-22")
    assert code == 2
    assert "there is no node 'gpu-22'" in output
    assert "gpu-2" in output.replace("gpu-22", "")


def test_a_dry_run_writes_nothing(command, tmp_path):
    """The same plan, and nowhere to put what results."""
    before = FILE.read_bytes()
    assert command(FILE, "--dry-run") == command(FILE)
    assert FILE.read_bytes() == before
    code, output = command(FILE, "--dry-run", "--output", tmp_path / "after.yaml")
    assert code == 2
    assert "leave one of them out" in output
    assert not list(tmp_path.iterdir())
