"""`python -m jitney`: the demo (the default), or `info` about this machine and installation."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    from . import __version__

    top = argparse.ArgumentParser(
        prog="python -m jitney",
        description="An array compiler for NumPy functions. Without a command: the demo.",
    )
    top.add_argument("--version", action="version", version=f"jitney {__version__}")
    commands = top.add_subparsers(dest="command", metavar="command")
    demo = commands.add_parser(
        "demo", help="train a digits classifier and show what the compiler did (the default)"
    )
    demo.add_argument("--epochs", type=positive, default=30, help="passes over the data (30)")
    demo.add_argument("--seed", type=int, default=0, help="of the weights and the batches (0)")
    commands.add_parser(
        "info", help="versions, CPU features, vector width, BLAS, threads, cache, CUDA driver"
    )
    return top


def positive(text: str) -> int:
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = parser().parse_args(arguments)
    if options.command == "info":
        from .runtime.info import describe

        print(describe())
        return 0
    if options.command is None:
        options = parser().parse_args(["demo"])
    from .demo.report import run

    try:
        return run(epochs=options.epochs, seed=options.seed)
    except ImportError as error:
        print(f"jitney: {error}", file=sys.stderr)
        return 1


if __name__ == "__main__":
    sys.exit(main())
