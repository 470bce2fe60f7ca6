"""`python -m harness.cli`: the `fairtrial` command without its script."""

from harness.cli.main import console

if __name__ == "__main__":
    console()
