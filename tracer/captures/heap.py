"""The heap of a function that changes things: what is reached from outside of it, as a graph of nodes.

    class Adam:
        def step(self, g):
            self.t += 1
            self.m[...] = self.b1 * self.m + (1 - self.b1) * g

Nodes are the objects of the user's classes, lists, tuples, dicts and deques that are found from `self`,
other arguments, closure cells and globals; their slots hold other nodes, *inputs* (arrays, and the
numbers that the function assigns to), or what has to stay as it is. While the function is traced,
tracers stand in the very slots of the very objects, so whatever is one object, under how many names
ever, stays one (`entered`); afterwards all is put back, and what was changed are the function's effects
(`effects`).

At a call the same walk is taken (`read`): classes, lengths, keys, and who is whom have to be as they
were while tracing, arrays and numbers may have any value.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...ir.record import record, replace
from ...ir.types import TensorType, is_supported
from ..core.specs import WEAK_DTYPES, Spec
from ..data.containers import CONTAINERS, is_native
from ..data.objects import is_leaf_array, kind_of, standing_in
from ..messages import errors
from ..messages.errors import complain
from ..records.arrays import Records
from ..records.kinds import fields_of, is_structured_array
from ..records.kinds import kind_of as kind_of_records
from .frozen import attributes_of, freeze, is_random_state
from .heap_nodes import (
    DICTS,
    Content,
    Fixed,
    HeapSlot,
    Inner,
    Input,
    InputOf,
    Node,
    Place,
    Policy,
    by_key,
    class_data,
    contents,
    put_root,
    put_slot,
    restore,
    saved,
    slot_value,
    slots_of,
)
from .hidden import (
    array_of,
    array_spec,
    holder_of,
    is_generator,
    is_traceable_array,
    same_spec,
    stand_in_for,
)
from .mentions import Mentions
from .natives import NO_HANDLE, Natives, is_data, stays
from .paths import ABSENT, Path, is_user_module
from .subjects import is_object

_LIMIT = 5000  # nodes
_LOGS = (list, deque, set)
_PLAIN = (bool, int, str, type(None))
_WEAK = {bool: "b", int: "i", float: "f", complex: "c"}


@record
class Snapshot:
    """What the nodes and the roots hold at one time: copies of their contents."""

    nodes: list[Any]
    roots: list[Any]


class Heap:
    """What is reached from `roots`, as it is now."""

    def __init__(
        self, roots: Sequence[tuple[Path, bool]], mentions: Mentions, policy: Policy
    ) -> None:
        self.mentions, self.policy = mentions, policy
        # Nodes of one class, and whether they are changed: then they must be no other ones.
        self.apart: list[list[tuple[int, bool]]] = []
        # Nodes that callbacks have, always the same objects, and names that these mention.
        self.kept: dict[int, tuple[Any, set[str]]] = {}
        # Whether one that the function saw itself, see `Policy`, has to be the same at each call.
        self.keeps_arrays = True
        self.interpreted = False
        self._named = frozenset(mentions.names | mentions.stored)
        self._classes: dict[type, dict[str, Any]] = {}
        self._walk(roots)
        while twice := self.natives.found_twice(self.nodes):
            natives = self.policy.natives | twice
            known = twice <= self.policy.natives
            self.policy = (
                replace(policy, barred=True) if known else replace(policy, natives=natives)
            )
            self._walk(roots)

    # The walk

    def _walk(self, roots: Sequence[tuple[Path, bool]]) -> None:
        self.nodes: list[Node] = []
        self.inputs: list[InputOf] = []
        self.roots: list[tuple[Path, Content]] = []
        self.natives = Natives(self.policy.classes)
        self._numbers: dict[int, int] = {}  # of nodes, by id
        self._arrays: dict[int, int] = {}  # inputs by id
        for number, (path, written) in enumerate(roots):
            value = path.find()
            name = path.name
            log = path.kind in ("cell", "global") and name in self.mentions.logs
            # A container among the arguments.
            is_input = path.kind == "object" and not is_object(value)
            live = written or is_input
            self.roots.append((path, self._content(value, name, live, log, (number,))))
        for number, node in enumerate(self.nodes):  # it grows meanwhile
            self._enter(number, node)

    def _content(self, value: Any, name: str, live: bool, log: bool, place: Place) -> Content:
        cls = type(value)
        log = log and cls in _LOGS
        if cls in CONTAINERS and not self.policy.barred:
            number = self.natives.numbers.get(id(value))
            wanted = place in self.policy.natives or (live and not log and is_data(value))
            if number is None and wanted:
                entered = self.natives.take(value, len(self.inputs))
                number = None if entered is None else self._input(value, entered)
            if number is not None:
                return Input(number)
        if cls in self.policy.classes:
            number = self.natives.numbers.get(id(value))
            if number is None:
                spec = self.natives.take(value, len(self.inputs))
                assert spec is not None
                number = self._input(value, spec)
            return Input(number)
        if is_traceable_array(value) and not (self.policy.arrays and cls is np.ndarray):
            number = self._arrays.get(id(value))
            if number is None:
                spec = array_spec(array_of(value), name if name.isidentifier() else "")
                if type(value) is np.ndarray:
                    spec = replace(spec, writeable=value.flags.writeable)
                elif is_generator(value):
                    spec = replace(spec, holder=holder_of(value))
                number = self._arrays[id(value)] = self._input(value, spec)
            return Input(number)
        number_like = number_spec(value) if live and not self.policy.fixed else None
        if number_like is not None:
            return Input(self._input(value, number_like))
        live &= not is_object(value)
        is_array = is_structured_array(value)
        if is_array and self.policy.arrays:
            return self._seen(value)
        composite = is_array or cls in (list, tuple, deque, *DICTS) or hasattr(cls, "_fields")
        if composite or log or is_object(value):
            number = self._numbers.get(id(value))
            if number is None and len(self.nodes) < _LIMIT:
                number = self._numbers[id(value)] = len(self.nodes)
                node = Node(value, cls, name, place, {}, log, live, standing=value)
                node.records = kind_of_records(value) if is_array else None
                self.nodes.append(node)
            if number is not None:
                if not log and self.nodes[number].log:
                    self.nodes[number].log = False  # it is read under another name
                    self._enter(number, self.nodes[number])
                return Inner(number)
        if is_random_state(value):
            return Fixed(value, None)  # by identity: who draws from it sees to the rest
        if cls is set:
            self.natives.others.append((value, place))
        return self._seen(value) if is_traceable_array(value) else Fixed(value, freeze(value))

    def _seen(self, array: Any) -> Fixed:
        """An array that the function sees itself, see `Policy`."""
        number = self._arrays.setdefault(id(array), len(self._arrays))
        return Fixed(array, elements_of(array), number)

    def _input(self, value: Any, spec: Spec) -> int:
        self.inputs.append(InputOf(value, spec))
        return len(self.inputs) - 1

    def _enter(self, number: int, node: Node) -> None:
        """Note what is in a node."""
        value, more = node.value, self.policy.more
        if node.log:
            return
        if not node.is_object:
            pairs = by_key(node, value).items()
            for key, item in list(pairs):
                live = node.live or (number, key) in more
                name, place = f"{node.name}[{key!r}]", (*node.place, key)
                node.slots[key] = self._content(item, name, live, False, place)
            return
        attributes = attributes_of(value) or {}
        own = all(is_user_module(base.__module__) for base in node.cls.__mro__[:-1])
        named = {key: held for key, held in attributes.items() if key in self._named}
        # Of a module all may be read, by `jt.tree`; its numbers are settings unless code changes them.
        is_tree = kind_of(value) is not None
        if self.mentions.reflects or not own or is_tree:  # who knows what is read
            named = attributes
            node.exact = tuple(attributes)
        for key, held in sorted((self._of_class(node.cls) | named).items()):
            live = (number, key) in more or self._is_state(key, held, is_tree)
            log = key in self.mentions.logs
            place = (*node.place, key)
            node.slots[key] = self._content(held, f"{node.name}.{key}", live, log, place)
        if self.mentions.asks:
            node.absent = self._named

    def _is_state(self, key: str, held: Any, is_tree: bool) -> bool:
        """Whether an attribute that is a number changes, and is no setting."""
        if is_tree and is_leaf_array(held):
            return True
        if type(held) is bool or is_tree:
            return key in self.mentions.changed and not (type(held) is bool and is_tree)
        return key in self.mentions.stored

    def _of_class(self, cls: type) -> dict[str, Any]:
        """What objects have of their class, of all that is named."""
        data = self._classes.get(cls)
        if data is None:
            names = {name for base in cls.__mro__[:-1] for name in list(vars(base))} & self._named
            pairs = [(name, class_data(cls, name)) for name in names]
            data = self._classes[cls] = {name: held for name, held in pairs if held is not ABSENT}
        return data

    # What stands in while the function is traced

    @contextmanager
    def entered(
        self, tracers: Sequence[Any], states: Iterable[tuple[Any, Any]] = ()
    ) -> Iterator[Snapshot]:
        """With tracers in the place of the inputs, and of `states` of generators elsewhere; gives what
        there is at the start. At the end everything is as it was before. Inputs may stand for
        themselves."""
        with standing_in:
            yield from self._entered(tracers, states)

    def _entered(
        self, tracers: Sequence[Any], states: Iterable[tuple[Any, Any]]
    ) -> Iterator[Snapshot]:
        from ..core import threaded_state  # when it is traced: a call needs none
        from ..core.trace import require_trace

        saved = self.snapshot()
        try:
            for node in self.nodes:
                node.standing = None
            for node in self.nodes:
                self._stand_in(node, tracers)
            for path, content in self.roots:
                held = path.find()
                standing = self._standing(content, tracers, held)
                if path.kind in ("cell", "global") and standing is not held:
                    put_root(path, standing)
            require_trace().watched = self
            if not self.policy.barred:
                self.natives.offer(self.nodes, self.policy.natives)
            pairs = zip(self.inputs, tracers, strict=True)
            held = [
                stand_in_for(i.value, given)
                for i, given in pairs
                if stays(i.spec) and given is not i.value
            ]
            threaded_state.let_stand_in([*held, *states])
            yield self.snapshot()
        finally:
            self.restore(saved)
            for node in self.nodes:
                node.standing = node.value

    def restore(self, before: Snapshot) -> None:
        """Let everything be as it was."""
        for node, content in zip(self.nodes, before.nodes, strict=True):
            restore(node, content)
        for (path, _), value in zip(self.roots, before.roots, strict=True):
            if path.kind in ("cell", "global") and path.find() is not value:
                put_root(path, value)

    @contextmanager
    def undone(self, before: Snapshot) -> Iterator[None]:
        """What raises inside has changed nothing."""
        try:
            yield
        except BaseException:
            self.restore(before)
            raise

    def changed(self, before: Snapshot, what: str, growth: bool = False) -> list[HeapSlot]:
        """The slots that hold something else than before, in what is traced as `what`. Containers may
        have got another length only with `growth`."""
        slots: list[HeapSlot] = []
        for path, value in zip((p for p, _ in self.roots), before.roots, strict=True):
            if path.kind in ("cell", "global") and path.find() is not value:
                slots.append(HeapSlot(path, None, str(path)))
        for node, content in zip(self.nodes, before.nodes, strict=True):
            if content is None:
                continue
            if is_native(node.standing):
                continue
            old = content if isinstance(content, dict) else dict(enumerate(content))
            now = contents(node)
            if growth and node.cls is set:
                continue  # no traced value can be in it
            if old.keys() != now.keys() and not node.is_object and not growth:
                _refuse_growth(node, what)
            for key, value in now.items():
                if key not in old or old[key] is not value:
                    slots.append(HeapSlot(node, key, f"{node.name}.{key}"))
        return slots

    def has(self, value: Any) -> bool:
        """Whether a value is one of the nodes."""
        return any(node.value is value for node in self.nodes)

    def snapshot(self) -> Snapshot:
        """What there is now."""
        return Snapshot([saved(node) for node in self.nodes], [p.find() for p, _ in self.roots])

    def _standing(self, content: Content, tracers: Sequence[Any], value: Any) -> Any:
        """What stands in a slot that holds `value`."""
        if isinstance(content, Inner):
            node = self.nodes[content.node]
            if node.standing is None:
                node.standing = self._tuple(node, tracers)
            return node.standing
        if isinstance(content, Input):
            return value if stays(self.inputs[content.number].spec) else tracers[content.number]
        return value

    def given(self, tracers: Sequence[Any]) -> dict[int, Any]:
        """By id, the arguments in whose place something else stands."""
        pairs = [(path.find(), content) for path, content in self.roots if path.kind == "object"]
        found = {id(value): self._standing(content, tracers, value) for value, content in pairs}
        return found | {id(n.value): n.standing for n in self.nodes if n.records is not None}

    def _tuple(self, node: Node, tracers: Sequence[Any]) -> Any:
        """A tuple with tracers in it, or what else the node is."""
        value = node.value
        if node.records is not None:
            parts = zip(node.slots.values(), fields_of(value), strict=True)
            standing = [self._standing(content, tracers, part) for content, part in parts]
            return Records(node.records, standing)
        if node.log:
            attribute = node.name.rpartition(".")[2]
            if attribute in self.mentions.stored:
                return node.cls()
            from ..containers.growing import added_to  # when it is traced: a call needs none

            return added_to(node.cls, self.nodes.index(node))
        if not isinstance(value, tuple):
            return value
        pairs = zip(node.slots.values(), value, strict=True)
        items = [self._standing(content, tracers, item) for content, item in pairs]
        if all(a is b for a, b in zip(items, value, strict=True)):
            return value
        make: Any = node.cls if node.cls is tuple else node.cls._make  # type: ignore[attr-defined]
        return make(items)

    def _stand_in(self, node: Node, tracers: Sequence[Any]) -> None:
        if node.standing is None:
            node.standing = self._tuple(node, tracers)
        if node.is_whole:
            return
        for key, content in node.slots.items():
            if not isinstance(content, Fixed):
                held = slot_value(node, node.value, key)
                standing = self._standing(content, tracers, held)
                if standing is not held:
                    put_slot(node, node.value, key, standing)

    # What a call finds

    def read(self) -> tuple[list[Any], list[Any]] | None:
        """The inputs of a call, and the objects that are the nodes; None if the heap is not like the one
        that was traced."""
        inputs: list[Any] = [ABSENT] * len(self.inputs)
        nodes: list[Any] = [ABSENT] * len(self.nodes)
        arrays: dict[int, Any] = {}
        found: dict[int, Any] = {}  # what holds the inputs: a generator, and not its handle

        def fits(content: Content, value: Any) -> bool:
            if isinstance(content, Inner):
                if nodes[content.node] is ABSENT and type(value) is self.nodes[content.node].cls:
                    nodes[content.node] = value
                return nodes[content.node] is value
            if isinstance(content, Input):
                first = found.setdefault(content.number, value)
                known = inputs[content.number] is not ABSENT
                return first is value and (known or self._take(content.number, value, inputs))
            if content.frozen is None:
                return value is content.value
            if content.number is not None:
                same = arrays.setdefault(content.number, value) is value
                return same and self.fits_array(content, value)
            if type(value) in _PLAIN:
                return type(content.value) is type(value) and bool(content.value == value)
            if type(value) is float and value is content.value:
                return True
            return bool(value is not ABSENT and freeze(value) == content.frozen)

        for path, content in self.roots:
            if not fits(content, path.find()):
                return None
        for node, value in zip(self.nodes, nodes, strict=True):
            if node.log:
                continue
            held = slots_of(node, value)
            if held is None or has_more(held, node.slots, node.absent):
                return None
            for key, content in node.slots.items():
                if not fits(content, held.get(key, ABSENT)):
                    return None
        if not all(_are_apart(nodes, group) for group in self.apart):
            return None
        if any(nodes[number] is not value for number, (value, _) in self.kept.items()):
            return None
        return self._with_natives(inputs, nodes)

    def _with_natives(
        self, inputs: list[Any], nodes: list[Any]
    ) -> tuple[list[Any], list[Any]] | None:
        """With handles in the place of containers, and after the nodes what keeps the native ones."""
        if not self.natives:
            return inputs, nodes
        owner = self.natives.enter(inputs, nodes, self.interpreted)
        return None if owner is None else (inputs, [*nodes, owner])

    def fits_array(self, content: Fixed, value: Any) -> bool:
        """Whether an array is like one that the function saw itself."""
        if self.keeps_arrays and value is not content.value:
            return False
        return type(value) is np.ndarray and bool(elements_of(value) == content.frozen)

    def keep(self, value: Any, names: set[str]) -> Any:
        """The object that this one stands for, or is, which has to be that node at each call; `names`
        are looked at there. None if it is no node."""
        for number, node in enumerate(self.nodes):
            if value is node.standing or value is node.value:
                self.kept.setdefault(number, (node.value, set()))[1].update(names)
                return node.value
        return None

    def _take(self, number: int, value: Any, inputs: list[Any]) -> bool:
        wanted = self.inputs[number].spec
        inputs[number] = value
        if number in self.natives:
            return True  # it is looked at when a native one is made of it
        if wanted.scalar:
            now = number_spec(value)
            return now is not None and (now.type, now.weak) == (wanted.type, wanted.weak)
        if not is_traceable_array(value):
            return False
        if wanted.holder is not None and holder_of(value) != wanted.holder:
            return False
        array = inputs[number] = array_of(value)
        return same_spec(array, wanted)

    def arrays(self) -> list[Any]:
        """The inputs that were there when the function was traced; in the place of native containers
        something like their handles."""
        numbers = enumerate(self.inputs)
        return [NO_HANDLE if n in self.natives else array_of(one.value) for n, one in numbers]

    def can_enter(self) -> bool:
        """Whether native ones can be made of what was there when the function was traced."""
        inputs: list[Any] = [one.value for one in self.inputs]
        return self._with_natives(inputs, self.objects()) is not None

    def when_traced(self) -> tuple[list[Any], list[Any]]:
        """What `read` would have given when the function was traced."""
        numbers = enumerate(self.inputs)
        inputs = [one.value if n in self.natives else array_of(one.value) for n, one in numbers]
        found = self._with_natives(inputs, self.objects())
        assert found is not None
        return found

    def shares(self, nodes: Sequence[Any], containers: Iterable[int]) -> bool:
        """Whether one of these containers, by id, is a node of a call, or in a native one."""
        ids = {id(node) for node in nodes}
        if self.natives:
            ids |= nodes[-1][1]
        return not ids.isdisjoint(containers)

    def objects(self) -> list[Any]:
        """The nodes that were there when the function was traced."""
        return [node.value for node in self.nodes]

    def forget(self) -> None:
        """Let go of what was there when the function was traced."""
        for node in self.nodes:
            node.value = node.standing = None
        for one in self.inputs:
            one.value = None

    @property
    def specs(self) -> list[Spec]:
        return [one.spec for one in self.inputs]

    def fixed_arrays(self) -> list[np.ndarray[Any, Any]]:
        """The arrays that the function sees themselves, see `Policy`."""
        slots = [content for node in self.nodes for content in node.slots.values()]
        contents = [*slots, *(content for _, content in self.roots)]
        values = [content.value for content in contents if isinstance(content, Fixed)]
        return [x for x in values if isinstance(x, np.ndarray) and not x.dtype.hasobject]

    @property
    def has_numbers(self) -> bool:
        return any(spec.scalar for spec in self.specs)

    def changes(self) -> list[str]:
        """What is not as it was while tracing, in words; roughly."""
        return [] if self.read() is not None else ["what the function reads or changes"]


def _are_apart(nodes: Sequence[Any], group: Sequence[tuple[int, bool]]) -> bool:
    changed = [id(nodes[n]) for n, is_changed in group if is_changed]
    others = {id(nodes[n]) for n, is_changed in group if not is_changed}
    return len(set(changed)) == len(changed) and others.isdisjoint(changed)


def elements_of(array: np.ndarray[Any, Any]) -> tuple[Any, ...]:
    """All that there is to know of an array, but for which it is."""
    return array.dtype, array.shape, array.strides, array.flags.writeable, array.tobytes()


def has_more(names: Iterable[str], known: Container[str], absent: Container[str]) -> bool:
    """Whether an object has attributes now that it did not have, and that would matter."""
    return any(name in absent and name not in known for name in names)


def _refuse_growth(node: Node, what: str) -> None:
    complain(
        errors.OuterMutationError,
        f"{node.name}, a {node.cls.__name__}, gets another length inside of {what}",
        "collect results in an array of the final size, or return them from the function.",
    )


def number_spec(value: Any) -> Spec | None:
    """The spec of a number that can be an input."""
    kind = _WEAK.get(type(value))
    if kind is not None:
        fits = kind != "i" or -(2**63) <= value < 2**63
        return Spec(TensorType((), WEAK_DTYPES[kind]), kind, True) if fits else None
    if isinstance(value, np.generic) and is_supported(value.dtype):
        return Spec(TensorType((), value.dtype), None, True)
    return None
