"""How a command ends: exit codes, and errors as single lines on standard error (spec: settings and commands)."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any, Final

import click

DONE: Final = 0
WRONG_INPUT: Final = 1
WRONG_USAGE: Final = 2
OUTSIDE_FAILED: Final = 3
INTERRUPTED: Final = 130
"""What shells expect of a program that Ctrl-C ended."""

DEBUG = "TENURE_DEBUG"
"""Set to anything, this environment variable lets errors through with their traceback."""

_NAMED_WRONGLY = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)


def run(command: Callable[[], Any]) -> int:
    """Run a command and give its exit code; whatever goes wrong is told in one line each, never by a traceback."""
    try:
        outcome = command()
        sys.stdout.flush()
    except BrokenPipeError:
        _silence_output()
        return OUTSIDE_FAILED
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _tell("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        return _tell_usage(error)
    except Exception as error:  # noqa: BLE001  the last place where it can be told in words
        return _tell_failure(error)
    return outcome if isinstance(outcome, int) else DONE


def _tell_failure(error: Exception) -> int:
    from tenure.model.problems import InvalidInputError  # noqa: PLC0415  only needed where something is wrong

    if os.environ.get(DEBUG):
        sys.excepthook(type(error), error, error.__traceback__)
    elif isinstance(error, InvalidInputError):
        for problem in error.problems:
            _tell(str(problem))
    elif isinstance(error, OSError):
        _tell(describe_os_error(error))
    elif isinstance(error, MemoryError):
        _tell("out of memory; give it more, or a smaller input")
    else:
        words = " ".join(str(error).split())
        _tell(f"internal error: {type(error).__name__}: {words}; run again with {DEBUG}=1 and report what it prints")
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """Give the exit code of an error."""
    from tenure.model.problems import InvalidInputError  # noqa: PLC0415  only needed where something is wrong

    return WRONG_INPUT if isinstance(error, (InvalidInputError, *_NAMED_WRONGLY)) else OUTSIDE_FAILED


def describe_os_error(error: OSError) -> str:
    """Say in one line what the system refused, and for which file."""
    what = (error.strerror or str(error) or type(error).__name__).lower()
    return f"{error.filename}: {what}" if error.filename is not None else what


def _tell_usage(error: click.ClickException) -> int:
    message = " ".join(error.format_message().split())
    if not isinstance(error, click.UsageError):
        _tell(message)
        return error.exit_code
    path = error.ctx.command_path if error.ctx is not None else "tenure"
    _tell(f"{path}: {message.rstrip('.')}; see '{path} --help'")
    return WRONG_USAGE


def _tell(line: str) -> None:
    try:
        click.echo(line, err=True)
    except OSError:
        _silence_output()


def _silence_output() -> None:
    """Let nothing more be written: nobody reads it, and the interpreter's own last flush must not fail."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
