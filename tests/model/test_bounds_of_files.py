"""A file of few bytes that stands for many is refused before it fills the memory, in words."""

import gzip

import pytest

from tenure.model import entries
from tenure.model.cluster import Cluster
from tenure.model.documents import json_source, yaml_source
from tenure.model.documents.source import MAX_YAML, read_documents
from tenure.model.file import added as manifests
from tenure.model.file.load import load_cluster
from tenure.model.values.problems import InvalidInputError
from tenure.simulator.trace import read_trace


def said(path, read=load_cluster):
    with pytest.raises(InvalidInputError) as raised:
        read(path)
    (problem,) = raised.value.problems
    return problem.message


@pytest.mark.parametrize("piece", [b"[],", b"1,", b"{},", b'"a",'])
def test_a_packed_file_that_unpacks_to_very_much_is_refused(tmp_path, piece):
    path = tmp_path / "c.json.gz"
    path.write_bytes(gzip.compress(b"[" + piece * (2 * MAX_YAML // len(piece)), 1))
    assert path.stat().st_size < 200_000
    assert "unpacks to more than 200 times its size" in said(path)


def test_a_packed_trace_that_unpacks_to_very_much_is_refused(tmp_path):
    path = tmp_path / "t.csv.gz"
    path.write_bytes(gzip.compress(b"job,submit_s\n" + b"a,1\n" * 8_000_000, 6))
    assert "unpacks to more than 200 times its size" in said(path, read_trace)


def test_what_packs_as_files_do_is_read_though_it_is_larger_than_yaml_may_be(tmp_path):
    path = tmp_path / "c.json.gz"
    nodes = ",".join(f'{{"name": "node-{n}", "allocatable": {{"cpu": "{n % 97}"}}}}' for n in range(60_000))
    text = f'{{"now": "2026-11-20T10:00:00Z", "nodes": [{nodes}]{" " * MAX_YAML}}}'
    path.write_bytes(gzip.compress(text.encode(), 6))
    assert len(load_cluster(path).cluster.nodes) == 60_000


@pytest.mark.parametrize(("bound", "what"), [("MAX_CONTAINERS", "lists and mappings"), ("MAX_VALUES", "values")])
def test_json_of_very_many_values_is_refused(tmp_path, monkeypatch, bound, what):
    monkeypatch.setattr(json_source, bound, 1_000)
    path = tmp_path / "c.json"
    path.write_text("[" + "[]," * 1_001 + "[]]")
    assert f"has more than the 1,000 {what}" in said(path)


@pytest.mark.parametrize("text", ["--- [" + "1," * 10 + "1]", "- 1\n" * 11, "".join(f"k{n}: {n}\n" for n in range(11))])
def test_yaml_of_very_many_values_is_refused(tmp_path, monkeypatch, text):
    """One value is the list or the mapping itself."""
    path = tmp_path / "c.yaml"
    path.write_text(text)
    monkeypatch.setattr(yaml_source, "MAX_VALUES", 12)
    assert len(read_documents(path)[0].value) == 11
    monkeypatch.setattr(yaml_source, "MAX_VALUES", 11)
    assert "holds more than 11 values" in said(path, read_documents)


def test_yaml_of_very_many_documents_is_refused_where_there_is_one_too_many(tmp_path, monkeypatch):
    monkeypatch.setattr(yaml_source, "MAX_DOCUMENTS", 3)
    path = tmp_path / "c.yaml"
    path.write_text("---\n{a: 1}\n" * 3)
    assert len(read_documents(path)) == 3
    path.write_text("---\n{a: 1}\n" * 4)
    with pytest.raises(InvalidInputError) as raised:
        read_documents(path)
    (problem,) = raised.value.problems
    assert (problem.line, problem.message) == (7, "holds more than 3 documents; split it into several files")


@pytest.mark.parametrize("section", sorted(entries.MOST.keys() - {"tasks"}))
def test_a_section_of_very_many_entries_is_refused_as_a_whole(tmp_path, monkeypatch, section):
    monkeypatch.setitem(entries.MOST, section, 3)
    entries.file_entry.cache_clear()
    try:
        path = tmp_path / "c.yaml"
        path.write_text(f"now: 2026-11-20T10:00:00Z\n{section}:\n" + "- {}\n" * 4)
        assert said(path) == "has 4 entries; 3 are the most that are read"
    finally:
        entries.file_entry.cache_clear()


def test_very_many_tasks_of_a_workload_are_refused_as_a_whole(tmp_path, monkeypatch):
    monkeypatch.setitem(entries.MOST, "tasks", 3)
    entries.workload_entry.cache_clear()
    entries.file_entry.cache_clear()
    try:
        path = tmp_path / "c.yaml"
        path.write_text("now: 2026-11-20T10:00:00Z\nworkloads:\n- {name: w, tasks: [{}, {}, {}, {}]}\n")
        assert said(path) == "has 4 entries; 3 are the most that are read"
    finally:
        entries.workload_entry.cache_clear()
        entries.file_entry.cache_clear()


def test_very_many_workloads_are_not_added_in_thought(tmp_path, monkeypatch):
    monkeypatch.setattr(manifests, "MOST_ADDED", 3)
    manifests._additions_entry.cache_clear()
    try:
        path = tmp_path / "a.yaml"
        path.write_text("workloads:\n" + "- {}\n" * 4)
        with pytest.raises(InvalidInputError) as raised:
            manifests.load_additions(path, Cluster(now=0))
        assert "has 4 entries; 3 are the most that are read" in str(raised.value)
    finally:
        manifests._additions_entry.cache_clear()
