"""`f.explain(x)`: what became of a function, as text that shows itself as a table in a notebook."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape
from typing import Any

from .memory import MemoryCost
from .steps import Block, KernelCost, Step, grouped, kernels_of
from .units import CELL, size_text, time_text

_MOST_OPS = 24  # of a kernel that are listed one by one
_NEAR = 0.5  # of a limit of the machine: then it is said to be the kernel's


class Explanation(str):
    """The text of `f.explain(x)`, which is a string, with what it was made of.

    kernels     one `KernelCost` for each kernel, in the order in which they run first
    steps       the same as a tree: kernels, copies, and loops and branches with what is inside of them
    seconds     of one call in compiled code, the fastest of some; None if nothing was run
    memory      a `MemoryCost`: temporaries, who lives at the peak, what fusion spared
    reasons     sentences: what was not done, where, why, and what would change it
    to_dict()   all of it as numbers, texts, lists and dicts
    """

    kernels: tuple[KernelCost, ...]
    steps: tuple[Step, ...]
    seconds: float | None
    head: tuple[str, ...]
    memory: MemoryCost
    reasons: tuple[str, ...]
    charts: str

    def __repr__(self) -> str:
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        return {
            "head": list(self.head),
            "seconds": self.seconds,
            "kernels": [kernel.to_dict() for kernel in self.kernels],
            "steps": [step.to_dict() for step in self.steps],
            "memory": self.memory.to_dict(),
            "reasons": list(self.reasons),
        }

    def _repr_html_(self) -> str:
        head = "<br>".join(map(escape, self.head))
        columns = ("step", "lines", "runs", "time", "share", "moves", "flops", "of the limit")
        cells = "".join(f"<th style='{CELL}'>{name}</th>" for name in columns)
        rows = "".join(_html_rows(grouped(self.steps), 0))
        table = f"<div style='overflow-x:auto'><table><tr>{cells}</tr>{rows}</table></div>"
        why = "".join(f"<li>{escape(reason)}</li>" for reason in self.reasons)
        return f"<div>{head}{table}{f'<ul>{why}</ul>' if why else ''}{self.charts}</div>"


def shown(
    head: Sequence[str],
    steps: tuple[Step, ...],
    seconds: float | None,
    memory: MemoryCost,
    reasons: tuple[str, ...] = (),
    charts: str = "",
) -> Explanation:
    """The text of these steps, under these lines; what was not done, and why, stands below."""
    why = ["  why not:", *(f"    {reason}" for reason in reasons)] if reasons else []
    made = Explanation("\n".join([*head, *_lines(grouped(steps), 1), *why]))
    made.kernels = tuple(kernels_of(steps))
    made.steps = steps
    made.seconds = seconds
    made.head = tuple(head)
    made.memory = memory
    made.reasons = reasons
    made.charts = charts
    return made


def _lines(steps: Sequence[Step], depth: int) -> Iterator[str]:
    """The steps as lines, what is inside of loops and branches indented."""
    margin = "  " * depth
    for step in steps:
        if step.kernel is not None:
            yield margin + _kernel_text(step.kernel)
            yield from (f"{margin}  {line}" for line in _details(step.kernel))
        else:
            where = f" at {step.line}" if step.line else ""
            cost = f": {_cost_text(step)}" if step.seconds is not None else ""
            yield f"{margin}{step.text}{_trips(step)}{where}{cost}"
        for block in step.blocks:
            deeper = depth + 1
            if _is_told(step, block):
                yield f"{margin}  {_block_text(step, block)}"
                deeper += 1
            yield from _lines(grouped(block.steps), deeper)


def _kernel_text(kernel: KernelCost) -> str:
    extents = "x".join(map(str, kernel.extents)) or "1"
    return (
        f"{kernel.name} [{extents}]{' parallel' if kernel.parallel else ''}: "
        f"reads {size_text(kernel.bytes_read)}, writes {size_text(kernel.bytes_written)}, "
        f"{kernel.flops:,} flops"
    )


def _details(kernel: KernelCost) -> Iterator[str]:
    if kernel.seconds is not None:
        yield ", ".join(_kernel_cost(kernel))
    if kernel.ops:
        yield _ops_text(kernel.ops)
    if kernel.note:
        yield kernel.note
    if kernel.lines:
        yield ", ".join(kernel.lines)


def _ops_text(ops: Sequence[str]) -> str:
    """The ops in order; of many, each one once, with how often it is there."""
    if len(ops) <= _MOST_OPS:
        return " ".join(ops)
    return ", ".join(
        f"{op} ({count} times)" if count > 1 else op for op, count in Counter(ops).items()
    )


def _kernel_cost(kernel: KernelCost) -> Iterator[str]:
    """Time, share and runs; how near it is to the machine's limits, and which of them binds."""
    assert kernel.seconds is not None
    share = f", {kernel.share:.0%}" if kernel.share is not None else ""
    times = f" in {kernel.runs:,} runs" if kernel.runs != 1 else ""
    yield f"{time_text(kernel.seconds)}{share}{times}"
    nearest = kernel.limit
    for name, part in (
        ("bandwidth", kernel.of_bandwidth),
        ("flops", kernel.of_flops),
        ("elementwise operations", kernel.of_operations),
    ):
        if part is not None and part >= 0.005:
            binds = part >= _NEAR and nearest is not None and nearest[0] == name
            yield f"{part:.0%} of this machine's {name}" + (", its limit" if binds else "")


def _cost_text(step: Step) -> str:
    assert step.seconds is not None
    return time_text(step.seconds) + (f", {step.share:.0%}" if step.share is not None else "")


def _trips(step: Step) -> str:
    """How often a loop's body ran, where only the running program knows."""
    bodies = [block.runs for block in step.blocks if not block.text]
    if step.text != "while" or not bodies or bodies[0] is None:
        return ""
    each = f", entered {step.runs:,} times" if step.runs != 1 else ""
    return f": {bodies[0]:,} iterations{each}"


def _is_told(step: Step, block: Block) -> bool:
    """Whether a block has a line of its own: not so tests of loops with nothing in them."""
    told = bool(block.steps) or (step.text != "while" and block.runs is not None)
    return bool(block.text) and told


def _block_text(step: Step, block: Block) -> str:
    known = block.runs is not None and step.runs is not None
    taken = f": {block.runs:,} of {step.runs:,} times" if known else ":"
    return block.text + (":" if step.text == "while" else taken)


def _html_rows(steps: Sequence[Step], depth: int) -> Iterator[str]:
    for step in steps:
        kernel = step.kernel
        name = f"<code>{escape(kernel.name)}</code>" if kernel else escape(step.text + _trips(step))
        lines = ", ".join(kernel.lines) if kernel else step.line
        cells = [
            f"<span style='padding-left:{1.5 * depth}em'>{name}</span>",
            escape(lines),
            "" if step.runs is None else f"{step.runs:,}",
            "" if not step.seconds else time_text(step.seconds),
            "" if not step.seconds or step.share is None else _bar(step.share),
            size_text(kernel.bytes_read + kernel.bytes_written) if kernel else "",
            f"{kernel.flops:,}" if kernel else "",
            _limit_text(kernel) if kernel else "",
        ]
        title = escape(" ".join(kernel.ops) + f"; {kernel.note}") if kernel else ""
        row = "".join(f"<td style='{CELL}'>{cell}</td>" for cell in cells)
        yield f"<tr title='{title}'>{row}</tr>"
        for block in step.blocks:
            if _is_told(step, block):
                words = escape(_block_text(step, block).rstrip(":"))
                text = f"<i style='padding-left:{1.5 * depth + 1.5}em'>{words}</i>"
                yield f"<tr><td style='{CELL}' colspan=8>{text}</td></tr>"
            yield from _html_rows(grouped(block.steps), depth + 1 + bool(block.text))


def _bar(share: float) -> str:
    width = min(max(round(60 * share), 0), 60)
    bar = f"display:inline-block;width:{width}px;height:.7em;background:currentColor;opacity:.4"
    return f"<span style='{bar}'></span> {share:.0%}"


def _limit_text(kernel: KernelCost) -> str:
    nearest = kernel.limit
    return "" if nearest is None else f"{nearest[1]:.0%} {nearest[0]}"
