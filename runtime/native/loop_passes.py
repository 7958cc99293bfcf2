"""LLVM's own passes over those functions of a module that ask for them, and over nothing else.

    define internal void @nest(...) nounwind "loops" { ... }

Such functions are taken out into a module of their own, which goes through LLVM's pipeline (loop
invariants, vectors, unrolling), and is linked back before machine code is made.
"""

from __future__ import annotations

import re
from typing import Any

MARK = ' "loops"'
# Compiled when they are used first: a process that compiles nothing starts without.
_DEFINE = r'^define (?:internal |hidden )?(.*?@)("[^"]*"|[\w.$]+)(\(.*\)) (.*)\{$'
_NAME = r'[@!](?:"[^"]*"|[\w.$]+)'
_VECTORS = r"_ZGV_LLVM_\w+?_[\w.$]+\(([\w.$]+)\)"
_BEFORE = r'^([@!][^ ]+) = |^declare .*?(@(?:"[^"]*"|[\w.$]+))\('


class Split:
    """The text of a module in two: `rest`, and `loops`, the functions that go through passes.

    `crossing` are names of functions that one of the two calls and the other one has.
    """

    def __init__(self, text: str) -> None:
        functions, others = _parts(text)
        marked = {name for name, lines in functions.items() if MARK in lines[0]}
        bodies = "\n".join(line for name in marked for line in functions[name])
        used = {match[1:] for match in re.findall(_NAME, bodies)}
        self.vectors = sorted(set(re.findall(_VECTORS, bodies)))
        used.update(self.vectors)
        self.crossing = sorted(marked | (used & functions.keys()))
        own = [line for line in others if _named(line) in used]
        called = [
            _declaration(functions[name][0]) for name in sorted((used & functions.keys()) - marked)
        ]
        inside = [line for name in sorted(marked) for line in _shown(functions[name])]
        self.loops = "\n".join([*own, *called, _kept(self.vectors), *inside, ""])
        outside = []
        for name, lines in functions.items():
            if name in marked:
                outside.append(_declaration(lines[0]))
            else:
                outside += _shown(lines) if name in used else lines
        self.rest = "\n".join([*others, *outside, ""])


def optimise(llvm: Any, machine: Any, module: Any) -> None:
    """Run LLVM's pipeline over a module.

    A loop that writes an array which it reads has a form with vectors for where those parts do not
    overlap. By default LLVM asks that before the loops around, of all that these touch: it always
    overlaps where the rows of a matrix are subtracted from each other. So it is asked each time.
    """
    llvm.set_option("jitney", "-hoist-runtime-checks=false")  # the process's, as `engine` knows
    try:
        _optimise(llvm, machine, module)
    finally:
        llvm.set_option("jitney", "-hoist-runtime-checks=true")


def _optimise(llvm: Any, machine: Any, module: Any) -> None:
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = options.slp_vectorization = True
    options.loop_unrolling = options.loop_interleaving = True
    with llvm.create_pass_builder(machine, options) as builder:
        builder.getModulePassManager().run(module, builder)


def _parts(text: str) -> tuple[dict[str, list[str]], list[str]]:
    """The lines of functions, by name, and all others."""
    functions: dict[str, list[str]] = {}
    others: list[str] = []
    body: list[str] | None = None
    for line in text.splitlines():
        if body is not None:
            body.append(line)
            if line == "}":
                body = None
        elif match := re.match(_DEFINE, line):
            body = functions[match[2]] = [line]
        elif line:
            others.append(line)
    return functions, others


def _named(line: str) -> str:
    """What a line outside of functions defines or declares."""
    match = re.match(_BEFORE, line)
    return (match[1] or match[2])[1:] if match else ""


def _declaration(line: str) -> str:
    match = re.match(_DEFINE, line)
    assert match, line
    return f"declare {match[1]}{match[2]}{match[3]} nounwind"


def _shown(lines: list[str]) -> list[str]:
    """A function that other modules can call."""
    return [lines[0].replace("define internal ", "define ", 1), *lines[1:]]


def _kept(names: list[str]) -> str:
    """What keeps functions of vectors until LLVM makes calls of them."""
    if not names:
        return ""
    pointers = ", ".join(f"ptr @{name}" for name in names)
    return (
        f"@llvm.compiler.used = appending global [{len(names)} x ptr] [{pointers}], "
        'section "llvm.metadata"'
    )
