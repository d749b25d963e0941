"""Files as they come: cut, packed, huge, hostile, or no files at all."""

import gzip
import json
import os
import time

import pytest

from tenure.model.documents.source import MAX_JSON, MAX_YAML, read_document, read_documents
from tenure.model.file.load import load_cluster, load_settings
from tenure.model.values.problems import InvalidInputError
from tenure.model.values.report import MAX_PROBLEMS
from tenure.simulator.trace import read_trace

AT_ONCE = 60.0
"""Seconds of the processor, on any machine and beside any load; what is not refused at once takes many minutes."""

GOOD = "now: 2026-11-20T10:00:00Z\nnodes:\n- {name: n}\n"


def message_of(path):
    with pytest.raises(InvalidInputError) as caught:
        load_cluster(path)
    assert len(caught.value.problems) == 1, caught.value
    problem = caught.value.problems[0]
    assert problem.file == str(path)
    return problem.line, problem.path, problem.message


def written(tmp_path, content, name="c.yaml"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("content", ["", "\n\n", "# nothing here\n", "---\n---\n", "null", "{}"])
def test_a_file_that_holds_nothing_says_so(tmp_path, content):
    assert "is empty" in message_of(written(tmp_path, content))[2]


@pytest.mark.parametrize(
    ("content", "line", "path", "words"),
    [
        ("nodes:\n\t- name: n\n", 2, "", "a tab stands where spaces are due"),
        ("nodes: [\n{name: n}\n", 3, "", "is not YAML"),
        ("nodes: 'x\n", 2, "", "is not YAML"),
        ("a: b: c\n", 1, "", "is not YAML"),
        ("queues: []\nnodes:\n- name: n\n  name: m\n", 4, "nodes[0].name", "is there twice"),
        ("nodes: *gone\n", 1, "nodes", "alias *gone"),
        ("nodes: &a [*a]\n", 1, "nodes[0]", "alias *a"),
        ("nodes: !!python/object:os.system [x]\n", 1, "nodes", "tag"),
        ("nodes: !x [y]\n", 1, "nodes", "tag"),
        ("? [a]\n: b\n", 1, "", "a key is not text"),
        ("<<: 5\n", 1, "", "merges mappings"),
        ("- a\n- b\n", 1, "", "is a list, but a mapping is expected"),
        ("just words\n", 1, "", "is 'just words' (text), but a mapping"),
        ("root:x:0:0:\n", 1, "root:x:0:0", "unknown key"),
        (GOOD + "---\n" + GOOD, 0, "", "holds 2 documents; one is expected"),
        ("nodes: \x07\n", 1, "", "is not YAML"),
        ("nodes: [{name: n}]\nqueues: \x00\n", 2, "", "is not YAML"),
    ],
)
def test_malformed_yaml_names_its_line(tmp_path, content, line, path, words):
    found = message_of(written(tmp_path, content))
    assert found[:2] == (line, path), found
    assert words in found[2]


@pytest.mark.parametrize(
    ("content", "line", "path", "words"),
    [
        ('{"nodes": [\n{"name": "n"}\n', 3, "", "is not JSON"),
        ('{"nodes": [\n{"name": "n",\n "name": "m"}]}', 3, "name", "is there twice"),
        ('{"nodes": [\n{"name": "n",\n "bad": {"x": "}{,\\"", "y": [1]}}]}', 3, "nodes[0].bad", "unknown key"),
        ('{\n"nodes": [{"name": "n"},\n\n5]}', 4, "nodes[1]", "a mapping is expected"),
        ('{"nodes": [], "now": NaN}', 1, "now", "a time is expected"),
        ('{"nodes": ' + "9" * 5000 + "}", 0, "", "is not JSON"),
        ('{"nodes": "\\ud800"}', 0, "", "half of a character"),
        ('{"nodes": ' + "[" * 100_000, 0, "", "nested too deeply"),
    ],
)
def test_malformed_json_names_its_line(tmp_path, content, line, path, words):
    found = message_of(written(tmp_path, content, "c.json"))
    assert found[:2] == (line, path), found
    assert words in found[2]


def test_what_begins_like_json_may_be_yaml(tmp_path):
    assert load_cluster(written(tmp_path, "{nodes: [{name: n}], queues: [{name: q}]}")).cluster.nodes[0].name == "n"


def test_anchors_and_merged_keys_serve_as_templates(tmp_path):
    text = """\
nodes:
- &big {name: a, allocatable: {cpu: 8}, labels: {pool: x}}
- {<<: *big, name: b}
- {<<: [{labels: {pool: y}}, *big], name: c}
"""
    nodes = load_cluster(written(tmp_path, text)).cluster.nodes
    assert [(node.name, node.allocatable, node.labels["pool"]) for node in nodes] == [
        ("a", {"cpu": 8000}, "x"),
        ("b", {"cpu": 8000}, "x"),
        ("c", {"cpu": 8000}, "y"),
    ]


def test_aliases_that_expand_without_end_are_refused_at_once(tmp_path):
    levels = "".join(f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 10)}]\n" for i in range(1, 12))
    path = written(tmp_path, "a0: &a0 [x, x, x, x]\n" + levels + "nodes: *a11\n")
    start = time.process_time()
    assert "aliases expand to more than" in message_of(path)[2]
    assert time.process_time() - start < AT_ONCE


@pytest.mark.parametrize("opening", ["[", "{a: ", "- "])
def test_nesting_without_end_is_refused_at_once(tmp_path, opening):
    path = written(tmp_path, "nodes: " * (opening != "- ") + opening * 1_000_000)
    start = time.process_time()
    assert "nested deeper than 100 levels" in message_of(path)[2]
    assert time.process_time() - start < AT_ONCE


def test_packed_files_are_read_as_they_are(tmp_path):
    assert len(load_cluster(written(tmp_path, gzip.compress(GOOD.encode()), "c.yaml.gz")).cluster.nodes) == 1
    assert len(load_cluster(written(tmp_path, gzip.compress(b'{"nodes": [{"name": "n"}]}'))).cluster.nodes) == 1


def test_a_packed_file_that_is_cut_or_damaged_says_so(tmp_path):
    packed = gzip.compress(GOOD.encode() * 100)
    assert "cut off" in message_of(written(tmp_path, packed[:-10]))[2]
    assert "cut off" in message_of(written(tmp_path, packed[:20]))[2]
    broken = bytearray(packed)
    broken[15] ^= 0xFF
    broken[-6] ^= 0xFF
    assert "damaged" in message_of(written(tmp_path, bytes(broken)))[2]
    assert "damaged" in message_of(written(tmp_path, b"\x1f\x8bnot packed at all"))[2]


def test_bytes_that_are_no_text_name_their_line(tmp_path):
    assert message_of(written(tmp_path, b"now: x\nnodes: \xff\n"))[::2] == (
        2,
        "byte 0xff is not UTF-8; save the file as UTF-8 text",
    )


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_in_characters_of_several_bytes_says_what_it_is_and_what_would_be_right(tmp_path, encoding):
    found = message_of(written(tmp_path, GOOD.encode(encoding)))
    name = "UTF-32" if encoding == "utf-32" else "UTF-16"
    assert found[::2] == (1, f"is {name} text; save it as UTF-8")
    trace = tmp_path / "jobs.swf"
    trace.write_bytes("; MaxProcs: 4\n1 0 0 10 1 -1 -1 1 10 -1 1 1 1 -1 -1 -1 -1 -1\n".encode(encoding))
    with pytest.raises(InvalidInputError, match=f"is {name} text; save it as UTF-8"):
        read_trace(trace)


def test_a_byte_order_mark_and_windows_line_ends_do_no_harm(tmp_path):
    content = b"\xef\xbb\xbf" + GOOD.replace("\n", "\r\n").encode()
    assert len(load_cluster(written(tmp_path, content)).cluster.nodes) == 1


def test_what_is_no_file_says_what_it_is(tmp_path):
    assert message_of(tmp_path)[2] == "is a folder; name a file in it"
    assert message_of(tmp_path / "gone.yaml")[2] == "there is no such file"
    assert "is not the name of a file" in message_of(written(tmp_path, GOOD) / "x")[2]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission_says_so(tmp_path):
    path = written(tmp_path, GOOD)
    path.chmod(0)
    assert "its permissions forbid it" in message_of(path)[2]


def test_a_refused_permission_is_told_in_words(tmp_path, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("pathlib.Path.open", refuse)
    assert message_of(tmp_path / "c.yaml")[2] == "may not be read; its permissions forbid it"


def test_a_file_of_200_mb_is_refused_at_once(tmp_path):
    path = tmp_path / "huge.yaml"
    with path.open("wb") as stream:
        stream.write(b"nodes:\n")
        stream.truncate(200 * 1024 * 1024)
    start = time.process_time()
    message = message_of(path)[2]
    assert time.process_time() - start < AT_ONCE
    assert f"is larger than the {MAX_YAML >> 20} MiB of YAML that are read" in message
    assert f"JSON may have {MAX_JSON >> 20} MiB" in message
    path.write_bytes(b"{" + b" " * 200 * 1024 * 1024)
    start = time.process_time()
    assert f"is larger than the {MAX_JSON >> 20} MiB of JSON" in message_of(path)[2]
    assert time.process_time() - start < AT_ONCE


def test_a_small_packed_file_of_gigabytes_is_refused(tmp_path):
    path = tmp_path / "bomb.gz"
    with gzip.open(path, "wb", compresslevel=1) as stream:
        for _ in range(40):
            stream.write(b"#" * (1 << 20))
    assert "is larger than" in message_of(path)[2]


def test_lines_are_the_same_in_yaml_and_json(tmp_path):
    value = {"queues": [{"name": "a"}, {"name": "b", "parent": "x"}], "nodes": [{"name": "n", "labels": {"a.b/c": 1}}]}
    text = json.dumps(value, indent=1)
    found = []
    for name, content in (("c.json", text), ("c.yaml", text + "  # which is no JSON")):
        with pytest.raises(InvalidInputError) as caught:
            load_cluster(written(tmp_path, content, name))
        found.append([(problem.line, problem.path) for problem in caught.value.problems])
    assert found[0] == found[1] == [(8, "queues[1].parent"), (15, "nodes[0].labels.a.b/c")]


SETTINGS = "scheduler: {backfill: easy}\n"


@pytest.mark.parametrize(
    "content",
    [
        "kind: SchedulerConfig\n" + SETTINGS,
        "kind: SchedulerConfig\nbackfill: easy\n",
        "apiVersion: tenure.dev/v1alpha1\nkind: SchedulerConfig\n" + SETTINGS,
        SETTINGS,
        "kind: Cluster\nnodes: []\n" + SETTINGS,
        "nodes: []\n" + SETTINGS,
    ],
)
def test_settings_come_from_either_kind_of_file(tmp_path, content):
    assert load_settings(written(tmp_path, content)).backfill == "easy"


@pytest.mark.parametrize(
    ("content", "path"),
    [
        ("kind: SchedulerConfig\nbackfil: easy\n", "backfil"),
        ("kind: SchedulerConfig\nscheduler: {backfil: easy}\n", "scheduler.backfil"),
        ("kind: SchedulerConfig\nscheduler: {}\nbackfill: easy\n", "backfill"),
        ("kind: Pod\nscheduler: {}\n", "kind"),
    ],
)
def test_problems_of_settings_name_their_place(tmp_path, content, path):
    with pytest.raises(InvalidInputError) as caught:
        load_settings(written(tmp_path, content))
    assert [problem.path for problem in caught.value.problems] == [path]
    assert caught.value.problems[0].line > 0


def test_problems_of_yaml_itself_are_counted_beyond_a_thousand(tmp_path):
    """A megabyte of keys that are there twice, of unknown tags or aliases: a screen or two, not ten megabytes."""
    for text in ("a: 1\n" * 5_000, *("".join(f"- {sign}{n}\n" for n in range(5_000)) for sign in ("*a", "!t"))):
        file = tmp_path / "c.yaml"
        file.write_text(text)
        with pytest.raises(InvalidInputError) as raised:
            read_document(file)
        told = raised.value.problems
        assert len(told) == MAX_PROBLEMS + 1
        assert told[-1].message.endswith("further problems are not shown")


def test_many_merges_keep_their_order_of_precedence(tmp_path):
    """What a mapping says itself counts before what it merges, and of that the first that is named."""
    file = tmp_path / "c.yaml"
    file.write_text(
        "a: &a {x: a, y: a, own: a}\nb: &b {y: b, z: b}\nc: {<<: [*a, *b], own: c}\nd:\n  <<: *b\n  own: d\n"
    )
    value = read_document(file).value
    assert value["c"] == {"x": "a", "y": "a", "z": "b", "own": "c"}
    assert value["d"] == {"y": "b", "z": "b", "own": "d"}


def test_lines_of_many_documents_are_those_of_each(tmp_path):
    """Found in one pass, they are what each document finds by itself."""
    file = tmp_path / "c.yaml"
    file.write_text("".join(f"---\nkind: K{n}\nlist:\n- {{a: {n}}}\n" for n in range(40)))
    documents = read_documents(file)
    path = ("list", 0, "a")
    at_once = documents[0].locate_all({d.number: [path, ("kind",)] for d in documents[::3]})
    for document in documents[::3]:
        assert at_once[document.number] == document.locate([path, ("kind",)])
        assert at_once[document.number][path] == 4 * document.number + 4
