"""The heap of a function as a part of its call program: compared before the run, changed after it."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Callable, Sequence
from ctypes import addressof
from functools import partial
from types import MemberDescriptorType
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.record import replace
from ...runtime.call.program import Owned
from ..captures.effects.recipes import (
    Again,
    Constant,
    Effects,
    Known,
    Leaf,
    Made,
    Recipe,
    Which,
    Write,
    adding,
    apply,
    build,
)
from ..captures.frozen import attributes_of, freeze, own_dictionary
from ..captures.heap import Heap, has_more
from ..captures.heap_nodes import Content, Fixed, Inner, Input, Node
from ..data.containers import CONTAINERS
from ..records.kinds import fields_of
from .native_guards import NotNative, plain_keys

if TYPE_CHECKING:
    from .native_call import _Writer


_MOST_PAIRS = 64  # of containers that have to be two


class NativeHeap:
    """Writes what a program does with a heap. `first` is the number of its first input among all."""

    def __init__(self, writer: _Writer, heap: Heap, effects: Effects, first: int) -> None:
        self.writer, self.program = writer, writer.program
        self.heap, self.effects, self.first = heap, effects, first
        self.words: dict[int, int] = {}  # of the nodes
        self._inputs: dict[int, int] = {}  # words of what holds the inputs
        self._arrays: dict[
            int, int
        ] = {}  # words of what holds the arrays that were seen themselves
        self._plain: set[tuple[type, str]] = set()  # attributes whose reading runs no code
        self._value: Callable[[int], int] = int
        # Whether objects are looked at when compiled code asks for them: it gets no record of one
        # that is not like what was traced, and then Python makes the call, from the start.
        self.lazy = False

    # Before the run

    def find(self) -> None:
        """Compare the heap with the one that was traced, and take the inputs."""
        slots = self.heap.read()
        if slots is None:
            raise NotNative
        now = slots[1]
        for path, content in self.heap.roots:
            self._content(self.writer.read(path), content, path.read())
        for number, node in enumerate(self.heap.nodes):
            if not node.log:
                self._node(self.words[number], node, now[number])
        for group in self.heap.apart:
            self.program.apart([(self.words[n], 0, 1, changed, 0) for n, changed in group])

    def apart_from(self, containers: Sequence[tuple[type, int]]) -> None:
        """None of these is a node, or a container that is a native one."""
        nodes = [(self.heap.nodes[number].cls, word) for number, word in self.words.items()]
        nodes += [(kind.cls, self._inputs[n]) for n, kind in self.heap.natives.kinds]
        pairs = [(a, b) for cls, a in containers for other, b in nodes if cls is other]
        if len(pairs) > _MOST_PAIRS:
            raise NotNative
        for one, other in pairs:
            self.program.differ(one, other)

    def enter(self, pairs: Sequence[tuple[int, int]]) -> None:
        """Make the native containers, of objects at these words: the last thing that can fail to fit."""
        if not pairs:
            return
        from ...runtime.call.objects import enter_address  # few functions have such containers

        entrance = self.heap.natives.entrance
        others = [node for node in self.heap.nodes if node.cls in CONTAINERS]
        if entrance.nested and (others or self.writer.taken_apart):
            raise NotNative  # what is in one could be one of these
        kinds = addressof(entrance.words)
        self.program.references.append(entrance)
        in_order = sorted(pairs, key=lambda pair: pair[1])
        self.lazy = entrance.has_objects and self.writer.can_begin_again
        self.program.enter(enter_address(self.lazy), kinds, in_order, entrance.nested)

    def _node(self, word: int, node: Node, value: Any) -> None:
        program = self.program
        if node.is_object:
            own = self._dictionary(word, node, value)
            for key, content in node.slots.items():
                if (node.cls, key) not in self._plain:
                    _refuse_code(node.cls, key)
                    self._plain.add((node.cls, key))
                held = getattr(value, key)
                part = own[key] if key in own else self.writer.attribute(word, key)
                self._content(part, content, held)
            if node.exact is not None and not own:
                program.ask(program.own(), partial(_check_exact, node.exact), word)
            elif node.exact is None and node.absent:
                check = partial(_check_absent, frozenset(node.slots), node.absent)
                program.ask(program.own(), check, word)
            return
        if node.cls is dict:
            words = program.values(word, plain_keys(value))
        elif node.cls is list or issubclass(node.cls, tuple):
            words = program.items(word, node.cls, len(node.slots))
        else:
            answer = program.own()
            items = partial(_items, list(node.slots))
            if node.records is not None:
                items = partial(_fields, node.records.dtype)
            program.ask(answer, items, word)
            words = program.items(answer, tuple, len(node.slots))
        if node.records is not None:
            self.writer.note_fields(word, words, node.records)
            held = list(fields_of(value))
        else:
            held = list(value.values()) if isinstance(value, dict) else list(value)
        for part, content, item in zip(words, node.slots.values(), held, strict=True):
            self._content(part, content, item)

    def _dictionary(self, word: int, node: Node, value: Any) -> dict[str, int]:
        """The words of all attributes of an object that has just these in its dictionary."""
        if node.exact is None or tuple(own_dictionary(value)) != node.exact or not node.exact:
            return {}
        words = self.program.values(self.writer.attribute(word, "__dict__"), list(node.exact))
        return dict(zip(node.exact, words, strict=True))

    def _content(self, word: int, content: Content, value: Any) -> None:
        program = self.program
        if isinstance(content, Inner):
            if content.node in self.words:
                program.same(word, self.words[content.node])
                return
            self.words[content.node] = word
            cls = self.heap.nodes[content.node].cls
            program.of_type(word, cls)
            if self.heap.nodes[content.node].is_object:
                self._class(cls)
        elif isinstance(content, Input):
            if content.number in self._inputs:
                program.same(word, self._inputs[content.number])
                return
            self._inputs[content.number] = word
            if content.number in self.heap.natives:
                self.writer.native(word, self.first + content.number)
            else:
                self.writer.input(word, value, self.first + content.number)
        elif content.frozen is None:
            program.identity(word, content.value)
        elif content.number is not None:
            program.same(word, self._arrays.setdefault(content.number, word))
            program.ask(program.own(), partial(_check_array, self.heap, content), word)
        elif not self.writer.attempt(self.writer.frozen, word, value):
            program.ask(program.own(), partial(_check_same, content.frozen), word)

    def _class(self, cls: type) -> None:
        if type.__getattribute__(cls, "__getattribute__") is not object.__getattribute__:
            raise NotNative
        if not self.program.unchanged_class(cls):
            raise NotNative

    # After the run

    def finish_in_python(self, leaves: Callable[[], Owned]) -> None:
        """Let Python make the changes and the result of the leaves of the effects."""
        program = self.program
        nodes = program.make(list, [program.alias(self.words[n]) for n in sorted(self.words)])
        finish = partial(self.effects.finish, self.heap)
        program.give(program.call(finish, [leaves(), nodes]))

    def finish(self, leaf: Callable[[int], Owned], value: Callable[[int], int]) -> None:
        """Make the changes, and give the result. `leaf` gives the leaves of the effects, and `value` the
        words of those that are numbers."""
        program, effects = self.program, self.effects
        self._value = value
        holders = {w.target: w for w in effects.writes if w.kind != "root"}
        # Writes may drop what held them.
        aliases = {n: program.alias(self.words[n]) for n in holders}
        made: dict[int, Owned] = {}
        result = self._build(effects.result, leaf, made)
        values = [self._build(write.value, leaf, made) for write in effects.writes]
        for write, new in zip(effects.writes, values, strict=True):
            self._change(write, aliases.get(write.target, 0), new)
        program.give(result)

    def _change(self, write: Write, holder: int, value: Owned) -> None:
        program = self.program
        if write.kind == "root":
            path = self.heap.roots[write.target][0]
            if path.kind == "cell":
                program.put_cell(program.constant_result(path.root), value)
            else:
                program.put_key(program.constant_result(path.root), path.name, value)
        elif write.kind == "attribute":
            program.put_attribute(holder, write.key, value)
        elif write.kind == "item" and self.heap.nodes[write.target].cls is list:
            program.put_item(holder, write.key, value)
        elif write.kind == "item":
            program.put_key(holder, write.key, value)
        elif write.kind == "extend":
            cls = self.heap.nodes[write.target].cls
            program.call(adding(cls), [program.alias(holder), value])
        else:
            program.call(partial(apply, write), [program.alias(holder), value])

    def _build(self, recipe: Recipe, leaf: Callable[[int], Owned], made: dict[int, Owned]) -> Owned:
        program = self.program
        if isinstance(recipe, Leaf):
            return leaf(recipe.number)
        if isinstance(recipe, Constant):
            return program.constant_result(recipe.value)
        if isinstance(recipe, Known):
            return program.alias(self.words[recipe.node])
        if isinstance(recipe, Again):
            return program.alias(made[recipe.number])
        if isinstance(recipe, Which):
            cases = [(n, self._build(origin, leaf, made)) for n, origin in recipe.origins]
            otherwise = self._build(recipe.otherwise, leaf, made)
            assert isinstance(recipe.number, Leaf)
            return program.pick(self._value(recipe.number.number), cases, otherwise)
        assert isinstance(recipe, Made)
        parts = [self._build(part, leaf, made) for part in recipe.parts]
        if recipe.cls in (list, tuple):
            whole = program.make(recipe.cls, parts)
        elif recipe.cls is dict:
            whole = program.make_dict(list(recipe.keys), parts)
        elif _is_settable(recipe):
            whole = program.call(object.__new__, [program.constant_result(recipe.cls)])
            for name, part in zip(recipe.keys, parts, strict=True):
                program.put_attribute(whole, name, part)
        else:
            whole = program.call(partial(_make, recipe), parts)
        made[recipe.number] = whole
        return program.alias(whole)


def _is_settable(recipe: Made) -> bool:
    """Whether what is made is an object whose attributes are set without code of the user's."""
    if issubclass(recipe.cls, (tuple, list, dict, set, deque)):
        return False
    try:
        for name in recipe.keys:
            _refuse_code(recipe.cls, name)
    except NotNative:
        return False
    return True


def _make(recipe: Made, *parts: Any) -> Any:
    leaves = tuple([Leaf(i) for i in range(len(parts))])
    return build(replace(recipe, parts=leaves), parts, (), {})


def _refuse_code(cls: type, name: str) -> None:
    """NotNative if reading or writing an attribute runs code of the user's."""
    member = inspect.getattr_static(cls, name, None)
    if hasattr(type(member), "__set__") and not isinstance(member, MemberDescriptorType):
        raise NotNative


def _check_absent(known: frozenset[str], absent: frozenset[str], value: Any) -> None:
    if has_more(attributes_of(value) or {}, known, absent):
        raise LookupError


def _check_exact(names: Sequence[str], value: Any) -> None:
    if tuple(attributes_of(value) or {}) != names:
        raise LookupError


def _check_array(heap: Heap, content: Fixed, value: Any) -> None:
    if not heap.fits_array(content, value):
        raise LookupError


def _check_same(frozen: Any, value: Any) -> None:
    if freeze(value) != frozen:
        raise LookupError


def _fields(dtype: np.dtype[Any], value: Any) -> tuple[Any, ...]:
    """The fields of a structured array; LookupError if they are others."""
    if value.dtype != dtype:
        raise LookupError
    return fields_of(value)


def _items(keys: Sequence[Any], value: Any) -> tuple[Any, ...]:
    """What is in a deque or a dict; LookupError if it has other keys."""
    if isinstance(value, dict):
        if len(value) != len(keys) or any(
            type(a) is not type(b) or a != b for a, b in zip(value, keys, strict=True)
        ):
            raise LookupError
        return tuple(value.values())
    return tuple(value)
