"""The house does not grow where it was made smaller."""

from __future__ import annotations

from tools.figures import MOST_COMPLEX, figures

LARGE_CLASSES = 12
"""Classes with more than twelve methods that are left; fewer is better."""

LARGEST = 26
"""Methods of the largest of them."""

DECIDING = 9396
"""Lines of the rooms that choose who has to go."""


def test_figures_do_not_grow():
    """Large classes, complex functions, lines where victims are chosen; and nothing undoes by hand."""
    found = figures()
    assert found.by_hand == []
    assert found.complex_functions == {}, MOST_COMPLEX
    assert len(found.large_classes) <= LARGE_CLASSES
    assert max(found.large_classes.values()) <= LARGEST
    assert found.deciding <= DECIDING
