"""`python -m skerry`: the same as `skerry`."""

from skerry.cli.main import main

if __name__ == "__main__":
    main(prog_name="skerry")
