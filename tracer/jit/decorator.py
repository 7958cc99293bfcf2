"""`jit`: the decorator, and what its options mean."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ParamSpec, TypeVar, overload

from ...runtime.config import checks
from ...runtime.devices import Device, parse_device
from ..messages.tracebacks import shortened
from .binding import BoundJitFunction
from .function import JitFunction
from .options import Backend, Checks, Fallbacks, InPlace, Options, Save, in_sequence

P = ParamSpec("P")
R = TypeVar("R")


@overload
def jit(
    function: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    autograph: bool = ...,
    check: Checks = ...,
    fastmath: bool = ...,
    deterministic: bool = ...,
    boundscheck: bool = ...,
    device: str | Device | None = ...,
    backend: Backend = ...,
    save: Save = ...,
    inplace: InPlace = ...,
    autotune: bool | None = ...,
    fallback: Fallbacks = ...,
    threads: int | None = ...,
    dynamic: Any = ...,
) -> JitFunction[P, R]: ...
@overload
def jit(
    function: None = None,
    *,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Sequence[str] | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    autograph: bool = ...,
    check: Checks = ...,
    fastmath: bool = ...,
    deterministic: bool = ...,
    boundscheck: bool = ...,
    device: str | Device | None = ...,
    backend: Backend = ...,
    save: Save = ...,
    inplace: InPlace = ...,
    autotune: bool | None = ...,
    fallback: Fallbacks = ...,
    threads: int | None = ...,
    dynamic: Any = ...,
) -> Callable[[Callable[P, R]], JitFunction[P, R]]: ...


@shortened
def jit(
    function: Callable[P, R] | None = None,
    *,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    autograph: bool = True,
    check: Checks = False,
    fastmath: bool = False,
    deterministic: bool = True,
    boundscheck: bool = True,
    device: str | Device | None = None,
    backend: Backend = "native",
    save: Save = None,
    inplace: InPlace = None,
    autotune: bool | None = None,
    fallback: Fallbacks = None,
    threads: int | None = None,
    dynamic: Any = None,
) -> Any:
    """`function`, compiled for what it is called with. Works as a decorator, with and without options.

    >>> @jit(static_argnames="axis")
    ... def softmax(x, axis=-1):
    ...     e = np.exp(x - x.max(axis, keepdims=True))
    ...     return e / e.sum(axis, keepdims=True)
    >>> softmax(np.zeros((2, 4)))                # float64[2, 4]
    array([[0.25, 0.25, 0.25, 0.25],
           [0.25, 0.25, 0.25, 0.25]])
    >>> softmax.cache_info().misses
    1

    The first call with new shapes, dtypes, structure or static values traces the function and
    compiles it; later ones run native code. Arguments may be arrays of any shape and layout, NumPy and
    Python scalars, and pytrees of them; results have the shapes and dtypes that NumPy gives the plain
    function. Arrays of other libraries and buffers (`__array__`, `memoryview`, DLPack) count as
    what `np.asarray` makes of them; their memory is shared where they let it be. A Python scalar is an
    input too (its value is not compiled in) and promotes as Python scalars do.

    Raises ValueError for a value that an option does not have, TransformError for what cannot be traced
    as a function (a class method, a generator, a coroutine), StaticArgumentError for a parameter that
    the function does not have. Calls raise what the plain function would (IndexError, ValueError, ...),
    and for what cannot be compiled one of `jt.errors`, with the line and the remedy.

    static_argnums, static_argnames
        Parameters that are compiled in: any hashable value. A new value compiles anew. Python's bools,
        strings, functions, classes, dtypes, enums, slices and ranges are static without being named, and
        numbers are where a shape, a range, an axis or a slice asks for them.
    donate_argnums
        Arrays that the caller gives up: a result may take the place of one of its shape and dtype, and
        then is that very array, with new elements. It is a permission: after the call the elements of
        donated arrays, and of what shares memory with them, mean nothing. On a GPU the result is a new
        DeviceArray in the memory of the donated one, every later use of which raises DeviceError.
    inplace
        "require": raise InPlaceError, with the line and the reason, if an array that is updated or
        carried by a loop has to be copied. `f.explain(...)` lists the copies.
    autograph
        Python's own control flow may depend on traced values: `if`, `while`, `for` over ranges and
        arrays, `break`, `continue`, early `return`, `and`, `or`, `not`, conditional expressions and
        `assert` become ops, here and in the functions of yours that are called. It reads the source;
        functions without one (`exec`, a prompt that keeps none) are traced as with False: Python runs
        them as they stand, and a condition that is traced is an error.
    check
        What compiled code is watched for, on the CPU: some of "nan", "inf", "overflow", "bounds",
        "ranks", "trace", or True for all but "ranks". The first op that makes NaN (infinity) of
        numbers raises NonFiniteError with its line, the iteration and the operands, in backward code
        too; NumPy's integers that do not fit raise IntegerOverflowError. What np.where does not take
        does no harm. It costs some percent where all is well; where something is found, or NaN was
        given, the call runs once more, slowly. "bounds": indices are checked whatever `boundscheck`
        says. "ranks": arrays of different ranks, but for numbers, are not broadcast together.
        "trace": the function is traced twice, and ImpureFunctionError raised, with the line, if the two
        differ. `jt.config.check` asks it of all functions; `jt.config.allow` names scopes that may.
    fastmath
        Allow results that differ from NumPy's by more than rounding. Loops over elements may add
        (`s += x[i] * y[i]`) in any order, which makes vectors of sums. float32's `1 / np.sqrt(x)` is
        made of the CPU's estimate (some 1e-7 off; NaN where x is 0 or infinite). On GPUs with tensor
        cores, products of float32 matrices round their operands to 11 bits (TF32).
    deterministic
        Results have the same bits from run to run. False: on a GPU, floats that are added at indices
        (`np.add.at`, gradients of indexing) are added as they come, by atomics, which is faster. The
        CPU's results are always deterministic.
    boundscheck
        Index arrays and traced integers that are out of range raise IndexError. False: they are not
        checked; one that is out of range all the same stands for the nearest that is in range, so that
        no other memory is at risk. `jt.at(x)[i].get(mode=...)` chooses for one place.
    device
        "cpu", "cuda" or "cuda:0": where to run; arguments that are elsewhere are brought there, and
        results stay there. None: where the arrays are, or what `with jt.device(...)` chose, or the CPU.
    backend
        "native", or "interpreter": run the traced graph op by op with NumPy, for debugging.
    save
        What the backward part of a derivative finds in memory, and what it computes again. None:
        everything that it reads is kept. "min_cut": the least memory that computing cheap ops twice can
        reach. A number of bytes: as much again as keeps the predicted peak of temporary memory
        below it. `f.lower(...).plan` tells the choice. See also `jt.checkpoint`.
    autotune
        Let a GPU measure which of several kernels for a step is fastest, when the function is compiled:
        tiles of products and of attention (or NVIDIA's cuBLASLt for products, where it is installed:
        see `jt.config.cublas`), threads of a block and of a row, parts of long sums. It takes some
        tenths of a second for each new kernel, and is remembered on disk. Sums may be associated
        otherwise than without it, so results may differ by rounding, as they may from one kind of GPU
        to another; they do not from call to call. None: as `jt.config.autotune` says, which is off
        unless you switch it on. On the CPU there is nothing to choose.
    fallback
        "python": arguments for which the function cannot be compiled run it as Python, after one
        FallbackWarning with the reason. None: that is an error.
    threads
        How many threads share a kernel at most, on the CPU: 1 to 1024. None: as many as
        `jt.config.threads` says. Results are the same. `f.explain(...)` shows it, and it is for asking
        whether fewer would be faster.

    dynamic
        Which first axes may have any length, with one program for all of them (on the CPU):
        `{"x": {0: "batch"}}`, by the names of arguments, or "auto", which compiles the first two sizes
        of an axis for themselves and then one program for all others. Axes of one name have one length.
        In the function such an array is one whose length is a value: `x.shape[0]` is a traced int. Where
        loops cannot end at such a length (a sort, a loop over scalars, `x @ x.T`), there is a program
        for up to 64 rows, 256, 1024, 2048, ..., which works on a copy. What cannot be compiled so
        (assignment to arguments, functions that need the length, ...) is compiled for each size, and
        `cache_info()` says why. False or None: each size is compiled for itself.

    What the function returns. Fresh arrays, except: an argument or closed-over array that is returned
    itself comes back as the same object, and a view of it as a view of the caller's array, as in
    NumPy. Views of arrays made inside come back as separate arrays. 0-d results are NumPy scalars
    where NumPy gives scalars; arithmetic among Python scalars gives Python scalars.

    Assignment into arguments and closed-over arrays changes them, when the call has succeeded. If
    arrays that are assigned to overlap others, the plain Python function runs instead.

    Values read from globals, closures and attributes are guarded: a change traces anew; arrays among
    them are read at each call. `jitney.tracer.captures` tells what cannot be seen. Printing happens
    while tracing only.

    What the function changes of what it reaches (attributes of objects, elements of containers, globals,
    variables of enclosing functions) is as Python would have left it after each call; after a call that
    raises it is as it was before. A method is compiled for its class, for all objects alike.

    >>> class Counter:
    ...     def __init__(self):
    ...         self.n = 0
    ...     @jt.jit
    ...     def add(self, x):
    ...         self.n += x
    ...         return self.n * 10.0
    >>> counter = Counter()
    >>> counter.add(2.0), counter.add(3.0), counter.n
    (20.0, 50.0, 5.0)

    >>> jt.jit(lambda x: np.exp(x).sum())(np.zeros(3))
    np.float64(3.0)
    """
    options = Options(
        static_argnums=in_sequence(static_argnums),
        static_argnames=in_sequence(static_argnames),
        donate_argnums=in_sequence(donate_argnums),
        autograph=autograph,
        check=checks("check", check),
        fastmath=fastmath,
        deterministic=deterministic,
        boundscheck=boundscheck,
        device=None if device is None else parse_device(device),
        backend=backend,
        save=save,
        inplace=inplace,
        autotune=autotune,
        fallback=fallback,
        threads=threads,
        dynamic=None if dynamic is None else _lengths(dynamic),
    )

    @shortened
    def jitted(function: Callable[P, R]) -> JitFunction[P, R]:
        return JitFunction(function, options)

    return jitted if function is None else jitted(function)


def _lengths(dynamic: Any) -> Any:
    from ..lengths.found import normal_form  # few functions have such

    return normal_form(dynamic)


def unbound(
    function: Callable[..., Any], args: Sequence[Any]
) -> tuple[JitFunction[..., Any], tuple[Any, ...]]:
    """The compiled form of a function, and the arguments that it takes: of a method the object, too."""
    if isinstance(function, BoundJitFunction):
        method: JitFunction[..., Any] = function._child
        return method, (function.__self__, *args)
    return function if isinstance(function, JitFunction) else jit(function), tuple(args)
