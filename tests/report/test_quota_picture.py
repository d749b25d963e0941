"""The picture of a quota that is enforced, and the tables about it."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from tenure.model.file.load import load_cluster
from tenure.model.file.override import apply_overrides
from tenure.model.yunikorn.convert import load_queues
from tenure.playthrough import play
from tenure.report.plans.plan_json import plan_json
from tenure.report.plans.plan_page import plan_page
from tenure.report.plans.plan_text import plan_text
from tenure.report.quota_plot import quota_plot
from tenure.report.tables import Terminal, text_width

EXAMPLE = Path(__file__).parents[2] / "examples" / "quota"
MINUTE = 60_000_000


@cache
def played(cycles, *changes):
    """Play the documented example with changes."""
    queues = load_queues(EXAMPLE / "queues.yaml")
    cluster = load_cluster(EXAMPLE / "cluster.yaml", queues.policy).cluster
    return play(apply_overrides(cluster, list(changes)).cluster, cycles=cycles, every=MINUTE)


LOWERED = "queue.prod.max.vcore=800"
SHORT = ("queue.prod.max.vcore=650", "queue.prod.guaranteed.vcore=650")


def plot(what):
    """Draw the one picture of a play-through."""
    (track,) = what.quota_tracks
    return quota_plot(track, "cpu", plan_json(what)["quotaEvents"])


def test_a_track_has_a_point_wherever_something_changed():
    """Usage, max and deadline of one queue, in the order of time."""
    (track,) = played(20, LOWERED).quota_tracks
    begin = track.points[0].at
    seen = [((p.at - begin) // MINUTE, p.used["cpu"], p.maximum["cpu"], p.deadline is not None) for p in track.points]
    assert track.queue == "root.prod"
    assert seen == [(0, 1_000_000, 800_000, True), (16, 800_000, 800_000, False)]
    assert track.until == begin + 19 * MINUTE


def test_queues_that_were_never_armed_have_no_picture():
    """Nothing is over its max in the example as it stands."""
    what = played(3)
    assert what.quota_tracks == []
    assert 'id="quotas-over-time"' not in plan_page(what.before, what.after, plan_json(what), what.quota_tracks)


def test_the_picture_marks_arming_firing_and_settling():
    """Each mark stands where it happened."""
    drawn = plot(played(20, LOWERED))
    named = [(note.label, round(note.at * 19)) for note in drawn.notes]
    assert named == [("armed", 0), ("deadline, fires: 2 tasks", 15), ("settled", 16)]
    assert drawn.marks.count('class="mark"') == 3
    assert "fires: 2 tasks after 15\N{NO-BREAK SPACE}min" in drawn.label
    assert 'class="short"' not in drawn.marks


def test_a_deadline_that_lies_ahead_is_in_the_picture():
    """The axis reaches as far as the deadline, though only three cycles were played."""
    drawn = plot(played(3, LOWERED))
    assert [(note.label, note.at > 0.99) for note in drawn.notes] == [("armed", False), ("deadline", True)]


def test_what_cannot_be_enforced_is_marked():
    """A bar between the max and what stays above it, with its amount in the tooltip."""
    what = played(20, *SHORT)
    drawn = plot(what)
    assert ("short", "cannot be enforced") in drawn.legend
    heights = [float(h) for h in re.findall(r'height="([0-9.]+)" class="short"', drawn.marks)]
    top = 1500  # the axis ends there
    assert {round(height / drawn.height * top) for height in heights} == {50}
    assert "50\N{NO-BREAK SPACE}cores cannot be enforced" in drawn.marks


def test_the_page_shows_the_picture_with_its_queue():
    what = played(20, LOWERED)
    page = plan_page(what.before, what.after, plan_json(what), what.quota_tracks)
    assert 'id="quotas-over-time"' in page
    assert "<h3>root.prod: CPU</h3>" in page


def test_the_text_tells_when_it_fires_and_what_stands_in_the_way_in_80_columns():
    text = plan_text(plan_json(played(20, *SHORT)), Terminal(80))
    assert max(map(text_width, text.splitlines())) <= 80
    assert re.search(r"10:00:00Z +root.prod +armed +2026-11-20T10:15:00Z", text)
    assert re.search(r"10:15:00Z +root.prod +fires .* 3 +", text)
    squeezed = " ".join(text.replace("\N{NO-BREAK SPACE}", " ").split())
    assert "stuck 2026-11-20T10:15:00Z 50 cores 50 cores guaranteed of" in squeezed
    assert text.count("deadline 2026") <= 1, "a reason that several share is told once"
