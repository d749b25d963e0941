"""For which nodes a provisioner refused is noted as a claim's states come, however many pass between two cycles."""

import pytest

from tenure.clusters.kubernetes import api, keys
from tenure.clusters.kubernetes.cache.claim_store import MOST_REFUSED, ClaimStore

KEY = ("default", "data")


def claim(node="", *, uid="u", volume="", number=1):
    """Give a claim whose volume is to be made for a node."""
    marks = {keys.SELECTED_NODE: node} if node else {}
    meta = api.Meta(name="data", namespace="default", uid=uid, resource_version=str(number), annotations=marks)
    return api.ApiClaim(metadata=meta, spec=api.ClaimSpec(volume_name=volume))


@pytest.mark.parametrize(
    ("states", "expected"),
    [
        ([claim(), claim("a"), claim()], ("a",)),
        ([claim("a"), claim(), claim("b"), claim(), claim("a"), claim()], ("b", "a")),
        ([claim("a"), claim("b")], ()),
        ([claim("a"), claim(), claim("b", volume="v")], ()),
        ([claim("a"), claim(uid="other")], ()),
    ],
)
def test_a_node_that_is_taken_off_was_refused(states, expected):
    store = ClaimStore()
    for state in states:
        store.put(state)
    assert store.refused.get(KEY, ()) == expected
    store.drop(KEY)
    assert store.refused == {}


def test_what_this_process_selected_and_a_watch_takes_off_is_one_of_them():
    store = ClaimStore()
    store.put(claim(number=1))
    store.written(claim("a", number=2))
    store.put(claim(number=3))
    assert store.refused == {KEY: ("a",)}


def test_only_the_latest_are_kept():
    store = ClaimStore()
    for number in range(MOST_REFUSED + 3):
        store.put(claim(f"n{number}"))
        store.put(claim())
    assert len(store.refused[KEY]) == MOST_REFUSED
    assert store.refused[KEY][-1] == f"n{MOST_REFUSED + 2}"
