"""Where random bits come from: the state of a bit generator, as C code has it, advanced by instructions.

A source is made from the address that a handle has for native code:

    Generator     its bitgen_t: a state, and the functions next_uint64, next_uint32, next_double
    RandomState   an aug_bitgen_t: the address of such a bitgen_t, and the normal number kept for later
    Random        Python's: an int32 position and the 624 words of a Mersenne Twister

PCG64 and MT19937 are known by name, all others by their functions. Algorithms are those of their
authors: O'Neill's PCG XSL RR 128/64, Matsumoto and Nishimura's MT19937.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cache

from ...llvm.builder import Value, constant
from ...llvm.modules import Function
from ...llvm.text import TextEmitter

_WORD = 8
_NEXT_64, _NEXT_32, _NEXT_DOUBLE = (k * _WORD for k in (1, 2, 3))  # in a bitgen_t
PCG_MULTIPLIER = 0x2360ED051FC65DA44385DF649FCCF645
TWISTER_WORDS = 624
_TWISTER_SHIFT = 397


def float_constant(value: float) -> Value:
    """A double; its text is the bits."""
    import struct

    return Value("double", f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}")


def single_constant(value: float) -> Value:
    """A float of 32 bits that is exact as such; LLVM writes it as the double of the same value."""
    return Value("float", float_constant(value).text)


class Source(ABC):
    """Writes what draws bits. `is_legacy`: the place is that of a RandomState."""

    def __init__(self, b: TextEmitter, address: Value, is_legacy: bool) -> None:
        self.b = b
        self.place = address
        self.is_legacy = is_legacy

    @property
    def bitgen(self) -> Value:
        """Where the bitgen_t is, whose address NumPy's functions take."""
        return self.b.load("ptr", self.place, align=8) if self.is_legacy else self.place

    @abstractmethod
    def word64(self) -> Value:
        """64 random bits, an i64."""

    @abstractmethod
    def word32(self) -> Value:
        """32 random bits, an i32."""

    @abstractmethod
    def double(self) -> Value:
        """A double in [0, 1)."""

    def single(self) -> Value:
        """A float in [0, 1), of 24 random bits."""
        bits = self.word32() >> 8
        return bits.to("uitofp", "float") * single_constant(2.0**-24)

    def begin(self) -> tuple[Value, ...]:
        """What is in registers while a loop draws: nothing, but for sources that know better."""
        return ()

    def resume(self, values: tuple[Value, ...]) -> None:
        """Go on with these registers."""
        assert not values

    def registers(self) -> tuple[Value, ...]:
        """They as they are now."""
        return ()

    def end(self, values: tuple[Value, ...]) -> None:
        """Put them back into the state."""
        assert not values


class Pointers(Source):
    """Any bit generator: its own functions."""

    def _next(self, type: str, offset: int) -> Value:
        function = self.b.load("ptr", self.bitgen, offset, align=8)
        state = self.b.load("ptr", self.bitgen, align=8)
        return self.b.call(type, function, state)

    def word64(self) -> Value:
        return self._next("i64", _NEXT_64)

    def word32(self) -> Value:
        return self._next("i32", _NEXT_32)

    def double(self) -> Value:
        return self._next("double", _NEXT_DOUBLE)


class PCG64(Pointers):
    """PCG64's state: a pointer to two words of 128 bits (state, increment); a flag, and 32 bits left."""

    _held: Value | None = None
    _where: Value | None = None
    _step: Value | None = None

    def _state(self) -> Value:
        return self.b.load("ptr", self.b.load("ptr", self.bitgen, align=8), align=8)

    def begin(self) -> tuple[Value, ...]:
        self._where = self._state()
        self._step = self.b.load("i128", self._where, 16, align=8)
        return (self.b.load("i128", self._where, align=8),)

    def resume(self, values: tuple[Value, ...]) -> None:
        self._held = values[0] if values else None

    def registers(self) -> tuple[Value, ...]:
        return () if self._held is None else (self._held,)

    def end(self, values: tuple[Value, ...]) -> None:
        if values:
            assert self._where is not None
            self.b.store(values[0], self._where, align=8)
        self._held = None

    def again(self) -> Value:
        """What the register would be after a function of NumPy's has drawn."""
        assert self._where is not None
        return self.b.load("i128", self._where, align=8)

    def word64(self) -> Value:
        b = self.b
        if self._held is not None:
            assert self._step is not None
            state = self._held = self._held * PCG_MULTIPLIER + self._step
        else:
            where = self._state()
            state = b.load("i128", where, align=8) * PCG_MULTIPLIER
            state = state + b.load("i128", where, 16, align=8)
            b.store(state, where, align=8)
        low, high = state.trunc("i64"), (state >> 64).trunc("i64")
        mixed = low ^ high
        turn = (state >> 122).trunc("i64")
        return b.intrinsic("fshr", "i64", mixed, mixed, turn)

    def double(self) -> Value:
        return (self.word64() >> 11).to("uitofp", "double") * float_constant(2.0**-53)


class _Twister(Source):
    """32 bits at a time, two of them for a double."""

    def double(self) -> Value:
        high = (self.word32() >> 5).to("uitofp", "double")
        low = (self.word32() >> 6).to("uitofp", "double")
        return (high * float_constant(2.0**26) + low) * float_constant(2.0**-53)

    def _word32(self, words: Value, position_at: Value) -> Value:
        """The next word, tempered; `renew` has words again when all are used."""
        b = self.b
        fresh, old, on = b.later("fresh"), b.later("old"), b.later("on")
        (drawn,) = b.parameters(on, "i32")
        position = b.load("i32", position_at, align=4)
        b.fork(position.ult(TWISTER_WORDS), old, (), fresh, hint=b.likely())
        b.at(fresh)
        with b.scope():
            b.jump(on, self._first_of_next())
        b.at(old)
        with b.scope():
            y = b.load("i32", words, position.zext("i64"), "i32", align=4)
            b.store(position + 1, position_at, align=4)
            b.jump(on, _tempered(y))
        b.at(on)
        return drawn

    @abstractmethod
    def _first_of_next(self) -> Value:
        """The first word of the next 624."""


class MT19937(_Twister, Pointers):
    """MT19937's state: 624 words and a position."""

    def double(self) -> Value:
        return _Twister.double(self)

    def word32(self) -> Value:
        state = self.b.load("ptr", self.bitgen, align=8)
        return self._word32(state, self.b.offset(state, 4 * TWISTER_WORDS))

    def _first_of_next(self) -> Value:
        return Pointers.word32(self)


class PythonTwister(_Twister):
    """A `random.Random`."""

    def word32(self) -> Value:
        return self._word32(self.b.offset(self.place, 4), self.place)

    def word64(self) -> Value:
        low, high = self.word32().zext("i64"), self.word32().zext("i64")
        return (high << 32) | low

    def _first_of_next(self) -> Value:
        words, b = self.b.offset(self.place, 4), self.b
        b.line(f"call void @{twist().name}({words!r})")
        b.store(constant("i32", 1), self.place, align=4)
        return _tempered(b.load("i32", words, align=4))


def _tempered(y: Value) -> Value:
    y = y ^ (y >> 11)
    y = y ^ ((y << 7) & 0x9D2C5680)
    y = y ^ ((y << 15) & 0xEFC60000)
    return y ^ (y >> 18)


@cache
def twist() -> Function:
    """The next 624 words of a Mersenne Twister in the place of the last."""
    f = Function("void", "twist", internal=True, attributes="noinline nounwind", words="ptr")
    n, m = TWISTER_WORDS, _TWISTER_SHIFT
    for first, stop, step in ((0, n - m, m), (n - m, n - 1, m - n)):
        with f.each(stop, first) as i:
            here = f.load("i32", f.words, i, "i32", align=4)
            after = f.load("i32", f.words, i + 1, "i32", align=4)
            other = f.load("i32", f.words, i + step, "i32", align=4)
            f.store(_twisted(f, here, after, other), f.words, i, "i32", align=4)
    here, after, other = (f.load("i32", f.words, k, "i32", align=4) for k in (n - 1, 0, m - 1))
    f.store(_twisted(f, here, after, other), f.words, n - 1, "i32", align=4)
    f.ret()
    return f


def _twisted(f: Function, here: Value, after: Value, other: Value) -> Value:
    y = (here & 0x80000000) | (after & 0x7FFFFFFF)
    odd = f.select((after & 1).ne(0), constant("i32", 0x9908B0DF), constant("i32", 0))
    return other ^ (y >> 1) ^ odd


SOURCES: dict[str, type[Source]] = {
    "Generator": Pointers,
    "Generator:PCG64": PCG64,
    "Generator:MT19937": MT19937,
    "RandomState": Pointers,
    "RandomState:MT19937": MT19937,
    "Random:MT19937": PythonTwister,
}


def source_of(name: str, b: TextEmitter, address: Value) -> Source:
    """The source of that name whose state is at `address`."""
    return SOURCES[name](b, address, name.startswith("RandomState"))
