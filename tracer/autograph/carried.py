"""What a loop carries: one variable, its leaves, and the types on which they settle."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn, Protocol

from ...ir.graph import Value
from ...ir.record import record
from ..containers.elements.forms import same_tree
from ..containers.kinds import inherit
from ..control.carries import settled
from ..control.regions import Out, common_type, show_tree
from ..control.tensor_array import adopt_elements
from ..control.unions import Union
from ..core.trace import require_trace
from ..core.tracers import as_value
from ..data import pytree
from ..messages import errors
from ..messages.errors import complain
from .joins import Unlike, widened
from .syntax.jumps import RESULT
from .variables import Undefined, is_traceable, out_of, same, shown


class Region(Protocol):
    """What has been traced: the types of its results, and where they were made."""

    @property
    def outs(self) -> Sequence[Out]: ...

    def made_at(self, index: int) -> str: ...


class NoneCarriedError(Exception):
    """A variable is None before a loop, and has a value after an iteration."""


class OthersChangedError(Exception):
    """An iteration changes a container that others see, and binds its name anew."""


@record(frozen=False)
class CarriedVariable:
    """A variable (or a container) that a loop carries. `where` names the loop in messages."""

    name: str
    where: str
    value: Any  # before the loop
    tree: pytree.TreeDef
    leaves: list[Any]
    outs: list[Out | None]  # None for what does not change, or must not because it is no array
    initial: list[Out | None]
    missing: bool = False  # it has no value before the loop; zeros stand in
    is_content: bool = False  # of a container that stays the same one
    times: tuple[str, str] = "before an iteration", "after it"  # of what is handed on, in messages

    @staticmethod
    def of(name: str, where: str, value: Any) -> CarriedVariable:
        leaves, tree = pytree.flatten(value)
        outs = [out_of(leaf) if is_traceable(leaf) else None for leaf in leaves]
        return CarriedVariable(name, where, value, tree, leaves, outs, list(outs))

    @property
    def types(self) -> list[Out]:
        return [out for out in self.outs if out is not None]

    def build(self, arrays: Any) -> Any:
        """The object again, with the next of `arrays` for its leaves."""
        leaves = [
            leaf if out is None else next(arrays)
            for leaf, out in zip(self.leaves, self.outs, strict=True)
        ]
        made = pytree.unflatten(self.tree, leaves)
        inherit(self.value, made)
        return made

    def start(self) -> list[Value]:
        builder = require_trace().builder
        initial = []
        for leaf, out in zip(self.leaves, self.outs, strict=True):
            if out is not None:
                missing = self.missing
                initial.append(
                    builder.zeros(out.type) if missing else as_value(leaf, out.type.dtype)
                )
        return initial

    def settle(
        self,
        value: Any,
        leaves: list[Any],
        tree: Any,
        numbers: list[int | None],
        region: Region,
    ) -> None:
        """Let the types of the carry take in what an iteration gives, or refuse."""
        if isinstance(value, Undefined) and (self.missing or not value.is_form):
            value.refuse() if value.why else self._refuse_deleted()
        if tree != self.tree:
            # The body says what the elements of a TensorArray look like.
            adopted = adopt_elements(self.value, tree)
            if adopted is not None:
                return self._become(adopted)
            if not self._widened(tree, leaves, numbers, region):
                self._refuse_structure(tree)
            return
        if not pytree.same_as_written(tree, self.tree):
            self._refuse_structure(tree)
        for position, (before, number) in enumerate(zip(self.outs, numbers, strict=True)):
            if before is None:
                old = self.leaves[position]
                if same(old, leaves[position]):
                    continue
                if not is_traceable(old):
                    if not self._widened(tree, leaves, numbers, region):
                        self._refuse_static(position, leaves[position])
                    return
                self.outs[position] = self.initial[position] = out_of(old)
                continue
            if number is None:
                if not self._widened(tree, leaves, numbers, region):
                    self._refuse_static(position, leaves[position])
                return
            after = region.outs[number]
            if self.missing:
                common = common_type([before, after])
            else:
                common = settled(before, after)
            if common is None:
                if not self._widened(tree, leaves, numbers, region):
                    self._refuse_type(position, after, region.made_at(number))
                return
            self.outs[position] = common

    def _become(self, value: Any) -> None:
        missing = self.missing
        new = CarriedVariable.of(self.name, self.where, value)
        self.value, self.tree, self.leaves = new.value, new.tree, new.leaves
        self.outs, self.initial = new.outs, new.initial
        if missing:
            self.forget()

    def forget(self) -> None:
        """There is no value before the loop."""
        self.missing = True
        pairs = zip(self.leaves, self.outs, strict=True)
        self.leaves = [None if out is not None else leaf for leaf, out in pairs]

    def _widened(
        self,
        tree: pytree.TreeDef,
        leaves: Sequence[Any],
        numbers: Sequence[int | None],
        region: Region,
    ) -> bool:
        """Whether the value before takes in what an iteration gives, as a union; it is one then."""
        outs = [None if n is None else region.outs[n] for n in numbers]
        try:
            new = widened(self.value, tree, leaves, outs)
        except Unlike:
            return False
        if new is self.value or (self.is_content and type(new) is Union):
            return False
        self._become(new)
        return True

    # Errors

    def _both(self, before: object, after: object) -> str:
        first, then = self.times
        return f"  {first} {before}\n  {then.ljust(len(first) - 6)} {after}"

    def _refuse_deleted(self) -> NoReturn:
        complain(
            errors.CarryError,
            f"{shown(self.name)} is deleted in the body of {self.where}",
            "delete it after the loop.",
        )

    def _refuse_structure(self, tree: Any) -> NoReturn:
        same_tree(self.tree, tree)  # native containers of two sites are of one kind then
        grows = isinstance(self.value, (list, dict, set)) and tree != self.tree
        name = self.name
        complain(
            errors.CarryError,
            f"{shown(self.name)} changes its structure in {self.where}:\n"
            + self._both(show_tree(self.tree), show_tree(tree)),
            f"a {type(self.value).__name__} cannot grow in a loop that runs compiled: collect "
            f"results in an array of the final size ({name}[i] = value) or in a jt.TensorArray. It "
            "grows in functions under jt.jit, not under jt.vmap, jt.grad and their kin."
            if grows
            else "keep to one structure: the same containers with the same lengths and keys, in the "
            "same order.",
        )

    def _refuse_static(self, position: int, after: Any) -> NoReturn:
        before = self.leaves[position]
        complain(
            errors.CarryError,
            f"{shown(self.name)} changes in {self.where}, and is no array:\n"
            + self._both(*(f"{x!r} ({type(x).__name__})" for x in (before, after))),
            "a loop that runs compiled carries arrays and numbers only.",
        )

    def _refuse_type(self, position: int, after: Out, made: str) -> NoReturn:
        before = self.initial[position]
        assert before is not None
        tree = self.tree
        part = pytree.leaf_names(pytree.unflatten(tree, range(tree.num_leaves)), "")[position]
        name = f"{self.name}{part}"
        remedy = (
            f"give it the type that it has later before the loop, or convert it in the loop with "
            f".astype({str(before.type.dtype)!r})."
        )
        if before.type.shape != after.type.shape:
            remedy = (
                "a variable cannot grow or shrink in a loop that runs compiled. Write into an array "
                f"of the final size ({name}[i] = value), or collect results in a jt.TensorArray."
            )
        complain(
            errors.CarryError,
            f"{shown(name) if self.name != RESULT else 'the returned value'} changes its type in "
            f"{self.where}:\n{self._both(before, f'{after}{made}')}",
            remedy,
        )
