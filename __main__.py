"""`python -m jitney`, or `jitney`: the demo (the default), `info` about this machine and installation,
`cache info` and `cache clear` for the compiled code on disk, `checkpoint` for files of `jt.train`,
`export` for functions as files and as libraries for C."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence


def parser() -> argparse.ArgumentParser:
    """The commands and their options."""
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
        "info", help="versions, CPU, threads, cache, GPUs, and whether compiled code is right here"
    )
    cache = commands.add_parser("cache", help="compiled code on disk: what is there, or remove it")
    cache.add_argument("action", choices=["info", "clear"])
    commands.add_parser(
        "checkpoint", help="files of jt.train: list, show, compare, rename what is in them"
    )
    commands.add_parser("export", help="a function as a file, or as a library for C")
    return top


def positive(text: str) -> int:
    """A positive int of a command line; ArgumentTypeError for others."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{value} is not a positive number")
    return value


_NOBODY_READS = 141  # the exit status of programs that SIGPIPE ends


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command and return its exit status."""
    try:
        try:
            return _run(argv)
        finally:
            print(end="", flush=True)
    except BrokenPipeError:  # `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more
        return _NOBODY_READS


def _run(argv: Sequence[str] | None) -> int:
    arguments = list(sys.argv[1:] if argv is None else argv)
    if arguments[:1] == ["checkpoint"]:  # which imports NumPy for its options
        from .train.checkpoint_command import run as run_checkpoint

        return run_checkpoint(arguments[1:])
    if arguments[:1] == ["export"]:  # so does this
        from .tracer.ahead.export_command import run as run_export

        return run_export(arguments[1:])
    options = parser().parse_args(arguments)
    if options.command == "info":
        from .runtime.info import describe, describe_trial

        print(describe(), flush=True)
        print(describe_trial())
        return 0
    if options.command == "cache":
        return _cache(options.action)
    if options.command is None:
        options = parser().parse_args(["demo"])
    from .demo.report import run

    try:
        return run(epochs=options.epochs, seed=options.seed)
    except ImportError as error:
        print(f"jitney: {error}", file=sys.stderr)
        return 1


def _cache(action: str) -> int:
    from .runtime.cache.disk import disk_cache
    from .runtime.info import describe_cache

    if action == "info":
        print(describe_cache())
        return 0
    cache = disk_cache()
    before = cache.size()[0]
    cache.clear()
    left = cache.size()[0]
    print(f"removed {before - left} of {before} entries from {cache.directory}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
