"""What a compiled function shows of itself: the graph of a call, its program, each stage on the way
there. Nothing here runs a call for its result."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from ...ir.graph import Graph
from ...ir.record import replace
from ..messages import errors
from ..messages.errors import JitneyError, TraceAgain, complain
from ..messages.tracebacks import shortened
from .dispatch import Call
from .specialise import alone, follow_call, lower, prepare, ptx, trace_call, watching

if TYPE_CHECKING:
    import inspect

    from ..data.shapes import ShapeDtype
    from ..explain.explanation import Explanation
    from ..explain.lowered import Lowered
    from ..export.cfunc import CFunction
    from ..lengths.found import Lengths
    from ..stages.drawing import Drawing
    from ..stages.exploring import Exploration
    from ..stages.stages import Stage, Stages
    from .buckets import Bucket
    from .cache_info import CacheInfo
    from .entry import Entry
    from .function import JitFunction

T = TypeVar("T")

# Whether a call is only looked at: for the sizes that it has, or with lengths, as the call would be.
LookedAt = bool | Literal["lengths"]


class Inspection:
    """The methods of a `JitFunction` that look inside."""

    if TYPE_CHECKING:
        __name__: str
        _signature: inspect.Signature | None

        def _looked_at(
            self,
            work: Callable[[JitFunction, Call], T],
            args: Sequence[Any],
            kwargs: dict[str, Any],
            looked_at: LookedAt = True,
        ) -> T: ...

        _lengths: Lengths | None
        _twins: dict[str, JitFunction]
        _buckets: dict[Hashable, Bucket]
        _latest: Entry | None
        _misses: int
        _ahead: int

    @shortened
    def trace(self, *args: Any, **kwargs: Any) -> Graph:
        """The graph of a call with these arguments (arrays, or `jt.ShapeDtype`), as traced; with
        `check`, as it is watched: its last output tells whether something is to be looked for."""

        def traced(function: JitFunction, call: Call) -> Graph:
            with function._lock:
                graph = trace_call(function, call)[0].graph
            return watching(function, graph) or graph

        return self._looked_at(traced, args, kwargs)

    @shortened
    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """The compiled form of a call: `.graph`, `.kernels`, `.llvm()`, `.asm()`, `.explain()`; and
        `.compile()`, which has the function keep it."""
        try:
            lowered = self._looked_at(lower, args, kwargs, looked_at="lengths")
        except (JitneyError, TraceAgain):
            if self._lengths is None:
                raise
            lowered = self._looked_at(lower, args, kwargs)  # as calls are, then: for this size
        return replace(lowered, keep=partial(self.compile, (args, kwargs)))

    @shortened
    def compile(self, *signatures: Any, processes: int = 1) -> Any:
        """Compile for calls that are still to come: the first of each kind is a hit then, here and, by
        the cache on disk, in processes that follow. Gives the function.

        A signature is what a call is given: a tuple of arguments, a dict of arguments by name, both in
        a tuple `((x, y), {"n": 3})`, or a single argument that is none of these. Arrays may be
        `jt.ShapeDtype`s, which stand for C-contiguous ones; numbers stand for numbers of their class.
        With `processes` so many processes compile at a time: those are forked (on Linux), and hand on
        what they made by the cache on disk.

        Raises what tracing and compiling raise; with `processes` ArgumentError where there is no cache
        on disk or no fork.

        >>> f = jit(lambda x, n: (x * n).sum())
        >>> f.compile((ShapeDtype(8), 2), (ShapeDtype(9), 2)).cache_info()[:2]
        (0, 2)
        >>> f(np.ones(9), 4), f.cache_info().hits
        (np.float64(36.0), 1)
        """
        calls = [as_call(signature) for signature in signatures]
        jobs = [partial(self._prepare, args, kwargs) for args, kwargs in calls]
        if processes != 1:
            from ...runtime.processes import cannot_share, in_processes

            why = cannot_share(processes)
            if why:
                complain(errors.ArgumentError, why, "leave out `processes`.")
            in_processes(jobs, processes)
        for job in jobs:  # from disk, if other processes have left it there
            job()
        return self

    def _prepare(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        from ..lengths.sized import ROUNDS, OneSize  # which few functions have

        for _ in range(ROUNDS):
            with suppress(OneSize):
                return self._looked_at(prepare, args, kwargs, looked_at=False)
        return self._looked_at(prepare, args, kwargs, looked_at=False)  # for the size that it has

    @shortened
    def cfunc(
        self, signature: str, *, size: int | None = None, data: ShapeDtype | None = None
    ) -> CFunction:
        """The function as one that C calls, with no Python and no GIL: `.address`, and `.ctypes` for
        `scipy.LowLevelCallable` (`quad`, `generic_filter`, ...).

        `signature` is C's or Numba's: "double (double, int64_t)", "float64(float64)". The function gets
        numbers of NumPy's with these types. "double (int, double *)", which `quad` has for functions of
        several numbers, gives it as many numbers as it has parameters, or with `size` one array;
        "int (double *, intptr_t, double *, void *)" gives it one array of that `size`, and stores the
        number that it returns, as `generic_filter` wants it. A `void *` at the end is not looked at, or
        is an array as `data` says. What the function reads from outside is compiled in as it is.

        After an error (an index out of bounds, an assertion) the result is NaN, or 0 is returned where
        the result is stored; so it is if the count that comes along is another. Raises ExportError for
        functions that change what is outside, call Python, need much memory, or return an array, and
        ArgumentError for other signatures.

        >>> square = jit(lambda x: x * x).cfunc("double (double)")
        >>> square(3.0), type(square.address)
        (9.0, <class 'int'>)
        """
        from ..export.cfunc import cfunc, examples, parsed  # when it is asked for: no call needs it

        asked = parsed(signature)
        arity = None if self._signature is None else len(self._signature.parameters)
        args = examples(asked, arity, size, data)
        return self._looked_at(lambda f, call: cfunc(alone(f, call), asked, size), args, {})

    @shortened
    def explain(self, *args: Any, **kwargs: Any) -> Explanation:
        """What became of a call: its kernels in the order in which they run, with the loops and branches
        around them, the ops and lines that each computes, bytes, flops, and the time that it takes.

        The call is run some times for that, on copies of the arrays and without effects on anything; one
        that calls Python, draws random numbers or has native containers is not run, and has no times,
        nor has one of `jt.ShapeDtype`s. The result is a string with `.kernels` and `.to_dict()`.
        """
        return self.lower(*args, **kwargs).explain()

    @overload
    def stages(self, *args: Any, after: str, arch: str | None = None, **kwargs: Any) -> Stage: ...
    @overload
    def stages(self, *args: Any, arch: str | None = None, **kwargs: Any) -> Stages: ...

    @shortened
    def stages(
        self, *args: Any, after: str | None = None, arch: str | None = None, **kwargs: Any
    ) -> Any:
        """What a call with these arguments (arrays, or `jt.ShapeDtype`) is at each stage of its way: the
        source, the traced graph, the graph after each pass, loops, memory, LLVM text, assembly.

        The result is a mapping of names to stages; with `after`, the stage of that name alone: "trace",
        "simplify", "fuse", ... Each has `str`, shows itself in a notebook, and has `save(path)`. With
        `arch` ("sm_90") it is the way to PTX for that GPU, which need not be here.

        Raises KeyError for a stage that there is not.

        >>> print(jit(lambda x: x * 2 + 1).stages(np.ones(8), after="fuse"))  # doctest: +ELLIPSIS
        kernel mul_add_0: 1 nest, ...
          for i0 in range(8):
            output0[i0] = fma(x[i0], 2.0, 1.0)...
        """

        from ..stages.making import make_stages  # when it is asked for: no call needs it

        def followed(function: JitFunction, call: Call) -> Stages:
            return make_stages(self.__name__, *follow_call(function, call, arch))

        stages = self._looked_at(followed, args, kwargs)
        return stages if after is None else stages[after]

    @shortened
    def explore(self, *args: Any, arch: str | None = None, **kwargs: Any) -> Exploration:
        """Source, loops and assembly of a call with these arguments side by side: in a notebook, or a
        page (`f.explore(x).save("f.html")`), pointing at a line lights up its loops and instructions,
        and back. With `arch` ("sm_90") the PTX for that GPU, of which functions have lines, and
        instructions not.
        """

        from ..stages.exploring import Exploration

        def followed(function: JitFunction, call: Call) -> Exploration:
            return Exploration(self.__name__, *follow_call(function, call, arch, lines=True))

        return self._looked_at(followed, args, kwargs)

    @shortened
    def draw(self, *args: Any, arch: str | None = None, **kwargs: Any) -> Drawing:
        """A picture of the graph that is compiled for these arguments, with kernels as boxes; see
        `Graph.draw`. `f.trace(x).draw()` is one of the graph as traced."""

        from ..stages.making import drawing

        def followed(function: JitFunction, call: Call) -> Drawing:
            return drawing(*follow_call(function, call, arch))

        return self._looked_at(followed, args, kwargs)

    @shortened
    def ptx(self, *args: Any, arch: str = "sm_90", **kwargs: Any) -> str:
        """The kernels of a call with these arguments for an NVIDIA architecture ("sm_75" to "sm_120"),
        as PTX. Needs no GPU.

        >>> jit(lambda x: x + 1).ptx(np.ones(8)).count(".entry")
        1
        """

        return self._looked_at(partial(ptx, arch=arch), args, kwargs)

    def cache_info(self) -> CacheInfo:
        """Hits, misses, and every specialisation with the reason why it was made."""
        own = [self, *self._twins.values()]
        buckets = [bucket for function in own for bucket in list(function._buckets.values())]
        from .cache_info import cache_info  # when it is asked for: no call needs it

        return cache_info(buckets, sum(f._misses for f in own), sum(f._ahead for f in own))

    def explain_recompile(self) -> str:
        """Why the latest specialisation was made: which argument, by path, differs in what from the
        nearest one that was there, or which guard did not hold.

        >>> f = jit(lambda p: p["w"].sum())
        >>> f({"w": np.ones(2)}), f({"w": np.ones(3)})
        (np.float64(2.0), np.float64(3.0))
        >>> f.explain_recompile()
        "shape of `p['w']` changed from f64[2] to f64[3]"
        """
        return "nothing is compiled" if self._latest is None else self._latest.reason


def as_call(signature: Any) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments, and those by name, that a signature stands for; see `Inspection.compile`."""
    if isinstance(signature, dict):
        return (), signature
    if not isinstance(signature, tuple) or hasattr(signature, "_fields"):
        return (signature,), {}
    match signature:
        case (tuple(args), dict(kwargs)) if all(isinstance(name, str) for name in kwargs):
            return args, kwargs
    return signature, {}
