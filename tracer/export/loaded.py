"""`jt.load_exported`: a function of a file, called without tracing it, without LLVM, too."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

import numpy as np

from ...ir.record import record
from ...ir.types import TensorType, parse_type
from ...ir.version import __version__
from ...runtime.config import config
from ...runtime.native.engine import NativeError
from ...runtime.portable.format import Field, FormatError, read
from ...runtime.portable.layouts import laid_out, most_spread, spread
from ...runtime.portable.levels import NATIVE, X86, identity, levels_here
from ...runtime.portable.programs import Program, load, missing_imports, type_text, unpacked
from ..messages.errors import ExportError
from . import trees

Array = np.ndarray[Any, Any]

_WEAK = {"b": bool, "i": int, "f": float, "c": complex}


@record
class _Leaf:
    """What a leaf of the arguments has to be; `static`: the value that is compiled in."""

    name: str
    type: TensorType | None = None
    weak: str | None = None
    scalar: bool = False
    static: Any = None


class LoadedFunction:
    """A function of a file. It is called as the one that was exported, with arrays of the same dtypes
    and shapes, and numbers of the same classes; TypeError says what differs.

    `name`, `cpu` (for which its code is), `cpus` (of the file), `graph` (as text), `version` (of the
    jitney that exported it), `signature`.
    """

    def __init__(self, file: Field) -> None:
        self.version = file["jitney"].of(str)
        self.name = self.__name__ = file["name"].of(str)
        self.graph = file["graph"].of(str)
        self._leaves = [_read_leaf(item) for item in file["leaves"].items()]
        self._parameters = file["parameters"].items_of(str)
        self._ordered = file["ordered"].items_of(str)
        self._inputs = _read_tree(file["inputs"], len(self._leaves))
        programs = [(unpacked(item), item) for item in file["programs"].items()]
        self.cpus = tuple(program.cpu for program, _ in programs)
        program, own = _chosen(programs, file)
        self.cpu = program.cpu
        self._results = [_read_result(item) for item in own["results"].items()]
        self._result = _read_tree(file["result"], len(self._results), whole=False)
        self._mutated = own["mutated"].items_of(int)
        self._written = [*self._mutated, *own["overwritten"].items_of(int)]
        self._explicit = [k for k, leaf in enumerate(self._leaves) if leaf.type is not None]
        self._check(program, own)
        self._hidden = _read_arrays(file["arrays"], program, len(self._explicit))
        why = missing_imports(program.module.imports)
        if why:
            raise ExportError(f"{self.name} needs what is not here: {why}")
        try:
            self._run = load(program, pool=self.version == __version__)
        except (NativeError, OverflowError, ImportError) as error:
            raise ExportError(f"{self.name} cannot be loaded: {error}") from error
        args, kwargs = self._inputs[1]
        self._count = len(args[1])
        flat = [["leaf", k] for k in range(len(self._leaves))]
        traced = len(self._explicit) == len(self._leaves)  # what is compiled in is compared
        self._flat = args[1] == flat and not kwargs[1] and traced
        self._arrays_only = self._flat and not self._written
        self._arrays_only &= all(leaf.type and not leaf.scalar for leaf in self._leaves)
        # The output that is all that the function returns.
        self._output: int | None = None
        if self._result == ["leaf", 0] and self._results[0][0] == "output":
            _, output, _, scalar = self._results[0]
            self._output = None if scalar else output

    def _check(self, program: Program, own: Field) -> None:
        """What the parts of the file say of each other."""
        module = program.module
        types = [self._leaves[k].type for k in self._explicit]
        if types != module.inputs[: len(types)]:
            raise own.wrong("is a program for other arguments")
        outputs = len(module.outputs) - len(self._mutated)
        for kind, value, *_ in self._results:
            most = outputs if kind == "output" else len(types) if kind == "argument" else None
            if most is not None and not 0 <= value < most:
                raise own["results"].wrong("has no such array")
        if outputs < 0 or any(not 0 <= p < len(types) for p in self._written):
            raise own.wrong("assigns to what is no argument")
        if any(p not in self._written for _, p in module.in_place):
            raise own.wrong("assigns to an argument and does not say so")
        first = outputs
        for k, p in enumerate(self._mutated):
            if module.outputs[first + k] != types[p]:
                raise own.wrong("assigns to an argument of another type")

    @property
    def signature(self) -> str:
        """`(x: f64[3,4], n: float)`."""
        return f"({', '.join(f'{leaf.name}: {_wanted(leaf)}' for leaf in self._leaves)})"

    def __repr__(self) -> str:
        return f"<jitney.LoadedFunction {self.name}{self.signature} for {self.cpu}>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        plain = self._arrays_only and not kwargs and len(args) == self._count
        if not plain or any(array.__class__ is not np.ndarray for array in args):
            return self._called(args, kwargs)
        try:
            outputs = self._run(*args, *self._hidden)
        except TypeError:  # for an array that does not fit, which is said better there
            return self._called(args, kwargs)
        return self._returned(outputs, args)

    def _called(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The long way."""
        leaves: Sequence[Any] = args
        if kwargs or not self._flat or len(args) != self._count:
            leaves = self._taken_apart(args, kwargs)
        inputs = [leaves[k] for k in self._explicit]
        arrays = [
            _array(self._leaves[k], leaf) for k, leaf in zip(self._explicit, inputs, strict=True)
        ]
        if self._written:
            self._check_written(inputs, arrays)
        outputs = self._run(*arrays, *self._hidden)
        first = len(outputs) - len(self._mutated)
        for k, p in enumerate(self._mutated):
            np.copyto(arrays[p], outputs[first + k])
        return self._returned(outputs, inputs)

    def _returned(self, outputs: list[Array], inputs: Sequence[Any]) -> Any:
        if self._output is not None:
            return outputs[self._output]
        return trees.built(self._result, lambda k: self._value(self._results[k], outputs, inputs))

    def _value(self, result: Any, outputs: list[Array], inputs: Sequence[Any]) -> Any:
        kind, value, *rest = result
        if kind == "output":
            weak, scalar = rest
            array = outputs[value]
            return array if not scalar else array.item() if weak else array[()]
        return inputs[value] if kind == "argument" else value

    def _taken_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call; parameters that have a position may be given by name."""
        given = list(args)
        for name in self._parameters[len(args) : self._count]:
            if name and name in kwargs:
                given.append(kwargs[name])
                kwargs = {key: value for key, value in kwargs.items() if key != name}
        if len(given) != self._count:
            names = ", ".join(name or "_" for name in self._parameters)
            takes = f"{self._count} argument{'s' * (self._count != 1)}" + f" ({names})" * bool(
                names
            )
            raise TypeError(f"{self.name} takes {takes}; {len(given)} were given")
        leaves: list[Any] = [None] * len(self._leaves)
        roots = [name or f"argument {k}" for k, name in enumerate(self._parameters)]
        roots += [f"argument {k}" for k in range(len(roots), self._count)]
        positional, keywords = self._inputs[1]
        for tree, value, name in zip(positional[1], given, roots, strict=True):
            trees.taken_apart(tree, value, leaves, name)
        wanted = dict(keywords[1])
        if set(wanted) != set(kwargs):
            raise TypeError(f"{self.name} takes by name {sorted(wanted)}, not {sorted(kwargs)}")
        trees.check_order([k for k in kwargs if k in self._ordered], self._ordered, "**kwargs")
        for name, tree in wanted.items():
            trees.taken_apart(tree, kwargs[name], leaves, name)
        for leaf, value in zip(self._leaves, leaves, strict=True):
            if leaf.type is None and not _is_same(value, leaf.static):
                raise TypeError(
                    f"{leaf.name} is {leaf.static!r}, which was compiled in, not {value!r}"
                )
        return leaves

    def _check_written(self, inputs: Sequence[Any], arrays: list[Array]) -> None:
        for p in self._written:
            name = self._leaves[self._explicit[p]].name
            if not isinstance(inputs[p], np.ndarray):
                given = type(inputs[p]).__name__
                raise TypeError(f"{name} is assigned to, and is a {given}: give an array")
            if not arrays[p].flags.writeable:
                raise ValueError(f"{name} is assigned to, and is read-only")
            for k, other in enumerate((*arrays, *self._hidden)):
                if k != p and np.may_share_memory(arrays[p], other):
                    raise ValueError(
                        f"{name} is assigned to, and shares memory with another argument"
                    )


def load_exported(path: str | os.PathLike[str]) -> LoadedFunction:
    """The function of a file that `jt.export(...).save(path)` wrote.

    It is neither traced nor compiled, and llvmlite need not be there. Of the CPUs that the file has code
    for the highest is taken that this one can run (`jt.config.cpu` may say a lower one). A file is
    checked for damage; but it is machine code, and whoever wrote it decides what a call does: load those
    of people that you trust, as with any library.

    Raises ExportError for what is no such file, is damaged, is for other CPUs or of another version, and
    OSError where there is none.

    >>> jt.export(lambda x: x * 2, jt.ShapeDtype(3)).save("double.jitney")  # doctest: +SKIP
    >>> jt.load_exported("double.jitney")(np.ones(3))  # doctest: +SKIP
    array([2., 2., 2.])
    """
    try:
        return LoadedFunction(read(path))
    except FormatError as error:
        raise ExportError(str(error)) from None


def _chosen(programs: list[tuple[Program, Field]], file: Field) -> tuple[Program, Field]:
    """The best program that this CPU runs."""
    here = levels_here()
    if config.cpu in X86:
        here = here[here.index(config.cpu) :] if config.cpu in here else ()
    by_cpu = {program.cpu: (program, field) for program, field in programs}
    own = by_cpu.get(NATIVE)
    if own is not None and own[0].identity and own[0].identity == identity():
        return own
    for level in here:
        if level in by_cpu:
            return by_cpu[level]
    wanted = ", ".join(repr(cpu) for cpu in by_cpu) or "nothing"
    runs = f"{here[0]!r} and below" if here else "none of the CPUs that can be exported for"
    raise ExportError(
        f"{file.name} has code for {wanted}, and this CPU runs {runs}: export with "
        f"cpus=[{here[0]!r}]"
        if here
        else f"{file.name} has code for {wanted}, and this is {runs}"
    )


def _array(leaf: _Leaf, value: Any) -> Array:
    type = leaf.type
    assert type is not None
    plain = value.__class__ is np.ndarray and not leaf.scalar
    if plain and value.dtype == type.dtype and value.shape == type.shape:
        return value
    if leaf.weak is not None:
        if value.__class__ is not _WEAK[leaf.weak]:
            _refuse(leaf, value)
        try:
            return np.asarray(value, type.dtype)
        except OverflowError:
            raise TypeError(f"{leaf.name} is {value}, which has no room in {type.dtype}") from None
    if leaf.scalar:
        if not isinstance(value, np.generic) or value.dtype != type.dtype:
            _refuse(leaf, value)
        return np.asarray(value)
    if isinstance(value, (bool, int, float, complex, str, list, tuple, dict)) or value is None:
        _refuse(leaf, value)
    if isinstance(value, np.ndarray) and value.__class__ not in (np.ndarray, np.memmap):
        _refuse(leaf, value)  # a masked array is more than its numbers
    array = np.asarray(value)
    if array.dtype.newbyteorder("=") != type.dtype or array.shape != type.shape:
        _refuse(leaf, value)
    return array


def _is_same(value: Any, static: Any) -> bool:
    """Whether a call's value is the one that is compiled in: 0.0 is not -0.0, and NaN is NaN."""
    return type(value) is type(static) and repr(value) == repr(static)


def _wanted(leaf: _Leaf) -> str:
    if leaf.type is None:
        return repr(leaf.static)
    if leaf.weak is not None:
        return _WEAK[leaf.weak].__name__
    return f"np.{leaf.type.dtype.name}" if leaf.scalar else str(leaf.type)


def _refuse(leaf: _Leaf, value: Any) -> NoReturn:
    given = type(value).__name__
    if isinstance(value, (np.ndarray, np.generic)):
        try:
            given = type_text(np.asarray(value)) + " of NumPy's" * isinstance(value, np.generic)
            if type(value) not in (np.ndarray, np.memmap) and isinstance(value, np.ndarray):
                given = f"a {type(value).__name__}, {given}"
        except (KeyError, TypeError):
            given = f"an array of {value.dtype}"
    raise TypeError(f"{leaf.name} has to be {_wanted(leaf)}, as it was exported, not {given}")


# Reading


def _read_leaf(field: Field) -> _Leaf:
    items = list(field.items())
    kind = items[0].of(str) if items else ""
    if kind == "static" and len(items) == 3:
        return _Leaf(items[1].of(str), static=_decoded(items[2]))
    if kind != "traced" or len(items) != 5:
        raise field.wrong("is no argument")
    type, weak = items[2].checked(parse_type), items[3].or_none(str)
    if not isinstance(type, TensorType) or weak not in (None, *_WEAK):
        raise field.wrong("is no array or number")
    scalar = items[4].of(bool)
    if (scalar or weak) and type.shape:
        raise field.wrong("is a number with a shape")
    return _Leaf(items[1].of(str), type, weak, scalar)


def _read_tree(field: Field, leaves: int, whole: bool = True) -> Any:
    numbers: list[int] = field.checked(lambda tree: list(trees.check(tree, leaves)))
    if whole:
        fits: Callable[[Any], bool] = lambda t: (  # noqa: E731
            t[0] == "tuple" and [part[0] for part in t[1]] == ["tuple", "dict"]
        )
        if sorted(numbers) != list(range(leaves)) or not fits(field.value):
            raise field.wrong("has not each argument once")
    return field.value


def _read_result(field: Field) -> tuple[Any, ...]:
    items = list(field.items())
    match [item.value for item in items]:
        case ["output", int(k), bool(weak), bool(scalar)]:
            return "output", k, weak, scalar
        case ["argument", int(k)]:
            return "argument", k
        case ["static", _]:
            return "static", _decoded(items[1])
    raise field.wrong("is no result")


def _decoded(field: Field) -> Any:
    parts: Any = field.value
    match parts:
        case ["NoneType", None]:
            return None
        case ["bool", bool(value)]:
            return value
        case ["str", str(value)]:
            return value
        case ["int", str(value)]:
            return field.checked(lambda parts: int(parts[1], 16))
        case ["float", str(value)]:
            return field.checked(lambda _: float.fromhex(value))
        case ["complex", str(real), str(imag)]:
            return field.checked(lambda _: complex(float.fromhex(real), float.fromhex(imag)))
    raise field.wrong("is no value")


def _read_arrays(field: Field, program: Program, first: int) -> list[Array]:
    """The arrays that the function had from outside, in the layouts that its code wants."""
    module = program.module
    wanted = list(zip(module.inputs, module.input_strides, strict=True))[first:]
    items = [list(item.items()) for item in field.items()]
    if len(items) != len(wanted) or any(len(item) != 2 for item in items):
        raise field.wrong("has not what the program takes")
    arrays = []
    for (text, piece), (type, strides) in zip(items, wanted, strict=True):
        content = piece.piece()
        if text.of(str) != str(type) or len(content) != type.nbytes:
            raise field.wrong("has an array of another type")
        if spread(type.shape, strides) > most_spread(type.size):
            raise field.wrong("has an array that is spread too far")
        array = np.frombuffer(content, type.dtype).reshape(type.shape)
        arrays.append(laid_out(array, strides)[2])
    return arrays
