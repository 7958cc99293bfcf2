"""A call as a program that depends on nothing outside: what an exported function is made of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

import numpy as np

from ...codegen.module import Donation, NativeModule
from ...codegen.target import Target
from ...ir.graph import Graph
from ...ir.record import record, replace
from ...ir.types import contiguous_strides
from ...runtime.native.image import Image
from ...runtime.options import CompileOptions
from ...runtime.portable.layouts import most_spread, spread
from ..captures.captured_variables import CapturedVariables
from ..captures.effects.recipes import build
from ..core.specs import Same, Spec, Static
from ..core.traced import Result, Traced
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .trees import Leaf, described

Array = np.ndarray[Any, Any]


@record(eq=False)
class Alone:
    """A traced call.

    graph     its parameters are the traced arguments, then `arrays`
    strides   of each parameter, in elements
    specs     one for each leaf of the arguments, with its name in `names`
    ordered   arguments by name whose order the function can see
    inputs    how (arguments, arguments by name) are nested (see `trees`); of `result` the same
    arrays    what the function read from outside, as it was then
    """

    name: str
    graph: Graph
    traced: Traced
    options: CompileOptions
    strides: tuple[tuple[int, ...], ...]
    specs: tuple[Spec | Static | Same, ...]
    names: tuple[str, ...]
    parameters: tuple[str, ...]
    ordered: tuple[str, ...]
    inputs: Any
    result: Any
    arrays: tuple[Array, ...]

    @property
    def explicit(self) -> list[int]:
        """The leaves that are parameters of the graph."""
        return [i for i, spec in enumerate(self.specs) if isinstance(spec, Spec)]

    @property
    def outside(self) -> Iterator[tuple[Array, tuple[int, ...]]]:
        """`arrays`, with their strides."""
        return zip(self.arrays, self.strides[len(self.explicit) :], strict=True)

    def compile(self, target: Target) -> tuple[NativeModule, Traced]:
        """The program for a CPU, as LLVM text, and the trace as it is compiled there."""
        from ...runtime.compile import generate  # with the compiler, when it is asked for

        plain = replace(target, sanitize=False, probe="", quick=False)
        module, _ = generate(self.graph, plain, self.strides, self.options)
        if module.callbacks:
            self.refuse("calls Python", "leave out what is called (jt.py_func, print, ...)")
        if module.keeps_gil:
            self.refuse(
                "draws from NumPy's or Python's generators", "draw with jt.random and a key"
            )
        return module, self.traced.settled(module.in_place)

    def refuse(self, what: str, remedy: str) -> NoReturn:
        refuse(self.name, what, remedy)


def refuse(name: str, what: str, remedy: str) -> NoReturn:
    """What cannot leave the process."""
    complain(errors.ExportError, f"{name} {what}, and cannot be exported", f"{remedy}.")


def machine_code(alone: Alone, text: str, target: Target) -> Image:
    """The image of a module's text."""
    from ...runtime.native.engine import engine_for

    code = engine_for(target).assemble(text)
    if isinstance(code, bytes):
        alone.refuse("has code that only LLVM can link", "report this, with the function")
    return code


def alone(
    name: str,
    graph: Graph,
    traced: Traced,
    captured: CapturedVariables,
    options: CompileOptions,
    strides: Sequence[tuple[int, ...]],
    specs: Sequence[Any],
    call: Any,
) -> Alone:
    """The call on its own. Raises ExportError for one that changes, or needs, what is outside."""
    names = tuple(call.leaf_names())
    _check_arguments(name, specs, names)
    if call.guard is not None:
        refuse(name, "compiles in numbers that it computes of its arguments", "make them static")
    for result in traced.results:
        if result.views:
            refuse(name, "returns what is no array in memory", "return np.asarray of it")
    hidden = [spec for spec in captured.specs if isinstance(spec, Spec)]
    outside = [*captured.arrays(), *(capture.outer for capture in traced.captures)]
    first = len([spec for spec in specs if isinstance(spec, Spec)])
    read = {id(v) for op in graph.ops for v in op.operands} | {id(v) for v in graph.outputs}
    arrays, layouts = [], list(map(tuple, strides))
    for k, value in enumerate(outside):
        param = graph.params[first + k]
        if k < len(hidden) and hidden[k].holder is not None:
            if id(param) in read:
                refuse(
                    name,
                    f"uses {hidden[k].name or 'a generator'} from outside, whose state it changes",
                    "pass a key (jt.random.key) as an argument",
                )
            value = np.zeros(param.shape, param.dtype)
        arrays.append(np.asarray(value, param.dtype))
        if spread(param.shape, layouts[first + k]) > most_spread(param.tensor.size):
            layouts[first + k] = contiguous_strides(param.shape)  # a part of something larger
    if any(p >= first for p in (*traced.mutated, *(d.input for d in options.donations))):
        refuse(name, "assigns to an array from outside", "pass the array as an argument")
    return Alone(
        name,
        graph,
        traced,
        replace(options, donations=_assigned(traced)),
        tuple(layouts),
        tuple(specs),
        names,
        _parameters(call),
        tuple(call.ordered),
        _shape_of(name, "takes", pytree.unflatten(call.tree, map(Leaf, range(len(specs))))),
        _result(name, traced, captured),
        tuple(arrays),
    )


def _assigned(traced: Traced) -> tuple[Donation, ...]:
    first = len(traced.graph.outputs) - len(traced.mutated)
    return tuple(Donation(p, k, whole=True) for k, p in enumerate(traced.mutated, first))


def _check_arguments(name: str, specs: Sequence[Any], names: Sequence[str]) -> None:
    for spec, leaf in zip(specs, names, strict=True):
        if isinstance(spec, Spec) and spec.holder is None:
            continue
        if isinstance(spec, Static) and type(spec.value) in (bool, int, float, complex, str):
            continue
        if isinstance(spec, Static) and spec.value is None:
            continue
        if isinstance(spec, Static) and isinstance(spec.value, np.generic):
            remedy = "give a Python number, or make a function with the number in it"
            refuse(name, f"compiles in `{leaf}`, a number of NumPy's", remedy)
        refuse(
            name,
            f"takes `{leaf}`, which is no array, number or text",
            "export a function that has it, jt.export(lambda x: f(x, it), ...)",
        )


def _parameters(call: Any) -> tuple[str, ...]:
    """What the arguments that have a position are called, where they have a name."""
    signature = call._signature
    if signature is None:
        return ()
    kinds = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    before = [p for p in signature.parameters.values() if p.kind is p.POSITIONAL_ONLY]
    return (*("" for _ in before), *(p.name for p in kinds))[: len(call.args)]


def _result(name: str, traced: Traced, captured: CapturedVariables) -> Any:
    leaves: list[Any] = [Leaf(k) for k in range(len(traced.results))]
    effects = captured.effects
    if effects is None:
        return _shape_of(name, "returns", pytree.unflatten(traced.out_tree, leaves))
    if effects.writes:
        write = effects.writes[0]
        refuse(
            name,
            f"changes what is outside of it ({write.kind} {write.key!r})",
            "return the new value instead",
        )
    try:
        made = build(effects.result, leaves, (), {})
    except IndexError:
        refuse(name, "returns an object from outside", "return arrays")
    return _shape_of(name, "returns", made)


def _shape_of(name: str, does: str, tree: Any) -> Any:
    try:
        return described(tree)
    except TypeError as error:
        refuse(name, f"{does} {error}", "take and return tuples, lists and dicts of arrays")


def plain_static(result: Result) -> bool:
    """Whether a result that is no array can stand in a file."""
    return result.static is None or type(result.static) in (bool, int, float, complex, str)
