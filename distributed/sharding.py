"""`shard_map`: a program written for one shard, run on all of them.

    mesh = jt.distributed.mesh(data=2, model=2)

    def layer(x, w):                                  # of one process: a part of x, a part of w
        return jt.psum(x @ w, "model")

    jt.shard_map(layer, mesh, in_specs=(P("data", "model"), P("model")), out_specs=P("data"))(x, w)

Arrays outside are whole, and the same on all processes; inside each process has its part, and axes of
the mesh are named axes. A job of one process computes all shards by `vmap`, so that a program can be
written, tested and differentiated without others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

import jitney as jt

from ..tracer.transforms.named_axes import bound
from .communicator import Communicator
from .starting import init

Function = Callable[..., Any]


class P(tuple[Any, ...]):
    """Which axis of an array is cut along which axis of the mesh: `P("data", None)`, `P()` for whole
    arrays, `P(("data", "model"))` for an axis cut along both, the first one outermost.

    >>> jt.distributed.P("data", None)
    P('data', None)
    """

    __slots__ = ()

    def __new__(cls, *axes: str | tuple[str, ...] | None) -> P:
        return super().__new__(cls, axes)

    def __repr__(self) -> str:
        return f"P({', '.join(map(repr, self))})"


class Mesh:
    """The processes of a group in a grid whose axes have names: see `mesh`."""

    def __init__(self, comm: Communicator | None, shape: dict[str, int]) -> None:
        self.shape = dict(shape)
        self.comm = comm
        self.axes: dict[str, Communicator] = {}
        if comm is None:
            return
        sizes = list(shape.values())
        here = [int(i) for i in np.unravel_index(comm.rank, sizes)]
        self.position = dict(zip(shape, here, strict=True))
        for k, name in enumerate(shape):
            others = [0 if d == k else i for d, i in enumerate(here)]
            color = int(np.ravel_multi_index(others, sizes))
            self.axes[name] = comm.split(color, here[k])

    def __repr__(self) -> str:
        return f"<Mesh {self.shape}{'' if self.comm else ', emulated'}>"


def mesh(comm: Communicator | None = None, /, **shape: int) -> Mesh:
    """A grid of the processes of `comm` (all of the job by default), an axis for each keyword.

    The last axis is the one along which neighbouring ranks lie. All processes call it. In a job of
    one process a grid of any shape is emulated, all shards in one program. SettingError unless the
    grid has as many places as there are processes.

    >>> jt.distributed.mesh(data=2, model=3)
    <Mesh {'data': 2, 'model': 3}, emulated>
    """
    comm = init() if comm is None else comm
    count = math.prod(shape.values())
    if any(type(n) is not int or n < 1 for n in shape.values()) or not shape:
        jt.errors.complain(
            jt.errors.SettingError,
            f"a mesh with the axes {shape}",
            "give each axis a name and a size, as in mesh(data=2, model=2).",
        )
    if comm.size == 1 and count > 1:
        return Mesh(None, shape)
    if count != comm.size:
        jt.errors.complain(
            jt.errors.SettingError,
            f"a mesh {shape} has {count} places, and there are {comm.size} processes",
            "give it axes whose product is the number of processes, or start as many.",
        )
    return Mesh(comm, shape)


def shard_map(f: Function, mesh: Mesh, in_specs: Any, out_specs: Any) -> Function:
    """`f` of one shard, as a function of whole arrays, which are the same on all processes.

    mesh       see `jt.distributed.mesh`; in `f` its axes are names for `jt.psum` and kin
    in_specs   how each positional argument is cut: a `P`, a tuple with one entry for each argument,
               of which each is a `P` for all arrays of the argument or a tree of them
    out_specs  how results are put together, in the same way. What does not name an axis has to be the
               same along it, as it is after a `psum`.

    Gradients are those of the function of whole arrays. ShapeError for an axis that the mesh does not
    divide, TransformError for specs that do not fit the trees.

    >>> mesh, P = jt.distributed.mesh(i=2), jt.distributed.P
    >>> f = jt.shard_map(lambda x: x / jt.psum(x.sum(), "i"), mesh, P("i"), P("i"))
    >>> f(np.array([1.0, 1.0, 2.0, 4.0]))
    array([0.125, 0.125, 0.25 , 0.5  ])
    """
    if not isinstance(mesh, Mesh):
        jt.errors.complain(
            jt.errors.TransformError,
            f"shard_map over {jt.errors.describe(mesh)}",
            "make a mesh: jt.distributed.mesh(data=4).",
        )

    def sharded(*args: Any) -> Any:
        specs = _spread(in_specs, args, mesh, "in_specs")
        leaves, tree = jt.tree.flatten(args)
        if mesh.comm is None:
            return _emulated(f, mesh, args, specs, in_specs, out_specs)
        own = [_enter(mesh, spec, x) for x, spec in zip(leaves, specs, strict=True)]
        with _names(mesh):
            out = f(*jt.tree.unflatten(tree, own))
        results, out_tree = jt.tree.flatten(out)
        ends = _spread(out_specs, out, mesh, "out_specs", single=True)
        whole = [_leave(mesh, spec, y) for y, spec in zip(results, ends, strict=True)]
        return jt.tree.unflatten(out_tree, whole)

    return sharded


def _names(mesh: Mesh) -> Any:
    from contextlib import ExitStack

    stack = ExitStack()
    for name, comm in mesh.axes.items():
        stack.enter_context(bound(name, lambda label, comm=comm: comm))  # type: ignore[misc]
    return stack


def _spread(specs: Any, tree: Any, mesh: Mesh, what: str, single: bool = False) -> list[P]:
    """One spec for each leaf of a tree, of whose upper part `specs` is."""
    if isinstance(specs, P):
        found = [specs] * len(jt.tree.flatten(tree)[0])
    elif isinstance(specs, (tuple, list)) and isinstance(tree, (tuple, list)):
        if len(specs) != len(tree):
            jt.errors.complain(
                jt.errors.TransformError,
                f"{what} has {len(specs)} entries for {len(tree)} "
                f"{'results' if single else 'arguments'}",
                "give one entry for each, or one P for all of them.",
            )
        found = [
            s for spec, x in zip(specs, tree, strict=True) for s in _spread(spec, x, mesh, what)
        ]
    elif isinstance(specs, dict) and isinstance(tree, dict) and specs.keys() == tree.keys():
        found = [s for key in sorted(tree) for s in _spread(specs[key], tree[key], mesh, what)]
    else:
        jt.errors.complain(
            jt.errors.TransformError,
            f"{what} has {specs!r} for {jt.errors.describe(tree)}",
            'give a P for it, as in P("data", None), P() for a whole array.',
        )
    for spec in found:
        for name in _flat(spec):
            if name not in mesh.shape:
                jt.errors.complain(
                    jt.errors.UnboundAxisError,
                    f"{what} has {spec}, and the mesh has the axes {', '.join(mesh.shape)}",
                    "name one of those, or give the mesh another axis.",
                )
    return found


def _cuts(spec: P) -> list[tuple[int, tuple[str, ...]]]:
    """The axes of an array that are cut, and along which axes of the mesh, outermost first."""
    entries = [(k, (e,) if isinstance(e, str) else tuple(e or ())) for k, e in enumerate(spec)]
    return [(k, names) for k, names in entries if names]


def _flat(spec: P) -> list[str]:
    return [name for _, names in _cuts(spec) for name in names]


def _check(x: Any, spec: P, mesh: Mesh) -> None:
    shape = np.shape(x)
    for k, names in _cuts(spec):
        parts = math.prod(mesh.shape[n] for n in names)
        if k >= len(shape) or shape[k] % parts:
            jt.errors.complain(
                jt.errors.ShapeError,
                f"{spec} cuts axis {k} of {jt.errors.describe(x)} into {parts} parts",
                "its size has to be a multiple of that: pad it, or cut another axis.",
            )


def _enter(mesh: Mesh, spec: P, x: Any) -> Any:
    """This process's part of a whole array; the gradient of the whole is put together of all parts'."""
    _check(x, spec, mesh)
    rest = [mesh.axes[n] for n in mesh.shape if n not in _flat(spec)]

    @jt.custom_vjp
    def part(x: Any) -> Any:
        return _part(mesh, spec, x)

    def backward(_: None, ct: Any) -> tuple[Any]:
        for comm in rest:
            ct = jt.psum(ct, comm)
        return (_whole(mesh, spec, ct),)

    part.defvjp(lambda x: (_part(mesh, spec, x), None), backward)
    return part(x) if _has_derivative(x) else _part(mesh, spec, x)


def _leave(mesh: Mesh, spec: P, y: Any) -> Any:
    """The whole array of all parts. Each process has its whole cotangent: its part of it goes back, and
    is shared among those that have the same part."""
    shared = math.prod(n for name, n in mesh.shape.items() if name not in _flat(spec))

    @jt.custom_vjp
    def whole(y: Any) -> Any:
        return _whole(mesh, spec, y)

    whole.defvjp(
        lambda y: (_whole(mesh, spec, y), None),
        lambda _, ct: (_part(mesh, spec, ct) / shared,),
    )
    return whole(y) if _has_derivative(y) else _whole(mesh, spec, y)


def _has_derivative(x: Any) -> bool:
    return isinstance(x, float) or (hasattr(x, "dtype") and np.dtype(x.dtype).kind in "fc")


def _part(mesh: Mesh, spec: P, x: Any) -> Any:
    for k, names in _cuts(spec):
        for name in names:
            length = np.shape(x)[k] // mesh.shape[name]
            start = mesh.position[name] * length
            x = x[(slice(None),) * k + (slice(start, start + length),)]
    return x


def _whole(mesh: Mesh, spec: P, y: Any) -> Any:
    for k, names in _cuts(spec):
        for name in reversed(names):
            y = jt.all_gather(y, mesh.axes[name], axis=k, tiled=True)
    return y


def _emulated(
    f: Function, mesh: Mesh, args: tuple[Any, ...], specs: list[P], in_specs: Any, out_specs: Any
) -> Any:
    """All shards in one program: a vmap for each axis of the mesh, whose examples are the parts."""
    leaves, tree = jt.tree.flatten(args)
    for x, spec in zip(leaves, specs, strict=True):
        _check(x, spec, mesh)
    blocks = [_blocks(x, spec, mesh) for x, spec in zip(leaves, specs, strict=True)]
    each = in_specs if isinstance(in_specs, (tuple, list)) and not isinstance(in_specs, P) else None
    function = f
    for name in reversed(mesh.shape):  # the first axis is the outermost vmap
        ins = tuple(_marks(s, name) for s in (each if each is not None else [in_specs] * len(args)))
        outs, size = _marks(out_specs, name), mesh.shape[name]
        function = jt.vmap(function, ins, outs, axis_size=size, axis_name=name)
    out = function(*jt.tree.unflatten(tree, blocks))
    ends = _spread(out_specs, out, mesh, "out_specs", single=True)
    results, out_tree = jt.tree.flatten(out)
    whole = [_joined(y, spec, mesh) for y, spec in zip(results, ends, strict=True)]
    return jt.tree.unflatten(out_tree, whole)


def _marks(specs: Any, name: str) -> Any:
    """Specs as axes of a vmap over `name`: 0 for what is cut along it."""
    if isinstance(specs, P):
        return 0 if name in _flat(specs) else None
    if isinstance(specs, dict):
        return {key: _marks(spec, name) for key, spec in specs.items()}
    return type(specs)(_marks(spec, name) for spec in specs)


def _blocks(x: Any, spec: P, mesh: Mesh) -> Any:
    """The parts of an array, along a new axis in front for each axis of the mesh that cuts it."""
    shape, order, rest = list(np.shape(x)), {}, []
    cut: list[int] = []
    named = dict(_cuts(spec))
    for k, length in enumerate(shape):
        for name in named.get(k, ()):
            order[name] = len(cut)
            cut.append(mesh.shape[name])
            length //= mesh.shape[name]
        rest.append(len(cut))
        cut.append(length)
    front = [order[name] for name in mesh.shape if name in order]
    return np.transpose(np.reshape(x, cut), (*front, *rest))


def _joined(y: Any, spec: P, mesh: Mesh) -> Any:
    """The array of parts that lie along axes in front, as `_blocks` has them."""
    front = [name for name in mesh.shape if name in _flat(spec)]
    named, shape, perm = dict(_cuts(spec)), [], []
    for k, length in enumerate(np.shape(y)[len(front) :]):
        for name in named.get(k, ()):
            perm.append(front.index(name))
            length *= mesh.shape[name]
        perm.append(len(front) + k)
        shape.append(length)
    return np.reshape(np.transpose(y, perm), shape)
