"""Checkpoints back into trees: whole or in part, under other names, cast to other dtypes.

All that can be wrong is found before anything is changed: a restore that fails changes nothing.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np

import jitney as jt

from . import places
from .checkpoint_file import CheckpointError, Reader, as_held, fail, named_dtype, reading
from .checkpoint_tree import build, leaves, plain_leaf
from .checkpoints import description, file_of, path_of
from .filling import Filling, Only, Report


@jt.errors.naming_lines
def restore(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    into: Any = None,
    only: Only = None,
    rename: dict[str, str] | None = None,
    cast: bool = False,
) -> Any:
    """The tree of a checkpoint: a file, or a folder, whose newest one is taken.

    - `restore(path)`: dicts, lists and tuples as they were, objects as dicts of their attributes.
    - `like=tree`: a new tree like this one, which stays as it is. It may have `jt.ShapeDtype`s for
      arrays.
    - `into=tree`: this tree, changed in place: arrays are written into, attributes that are None
      yet are filled, generators and iterators are put where they were. Returns it.

    `only`: names of the tree (`"encoder"`, `["layers[0]", "*.scale"]`: what is so named and all
    below), or a function of names; the rest stays. `rename` turns names in the file into those of
    the tree: `{"my_v2": "v2"}`, with `*` for any text. `cast=True` converts to the tree's dtypes.
    Safetensors files of other programs have names and arrays only: `restore(path)` is a dict of
    them.

    Raises CheckpointError where the file is damaged, and where places are missing, left over or of
    another shape or dtype, with all of them (`restore_partial` takes what there is);
    FileNotFoundError where there is no checkpoint. Nothing is changed then.

    >>> import tempfile
    >>> file = jt.train.save(tempfile.mkdtemp(), {"my_v2": np.arange(3.0)}, step=1)
    >>> w = {"v2": np.zeros(3)}
    >>> jt.train.restore(file, into=w, rename={"my_v2": "v2"})
    {'v2': array([0., 1., 2.])}
    """
    tree, report = _restore(path, like, into, only, rename, cast)
    if report:
        raise CheckpointError(
            f"{report}\nrestore_partial takes what fits; rename= and only= say what is meant"
        )
    return tree


@jt.errors.naming_lines
def restore_partial(
    path: str | os.PathLike[str],
    like: Any = None,
    *,
    into: Any = None,
    only: Only = None,
    rename: dict[str, str] | None = None,
    cast: bool = False,
) -> tuple[Any, Report]:
    """Like `restore`, but takes what fits, and says what did not.

    >>> import tempfile
    >>> file = jt.train.save(tempfile.mkdtemp(), {"w": np.ones(2), "b": np.ones(3)}, step=1)
    >>> tree, report = jt.train.restore_partial(file, {"w": np.zeros(2), "b": np.zeros(4)})
    >>> tree["w"], report.misshapen
    (array([1., 1.]), {'b': 'float64[3] in the file, float64[4] here'})
    """
    return _restore(path, like, into, only, rename, cast, partial=True)


def _restore(
    path: Any,
    like: Any,
    into: Any,
    only: Only,
    rename: dict[str, str] | None,
    cast: bool,
    partial: bool = False,
) -> tuple[Any, Report]:
    if like is not None and into is not None:
        raise TypeError("restore takes like= (a new tree) or into= (in place), not both")
    if rename is not None and not isinstance(rename, dict):
        raise TypeError(f'rename= is a dict {{"name in the file": "name here"}}, not {rename!r}')
    file = file_of(path_of(path))
    with reading(file) as reader:
        source = Source(reader)
        if like is None and into is None:
            if only is not None or rename or cast or partial:
                raise TypeError("only=, rename=, cast= and a partial restore need like= or into=")
            return source.value(source.node), Report(file)
        tree = like if into is None else into
        filling = Filling(tree, Report(file), only, cast, in_place=into is not None)
        chosen = filling.match(source.leaves(rename, only), source.spec)
        if only is not None and not (chosen or filling.report):
            fail(file, f"only={only!r} names nothing of the tree, nor of the file")
        if filling.report and not partial:
            return tree, filling.report
        values = {place: source.value(node) for place, node in chosen.items()}
    return filling.put(values), filling.report


class Source:
    """The leaves of an open file."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.said = said = description(reader)
        self._sums = said.get("checksums", {})
        self.node = said["tree"] if said else {"dict": [[n, {"array": n}] for n in reader.entries]}
        self._arrays: dict[tuple[str, str | None], Any] = {}

    def leaves(self, rename: dict[str, str] | None, only: Only) -> dict[str, Any]:
        """The nodes of leaves by name in the tree."""
        renaming = places.Renaming(rename or {})
        found: dict[str, Any] = {}
        for name, node in self._leaves():
            new = renaming(name)
            if new in found:
                fail(
                    self._reader.path,
                    f"rename= makes two places {new!r}, of which one was {name!r}",
                )
            found[new] = node
        if renaming.unused:
            old = renaming.unused[0]
            hint = places.nearest(old, [name for name, _ in self._leaves()])
            fail(self._reader.path, f"rename= speaks of {old!r}, which is not in the file{hint}")
        return {name: node for name, node in found.items() if places.matches(name, only)}

    def _leaves(self) -> Iterator[tuple[str, Any]]:
        """Names as they stand in the file: another program's need not be paths."""
        if self.said:
            return leaves(self.node)
        return ((name, {"array": name}) for name in self._reader.entries)

    def value(self, node: Any) -> Any:
        """What a node stands for."""
        try:
            return build(node, self._array)
        except CheckpointError:
            raise
        except (ValueError, TypeError, KeyError) as error:
            fail(self._reader.path, f"its description is damaged: {error}")

    def _array(self, name: str, dtype: str | None) -> Any:
        if (name, dtype) not in self._arrays:
            array = self.stored(name)
            held = array if dtype is None else as_held(array, named_dtype(dtype))
            self._arrays[name, dtype] = held
        return self._arrays[name, dtype]

    def stored(self, name: str) -> Any:
        """An array as the file has it."""
        return self._reader.array(name, self._sums.get(name))

    def kind(self, node: Any) -> str:
        """A node in a few words: `float32[2, 3]`, a value, `PCG64`."""
        if plain_leaf(node):
            return repr(self.value(node))
        if "array" in node:
            shape, dtype = self.spec(node)
            return f"{dtype.name}{list(shape)}"
        if "state" in node:
            return "state of an iterator"
        return (
            f"generator {type(getattr(found := self.value(node), 'bit_generator', found)).__name__}"
        )

    def spec(self, node: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
        """Shape and dtype of an array's node."""
        entry = self._reader.entries[node["array"]]
        if "dtype" not in node:
            return entry.shape, entry.dtype
        dtype = named_dtype(node["dtype"])
        return entry.shape[:-1] if dtype.kind == "c" else entry.shape, dtype
