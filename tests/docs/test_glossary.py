"""One word for one thing: class names are unique, and each stands in the glossary with a sentence."""

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest
from tests.docs.scripts import load

ROOT = Path(__file__).resolve().parents[2]


MADE = load("make_glossary")
TERMS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in MADE.TARGET.read_text(encoding="utf-8").split(MADE.MARK)[0].splitlines()
    if line.startswith("| ") and not line.startswith("| term")
]


@cache
def classes_of_the_project():
    return list(MADE.defined_classes())


def test_a_public_class_name_means_one_thing():
    """No two public classes of the project have one name."""
    counted = Counter(made.name for made in classes_of_the_project())
    assert [name for name, times in counted.items() if times > 1] == []


def test_the_list_of_classes_is_what_the_code_says():
    """The page is up to date; if this fails, run: python docs/make_glossary.py."""
    assert MADE.TARGET.read_text(encoding="utf-8") == MADE.generate()


def test_every_class_says_what_it_is():
    """The first sentence of a class's docstring is there."""
    assert [made.name for made in classes_of_the_project() if len(made.sentence.split()) < 2] == []


def test_a_term_stands_once_and_in_order():
    """Terms are sorted, and none stands twice."""
    names = [cells[0] for cells in TERMS]
    assert names == sorted(set(names))


@pytest.mark.parametrize("cells", TERMS, ids=lambda cells: cells[0])
def test_a_term_has_one_sentence_and_classes_that_exist(cells):
    """A term is explained in one sentence, and the classes that stand for it are classes of the project."""
    _, sentence, classes, *_ = cells
    assert sentence.endswith(".")
    assert ". " not in sentence
    assert set(re.findall(r"`(\w+)`", classes)) <= {made.name for made in classes_of_the_project()}
