"""Tenure as ``pip install`` leaves it, without any extra: what works, and which extra the rest asks for."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tenure.cli.main import COMMANDS
from tenure.cli.terminal.extras import extra_with

ROOT = Path(__file__).resolve().parents[2]
UV = shutil.which("uv") or str(Path(sys.executable).with_name("uv"))
EXAMPLE = ROOT / "examples" / "cluster.yaml"
LIVE = [
    ["plan", "--live"], ["explain", "train", "--live"], ["reschedule", "--live"], ["snapshot"], ["queues"],
    ["workloads"], ["scheduler"], ["pause", "--for", "1h"], ["diff", str(EXAMPLE), str(EXAMPLE), "--live"],
]  # fmt: skip

pytestmark = [
    pytest.mark.skipif(not Path(UV).exists(), reason="needs uv, which make install brings"),
    pytest.mark.xdist_group("plain"),
]


@pytest.fixture(scope="module")
def plain(tmp_path_factory):
    """Build the wheel, install it alone into an environment of its own, and give that environment's programs."""
    folder = tmp_path_factory.mktemp("plain")
    place = folder / "venv"
    for command in (
        [UV, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT],
        [UV, "venv", "--quiet", "--python", sys.executable, place],
    ):
        subprocess.run(command, check=True, timeout=300)
    wheel = next(folder.glob("*.whl"))
    subprocess.run([UV, "pip", "install", "--quiet", "--python", place / "bin" / "python", wheel], check=True,
                   timeout=300)  # fmt: skip
    return place / "bin"


def run(*command, cwd=None):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120, cwd=cwd)
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    return done


def test_no_extra_is_there(plain):
    modules = ("msgspec", "urllib3", "prometheus_client", "pyarrow", "distributed", "pytest")
    code = f"import importlib.util as u; print([name for name in ('yaml', *{modules}) if u.find_spec(name)])"
    assert run(plain / "python", "-c", code).stdout == "['yaml']\n"


HELP = """
import os, sys
from tenure.cli.main import main
for command in sys.argv[1:]:
    child = os.fork()
    if not child:
        main([command, "--help"])
    print(command, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""
"""Asks for the help of commands, each in a process that has imported nothing of any other."""


def test_help_of_every_command_works(plain):
    printed = run(plain / "python", "-c", HELP, *COMMANDS).stdout
    for command in COMMANDS:
        assert f"{command} 0\n" in printed
        told, printed = printed.split(f"{command} 0\n", 1)
        assert told.startswith(f"Usage: tenure {command} ")
    assert printed == ""


@pytest.mark.parametrize("arguments", LIVE)
def test_what_needs_an_extra_says_which(arguments, plain):
    done = run(plain / "tenure", *arguments)
    assert done.returncode == 2
    assert re.fullmatch(
        r"\w+ is not installed, and this needs it; install it with: pip install 'tenure\[kubernetes\]'\n", done.stderr
    )


@pytest.mark.parametrize(
    ("words", "module", "extra"),
    [
        (("generate", "--jobs", "5", "--out", "made.parquet"), "pyarrow", "parquet"),
        (("simulate", "t.parquet"), "pyarrow", "parquet"),
        (("history", "export", "e.parquet", "--history", "e.jsonl"), "pyarrow", "parquet"),
        (("report", "--history", "postgresql://127.0.0.1:1/none"), "psycopg", "postgresql"),
    ],
)
def test_parquet_and_servers_say_which_extra(words, module, extra, plain, tmp_path):
    (tmp_path / "e.jsonl").touch()
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    done = run(plain / "tenure", *words, cwd=tmp_path)
    told = f"{module} is not installed, and this needs it; install it with: pip install 'tenure[{extra}]'\n"
    assert (done.returncode, done.stderr) == (2, told)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["e.jsonl", "t.parquet"]


def test_install_needs_none(plain):
    done = run(plain / "tenure", "install")
    assert done.returncode == 0
    assert "kind: CustomResourceDefinition" in done.stdout


def test_files_and_traces_need_none(plain, tmp_path):
    assert run(plain / "tenure", "validate", EXAMPLE).returncode == 0
    assert run(plain / "tenure", "plan", EXAMPLE, "--report", tmp_path / "p.html").returncode == 0
    assert run(plain / "tenure", "explain", EXAMPLE, "train-large").returncode == 0
    made = run(plain / "tenure", "generate", "--jobs", "50", "--out", "t.csv", "--cluster", "c.yaml", cwd=tmp_path)
    assert made.returncode == 0
    done = run(plain / "tenure", "simulate", "t.csv", "--cluster", "c.yaml", "--report", "s.html", cwd=tmp_path)
    assert done.returncode == 0
    done = run(plain / "tenure", "sweep", "t.csv", "--cluster", "c.yaml", "--load", "1,2", cwd=tmp_path)
    assert done.returncode == 0
    assert "tenure[parquet]" in done.stderr
    assert (tmp_path / "sweep" / "results.csv").read_text().count("\n") == 3


def test_policy_is_checked_and_compared_without_any(plain):
    policies = [ROOT / "examples" / "policy" / f"{name}.yaml" for name in ("today", "proposed")]
    assert run(plain / "tenure", "validate", policies[0]).stdout.endswith("valid, 1 NodePool, 4 Queues\n")
    done = run(plain / "tenure", "diff", *policies, "--cluster", EXAMPLE, "--exit-code")
    assert done.returncode == 4


def test_the_exact_planner_works(plain):
    done = run(plain / "tenure", "reschedule", ROOT / "examples" / "rescheduler" / "make-room.yaml")
    assert done.returncode == 0
    assert "exact" in done.stdout


def test_it_runs_as_a_module(plain):
    done = run(plain / "python", "-m", "tenure", "--help")
    assert done.returncode == 0
    assert done.stdout.startswith("Usage: tenure ")


@pytest.mark.parametrize(
    ("module", "extra"),
    [("msgspec", "kubernetes"), ("prometheus_client.core", "kubernetes"), ("pyarrow.parquet", "parquet"),
     ("distributed", "dask"), ("pytest", None), ("tenure.gone", None), ("", None)],
)  # fmt: skip
def test_each_extra_is_known_by_its_modules(module, extra):
    assert extra_with(module) == extra


def test_an_image_whose_name_cannot_be_printed_is_refused(run_command):
    """It would stand in the manifests as something else than what one sees."""
    code, out, errors = run_command("install", "--image", "a\u202eb")
    assert (code, out) == (2, "")
    assert "cannot be printed" in errors
    assert "\u202e" not in errors
