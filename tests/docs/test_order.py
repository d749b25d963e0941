"""The suite's order over several workers names files that are there, and leaves no test out."""

from pathlib import Path

from tests.order import ALIKE, LONG, LONGEST, SHARING, TOGETHER, piece_of, rank

ROOT = Path(__file__).resolve().parents[2]


def test_what_is_named_is_there():
    alike = [f"tests/kubernetes/{name}" for files in ALIKE for name in files]
    assert [name for name in (*SHARING, *TOGETHER, *LONGEST, *LONG, *alike) if not (ROOT / name).exists()] == []


def test_what_waits_comes_first_and_what_shares_stays_together():
    names = [
        "tests/model/test_files.py::test_a[x]", "tests/kubernetes/test_access.py::test_b",
        "tests/model/test_files.py::test_c",
        f"{LONG[0]}::test_d", f"{LONGEST[0]}::test_e", f"{LONGEST[0]}::test_f[tests/model]",
    ]  # fmt: skip
    ordered = sorted(names, key=rank)
    assert [names.index(name) for name in ordered] == [4, 5, 1, 3, 0, 2]
    assert [piece_of(name) for name in ordered[:3]] == [LONGEST[0], LONGEST[0], "tests/kubernetes/test_access.py"]
    assert piece_of(names[0]) == names[0]
    assert piece_of(f"{TOGETHER[0]}::test_g") == piece_of(f"{TOGETHER[0]}::test_h[y]") == TOGETHER[0]
    assert {piece_of(f"tests/kubernetes/{name}::test_i") for name in ALIKE[1]} == {ALIKE[1][0]}
