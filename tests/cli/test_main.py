"""The command line as a whole: what it lists, what it imports, and how it ends."""

import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import click
import pytest

from tenure.cli.main import COMMANDS, CommandEntry, LazyGroup, cli, main
from tenure.cli.terminal import errors
from tenure.model.values.problems import InputProblem, InvalidInputError


def tenure(*arguments, **options):
    code = "from tenure.cli.main import main; main()"
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False, timeout=60, **options
    )


def run(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    captured = capsys.readouterr()
    return caught.value.code, captured.out, captured.err


def test_help_lists_each_command_in_one_line(capsys):
    code, out, err = run(["--help"], capsys)
    assert (code, err) == (0, "")
    listed = [line.split()[0] for line in out.partition("Commands:\n")[2].splitlines()]
    assert listed == cli.list_commands(click.Context(cli))
    assert {"validate", "completion"} <= set(listed) <= set(COMMANDS)


def test_without_arguments_it_says_the_same_as_with_help(capsys):
    assert run([], capsys) == run(["--help"], capsys)


def test_help_imports_neither_numpy_nor_pydantic_nor_rich():
    code = (
        "import sys\nfrom tenure.cli.main import main\n"
        "try: main(['--help'])\nexcept SystemExit: pass\n"
        "print(sorted({'numpy', 'pydantic', 'rich', 'yaml', 'msgspec', 'tenure.model.file.load'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_command_ends_without_a_last_search_for_garbage():
    """What ran before it at exit is the collector: with all of a large cluster to look through it takes a while."""
    code = (
        "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
        "from tenure.cli.main import main\nmain(['--version'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.splitlines()[-1] == "True"


def best_of(times, code):
    """Give the least time of several runs, on the processor: others may be busy on the same machine."""
    spans = []
    for _ in range(times):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, timeout=60)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        spans.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(spans)


def test_help_takes_at_most_150_ms_beyond_bare_python():
    """On a machine that is slower or busy, no more than half again what importing click takes."""
    bare, click_alone = best_of(7, "pass"), best_of(7, "import click")
    assert best_of(7, "from tenure.cli.main import main; main(['--help'])") - bare < max(
        0.15, 1.5 * (click_alone - bare)
    )


def test_a_command_whose_module_is_missing_is_not_listed_and_breaks_nothing(capsys):
    table = {"gone": CommandEntry("tenure.cli.gone", "gone", "Not there."), "validate": COMMANDS["validate"]}
    group = LazyGroup("x", table=table)
    with pytest.raises(SystemExit):
        group.main(["--help"])
    out = capsys.readouterr().out
    assert "validate" in out
    assert "gone" not in out
    with pytest.raises(click.UsageError, match="there is no command 'gone'"):
        group.main(["gone"], standalone_mode=False)


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["validat"], "tenure: there is no command 'validat'; did you mean validate?; see 'tenure --help'"),
        (["--bad"], "tenure: No such option '--bad'; see 'tenure --help'"),
        (["validate"], "tenure validate: Missing argument 'FILES...'; see 'tenure validate --help'"),
        (["completion", "cmd"], "see 'tenure completion --help'"),
        (["history"], "tenure history: name a command: export, forget, import, migrate, prune; see 'tenure history"),
        (
            ["scheduler", "--history-keep", "30d"],
            "--history-keep says how long a history is kept; name it with --history",
        ),
        (["scheduler", "--history", "h.db", "--history-keep", "x"], "--history-keep: "),
        (["scheduler", "--history", "h.db", "--history-keep-kind", "use=1d"], "there is no kind 'use'"),
        (["scheduler", "--history", "h.db", "--history-keep-kind", "usage"], "is not KIND=D, such as usage=90d"),
        (["completion", "bash", "\u202e"], "unexpected extra argument (\\u202e)"),
        (["completion", "\x1b[2J"], "\\x1b[2J"),
    ],
)
def test_wrong_usage_is_one_line_and_code_2(arguments, line, capsys):
    code, out, err = run(arguments, capsys)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert line in err


def failing(error):
    def command():
        raise error

    return command


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (
            InvalidInputError([InputProblem("f", 3, "a.b", "is wrong"), InputProblem("f", 0, "", "too")]),
            1,
            "f:3: a.b: is wrong\nf: too\n",
        ),
        (FileNotFoundError(2, "No such file or directory", "x.csv"), 1, "x.csv: no such file or directory\n"),
        (PermissionError(13, "Permission denied", "x.csv"), 1, "x.csv: permission denied\n"),
        (OSError(errno.ENOSPC, "No space left on device", "r.html"), 3, "r.html: no space left on device\n"),
        (OSError("odd"), 3, "odd\n"),
        (FileNotFoundError(2, "No such file or directory", "\u202ex"), 1, "\\u202ex: no such file or directory\n"),
        (MemoryError(), 3, "out of memory; give it more, or a smaller input\n"),
        (
            ValueError("a\nb"),
            3,
            "internal error: ValueError: a b; run again with TENURE_DEBUG=1 and report what it prints\n",
        ),
        (click.ClickException("no"), 1, "no\n"),
        (KeyboardInterrupt(), 130, "interrupted\n"),
        (click.Abort(), 130, "interrupted\n"),
    ],
)
def test_whatever_goes_wrong_is_told_in_lines_and_a_code(error, code, line, capsys, monkeypatch):
    monkeypatch.delenv(errors.DEBUG, raising=False)
    assert errors.run(failing(error)) == code
    assert capsys.readouterr().err == line


def test_the_traceback_is_there_for_who_asks_for_it(capsys, monkeypatch):
    monkeypatch.setenv(errors.DEBUG, "1")
    assert errors.run(failing(ValueError("x"))) == 3
    assert "Traceback" in capsys.readouterr().err


def test_a_command_gives_its_own_exit_code():
    assert errors.run(lambda: 1) == 1
    assert errors.run(lambda: None) == 0


def test_a_problem_is_one_line_whatever_it_holds():
    assert str(InputProblem("f\n", 1, "a", "b\x1b[2J\n")) == "f\\n:1: a: b\\x1b[2J\\n"


def test_a_reader_that_leaves_is_no_error(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("apiVersion: tenure.dev/v1alpha1\nkind: Cluster\nnodes: [{name: n}]\n")
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [sys.executable, "-c", "from tenure.cli.main import main; main()", "validate", str(path)],
        stdout=writing, stderr=subprocess.PIPE, check=False, timeout=60,
    )  # fmt: skip
    os.close(writing)
    assert done.stderr == b""
    assert done.returncode == 0


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_behind_the_output_is_code_3():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", "from tenure.cli.main import main; main()", "--help"],
            stdout=full, stderr=subprocess.PIPE, text=True, check=False, timeout=60,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (3, "no space left on device\n")


def test_a_terminal_without_unicode_is_no_error(tmp_path):
    path = tmp_path / "c.yaml"
    path.write_text("nodes: [{name: é}]\nqueues: [{name: ü, bad: 1}]\n")
    done = tenure("validate", str(path), env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert done.returncode == 1
    assert "unknown key" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script_for_the_shell(shell, capsys):
    code, out, err = run(["completion", shell], capsys)
    assert (code, err) == (0, "")
    assert "_TENURE_COMPLETE" in out
    assert "tenure" in out


def test_completion_says_in_a_line_each_what_shells_are_told(capsys):
    _, out, _ = run(["completion", "--help"], capsys)
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert [line for line in lines if line.startswith(("bash:", "zsh:", "fish:"))] == [
        'bash: eval "$(tenure completion bash)"', 'zsh: eval "$(tenure completion zsh)"',
        "fish: tenure completion fish | source",
    ]  # fmt: skip


def test_completion_completes_commands():
    environment = {**os.environ, "_TENURE_COMPLETE": "bash_complete", "COMP_WORDS": "tenure val", "COMP_CWORD": "1"}
    done = tenure(env=environment)
    assert done.stdout == "plain,validate\n"


def test_the_version_is_printed(capsys):
    code, out, _ = run(["--version"], capsys)
    assert code == 0
    assert out.startswith("tenure 0.")
