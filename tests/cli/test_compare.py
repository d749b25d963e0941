"""``tenure compare``: files in, one table or JSON out."""

import json
from pathlib import Path

import pytest
from tests.report.test_comparison import summary

from tenure.cli.main import main


@pytest.fixture
def compare(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other").mkdir()
    (tmp_path / "a.json").write_text(json.dumps(summary(200.0, 0.5)))
    (tmp_path / "b.json").write_text(json.dumps(summary(100.0, 0.6)))
    (tmp_path / "other" / "a.json").write_text(json.dumps(summary(50.0, 0.6)))

    def run(*words):
        with pytest.raises(SystemExit) as caught:
            main(["compare", *words])
        captured = capsys.readouterr()
        return caught.value.code, captured.out, captured.err

    return run


def test_summaries_stand_side_by_side(compare):
    code, out, err = compare("a.json", "b.json")
    assert (code, err) == (0, "")
    line = next(line for line in out.splitlines() if line.startswith("mean wait"))
    assert line.replace("\N{NO-BREAK SPACE}", " ").split("  ")[-1].strip() == "100.0 s (-50.0%) *"
    assert "changes are relative to a" in out


def test_json_names_the_best(compare):
    code, out, _ = compare("a.json", "b.json", "--format", "json")
    assert code == 0
    found = json.loads(out)
    assert found["simulations"] == ["a", "b"]
    assert next(figure for figure in found["figures"] if figure["name"] == "wait_s.mean")["best"] == ["b"]


def test_files_of_one_name_are_told_apart(compare):
    assert json.loads(compare("a.json", "other/a.json", "b.json", "--format", "json")[1])["simulations"] == [
        "a.json",
        "other/a.json",
        "b",
    ]


def test_all_that_is_wrong_is_told_at_once(compare, tmp_path):
    (tmp_path / "page.html").write_text("<html>")
    (tmp_path / "list.json").write_text("[1]")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    code, out, err = compare("a.json", "page.html", "list.json", "bytes.json", "nowhere.json", "other")
    assert (code, out) == (1, "")
    lines = err.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("page.html:1: is no JSON")
    assert lines[1].startswith("list.json: is no summary of a simulation")
    assert lines[4] == "other: is a folder; name a file in it"
    assert lines[3] == "nowhere.json: there is no such file"


def test_without_files_it_is_wrong_usage(compare):
    assert compare()[0] == 2


def test_a_summary_whose_parts_are_none_is_told_with_their_names(compare, tmp_path):
    """Figures by resource or cause are mappings; what is something else is named, not passed over."""
    file = tmp_path / "odd.json"
    file.write_text('{"jobs": 1, "wait_s": {}, "boundedSlowdown": 2, "evictions": [1], "lost": 5}')
    code, _, errors = compare(str(file))
    assert code == 1
    assert [line.split(": ")[1] for line in errors.splitlines()] == ["boundedSlowdown", "evictions", "lost"]


def test_figures_that_no_simulation_writes_are_refused(compare):
    many = {**summary(200.0, 0.5), "evictions": {f"cause{i}": i for i in range(10_001)}}
    Path("many.json").write_text(json.dumps(many))
    code, out, err = compare("a.json", "many.json")
    assert (code, out) == (1, "")
    assert "many.json: evictions: has more than 10,000 figures" in err


def test_what_never_ends_is_read_up_to_the_limit(compare, monkeypatch):
    monkeypatch.setattr("tenure.cli.compare.MAX_BYTES", 1_000_000)
    code, out, err = compare("a.json", "/dev/zero")
    assert (code, out, err) == (1, "", "/dev/zero: is too large for a summary of a simulation\n")
