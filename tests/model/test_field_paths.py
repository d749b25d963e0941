"""Paths of fields: what they name, what they cost, and what is none."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tenure.model.fields.field_paths import MOST_FOUND, MOST_STEPS, FieldPathKind, field_path

ITEM = {"spec": {"a": [{"n": 1}, {"n": 2}, {"m": 3}], "x/y": {"p": 4, "q": None}, "s": "text"}}


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (".spec.a[*].n", [1, 2]),
        ("{.spec.a[1].n}", [2]),
        ("$.spec.s", ["text"]),
        (".spec['x/y'].p", [4]),
        ('.spec["x/y"].*', [4]),
        (".spec.a.n", []),
        (".spec.a[7]", []),
        (".spec.s[0]", []),
        (".spec.s.*", []),
    ],
)
def test_a_path_gives_what_stands_there(text, found):
    """What is not there, or is null, or has no parts gives nothing."""
    assert list(field_path(text).found(ITEM)) == found


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("spec.a", "is no path of fields"),
        ("", "names no field"),
        ("$", "names no field"),
        (".a[?(@.b==1)]", "from '[?(@.b==1)]' on"),
        ("..a", "is no path"),
        (".a[-1]", "is no path"),
        (".a" * (MOST_STEPS + 1), "steps"),
        (".a" * 300, "characters"),
    ],
)
def test_what_is_no_path_is_refused_with_an_example(text, words):
    with pytest.raises(ValueError, match=r"path|field|steps|characters") as error:
        field_path(text)
    assert words in str(error.value)


def test_a_path_gives_no_more_than_its_bound():
    """A list of lists of lists costs no more than so many values at each step."""
    wide = [[[0] * 100] * 100] * 100
    assert len(list(field_path("[*][*][*]").found(wide))) == MOST_FOUND


json = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
)
steps = st.lists(st.sampled_from([".a", ".b", "[0]", "[*]", ".*", "['c']"]), min_size=1, max_size=5)


@given(json, steps)
def test_a_path_leads_where_it_says(item, parts):
    """Each value is the one that its keys and indices lead to."""
    for place, found in field_path("".join(parts)).located(item):
        inner = item
        for step in place:
            inner = inner[step]
        assert inner is found
        assert found is not None


@given(st.text(alphabet=".$[]*'\"ab0{}?-", max_size=12))
def test_the_schema_takes_what_can_be_read_and_nothing_else(text):
    """The API server, which has the pattern alone, takes a path exactly where the scheduler can read it."""
    import re  # noqa: PLC0415

    pattern = FieldPathKind.shape["pattern"]
    try:
        field_path(text)
    except ValueError:
        assert not re.search(pattern, text)
    else:
        assert re.search(pattern, text)
