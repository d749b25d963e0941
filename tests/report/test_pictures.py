"""Pictures are whole: no label begins before the edge, and those in the docs say what they show."""

import re
from html import unescape
from itertools import pairwise
from pathlib import Path

import pytest

from tenure.report.drawing.bars import Bar, bars_plot
from tenure.report.drawing.curves import Curve, CurvePoint, curves_plot
from tenure.report.drawing.plot import Plot
from tenure.report.drawing.scales import Tick
from tenure.report.picture import FULL_WIDTH, LONGEST, picture

IMAGES = Path(__file__).resolve().parents[2] / "docs" / "images"
NARROW = 6.0
"""Pixels that a letter of a label takes at least, at 13 pixels."""


def begins(svg):
    """Give where each label on the left begins, by the narrowest that letters are."""
    labels = re.findall(r'<text class="y" x="([\d.]+)"[^>]*>(.*?)</text>', svg)
    return {text: float(x) - NARROW * len(unescape(text)) for x, text in labels}


def labelled(*names):
    return Plot("rows", 100, "", y=[Tick(0.1 * n, name) for n, name in enumerate(names)], rows=True)


def test_large_figures_are_written_out():
    """Neither an axis nor a tooltip says 1e+05."""
    plot = curves_plot(
        "lost", ["0m", "2h"], [Curve("a", (CurvePoint(0, 0.01234, 0, 1), CurvePoint(1, 95_658.1, 0, 95_658.1)))]
    )
    svg = picture("head", [("a", plot)])
    assert ">100,000<" in svg
    assert "0m 0.01234, 2h 95,658" in svg
    assert min(begins(svg).values()) >= 0


@pytest.mark.parametrize("name", sorted(path.name for path in IMAGES.glob("*.svg")))
def test_no_picture_in_the_docs_writes_powers_of_ten(name):
    assert not re.findall(r">[^<]*\de\+\d", (IMAGES / name).read_text())


def test_labels_have_the_room_that_they_need_and_all_plots_the_same():
    svg = picture("head", [("a", labelled("0", "10")), ("b", labelled("requeue, saved every 30m", "n" * 253))])
    assert min(begins(svg).values()) >= 0
    assert len(set(re.findall(r'<svg x="(\d+)"', svg))) == 1
    assert f"{'n' * (LONGEST - 1)}…" in svg


def test_short_labels_take_no_more_room_than_before():
    assert '<svg x="72"' in picture("head", [("a", labelled("0", "100%"))])


def ends(svg):
    """Give where each entry of a legend ends, by the narrowest that letters are."""
    entries = re.findall(r'<rect class="key[^>]*/><text x="(\d+)"[^>]*>(.*?)</text>', svg)
    return [float(x) + NARROW * len(unescape(text)) for x, text in entries]


def test_a_long_legend_goes_on_in_the_next_line():
    names = [f"name {n}, which is long enough" for n in range(9)]
    plot = Plot("bars", 100, "", y=[Tick(0, "0")], legend=[(f"c{n}", name) for n, name in enumerate(names)])
    svg, short = picture("head", [("a", plot)]), picture("head", [("a", labelled("0"))])
    assert len(ends(svg)) == len(names)
    assert max(ends(svg)) <= FULL_WIDTH
    heights = [int(re.search(r'height="(\d+)" role', one)[1]) for one in (short, svg)]
    assert heights[1] > heights[0]


@pytest.mark.parametrize("name", sorted(path.name for path in IMAGES.glob("*.svg")))
def test_no_label_of_a_picture_in_the_docs_is_cut_off(name):
    found = begins((IMAGES / name).read_text())
    assert found
    assert "\N{NO-BREAK SPACE}" not in (IMAGES / name).read_text()
    assert min(found.values()) >= 0, found
    assert max(ends((IMAGES / name).read_text()), default=0) <= FULL_WIDTH


def test_a_picture_is_told_of_as_what_it_is():
    """The words for those who cannot see it name the span and what is drawn."""
    svg = (IMAGES / "simulation.svg").read_text()
    (alt,) = re.findall(r"!\[(.*?)\]\(docs/images/simulation\.svg\)", (IMAGES.parents[1] / "README.md").read_text())
    assert "in 6 d" in svg
    assert "six simulated days" in alt
    assert "tasks on nodes" in svg
    assert "tasks on its nodes" in alt
    assert "waiting" not in alt


@pytest.mark.parametrize(("room", "minor"), [(900, True), (260, False)])
@pytest.mark.parametrize("labels", [["0m", "2h"], [f"policy {n}, which is long" for n in range(12)], ["x" * 99] * 5])
def test_no_two_labels_below_curves_meet(labels, room, minor):
    """On a wide page, and where those go that are minor; one is left at least."""
    points = [CurvePoint(n, 1, 1, 1) for n in range(len(labels))]
    shown = [tick for tick in curves_plot("a", labels, [Curve("a", points)]).x if minor or not tick.minor]
    assert shown
    places = [tick.at * room for tick in shown]
    assert all(b - a >= NARROW * len(labels[0]) for a, b in pairwise(places))


def test_bars_are_as_long_as_their_values_and_say_their_range():
    plot = bars_plot("waits", [Bar("long", 4, 2, 8), Bar("none", 0, 0, 0)], "{:g} h".format)
    assert [tick.label for tick in plot.x if not tick.minor][-1] == "8 h"
    assert re.findall(r'width="([\d.]+)" height="20" class="bar c0"', plot.marks) == ["500", "0"]
    assert "<title>long: 4 h (2 h to 8 h)</title>" in plot.marks
    assert "<title>none: 0 h</title>" in plot.marks
    assert plot.marks.count("whisker") == 1
    assert [tick.label for tick in plot.y] == ["long", "none"]
