"""What `jit` takes, options and a function, is checked before anything is made of it.

The options are one record. It reaches whoever needs it as a parameter: the trace has its part of them
(`TraceOptions`), and so have the compilers (`CompileOptions`). Keys of what is kept have the whole
record.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Literal

from ...ir.record import fields, record
from ...runtime.devices import CPU, Device
from ...runtime.options import CompileOptions
from ..core.current import TraceOptions
from ..messages import errors
from ..messages.errors import complain

if TYPE_CHECKING:
    from ...codegen.module import Donation

Backend = Literal["native", "interpreter"]
Save = Literal["min_cut"] | int | None
InPlace = Literal["require"] | None
Fallbacks = Literal["python"] | None
Check = Literal["bounds", "inf", "nan", "overflow", "ranks", "trace"]
Dynamic = Literal["auto"] | tuple[tuple[str, str], ...] | None
Checks = bool | Check | Iterable[Check] | None


@record
class Options:
    """The options of `jit`, as its docstring has them, in their normal forms.

    Raises ValueError for a value that an option does not have.
    """

    static_argnums: tuple[int, ...] = ()
    static_argnames: tuple[str, ...] = ()
    donate_argnums: tuple[int, ...] = ()
    autograph: bool = True
    check: tuple[str, ...] = ()
    fastmath: bool = False
    deterministic: bool = True
    boundscheck: bool = True
    device: Device | None = None
    backend: Backend = "native"
    save: Save = None
    inplace: InPlace = None
    autotune: bool | None = None
    fallback: Fallbacks = None
    threads: int | None = None
    dynamic: Dynamic = None

    def __post_init__(self) -> None:
        save, autotune = self.save, self.autotune
        if self.device not in (None, CPU) and self.backend == "interpreter":
            raise ValueError(f"backend='interpreter' runs on the CPU, not on {self.device}")
        if self.backend not in ("native", "interpreter"):
            raise ValueError(f"backend={self.backend!r}: choose 'native' or 'interpreter'")
        if save not in (None, "min_cut") and not (type(save) is int and save >= 0):
            raise ValueError(f"save={save!r}: choose 'min_cut' or a number of bytes")
        if self.inplace not in (None, "require"):
            raise ValueError(f"inplace={self.inplace!r}: choose None or 'require'")
        if self.fallback not in (None, "python"):
            raise ValueError(f"fallback={self.fallback!r}: choose None or 'python'")
        threads = self.threads
        if threads is not None and not (type(threads) is int and 1 <= threads <= 1024):
            raise ValueError(f"threads={threads!r}: choose a number from 1 to 1024, or None")
        if threads is not None and (self.backend != "native" or self.device not in (None, CPU)):
            raise ValueError(f"threads={threads} is for compiled code on the CPU")
        if not isinstance(self.boundscheck, bool):
            raise ValueError(f"boundscheck={self.boundscheck!r}: choose True or False")
        if autotune is not None and not isinstance(autotune, bool):
            raise ValueError(f"autotune={autotune!r}: choose True, False or None")

    def trace(self, on_cpu: bool) -> TraceOptions:
        """What the trace is to know."""
        marked = self.save is not None
        bounds = self.boundscheck or "bounds" in self.check
        ranks = "ranks" in self.check
        return TraceOptions(bounds, marked, self.autograph, not self.fastmath, on_cpu, ranks)

    @property
    def watched(self) -> frozenset[str]:
        """What the values are watched for."""
        return frozenset(self.check) & {"nan", "inf", "overflow"}

    def compile(self, donations: tuple[Donation, ...] = ()) -> CompileOptions:
        """What the compilers are to know, with the inputs that they may overwrite."""
        return CompileOptions(
            self.fastmath, self.deterministic, self.autotune, donations, self.threads or 0
        )

    def key(self) -> str:
        """All of them, for the names of what is kept on disk."""
        return repr(self)

    def __str__(self) -> str:
        """Those that are not as they are by default, as a call of `jit` has them."""
        values = {n: getattr(self, n) for n in fields(self)}
        values = {n: v for n, v in values.items() if v != getattr(DEFAULTS, n)}
        if self.device is not None:
            values["device"] = str(self.device)
        return ", ".join(f"{name}={value!r}" for name, value in values.items())


DEFAULTS = Options()


def in_sequence(value: Any) -> tuple[Any, ...]:
    """One position or name, several, or None, as a tuple."""
    return (value,) if isinstance(value, (int, str)) else tuple(value or ())


def annotated(function: Callable[..., Any], args: Any, kwargs: Any, work: Callable[[], Any]) -> Any:
    """What `work`, the call of a function, gives; with the shapes and dtypes that annotations tell."""
    if not getattr(function, "__annotations__", None):
        return work()
    from ..checks.annotations import Annotations  # few functions have such

    told = Annotations(function)
    told.arguments(args, kwargs)
    result = work()
    told.result(result)
    return result


def check_function(function: Any) -> None:
    """Raise TransformError, with the remedy, for what cannot be traced as a function."""
    name = getattr(function, "__qualname__", repr(function))
    if isinstance(function, (classmethod, staticmethod)):
        complain(
            errors.TransformError,
            f"jit was given a {type(function).__name__} object",
            f"put @{type(function).__name__} above @jt.jit, not below it.",
        )
    if not callable(function):
        complain(
            errors.TransformError,
            f"jit needs a function, not {type(function).__name__}",
            "write jt.jit(f) or @jt.jit; options are keywords: @jt.jit(static_argnames='n').",
            operands={"function": function},
        )
    if inspect.iscoroutinefunction(function):
        kind = "an async function"
    elif inspect.isasyncgenfunction(function):
        kind = "an async generator"
    elif inspect.isgeneratorfunction(function):
        kind = "a generator"
    else:
        return
    complain(
        errors.TransformError,
        f"{name} is {kind}: its body does not run when it is called, so there is nothing to trace",
        "jit the plain functions that it calls; let them return lists or tuples of arrays.",
    )
