"""Writing: as a whole or not at all."""

import errno
import os
import stat

import pytest

from tenure.model.documents.files import part_of, write_atomically


def full_disk(*_args):
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("call", ["os.fsync", "pathlib.Path.replace"])
def test_a_full_disk_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch, call):
    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr(call, full_disk)
    with pytest.raises(OSError, match="No space left on device") as caught:
        write_atomically(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    def interrupt(*_args):
        raise KeyboardInterrupt

    path = tmp_path / "report.html"
    path.write_text("old")
    monkeypatch.setattr("os.fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(path, "new")
    assert [file.read_text() for file in tmp_path.iterdir()] == ["old"]


def test_the_new_file_has_the_mode_of_the_old_one_or_that_of_any_new_file(tmp_path):
    path = tmp_path / "x"
    path.write_text("old")
    path.chmod(0o640)
    write_atomically(path, "µ\n")
    assert path.read_bytes() == "µ\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    write_atomically(tmp_path / "y", "")
    (tmp_path / "z").touch()
    assert (tmp_path / "y").stat().st_mode == (tmp_path / "z").stat().st_mode


def test_a_link_keeps_pointing_to_its_file(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomically(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"


def test_what_is_written_bit_by_bit_takes_no_other_file_for_its_part(tmp_path):
    others = [tmp_path / name for name in ("x.part", "x.tmp", ".x.part", ".x.tmp")]
    for other in others:
        other.write_text("mine")
    target = tmp_path / "x"
    with pytest.raises(IsADirectoryError), part_of(target) as part:
        part.write_bytes(tmp_path.read_bytes())
    assert sorted(tmp_path.iterdir()) == sorted(others)
    with part_of(target) as part:
        part.write_text("new")
    assert target.read_text() == "new"
    assert target.stat().st_mode == others[0].stat().st_mode
    assert [other.read_text() for other in others] == ["mine"] * 4
    assert sorted(tmp_path.iterdir()) == sorted([*others, target])


def test_what_is_no_regular_file_is_written_to(tmp_path):
    write_atomically(os.devnull, "text")
    with pytest.raises(IsADirectoryError) as caught:
        write_atomically(tmp_path, "text")
    assert caught.value.filename == str(tmp_path)
    with pytest.raises(FileNotFoundError) as missing:
        write_atomically(tmp_path / "no" / "x", "text")
    assert missing.value.filename == str(tmp_path / "no" / "x")
