"""A signal ends a read, whenever it comes, and a read gives what is there."""

from __future__ import annotations

import _thread
import io
import os
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.documents.interruptible import read_interruptibly


@pytest.fixture
def pipe():
    """A pipe: the stream that reads, and the descriptor on which is written."""
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb") as stream:
        yield stream, writing


def test_a_signal_that_is_noted_just_before_the_system_is_asked_ends_the_read(pipe):
    """`interrupt_main` notes a signal and interrupts nothing, as one does that comes a moment before the read."""
    stream, writing = pipe
    noted = threading.Timer(0.05, _thread.interrupt_main)
    given_up = threading.Timer(60, os.close, (writing,))
    given_up.start()

    def read():
        noted.start()
        return read_interruptibly(stream, 10)

    with pytest.raises(KeyboardInterrupt):
        read()
    given_up.cancel()
    os.close(writing)


@given(st.lists(st.binary(min_size=1, max_size=20), max_size=8), st.integers(1, 50))
def test_what_was_written_is_read_however_it_came(pieces, size):
    reading, writing = os.pipe()

    def write():
        for piece in pieces:
            os.write(writing, piece)
        os.close(writing)

    writer = threading.Thread(target=write)
    with os.fdopen(reading, "rb") as stream:
        writer.start()
        found = []
        while piece := read_interruptibly(stream, size):
            found.append(piece)
    writer.join()
    assert b"".join(found) == b"".join(pieces)
    assert [len(piece) for piece in found[:-1]] == [size] * (len(found) - 1)


def test_a_stream_in_memory_is_read_as_it_is():
    assert read_interruptibly(io.BytesIO(b"abc"), 2) == b"ab"
