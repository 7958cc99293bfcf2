"""`Module`: an ordinary class whose attributes are arrays, modules and settings."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

import jitney as jt

M = TypeVar("M", bound="Module")

_NAMES = "jt.tree.leaves_with_path(model), its arrays by name"
_ARRAYS = "layer.w, layer.b, or what jt.tree.leaves_with_path(layer) shows"
_SAVING = "jt.train.save(folder, model), and jt.train.restore(folder, into=model)"


class Module:
    """A part of a network: an ordinary object, whose arrays are its parameters and its state.

    Attributes are arrays (trained where they are floats, unless they are named in `buffers` or
    frozen), `jt.Variable`s, other modules, lists, tuples and dicts of these, or settings. `__call__` is
    what it computes; other methods share the same parameters, as do several calls.

    Compiled functions read and change a module as they do every object. For `jt.tree` and as an
    argument of `jt.grad` and its kin it is a tree of its arrays: a gradient is an object of the same
    class, with None where nothing is trained. While a function is differentiated its values stand in
    the very object, so whatever else it assigns there stays.

    What depends on the inputs' sizes is made by `build(*inputs)`, which is called before the first
    `__call__`, if nobody has called it before; until then such attributes are None.

    >>> class Scale(jt.nn.Module):
    ...     def __init__(self, n):
    ...         self.by = np.full(n, 2.0)
    ...
    ...     def __call__(self, x):
    ...         return self.by * x
    >>> jt.grad(lambda scale, x: scale(x).sum())(Scale(2), np.array([3.0, 4.0])).by
    array([3., 4.])
    """

    buffers: tuple[str, ...] = ()
    training: bool = True
    frozen: tuple[str, ...] = ()  # names of attributes; "" stands for all of them
    tags: Mapping[str, Any] = {}  # of attributes, by name: what `nn.tag` finds; "" stands for all
    built: str | None = None  # what it was built for: a text, which compiled code takes as it is

    if not TYPE_CHECKING:
        __getattr__ = jt.errors.elsewhere.of_objects(
            bias=_ARRAYS,
            fit="jt.train.Trainer(model, jt.optim.adam(1e-3), loss).fit(data, steps=100)",
            forward="model(x)",
            kernel=_ARRAYS,
            load_state_dict=_SAVING,
            named_parameters=_NAMES,
            parameters="jt.optim.Adam(model, 1e-3), or jt.tree.leaves(model) for its arrays",
            register_buffer="buffers = ('name',) in the class",
            state_dict=_SAVING,
            to="@jt.jit(device='cuda') for the function that calls it",
            trainable_variables=_NAMES,
            weight=_ARRAYS,
            zero_grad="optimiser.minimize(loss, x, y) alone: nothing is kept",
        )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = vars(cls)
        if not hasattr(cls, "build"):
            return
        if "build" in own:
            cls.build = _noting(own["build"])
        if ("build" in own or "__call__" in own) and not hasattr(cls.__call__, "_builds"):
            cls.__call__ = _building(cls.__call__)  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the module computes."""
        jt.errors.complain(
            NotImplementedError,
            f"{type(self).__name__} has no __call__",
            "write what it computes as `def __call__(self, x):`, which is PyTorch's forward.",
        )

    def train(self: M, mode: bool = True) -> M:
        """Let this module and those in it be in training, or with False in evaluation. Returns it."""
        for _, module in modules(self):
            module.training = mode
        return self

    def eval(self: M) -> M:
        """As `train(False)`."""
        return self.train(False)

    def __repr__(self) -> str:
        return "\n".join(_lines(self, set()))


def _noting(build: Callable[..., None]) -> Callable[..., None]:
    """`build`, which notes that it was called."""

    @functools.wraps(build)
    def built(self: Any, *inputs: Any, **named: Any) -> None:
        build(self, *inputs, **named)
        self.built = "built"

    return built


def _building(call: Callable[..., Any]) -> Callable[..., Any]:
    """`__call__` of a module that has to be built before."""

    @functools.wraps(call)
    def building(self: Any, *args: Any, **kwargs: Any) -> Any:
        if self.built is None:
            self.build(*args, **kwargs)
        return call(self, *args, **kwargs)

    building._builds = True  # type: ignore[attr-defined]
    return building


def _untrained(module: Any) -> tuple[str, ...]:
    if "" in module.frozen:
        return tuple(vars(module))
    return (*module.buffers, *module.frozen)


def _check(module: Any) -> None:
    missing = unbuilt(module)
    if missing:
        jt.errors.complain(
            jt.errors.ArgumentError,
            f"this {type(module).__name__} is differentiated before its sizes are known: nothing has "
            f"built {', '.join(missing)}",
            "write nn.init(module, example) first, or call it once, or give the sizes of inputs.",
        )


jt.tree.register_object(Module, _untrained, _check)


def modules(module: Any) -> Iterator[tuple[str, Module]]:
    """A module and all that are in it, each once, with their paths: `""`, `"layers[0]"`, ...

    >>> class Pair(jt.nn.Module):
    ...     def __init__(self):
    ...         self.parts = [jt.nn.Module(), jt.nn.Module()]
    >>> [path for path, _ in jt.nn.modules(Pair())]
    ['', 'parts[0]', 'parts[1]']
    """
    return instances(module, Module, (Module,), "", set())


def instances(
    value: Any, wanted: type, around: tuple[type, ...], path: str, seen: set[int]
) -> Iterator[tuple[str, Any]]:
    """What is of a class in containers and in objects of classes `around`, each once, by its path."""
    if isinstance(value, (wanted, *around)):
        if id(value) in seen:
            return
        seen.add(id(value))
        if isinstance(value, wanted):
            yield path, value
    if isinstance(value, around):
        parts = [(f"{path}.{name}" if path else name, item) for name, item in vars(value).items()]
    elif isinstance(value, (list, tuple)):
        parts = [(f"{path}[{i}]", item) for i, item in enumerate(value)]
    elif isinstance(value, dict):
        parts = [(f"{path}[{key!r}]", item) for key, item in value.items()]
    else:
        return
    for below, item in parts:
        yield from instances(item, wanted, around, below, seen)


def unbuilt(module: Any) -> list[str]:
    """The paths of the modules, in this one (or tree of them) or it itself, that have to be built still.

    >>> jt.nn.unbuilt(jt.nn.Module())
    []
    """
    found = [(path, m) for path, m in modules(module) if hasattr(m, "build") and m.built is None]
    return [path or type(m).__name__ for path, m in found]


def _lines(value: Any, seen: set[int]) -> list[str]:
    """How a module is shown."""
    name = type(value).__name__
    if id(value) in seen:
        return [f"{name}(...)"]
    seen.add(id(value))
    short, long = [], []
    for key, item in vars(value).items():
        if key in ("built", "frozen", "tags") or (key == "training" and item):
            continue
        if _holds_modules(item):
            long += _indented(f"{key}=", _parts(item, seen))
        else:
            short.append(f"{key}={_shown(item)}")
    if not long:
        return [f"{name}({', '.join(short)})"]
    first = [f"  {', '.join(short)},"] if short else []
    return [f"{name}(", *first, *long, ")"]


def _parts(item: Any, seen: set[int]) -> list[str]:
    if isinstance(item, Module):
        return _lines(item, seen)
    if not isinstance(item, (list, tuple, dict)):
        return [_shown(item)]
    pairs = item.items() if isinstance(item, dict) else [("", part) for part in item]
    inner = [
        line
        for key, part in pairs
        for line in _indented(f"{key!r}: " if isinstance(item, dict) else "", _parts(part, seen))
    ]
    first, last = ("{", "}") if isinstance(item, dict) else "[]" if type(item) is list else "()"
    return [first, *inner, last]


def _indented(label: str, lines: list[str]) -> list[str]:
    lines = [label + lines[0], *lines[1:]]
    return [f"  {line}" for line in lines[:-1]] + [f"  {lines[-1]},"]


def _holds_modules(item: Any) -> bool:
    return next(modules(item), None) is not None


def _shown(item: Any) -> str:
    shape, dtype = getattr(item, "shape", None), getattr(item, "dtype", None)
    if isinstance(shape, tuple) and dtype is not None and not isinstance(item, np.generic):
        return f"{dtype}[{', '.join(map(str, shape))}]"
    if isinstance(item, (list, tuple)):
        first, last = "[]" if isinstance(item, list) else "()"
        return f"{first}{', '.join(map(_shown, item))}{last}"
    if isinstance(item, np.random.Generator):
        return "Generator"  # its address would be another one each time
    return str(getattr(item, "__name__", None) or repr(item))
