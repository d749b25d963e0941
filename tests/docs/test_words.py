"""One word for one thing, in what people read: pages, messages, docstrings; and every page can be reached.

A word that was replaced by a term does not come back, and a workload, a pod or a queue is "it", not "somebody".
"""

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "tenure"
PAGES = sorted({*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")} - {ROOT / "CHANGELOG.md"})

RETIRED = {
    r"weighted resource-hours?|GPU-h\b|CPU-h\b|CPU-hours?|weighted h\b": "weighted hours, GPU-hours, core-hours",
    r"\bcensus\b": "pending index",
    r"\bhopeless(?:ness)?\b": "infeasible",
    r"\blandless\b": "without target",
    r"\blogbook\b": "eviction log",
    r"\blogs? of evictions\b": "eviction log",
    r"\bpromised places?\b": "nomination",
    r"\b(?:hollow|heat) nodes?\b": "empty node, hot node",
    r"\bevicted in thought\b": "evicted in a scenario",
    r"\b(?:sent|send|sends) back to the queue\b|\bgoes back to the queue\b": "requeued",
    r"\bwhat overstays\b|\bhas outstayed\b": "runs longer than expected",
    r"\bnot evaluated here\b": "Tenure does not evaluate",
}
"""Words and phrases that are not used any more, and what is said instead."""

PERSONS = r"\b(?:somebody|someone|everybody|everyone|anybody|anyone|nobody|whoever|whom)\b"
"""Words for persons; a workload, a task, a pod or a queue is none."""

CEILINGS = {"clusters": 45, "history": 20, "live": 20, "web": 35}
"""How often docstrings of a room still call a thing a person, at most. These numbers only go down."""


def page_text(page: Path) -> str:
    """A page without its code blocks."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)


def strings(path: Path) -> Iterator[tuple[bool, str]]:
    """Give each string of a module, and whether it is a docstring; regular expressions and names have no blanks."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    docstrings = {
        id(line.value)
        for node in ast.walk(tree)
        if isinstance(body := getattr(node, "body", None), list)
        for line in body
        if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and " " in node.value:
            yield id(node) in docstrings, " ".join(node.value.split())


@cache
def all_texts() -> dict[str, list[tuple[bool, str]]]:
    """Give the strings of all modules."""
    return {path.relative_to(SOURCE).as_posix(): list(strings(path)) for path in sorted(SOURCE.rglob("*.py"))}


TEMPLATES = sorted((SOURCE / "web" / "templates").rglob("*.*"))


@pytest.mark.parametrize("pattern", RETIRED)
def test_a_retired_word_does_not_come_back(pattern):
    """No page, message, docstring or template has it."""
    word = re.compile(pattern, re.IGNORECASE)
    found = [page.name for page in PAGES if word.search(page_text(page))]
    found += [name for name, texts in all_texts().items() if any(word.search(text) for _, text in texts)]
    found += [page.name for page in TEMPLATES if word.search(page.read_text(encoding="utf-8"))]
    assert found == [], f"say instead: {RETIRED[pattern]}"


def test_a_page_calls_no_workload_a_person():
    """On pages, and in what users meet at run time, a workload is "it"."""
    word = re.compile(PERSONS, re.IGNORECASE)
    found = {(page.name, match.group()) for page in PAGES for match in word.finditer(page_text(page))}
    assert found == set()
    shown = {
        (name, text) for name, texts in all_texts().items() for docs, text in texts if not docs and word.search(text)
    }
    assert shown == set()


def test_docstrings_do_not_call_more_things_persons():
    """A room without a ceiling has none."""
    word = re.compile(PERSONS, re.IGNORECASE)
    counted = Counter()
    for name, texts in all_texts().items():
        counted[name.split("/")[0]] += sum(
            len(word.findall(re.sub(r"``.*?``", "", text))) for docs, text in texts if docs
        )
    assert {room: number for room, number in counted.items() if number > CEILINGS.get(room, 0)} == {}


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """Give the file and the heading that each link of a page names; links to other sites are left out."""
    for target in re.findall(r"\]\(([^)\s]+)\)", page_text(page)):
        if "://" not in target and not target.startswith("mailto:"):
            file, _, heading = target.partition("#")
            yield ((page.parent / file).resolve() if file else page), heading


def anchors(page: Path) -> set[str]:
    """Give the anchors of a page's headings, as GitHub makes them."""
    found = re.findall(r"^#+ (.*)$", page_text(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in found}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_a_file_and_a_heading(page):
    """Every link of a page resolves."""
    wrong = [
        f"{file.name}#{heading}"
        for file, heading in links(page)
        if not file.exists() or (heading and heading not in anchors(file))
    ]
    assert wrong == []


def test_every_page_can_be_reached_from_the_readme():
    """Following links from README reaches all pages."""
    seen, todo = set(), [ROOT / "README.md"]
    while todo:
        page = todo.pop()
        if page not in seen and page.suffix == ".md":
            seen.add(page)
            todo += [file for file, _ in links(page)]
    assert {page.relative_to(ROOT).as_posix() for page in PAGES if page not in seen} == set()
