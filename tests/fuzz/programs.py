"""Small programs of statements that are drawn one after the other, as the text of a Python function.

Each statement is tried with NumPy first: what raises there, grows too large or leaves the supported
dtypes is dropped, so that the generator needs no rules of its own about shapes and dtypes.
"""

from __future__ import annotations

import linecache
import random
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from .compare import Case, copied

MOST = 3000  # elements of a value
DTYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 f8 f8 c8 c16".split()
KINDS = "biufc"
# Nothing that tells signs of NaN, which no rule fixes.
UNARY = """sin cos tanh exp log sqrt abs negative sign floor ceil rint square reciprocal isnan isfinite
    log1p expm1 arctan cbrt conj real imag logical_not invert positive nan_to_num trunc deg2rad
    exp2 log2 arcsinh sinc angle fabs""".split()
SMOOTH = "sin cos tanh exp square arctan arcsinh negative expm1 sinc".split()
BINARY = """add subtract multiply true_divide floor_divide remainder maximum minimum fmax fmin power
    hypot arctan2 equal less greater_equal not_equal logical_and logical_or bitwise_and
    bitwise_or bitwise_xor left_shift right_shift logaddexp fmod heaviside nextafter""".split()
SMOOTH_BINARY = "add subtract multiply maximum minimum hypot logaddexp arctan2".split()
FOLDS = """sum prod mean max min any all argmax argmin var std cumsum cumprod count_nonzero ptp median
    sort argsort nansum nanmax logical_or.reduce add.accumulate""".split()
SMOOTH_FOLDS = "sum prod mean max min var cumsum cumprod sort median".split()


class Maker:
    """Draws a function: `lines` are its body, `values` what its variables are under NumPy."""

    def __init__(self, seed: int, smooth: bool, dtypes: list[str], scalars: bool = True) -> None:
        self.draw = random.Random(seed)
        self.rng = np.random.default_rng(seed)
        self.smooth = smooth  # floats only, and what has derivatives
        self.scalars = scalars  # among the arguments
        self.dtypes = dtypes
        self.lines: list[str] = []
        self.arguments: list[Any] = []
        self.values: dict[str, Any] = {"np": np, "jt": jt}
        self.names: list[str] = []
        self.count = 0
        self.scale = 1.0

    # Arguments.

    def argument(self) -> None:
        name = "abcd"[len(self.arguments)]
        plain = self.scalars and self.draw.random() < 0.15
        value = self._number() if plain else self._array()
        self.arguments.append(value)
        self.values[name] = copied(value)
        self.names.append(name)
        self._see(value)

    def _number(self) -> Any:
        if self.smooth:
            return self.draw.choice([0.5, -1.25, 2.0, 3.0])
        dtype = np.dtype(self.draw.choice(self.dtypes))
        number = self.draw.choice([0, 1, 2, 3, 5, 7])
        return self.draw.choice([number, float(number) / 2, dtype.type(number), bool(number % 2)])

    def _array(self) -> np.ndarray:
        draw = self.draw
        dtype = np.dtype(draw.choice(self.dtypes))
        rank = draw.choice([0 if self.scalars else 1, 1, 1, 1, 2, 2, 2, 3])
        shape = tuple(draw.choice([0, 1, 2, 3, 4, 5, 8, 17]) for _ in range(rank))
        if draw.random() < 0.15:
            shape = (draw.choice([64, 100, 257, 1000]),)
        if self.smooth and 0 in shape:
            shape = tuple(n or 3 for n in shape)
        layout = draw.choice(["C", "C", "C", "F", "steps", "back", "repeated", "frozen"])
        if layout == "steps" and shape:
            return self._fill((*shape[:-1], 2 * shape[-1] + 1), dtype)[..., 1::2]
        if layout == "back" and shape:
            return self._fill(shape, dtype)[::-1]
        if layout == "repeated" and shape:
            return np.broadcast_to(self._fill(shape[1:], dtype), shape)
        array = self._fill(shape, dtype)
        if layout == "F":
            return np.asfortranarray(array)
        array.flags.writeable = layout != "frozen"
        return array

    def _fill(self, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray:
        """Numbers of few digits, so that sums are exact and comparisons are not decided by rounding."""
        if dtype.kind == "b":
            return self.rng.integers(0, 2, shape).astype(bool)
        if dtype.kind in "iu":
            low = 0 if dtype.kind == "u" else -20
            array = self.rng.integers(low, 50, shape).astype(dtype)
            if self.draw.random() < 0.1 and array.size:
                info = np.iinfo(dtype)
                array.flat[0] = self.draw.choice([info.min, info.max])
            return np.asarray(array)
        if self.smooth:
            return np.asarray(self.rng.normal(size=shape), dtype)
        array = np.asarray(self.rng.integers(-40, 41, shape) / 8).astype(dtype)
        if dtype.kind == "c":
            array = array + np.asarray(1j * self.rng.integers(-40, 41, shape) / 8).astype(dtype)
        if self.draw.random() < 0.1 and array.size:
            array.flat[-1] = self.draw.choice([np.nan, np.inf, -np.inf, -0.0])
        return np.asarray(array)

    # Statements.

    def statement(self) -> None:
        makers: list[tuple[Callable[[], str], int]] = [
            (self._unary, 4), (self._binary, 6), (self._fold, 4), (self._move, 5), (self._join, 2),
            (self._index, 4), (self._choose, 2), (self._product, 2), (self._in_place, 5),
            (self._cast, 1), (self._branch, 2), (self._loop, 2), (self._native_loop, 2), (self._grid, 3),
        ]  # fmt: skip
        make = self.draw.choices([m for m, _ in makers], [w for _, w in makers])[0]
        for _ in range(4):
            text = make()
            if text and self._try(text):
                return

    def _try(self, text: str) -> bool:
        """Run a statement on what there is; keep it if NumPy takes it."""
        before = {n: copied(self.values[n]) for n in self.names}
        trial = dict(self.values)
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            try:
                exec(text, trial)
            except Exception:
                self._again(before)
                return False
        new = [n for n in trial if n not in self.values and n != "__builtins__" and n[0] == "v"]
        for name in [*new, *self.names]:
            if not self._fits(trial[name]):
                self._again(before)
                return False
        self.lines += text.split("\n")
        for name in [*new, *self.names]:
            self.values[name] = trial[name]
            self._see(trial[name])
        self.names += new
        self.count += len(new)
        return True

    def _again(self, before: dict[str, Any]) -> None:
        """Make the values anew from the lines: a statement that failed may have written."""
        if all(_same(self.values[n], before[n]) for n in self.names):
            return
        names = "abcd"[: len(self.arguments)]
        fresh = {"np": np, "jt": jt}
        fresh |= {n: copied(a) for n, a in zip(names, self.arguments, strict=True)}
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            exec("\n".join(self.lines), fresh)
        self.values = {n: v for n, v in fresh.items() if n != "__builtins__"}

    def _fits(self, value: Any) -> bool:
        if isinstance(value, (bool, int, float, complex)):
            return not isinstance(value, int) or abs(value) < 2**62
        if not isinstance(value, (np.ndarray, np.generic)):
            return False
        known = value.dtype.str[1:] in {np.dtype(d).str[1:] for d in DTYPES}
        return known and value.size <= MOST and value.ndim <= 4

    def _see(self, value: Any) -> None:
        array = np.asarray(value)
        if array.dtype.kind in "fc" and array.size:
            with np.errstate(all="ignore"):
                sizes = np.abs(array.astype(np.complex128))
            finite = sizes[np.isfinite(sizes)]
            self.scale = max(self.scale, float(finite.max(initial=0)))

    def new(self) -> str:
        return f"v{self.count}"

    def one(self, test: Callable[[Any], bool] = lambda value: True) -> str:
        found = [n for n in self.names if test(self.values[n])]
        return self.draw.choice(found[-4:] + found) if found else ""

    def array(self, rank: int = 1) -> str:
        return self.one(lambda v: isinstance(v, np.ndarray) and v.ndim >= rank and v.size > 0)

    def operand(self) -> str:
        if self.draw.random() < 0.25:
            plain = ["2", "0.5", "-1", "3", "1.5", "np.float32(0.25)", "np.int8(3)", "True"]
            return self.draw.choice(plain[:5] if self.smooth else plain)
        return self.one()

    def _unary(self) -> str:
        name = self.draw.choice(SMOOTH if self.smooth else UNARY)
        return f"{self.new()} = np.{name}({self.one()})"

    def _binary(self) -> str:
        a, b = self.operand(), self.operand()
        if self.draw.random() < 0.5:
            signs = "+ - *" if self.smooth else "+ - * / // % ** < <= == & |"
            return f"{self.new()} = {a} {self.draw.choice(signs.split())} {b}"
        name = self.draw.choice(SMOOTH_BINARY if self.smooth else BINARY)
        return f"{self.new()} = np.{name}({a}, {b})"

    def _fold(self) -> str:
        name, a = self.draw.choice(SMOOTH_FOLDS if self.smooth else FOLDS), self.array(0)
        if not a:
            return ""
        rank = self.values[a].ndim
        axis = self.draw.choice([None, *range(-rank, rank)])
        if axis is not None and rank > 1 and self.draw.random() < 0.2:
            axis = tuple(self.draw.sample(range(rank), 2))
        keep = ", keepdims=True" if self.draw.random() < 0.25 else ""
        if name in ("sort", "argsort"):
            axis, keep = axis if isinstance(axis, int) else -1, ", kind='stable'"
        whole = self.values[a].dtype.kind not in "fc"
        if name == "cumsum" and self.values[a].dtype == np.float16 and self.values[a].size > 64:
            return ""  # NumPy rounds each of the sums
        if name in ("prod", "cumprod") and not whole:  # overflow depends on the order
            a = f"{a} / np.maximum(np.abs({a}), 1)"
        return f"{self.new()} = np.{name}({a}, axis={axis}{keep})"

    def _move(self) -> str:
        a, draw = self.array(0), self.draw
        if not a:
            return ""
        shape = self.values[a].shape
        rank, axis = len(shape), draw.randrange(max(len(shape), 1))
        order = draw.sample(range(rank), rank)
        choices = [
            f"{a}.T", f"{a}.ravel()", f"{a}.reshape(-1)", f"np.expand_dims({a}, {axis})",
            f"np.transpose({a}, {order})", f"np.flip({a}, {axis})", f"np.squeeze({a})",
            f"np.roll({a}, {draw.randint(-3, 3)}, axis={axis})", f"np.moveaxis({a}, {axis}, 0)",
            f"np.broadcast_to({a}, {(draw.randint(1, 3), *shape)})", f"np.tile({a}, 2)",
            f"np.repeat({a}, 2, axis={axis})", f"np.pad({a}, 1)", f"{a}.reshape({shape[::-1]})",
            f"np.diagonal({a})", f"np.diff({a}, axis={axis})", f"{a}.copy()", f"np.atleast_2d({a})",
            f"np.rot90({a})", f"np.triu({a})", f"np.swapaxes({a}, 0, {axis})",
            f"np.gradient({a}, axis={axis})",
        ]  # fmt: skip
        return f"{self.new()} = {draw.choice(choices)}"

    def _join(self) -> str:
        a = self.array(1)
        if not a:
            return ""
        mine = self.values[a].shape
        b = self.one(lambda v: isinstance(v, np.ndarray) and v.shape == mine)
        axis = self.draw.randrange(len(mine))
        name = self.draw.choice([f"concatenate(({a}, {b}), {axis})", f"stack(({b}, {a}), {axis})"])
        return f"{self.new()} = np.{name}"

    def place(self, a: str) -> str:
        """An index into `a`, basic or not."""
        parts, draw = [], self.draw
        for n in self.values[a].shape:
            kind = draw.choice(["all", "number", "slice", "step", "stop"])
            low = draw.randrange(max(n, 1))
            if kind == "number" and n:
                parts.append(str(draw.choice([low, low - n])))
            elif kind == "slice":
                parts.append(f"{low // 2}:{max(n - low // 3, 0)}")
            elif kind == "step":
                parts.append(draw.choice(["::2", "::-1", "1::3"]))
            elif draw.random() < 0.25 and n:
                picks = [draw.randrange(-n, n) for _ in range(draw.randint(1, 3))]
                parts.append(f"np.array({picks})")
            elif draw.random() < 0.2:
                parts.append("None, :")
            else:
                parts.append(":")
            if draw.random() < 0.15:
                break
        return ", ".join(parts) or "..."

    def _index(self) -> str:
        a = self.array(1)
        if not a:
            return ""
        if self.draw.random() < 0.2 and not self.smooth:
            whole = self.one(lambda v: isinstance(v, np.ndarray) and v.dtype.kind in "iu")
            if whole:
                return f"{self.new()} = {a}[{whole} % {self.values[a].shape[0]}]"
        return f"{self.new()} = {a}[{self.place(a)}]"

    def _choose(self) -> str:
        a, b, c = self.operand(), self.operand(), self.one()
        test = self.draw.choice([f"{c} > 0", f"{c} == {a}", f"np.isnan({c})"])
        text = self.draw.choice(
            [f"where({test}, {a}, {b})", f"clip({c}, 0, 3)", f"minimum({a}, {b})"]
        )
        return f"{self.new()} = np.{text}"

    def _product(self) -> str:
        a, b = self.array(1), self.array(1)
        text = [
            f"{a} @ {b}", f"np.dot({a}, {b})", f"np.outer({a}, {b})", f"{a} @ {b}.T",
            f"np.einsum('i...->...', {a})", f"np.einsum('...i,...i', {a}, {b})",
            f"np.tensordot({a}, {b}, 1)",
        ]  # fmt: skip
        return f"{self.new()} = {self.draw.choice(text)}" if a and b else ""

    def _in_place(self) -> str:
        a = self.one(lambda v: isinstance(v, np.ndarray) and v.flags.writeable and v.size > 0)
        if not a:
            return ""
        index = self.place(a) if self.values[a].ndim else "..."
        sign = self.draw.choice(["=", "+=", "*=", "-="])
        if self.draw.random() < 0.2:
            return f"{a} {sign if sign != '=' else '+='} {self.operand()}"
        return f"{a}[{index}] {sign} {self.operand()}"

    def _cast(self) -> str:
        dtypes = ["f8"] if self.smooth else self.dtypes
        a = self.array(0)
        if not a:
            return ""
        to = self.draw.choice(dtypes)
        # What floats beyond all unsigned ints become depends on NumPy's loop, so on the layout.
        beyond = to[0] == "u" and self.values[a].dtype.kind == "f"
        return f"{self.new()} = {f'np.nan_to_num({a}).clip(0, 99)' if beyond else a}.astype({to!r})"

    def body(self, name: str, factor: str) -> str:
        """A statement that leaves the dtype and shape of a variable as they are."""
        value = self.values[name]
        forms = []
        if self._alone(name):
            forms += [f"{name} = {name} + {factor}", f"{name} = {name} - {factor}"]
        if isinstance(value, np.ndarray) and value.flags.writeable and value.ndim:
            forms += [f"{name}[{self.place(name)}] += {factor}", f"{name} += {factor}"]
        return self.draw.choice(forms) if forms else "pass"

    def _alone(self, name: str) -> bool:
        """Whether no other variable and no argument shares the memory of a variable."""
        mine = self.values[name]
        others = [self.values[n] for n in self.names if n != name]
        return name[0] == "v" and not any(np.shares_memory(mine, other) for other in others)

    def _steady(self) -> str:
        return self.one(
            lambda v: isinstance(v, np.ndarray) and v.dtype.kind in "iuf" and v.ndim <= 2
        )

    def _branch(self) -> str:
        a, c = self._steady(), self.array(0)
        if not a or not c:
            return ""
        test = self.draw.choice([f"{c}.sum() > 1", f"{c}.max() > 2", f"({c} == {c}).all()"])
        text = f"if {test}:\n    {self.body(a, '1')}"
        return text + (f"\nelse:\n    {self.body(a, '2')}" if self.draw.random() < 0.6 else "")

    def _loop(self) -> str:
        a = self._steady()
        if not a:
            return ""
        n = self.draw.choice([2, 3, 40])
        value = self.values[a]
        step = self.body(a, "k" if value.dtype.kind != "f" else "k * 0.5")
        if value.ndim == 1 and value.flags.writeable and value.size and self.draw.random() < 0.5:
            step = f"{a}[k % {value.size}] += {a}[(k + 1) % {value.size}]"
        inner = f"    {step}\n"
        if self.draw.random() < 0.2:
            inner += f"    if {a}.sum() > 5:\n        break\n"
        return f"for k in range({n}):\n{inner}".rstrip()

    def _grid(self) -> str:
        """Loops that write elements, rows and parts of rows at counters, and read what they wrote."""
        a = self.one(
            lambda v: isinstance(v, np.ndarray) and v.ndim == 2 and v.flags.writeable and v.size > 0
        )
        if not a:
            return ""
        draw, (n, m) = self.draw, self.values[a].shape
        b = self.one(lambda v: isinstance(v, np.ndarray) and v.shape == (n, m))
        i, j = f"i % {n}", f"j % {m}"
        rows = [
            f"{a}[{i}]",
            f"{a}[{i}, :]",
            f"{a}[{i}, 1:]",
            f"{a}[{i}, ::-1]",
            f"{a}[{i}, None, 1:-1]",
        ]
        columns = [f"{a}[:, {i.replace(str(n), str(m))}]", f"{a}[1:, {i.replace(str(n), str(m))}]"]
        place = draw.choice([*rows, *columns])
        step = draw.choice([
            f"{place} = {place} - {b}[0, 0]", f"{place} += 1", f"{place} = {place}[..., ::-1]",
            f"{a}[{i}] = {a}[(i + 1) % {n}] + 1", f"{a}[{i}] -= {a}[{i}].sum()",
            f"{a}[{i}, 0] = {a}[(i + 1) % {n}].max()",
        ])  # fmt: skip
        trips = draw.choice([n, 5, 40])
        if draw.random() < 0.4:
            inner = draw.choice([
                f"{a}[{i}, {j}] = {a}[(i + 1) % {n}, {j}] + 1",
                f"{a}[{i}, {j}] += {b}[{i}, (j + 1) % {m}]",
                f"{a}[{j.replace(str(m), str(n))}, 0] -= {b}[{i}, {j}]",
            ])  # fmt: skip
            step += f"\n    for j in range({draw.choice([m, 3, 40])}):\n        {inner}"
        if draw.random() < 0.2:
            step = f"if {a}[{i}, 0] > 1:\n        " + step.replace("\n", "\n    ")
        return f"for i in range({trips}):\n    {step}"

    def _native_loop(self) -> str:
        """One of the library's own forms, which run as Python outside of compiled functions."""
        a, v = self._steady(), self.new()
        if not a or (self.smooth and self.values[a].dtype.kind != "f"):
            return ""
        return self.draw.choice([
            f"{v} = jt.fori_loop(0, 3, lambda i, x: x - x[::-1] // 2 if False else x + x, {a})",
            f"{v} = jt.while_loop(lambda s: s[0] < 4, lambda s: (s[0] + 1, s[1] + s[1]), (0, {a}))[1]",
            f"{v} = jt.cond({a}.sum() > 0, lambda x: x + x, lambda x: x - 1, {a})",
            f"{v} = jt.scan(lambda c, x: (c + x, c), {a}[0], {a})[1]",
            f"{v} = jt.map_fn(lambda x: x * 2, {a})",
        ])  # fmt: skip


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return True


def _made(seed: int, smooth: bool, scalars: bool = True) -> tuple[Maker, str]:
    """A function's text: its arguments, statements, and some of its variables as results."""
    draw = random.Random(seed)
    dtypes = (
        ["f8"]
        if smooth
        else draw.choice([DTYPES, DTYPES, ["f8"], ["f4", "f8", "i8"], ["i4", "f2"]])
    )
    maker = Maker(seed, smooth, dtypes, scalars)
    for _ in range(draw.randint(1, 3)):
        maker.argument()
    for _ in range(draw.randint(1, 10)):
        maker.statement()
    if smooth:
        last = [
            n for n in maker.names if isinstance(maker.values[n], (np.ndarray, np.generic, float))
        ]
        result = " + ".join(f"np.sin({n}).sum()" for n in last[-3:])
    else:
        chosen = draw.sample(maker.names, min(len(maker.names), draw.randint(1, 3)))
        result = f"({', '.join([*chosen, maker.names[-1]])},)"
    lines = [*maker.lines, f"return {result}"]
    head = f"def f({', '.join('abcd'[: len(maker.arguments)])}):\n"
    return maker, head + "".join(f"    {line}\n" for line in lines)


def function_of(text: str, seed: int) -> Callable[..., Any]:
    """The function, with a file that the compiler and tracebacks find its text in."""
    file = f"<program {seed}>"
    linecache.cache[file] = (len(text), None, text.splitlines(True), file)
    space: dict[str, Any] = {"np": np, "jt": jt}
    exec(compile(text, file, "exec"), space)
    return space["f"]


def described(maker: Maker, text: str) -> str:
    given = [
        f"# {n}: {a.dtype}{list(a.shape)} strides {a.strides} writeable {a.flags.writeable}"
        if isinstance(a, np.ndarray)
        else f"# {n}: {a!r}"
        for n, a in zip("abcd", maker.arguments, strict=False)
    ]
    return "\n".join([*given, text])


def digits(maker: Maker) -> float:
    sizes = [np.asarray(maker.values[n]).dtype for n in maker.names]
    sizes = [d for d in sizes if d.kind in "fc"]
    bits = min((np.finfo(d).bits for d in sizes), default=64)
    return {16: 3e-2, 32: 1e-4}.get(bits, 1e-9)


def programs(seed: int) -> Case:
    """Values: all dtypes and layouts, views, in-place writes, branches and loops."""
    maker, text = _made(seed, smooth=False)
    f = function_of(text, seed)
    branches = "    if " in text or "    for " in text
    compiled = jt.jit(f, autograph=branches or seed % 2 == 0)
    return Case(f, compiled, maker.arguments, described(maker, text), digits(maker), maker.scale)


def gradients(seed: int) -> Case:
    """Derivatives of floats, compiled against op by op; a number may be an array without axes."""
    maker, text = _made(seed, smooth=True)
    f = function_of(text, seed)
    arguments = [np.array(a) if isinstance(a, np.ndarray) else a for a in maker.arguments]
    slope = jt.grad(f, tuple(range(len(arguments))))
    compiled = jt.jit(lambda *a: slope(*a), autograph=True)

    def as_arrays(function: Callable[..., Any]) -> Callable[..., Any]:
        return lambda *args: [np.asarray(each) for each in function(*args)]

    return Case(
        as_arrays(slope), as_arrays(compiled), arguments, described(maker, text), 1e-8, maker.scale
    )


def batches(seed: int) -> Case:
    """A function of one example, made one of several by `jt.vmap`. Examples are arrays: a part of an
    array without dims is a number, of which NumPy makes no views."""
    maker, text = _made(seed, smooth=True, scalars=False)
    f = function_of(text, seed)
    rng = np.random.default_rng(seed)
    arguments = [np.asarray(a) + 0.1 * rng.normal(size=(3, *np.shape(a))) for a in maker.arguments]

    def plain(*arrays: Any) -> Any:
        return np.array([f(*(np.array(a[k]) for a in arrays)) for k in range(3)])

    compiled = jt.jit(jt.vmap(f), autograph=True)
    return Case(plain, compiled, arguments, described(maker, text), 1e-8, maker.scale)
