"""Write the stubs of the public face, which is looked up on first use: `python tests/helpers/stubs.py`.

Type checkers read `__init__.pyi` and `tracer/typed/*.pyi` in place of what `__getattr__` finds. What
is NumPy's own function when nothing is traced has NumPy's types; what is ours has its signature, with
arrays where tracers are while tracing.
"""

from __future__ import annotations

import builtins
import inspect
import keyword
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import jitney as jt
from jitney.tracer.arrays.numpy_names import FROM_NUMPY
from jitney.tracer.arrays.table import FUNCTIONS, ArrayFunction

ROOT = Path(__file__).resolve().parents[2]
TYPED = "tracer.typed"
HEAD = "# Made by `python tests/helpers/stubs.py`.\n"
# Functions whose results may be without dims: those are NumPy's scalars, when nothing is traced.
MAY_BE_SCALARS = frozenset(
    """
    dot vdot inner tensordot vecdot matmul matvec vecmat einsum
    linalg.tensordot linalg.vecdot linalg.matmul linalg.logdet linalg.global_norm
    ops.l2_loss ops.zero_fraction ops.softmax_entropy ops.gaussian_kl
    ops.clip_by_value ops.clip_by_norm ops.leaky_relu ops.gather_nd ops.batch_gather
    """.split()
)
_BUILTINS = {"None", *dir(builtins)}
_ABSTRACT = ("Callable", "Iterable", "Iterator", "Mapping", "Sequence")


class Stub:
    """The text of one stub: imports, which are found on the way, and definitions."""

    def __init__(self, package: str, taken: Iterable[str] = ()) -> None:
        self.package = package  # in which the stub lies, below the root
        self.shadowed = {"bool"} & set(taken)  # NumPy's, where the stub exports it
        self.imports: dict[str, set[str]] = defaultdict(set)
        self.lines: list[str] = []

    def export(self, module: str, name: str) -> None:
        """`name` is what `module` has under that name."""
        self.imports[module].add(f"{name} as {name}")

    def relative(self, module: str) -> str:
        return "." * (1 + len(self.package.split(".")) if self.package else 1) + module

    def annotation(self, text: str, scope: dict[str, Any]) -> str:
        """A function's annotation, as it stands there, in this file's names."""

        def name(match: re.Match[str]) -> str:
            word = match[0]
            if word == "Tracer":
                self.imports["numpy.typing"].add("NDArray")
                return "NDArray[Any]"
            if word in self.shadowed:
                self.imports[""].add("import builtins")
                return f"builtins.{word}"
            if word == "Any":
                self.imports["typing"].add("Any")
            elif word in _ABSTRACT:
                self.imports["collections.abc"].add(word)
            elif word not in _BUILTINS:
                home = scope[word].__module__.removeprefix("jitney.")
                self.imports[self.relative(home)].add(f"{word} as _{word}")
                return f"_{word}"
            return word

        return re.sub(r"[A-Za-z_]\w*", name, text)

    def define(self, name: str, entry: ArrayFunction) -> None:
        """`def name(...)`, by what `inspect.signature` tells users of it."""
        reference = inspect.unwrap(entry.reference)
        scope = getattr(reference, "__globals__", {})
        parts, star, positional = [], False, False
        for p in inspect.signature(entry.reference).parameters.values():
            if positional and p.kind is not p.POSITIONAL_ONLY:
                parts.append("/")
            positional = p.kind is p.POSITIONAL_ONLY
            if p.kind is p.KEYWORD_ONLY and not star:
                parts.append("*")
            star = star or p.kind in (p.KEYWORD_ONLY, p.VAR_POSITIONAL)
            mark = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            told = p.annotation if isinstance(p.annotation, str) else "Any"
            default = "" if p.default is p.empty else f" = {_literal(p.default)}"
            parts.append(f"{mark}{p.name}: {self.annotation(told, scope)}{default}")
        if positional:
            parts.append("/")
        told = inspect.signature(entry.reference).return_annotation
        told = told if isinstance(told, str) and entry.name not in MAY_BE_SCALARS else "Any"
        result = self.annotation(told, scope)
        line = f"def {name}({', '.join(parts)}) -> {result}: ..."
        if len(line) > 100:
            line = f"def {name}(\n    {', '.join(parts)}\n) -> {result}: ..."
        if len(max(line.split("\n"), key=len)) > 100:
            line = f"def {name}(\n" + "".join(f"    {p},\n" for p in parts) + f") -> {result}: ..."
        self.lines.append(line)

    def text(self, docstring: str) -> str:
        plain = sorted(self.imports.pop("", ()))
        found = [
            f"from {module} import {name}"
            for module, names in sorted(self.imports.items())
            for name in sorted(names)
        ]
        parts = [HEAD + f'"""{docstring}"""', "\n".join([*plain, *found]), "\n".join(self.lines)]
        return "\n\n".join(part for part in parts if part) + "\n"


def _literal(value: Any) -> str:
    return repr(value) if isinstance(value, (bool, int, float, str, tuple, type(None))) else "..."


def _enter(stub: Stub, name: str, entry: ArrayFunction) -> None:
    """NumPy's function, if that is what runs when nothing is traced; else our own."""
    last = name.rpartition(".")[2]
    assert last.isidentifier() and not keyword.iskeyword(last)
    if entry.reference is entry.numpy:
        stub.export(".".join(["numpy", *name.split(".")[:-1]]), last)
    else:
        stub.define(last, entry)


def namespaces() -> dict[str, dict[str, ArrayFunction]]:
    """The table by namespace; the root's is ''."""
    found: dict[str, dict[str, ArrayFunction]] = defaultdict(dict)
    for name, entry in FUNCTIONS.items():
        found[name.rpartition(".")[0]][name] = entry
    return found


def texts() -> dict[Path, str]:
    """What each stub has to hold."""
    jt._array_functions()
    spaces = namespaces()
    root = Stub("", taken=dir(jt))
    for name, home in jt._HOMES.items():
        root.export(f".{home}", name)
    for name, home in jt._MODULES.items():
        package, _, module = home.rpartition(".")
        assert module == name
        root.export(f".{package}", name)
    for name in (*jt._FROM_NUMPY, *FROM_NUMPY):
        if hasattr(np, name):  # `e` and `pi` among them; what a NumPy lacks is looked up there
            root.export("numpy", name)
    for name in jt._FROM_ML_DTYPES:
        root.export("ml_dtypes", name)
    found = {}
    for space, entries in spaces.items():
        stub = root if not space else Stub(TYPED)
        for name, entry in sorted(entries.items()):
            _enter(stub, name, entry)
        if not space:
            continue
        root.export(f".{TYPED}", space)
        if space == "special":
            stub.imports["collections.abc"].add("Callable")
            stub.lines.append("# The other ufuncs of SciPy, if it is installed.")
            stub.lines.append("def __getattr__(name: str) -> Callable[..., Any]: ...")
        path = ROOT.joinpath(*TYPED.split("."), f"{space}.pyi")
        found[path] = stub.text(f"`jt.{space}`.")
    root.lines += [
        "__array_api_version__: str",
        "",
        "def load_ipython_extension(shell: Any) -> None: ...",
    ]
    found[ROOT / "__init__.pyi"] = root.text("The public face, as type checkers see it.")
    return found


if __name__ == "__main__":
    for path, text in texts().items():
        path.write_text(text)
