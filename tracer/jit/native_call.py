"""From an entry to its call program: what `dispatch`, `guards` and `entry` do in Python, natively.

`write_program` sees one call that an entry has taken, and writes a program that takes calls of the
same form: the same structure of the arguments, keywords that name parameters in any order. Objects
whose class has functions of its own for it are taken apart, and made again, by these. What it cannot
express (static values that are not plain) raises `NotNative`, and such calls stay in Python. A program
may be stricter than Python's dispatch, never laxer.
"""

from __future__ import annotations

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from itertools import accumulate, count
from typing import TYPE_CHECKING, Any

import numpy as np

from ...ir.types import is_extended
from ...runtime.call.callable import NativeProgram
from ...runtime.call.program import Owned, overlaps, required_strides
from ...runtime.executable import Executable
from ..captures.captured_variables import Hidden, compile_check
from ..captures.paths import Path
from ..captures.subjects import Object, Subject
from ..core.specs import Same, Spec, Static
from ..core.traced import Result
from ..data import pytree
from ..data.exact import Exact
from ..data.generators import GeneratorKind, kind_of
from ..data.lists import ListKind
from ..records.kinds import RecordKind, is_structured
from ..records.kinds import kind_of as kind_of_records
from .dispatch import StaticLeaf, is_parted, order_matters
from .entry import Entry
from .native_guards import GuardWriter, NotNative, by_module, plain_keys
from .native_trees import (
    Node,
    Number,
    as_tuples,
    check_equal,
    is_plain,
    left_natively,
    number_of,
    plain_fields,
    rebuilt,
    result_sample,
    taken_apart,
    with_numbers,
)

if TYPE_CHECKING:
    from ..containers.leaving import Plans
    from .native_heap import NativeHeap


def write_program(
    entry: Entry,
    args: Sequence[Any],
    kwargs: dict[str, Any],
    analyse: Callable[[Sequence[Any], dict[str, Any]], Sequence[Any]],
    signature: inspect.Signature | None,
) -> NativeProgram:
    """The program for calls like this one, which `entry` has taken.

    `analyse` gives the leaves of a call in the entry's order, static arguments as `StaticLeaf`;
    `signature` is that of the function.
    """
    executable: object = entry.runnable
    if entry.trap is not None:
        if not entry.trap.repeats or entry.trap.generators:
            raise NotNative
        executable = entry.trap.executable
    if not isinstance(executable, Executable):
        raise NotNative
    if entry.captured.keeps_objects or not _reads_tables(entry):
        raise NotNative
    writer = _Writer(entry, executable, len(args) + len(kwargs))
    names = [sys.intern(name) for name in kwargs]
    words = writer.program.arguments(len(args), names, order_matters(names, signature))
    writer.block = writer.program.block(executable.block_words)
    # What is outside is found from the arguments; taking them apart may change it.
    if entry.subjects or writer.runs_flatten:
        writer.arguments(words, args, kwargs, analyse, signature)
        writer.captured()
    else:
        writer.captured()
        writer.arguments(words, args, kwargs, analyse, signature)
    writer.apart()
    writer.call()
    return NativeProgram(writer.program, executable)


def _reads_tables(entry: Entry) -> bool:
    """Whether the rows of all tables are of Python's own numbers, and none is changed: where one is, it
    matters which rows are the same."""
    tables = {number for number, kind in entry.lists.items() if kind.table}
    plain = all(entry.lists[number].cls in (float, int, bool) for number in tables)
    return not tables or (plain and not entry.changed_lists and not tables & set(entry.written))


class _Writer(GuardWriter):
    def __init__(self, entry: Entry, executable: Executable, n_arguments: int) -> None:
        super().__init__()
        self.entry = entry
        self.executable = executable
        self.explicit = {leaf: k for k, leaf in enumerate(entry.explicit)}
        self.objects: dict[int, int] = {}  # the word of each parameter's object
        self.entering: list[
            tuple[int, int]
        ] = []  # native containers: words of objects, and handles
        self.taken_apart: list[tuple[type, int]] = []  # containers among the arguments: their words
        self.packed: dict[int, Owned] = {}  # of lists of numbers: the arrays
        # Of words that hold fields: the structured array, and where in a record of it they begin.
        self.fields: dict[int, tuple[int, int]] = {}
        self.subjects: dict[Subject, int] = {}  # the words of arguments that are objects
        self.block = 0
        self.n_arguments = n_arguments
        tokens: Any = entry.structure
        self.runs_flatten = any(
            isinstance(token, type) and pytree.flatten_function(token) for token in tokens
        )
        captured, first = entry.captured, len(self.explicit)
        self.heap: NativeHeap | None = None
        if captured.heap is not None and entry.effects is not None:
            from .native_heap import NativeHeap  # most functions have none

            self.heap = NativeHeap(self, captured.heap, entry.effects, first)

    # What the function reads from outside

    def captured(self) -> None:
        """Guards first, and the hidden arrays: reading them may run code."""
        captured, program = self.entry.captured, self.program
        steady, others = by_module(captured.guards)
        in_python = []
        for guards in steady:
            with program.unless_changed(guards[0].path.root):
                in_python += [guard for guard in guards if not self.attempt(self.guard, guard)]
            self._paths.clear()  # they are not read each time
        in_python += [guard for guard in others if not self.attempt(self.guard, guard)]
        position = len(self.explicit)
        if self.heap is not None:
            self.heap.find()
            position += len(self.heap.heap.inputs)
        left: list[tuple[Hidden, int]] = []
        for hidden in captured.hidden:
            if not self.attempt(self._hidden, hidden, position):
                left.append((hidden, position))
            position += hidden.n_arrays
        paths = [guard.path for guard in in_python] + [hidden.path for hidden, _ in left]
        if any(isinstance(path.root, Subject) for path in paths):
            raise NotNative  # Python's check would not know which object is meant
        if in_python or left:
            check = compile_check(in_python, [hidden for hidden, _ in left], ())
            answer = program.own()
            program.ask(answer, check)
            arrays = program.items(answer, tuple, sum(hidden.n_arrays for hidden, _ in left))
            positions = [p + i for hidden, p in left for i in range(hidden.n_arrays)]
            for word, number in zip(arrays, positions, strict=True):
                self._array(word, number)
        for capture in self.entry.traced.captures:
            self._array(program.constant_result(capture.outer), position)
            position += 1

    def attempt(self, write: Callable[..., None], *args: Any) -> bool:
        """Whether it could be written; if not, what it wrote halfway is taken back."""
        mark, paths, lent = self.program.mark(), dict(self._paths), dict(self.objects)
        classes = set(self._classes)
        try:
            write(*args)
        except (NotNative, RecursionError):
            self.program.rewind(mark)
            self._paths, self.objects, self._classes = paths, lent, classes
            return False
        return True

    def _hidden(self, hidden: Hidden, position: int) -> None:
        value = hidden.path.read()
        arrays = accumulate((isinstance(spec, Spec) for spec in hidden.specs), initial=position)
        leaves = list(zip(hidden.specs, arrays, strict=False))

        def leaf(word: int, value: Any, number: int) -> None:
            spec, parameter = leaves[number]
            if isinstance(spec, Static):
                self.frozen(word, value)
            elif isinstance(spec.holder, GeneratorKind):
                self._handle(word, spec.holder, parameter)
            else:
                self._array(word, parameter)

        twin = rebuilt(hidden.tree, list(map(Number, range(len(leaves)))))
        self._tree(self.read(hidden.path), value, twin, leaf)

    def input(self, word: int, value: Any, number: int) -> None:
        """An array or a number of the heap."""
        self._leaf(word, value, number)

    def native(self, word: int, number: int) -> None:
        """A container of the heap that is a native one in compiled code."""
        self.objects[number] = word
        self.entering.append((word, self.block + number))

    def _root(self, path: Path) -> Any:
        if isinstance(path.root, Subject):
            return self.subjects[path.root]
        return super()._root(path)

    # Arguments

    def arguments(
        self,
        words: list[int],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        analyse: Callable[[Sequence[Any], dict[str, Any]], Sequence[Any]],
        signature: inspect.Signature | None,
    ) -> None:
        numbers = count()
        whole = self.entry.whole
        names = () if signature is None else tuple(signature.parameters)
        packs = bool(self.entry.lists)
        numbered_args = tuple(
            [
                Number(next(numbers))
                if i in whole and is_parted(arg)
                else with_numbers(arg, numbers, packs)
                for i, arg in enumerate(args)
            ]
        )
        whole |= {names[i] for i in whole if isinstance(i, int) and i < len(names)}
        numbered_kwargs = {
            name: Number(next(numbers))
            if name in whole and is_parted(arg)
            else with_numbers(arg, numbers, packs)
            for name, arg in kwargs.items()
        }
        leaves = analyse(numbered_args, numbered_kwargs)
        if len(leaves) != len(self.entry.specs):
            raise NotNative
        order = {n: i for i, n in enumerate(leaves) if not isinstance(n, StaticLeaf)}
        words_by_leaf: dict[int, int] = {}
        same: list[tuple[int, int]] = []

        def leaf(word: int, value: Any, number: Any) -> None:
            index = order.get(number)
            if index is None:
                self.constant(word, value)
                return
            spec = self.entry.specs[index]
            words_by_leaf[index] = word
            if isinstance(spec, Same):
                same.append((word, spec.leaf))
            elif isinstance(spec, Spec) and isinstance(spec.holder, ListKind):
                self._list(word, spec, self.explicit[index])
            elif isinstance(spec, Spec):
                self._leaf(word, value, self.explicit[index])
            elif isinstance(spec, Object):
                self.program.of_type(word, spec.cls)
                self.subjects[self.entry.subjects[index]] = word
            elif isinstance(spec, Static):
                self.constant(word, value)
            else:
                self.constant(word, value)

        leaves_found: list[tuple[int, Any, Any]] = []

        def found(*leaf: Any) -> None:
            leaves_found.append(leaf)

        real = [*args, *kwargs.values()]
        numbered = [*numbered_args, *(numbered_kwargs[name] for name in kwargs)]
        for word, value, number in zip(words, real, numbered, strict=True):
            self._tree(word, value, number, found)
        for word, value, number in leaves_found:  # when the user's code has run
            leaf(word, value, number)
        for word, first in same:
            self.program.same(word, words_by_leaf[first])
        for changed in self.entry.changed_lists:
            for other in self.entry.lists.keys() - {changed}:
                self.program.differ(self.objects[changed], self.objects[other])

    def _tree(
        self, word: int, value: Any, twin: Any, leaf: Callable[[int, Any, Any], None]
    ) -> None:
        """Guard the structure of `value`; `twin` has something else in the place of each leaf."""
        cls = type(value)
        if isinstance(getattr(twin, "kind", None), RecordKind):  # a structured array: its fields
            twin = Node(twin.parts)
        elif (
            type(twin) is not Node
            and pytree.flattening(value)
            and pytree.dataclass_fields(type(twin))
        ):
            children, _ = plain_fields(type(twin))  # a sparse matrix, and what stands for it
            twin = Node(tuple([getattr(twin, name) for name in children]))
        if type(twin) is Node:
            self._registered(word, value, twin, leaf)
        elif type(twin) is not cls:
            leaf(word, value, twin)
        elif pytree.flatten_function(cls):
            raise NotNative
        elif value is None:
            self.program.identity(word, None)
        elif cls is dict:
            self.taken_apart.append((cls, word))
            keys = plain_keys(value)
            words = self._held(self.program.values(word, keys))
            for key, part in zip(keys, words, strict=True):
                self._tree(part, value[key], twin[key], leaf)
        elif cls in (tuple, list) or (isinstance(value, tuple) and hasattr(cls, "_fields")):
            words = self.program.items(word, cls, len(value))
            if cls is list:
                self.taken_apart.append((cls, word))
                words = self._held(words)
            for part, item, other in zip(words, value, twin, strict=True):
                self._tree(part, item, other, leaf)
        else:
            children, static = plain_fields(cls)
            self.program.of_type(word, cls)
            for name in children:
                part = self.attribute(word, name)
                self._tree(part, getattr(value, name), getattr(twin, name), leaf)
            for name in static:
                self.constant(self.attribute(word, name), getattr(value, name))

    def _held(self, words: list[int]) -> list[int]:
        """What is in a container that the user's code may change while the program runs."""
        if self.runs_flatten:
            for word in words:
                self.program.hold(word)
        return words

    def _registered(
        self, word: int, value: Any, twin: Node, leaf: Callable[[int, Any, Any], None]
    ) -> None:
        """An object that a function of the user's takes apart: called once in each call."""
        program, cls = self.program, type(value)
        flatten = pytree.flattening(value)
        if flatten is None or twin.parts is None:
            raise NotNative
        program.of_type(word, cls)
        node = taken_apart(flatten, value)
        if type(node) is not tuple or type(node[0]) is not tuple:
            flatten = partial(as_tuples, flatten)
            node = taken_apart(flatten, value)
        if len(node[0]) != len(twin.parts):
            raise NotNative
        answer = program.own()
        program.ask(answer, flatten, word)
        children, static, *_ = program.items(answer, tuple, len(node))
        if not self.attempt(self.constant, static, node[1]):
            wanted = Exact(node[1])
            check = partial(check_equal, wanted, hash(wanted))
            program.ask(program.own(), check, static)
        parts = program.items(children, tuple, len(node[0]))
        if is_structured(value):
            self.note_fields(word, parts, kind_of_records(value))
        for part, item, other in zip(parts, node[0], twin.parts, strict=True):
            self._tree(part, item, other, leaf)

    def note_fields(self, word: int, parts: Sequence[int], kind: RecordKind) -> None:
        """The words of `parts` hold the fields of the structured array in `word`."""
        whole, first = self.fields.get(word, (word, 0))
        for name, part in zip(kind.names, parts, strict=True):
            self.fields[part] = whole, first + kind.field(name)[2]

    def _leaf(self, word: int, value: Any, number: int) -> None:
        if isinstance(value, np.ndarray):
            self._array(word, number)
        elif type(value) in (bool, int, float, complex) or (
            isinstance(value, np.generic)
            and (value.dtype.isbuiltin == 1 or is_extended(value.dtype))
        ):
            self.objects[number] = word
            self.program.scalar(word, self.block + number, type(value))
        elif (kind := kind_of(value)) is not None:
            self._handle(word, kind, number)
        elif (state := vars(type(value)).get("_jitney_state")) is not None:
            self.program.of_type(word, type(value))
            self._array(self.attribute(word, state), number)
        else:
            raise NotNative

    def _list(self, word: int, spec: Spec, number: int) -> None:
        """A list of numbers: compiled code takes an array of them."""
        self.taken_apart.append((list, word))
        self.objects[number] = word
        if word >= self.n_arguments:  # what the container is in may drop it
            self.program.hold(word)
        self.packed[number] = self.program.pack(
            word, self.block + number, spec.type, spec.holder.cls
        )

    def _handle(self, word: int, kind: GeneratorKind, number: int) -> None:
        """Where a generator of this kind is."""
        handle = self.program.own()
        self.program.ask(handle, kind.asker(), word)
        self._array(handle, number)

    def _array(self, word: int, number: int) -> None:
        program = self.program
        self.objects[number] = word
        writeable = number in self.entry.written
        self.executable.take(program, word, self.block + number, number, writeable)
        # By the program, by the caller.
        is_held = isinstance(word, Owned) or word < self.n_arguments
        if self.executable.runs_python and not is_held:
            program.hold(word)

    @property
    def can_begin_again(self) -> bool:
        """Whether nothing has happened outside before a run is over."""
        entry, module = self.entry, self.executable.module
        specs = (*entry.specs, *entry.captured.specs)
        drawn = any(isinstance(getattr(s, "holder", None), GeneratorKind) for s in specs)
        written = entry.written or entry.donated or entry.trap is not None
        return not (drawn or written or self.executable.calls_out) and bool(module.errors)

    def apart(self) -> None:
        """What is written shares no memory with anything else, what was taken apart is no node."""
        if self.heap is not None:
            self.heap.apart_from(self.taken_apart)
            self.heap.enter(self.entering)
        written = set(self.entry.written)
        numbers = range(self.executable.n_arguments) if written else ()
        groups: dict[Any, list[int]] = {}
        for k in numbers:
            whole = self.fields.get(self.objects.get(k, -1), (("alone", k), 0))[0]
            groups.setdefault(whole, []).append(k)
        spans = [self._reach_of(group, written) for group in groups.values()]
        reaches = [reach for reach in spans if reach[1] < reach[2]]
        if len(reaches) > 1:
            self.program.apart(reaches)

    def _reach_of(self, group: list[int], written: set[int]) -> tuple[int, int, int, bool, int]:
        """What one input reaches, or the fields of a structured array together, which lie between each
        other; from the first one's pointer."""
        first = self.executable.module.inputs[group[0]]
        if self.executable.is_sized(first):
            each = first.nbytes // first.shape[0]
            return self.block + group[0], 0, each, False, first.shape[0]
        starts = [self.fields.get(self.objects.get(k, -1), (0, 0))[1] for k in group]
        lows, highs = [], []
        for k, start in zip(group, starts, strict=True):
            low, high = self._reach(k)
            if low < high:
                lows.append(low + start - starts[0])
                highs.append(high + start - starts[0])
        ends = min(lows, default=0), max(highs, default=0)
        return self.block + group[0], *ends, not written.isdisjoint(group), 0

    def _reach(self, number: int) -> tuple[int, int]:
        """The bytes that an input reaches, from its pointer."""
        module = self.executable.module
        type, steps = module.inputs[number], module.input_strides[number]
        if type.size == 0:
            return 0, 0
        required = required_strides(type, steps)
        strides = [0 if n < 2 else s for n, s in zip(type.shape, required, strict=True)]
        if number in self.entry.written and overlaps(type.shape, strides, type.dtype.itemsize):
            raise NotNative
        spans = [(n - 1) * stride for n, stride in zip(type.shape, strides, strict=True)]
        low, high = sum(s for s in spans if s < 0), sum(s for s in spans if s > 0)
        return low, high + type.dtype.itemsize

    # The call and its results

    def call(self) -> None:
        """Run, write back what was assigned to, and build the result."""
        program, traced = self.program, self.entry.traced
        shape = self._result_shape()
        scalars = {r.output for r in traced.results if r.output is not None and r.scalar}
        scalars = scalars if shape else set()
        n_outputs = len(self.executable.module.outputs)
        if self.entry.trap is not None:
            n_outputs -= 1
            scalars.add(n_outputs)
        lazy = self.heap is not None and self.heap.lazy
        again = self.entry.repeats or lazy
        whole, results_at = self.executable.write_call(program, self.block, scalars, again, lazy)
        if self.entry.trap is not None:  # else Python looks into it
            program.unless_told(results_at.pop(n_outputs))
        arrays = iter(whole)
        outputs = [None if k in results_at else next(arrays) for k in range(n_outputs)]
        written = outputs[n_outputs - len(self.entry.mutated) :]
        for number, output in zip(self.entry.mutated, written, strict=True):
            assert output is not None
            program.copy(self.packed.get(number, self.objects[number]), output)
        for number in self.entry.lists.keys() & set(self.entry.written):
            size, kind = self.executable.module.inputs[number].size, self.entry.lists[number]
            program.unpack(self.objects[number], self.block + number, size, kind.cls)
        uses = Counter(r.output for r in traced.results)
        left: dict[int | None, list[Owned]] = {}
        for result in traced.results if shape else ():
            plans, k = left_natively(result), result.output
            if plans is not None and k is not None and k not in left:
                left[k] = self._leave(outputs[k], plans)

        def leaf(result: Result) -> Owned:
            number = result.output
            if result.views:
                return program.alias(left[number][number_of(result)])
            if result.argument is not None:
                return program.alias(self.objects[result.argument])
            if number is None:
                return program.constant_result(result.static)
            if number in results_at:
                dtype = self.executable.module.outputs[number].dtype
                return program.result(results_at[number], dtype, result.weak is not None)
            array = outputs[number]
            assert array is not None
            # Containers take their items over; one that is in several places stays until the end.
            return program.alias(array) if uses[number] > 1 else array

        def in_python() -> Owned:
            lent = [program.alias(self.objects[k]) for k in sorted(self.objects)]
            present = [output for output in outputs if output is not None]
            lists = [program.make(list, present), program.make(list, lent)]
            return program.call(self.entry.finish, lists)

        results = traced.results

        def value(leaf: int) -> int:
            """The word of a number that the entry gives."""
            output = results[leaf].output
            if output is None or output not in results_at:
                raise NotNative
            return results_at[output]

        if self.heap is not None and shape is None:
            self.heap.finish_in_python(in_python)
        elif self.heap is not None:
            self.heap.finish(lambda i: program.alias(leaf(results[i])), value)
        elif shape is None:
            program.give(in_python())
        else:
            program.give(self._build(shape[0], leaf))

    def _leave(self, handles: Owned | None, plans: Plans) -> list[Owned]:
        """Python's objects for the containers that leave."""
        from ...runtime.call.objects import leave_address  # few functions have such containers

        assert handles is not None
        words, kinds = plans.native
        self.program.references.append(words)
        n, entered = len(plans.kinds), bool(plans.entered)
        return self.program.leave(handles, leave_address(), n, kinds, entered)

    def _result_shape(self) -> tuple[Any] | None:
        """What the function returns, with a `Result` for each leaf; None if Python has to make it."""
        results, effects = self.entry.traced.results, self.entry.effects
        if any(result.views and left_natively(result) is None for result in results):
            return None
        if effects is not None and not effects.is_buildable:
            return None
        outputs = [r.output for r in results if not r.scalar]
        if any(r.scalar and r.output is not None and r.output in outputs for r in results):
            return None
        try:
            sample = result_sample(self.entry.traced.out_tree, iter(results))
        except NotNative:
            return None
        return (sample,) if is_plain(sample) else None

    def _build(self, value: Any, leaf: Callable[[Result], Owned]) -> Owned:
        cls, program = type(value), self.program
        if cls is Result:
            return leaf(value)
        if value is None:
            return program.constant_result(None)
        if cls is Node:
            return program.call(value.make, [self._build(item, leaf) for item in value.parts])
        if cls is dict:
            # Functions of the user's are called in the order that Python's dispatch has.
            order = pytree.flatten(dict.fromkeys(value, 0))[1].entries()
            built = {key: self._build(value[key], leaf) for key in order}
            return program.make_dict(list(value), [built[key] for key in value])
        if isinstance(value, tuple) or cls is list:
            return program.make(cls, [self._build(item, leaf) for item in value])
        children, static = plain_fields(cls)
        items = [self._build(getattr(value, name), leaf) for name in children]
        items += [program.constant_result(getattr(value, name)) for name in static]
        # No constructor, no `__post_init__`, no `__setattr__` of the class runs.
        made = program.call(object.__new__, [program.constant_result(cls)])
        for name, item in zip((*children, *static), items, strict=True):
            program.put_attribute(made, name, item)
        return made
