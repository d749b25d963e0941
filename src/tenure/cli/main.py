"""The command ``tenure``: a table of commands, each imported when it is run and not before."""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import click

from tenure.cli.terminal.errors import run
from tenure.cli.terminal.streams import prepare_streams
from tenure.model.documents.collector import end_without_collecting

NAME: Final = "tenure"
COMPLETION: Final = "_TENURE_COMPLETE"
"""The environment variable by which a shell asks for completions."""


class CommandEntry(NamedTuple):
    """An entry in the table of commands: where the command is, and what it does in one line."""

    module: str
    attribute: str
    summary: str


COMMANDS: Final[dict[str, CommandEntry]] = {
    "plan": CommandEntry("tenure.cli.plan", "plan", "Decide on a cluster file and print what would be done, and why."),
    "simulate": CommandEntry("tenure.cli.simulate", "simulate", "Replay a trace on virtual time with the same engine."),
    "generate": CommandEntry("tenure.cli.generate", "generate", "Write a seeded workload after a published model."),
    "validate": CommandEntry("tenure.cli.validate", "validate", "Report all problems of files, with line and path."),
    "explain": CommandEntry(
        "tenure.cli.explain", "explain", "Say why a workload waits or was evicted, and what would help."
    ),
    "reschedule": CommandEntry("tenure.cli.reschedule", "reschedule", "Say which running tasks to move, wave by wave."),
    "diff": CommandEntry("tenure.cli.diff", "diff", "Say what a change of policy does, for a pull request and for CI."),
    "compare": CommandEntry("tenure.cli.compare", "compare", "Put the summaries of simulations side by side."),
    "console": CommandEntry("tenure.cli.console", "console", "Show a cluster, a file or a history in a browser."),
    "report": CommandEntry("tenure.cli.report", "report", "Show what was used, lost and gained by evictions."),
    "story": CommandEntry("tenure.cli.story", "story", "Tell what happened to one workload, in order."),
    "history": CommandEntry("tenure.cli.history", "history", "Export, import, prune or forget what a history holds."),
    "sweep": CommandEntry("tenure.cli.sweep", "sweep", "Simulate traces over many settings and seeds, side by side."),
    "replay": CommandEntry("tenure.cli.replay", "replay", "Play recorded days again under other settings."),
    "install": CommandEntry("tenure.cli.install", "install", "Print the manifests that install Tenure on a cluster."),
    "scheduler": CommandEntry("tenure.cli.scheduler", "scheduler", "Schedule a live cluster."),
    "snapshot": CommandEntry("tenure.cli.snapshot", "snapshot", "Write a live cluster as a cluster file."),
    "queues": CommandEntry("tenure.cli.queues", "queues", "List the queues of a live cluster and what they hold."),
    "workloads": CommandEntry("tenure.cli.workloads", "workloads", "List the workloads of a live cluster."),
    "pause": CommandEntry("tenure.cli.pause", "pause", "Let nothing be evicted for a while, live."),
    "completion": CommandEntry(
        "tenure.cli.completion", "completion", "Print a script that completes commands in a shell."
    ),
}
"""All commands by name. One whose module is not installed is not there."""


class LazyGroup(click.Group):
    """A group that knows its commands by a table and imports one only to run or to complete it."""

    def __init__(self, *args: Any, table: dict[str, CommandEntry], **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        """Give the names of the commands that are installed, in the order of the table."""
        return [name for name, entry in self.table.items() if importlib.util.find_spec(entry.module) is not None]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in self.list_commands(ctx):
            return None
        entry = self.table[cmd_name]
        command = getattr(importlib.import_module(entry.module), entry.attribute)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        rows = [(name, self.table[name].summary) for name in self.list_commands(ctx)]
        with formatter.section("Commands"):
            formatter.write_dl(rows)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command, or say which one may have been meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            from tenure.model.values.problems import nearest  # noqa: PLC0415  only needed where something is wrong

            hint = nearest(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}{hint}", ctx) from None


def _print_version(ctx: click.Context, _option: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from importlib.metadata import version  # noqa: PLC0415  takes longer to import than all the rest

        click.echo(f"tenure {version('tenure')}")
        ctx.exit()


@click.group(cls=LazyGroup, table=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version", is_flag=True, expose_value=False, is_eager=True, callback=_print_version, help="Print the version."
)
def cli() -> None:
    """Tenure: a batch scheduler and rescheduler in which every eviction has to pay for itself."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run ``tenure`` and leave with its exit code."""
    prepare_streams()
    end_without_collecting()
    given = list(sys.argv[1:] if arguments is None else arguments)
    sys.exit(run(lambda: _invoke(given or ["--help"])))


def _invoke(arguments: list[str]) -> Any:
    """Run a command and give what it returns. Errors come out as they are: `run` tells them, not click."""
    if COMPLETION in os.environ:
        return cli.main(arguments, prog_name=NAME, complete_var=COMPLETION)
    with cli.make_context(NAME, arguments) as context:
        return cli.invoke(context)
