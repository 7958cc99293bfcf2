"""A function in, its transformed twin out: same globals, cells, defaults; found once per code object."""

from __future__ import annotations
import __future__

import ast
import functools
import itertools
from collections.abc import Callable, Collection, Hashable
from functools import partial
from inspect import CO_GENERATOR
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..arrays.python_operators import UNARY
from ..captures.paths import is_user_module
from ..captures.untraced import as_python, is_closed
from ..containers import growing, objects
from ..containers.kinds import current as current_kinds
from ..containers.sequences import List
from ..control import callbacks
from ..control.prange import prange
from ..control.unions import Union
from ..core.conversions import unreadable
from ..core.trace import current_trace
from ..data.foreign import borrowed
from ..host_random.interception import replaced
from . import answers, iteration, logic, texts
from .calls import streams
from .calls.assertions import replaced_assertion
from .calls.eigenvalues import replaced_eigenvalues
from .calls.generators import takes_all, with_lists
from .calls.iterators import ITERATORS
from .calls.libraries import replaced_library
from .calls.modular import pow_
from .calls.numpy_calls import replaced_numpy, where_traced
from .calls.scipy_calls import replaced_scipy
from .calls.streams import STREAMS
from .recursion.recursive import AS_IT_IS, if_native
from .syntax.lazy import Lazy, bare, is_lazy
from .syntax.nodes import HELPERS, ORIGINAL, THUNK, copied, placed, walk
from .syntax.origin import Unreadable, find_origin, has_source
from .syntax.private import mangled
from .syntax.transform import Transformer
from .syntax.yielding import with_consumer, yielding
from .users import ordering
from .users.operators import BY_FUNCTION, SPECIAL, binary, serve, special, unary
from .uses import Method, over_unions
from .variables import in_graph
from .world import replaced_world

_FUTURE = functools.reduce(
    lambda flags, name: flags | getattr(__future__, name).compiler_flag,
    __future__.all_feature_names,
    0,
)
# By the id of the original: it and its twin, or why there is none.
_codes: dict[int, tuple[CodeType, CodeType | Unreadable]] = {}
# Transformed code by its id, and the code of the function that it was made of.
_done: dict[int, tuple[CodeType, CodeType]] = {}
# Generator functions that call their consumer, by the id of the original, which is kept.
_yielding: dict[int, tuple[CodeType, CodeType | None]] = {}
_helpers: list[ModuleType] = []
_KINDS = (FunctionType, MethodType, BuiltinFunctionType, type, np.ufunc, functools.partial)
_OF_CLASSES = (int, round, abs, divmod, pow)  # what they give depends on the class of a number
_MOST = 4096  # items of generators that are taken before it is known whether these end
_OF_NUMPY = (type(np.array2string), FunctionType)
TEXTS_OF_ARRAYS = frozenset(
    (np.array2string, np.array_repr, np.array_str)
    + (np.format_float_positional, np.format_float_scientific, np.binary_repr, np.base_repr)
)
# What only asks for values, and leaves nothing behind.
_ASKING = (*_OF_CLASSES, float, complex, len, min, max, sum, any, all, ord, chr)
_CALLS_BACK = (sorted, functools.partial, min, max, *(STREAMS.keys() - {any, all, next}))
growing.PASSING.add(__name__)


def provide_helpers(module: ModuleType) -> None:
    """What twins know under the name `_jt_`; it lies above, as its helpers make twins too."""
    _helpers[:] = [module]


def convert(function: Any) -> Any:
    """What transformed code calls in place of `function`."""
    if current_trace() is None:
        return function
    called = _converted(function)
    return with_lists(called) if takes_all(function) else called


def _converted(function: Any) -> Any:
    kind = type(function)
    if kind not in _KINDS and is_user_module(kind.__module__):
        call = getattr(kind, "__call__", None)  # noqa: B004  (the method itself is wanted)
        if type(call) is FunctionType:
            return MethodType(convert(call), function)
    drawing = replaced(function)
    if drawing is not None:
        return drawing
    asking = replaced_world(function)
    if asking is not None:
        return asking
    if kind in _OF_NUMPY and function in TEXTS_OF_ARRAYS:
        return texts.of_array(function)
    of_numpy = replaced_eigenvalues(function) or replaced_numpy(function)
    if of_numpy is None:
        of_numpy = replaced_scipy(function) or replaced_assertion(function)
        of_numpy = of_numpy or replaced_library(function)
    if of_numpy is not None:
        return of_numpy
    if kind is FunctionType:
        return _function(function)
    if kind is MethodType:
        if function.__func__ is List.sort:
            return _with_callbacks(ordering.sorting(function), _called)
        inner = convert(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, (BuiltinFunctionType, type)):
        if is_maker(function):
            return _maker(function)
        return _maker_of_data(function) if _is_data(function) else _perhaps_of_unions(function)
    if kind is functools.partial:
        return partial(convert(function.func), *function.args, **function.keywords)
    if kind is Method:
        return partial(function.call, convert)
    if kind is np.vectorize:
        from ..transforms.vectorize import (
            of_numpys,  # with ten modules: only who asks pays for them
        )

        return where_traced(function, convert(of_numpys(function)))
    if hasattr(kind, "__jitney_target__"):  # a jitted one
        return _with_borrowed(convert(function.__jitney_target__))
    return function


def _perhaps_of_unions(function: Any) -> Any:
    """What stands in for a builtin; where there are unions, for one that is given them."""
    called = _builtin(function)
    names = SPECIAL.get(function) if isinstance(function, Hashable) else None
    if names is not None:
        called = special(function, names, called)
    trace = current_trace()
    assert trace is not None
    module = getattr(getattr(function, "__self__", None), "__name__", None)
    if not trace.forms or not (function in _ASKING or module in ("math", "cmath")):
        return called
    return over_unions(called, function in _OF_CLASSES)


def _with_borrowed(function: Any) -> Any:
    """A jitted function takes arrays of other libraries."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = borrowed((args, kwargs))
        return function(*args, **kwargs)

    return call


def is_maker(function: Any) -> bool:
    """Whether it is a class of the user's, whose __init__ can be read."""
    kind: Any = function
    if type(kind) is not type or not is_user_module(kind.__module__):
        return False
    start = kind.__init__  # type: ignore[misc]
    return isinstance(start, FunctionType) and has_source(start)


def _started(start: Any, args: Any, kwargs: Any, made: Any) -> None:
    convert(start)(made, *args, **kwargs)


def _maker(kind: Any) -> Any:
    """Instances are made as by calling the class, with the twin of its __init__."""
    new, start = kind.__new__, kind.__init__

    def make(*args: Any, **kwargs: Any) -> Any:
        if new is object.__new__:
            run = partial(_started, start, args, kwargs)
            native = objects.made(kind, current_kinds(), run)
            if native is not None:
                return native
        made = new(kind) if new is object.__new__ else new(kind, *args, **kwargs)
        if isinstance(made, kind):
            convert(start)(made, *args, **kwargs)
            growing.attributes_made(made, (start.__code__, kind.__name__), _is_users)
            objects.born(made)
        return made

    return make


def _is_data(kind: Any) -> bool:
    """Whether it is a class of the user's whose __init__ `dataclass` has written."""
    if type(kind) is not type or not is_user_module(kind.__module__):
        return False
    return "__dataclass_fields__" in vars(kind) and "__init__" in vars(kind)


def _maker_of_data(kind: Any) -> Any:
    """Instances of a dataclass, with containers as what they were made for them, and the twin of its
    `__post_init__`."""
    start, then = vars(kind)["__init__"], getattr(kind, "__post_init__", None)
    is_plain = kind.__new__ is object.__new__ and not kind.__dataclass_params__.frozen

    def finish(made: Any, content: Any, *args: Any) -> None:
        growing.attributes_made(made, (start.__code__, kind.__name__), _is_users)
        if content.pop("__post_init__", None) is not None:
            convert(then)(made, *args)

    def begin(args: Any, kwargs: Any, made: Any) -> None:
        content = growing.attributes_of(made)
        if type(then) is FunctionType and is_plain:
            content["__post_init__"] = partial(finish, made, content)
        start(made, *args, **kwargs)
        finish(made, {})

    def make(*args: Any, **kwargs: Any) -> Any:
        if not is_plain or not hasattr(kind, "__dict__"):
            made = kind(*args, **kwargs)
            finish(made, {})
            return made
        native = objects.made(kind, current_kinds(), partial(begin, args, kwargs))
        if native is not None:
            return native
        made = object.__new__(kind)
        begin(args, kwargs, made)
        objects.born(made)
        return made

    return make


def _is_users(x: Any) -> bool:
    """Whether it is an object of a user's class."""
    return hasattr(x, "__dict__") and is_user_module(type(x).__module__)


def _builtin(function: Any) -> Any:
    replaced = {
        range: iteration.range_,
        reversed: iteration.reversed_,
        np.ndenumerate: iteration.ndenumerate_,
        np.nditer: iteration.nditer_,
        int: iteration.int_,
        float: iteration.float_,
        complex: iteration.complex_,
        bool: logic.truth_,
        min: logic.min_,
        max: logic.max_,
        sum: logic.sum_,
        isinstance: answers.isinstance_,
        type: answers.type_,
        hasattr: answers.hasattr_,
        str: texts.str_,
        repr: texts.repr_,
        ascii: texts.repr_,
        format: texts.format_,
        print: texts.print_,
        pow: pow_,
        **ITERATORS,
        **STREAMS,
    }
    operator = BY_FUNCTION.get(function) if type(function) is BuiltinFunctionType else None
    if operator is not None and function is not abs:
        return partial(unary if operator in UNARY else binary, operator)
    growing_one = growing.replaced(function)
    if growing_one is not None and function is not next:
        ordered = ordering.ordering(function, growing_one)
        return _with_callbacks(ordered, _called) if _takes_key(function) else ordered
    if type(getattr(function, "__self__", None)) is str:
        return texts.method_of_text(function) or function
    try:
        replacement = replaced.get(function)
    except TypeError:  # unhashable
        return function
    called: Any = replacement or function
    return _with_callbacks(called, _called) if function in _CALLS_BACK else called


def _takes_key(function: Any) -> bool:
    """Whether it is a builtin that orders by a function of elements."""
    names = ("sorted", "sort", "nsmallest", "nlargest")
    return getattr(function, "__name__", "") in names


def _with_callbacks(
    function: Callable[..., Any], argument: Callable[[Any], Any]
) -> Callable[..., Any]:
    """A function that calls the user's: those are transformed too."""

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(argument, args), **{k: argument(v) for k, v in kwargs.items()})

    return call


def _called(x: Any) -> Any:
    """What `map` and its kin are given: they call Python's own functions and classes, too."""
    return convert(x) if isinstance(x, (BuiltinFunctionType, type)) else _argument(x)


def _argument(x: Any) -> Any:
    if type(x) is Union:
        return x
    if isinstance(x, (FunctionType, MethodType)):
        return convert(x)
    if type(x) is functools.partial or hasattr(x, "_target"):
        return convert(x)
    if type(x) in (list, tuple) and any(isinstance(f, FunctionType) for f in x):
        return type(x)(map(_argument, x))
    return x


def _perhaps_plain(function: FunctionType) -> Any:
    """A twin that is made only if something traced reaches it."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        plain = as_python(function, (*args, *kwargs.values()))
        if not plain:
            return _twin(function)(*args, **kwargs)
        return growing.given([plain(*args, **kwargs)], (function.__code__, "returned"))

    setattr(call, AS_IT_IS, True)
    return call


def _function(function: FunctionType) -> Any:
    code = function.__code__
    if getattr(function, AS_IT_IS, False):
        return function
    if id(code) in _done:
        return if_native(function, function)
    module = function.__globals__.get("__name__")  # __module__ may be copied from what it wraps
    if module in (ordering.__name__, streams.__name__):
        return _twin(function)
    if function is prange:
        return iteration.prange_
    if function.__globals__.get("__autograph__") is False:
        return function  # its module says that it has no loops and branches over traced values
    if not is_user_module(module):
        if module == callbacks.__name__:
            return function  # what it is given runs in Python
        if isinstance(module, str) and module.partition(".")[0] == __name__.partition(".")[0]:
            return _with_callbacks(_wrapper(function), _argument)
        return growing.replaced(function) or _wrapper(function)
    if code.co_flags & CO_GENERATOR:
        return _generator(function)
    entry = _codes.get(id(code))
    if entry is None and code.co_name != "<lambda>" and is_closed(function):
        return _perhaps_plain(function)
    return _twin(function)


def _twin(function: FunctionType) -> Any:
    code = function.__code__
    entry = _codes.get(id(code))
    if entry is None:
        entry = _codes[id(code)] = (code, _transformed(function))
    twin = entry[1]
    if isinstance(twin, Unreadable):
        unreadable(code, str(twin))
        return function
    return if_native(function, _like(function, twin))


def _generator(function: FunctionType) -> Any:
    """What is called for a generator function: in a graph its items are a stream."""
    lazily = _twin(function)
    if lazily is function:  # it has no source
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        generator, code = lazily(*args, **kwargs), function.__code__
        if not in_graph():
            return generator
        known = as_python(function, (*args, *kwargs.values()))
        items = _all_known(known(*args, **kwargs)) if known else None
        if items is not None:
            return iter(items)
        if id(code) not in _yielding:
            _yielding[id(code)] = code, _as_plain(function)
        made = _yielding[id(code)][1]
        if made is None:
            return generator
        plain = _like(function, made)
        return streams.Yielded(generator, lambda consumer: plain(consumer, *args, **kwargs))

    setattr(call, AS_IT_IS, True)
    return call


def _all_known(generator: Any) -> list[Any] | None:
    """What a generator gives that nothing traced reaches; None if that does not end, or fails."""
    try:
        items = [*itertools.islice(generator, _MOST + 1)]
    except Exception:
        return None
    return items if len(items) <= _MOST else None


def _as_plain(function: FunctionType) -> CodeType | None:
    """The code of a generator function that calls its consumer (`syntax.yielding`), if it can."""
    origin = find_origin(function)
    source = mangled(origin.node, origin.class_name)
    node = yielding(bare(copied(source))) if isinstance(source, ast.FunctionDef) else None
    if node is None:
        return None
    return _compiled(function, with_consumer(Transformer().root(node, may_be_plain=False)), source)


def _like(function: FunctionType, twin: CodeType) -> FunctionType:
    """A function like a user's, with other code."""
    code = function.__code__
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HELPERS] = CellType(_helpers[0])
    cells[ORIGINAL] = CellType(function)
    made = FunctionType(
        twin,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells[name] for name in twin.co_freevars),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__dict__.pop("__wrapped__", None)
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    made.__doc__ = function.__doc__
    return made


def _wrapper(function: FunctionType) -> FunctionType:
    """A library's function around the user's, as jt.grad(f) or a decorator's: around its twin."""
    wrapped = getattr(function, "__wrapped__", None)
    closure = function.__closure__
    if wrapped is None or closure is None:
        return function
    cells = []
    for cell in closure:
        try:
            content = cell.cell_contents
        except ValueError:  # empty
            content = None
        around = content is wrapped or getattr(content, "__wrapped__", None) is wrapped
        cells.append(CellType(convert(content)) if around else cell)
    made = FunctionType(
        function.__code__,
        function.__globals__,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__dict__.update(function.__dict__)
    made.__qualname__ = function.__qualname__
    made.__module__ = function.__module__
    return made


def _of_class(function: FunctionType) -> Any:
    """The twin of a method of a user's class, which `total_ordering` may have made."""
    return _twin(function) if function.__module__ == "functools" else convert(function)


serve(_of_class)


def _transformed(function: FunctionType) -> CodeType | Unreadable:
    try:
        return _transform(function)
    except Unreadable as error:
        return error.with_traceback(None)


def _transform(function: FunctionType) -> CodeType:
    origin = find_origin(function)
    transformer = Transformer()
    source = mangled(origin.node, origin.class_name)
    if isinstance(source, ast.AsyncFunctionDef) or (
        isinstance(source, ast.FunctionDef) and is_lazy(source.body)
    ):
        node: Any = Lazy.root(source)
    else:
        node = transformer.root(source)
    return _compiled(function, node, source)


def _compiled(function: FunctionType, node: Any, source: Any) -> CodeType:
    """The code of a twin, of its tree and that of the function."""
    code = function.__code__
    name = "_jt_function"
    if isinstance(node, ast.Lambda):
        target = placed(ast.Name(name, ast.Store()), node)
        inner: ast.stmt = placed(ast.Assign([target], node), node)
    else:
        node.name = name  # its own name may be that of a global, and calls of itself go there
        inner = node
    new = _inside(inner, [*code.co_freevars, HELPERS, ORIGINAL], code, source)
    return _rename(new, code.co_name, code.co_qualname, code)


def _inside(inner: ast.stmt, cells: Collection[str], code: CodeType, at: ast.AST) -> CodeType:
    """The code of a function that sees these variables of functions around it."""
    args = ast.arguments([], [ast.arg(c) for c in cells], None, [], [], None, [])
    factory = ast.FunctionDef(name="_jt_factory", args=args, body=[inner], decorator_list=[])
    module = ast.Module([factory], [])
    for child in walk(module):
        if "lineno" not in child.__dict__ and "lineno" in child._attributes:
            placed(child, at)
        if isinstance(child, ast.FunctionDef) and hasattr(ast, "TypeAlias"):  # Python 3.12
            child.type_params = getattr(child, "type_params", [])  # type: ignore[attr-defined]
    compiled = compile(module, code.co_filename, "exec", code.co_flags & _FUTURE, True)
    outer = next(c for c in compiled.co_consts if isinstance(c, CodeType))
    return next(c for c in outer.co_consts if isinstance(c, CodeType))


def plain_code(
    body: CodeType, cells: Collection[str], make: Callable[[Any], ast.FunctionDef | None]
) -> CodeType | None:
    """The code of what `make` makes of the definition that a part of a twin comes from; it sees these
    variables of the twin."""
    source = _done[id(body)][1]
    empty = tuple(CellType() for _ in source.co_freevars)
    definition = find_origin(FunctionType(source, {}, closure=empty)).node
    made = make(definition)
    if made is None:
        return None
    code = _inside(made, cells, source, definition)
    return code.replace(co_name=source.co_name, co_qualname=source.co_qualname)


def _rename(code: CodeType, name: str, qualname: str, source: CodeType) -> CodeType:
    """The code under the user's name, and all that is in it: tracebacks show what was written."""
    constants = []
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            inner = constant.co_name
            made = inner.startswith("_jt_") or THUNK in constant.co_varnames
            if made:
                constant = _rename(constant, name, qualname, source)
            else:
                constant = _rename(constant, inner, f"{qualname}.<locals>.{inner}", source)
        elif isinstance(constant, frozenset):
            constant = _as_compiled(constant, source) or constant
        constants.append(constant)
    new = code.replace(co_consts=tuple(constants), co_name=name, co_qualname=qualname)
    _done[id(new)] = new, source
    return new


def _as_compiled(constant: frozenset[Any], code: CodeType) -> frozenset[Any] | None:
    """A set of constants as the user's code has it: which of two equal ones it is decides its order."""
    for found in code.co_consts:
        if isinstance(found, CodeType):
            found = _as_compiled(constant, found)
        if isinstance(found, frozenset) and found == constant:
            pairs = zip(sorted(map(repr, found)), sorted(map(repr, constant)), strict=True)
            if all(one == other for one, other in pairs):
                return found
    return None
