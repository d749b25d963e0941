"""The commands of README and docs run, word by word, in a clean checkout that has nothing but what it ships.

What cannot run here is named in `ELSEWHERE` with the reason and the test that shows it instead; nothing else is left
out.
"""

import ast
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import NamedTuple

import pytest
from tests.doorway import Doorway
from tools.follow import not_printed
from tools.page_commands import commands_of, steps_of

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md")]
PAGES += [*sorted((ROOT / "docs").rglob("*.md")), *sorted((ROOT / "examples").rglob("*.md"))]


class Elsewhere(NamedTuple):
    """Commands that do not run here: how they are known, why, and what shows them instead (``file::test``)."""

    pattern: str
    why: str
    shown: str


ELSEWHERE = (
    Elsewhere(r"^make install$", "is how this environment was made", "Makefile::install"),
    Elsewhere(r"^make check$", "is the first step of the integration", "Makefile::check"),
    Elsewhere(r"^make test$", "is what runs this", "Makefile::test"),
    Elsewhere(r"^make demo$", "installs, then runs what runs here",
              "tests/browser/test_demo.py::test_it_runs_in_a_clean_checkout_and_writes_the_pages_that_it_names"),
    Elsewhere(r"^make demo-kubernetes$", "needs a control plane",
              "tests/kubernetes/test_demo.py::test_all_scenes_happen"),
    Elsewhere(r"KTH-SP2.*backfill=easy", "a trace that is not ours to ship",
              "tests/simulator/test_easy_traces.py::test_every_start_equals_the_textbooks"),
    Elsewhere(r"openb_pod_list_default\.csv.*--inflate", "a trace that is not ours to ship",
              "tests/cli/test_simulate.py::test_openb_runs_with_its_nodes"),
    Elsewhere(r"min-runtime/run\.py --trace philly", "a trace that is not ours to ship",
              "tests/simulator/test_min_runtime_experiment.py::test_all_scenarios_are_replayed_told_and_drawn"),
    Elsewhere(r"worth/run\.py --trace (philly|KTH|SDSC)", "a trace that is not ours to ship",
              "tests/simulator/test_worth_experiment.py::test_policies_are_compared_with_no_reclaim_told_and_drawn"),
    Elsewhere(r"worth/run\.py --generated", "takes a quarter of an hour",
              "tests/simulator/test_worth_experiment.py::test_policies_are_compared_with_no_reclaim_told_and_drawn"),
    Elsewhere(r"rescheduler/month\.py", "takes an hour",
              "tests/rescheduler/test_month.py::test_two_days_with_and_without_moves"),
    Elsewhere(r"benchmarks/", "takes minutes, and measures",
              "tests/docs/test_commands.py::test_benchmarks_that_are_named_take_what_is_said"),
    Elsewhere(r"^tenure console --history postgresql://…", "names the reader's own database",
              "tests/history/test_commands.py"),
    Elsewhere(r"^helm install", "needs a cluster",
              "tests/release/test_helm.py::test_a_release_is_installed_upgraded_rolled_back_and_uninstalled"),
    Elsewhere(r"^kubectl tenure", "needs a cluster",
              "tests/kubernetes/test_plugin.py::test_tables_and_reasons_are_of_the_cluster_that_kubectl_has"),
    Elsewhere(r"^kubectl (replace -f -|patch crd \$kind)", "needs a cluster",
              "tests/release/test_upgrade.py::test_upgraded_by_the_chart_and_rolled_back_nothing_is_evicted"),
    Elsewhere(r"^kubectl apply -f examples/integrations/", "needs a cluster",
              "tests/kubernetes/test_integrations.py::"
              "test_what_a_manifest_makes_starts_as_a_whole_and_goes_as_a_whole"),
    Elsewhere(r"^python tools/controlplane/start\.py --folder|^tenure scheduler --kubeconfig build/|^tenure pause "
              r"|^tenure (queues|workloads)$|^tenure explain --live|^kubectl (apply -f|wait|patch queues)",
              "needs a cluster",
              "tests/release/test_tutorial.py::test_the_tutorial_with_a_cluster_is_followed_word_by_word"),
    Elsewhere(r"^tenure console --live", "needs a cluster",
              "tests/kubernetes/test_console.py::test_on_loopback_it_shows_what_its_own_credentials_see"),
)  # fmt: skip


class DocsCommand(NamedTuple):
    """A command of a page, on one line."""

    page: str
    text: str


def commands():
    """Give every command of every page, in order."""
    for page in PAGES:
        for text in commands_of(page.read_text()):
            yield DocsCommand(str(page.relative_to(ROOT)), text)


def elsewhere(command):
    return [e for e in ELSEWHERE if re.search(e.pattern, command.text)]


WRITES_RUN = "docs/how-to/files-and-traces.md"

ACTIVATED = re.compile(r"\. \.venv/bin/activate\b")
"""What puts ``tenure``, and the ``python`` that knows it, on the path of a shell."""

NOT_SHIPPED = re.compile(r"philly|KTH-SP2|SDSC-BLUE|openb_pod_list|--trace A B|benchmarks/run\.py")
"""How commands name traces that are not ours to ship."""

ALL = list(commands())
HERE: dict[str, list[str]] = {}
for _command in ALL:
    if not elsewhere(_command):
        HERE.setdefault(_command.page, []).append(_command.text)


def test_commands_are_found():
    assert len(HERE["README.md"]) >= 3
    assert len(HERE["docs/how-to/files-and-traces.md"]) >= 15
    assert len(HERE["examples/rescheduler/README.md"]) >= 5


@pytest.mark.parametrize("entry", ELSEWHERE, ids=lambda entry: entry.pattern)
def test_what_does_not_run_here_is_there_and_is_shown_elsewhere(entry):
    """No pattern is left over from a command that has gone, and each names a test or a target that exists."""
    assert [c for c in ALL if entry in elsewhere(c)], "no page has such a command"
    file, _, name = entry.shown.partition("::")
    text = (ROOT / file).read_text()
    if file == "Makefile":
        assert re.search(rf"^{name}:", text, re.MULTILINE)
    elif name:
        functions = {node.name for node in ast.walk(ast.parse(text)) if isinstance(node, ast.FunctionDef)}
        assert name in functions


def test_a_python_that_knows_tenure_is_named():
    """That of the environment, where the page does not say how the environment is made active."""
    texts = {page: " ".join((ROOT / page).read_text().split()) for page in {c.page for c in ALL}}
    assert [c for c in ALL if c.text.startswith("python ") and not ACTIVATED.search(texts[c.page])] == []


@pytest.mark.parametrize("page", sorted({c.page for c in ALL if NOT_SHIPPED.search(c.text)}))
def test_a_page_that_names_traces_says_where_they_are_from(page):
    assert "traces.md" in (ROOT / page).read_text()


@pytest.fixture(scope="module")
def door(tmp_path_factory):
    """Give the folder of a program that has a process run what ``tenure`` is asked that need not be loaded first."""
    with Doorway(tmp_path_factory.mktemp("door")) as made:
        yield made.folder


def loaded(environment, door):
    """Give an environment in which ``tenure`` is that program."""
    return {**environment, "PATH": f"{door}{os.pathsep}{environment['PATH']}"}


@pytest.fixture
def checkout(tmp_path):
    """A folder with what is shipped beside the package, and an environment in which ``tenure`` is found."""
    for name in ("examples", "docs", "README.md"):
        source = ROOT / name
        (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / ".venv").symlink_to(sys.prefix)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return tmp_path, {**os.environ, "PATH": path, "TMPDIR": str(tmp_path)}


def without_tenure(environment):
    """Give an environment in which ``tenure`` is not found."""
    folders = environment["PATH"].split(os.pathsep)
    return {**environment, "PATH": os.pathsep.join(f for f in folders if not (Path(f) / "tenure").exists())}


def run(command, folder, environment):
    done = subprocess.run(["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
                          check=False, timeout=600)  # fmt: skip
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


@pytest.mark.parametrize("page", HERE)
def test_the_commands_of_a_page_run_word_by_word_one_after_the_other(page, checkout, door):
    """A console serves until the page's commands end, on a free port, to which its ``curl`` goes.

    The commands of the README start as they do for a user, in a shell that finds ``tenure`` by what stands before them;
    those of all others are loaded already.
    """
    folder, environment = checkout
    around, before = loaded(environment, door), ""
    if page == "README.md":
        around, before = without_tenure(environment), f"{ACTIVATED.search((ROOT / page).read_text())[0]} && "
    console = None
    try:
        for command in HERE[page]:
            if command.startswith("tenure console"):
                if "--simulation run.db" in command and not (folder / "run.db").exists():
                    assert command in HERE[WRITES_RUN], "the page that writes run.db shows it as well"
                    continue
                stop(console)
                console = subprocess.Popen([*command.split(), "--port", "0"], cwd=folder, env=environment,
                                           stdout=subprocess.PIPE, text=True)  # fmt: skip
                address = console.stdout.readline().split()[-1]
                assert urllib.request.urlopen(f"{address}/healthz", timeout=60).status == 200
            elif command.startswith("curl "):
                assert '"steps"' in run(command.replace("http://127.0.0.1:8765", address), folder, environment)
            else:
                run(before + command, folder, around)
    finally:
        stop(console)


def stop(process):
    if process is not None:
        process.terminate()
        process.wait(30)
        process.stdout.close()


@pytest.mark.parametrize("page", [ROOT / "docs/tutorials/ten-minutes.md"], ids=lambda page: page.stem)
def test_a_tutorial_shows_what_its_commands_print(page, checkout, door):
    """What a tutorial shows is printed by the commands before it; `tests/release` follows the one with a cluster."""
    folder, environment = checkout
    missing = []
    for step, shown in steps_of(page.read_text()):
        if shown:
            printed = "".join(run(command, folder, loaded(environment, door)) for command in step)
            missing += not_printed(shown, printed)
    assert missing == []


def test_benchmarks_that_are_named_take_what_is_said():
    """Each is a file that compiles and knows the options that its line gives."""
    named = [c.text.split() for c in ALL if "benchmarks/" in c.text]
    assert named
    for _, file, *words in named:
        known = {
            word: list((ROOT / "benchmarks").glob(f"{word}_*.py")) for word in words if re.fullmatch(r"b\d\d", word)
        }
        assert all(known.values()), (file, words)
        own, _, handed_on = " ".join(words).partition(" -- ")
        takers = [path for paths in known.values() for path in paths]
        for given, paths in ((own, [ROOT / file]), (handed_on, takers)):
            for path in paths:
                text = path.read_text()
                compile(text, str(path), "exec")
                assert all(f'"{word}"' in text for word in given.split() if word.startswith("--")), (path, given)
