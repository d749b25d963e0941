"""The command ``tenure``, as its script and ``python -m tenure`` run it."""

import sys

INTERRUPTED = 130
"""The exit code of `tenure.cli.terminal.errors`, for as long as that is not loaded."""


def main() -> None:
    """Load the command line and run it; Ctrl-C while it is being loaded ends it without a traceback."""
    try:
        from tenure.cli.main import main as run  # noqa: PLC0415  so that its loading may be interrupted
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)
    run()


if __name__ == "__main__":
    main()
