"""Which arrays of a model: selections by name, class, tag, instead of collections.

    mask = nn.select(model, nn.trainable & nn.path("generator/*") & ~nn.type(nn.BatchNorm))
    nn.freeze(model, nn.path("encoder/*"))

A selection is asked of every array; masks are what it says of one model, by the paths of `jt.tree`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import jitney as jt

from .faults import complain
from .module import Module, instances, modules
from .store import Store

T = TypeVar("T")
_BY_NAME = {"w": "weights", "b": "biases"}  # tags that arrays have by their names


@dataclass(frozen=True)
class Entry:
    """An array of a model: its path, the modules around it from the outside in, what is known of it."""

    path: str
    array: Any
    owners: tuple[Any, ...]
    trainable: bool
    tags: frozenset[str]
    name: str | None = None  # that a Variable has by itself

    @property
    def slashed(self) -> str:
        """The path as scopes are written: `layers/0/w`."""
        return "/".join(_steps(self.path))

    @property
    def shown(self) -> str:
        """By what it is best found."""
        return self.name or self.slashed


class Selection:
    """A question asked of an array; `&`, `|` and `~` make others of it."""

    def __init__(self, holds: Callable[[Entry], bool], name: str) -> None:
        self.holds, self.name = holds, name

    def __and__(self, other: Selection) -> Selection:
        return Selection(lambda e: self.holds(e) and other.holds(e), f"({self} & {other})")

    def __or__(self, other: Selection) -> Selection:
        return Selection(lambda e: self.holds(e) or other.holds(e), f"({self} | {other})")

    def __invert__(self) -> Selection:
        return Selection(lambda e: not self.holds(e), f"~{self}")

    def __repr__(self) -> str:
        return self.name


trainable = Selection(lambda e: e.trainable, "trainable")
everything = Selection(lambda e: True, "everything")


def path(pattern: str) -> Selection:
    """Arrays by path: `"encoder/*"`, `"*/w"`, `"layers/[01]/*"`, or as in Python: `"layers[0].w"`.
    `*` stands for anything, `?` for a character; what the pattern names as a module is all of it. A
    Variable is found by its name, too: those of a store by the scopes that they were made in.

    >>> jt.nn.path("encoder/*") & jt.nn.trainable
    (path('encoder/*') & trainable)
    """

    def holds(entry: Entry) -> bool:
        if entry.path == pattern or entry.path.startswith((f"{pattern}.", f"{pattern}[")):
            return True
        names = [entry.slashed] if entry.name is None else [entry.slashed, entry.name]
        return any(fnmatch.fnmatchcase(n, p) for n in names for p in (pattern, f"{pattern}/*"))

    return Selection(holds, f"path({pattern!r})")


def type(*classes: Any) -> Selection:
    """Arrays that are in modules of these classes, at any depth.

    >>> jt.nn.type(jt.nn.Module)
    type(Module)
    """
    names = ", ".join(cls.__name__ for cls in classes)
    return Selection(
        lambda e: any(isinstance(owner, classes) for owner in e.owners), f"type({names})"
    )


def tag(*names: str) -> Selection:
    """Arrays with one of these tags: those of a `jt.Variable`, those that a module has in `tags`, and
    "weights" and "biases" of what is named `w` and `b`.

    >>> jt.nn.tag("biases")
    tag('biases')
    """
    return Selection(lambda e: not e.tags.isdisjoint(names), f"tag({', '.join(map(repr, names))})")


def where(function: Callable[[str, Any], bool]) -> Selection:
    """Arrays that a function of path and array takes.

    >>> matrices = jt.nn.where(lambda path, array: array.ndim == 2)
    """
    return Selection(lambda e: function(e.path, e.array), getattr(function, "__name__", "where"))


class Mask(dict[str, bool]):
    """Whether each array of a tree, by its path, is selected.

    `mask(tree)` is a tree of the same structure with None in the place of the others: of parameters,
    of gradients. `jt.tree.partition` takes it, too.

    >>> params = {"w": np.ones(2), "b": np.zeros(2)}
    >>> mask = jt.nn.select(params, jt.nn.path("w"))
    >>> mask(params)
    {'w': array([1., 1.]), 'b': None}
    """

    def __call__(self, tree: T) -> T:
        """The tree without what is not selected."""
        return jt.tree.partition(tree, self)[0]

    @property
    def paths(self) -> list[str]:
        """The paths of what is selected."""
        return [path for path, chosen in self.items() if chosen]

    def __invert__(self) -> Mask:
        return Mask({path: not chosen for path, chosen in self.items()})


def select(model: Any, selection: Selection | str = trainable) -> Mask:
    """The mask of a selection, or of a pattern of paths, over a module or a tree.

    Raises ValueError where nothing is selected.

    >>> jt.nn.select({"a": np.ones(1), "b": np.ones(1)}, "a").paths
    ["['a']"]
    """
    asked = jt.nn.path(selection) if isinstance(selection, str) else selection
    if not isinstance(asked, Selection):
        complain(
            TypeError,
            f"{asked!r} selects no arrays",
            "give nn.path('encoder/*'), nn.type(nn.Linear), nn.tag('weights'), or what &, | and ~ make "
            "of them.",
        )
    found = entries(model)
    mask = Mask({entry.path: bool(asked.holds(entry)) for entry in found})
    if not any(mask.values()):
        names = ", ".join(entry.shown for entry in found[:8]) + (", ..." if found[8:] else "")
        tags = ", ".join(sorted({tag for entry in found for tag in entry.tags})) or "none"
        complain(
            ValueError,
            f"{asked} selects nothing of {names or 'a model without arrays'}",
            f"paths are as these, or patterns such as '*/w'; their tags are {tags}.",
        )
    return mask


def entries(model: Any) -> list[Entry]:
    """What there is to select of: each array of a module or a tree, once.

    >>> [entry.slashed for entry in jt.nn.entries({"a": [np.ones(1)]})]
    ['a/0']
    """
    trained = {name for name, _ in jt.tree.leaves_with_path(jt.tree.trained(model))}
    owners, cells = dict(modules(model)), _variables(model)
    found = []
    for name, array in jt.tree.leaves_with_path(model):
        around = tuple(owners[p] for p in _prefixes(name) if p in owners)
        cell = cells.get(name)
        tags = _tags(name, around).union(() if cell is None else cell.tags)
        own = None if cell is None else cell.name
        found.append(Entry(name, array, around, name in trained, tags, own))
    return found


def _variables(model: Any) -> dict[str, Any]:
    """The Variables of a model, each once, by their paths."""
    return dict(instances(model, jt.Variable, (Module, Store), "", set()))


def _tags(name: str, owners: Iterable[Any]) -> frozenset[str]:
    last = _steps(name)[-1].rpartition("/")[2] if _steps(name) else ""
    tags = {_BY_NAME[last]} if last in _BY_NAME else set()
    names = set(_steps(name))
    for owner in owners:
        for key, texts in owner.tags.items():
            if key == "" or key in names:
                tags.update([texts] if isinstance(texts, str) else texts)
    return frozenset(tags)


def requires_grad(model: T, mode: bool = True, selection: Selection | str = everything) -> T:
    """Let the arrays of a selection be differentiated, or with False not. Returns the model.

    Arrays in one list, tuple or dict of a module are frozen together.

    >>> class Scale(jt.nn.Module):
    ...     def __init__(self):
    ...         self.by, self.plus = np.ones(2), np.zeros(2)
    >>> scale = jt.nn.requires_grad(Scale(), False, "plus")
    >>> jt.grad(lambda s: (s.by + s.plus).sum())(scale).plus is None
    True
    """
    mask = select(model, selection)
    for prefix, module in modules(model):
        for name, value in list(vars(module).items()):
            below = f"{prefix}.{name}" if prefix else name
            if isinstance(value, (Module, jt.Variable)):
                continue
            chosen = [
                on for p, on in mask.items() if re.fullmatch(rf"{re.escape(below)}(\[.*\])?", p)
            ]
            if any(chosen):
                rest = tuple(n for n in module.frozen if n != name)
                module.frozen = rest if mode else (*rest, name)
    for name, variable in _variables(model).items():
        variable.trainable = mode if mask.get(name) else variable.trainable
    return model


def freeze(model: T, selection: Selection | str = everything) -> T:
    """As `requires_grad(model, False, selection)`.

    >>> layer = jt.nn.freeze(jt.nn.Linear(2, 1))
    >>> jt.grad(lambda layer: layer(np.ones((1, 2), np.float32)).sum())(layer).w is None
    True
    """
    return requires_grad(model, False, selection)


def _steps(name: str) -> list[str]:
    """The names in a path: attributes, keys, numbers."""
    found = re.findall(r"\[(?:'((?:[^'\\]|\\.)*)'|([^\]]*))\]|([^.\[\]]+)", name)
    return [a or b or c for a, b, c in found]


def _prefixes(name: str) -> list[str]:
    """The paths of what is around a path, from the outside in: `""`, `"layers"`, `"layers[0]"`."""
    return ["", *(name[: m.start()] for m in re.finditer(r"[.\[]", name) if m.start())]
