"""Call programs: what native code does between a Python call and the compiled entry, as data.

    program = Program()
    x = program.arguments(1)[0]
    data = program.block(2)                       # the pointers that the entry takes
    program.array(x, data, type, strides)         # guards; a mismatch gives the call to Python
    y = program.allocate(data + 1, out_type)
    program.run(entry, ...)
    program.give(y)
    words = program.words()

A program is a list of 64-bit words: opcodes and operands. `call_ir` writes the one function that runs
programs; it is compiled once, so a new specialisation costs no code of its own here. A program has
a *frame* of words on the stack, where it keeps objects, pointers and scalars. Guards come first and
leave nothing behind when one of them does not hold; references that the program owns are in *owned*
words, dropped at the end in any case.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from ...codegen.module import STATUS_WORDS
from ...ir.types import DTYPE_NAMES, TensorType, contiguous_strides, dtype_name, is_extended
from ..handlers import CAPSULE_NAME, functions_of
from ..native.layout import ALIGNED, C_CONTIGUOUS, WRITEABLE, current_handler
from ..versions import class_version, dict_place, dict_version, name_places
from .opcodes import HEADER as HEADER
from .opcodes import HITS as HITS
from .opcodes import Opcode as Opcode

ANY_STRIDE = -(1 << 63)  # this axis has at most one element, its stride says nothing
_PYTHON_NUMBERS = {float: Opcode.FLOAT, int: Opcode.INT, bool: Opcode.BOOL, complex: Opcode.COMPLEX}
_PYTHON_RESULTS = {
    "f": Opcode.FLOAT_RESULT,
    "i": Opcode.INT_RESULT,
    "b": Opcode.BOOL_RESULT,
    "c": Opcode.COMPLEX_RESULT,
}
_PACKING = {float: Opcode.PACK_FLOATS, int: Opcode.PACK_INTS, bool: Opcode.PACK_BOOLS}
_PACKING_ROWS = {
    float: Opcode.PACK_FLOAT_ROWS,
    int: Opcode.PACK_INT_ROWS,
    bool: Opcode.PACK_BOOL_ROWS,
}
_UNPACKING = {float: Opcode.UNPACK_FLOATS, int: Opcode.UNPACK_INTS, bool: Opcode.UNPACK_BOOLS}
_MANY_STRINGS = 8
_SCALAR_WORDS = 2  # complex128 is the largest


# Where Python code may run: objects' own code, other threads, the garbage collector's finalizers.
_RUNS_PYTHON = frozenset(
    {
        *(Opcode.ATTRIBUTE, Opcode.METHOD, Opcode.ASK, Opcode.CALL, Opcode.COPY),
        *(Opcode.MAKE_TUPLE, Opcode.MAKE_LIST, Opcode.MAKE_DICT),
        *(Opcode.PUT_ATTRIBUTE, Opcode.PUT_ITEM, Opcode.PUT_KEY, Opcode.PUT_CELL),
        Opcode.LEAVE,
    }
)


_FAR = frozenset(
    {
        *_PACKING.values(),
        *_PACKING_ROWS.values(),
        *_UNPACKING.values(),
        *(Opcode.PACK_GENERICS, Opcode.UNPACK_GENERICS, Opcode.ENTER, Opcode.LEAVE),
        Opcode.ARE_STRINGS,
    }
)


class Owned(int):
    """The number of an owned word; its offset in the frame is known at the end."""


Word = int  # an index into the frame, an Owned, or plain data


class CallProgram:
    """A call program under construction.

    `kept` are the objects that its words refer to; `runs_python`, whether Python code may run before
    the program is over.
    """

    def __init__(self) -> None:
        self.references: list[Any] = []
        self.runs_python = False
        self._code: list[Word] = []
        self._n_frame = 0
        self._n_owned = 0
        self._scratch = 0
        self._handlers: dict[int, tuple[Owned, int]] = {}
        self.lengths: dict[
            int, int
        ] = {}  # by the capacity of an axis: the word where its length is
        # Where the code of the last strings begins, the first of their words, and how many there are.
        self._strings: tuple[int, int, int] = (0, 0, 0)

    # The frame

    def reserve(self, n: int = 1) -> int:
        """n consecutive words that own nothing."""
        first = self._n_frame
        self._n_frame += n
        return first

    def own(self) -> Owned:
        self._n_owned += 1
        return Owned(self._n_owned - 1)

    def emit(self, op: int, *operands: Word) -> None:
        if op in _FAR:
            from .lists import lists_address  # few functions are given lists of numbers

            self._code += (Opcode.FAR, lists_address())
        self._code += (op, *operands)
        self.runs_python |= op in _RUNS_PYTHON

    def ref(self, value: Any) -> int:
        """The address of an object, which the program keeps alive."""
        self.references.append(value)
        return id(value)

    def words(self) -> Any:
        """The finished program, as a ctypes array."""
        owned_at = self._n_frame
        code = [w + owned_at if isinstance(w, Owned) else int(w) for w in self._code]
        header = [owned_at + self._n_owned, owned_at, self._n_owned, self._scratch, 0]
        return (ctypes.c_int64 * (len(header) + len(code)))(*header, *code)

    # Guards

    def arguments(self, n: int, keywords: Sequence[str] = (), ordered: bool = False) -> list[int]:
        """Words with the positional arguments and then the keyword arguments.

        Comes first in a program. The keywords may be given in any order, unless that is `ordered`.
        """
        first = self.reserve(n + len(keywords))
        assert first == 0
        if not keywords:
            self.emit(Opcode.ARGUMENTS, n)
        else:
            self.emit(Opcode.KEYWORDS, n, len(keywords))
        for k, name in enumerate(keywords):
            searched = 0 if ordered else len(keywords)
            self.emit(Opcode.KEYWORD, n + k, n, searched, k, self.ref(name))
        return list(range(n + len(keywords)))

    def array(
        self,
        src: Word,
        block: Word,
        type: TensorType,
        steps: Sequence[int],
        writeable: bool = False,
    ) -> None:
        """A plain ndarray of this type with these strides (in elements)."""
        flags = ALIGNED | (WRITEABLE if writeable else 0)
        strides = required_strides(type, steps)
        op, layout = Opcode.STRIDED_ARRAY, (*type.shape, *strides)
        if strides == required_strides(type, contiguous_strides(type.shape)):
            op, layout, flags = Opcode.ARRAY, type.shape, flags | C_CONTIGUOUS
        descr = self.ref(native_dtype(type.dtype))
        self.emit(op, src, block, descr, type.rank, flags, *layout)

    def sized_array(self, src: Word, block: Word, type: TensorType, least: int, most: int) -> None:
        """A C-contiguous ndarray of this type, but for the length of its first axis, which is between
        two numbers. What has the same capacity has the same length."""
        capacity, *dims = type.shape
        bind = capacity not in self.lengths
        if bind:
            self.lengths[capacity] = self.reserve()
        where = self.lengths[capacity]
        descr = self.ref(native_dtype(type.dtype))
        flags = ALIGNED | C_CONTIGUOUS
        self.emit(
            *(Opcode.SIZED_ARRAY, src, block, descr, type.rank, flags),
            *(where, int(bind), least, most, *dims),
        )

    def length(self, block: Word, capacity: int) -> None:
        """Where the length of the axes of a capacity is."""
        self.emit(Opcode.SLOT, block, self.lengths[capacity])

    def scalar(self, src: Word, block: Word, cls: type) -> None:
        """A Python number, or a NumPy scalar."""
        value = self.reserve(_SCALAR_WORDS)
        opcode = _PYTHON_NUMBERS.get(cls)
        if opcode is not None:
            self.emit(opcode, src, block, value)
        else:
            kind = Opcode.FOREIGN if is_extended(np.dtype(cls)) else Opcode.GENERIC
            self.emit(kind, src, block, value, self.ref(cls))

    def constant(self, src: Word, value: Any) -> None:
        """An immutable `value`: numbers and strings by type and value, others by identity."""
        cls = type(value)
        if cls is str:
            self._string(src, self.ref(value))
        elif cls is int and -(1 << 63) <= value < 1 << 63:
            self.emit(Opcode.IS_INT, src, value)
        elif cls is float:
            self.emit(Opcode.IS_FLOAT, src, struct.unpack("q", struct.pack("d", value))[0])
        else:
            self.emit(Opcode.IS, src, self.ref(value))

    def _string(self, src: Word, text: int) -> None:
        """A string. Where many are in words one after the other, as those of a list, one opcode compares
        all of them."""
        at, first, n = self._strings
        if n >= _MANY_STRINGS and len(self._code) == at + 5 + n and src == first + n:
            self._code[at + 4] = n + 1
            self._code.append(text)
            self._strings = at, first, n + 1
            return
        if not n or n >= _MANY_STRINGS or len(self._code) != at + 3 * n or src != first + n:
            at, first, n = len(self._code), src, 0
        self.emit(Opcode.IS_STRING, src, text)
        self._strings = at, first, n + 1
        if n + 1 == _MANY_STRINGS:
            texts = self._code[at + 2 :: 3]
            del self._code[at:]
            self.emit(Opcode.ARE_STRINGS, first, n + 1, *texts)

    def items(self, src: Word, cls: type, n: int) -> list[int]:
        """The items of a tuple (also of a class of tuples, exactly) or list of length n."""
        dst = self.reserve(n)
        if cls is list:
            self.emit(Opcode.LIST, src, n, dst)
        else:
            self.emit(Opcode.TUPLE, src, self.ref(cls), n, dst)
        return list(range(dst, dst + n))

    def values(self, src: Word, keys: Sequence[Any]) -> list[int]:
        """The values of a dict with just these keys, strings and ints, in this order."""
        dst = self.reserve(len(keys))
        names = [self.ref(key) for key in keys]
        self.emit(Opcode.DICT, src, len(keys), dst, *names)
        return list(range(dst, dst + len(keys)))

    def pack(self, src: Word, block: Word, type: TensorType, cls: type) -> Owned:
        """A list of numbers, all of the class `cls`, or of lists of them: an array of their values."""
        array = self.allocate(block, type)
        if type.rank == 2:
            self.emit(_PACKING_ROWS[cls], src, block, *type.shape)
        elif cls in _PACKING:
            self.emit(_PACKING[cls], src, block, type.size)
        else:
            self.emit(Opcode.PACK_GENERICS, src, block, type.size, self.ref(cls))
        return array

    def unpack(self, src: Word, block: Word, n: int, cls: type) -> None:
        """The values where `block` points to become the items of a list; equal items stay."""
        if cls in _UNPACKING:
            self.emit(_UNPACKING[cls], src, block, n)
        else:
            descr = self.ref(native_dtype(np.dtype(cls)))
            self.emit(Opcode.UNPACK_GENERICS, src, block, n, descr)

    def enter(
        self, function: int, kinds: int, pairs: Sequence[tuple[Word, Word]], nested: bool
    ) -> None:
        """Native containers of objects, of these `kinds`, while the program runs. `pairs` are words of
        the objects, and those of the block where the handles are. With `nested` some hold others."""
        n, owned = len(pairs), self.own()
        words = [word for pair in pairs for word in pair]
        where = self.reserve(n), self.reserve(n)
        self.emit(Opcode.ENTER, owned, function, n, kinds, *where, int(nested), *words)

    def differ(self, src: Word, other: Word) -> None:
        self.emit(Opcode.DIFFER, src, other)

    def identity(self, src: Word, value: Any) -> None:
        self.emit(Opcode.IS, src, self.ref(value))

    def of_type(self, src: Word, cls: type) -> None:
        self.emit(Opcode.TYPE, src, self.ref(cls))

    def same(self, src: Word, other: Word) -> None:
        self.emit(Opcode.SAME, src, other)

    def code(self, src: Word, code: Any) -> None:
        """A Python function with this code."""
        self.emit(Opcode.CODE, src, self.ref(code))

    def global_(self, dst: Owned, module: dict[str, Any], name: str) -> None:
        self.emit(Opcode.GLOBAL, dst, self.ref(module), self.ref(name))

    @contextmanager
    def unless_changed(self, module: dict[str, Any]) -> Iterator[None]:
        """Guards of what a dict holds, which run when something was assigned to it since they did.

        They must run no code of Python's, and leave no words that others read."""
        address = dict_version(module)
        if address is None:
            yield
            return
        self.references.append(module)  # its version is read by address
        self.emit(Opcode.UNCHANGED, address, 0, 0)
        first = len(self._code)
        yield
        self.emit(Opcode.SEEN, address, len(self._code) - first + 4)
        self._code[first - 1] = len(self._code) - first + 4

    def unchanged_class(self, cls: type) -> bool:
        """Nothing was assigned to a class or its bases; False if there is no way to know."""
        version = class_version(cls)
        if version is None or not self.same_names(cls):
            return False
        self.references.append(cls)
        self.emit(Opcode.CLASS, *version)
        return True

    def same_names(self, value: Any) -> bool:
        """A class or function has the names that it has; False if there is no way to know."""
        places = name_places(value)
        for place, name in places or ():
            self._stays(place, name)
        return places is not None

    def same_dict(self, src: Word, value: Any) -> None:
        """`src`, which is `value`, has the dict that it has."""
        place = dict_place(value)
        if place is not None:
            self._stays(place, vars(value))
            return
        own = self.own()
        self.attribute(own, src, "__dict__")
        self.identity(own, vars(value))

    def _stays(self, place: int, value: Any) -> None:
        """A pointer at an address stays what it is, which is `value`, or NULL for None."""
        self.references.append(value)
        self.emit(Opcode.WORD, place, ctypes.c_int64.from_address(place).value)

    def function(self, src: Word, function: Any) -> None:
        """A Python function with this code, these very defaults and attributes."""
        parts = function.__code__, function.__defaults__, function.__kwdefaults__
        refs = [0 if part is None else self.ref(part) for part in parts]
        attributes = self.ref(function.__dict__) if function.__dict__ else 0
        self.emit(Opcode.FUNCTION, src, *refs, type(function).__dictoffset__, attributes)

    def code_of(self, function: Any, code: Any) -> None:
        """A function that is known still has this code."""
        self.emit(Opcode.CODE_OF, self.ref(function), self.ref(code))

    def method(self, src: Word, name: str, function: Any) -> None:
        """The attribute is a method made of this function."""
        self.emit(Opcode.METHOD, self.own(), src, self.ref(name), self.ref(function))

    def absent(self, module: dict[str, Any], name: str) -> None:
        self.emit(Opcode.ABSENT, self.ref(module), self.ref(name))

    def cell(self, dst: Owned, cell: Any) -> None:
        self.emit(Opcode.CELL, dst, self.ref(cell))

    def attribute(self, dst: Owned, src: Word, name: str) -> None:
        self.emit(Opcode.ATTRIBUTE, dst, src, self.ref(name))

    def ask(self, dst: Owned, function: Callable[..., Any], *arguments: Word) -> None:
        """`function(*given)`; if it raises, the program does not take the call."""
        assert len(arguments) < 2
        self.emit(Opcode.ASK, dst, self.ref(function), len(arguments), *(arguments or (0,)))

    def apart(self, reaches: Sequence[tuple[Word, int, int, bool, int]]) -> None:
        """No pointer reaches a byte that is written through another one.

        Of each pointer: its word, the first byte that it reaches and the one after the last,
        relative to it, whether those between are written, and the capacity of its first axis if that
        has a length, of which it reaches so many bytes for each.
        """
        dst = self.reserve(2 * len(reaches))
        words: list[int] = []
        for src, low, high, written, capacity in reaches:
            where = self.lengths[capacity] + 1 if capacity else 0
            words += (src, low, high, int(written) | where << 1)
        self.emit(Opcode.APART, len(reaches), dst, *words)

    def mark(self) -> tuple[int, int]:
        return len(self._code), len(self.references)

    def rewind(self, mark: tuple[int, int]) -> None:
        """Take back what was written since `mark`; words that were reserved stay reserved."""
        code, references = mark
        del self._code[code:], self.references[references:]

    # Work

    def block(self, n: int) -> int:
        return self.reserve(n)

    def allocate(self, block: Word, type: TensorType, handler: Any = None) -> Owned:
        """A fresh array; its memory from NumPy's handler `handler`, by default the current one."""
        layout = (self.ref(native_dtype(type.dtype)), type.rank, *type.shape)
        if not type.nbytes:
            dst = self.own()
            self.emit(Opcode.EMPTY, dst, block, *layout)
            return dst
        memory = self._memory(handler)
        dst = self.own()
        self.emit(Opcode.ALLOCATE, dst, block, *memory, type.nbytes, *layout)
        return dst

    def allocate_sized(
        self, block: Word, type: TensorType, handler: Any = None, big: int = 0
    ) -> Owned:
        """A fresh array whose first axis is as long as those of its capacity; its memory from `handler`,
        if there is one, where it has `big` bytes or more."""
        capacity = type.shape[0]
        memory = *self._memory(None), *self._memory(handler), big
        dst = self.own()
        self.emit(
            *(Opcode.SIZED_ALLOCATE, dst, block, *memory, self.lengths[capacity]),
            *(type.nbytes // capacity, self.reserve(type.rank)),
            *(self.ref(native_dtype(type.dtype)), type.rank, *type.shape),
        )
        return dst

    def _memory(self, handler: Any) -> tuple[Owned, int]:
        """Words with a memory handler and where its functions are."""
        registers = self._handlers.get(id(handler))
        if registers is None:
            registers = self._handlers[id(handler)] = self.own(), self.reserve()
            actual = current_handler() if handler is None else handler
            wanted = 0 if handler is None else self.ref(handler)
            functions = functions_of(actual)
            name = ctypes.addressof(CAPSULE_NAME)
            self.emit(Opcode.MEMORY, *registers, wanted, self.ref(actual), functions, name)
        return registers

    def scratch(self, block: Word, nbytes: int, handler: Any = None) -> None:
        """64-byte aligned memory until the end of the call."""
        assert not self._scratch
        self._scratch = self.reserve()  # not word 0: the block is before it
        memory = (0, 0) if handler is None else (self.ref(handler), functions_of(handler))
        self.emit(Opcode.SCRATCH, block, self._scratch, nbytes, *memory)

    def hold(self, src: Word) -> None:
        """Keep an object alive to the end of the call."""
        self.emit(Opcode.HOLD, self.own(), src)

    def result_slot(self, block: Word) -> int:
        """A scalar result goes into the frame: where."""
        value = self.reserve(_SCALAR_WORDS)
        self.emit(Opcode.SLOT, block, value)
        return value

    def run(
        self,
        entry: int,
        block: Word,
        status: Word,
        release_gil: bool,
        calls_python: bool,
        failed: Callable[..., Any],
        again: bool = False,
    ) -> None:
        """Call the entry, with `status` the word of its block for the pointer to the status block.
        `failed(code, *status)` raises what an error status says; `again`: where a check of the user's
        has failed, it is as if the call had not been taken, and Python makes it again."""
        words = self.reserve(STATUS_WORDS)
        self.emit(Opcode.SLOT, status, words)
        self.emit(Opcode.RUN, entry, block, words, int(release_gil), self.ref(failed), int(again))
        self.runs_python |= release_gil or calls_python

    def unless_told(self, value: Word) -> None:
        """Go on if the bool there is false; if not, it is as if the call had not been taken."""
        self.emit(Opcode.TOLD, value)

    def copy(self, array: Word, result: Owned) -> None:
        """Assign the elements of `result` to `array`."""
        self.emit(Opcode.COPY, array, result)

    # Results

    def result(self, value: Word, dtype: np.dtype[Any], weak: bool) -> Owned:
        """A scalar result: a Python number if it is `weak`, else a NumPy scalar."""
        dst = self.own()
        if not weak:
            self.emit(Opcode.GENERIC_RESULT, dst, value, self.ref(native_dtype(dtype)))
        else:
            self.emit(_PYTHON_RESULTS[dtype.kind], dst, value)
        return dst

    def alias(self, src: Word) -> Owned:
        dst = self.own()
        self.emit(Opcode.ALIAS, dst, src)
        return dst

    def constant_result(self, value: Any) -> Owned:
        dst = self.own()
        self.emit(Opcode.CONSTANT, dst, self.ref(value))
        return dst

    def make(self, cls: type, items: Sequence[Owned]) -> Owned:
        """A tuple or list that takes over the references; others are called with them."""
        dst = self.own()
        if cls is tuple or cls is list:
            op = Opcode.MAKE_TUPLE if cls is tuple else Opcode.MAKE_LIST
            self.emit(op, dst, len(items), *items)
            return dst
        return self.call(cls, items)

    def make_dict(self, keys: Sequence[Any], values: Sequence[Owned]) -> Owned:
        dst = self.own()
        template = dict.fromkeys(keys)
        pairs = [w for k, v in zip(keys, values, strict=True) for w in (self.ref(k), v)]
        self.emit(Opcode.MAKE_DICT, dst, self.ref(template), len(keys), *pairs)
        return dst

    def call(self, function: Callable[..., Any], items: Sequence[Owned]) -> Owned:
        """`function(*items)`."""
        own = [self.own() for _ in items]  # consecutive
        for slot, item in zip(own, items, strict=True):
            self.emit(Opcode.ALIAS, slot, item)
        dst = self.own()
        self.emit(Opcode.CALL, dst, self.ref(function), len(items), own[0] if own else 0)
        return dst

    def pick(self, value: Word, cases: Sequence[tuple[int, Owned]], otherwise: Owned) -> Owned:
        """What goes with the integer result `value`."""
        dst = self.own()
        pairs = [word for case in cases for word in case]
        self.emit(Opcode.PICK, dst, value, len(cases), otherwise, *pairs)
        return dst

    def leave(
        self, handles: Owned, function: int, n: int, kinds: int, entered: bool
    ) -> list[Owned]:
        """Python's objects for the native containers with these handles, of these `kinds`; with
        `entered` the objects that containers were made of get what is in these now."""
        made = [self.own() for _ in range(n)]  # consecutive
        self.emit(Opcode.LEAVE, made[0], handles, function, n, kinds, int(entered))
        return made

    # Changes

    def put_attribute(self, holder: Word, name: str, value: Owned) -> None:
        """As `object.__setattr__`."""
        self.emit(Opcode.PUT_ATTRIBUTE, holder, self.ref(name), value)

    def put_item(self, holder: Word, index: int, value: Owned) -> None:
        """Into a list."""
        self.emit(Opcode.PUT_ITEM, holder, index, value)

    def put_key(self, holder: Word, key: Any, value: Owned) -> None:
        """Into a dict."""
        self.emit(Opcode.PUT_KEY, holder, self.ref(key), value)

    def put_cell(self, holder: Word, value: Owned) -> None:
        """Into a cell of a closure."""
        self.emit(Opcode.PUT_CELL, holder, value)

    def give(self, result: Owned) -> None:
        self.emit(Opcode.RETURN, result)


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's own object for a dtype: equal dtypes may be distinct objects (int64, longlong)."""
    return DTYPE_NAMES[dtype_name(dtype)]


def required_strides(type: TensorType, steps: Sequence[int]) -> list[int]:
    """Byte strides that an input must have; ANY_STRIDE where no element ever depends on it."""
    return [
        step * type.dtype.itemsize if n > 1 and type.size > 0 else ANY_STRIDE
        for n, step in zip(type.shape, steps, strict=True)
    ]


def written_apart(ranges: Iterable[tuple[int, int, bool]]) -> bool:
    """Whether no range of bytes (first, end, written?) shares a byte with one that is written."""
    ends = written_ends = -1
    for first, end, written in sorted(ranges):
        if first < (ends if written else written_ends):
            return False
        ends = max(ends, end)
        if written:
            written_ends = max(written_ends, end)
    return True


def overlaps(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Whether two indices may name the same element: by stride, each axis must clear the last."""
    reach = itemsize
    for step, n in sorted((abs(s), n) for s, n in zip(strides, shape, strict=True) if n > 1):
        if step < reach:
            return True
        reach = step * (n - 1) + reach
    return False
