"""Threads share one heap where the C library knows how to, and elsewhere nothing happens."""

import ctypes
import platform

from tenure.web import heap


def test_with_glibc_there_is_one_heap():
    assert heap.share_one_heap() is (platform.libc_ver()[0] == "glibc")


def test_with_another_library_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(ctypes, "CDLL", lambda _: object())
    assert heap.share_one_heap() is False
