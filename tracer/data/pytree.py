"""Pytrees: nested containers of arrays, through optree.

Dicts (every kind of the standard library), lists, tuples, namedtuples, deques and None are
containers; so are dataclasses (on first sight) and whatever `register_pytree` was told. Everything
else is a leaf.
"""

from __future__ import annotations

import dataclasses
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NoReturn, TypeVar
from weakref import WeakSet

import numpy as np
import optree

from ...ir.surface import ensure
from ..messages import errors
from ..messages.errors import TracerBase, complain
from .exact import Exact, exact_key

NAMESPACE = "jitney"
TreeDef = optree.PyTreeSpec
_registered: set[type] = set()  # by the user's own call
_static_fields: dict[type, frozenset[str]] = {}  # of dataclasses that are containers
_seen: set[type] = set()  # dataclasses that were registered on first sight
_PLAIN = frozenset({np.ndarray, bool, int, float, complex, str, object})
_leaf_types: WeakSet[type] = WeakSet()  # types known to be no dataclasses, or to be `whole`
_whole: set[type] = set()  # classes of objects that only `objects` opens
_conversions: dict[type, Callable[[Any], Any]] = {}
# Arrays that are containers: which they are, the container that stands for one, how one is taken apart.
_arrays: list[tuple[Callable[[Any], bool], Callable[[Any], Any], Callable[[Any], Any]]] = []
_DICTS = frozenset({dict, OrderedDict, defaultdict})
# Of classes that were registered with a function of their own: what takes an instance apart.
_flatten_functions: dict[type, Callable[[Any], Any]] = {}
_LEAF = object()  # stands for a leaf in what `as_written` gives

# Of dataclasses: the fields that are children, those that are static.
_fields: dict[type, tuple[tuple[str, ...], tuple[str, ...]]] = {}

C = TypeVar("C", bound=type)


def flatten(tree: Any) -> tuple[list[Any], TreeDef]:
    """Leaves from left to right (dicts by sorted key) and the structure, which is hashable.

    >>> jt.tree.flatten({"b": 2, "a": (1, None)})[0]
    [1, 2]
    """
    try:
        leaves, definition = optree.tree_flatten(tree, namespace=NAMESPACE)
    except RecursionError as error:
        _refuse_endless(error)
    if any(_is_new(leaf) for leaf in leaves):
        if any(_is_converted(leaf) for leaf in leaves):
            return flatten(unflatten(definition, map(_converted, leaves)))
        for leaf in leaves:
            if _is_new(leaf):
                _register_dataclass(type(leaf), ())
                _seen.add(type(leaf))
        return flatten(tree)
    return leaves, definition


def flatten_whole(tree: Any) -> tuple[list[Any], TreeDef]:
    """As `flatten`, for functions of the user's: an array whose length is a value is one leaf.

    To the tracer it is a container of what it is made of.
    """
    leaves, definition = flatten(tree)
    if any(isinstance(leaf, TracerBase) for leaf in leaves):
        whole = unflatten(definition, leaves)
        return optree.tree_flatten(whole, is_leaf=_is_whole, namespace=NAMESPACE)
    return leaves, definition


def _is_whole(x: Any) -> bool:
    return getattr(type(x), "_jitney_lazy", False)


def map_whole(function: Callable[[Any], Any], tree: Any) -> Any:
    """A tree with what a function gives in the place of arrays whose length is a value."""
    return optree.tree_map(
        lambda x: function(x) if _is_whole(x) else x, tree, is_leaf=_is_whole, namespace=NAMESPACE
    )


def lengths_among(tree: Any) -> set[int]:
    """Which leaves are lengths of arrays: behind the padded array of each whose length is a value."""
    found: set[int] = set()
    at = 0
    for leaf in optree.tree_leaves(tree, is_leaf=_is_whole, namespace=NAMESPACE):
        parts = len(flatten(leaf)[0]) if _is_whole(leaf) else 1
        if hasattr(leaf, "counts"):
            found.update(range(at + 1, at + parts))
        at += parts
    return found


def nodes(tree: Any) -> Iterator[Any]:
    """The containers in a tree, those before what is in them."""
    if not optree.tree_is_leaf(tree, namespace=NAMESPACE):
        yield tree
        for part in children(tree):
            yield from nodes(part)


def children(node: Any) -> Sequence[Any]:
    """What a container holds, by sorted key in dicts."""
    parts: Sequence[Any] = optree.tree_flatten_one_level(node, namespace=NAMESPACE)[0]
    return parts


def as_written(tree: Any) -> tuple[list[Any], Hashable]:
    """Leaves and structure with dicts in the order that they have: what a function can see.

    The structure is equal for trees of one structure in one order, with the same keys (1, 1.0 and
    True differ). `flatten` comes first where there may be dataclasses that nobody has seen.
    """
    leaves: list[Any] = []
    structure: list[Any] = []
    try:
        _walk(tree, leaves, structure)
    except RecursionError as error:
        _refuse_endless(error)
    return leaves, tuple(structure)


def _refuse_endless(cause: RecursionError) -> NoReturn:
    complain(
        errors.ArgumentError,
        "an argument or a result is nested too deeply, or contains itself",
        "give and return containers that end.",
        cause=cause,
    )


def _walk(tree: Any, leaves: list[Any], structure: list[Any]) -> None:
    cls = type(tree)
    if _is_container(tree):
        tree = _arrays[0][1](tree)
        cls = type(tree)
    if cls in _PLAIN:
        leaves.append(tree)
        structure.append(_LEAF)
    elif cls in _DICTS:
        structure += (cls, len(tree))
        if cls is defaultdict:
            structure.append(tree.default_factory)
        for name, item in tree.items():
            structure.append(name if type(name) is str else exact_key(name))
            _walk(item, leaves, structure)
    elif cls is tuple or cls is list:
        structure += (cls, len(tree))
        for item in tree:
            _walk(item, leaves, structure)
    elif is_converted_class(cls):
        _walk(_conversions[cls](tree), leaves, structure)
    elif optree.tree_is_leaf(tree, namespace=NAMESPACE):
        leaves.append(tree)
        structure.append(_LEAF)
    else:
        node = optree.tree_flatten_one_level(tree, namespace=NAMESPACE)
        structure += (cls, len(node[0]), node[1] if cls in _fields else Exact(node[1]))
        for item in node[0]:
            _walk(item, leaves, structure)


def positions_as_written(definition: TreeDef) -> list[int]:
    """Where the leaves of `flatten` stand among those of `as_written`."""
    written = as_written(unflatten(definition, range(definition.num_leaves)))[0]
    positions = [0] * len(written)
    for position, leaf in enumerate(written):
        positions[leaf] = position
    return positions


def same_as_written(one: TreeDef, other: TreeDef) -> bool:
    """Whether two structures are equal, with the keys of their dicts in one order."""
    if one != other:
        return False
    trees = (unflatten(tree, range(tree.num_leaves)) for tree in (one, other))
    first, second = (as_written(tree)[1] for tree in trees)
    return first == second


def has_dicts(tree: Any) -> bool:
    """Whether there is a dict in the tree."""
    structure: Any = as_written(tree)[1]
    return any(token in _DICTS for token in structure)


def flatten_with_none(tree: Any) -> tuple[list[Any], TreeDef]:
    """Like `flatten`, with None as a leaf: for trees of options, where None means something."""
    return optree.tree_flatten(tree, none_is_leaf=True, namespace=NAMESPACE)


def unflatten(definition: TreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of that structure with these leaves: the inverse of `flatten`.

    >>> jt.tree.unflatten(jt.tree.structure([1, (2,)]), [3, 4])
    [3, (4,)]
    """
    return optree.tree_unflatten(definition, leaves)


def leaf_names(tree: Any, root: str = "", whole: bool = False) -> list[str]:
    """A Python expression for each leaf of `flatten`, or `flatten_whole`: `params['w'][0]`."""
    leaves, definition = optree.tree_flatten(tree, namespace=NAMESPACE)
    flatten(leaves)  # registers dataclasses
    if any(map(_is_converted, leaves)):
        tree = unflatten(definition, map(_converted, leaves))
    is_leaf = _is_whole if whole else None
    accessors = optree.tree_accessors(tree, is_leaf=is_leaf, namespace=NAMESPACE)
    return [accessor.codify(root) for accessor in accessors]


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply `function` leaf by leaf to trees of one structure."""
    leaves, definition = flatten(tree)
    others = [definition.flatten_up_to(other) for other in rest]
    return unflatten(definition, map(function, leaves, *others))


def register_pytree(
    cls: C,
    flatten_function: Callable[[Any], tuple[Sequence[Any], Any]] | None = None,
    unflatten_function: Callable[[Any, Sequence[Any]], Any] | None = None,
    *,
    static_fields: Sequence[str] = (),
) -> C:
    """Make instances of `cls` containers, so that their arrays are traced.

    For a dataclass the functions may be left out: each field is a child, but for `static_fields`,
    which must be hashable and are part of the structure. Otherwise `flatten_function(obj)` gives
    `(children, static)` with a hashable `static`, and `unflatten_function(static, children)` makes
    the object again (do not check the children there: they may be tracers). A call takes an object
    apart once or more often, so both have to do nothing else. Returns `cls`, and so works as a class
    decorator.

    >>> from dataclasses import dataclass
    >>> @jt.register_pytree
    ... @dataclass
    ... class Layer:
    ...     w: np.ndarray
    ...     b: np.ndarray
    >>> jt.grad(lambda layer: 2 * layer.w + layer.b)(Layer(1.0, 2.0))
    Layer(w=2.0, b=1.0)
    """
    if cls in _registered:
        raise ValueError(f"{cls.__qualname__} is already registered as a pytree")
    if cls in _seen:
        optree.unregister_pytree_node(cls, namespace=NAMESPACE)
        _seen.discard(cls)
        del _fields[cls], _static_fields[cls]
    if flatten_function is None or unflatten_function is None:
        if not dataclasses.is_dataclass(cls):
            raise TypeError(
                f"{cls.__qualname__} is no dataclass: register_pytree needs flatten_function and "
                "unflatten_function"
            )
        _register_dataclass(cls, static_fields)
    else:
        # Optree's hint asks for a collection; any object will do.
        unflatten: Any = unflatten_function
        optree.register_pytree_node(cls, flatten_function, unflatten, namespace=NAMESPACE)
        _flatten_functions[cls] = flatten_function
    _registered.add(cls)
    return cls


def dataclass_fields(cls: type) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The fields of a dataclass that is a container: children, static ones. None for others."""
    return _fields.get(cls)


def flatten_function(cls: type) -> Callable[[Any], Any] | None:
    """What takes instances of `cls` apart, if it was registered with functions of its own."""
    return _flatten_functions.get(cls)


def flattening(value: Any) -> Callable[[Any], Any] | None:
    """What takes this value apart: a function of its class's, or that of arrays that are containers."""
    cls = type(value)
    if str(cls.__module__).startswith("scipy.sparse.") and is_converted_class(cls):
        return _sparse_parts
    return _arrays[0][2] if _is_container(value) else _flatten_functions.get(cls)


def _sparse_parts(x: Any) -> tuple[tuple[Any, ...], Any]:
    """What a sparse matrix of SciPy's is made of, and what has to stay as it is."""
    matrix = sparse_matrix(x)
    children, static = _fields[type(matrix)]
    fixed = (type(matrix), *(getattr(matrix, n) for n in static))
    return tuple([getattr(matrix, n) for n in children]), fixed


def is_registered(cls: type) -> bool:
    """Whether the user registered `cls` (a dataclass met on the way does not count)."""
    return cls in _registered


def static_fields(cls: type) -> frozenset[str] | None:
    """The fields of a dataclass that are part of the structure; None if it is no container."""
    return _static_fields.get(cls)


def keep_whole(cls: type) -> None:
    """Let objects of `cls` and its subclasses be leaves, dataclasses or not."""
    _whole.add(cls)


def convert_leaves(cls: type, convert: Callable[[Any], Any]) -> None:
    """Let what `convert` makes of an instance of `cls`, a container, stand in its place."""
    _conversions[cls] = convert


def convert_arrays(
    cls: type,
    flatten_function: Callable[[Any], Any],
    unflatten_function: Callable[[Any, Any], Any],
    are: Callable[[Any], bool],
    convert: Callable[[Any], Any],
    take_apart: Callable[[Any], Any],
) -> None:
    """Let instances of `cls`, a container, stand for those arrays that `are` containers: `convert` makes
    one of such an array, and `take_apart` gives its children and what has to stay as it is."""
    optree.register_pytree_node(
        cls,
        flatten_function,
        unflatten_function,
        path_entry_type=optree.MappingEntry,
        namespace=NAMESPACE,
    )
    _flatten_functions[cls] = flatten_function
    _arrays[:] = [(are, convert, take_apart)]


def sparse_matrix(x: Any) -> Any:
    """What stands for a sparse matrix of SciPy's; None for anything else."""
    cls = type(x)
    if str(cls.__module__).startswith("scipy.sparse.") and is_converted_class(cls):
        return _conversions[cls](x)
    return None


def is_converted_class(cls: type) -> bool:
    """Whether containers stand in the place of instances of `cls`."""
    if str(cls.__module__).startswith("scipy.sparse.") and cls not in _conversions:
        ensure("sparse")
    return cls in _conversions


def _is_container(leaf: Any) -> bool:
    """Whether a leaf is an array that is a container, or a record of one."""
    dtype = leaf.dtype if isinstance(leaf, (np.ndarray, np.void)) else None
    return dtype is not None and dtype.names is not None and any(are(leaf) for are, *_ in _arrays)


def _is_converted(leaf: Any) -> bool:
    return type(leaf) in _conversions or _is_container(leaf)


def _converted(leaf: Any) -> Any:
    if _is_container(leaf):
        return _arrays[0][1](leaf)
    convert = _conversions.get(type(leaf))
    return leaf if convert is None else convert(leaf)


def _is_new(leaf: Any) -> bool:
    """Whether a leaf is a dataclass, met for the first time, or to be converted."""
    cls = type(leaf)
    if issubclass(cls, (np.ndarray, np.void)):
        return _is_container(leaf)
    if cls in _PLAIN or cls in _leaf_types:
        return False
    if is_converted_class(cls):
        return True
    if not dataclasses.is_dataclass(cls) or any(base in _whole for base in cls.__mro__):
        _leaf_types.add(cls)
        return False
    return cls not in _seen and cls not in _registered


def _static_field(obj: Any, name: str) -> Exact:
    value = getattr(obj, name)
    exact = Exact(value)
    try:
        hash(exact)
    except TypeError:
        raise TypeError(
            f"{type(obj).__qualname__}.{name} is a static field of a pytree and unhashable "
            f"({type(value).__name__}): static fields are compared by value at each call, so give "
            "it a tuple instead of a list, a frozen dataclass instead of a dict"
        ) from None
    return exact


def _register_dataclass(cls: type, static_fields: Sequence[str]) -> None:
    names = [f.name for f in dataclasses.fields(cls)]
    unknown = set(static_fields) - set(names)
    if unknown:
        raise ValueError(f"{cls.__qualname__} has no field {sorted(unknown)[0]!r}")
    children = tuple(n for n in names if n not in static_fields)
    register_attributes(cls, children, tuple(n for n in names if n in static_fields))


def register_attributes(cls: type, children: tuple[str, ...], static: tuple[str, ...]) -> None:
    """Let instances of `cls` be containers of the attributes `children`; those that are `static` are
    part of the structure."""
    _static_fields[cls] = frozenset(static)

    def flatten_attributes(obj: Any) -> tuple[tuple[Any, ...], Any, tuple[str, ...]]:
        values = tuple(getattr(obj, n) for n in children)
        return values, tuple(_static_field(obj, n) for n in static), children

    def unflatten_attributes(metadata: Any, values: Iterable[Any]) -> Any:
        obj: Any = object.__new__(cls)
        for name, value in zip(children, values, strict=True):
            object.__setattr__(obj, name, value)
        for name, value in zip(static, metadata, strict=True):
            object.__setattr__(obj, name, value.value)
        return obj

    _fields[cls] = children, static
    optree.register_pytree_node(
        cls,
        flatten_attributes,
        unflatten_attributes,
        path_entry_type=optree.GetAttrEntry,
        namespace=NAMESPACE,
    )
