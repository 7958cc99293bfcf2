"""Run the digits task and print what jitney did: compile, kernels, training, a race, assembly."""

from __future__ import annotations

import re
import sys
import time
from typing import Any

import jitney as jt

from . import digits

ASSEMBLY_LINES = 16


def run(epochs: int, seed: int) -> int:
    """The main job. Returns 0, or 1 if the classifier misses the target accuracy."""
    data = digits.load_digits()
    print(f"jitney {jt.__version__}: a two-layer network learns the UCI handwritten digits")
    print(
        f"{len(data.train_labels)} images of 8x8 pixels to train on, {len(data.test_labels)} to "
        f"test on; 64-{digits.HIDDEN}-10 units, batches of {digits.BATCH}, float32\n"
    )
    step = jt.jit(digits.train_step)
    arguments = example(data, seed)

    start = time.perf_counter()
    step(*arguments)
    first_call = time.perf_counter() - start
    lowered = step.lower(*arguments)
    print(compilation(step, first_call))
    print(kernels(lowered))

    outcome = digits.train(step, data, epochs, seed, report=lambda line: print("  " + line))
    print(
        f"  {outcome.steps} steps in {outcome.seconds:.2f} s, "
        f"test accuracy {outcome.test_accuracy:.2%}\n"
    )
    print(race(step, arguments))
    print(assembly(lowered))
    if outcome.test_accuracy < digits.TARGET_ACCURACY:
        print(
            f"jitney: test accuracy {outcome.test_accuracy:.2%} is below the target of "
            f"{digits.TARGET_ACCURACY:.0%}; train longer (--epochs)",
            file=sys.stderr,
        )
        return 1
    return 0


def example(data: digits.Digits, seed: int) -> tuple[Any, ...]:
    """The arguments of one training step."""
    params, velocity = digits.initial_state(seed)
    return params, velocity, data.train_images[: digits.BATCH], data.train_labels[: digits.BATCH]


def milliseconds(seconds: float) -> str:
    """A duration as text, to three digits."""
    return f"{seconds * 1e3:.3g} ms"


def compilation(step: Any, first_call: float) -> str:
    """Where the time of the first call went; a part of it was loading LLVM."""
    (entry,) = step.cache_info().entries
    if "recall" in entry.seconds:  # an earlier process has traced and compiled it
        return (
            f"first call {milliseconds(first_call)}: "
            f"found on disk, traced and compiled, in {milliseconds(entry.seconds['recall'])}"
        )
    return (
        f"first call {milliseconds(first_call)}: "
        f"traced and differentiated in {milliseconds(entry.seconds['trace'])}, "
        f"compiled in {milliseconds(entry.seconds['compile'])}"
    )


def kernels(lowered: Any) -> str:
    """One line per kernel: over what it runs, and which operations share it."""
    reports = lowered.kernels
    products = sum("dot" in report.ops for report in reports)
    lines = [
        f"{len(lowered.graph.ops)} operations became {len(reports)} kernels after fusion, "
        f"{products} of them matrix products:"
    ]
    for report in reports:
        over = "x".join(map(str, report.extents)) or "1"
        lines.append(f"  {over:>12}  {shortened(report.ops)}")
    return "\n".join(lines) + "\n"


def shortened(ops: tuple[str, ...], width: int = 76) -> str:
    """The names, in order, each once with its count: `mul x3, sub x2, exp`. What only moves or
    names elements costs nothing inside a kernel and is left out, unless there is nothing else."""
    computing = [op for op in ops if op not in ("constant", "broadcast", "reshape", "copy", "pack")]
    counts: dict[str, int] = {}
    for op in computing or ops:
        counts[op] = counts.get(op, 0) + 1
    text = ", ".join(op if n == 1 else f"{op} x{n}" for op, n in counts.items())
    return text if len(text) <= width else text[: width - 3].rsplit(",", 1)[0] + ", ..."


def race(step: Any, arguments: tuple[Any, ...]) -> str:
    """Time per step beside NumPy's, and how far apart the two results are."""
    times = digits.race({"jitney": step, "numpy": digits.numpy_train_step}, arguments)
    apart = digits.largest_difference(step(*arguments), digits.numpy_train_step(*arguments))
    return (
        f"one step: {milliseconds(times['jitney'])} with jitney, {milliseconds(times['numpy'])} in "
        f"plain NumPy with the gradient written by hand\n"
        f"  (medians of 200 steps in alternation; results differ by at most {apart:.1e})\n"
    )


def assembly(lowered: Any) -> str:
    """The first instructions of the first kernel."""
    name, lines = first_kernel(lowered.asm())
    shown = [line.expandtabs(8) for line in lines[:ASSEMBLY_LINES]]
    return f"assembly of {name}, first lines:\n" + "\n".join(shown)


def first_kernel(text: str) -> tuple[str, list[str]]:
    """Name and instructions of the first function in an assembly text."""
    name, body = "", list[str]()
    for line in text.splitlines():
        label = re.match(r"([A-Za-z_][\w.$]*):", line)
        if label and not label[1].startswith("."):
            if body:
                break
            name = label[1]
        elif name and re.match(r"\s+[a-z]", line):
            body.append(line)
    return name, body
