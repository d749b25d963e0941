"""How a command ends: exit codes, and errors as single lines on standard error (spec: settings and commands)."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

import click

from tenure.cli.terminal.streams import prepare_streams, reader_left, silence

DONE: Final = 0
WRONG_INPUT: Final = 1
WRONG_USAGE: Final = 2
OUTSIDE_FAILED: Final = 3
DIFFERS: Final = 4
"""What ``tenure diff --exit-code`` says of a change that does something: all went well, and there is news."""

INTERRUPTED: Final = 130
"""What shells expect of a program that Ctrl-C ended."""

DEBUG = "TENURE_DEBUG"
"""Set to anything, this environment variable lets errors through with their traceback."""

_NO_COMMAND: Final[Any] = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""An earlier click raises no such error."""

_NAMED_WRONGLY = (FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
_NO_NAME: Final = frozenset({errno.ENAMETOOLONG, errno.ELOOP})
"""What the system says of a name that can be no file's: too long, or links in a circle."""


def run(command: Callable[[], Any]) -> int:
    """Run a command and give its exit code; whatever goes wrong is told in one line each, never by a traceback."""
    code = _attempt(command)
    written = _attempt(sys.stdout.flush)
    return code or written


def run_program(command: Callable[[], Any]) -> NoReturn:
    """Be a program that is one command, such as an example: leave with its exit code."""
    prepare_streams()
    sys.exit(run(command))


def _attempt(command: Callable[[], Any]) -> int:
    """Run something and give the exit code that it asks for."""
    try:
        outcome = command()
    except click.exceptions.Exit as error:
        return error.exit_code
    except (KeyboardInterrupt, click.Abort):
        _tell("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        return _tell_usage(error)
    except Exception as error:  # noqa: BLE001  the last place where it can be told in words
        return _tell_error(error)
    return outcome if isinstance(outcome, int) else DONE


def _tell_error(error: Exception) -> int:
    """Tell what failed, and give the exit code. A reader that stops early is no error."""
    code = DONE
    if not (isinstance(error, BrokenPipeError) and reader_left()):
        code = _tell_missing(error) if isinstance(error, ModuleNotFoundError) else _tell_failure(error)
    silence()
    return code


def _tell_missing(error: ModuleNotFoundError) -> int:
    """Say which extra brings a module that is not installed; any other module that is missing is a fault of ours."""
    from tenure.cli.terminal.extras import extra_with  # noqa: PLC0415  only needed where something is wrong

    extra = extra_with(error.name or "")
    if extra is None or os.environ.get(DEBUG):
        return _tell_failure(error)
    _tell(f"{error.name} is not installed, and this needs it; install it with: pip install 'tenure[{extra}]'")
    return WRONG_USAGE


def _tell_failure(error: Exception) -> int:
    from tenure.model.values.problems import InvalidInputError, printable  # noqa: PLC0415  only needed where it is wrong

    if os.environ.get(DEBUG):
        sys.excepthook(type(error), error, error.__traceback__)
    elif isinstance(error, InvalidInputError):
        for problem in error.problems:
            _tell(str(problem))
    elif isinstance(error, OSError):
        _tell(printable(describe_os_error(error)))
    elif isinstance(error, MemoryError):
        _tell("out of memory; give it more, or a smaller input")
    else:
        words = printable(" ".join(str(error).split()))
        _tell(f"internal error: {type(error).__name__}: {words}; run again with {DEBUG}=1 and report what it prints")
    return exit_code(error)


def exit_code(error: Exception) -> int:
    """Give the exit code of an error."""
    from tenure.model.values.problems import InvalidInputError  # noqa: PLC0415  only needed where something is wrong

    is_of_input = isinstance(error, (InvalidInputError, *_NAMED_WRONGLY))
    is_no_name = isinstance(error, OSError) and error.errno in _NO_NAME
    return WRONG_INPUT if is_of_input or is_no_name else OUTSIDE_FAILED


def describe_os_error(error: OSError) -> str:
    """Say in one line what the system refused, and for which file."""
    what = error.strerror.lower() if error.strerror else str(error) or type(error).__name__
    return f"{error.filename}: {what}" if error.filename is not None else what


def _message(error: click.ClickException) -> str:
    """Give the sentence of an error; where no command of several was named, click has the whole help for one."""
    context = error.ctx if isinstance(error, click.UsageError) and isinstance(error, _NO_COMMAND) else None
    if context is None or not isinstance(context.command, click.Group):
        return error.format_message()
    return f"name a command: {', '.join(context.command.list_commands(context))}"


def _tell_usage(error: click.ClickException) -> int:
    from tenure.model.values.problems import printable  # noqa: PLC0415  only needed where something is wrong

    message = printable(" ".join(_message(error).split()))
    if not isinstance(error, click.UsageError):
        _tell(message)
        return error.exit_code
    path = error.ctx.command_path if error.ctx is not None else sys.argv[0]  # a program that is one command
    _tell(f"{path}: {message.rstrip('.')}; see '{path} --help'")
    return WRONG_USAGE


def _tell(line: str) -> None:
    try:
        click.echo(line, err=True)
    except OSError:
        silence()
