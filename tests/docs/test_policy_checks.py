"""The GitHub Action and the pre-commit hook: their steps are run as these tools run them."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from tests.doorway import Doorway

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
EXAMPLES = ROOT / "examples"
BIN = Path(sys.executable).parent
UV = shutil.which("uv") or str(BIN / "uv")


def git(folder, *arguments):
    own = ["-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main"]
    return subprocess.run(["git", *own, *arguments], cwd=folder, check=True, capture_output=True, text=True).stdout


@pytest.fixture
def repository(tmp_path):
    """A repository whose branch changes the policy: its first commit has today's, the second what is proposed."""
    folder = tmp_path / "repository"
    (folder / "policy").mkdir(parents=True)
    shutil.copy(EXAMPLES / "policy" / "today.yaml", folder / "policy" / "queues.yaml")
    shutil.copy(EXAMPLES / "cluster.yaml", folder / "cluster.yaml")
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "today")
    shutil.copy(EXAMPLES / "policy" / "proposed.yaml", folder / "policy" / "queues.yaml")
    git(folder, "commit", "-qam", "proposed")
    return folder


@pytest.fixture(scope="module", autouse=True)
def _door(tmp_path_factory):
    """Have ``tenure``, where it is not the one that a test installs, answered by a process that has loaded it."""
    with Doorway(tmp_path_factory.mktemp("door")) as made, pytest.MonkeyPatch.context() as patch:
        patch.setenv("PATH", os.pathsep.join([str(made.folder), str(BIN), os.environ["PATH"]]))
        yield


def environment(folder, **more):
    summary = folder.parent / "summary.md"
    given = {"RUNNER_TEMP": folder.parent, "GITHUB_STEP_SUMMARY": summary, "GITHUB_ACTION_PATH": ROOT}
    return {**os.environ, **{name: str(value) for name, value in given.items()}, **more}


def run_step(step, folder, inputs, **more):
    """Run a step as the runner does: with its environment filled in, by bash that stops at an error."""
    given = {name: str(inputs.get(name, spec.get("default", ""))) for name, spec in ACTION["inputs"].items()}

    def filled(text):
        return re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda found: given[found[1]], text)

    own = {name: filled(text) for name, text in step.get("env", {}).items()}
    assert "${{" not in "".join([step["run"], *own.values()])
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    return subprocess.run(command, cwd=folder, env=environment(folder, **own, **more), capture_output=True, text=True,
                          check=False, timeout=300)  # fmt: skip


INSTALL, VALIDATE, COMPARE = [step for step in ACTION["runs"]["steps"] if "run" in step]


@pytest.mark.skipif(not Path(UV).exists(), reason="needs uv, which make install brings")
def test_the_action_installs_the_command_from_its_own_checkout(repository, tmp_path):
    """Into an environment that has pip, as a runner's Python; the next step works with what is there.

    What the project says that it depends on is there already: pip takes ten times as long as uv to unpack it.
    """
    place = tmp_path / "runner"
    for command in (
        ["venv", "--quiet", "--seed", "--python", sys.executable, place],
        ["pip", "install", "--quiet", "--python", place / "bin" / "python", "--requirement", ROOT / "pyproject.toml"],
    ):
        subprocess.run([UV, *command], check=True, timeout=300)
    path = f"{place / 'bin'}{os.pathsep}{os.environ['PATH']}"
    done = run_step(INSTALL, repository, {}, PATH=path, PIP_NO_COMPILE="1")  # two seconds for what is never imported
    assert done.returncode == 0, done.stderr
    assert (place / "bin" / "tenure").exists()
    assert run_step(VALIDATE, repository, {"files": "policy"}, PATH=path).returncode == 0


def test_the_action_validates_and_says_what_a_pull_request_does(repository):
    inputs = {"files": "policy", "base": "HEAD~1", "cluster": "cluster.yaml"}
    assert run_step(VALIDATE, repository, inputs).stdout == "policy/queues.yaml: valid, 1 NodePool, 4 Queues\n"
    done = run_step(COMPARE, repository, inputs)
    assert done.returncode == 0, done.stderr
    told = (repository.parent / "summary.md").read_text()
    assert told.startswith("**1 more eviction (reclaim +1)")
    assert "| `scheduler.reclaimMinRuntime` | `4h` | `30m` |" in told
    assert git(repository, "worktree", "list").count("\n") == 1, "nothing is left behind"
    assert run_step(COMPARE, repository, {**inputs, "fail-on-change": "true"}).returncode == 4


@pytest.mark.parametrize("files", ["policy cluster.yaml", "cluster.yaml\npolicy\n"])
def test_the_action_fails_where_files_are_wrong(repository, files):
    """Also where a workflow lists them line by line (``files: |``)."""
    queues = repository / "policy" / "queues.yaml"
    queues.write_text(queues.read_text().replace("parent: research", "parent: reserch"))
    done = run_step(VALIDATE, repository, {"files": files})
    assert done.returncode == 1
    assert "there is no queue reserch; did you mean research?" in done.stderr
    assert run_step(COMPARE, repository, {"files": "policy", "base": "HEAD", "cluster": "cluster.yaml"}).returncode == 1


def test_a_policy_that_is_new_is_compared_with_nothing(repository):
    shutil.copytree(repository / "policy", repository / "more")
    done = run_step(COMPARE, repository, {"files": "more", "base": "HEAD", "cluster": "cluster.yaml"})
    assert done.returncode == 0
    assert "more is new" in (repository.parent / "summary.md").read_text()


def test_the_hook_runs_in_pre_commit(repository, tmp_path):
    """By pre-commit itself; only the environment that it would make for the hook is this one."""
    if not (BIN / "pre-commit").exists():
        pytest.skip("needs pre-commit, which make install brings")
    hooks = tmp_path / "hooks"
    hooks.mkdir()
    shutil.copy(ROOT / ".pre-commit-hooks.yaml", hooks)
    git(hooks, "init", "-q")
    git(hooks, "add", "-A")
    git(hooks, "commit", "-qm", "hooks")
    revision = git(hooks, "rev-parse", "HEAD").strip()
    hook = {"id": "tenure-validate", "files": "^policy/", "args": ["policy"], "language": "system"}
    config = {"repos": [{"repo": str(hooks), "rev": revision, "hooks": [hook]}]}
    (repository / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
    git(repository, "add", "-A")

    def run():
        command = [str(BIN / "pre-commit"), "run", "--all-files", "--verbose"]
        own = environment(repository, PRE_COMMIT_HOME=str(tmp_path / "home"))
        return subprocess.run(
            command, cwd=repository, env=own, capture_output=True, text=True, check=False, timeout=120
        )

    done = run()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "policy/queues.yaml: valid" in done.stdout
    queues = repository / "policy" / "queues.yaml"
    queues.write_text(queues.read_text().replace("parent: research", "parent: reserch"))
    git(repository, "add", "-A")
    done = run()
    assert done.returncode == 1
    assert "there is no queue reserch" in done.stdout
