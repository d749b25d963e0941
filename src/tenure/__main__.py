"""``python -m tenure``: the command, where its name is not on the path."""

from tenure.cli.main import main

if __name__ == "__main__":
    main()
