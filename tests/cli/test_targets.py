"""Files that commands write: nothing of the user's is overwritten, and two outputs are two files."""

import os

import pytest

from tenure.cli.main import main

CLUSTER = """\
apiVersion: tenure.dev/v1alpha1
kind: Cluster
now: 2026-11-20T10:00:00Z
nodes: [{name: n, allocatable: {cpu: '4'}}]
"""
TRACE = "job,submit_s,runtime_s,pods,cpu_milli\n1,0,10,1,1000\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "c.yaml").write_text(CLUSTER)
    (tmp_path / "t.csv").write_text(TRACE)
    (tmp_path / "s.yaml").write_text("kind: SchedulerConfig\nscheduler: {}\n")
    (tmp_path / "deep").mkdir()
    (tmp_path / "link.html").symlink_to("c.yaml")
    (tmp_path / "other").symlink_to(".")
    os.link(tmp_path / "c.yaml", tmp_path / "hard.yaml")
    (tmp_path / "results.csv").write_text(TRACE)
    (tmp_path / "index.html").write_text(CLUSTER)
    monkeypatch.setenv("KUBECONFIG", f"nowhere:{tmp_path / 'c.yaml'}")
    return tmp_path


def tenure(capsys, *arguments):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


def contents(folder):
    return {p.name: (p.readlink() if p.is_symlink() else p.read_bytes()) for p in folder.iterdir() if not p.is_dir()}


@pytest.mark.parametrize(
    "words",
    [
        "simulate t.csv --cluster c.yaml --jobs t.csv",
        "simulate t.csv --cluster c.yaml --report c.yaml",
        "simulate t.csv --cluster c.yaml --scheduler s.yaml --jobs s.yaml",
        "simulate t.csv --cluster c.yaml --jobs other/t.csv",
        "simulate t.csv --cluster c.yaml --history other/t.csv",
        "simulate t.csv --cluster c.yaml --history sqlite:///c.yaml",
        "replay --from t.csv --history t.csv",
        "history export t.csv --history t.csv",
        "history export other/c.yaml --history sqlite:///c.yaml",
        "plan c.yaml --report c.yaml",
        "plan c.yaml --output ./c.yaml",
        "plan c.yaml --report link.html",
        "plan c.yaml --output hard.yaml",
        "plan c.yaml --output deep/../c.yaml",
        "plan c.yaml --add s.yaml --output s.yaml",
        "plan c.yaml --queues s.yaml --output s.yaml",
        "reschedule c.yaml --report link.html",
        "reschedule c.yaml --output c.yaml",
        "history import t.csv --history ./t.csv",
        "sweep t.csv results.csv --cluster c.yaml --out .",
        "sweep t.csv --cluster index.html --out other",
        "plan --live --kubeconfig c.yaml --output c.yaml",
        "plan --live --report c.yaml",
        "plan --live --runs-from t.csv --report t.csv",
        "reschedule --live --output other/c.yaml",
        "snapshot --runs-from sqlite:///t.csv --output t.csv",
        "snapshot --output c.yaml",
        "snapshot --context x --config s.yaml --output s.yaml",
    ],
)
def test_an_output_that_is_an_input_is_refused(words, folder, capsys):
    before = contents(folder)
    code, out, err = tenure(capsys, *words.split())
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert "would overwrite" in err
    assert contents(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        "simulate missing.csv --jobs a --report ./a",
        "simulate missing.csv --jobs a --history ./a",
        "simulate missing.csv --report a --history sqlite:///a",
        "plan missing.yaml --report a --output other/a",
        "reschedule missing.yaml --report a --output deep/../a",
        "generate --jobs 3 --out a --cluster other/a",
    ],
)
def test_two_outputs_that_are_one_are_refused_before_anything_is_read(words, folder, capsys):
    before = contents(folder)
    code, out, err = tenure(capsys, *words.split())
    assert (code, out) == (2, "")
    assert "both name" in err
    assert contents(folder) == before


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("plan missing.yaml --report nowhere/a", "nowhere/a: there is no folder nowhere; make it first"),
        ("reschedule missing.yaml --output deep", "deep: is a folder; name a file in it"),
        ("generate --jobs 3 --out nowhere/a", "nowhere/a: there is no folder nowhere; make it first"),
        ("simulate missing.csv --jobs deep", "deep: is a folder; name a file in it"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_what_cannot_be_written_is_refused_before_anything_is_read(words, told, capsys):
    code, out, err = tenure(capsys, *words.split())
    assert (code, out, err) == (1, "", f"{told}\n")


@pytest.mark.usefixtures("folder")
def test_one_pipe_or_device_may_take_several_outputs(capsys):
    code, _, err = tenure(capsys, "plan", "c.yaml", "--report", "/dev/null", "--output", "/dev/null")
    assert (code, err) == (0, "")


def test_an_export_goes_through_pipes_and_links(folder, capsys):
    assert tenure(capsys, "simulate", "t.csv", "--cluster", "c.yaml", "--history", "h.db")[0] == 0
    target = folder / "real.jsonl"
    target.write_text("before")
    (folder / "link.jsonl").symlink_to("real.jsonl")
    os.mkfifo(folder / "pipe")
    assert tenure(capsys, "history", "export", "link.jsonl", "--history", "h.db")[0] == 0
    assert (folder / "link.jsonl").is_symlink()
    reader = os.open(folder / "pipe", os.O_RDWR)
    code, out, err = tenure(capsys, "history", "export", "pipe", "--history", "h.db")
    assert (code, out, err.split()[1:3]) == (0, "", ["records", "written"])
    assert os.read(reader, 1 << 16) == target.read_bytes()
    os.close(reader)
    assert (folder / "pipe").is_fifo()
