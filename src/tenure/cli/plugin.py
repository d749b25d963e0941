"""``kubectl tenure``: the commands for a live cluster as a plugin of kubectl, with kubectl's ways.

kubectl runs ``kubectl-tenure`` from the PATH, and ``kubectl_complete-tenure`` for completions. The commands are those
of ``tenure``; they always look at the live cluster, and ``-n`` names the namespace of what is asked about.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Callable, Sequence
from typing import Any, Final

import click
from click.shell_completion import ShellComplete

from tenure.cli.main import COMMANDS, CommandEntry, LazyGroup
from tenure.cli.terminal.errors import DONE, run
from tenure.cli.terminal.streams import prepare_streams

NAME: Final = "kubectl tenure"
SUMMARIES: Final = {
    "explain": "Say why a workload waits or was evicted, and what would help.",
    "queues": "List the queues and what they hold.",
    "workloads": "List the workloads: their state, how long they have run, why they wait.",
    "story": "Tell what happened to one workload, in order, as the history has it.",
    "report": "Show what was used, lost and gained by evictions, as the history has it.",
    "plan": "Print what would be done now, and why the rest waits; nothing is changed.",
    "pause": "Let nothing be evicted for a while.",
}
"""The commands of the plugin, and what each does."""

_ABOUT_ONE: Final = {"explain": "file", "story": "workload"}
"""The argument that names a workload."""

_NAMESPACE: Final = "inside"
_OF_FILES: Final = frozenset({"file", "workload"})
_NO_FILES: Final = 4
"""What tells kubectl that file names are no completions."""


class PluginGroup(LazyGroup):
    """A group of commands that are asked in kubectl's way."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command and give it kubectl's options."""
        command = super().get_command(ctx, cmd_name)
        return None if command is None else adapted(command)


def adapted(command: click.Command) -> click.Command:
    """Give a command that always looks at the live cluster, with ``-n`` for the namespace of what is asked about."""
    made = copy.copy(command)
    callback, name = command.callback, command.name or ""
    assert callback is not None
    about, fixed = _ABOUT_ONE.get(name), _fixed(command)
    made.params = [_renamed(param, about) for param in command.params if param.name not in fixed]
    if about is not None:
        made.params.append(_namespace_option())
    made.help = made.short_help = SUMMARIES[name]
    made.callback = _calling(callback, fixed, about)
    return made


def _fixed(command: click.Command) -> dict[str, Any]:
    """Give the arguments that are no choice here: a live cluster is looked at, and no file."""
    names = {param.name for param in command.params}
    if "live" not in names:
        return {}
    about = _ABOUT_ONE.get(command.name or "")
    return {"live": True, **{name: None for name in _OF_FILES & names if name != about}}


def _renamed(param: click.Parameter, about: str | None) -> click.Parameter:
    if isinstance(param, click.Option) and "--namespace" in param.opts:
        param = copy.copy(param)
        param.opts = ["--tenure-namespace"]
    elif param.name == _NAMESPACE:
        return _namespace_option()
    elif isinstance(param, click.Argument) and param.name == about:
        param = copy.copy(param)
        param.metavar, param.type = "[NAMESPACE/]NAME", click.STRING
    return param


def _namespace_option() -> click.Option:
    what = "The namespace of what is asked about."
    return click.Option(["-n", "--namespace", _NAMESPACE], metavar="NAMESPACE", help=what)


def _calling(callback: Callable[..., Any], fixed: dict[str, Any], about: str | None) -> Callable[..., Any]:
    def call(**given: Any) -> Any:
        if about is not None:
            inside = given.pop(_NAMESPACE)
            if inside and "/" in given[about]:
                raise click.UsageError(f"-n {inside} and {given[about]} both name a namespace; leave one out")
            given[about] = f"{inside}/{given[about]}" if inside else given[about]
        return callback(**given, **fixed)

    return call


@click.group(
    cls=PluginGroup,
    table={name: CommandEntry(*COMMANDS[name][:2], said) for name, said in SUMMARIES.items()},
    context_settings={"help_option_names": ["-h", "--help"]},
)
def plugin() -> None:
    """Tenure: why workloads wait, what queues hold, what would be evicted, and why."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``kubectl tenure`` and leave with its exit code."""
    prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(lambda: _invoke(given or ["--help"])))


def _invoke(arguments: list[str]) -> Any:
    with plugin.make_context(NAME, arguments) as context:
        return plugin.invoke(context)


def complete(arguments: Sequence[str] | None = None) -> None:
    """Print what may come next, as kubectl asks for it: the words so far, the last of them unfinished."""
    prepare_streams()
    given = list(sys.argv[1:] if arguments is None else arguments) or [""]
    sys.exit(run(lambda: _completions(given[:-1], given[-1])))


def _completions(words: list[str], unfinished: str) -> int:
    for item in ShellComplete(plugin, {}, NAME, "").get_completions(words, unfinished):
        if item.type == "plain":
            click.echo(f"{item.value}\t{item.help}" if item.help else item.value)
    click.echo(f":{_NO_FILES}")
    return DONE


if __name__ == "__main__":
    main()
