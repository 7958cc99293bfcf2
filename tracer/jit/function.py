"""Compiled functions: traced at the first call of a kind, native code at the next ones."""

from __future__ import annotations

import functools
import sys
import threading
import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from types import MethodType
from typing import (
    TYPE_CHECKING,
    Any,
    Concatenate,
    Generic,
    NamedTuple,
    ParamSpec,
    Self,
    TypeVar,
    overload,
)

import numpy as np

from ...ir.collector import loading
from ...ir.forks import renewed
from ...runtime.config import config
from ...runtime.platforms import tried
from ...runtime.recording import current
from ..captures.captured_variables import CapturedVariables
from ..captures.heap_nodes import Policy
from ..captures.paths import Path
from ..captures.subjects import Subject
from ..core.current import CURRENT
from ..data import pytree
from ..data.foreign import borrowed
from ..data.objects import standing_in
from ..data.shapes import ShapeDtype
from ..devices.devices import CHOSEN
from ..messages import errors
from ..messages.errors import ChangedArgument, TraceAgain
from ..messages.tracebacks import shorten
from .asked import ASKED
from .binding import BoundJitFunction, is_owner
from .buckets import Bucket, fast_key, reason, warn_of_many
from .computed_numbers import ComputedNumbers
from .defaults import Defaults
from .dispatch import Call, StaticNames, arrange, signature_of, static_names
from .entry import STALE, Entry, Overlap, ReadOnly, Refused, SameArrays
from .fallback import Fallback, note_refusal
from .inspection import Inspection, LookedAt
from .numbers import CompiledNumbers, settled
from .options import (
    DEFAULTS,
    Options,
    check_function,
)
from .programs import install_programs, learn
from .specialise import make_entry, note_failure, trace_call

if TYPE_CHECKING:
    from ...runtime.call.callable import NativeProgram
    from ..lengths.found import Lengths

P = ParamSpec("P")
R = TypeVar("R")
Q = ParamSpec("Q")
S = TypeVar("S")
T = TypeVar("T")

_SIGNATURES = 1024  # kept per function; beyond that the oldest is forgotten
_LOOKED_INTO = 10  # failures of a function: more are part of what it does


class _Compiled(NamedTuple):
    """What a function has compiled."""

    buckets: Mapping[Hashable, Bucket]
    misses: int
    latest: Entry | None
    ahead: int = 0


NOTHING_COMPILED = _Compiled({}, 0, None)


class JitFunction(Inspection, Generic[P, R]):
    """What `jit` returns. Calls like the function that it wraps."""

    if TYPE_CHECKING:
        __name__: str  # of the function, copied with its other names
        __qualname__: str
        __wrapped__: Callable[P, R]

    def __new__(cls, function: Any = None, options: Options = DEFAULTS) -> Self:
        # A subclass may have a `__call__` of its own.
        native = cls is JitFunction or "_chain" in vars(cls)
        if not native or options.backend != "native":
            return object.__new__(cls)
        with loading():
            from ...runtime.call.callable import new_callable

            if not tried():
                from ...runtime.trial import settle  # on the others nobody needs it

                settle()
        made: Self = new_callable(cls)
        return made

    def __init__(self, function: Callable[P, R], options: Options = DEFAULTS) -> None:
        check_function(function)
        # First: what it copies, of a JitFunction inside say, must not replace what is set below.
        functools.update_wrapper(self, function)
        if not hasattr(function, "__name__"):
            self.__name__ = self.__qualname__ = type(function).__name__
        if isinstance(function, np.vectorize):
            from ..transforms.vectorize import of_numpys

            function = of_numpys(function)
        if options.backend == "native":
            from .trace_cache import load_for

            load_for(function)
        self._options = options
        self._signature = signature_of(function)
        self._static: StaticNames = static_names(
            function, options.static_argnums, options.static_argnames
        )
        self._donate = static_names(function, options.donate_argnums, option="donate_argnums")
        self._function = function
        # Arguments that are containers it changes.
        self._changed: frozenset[int | str] = frozenset()
        self._subjects: dict[int, Subject] = {}  # of the leaves that are objects
        self._lock = renewed(threading.RLock())
        # By exact types: the entries, and the order in which they take the leaves.
        self._fast: dict[Hashable, tuple[Bucket, list[int] | None]] = {}
        self._buckets: dict[Hashable, Bucket] = {}  # by canonical signature
        self._simple = not self._static.any
        signature = self._signature if options.autograph else None  # else nobody looks for changes
        self._defaults = Defaults(function, signature, self._static.names)
        self.times: dict[Any, Iterator[int]] = {}  # see `Trace.times`
        self._numbers = CompiledNumbers()
        self._computed = ComputedNumbers()
        asked = options.dynamic if options.backend == "native" else None
        self._lengths: Lengths | None = None
        if asked is not None:
            from ..lengths.found import Lengths  # few functions have such

            self._lengths = Lengths(asked)
        self._tables = (
            False  # some calls had tables: the leaves of all containers are not looked at
        )
        # Long lists of numbers are arrays; with 2 tables, too; with 3 what has many lists is native.
        self._packs = 3
        self._misses = self._failures = 0
        self._ahead = 0  # of the misses: those that no call had to wait for
        self._latest: Entry | None = None
        self.most_signatures = _SIGNATURES
        self._native = hasattr(self, "_chain")
        self._programs: list[NativeProgram] = []  # what the native call tries
        self._twins: dict[str, JitFunction[P, R]] = {}  # see `asked`
        self.stands_for: weakref.ref[JitFunction[P, R]] | None = None
        self.is_formula = False  # of ours, over tracers only: `disable_jit` is not about it
        ASKED.add(self)
        self._fallback = None if options.fallback is None else Fallback(function, self.__name__)

    # Calling

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        if ASKED.any and self._asked and CURRENT.get() is None:
            called = self._function if ASKED.off else self._watched_twin()
            return called(*args, **kwargs)
        try:
            if self._defaults.values and CURRENT.get() is None:
                missing = self._defaults.missing(args, kwargs)
                if missing:
                    return self(*args, **kwargs, **missing)
            if not kwargs and self._simple and CURRENT.get() is None:
                fast = fast_key([CHOSEN.get()], args)
                if fast is not None:
                    cached = self._fast.get(fast)
                    if cached is not None:
                        result = self._known(cached[0], args)
                        if result is not STALE:
                            return result
                    return self._call(args, kwargs, fast)
            if CURRENT.get() is not None:
                return self._plain(*borrowed((args, kwargs)))  # part of what is being traced
            if self._takes_trees and not (args and is_owner(args[0], self)):
                return self._call_tree(args, kwargs)
            return self._call(args, kwargs, None)
        except Exception as error:
            if getattr(error, "jitney_site", None) is not None and CURRENT.get() is None:
                self._tell(error, args, kwargs)
            shorten(error)
            raise

    def _tell(self, error: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Note in which iterations of its loops the function has failed."""
        line, error.jitney_site = error.jitney_site, None
        self._failures += 1
        if self._failures <= _LOOKED_INTO and not self._donate.any:
            note = functools.partial(note_failure, error=error, line=line)
            with suppress(Exception):  # what is told of it need not be all
                self._looked_at(note, args, kwargs)

    @property
    def _asked(self) -> bool:
        """Whether `jt.config.check` asks for more than the options do, or `disable_jit` for no code."""
        return not (ASKED.off and self.is_formula) and ASKED.lacks(self._options)

    def _watched_twin(self) -> JitFunction[P, R]:
        """The function with the options that `jt.config.check` asks for."""
        options = ASKED.more(self._options)
        key = options.key()
        twin = self._twins.get(key)
        if twin is None:
            own = next(cls for cls in type(self).__mro__ if "_chain" not in vars(cls))
            twin = self._twins.setdefault(key, own(self._function, options))
            twin.stands_for = weakref.ref(self)
        return twin

    @property
    def _takes_trees(self) -> bool:
        return self._simple and not (self._changed or self._tables)

    def _call_tree(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """As `__call__`, for containers and keywords."""
        leaves, structure = pytree.as_written((args, kwargs))
        fast = fast_key([CHOSEN.get(), structure], leaves)
        cached = None if fast is None else self._fast.get(fast)
        if cached is not None:
            bucket, order = cached
            if order is not None:
                leaves = [leaves[i] for i in order]
            result = self._known(bucket, leaves)
            if result is not STALE:
                return result
        return self._call(args, kwargs, fast)

    def _known(self, bucket: Bucket, leaves: Sequence[Any]) -> Any:
        """The result of the first entry that takes these leaves; STALE if none does, or the call has to
        go the long way."""
        try:
            for entry in bucket.entries:
                if self._native and entry.wants_program:
                    break  # the long way writes a program
                result = entry.fast(leaves)
                if result is not STALE:
                    return result
        except Refused:
            pass  # nothing has run yet
        return STALE

    def _call(self, args: Sequence[Any], kwargs: dict[str, Any], fast: Hashable | None) -> Any:
        if fast is None and self._simple:
            written = args, kwargs
            args, kwargs = borrowed(written)
            if args is not written[0]:
                return self(*args, **kwargs)  # arrays of other libraries are ndarrays now
        work = lambda call: self._call_of(call, args, kwargs, fast)  # noqa: E731
        if self._lengths is not None:
            from ..lengths.sized import ROUNDS, OneSize

            for _ in range(ROUNDS):  # anew with numbers compiled in, it is another call to refuse
                with suppress(OneSize):
                    return self._settled(work, args, kwargs)
        if self._fallback is None:
            return self._settled(work, args, kwargs)
        return self._fallback.call(
            lambda: self._settled(work, args, kwargs),
            lambda: self._analyse(args, kwargs).key,
            args,
            kwargs,
        )

    def _settled(
        self,
        work: Callable[[Call], T],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        looked_at: LookedAt = False,
    ) -> T:
        """What `work` makes of the call, once it is known which numbers are compiled in."""
        return settled(self, lambda: self._analysed(args, kwargs, looked_at), work)

    def _call_of(
        self, call: Call, args: Sequence[Any], kwargs: dict[str, Any], fast: Hashable | None
    ) -> Any:
        bucket = self._bucket(call.key)
        try:
            result = self._run(call, bucket, args, kwargs)
            plain = not (call.has_static or call.objects or call.has_lists)
            self._tables = self._tables or call.has_tables
            if fast is not None and plain:
                self._fast[fast] = bucket, self._order(args, kwargs)
            return result
        except ChangedArgument as error:
            self._note_changed(error.place)
            return self._call(args, kwargs, None)
        except SameArrays:
            call.alias()
            call.computed = self._computed.of(call)
            try:
                return self._run(call, self._bucket(call.key), args, kwargs)
            except (Overlap, SameArrays):  # still the same: one of the two came from outside
                return self._plain(*borrowed((args, kwargs)))
        except Overlap:
            return self._plain(*borrowed((args, kwargs)))

    def _note_changed(self, parameter: int | str) -> None:
        """From now on the container that is given there is not taken apart."""
        with self._lock:
            self._changed |= {parameter}
            self._fast.clear()

    def _run(self, call: Call, bucket: Bucket, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        """Find or make the entry and run it. `args` and `kwargs` are those of `call`, as written."""
        with self._given(call):
            return self._run_entry(call, bucket, args, kwargs)

    @contextmanager
    def _given(self, call: Call) -> Iterator[None]:
        """Inside, the call's objects are what its paths start at."""
        objects = call.objects
        if not objects:
            yield
            return
        subjects = [self._subject(leaf) for leaf, _ in objects]
        before = [subject() for subject in subjects]
        for subject, (_, value) in zip(subjects, objects, strict=True):
            subject.put(value)
        try:
            yield
        finally:
            for subject, value in zip(subjects, before, strict=True):
                subject.put(value)

    def _subject(self, leaf: int) -> Subject:
        subject = self._subjects.get(leaf)
        return subject if subject is not None else self._subjects.setdefault(leaf, Subject())

    def _run_entry(
        self, call: Call, bucket: Bucket, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Any:
        (entry, hidden), made = self._found_or_made(call, bucket)
        call.refuse_shared(entry.captured.heap, hidden)
        learn(self, entry, args, kwargs)
        if made is not None:
            made.captured.forget()
        return self._enter(entry, call, hidden)

    def _found_or_made(
        self, call: Call, bucket: Bucket
    ) -> tuple[tuple[Entry, tuple[Any, ...]], Entry | None]:
        """The entry of a call with its hidden arrays, and the entry again if it was made for it."""
        match, made = bucket.holding(call.leaves), None
        if match is None:
            with self._lock, standing_in if call.objects else nullcontext():
                with standing_in:  # tracers of other threads are out of the way
                    match = bucket.holding(call.leaves)  # made by another thread in the meantime?
                if match is None:
                    made = self._compile(call, bucket)
                    # What the function itself changed while it was traced must not send it back here.
                    match = made, made.when_traced()
        if made is not None:
            from ...runtime.cache.in_memory import budget

            budget.trim(made)  # not with the lock held: other functions are asked to give way
        return match, made

    def _enter(self, entry: Entry, call: Call, hidden: tuple[Any, ...]) -> Any:
        try:
            return entry(call.leaves, hidden)
        except ReadOnly:
            # Trace again, now with the array marked read-only: that names the line.
            trace_call(self, call)
            raise errors.ReadOnlyError("assignment destination is read-only") from None

    def _plain(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return self._adapt(self._target)(*args, **kwargs)

    @property
    def _adapt(self) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
        """Gives what is called to trace a function: the function itself, or autograph's twin of it.
        It does not refer to `self`, so that dropping the function drops its code at once."""
        return _twin if self._options.autograph else _identity

    @property
    def _raw(self) -> Callable[..., Any]:
        return self._function

    @property
    def __jitney_target__(self) -> Callable[..., Any]:
        """What is called to trace it: autograph asks, which cannot know this class."""
        return self._target

    @property
    def _target(self) -> Callable[..., Any]:
        return self._function

    def _analysed(
        self, args: Sequence[Any], kwargs: dict[str, Any], looked_at: LookedAt = False
    ) -> Call:
        try:
            return self._analyse(args, kwargs, looked_at)
        except Exception as error:
            note_refusal(error)
            raise

    def _analyse(
        self, args: Sequence[Any], kwargs: dict[str, Any], looked_at: LookedAt = False
    ) -> Call:
        """What is only looked at is for the sizes that it has, or with "lengths" as calls are."""
        call = Call(
            args,
            kwargs,
            self._static,
            self._signature,
            whole=self._changed | {0} if args and is_owner(args[0], self) else self._changed,
            device=self._options.device,
            numbers=self._numbers.of,
            packs=self._packs,
        )
        call.computed = self._computed.of(call)
        if any(type(leaf) is ShapeDtype and leaf.length is not None for leaf in call.leaves):
            from ..lengths.found import opened

            lengths = opened(call, self._lengths)
            if not looked_at:
                self._lengths = lengths  # calls that follow have such axes
            if lengths is not None:
                lengths.widen(call)
        elif self._lengths is not None and looked_at is not True:
            self._lengths.widen(call, looked_at=looked_at == "lengths")
        return call

    def _order(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[int] | None:
        """Where the leaves of a call stand among those of `(args, kwargs)` as written; None: there."""
        tree = pytree.flatten((tuple(args), kwargs))[1]
        order = self._leaves(*pytree.unflatten(tree, pytree.positions_as_written(tree)))
        return None if order == list(range(len(order))) else order

    def _leaves(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        """The leaves of a call in the order of its entries."""
        arranged = arrange(args, kwargs, self._static, self._signature)
        return pytree.flatten((tuple(arranged[0]), arranged[1]))[0]

    def _bucket(self, key: Hashable) -> Bucket:
        bucket = self._buckets.get(key)
        return bucket if bucket is not None else self._buckets.setdefault(key, Bucket())

    # A call of a new kind

    def _captured_variables(
        self,
        call: Call | None = None,
        substitute: bool = True,
        wary: bool = False,
        policy: Policy | None = None,
    ) -> CapturedVariables:
        static = () if call is None else call.static_values()
        objects: list[Path] = []
        if call is not None and call.objects:
            names = call.leaf_names()
            objects = [Path("object", self._subject(i), names[i]) for i, _ in call.objects]
        return CapturedVariables(self._raw, objects, substitute, self._adapt, wary, static, policy)

    def _compile(self, call: Call, bucket: Bucket) -> Entry:
        try:
            why = reason(call, bucket, list(self._buckets.values()))
            if self._lengths is not None:
                why = self._lengths.reason(call, why)
            entry = make_entry(self, call, why)
        except ChangedArgument:
            raise
        except Exception as error:
            if call.lengths:
                from ..lengths.found import refuse
                from ..lengths.sized import OneSize

                refuse(call, error)
                raise OneSize from error
            note_refusal(error)
            raise
        self._misses += 1
        recording = current()
        if recording is not None:
            recording.functions.add(self)
        if config.log_compiles:
            from .cache_info import log_compile

            log_compile(self.__name__, entry)
        if self._misses == config.compile_warning:
            warn_of_many(self.__name__, self._misses, entry.reason)
        if len(self._buckets) > self.most_signatures:
            self._buckets.pop(next(iter(list(self._buckets))), None)
            self._fast.clear()  # it refills from the buckets
            install_programs(self)
        bucket.add(entry)
        self._latest = entry
        entry.owner = weakref.ref(self)
        if self._options.backend == "native" and not entry.on_device:
            from ...runtime.cache.in_memory import budget

            budget.add(entry)
        if entry.check() is None:
            bucket.warn(self.__name__, entry.captured)
        return entry

    # Looking inside; see `inspection`

    def _looked_at(
        self,
        work: Callable[[JitFunction, Call], T],
        args: Sequence[Any],
        kwargs: dict[str, Any],
        looked_at: LookedAt = True,
    ) -> T:
        """As `_settled`, for what is only looked at, or prepared for calls."""
        if ASKED.any and self._asked and not ASKED.off:
            return self._watched_twin()._looked_at(work, args, kwargs, looked_at)
        kwargs = {**kwargs, **self._defaults.missing(args, kwargs)}

        def of(call: Call) -> T:
            with self._given(call):
                return work(self, call)

        try:
            return self._settled(of, args, kwargs, looked_at)
        except ChangedArgument as error:
            self._note_changed(error.place)
            return self._looked_at(work, args, kwargs, looked_at)
        except TraceAgain as error:
            if self._lengths is not None:
                from ..lengths.sized import refuse_opened

                refuse_opened(error, (args, kwargs))
            raise

    def clear_cache(self) -> None:
        """Forget everything compiled for this function."""
        self._twins.clear()
        self.times.clear()
        self._exchange_code()

    def _exchange_code(self, code: _Compiled = NOTHING_COMPILED) -> _Compiled:
        """Go on with what was compiled there; gives what was here."""
        with self._lock:
            before = _Compiled(self._buckets, self._misses, self._latest, self._ahead)
            self._buckets, self._misses, self._latest = dict(code.buckets), code.misses, code.latest
            self._ahead = code.ahead
            self._fast.clear()
            install_programs(self)
        return before

    def _evict(self, entry: Entry) -> bool:
        """Forget one specialisation, unless another thread is making one."""
        if not self._lock.acquire(blocking=False):
            return False
        try:
            for bucket in list(self._buckets.values()):
                bucket.entries = [other for other in bucket.entries if other is not entry]
            install_programs(self)
        finally:
            self._lock.release()
        return True

    def _fingerprint(self) -> dict[str, Any]:
        """What a function that calls this one depends on (see `fingerprint`)."""
        return {"function": self._function, "options": self._options.key()}

    # Being a function

    @overload
    def __get__(self, obj: None, cls: type | None = None) -> Self: ...
    @overload
    def __get__(
        self: JitFunction[Concatenate[S, Q], R], obj: S, cls: type | None = None
    ) -> BoundJitFunction[Q, R]: ...

    def __get__(self, obj: Any, cls: type | None = None) -> Any:
        if obj is None:
            return self
        if pytree.is_registered(type(obj)):
            return MethodType(self, obj)
        return BoundJitFunction(self, obj)

    def __repr__(self) -> str:
        return f"<jitney.jit {getattr(self, '__qualname__', self.__name__)}>"

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> Any:
        module = sys.modules.get(getattr(self, "__module__", ""))
        value: Any = module
        name = getattr(self, "__qualname__", "")
        for part in name.split("."):
            value = getattr(value, part, None)
        from ..autograph.syntax.carried import sends_main, source_of

        if value is self and not (module is sys.modules.get("__main__") and sends_main()):
            return name

        return _rebuild, (self._function, self._options, source_of(self._function))


def _identity(value: Any) -> Any:
    return value


def _twin(function: Callable[..., Any]) -> Callable[..., Any]:
    from ..autograph import convert, raising

    return raising.compiled_in(convert(function))


def _rebuild(
    function: Callable[..., Any], options: Options, source: tuple[str, str] | None = None
) -> JitFunction[..., Any]:
    from ..autograph.syntax.carried import arrived

    arrived(function, source)
    return JitFunction(function, options)
