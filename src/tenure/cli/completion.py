"""``tenure completion``: scripts for shells."""

from __future__ import annotations

import click
from click.shell_completion import ShellComplete, get_completion_class

from tenure.cli.main import COMPLETION, NAME


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes tenure's commands and options in SHELL.

    \b
    bash:  eval "$(tenure completion bash)"
    zsh:   eval "$(tenure completion zsh)"
    fish:  tenure completion fish | source
    """  # noqa: D301  click knows the control character, not its escape
    kind = get_completion_class(shell)
    assert kind is not None
    # The base class's method: bash's own would start a shell to ask for its version.
    click.echo(ShellComplete.source(kind(ctx.find_root().command, {}, NAME, COMPLETION)))
