"""Values from a file into the places of a tree, in place or in a new tree."""

from __future__ import annotations

import copy
from collections import defaultdict, deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import jitney as jt

from . import places
from .checkpoint_file import CheckpointError, fail
from .checkpoint_tree import generator_state, plain_leaf, set_state
from .places import Kind

Only = str | Iterable[str] | Callable[[str], bool] | None
Spec = Callable[[Any], tuple[tuple[int, ...], np.dtype[Any]]]


@dataclass
class Report:
    """What came of a restore: paths in the tree (`loaded`, `missing` in the file), in the file
    (`extra`: not in the tree), and what does not fit (`misshapen`, with the reason)."""

    path: Path
    loaded: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    extra: list[str] = field(default_factory=list)
    misshapen: dict[str, str] = field(default_factory=dict)

    def __bool__(self) -> bool:
        """Whether something was amiss."""
        return bool(self.missing or self.extra or self.misshapen)

    def __str__(self) -> str:
        lines = [f"{str(self.path)!r}: {len(self.loaded)} places fit"]
        lines += [
            f"  misshapen  {places.shown(place)}: {why}" for place, why in self.misshapen.items()
        ]
        lines += [f"  missing    {places.shown(place)}" for place in self.missing]
        lines += [f"  extra      {places.shown(place)}" for place in self.extra]
        return "\n".join(lines)


class Filling:
    """A tree that is filled: `match` says what goes where, `put` puts it there."""

    def __init__(self, tree: Any, report: Report, only: Only, cast: bool, in_place: bool) -> None:
        self.report = report
        self._tree, self._only, self._cast, self._in_place = tree, only, cast, in_place
        self._places = {
            place: value for place, value in places.leaves(tree) if places.matches(place, only)
        }
        self._values: dict[str, Any] = {}
        self._made: dict[
            int, Any
        ] = {}  # of containers and arrays of the tree: what is in the new one
        self._given: set[int] = set()  # arrays that have a place in the new tree

    def match(self, found: dict[str, Any], spec: Spec) -> dict[str, Any]:
        """The nodes that fit, by place. The report has the others."""
        chosen = {}
        for place, value in self._places.items():
            if place not in found:
                if value is not None:
                    self.report.missing.append(place)
                continue
            node = found[place]
            why = self._misfit(value, node, spec)
            if why:
                self.report.misshapen[place] = why
            else:
                chosen[place] = node
        self.report.extra += [place for place in found if place not in self._places]
        self.report.loaded += chosen
        return chosen

    def put(self, values: dict[str, Any]) -> Any:
        """The tree with these values at their places."""
        for place, value in values.items():
            if places.kind_of(self._places[place]) is Kind.ARRAY:
                values[place] = self._as_here(self._places[place], value)
        self._values = values
        self._check_ties()
        self._check_generators()
        for place, value in values.items():
            if places.kind_of(self._places[place]) is Kind.STATEFUL:
                self._places[place].restore(value)
        return self._put(self._tree, "", False)

    def _misfit(self, value: Any, node: Any, spec: Spec) -> str:
        """Why a node can't go where a value is; empty if it can."""
        kind, has = places.kind_of(value), _kind_of_node(node)
        if value is None or (kind is Kind.PLAIN and has == "plain"):
            return "" if has != "stateful" else "the state of an iterator in the file, None here"
        if kind is Kind.ARRAY and has == "array":
            (shape, dtype), here = spec(node), np.dtype(value.dtype).newbyteorder("=")
            fits = dtype == here or (self._cast and np.can_cast(dtype, here, "same_kind"))
            if shape != tuple(value.shape) or not fits:
                hint = (
                    "; cast=True converts" if shape == tuple(value.shape) and not self._cast else ""
                )
                there = f"{dtype.name}{list(shape)}"
                return f"{there} in the file, {here.name}{list(value.shape)} here{hint}"
            read_only = isinstance(value, np.ndarray) and not value.flags.writeable
            return "the array is read-only" if self._in_place and read_only else ""
        if kind.value == has:
            if kind is Kind.STATEFUL and not self._in_place:
                return "an iterator goes on in place only: give into="
            return ""
        return f"{_said(has)} in the file, {type(value).__qualname__} here"

    def _as_here(self, value: Any, new: Any) -> Any:
        dtype = np.dtype(value.dtype)
        return new if new.dtype == dtype else np.asarray(new).astype(dtype)

    def _check_ties(self) -> None:
        """One array here can't be two that differ."""
        seen: dict[int, str] = {}
        for place, new in self._values.items():
            value = self._places[place]
            if isinstance(value, np.generic) or places.kind_of(value) is not Kind.ARRAY:
                continue
            other = seen.setdefault(id(value), place)
            one = self._values[other]
            if one is not new and np.asarray(one).tobytes() != np.asarray(new).tobytes():
                fail(
                    self.report.path,
                    f"{other} and {place} are one array in the tree, and two that differ in the file",
                )

    def _check_generators(self) -> None:
        for place, new in self._values.items():
            value = self._places[place]
            if places.kind_of(value) is Kind.GENERATOR:
                try:
                    set_state(copy.deepcopy(value), generator_state(new), place)
                except CheckpointError as error:
                    fail(self.report.path, str(error))

    def _put(self, value: Any, path: str, in_module: bool) -> Any:
        kind = places.kind_of(value)
        if kind in places.CONTAINERS:
            if id(value) not in self._made:
                self._made[id(value)] = self._container(value, kind, path, in_module)
            return self._made[id(value)]
        if path not in self._values:
            return value if self._in_place else self._kept(value, kind)
        new = self._values[path]
        if kind is Kind.ARRAY and not isinstance(value, np.generic):
            return self._array(value, new)
        if kind is Kind.GENERATOR and self._in_place:
            set_state(value, generator_state(new), path)
            return value
        return value if kind is Kind.STATEFUL else new

    def _array(self, value: Any, new: Any) -> Any:
        if isinstance(value, jt.DeviceArray):
            return jt.device_put(np.asarray(new), value.device)
        if self._in_place:
            if places.is_variable(value):
                value.assign(new)
            else:
                value[...] = new
            return value
        if id(value) not in self._made:
            new = np.array(new) if id(new) in self._given else np.asarray(new)
            self._given.add(id(new))
            if places.is_variable(value):
                cell = copy.copy(value)
                cell.value = new
                new = cell
            self._made[id(value)] = new
        return self._made[id(value)]

    def _kept(self, value: Any, kind: Kind) -> Any:
        """What a new tree has where nothing is restored: nothing that the old one can change."""
        if kind is Kind.GENERATOR or isinstance(value, np.ndarray) or places.is_variable(value):
            return self._made.setdefault(id(value), copy.deepcopy(value))
        return value

    def _container(self, value: Any, kind: Kind, path: str, in_module: bool) -> Any:
        inside = in_module or places.is_module(value)
        old = places.parts(value, kind)
        if not self._in_place and kind is Kind.OBJECT and not isinstance(value, tuple):
            self._made[id(value)] = object.__new__(type(value))
        new = {key: self._put(part, places.child(path, key, kind), inside) for key, part in old}
        if not self._in_place:
            return _remade(value, kind, new, self._made.get(id(value)))
        changed = {key: new[key] for key, part in old if new[key] is not part}
        return _changed(value, kind, new, changed) if changed else value


def _remade(value: Any, kind: Kind, new: dict[Any, Any], made: Any) -> Any:
    """A new container like `value`."""
    if kind is Kind.DICT:
        empty: Any = (
            defaultdict(value.default_factory) if isinstance(value, defaultdict) else type(value)()
        )
        empty.update(new)
        return empty
    if isinstance(value, deque):
        return deque(new.values(), value.maxlen)
    if kind is not Kind.OBJECT:
        return type(value)(new.values())
    if isinstance(value, tuple):
        return type(value)(*new.values())
    for name, part in new.items():
        object.__setattr__(made, name, part)
    if any(part is not None and getattr(value, name) is None for name, part in new.items()):
        _built(made)
    return made


def _changed(value: Any, kind: Kind, new: dict[Any, Any], changed: dict[Any, Any]) -> Any:
    """The container with some parts changed: itself, if it can be."""
    if kind is Kind.TUPLE or isinstance(value, tuple) or _is_frozen(value):
        return _remade(value, kind, new, object.__new__(type(value)) if _is_frozen(value) else None)
    for key, part in changed.items():
        if kind is Kind.OBJECT:
            setattr(value, key, part)
        else:
            value[key] = part
    if kind is Kind.OBJECT:
        _built(value)
    return value


def _built(value: Any) -> None:
    """A module whose parameters came from a file needs none of its own."""
    if places.is_module(value) and hasattr(value, "build") and value.built is None:
        value.built = "restored"


def _is_frozen(value: Any) -> bool:
    params = getattr(value, "__dataclass_params__", None)
    return params is not None and params.frozen


def _kind_of_node(node: Any) -> str:
    if plain_leaf(node):
        return "plain"
    kinds = {"array": "array", "generator": "generator", "state": "stateful"}
    return next((kind for key, kind in kinds.items() if key in node), "static")


def _said(kind: str) -> str:
    return {
        "plain": "a plain value",
        "array": "an array",
        "generator": "a generator",
        "stateful": "an iterator's state",
    }[kind]
