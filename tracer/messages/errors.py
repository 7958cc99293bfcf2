"""What a user can do wrong, one class per kind, and how each is said.

Every class also is the built-in exception that plain NumPy code would have met, so `except
TypeError` keeps working. Messages are composed by `complain`: what happened, the user's line with
its source text, the operands with shapes and dtypes, and in the last line, the one to read, where
it is and what to write instead.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from types import CodeType, FunctionType
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

import numpy as np

from .source import is_user_frame, shown_file, source_text, user_line

if TYPE_CHECKING:
    from ...ir.graph import SourceLine


F = TypeVar("F", bound=Callable[..., Any])
RAISED = "_jitney_raised"  # the attribute of exceptions that compiled code can raise


class TracerBase:
    """Base of tracers, by which they are told where their class is not known yet."""

    __slots__ = ()

    def _described(self) -> str:
        """What messages call the value: kind, dtype and shape."""
        return type(self).__name__

    def _behind(self) -> frozenset[int] | None:
        """Which parameters it was computed of, see `core.asked`."""
        return None

    def _computation(self, row: bool = False) -> Any:
        """How the number is computed, or the `row` of them, see `core.computations`."""
        return None


class JitneyError(Exception):
    """Base of the errors that the tracer raises about user code. `what` is what happened, `asked` tells
    of which parameters the values were computed that it is about."""

    line: SourceLine | None = None
    what: str = ""
    asked: tuple[frozenset[int] | None, ...] = ()
    wanted: tuple[
        Any, ...
    ] = ()  # how numbers that it asks for are computed, see `core.computations`


class TraceAgain(Exception):
    """No error: what a trace has found calls for another trace, of another kind."""


class WantsHeap(TraceAgain):
    """The result is or holds an object, a container of outside has to be a native one, or an array of
    outside is assigned to in a region: the function has to be traced with a heap."""


class ChangedArgument(TraceAgain):
    """The function changes, or gives back, a container that it was given, in the place `place`."""

    def __init__(self, place: int | str) -> None:
        super().__init__(place)
        self.place = place


class Refusal(Exception):
    """A mark of those that plain Python would not have raised. Transformed code lets no handler of the
    user's take them: the program would go on as it would not have."""


class Anew(Refusal):
    """Tracing of a function begins anew, with something known that it has just learned."""


class TracerBoolError(JitneyError, Refusal, TypeError):
    """`if`, `while`, `and`, `or`, `not` or `bool()` of a traced value."""


class ArrayTruthError(JitneyError, ValueError):
    """`if`, `while`, `and`, ... of an array with several elements: ambiguous in NumPy too."""


class TracerConversionError(JitneyError, Refusal, TypeError):
    """`float()`, `int()`, `complex()`, `np.asarray()`, `np.zeros(n)[0] = x` of a traced value."""


class TracerIndexError(JitneyError, Refusal, TypeError):
    """A traced value where Python needs an integer: `range(n)`, a shape, a list index."""


class TracerIterationError(JitneyError, Refusal, TypeError):
    """Iteration over a 0-d traced value."""


def is_answered(first: Exception, later: Exception) -> bool:
    """Whether `first` asked for a value that was compiled in when `later` happened, which matters."""
    asking = (TracerBoolError, TracerConversionError, TracerIndexError, TracerIterationError)
    return isinstance(first, asking) and not isinstance(later, asking)


class LeakedTracerError(JitneyError, Refusal, ValueError):
    """A tracer outlived the call that it stands for, or was used in another thread."""


class ArgumentError(JitneyError, Refusal, TypeError):
    """An argument that is no array, scalar or pytree of them (strings, objects, object dtype)."""


class TracerAttributeError(JitneyError, AttributeError):
    """An attribute or method of arrays that a traced value does not have."""


class StaticArgumentError(JitneyError, Refusal, TypeError):
    """A static argument that cannot be a key: unhashable, or an array."""


class UnsupportedFunctionError(JitneyError, Refusal, TypeError):
    """A NumPy function, method or option that jitney does not trace."""


class DTypeError(JitneyError, TypeError):
    """Dtypes that do not go together, or that jitney does not know."""


class CastingError(DTypeError):
    """An in-place operation whose result does not fit the dtype of its destination."""


class ShapeError(JitneyError, ValueError):
    """Shapes that do not go together."""


class LinearAlgebraError(ShapeError, np.linalg.LinAlgError):
    """Shapes that linear algebra refuses: a matrix that is not square, or no matrix at all."""


class DynamicShapeError(JitneyError, Refusal, TypeError):
    """A result whose shape would depend on values: boolean masks, nonzero, unique."""


class UnboundedLengthError(DynamicShapeError):
    """An array that a loop makes, whose largest length is not known: a number to be computed before."""


class AxisBoundsError(JitneyError, np.exceptions.AxisError):
    """An axis that the array does not have."""


class BoundsError(JitneyError, IndexError):
    """An index, known while tracing, that is out of range, or too many indices."""


class ReadOnlyError(JitneyError, ValueError):
    """Assignment to a read-only argument or view."""


class OuterMutationError(JitneyError, Refusal, ValueError):
    """Assignment, inside a branch or loop body, to an array that lives outside of it."""


class CarryError(JitneyError, Refusal, TypeError):
    """A loop's carry or a branch's result whose structure, shape or dtype changes."""


class TensorArrayError(JitneyError, AssertionError, ValueError):
    """A second write to an element of a TensorArray, or a read of one that was not written.

    With an index known only at run time compiled code raises AssertionError for it.
    """


class CaseError(JitneyError, AssertionError):
    """`case` where no predicate is True and there is no default, or several are (exclusive=True)."""


class UndefinedVariableError(JitneyError, Refusal, UnboundLocalError):
    """Under autograph: a variable that has a value on some paths only, which run time decides."""


class TransformError(JitneyError, Refusal, TypeError):
    """A function that a transformation cannot take: generators, a non-scalar loss, ..."""


class UnboundAxisError(JitneyError, Refusal, NameError):
    """`jt.psum(x, "i")` and its kin where no `vmap` or `shard_map` around has an axis named "i"."""


class ConflictError(JitneyError, Refusal, ValueError):
    """Iterations of a `jt.prange` that touch an element which one of them writes."""


class EndlessRecursionError(JitneyError, Refusal, RecursionError):
    """A function that calls itself, and whether it ends is known only when the code runs."""


class InPlaceError(JitneyError, Refusal, ValueError):
    """`jit(inplace="require")`: an array is copied that should be updated where it is."""


class NonFiniteError(JitneyError, FloatingPointError):
    """`jit(check="nan")`, `jit(check="inf")`: an op made NaN, or infinity, of numbers that are none."""


class IntegerOverflowError(JitneyError, OverflowError):
    """`jit(check="overflow")`: an op computed integers that do not fit into their dtype."""


class FailedAssertion(JitneyError, AssertionError, ValueError):
    """`jt.assert_shape` and its kin: a rank, shape or dtype is not what the program says it is."""


class ImpureFunctionError(JitneyError, ValueError):
    """A function whose trace depends on more than its arguments: random numbers, changing state."""


class ExportError(JitneyError, ValueError):
    """A function that cannot leave the process, or a file that is none of an exported function."""


class SettingError(JitneyError, ValueError):
    """A setting of a library's function or object that makes no sense: a decay of 2, steps below 1."""


class RecompileWarning(UserWarning):
    """A function is traced again and again because a value that it reads keeps changing."""


class FallbackWarning(UserWarning):
    """A function that cannot be compiled runs as Python, as `jit(fallback="python")` asks."""


for _kind in [kind for kind in vars().values() if isinstance(kind, type)]:
    if issubclass(_kind, (JitneyError, Refusal, RecompileWarning, FallbackWarning)):
        _kind.__module__ = "jitney.errors"  # where users find them: tracebacks and pickles say so


def complain(
    kind: type[Exception],
    what: str,
    remedy: str,
    *,
    operands: Mapping[str, Any] | None = None,
    details: Sequence[str] = (),
    line: SourceLine | None = None,
    cause: BaseException | None = None,
    asks: Sequence[Any] = (),
) -> NoReturn:
    """Raise `kind`, one of these or of Python's own. `what` happened; `remedy` says what to write
    instead, as a full sentence. Integers that it `asks` for, or among its operands, may be known at
    another trace, where shapes need them.

    `operands` are shown by name with shape and dtype, `details` as they are. `line` defaults to the
    user's current line.
    """
    line = line or user_line(2)
    text = [what]
    for name, operand in (operands or {}).items():
        text.append(f"  {name}: {describe(operand)}")
    text += [f"  {detail}" for detail in details]
    where = ""
    if line is not None:
        text.append(f"  at {line} in {line.function}{line.named}")
        source = source_text(line)
        if source:
            text.append(f"    {source}")
        where = f"{shown_file(line.file)}:{line.line}: "
        text[0] = f"{where}{what}"
    text.append(f"{where}{remedy}")
    error = kind("\n".join(text))
    if isinstance(error, JitneyError):
        error.line, error.what = line, what
        traced = [x for x in (*(operands or {}).values(), *asks) if isinstance(x, TracerBase)]
        error.asked = tuple([x._behind() for x in traced])
        if isinstance(error, (DynamicShapeError, TracerIndexError)):
            computed = [x._computation(any(x is a for a in asks)) for x in traced]
            error.wanted = tuple([number for number in computed if number is not None])
    try:
        raise error from cause
    finally:
        del error  # in a circle with its traceback it would keep the callers' arrays


def naming_lines(function: F) -> F:
    """A library's function, whose exceptions say in a note which line of the user's called it.

    Those of the user's own code have lines of their own, and so have those of `complain`.
    """

    @functools.wraps(function)
    def named(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except Exception as error:
            note_line(error)
            raise

    return named  # type: ignore[return-value]


def note_line(error: BaseException, line: SourceLine | None = None) -> None:
    """Note on an exception of a library's the user's line, the current one by default."""
    line = line or user_line(2)
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if line is None or (trace is not None and is_user_frame(trace.tb_frame)):
        return
    told = "\n".join([str(error), *getattr(error, "__notes__", ())])
    if f"{shown_file(line.file)}:{line.line}" not in told:
        source = source_text(line)
        error.add_note(f"at {line}{line.inside}" + (f"\n    {source}" if source else ""))


def describe(operand: Any) -> str:
    """Type, dtype and shape of a value: `traced f32[3,4]`, `ndarray f64[2]`, `str 'a'`."""
    from ...ir.types import is_supported, type_of

    if isinstance(operand, TracerBase):
        return operand._described()
    try:
        if hasattr(operand, "dtype") and isinstance(getattr(operand, "shape", None), tuple):
            name = type(operand).__name__
            if isinstance(operand.dtype, np.dtype) and is_supported(operand.dtype):
                return f"{name} {type_of(operand)}"
            return f"{name} {operand.dtype}{list(operand.shape)}"
        text = repr(operand)
    except Exception:  # not ours: an error must not hide behind another one
        text = "that cannot be shown"
    return f"{type(operand).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def raised_by(function: Any) -> list[str]:
    """The errors of this module that a function's own code names, as `jt.errors.X`."""

    def names_in(code: CodeType) -> set[str]:
        inner = (names_in(c) for c in code.co_consts if isinstance(c, CodeType))
        return set(code.co_names).union(*inner)

    names = names_in(function.__code__) if isinstance(function, FunctionType) else set()
    own = {n for n, c in globals().items() if isinstance(c, type) and issubclass(c, JitneyError)}
    return [f"jt.errors.{name}" for name in sorted(names & own)]
