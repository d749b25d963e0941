"""The suite's order over several workers names files that are there, and leaves no test out."""

from pathlib import Path
from types import SimpleNamespace

from tests.order import ALIKE, LAST, LONG, LONGEST, SHARING, TOGETHER, LongestFirst, piece_of, rank

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_named_is_there():
    alike = [f"tests/kubernetes/{name}" for files in ALIKE for name in files]
    named = (*SHARING, *TOGETHER, *LONGEST, *LONG, *LAST, *alike)
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_what_waits_comes_first_and_what_shares_stays_together():
    names = [
        "tests/model/test_files.py::test_a[x]", "tests/kubernetes/test_access.py::test_b",
        "tests/model/test_files.py::test_c",
        f"{LONG[0]}::test_d", f"{LONGEST[0]}::test_e", f"{LONGEST[0]}::test_f[tests/model]",
        f"{LAST[0]}::test_g", "tests/kubernetes/test_usage.py::test_h", f"{SHARING[1]}test_i.py::test_j",
    ]  # fmt: skip
    ordered = sorted(names, key=rank)
    assert [names.index(name) for name in ordered] == [4, 5, 1, 7, 6, 8, 3, 0, 2]
    assert [piece_of(name) for name in ordered[:3]] == [LONGEST[0], LONGEST[0], "tests/kubernetes/test_access.py"]
    assert piece_of(names[0]) == names[0]
    assert piece_of(f"{TOGETHER[0]}::test_g") == piece_of(f"{TOGETHER[0]}::test_h[y]") == TOGETHER[0]
    assert {piece_of(f"tests/kubernetes/{name}::test_i") for name in ALIKE[1]} == {ALIKE[1][0]}


class Worker:
    """A worker that notes what it is sent, and never begins."""

    shutting_down = False

    def __init__(self, name):
        self.gateway = SimpleNamespace(id=name)
        self.sent = []

    def send_runtest_some(self, indices):
        self.sent += indices

    def shutdown(self):
        self.shutting_down = True


def handed_out(names, workers):
    """Give by worker the tests that it is sent, each as soon as it has done what it was sent before."""
    given = {"tx": [f"{workers}*popen"]}
    order = LongestFirst(SimpleNamespace(getvalue=given.get, option=SimpleNamespace(loadscopereorder=True)))
    made = [Worker(f"gw{n}") for n in range(workers)]
    for one in made:
        order.add_node(one)
        order.add_node_collection(one, names)
    order.schedule()
    for turn in range(len(names)):
        for one in made:
            if turn < len(one.sent):
                order.mark_test_complete(one, one.sent[turn])
    return [[names[n] for n in one.sent] for one in made]


def test_one_worker_of_four_computes_while_the_others_wait():
    waiting = [f"tests/kubernetes/test_{letter}.py::test_it[{n}]" for letter in "abcdefghi" for n in range(3)]
    computing = [f"tests/model/test_files.py::test_{n}" for n in range(20)]
    sent = handed_out(sorted(waiting + computing, key=rank), 4)
    assert sorted(name for names in sent for name in names) == sorted(waiting + computing)
    assert set(sent[3]) <= set(computing)
    assert all(names[:6] and set(names[:6]) <= set(waiting) for names in sent[:3])


def test_who_computes_goes_on_with_what_waits():
    waiting = [f"tests/kubernetes/test_{letter}.py::test_it" for letter in "abcdefghijklmnopqrst"]
    sent = handed_out([*waiting, "tests/model/test_files.py::test_it"], 4)
    assert len({name for names in sent for name in names}) == len(waiting) + 1
    assert sent[3][0] == "tests/model/test_files.py::test_it"
    assert len(sent[3]) > 1
