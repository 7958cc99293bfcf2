"""What calls hand over to each other, and back: a variable, and of which classes its numbers are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ....ir.graph import Value
from ....ir.record import record
from ....ir.types import I64, TensorType
from ...containers.kinds import make_classes_native
from ...control.carries import settled
from ...control.number_classes import (
    Class,
    check_kept_exactly,
    class_of,
    classes_of,
    of_class,
    tag_of_class,
)
from ...control.regions import Out, common_type, promoted
from ...core.tracers import Tracer, as_value
from ...data import pytree
from ..carried import CarriedVariable
from ..joins import conformed, empty
from ..variables import is_traceable, out_of, same

_TAG = Out(TensorType((), I64), None, True)


@record(frozen=False)
class End:
    """What one call hands over: the value, and of its leaves the types, None for what is no array, and
    the classes that each number may be of."""

    value: Any
    tree: pytree.TreeDef
    leaves: list[Any]
    outs: list[Out | None]
    classes: list[tuple[Class, ...]]

    @staticmethod
    def of(value: Any) -> End:
        leaves, tree = pytree.flatten(value)
        make_classes_native(leaves, inner=True)
        outs = [out_of(leaf) if is_traceable(leaf) else None for leaf in leaves]
        return End(
            value, tree, leaves, outs, [_classes(x, o) for x, o in zip(leaves, outs, strict=True)]
        )


def _classes(leaf: Any, out: Out | None) -> tuple[Class, ...]:
    if out is None or not out.scalar or out.type.dtype.kind not in "iuf":
        return ()
    return classes_of(leaf) or (class_of(leaf),)


@record(frozen=False)
class _Region:
    """The types of what is handed over, in the place of a region's."""

    outs: Sequence[Out]

    def made_at(self, index: int) -> str:
        return ""


class Handed:
    """An argument, the result, or something outside that calls change. With `exact`, all classes that
    its numbers may be of are told apart; else ints and floats are."""

    def __init__(self, carried: CarriedVariable, exact: bool, examples: bool) -> None:
        self.carried = carried
        self.exact = exact
        self.examples = examples  # numbers are elements of arrays in the end, which have no classes
        self.classes: list[tuple[Class, ...]] = [() for _ in carried.outs]
        self.arrays: list[Tracer] = []  # that calls were given, while the body is traced

    @staticmethod
    def result(name: str, where: str, end: End, examples: bool) -> Handed:
        """What is given back, as a first call gives it; where it ends there is no value before."""
        made = [
            leaf if out is None else empty(out)
            for leaf, out in zip(end.leaves, end.outs, strict=True)
        ]
        carried = CarriedVariable.of(name, where, pytree.unflatten(end.tree, made))
        carried.outs, carried.times = list(end.outs), ("here", "there")
        carried.forget()
        handed = Handed(carried, True, examples)
        handed.classes = handed._more_classes(end)
        return handed

    @property
    def types(self) -> list[Out]:
        """Of what is handed over: the leaves that change, and tags of those of several classes."""
        return [*self.carried.types, *(_TAG for classes in self.classes if classes)]

    def state(self) -> Any:
        """What has to stay as it is when the body is traced again."""
        outs = [out and (out.type, out.weak, out.strides) for out in self.carried.outs]
        return self.carried.tree, outs, list(self.classes)

    def built(self, values: Iterator[Value]) -> Any:
        """What is handed over, of the values of an op, or of the parameters of a region."""
        arrays = [out.wrap(next(values)) for out in self.carried.types]
        self.arrays += [x for x in arrays if not x.scalar]
        numbers = iter(arrays)
        for out, classes in zip(self.carried.outs, self.classes, strict=True):
            number = None if out is None else next(numbers)
            if classes and number is not None:
                of_class(number, next(values), classes)
        return self.carried.build(iter(arrays))

    def end(self, value: Any) -> End:
        """What a value is to be handed over as."""
        end = End.of(conformed(value, self.carried.value))
        if end.tree == self.carried.tree:
            end.leaves = [_one(a, b) for a, b in zip(self.carried.leaves, end.leaves, strict=True)]
        return end

    def takes(self, end: End) -> bool:
        """Whether the types are what this can be handed over as."""
        carried = self.carried
        if end.tree != carried.tree or not pytree.same_as_written(end.tree, carried.tree):
            return False
        parts = zip(carried.leaves, carried.outs, end.leaves, end.outs, strict=True)
        for i, (old, before, leaf, after) in enumerate(parts):
            if before is None:
                if not same(old, leaf):
                    return False
            elif after is None or self._joined(i, before, after) != before:
                return False
        return self._more_classes(end) == self.classes

    def take(self, end: End) -> None:
        """Let the types take it in."""
        carried = self.carried
        numbers: list[int | None] = []
        outs: list[Out] = []
        for i, out in enumerate(end.outs):
            numbers.append(None if out is None else len(outs))
            if out is not None:
                before = carried.outs[i] if end.tree == carried.tree else None
                joined = None if before is None else self._joined(i, before, out)
                if joined is not None:
                    carried.outs[i] = out = joined
                outs.append(out)
        carried.settle(end.value, end.leaves, end.tree, numbers, _Region(outs))
        if len(self.classes) != len(carried.outs):
            self.classes = [() for _ in carried.outs]
        elif end.tree == carried.tree:
            self.classes = self._more_classes(end)

    def _joined(self, i: int, before: Out, after: Out) -> Out | None:
        """The type of a number that has had one and gets the other; None if there is none."""
        if self.carried.missing:
            common = common_type([before, after])
        else:
            common = settled(before, after)
        if common is not None or not (before.scalar and after.scalar):
            return common
        return common_type([before, after]) or promoted([before, after])

    def _more_classes(self, end: End) -> list[tuple[Class, ...]]:
        """The classes of each number, where it matters which one it is of."""
        if self.examples:
            return self.classes
        parts = zip(self.classes, self.carried.outs, self.carried.leaves, end.classes, strict=True)
        return [
            () if out is None else self._joined_classes(known, leaf, found)
            for known, out, leaf, found in parts
        ]

    def _joined_classes(
        self, known: tuple[Class, ...], leaf: Any, found: tuple[Class, ...]
    ) -> tuple[Class, ...]:
        before = known
        if not known and is_traceable(leaf):
            before = classes_of(leaf) or (class_of(leaf),)
        joined = tuple(dict.fromkeys((*before, *found)))
        are_mixed = {"f" if dtype.kind == "f" else "i" for _, dtype in joined} == {"i", "f"}
        return joined if known or are_mixed or (self.exact and len(found) > 1) else ()

    def start(self) -> list[Value]:
        """The operands of the first call."""
        carried = self.carried
        return self.given(End(carried.value, carried.tree, carried.leaves, carried.outs, []))

    def given(self, end: End) -> list[Value]:
        """The operands that are handed over, and tags."""
        pairs = zip(end.leaves, self.carried.outs, strict=True)
        values = [as_value(leaf, out.type.dtype) for leaf, out in pairs if out is not None]
        for leaf, out, classes in zip(end.leaves, self.carried.outs, self.classes, strict=True):
            if classes and out is not None:
                check_kept_exactly(leaf, out.type.dtype)
                values.append(as_value(tag_of_class(leaf), I64))
        return values


def _one(before: Any, after: Any) -> Any:
    """What is handed on, which is what was there before if it is the same array."""
    if after is before or not isinstance(before, Tracer) or not isinstance(after, Tracer):
        return after
    is_same = before._storage is after._storage and before._view is None and after._view is None
    return before if is_same and before.scalar == after.scalar else after
