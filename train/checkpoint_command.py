"""`python -m jitney checkpoint`: what is in checkpoints, and other names for it."""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from .checkpoint_file import CheckpointError, checksum, fail, reading, write
from .checkpoints import file_of, latest, steps
from .places import GENERATORS, Renaming, leaves, shown
from .restoring import Source

_TOKEN = re.compile(
    r"\.?([^.\[\]]+)|\[((?:'(?:\\.|[^'])*'|\"(?:\\.|[^\"])*\"|[^\]'\"])+)\]", re.DOTALL
)


def parser() -> argparse.ArgumentParser:
    """The actions and their options."""
    parser = argparse.ArgumentParser(
        prog="python -m jitney checkpoint", description="What is in checkpoints of jt.train."
    )
    actions = parser.add_subparsers(dest="action", metavar="action", required=True)
    listing = actions.add_parser("ls", help="the checkpoints of folders: steps, times, sizes")
    listing.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    show = actions.add_parser("show", help="what is in one: places, dtypes, shapes; values of some")
    show.add_argument("path", type=Path, metavar="PATH", help="a file, or a folder: its newest one")
    show.add_argument(
        "names", nargs="*", metavar="NAME", help="show the values of these places (* for any text)"
    )
    diff = actions.add_parser("diff", help="how two differ; the exit status is 1 if they do")
    diff.add_argument("paths", nargs=2, type=Path, metavar="PATH")
    rename = actions.add_parser("rename", help="give places other names: my_v2=v2 'enc.*=dec.*'")
    rename.add_argument("path", type=Path, metavar="PATH")
    rename.add_argument("names", nargs="+", metavar="OLD=NEW")
    rename.add_argument(
        "-o", "--output", type=Path, help="write there, and leave the file as it is"
    )
    return parser


def run(arguments: list[str]) -> int:
    """Run one action and return its exit status."""
    options = parser().parse_args(arguments)
    try:
        if options.action == "ls":
            return _ls(options.paths)
        if options.action == "show":
            return _show(file_of(options.path), options.names)
        if options.action == "diff":
            return _diff(*map(file_of, options.paths))
        return _rename(file_of(options.path), options.names, options.output)
    except (CheckpointError, OSError, ValueError) as error:
        print(f"jitney: {error}", file=sys.stderr)
        return 2


def _ls(paths: list[Path]) -> int:
    status = 0
    for path in paths:
        files = [path] if path.is_file() else list(steps(path).values())
        if not files:
            latest(path)
            print(f"{path}: no checkpoints")
            status = 1
        for file in files:
            try:
                with reading(file) as reader:
                    source = Source(reader)
                    size = sum(entry.end - entry.begin for entry in reader.entries.values())
                    said = (
                        f"{len(reader.entries):6} arrays {_bytes(size):>10}  {_when(source.said)}"
                    )
            except CheckpointError as error:
                said, status = f"damaged: {error}", 2
            print(f"{file}  {said}")
    return status


def _show(path: Path, names: list[str]) -> int:
    with reading(path) as reader:
        source = Source(reader)
        found = source.leaves({}, names or None)
        if not names:
            versions = source.said.get("versions", {})
            step = source.said.get("step")
            by = ", ".join(f"{name} {version}" for name, version in versions.items())
            print(f"{path}: step {step}, {_when(source.said)}, {by or 'no description'}")
        elif not found:
            fail(path, f"no place is called {' or '.join(names)}")
        width = max(map(len, found), default=0)
        for place, node in found.items():
            print(f"{shown(place):{width}}  {source.kind(node)}")
            if names:
                print(source.value(node))
    return 0


def _diff(one: Path, other: Path) -> int:
    lines = []
    with reading(one) as reader, reading(other) as second:
        left, right = Source(reader), Source(second)
        a, b = left.leaves({}, None), right.leaves({}, None)
        lines += [f"- {shown(place)}  {left.kind(a[place])}" for place in a if place not in b]
        lines += [f"+ {shown(place)}  {right.kind(b[place])}" for place in b if place not in a]
        for place in a:
            if place not in b:
                continue
            kinds = left.kind(a[place]), right.kind(b[place])
            if kinds[0] != kinds[1]:
                lines.append(f"! {shown(place)}  {kinds[0]} | {kinds[1]}")
                continue
            found = _differences(place, left.value(a[place]), right.value(b[place]))
            lines += [f"! {shown(inner)}  {how}" for inner, how in found]
    print("\n".join(lines) if lines else f"{one} and {other} hold the same")
    return 1 if lines else 0


def _differences(place: str, x: Any, y: Any) -> Iterator[tuple[str, str]]:
    """The places of two values that differ, those in an iterator's state too, and how."""
    ours, theirs = dict(leaves(x, place)), dict(leaves(y, place))
    for inner in {**ours, **theirs}:
        if inner not in ours or inner not in theirs:
            yield inner, f"only in the {'first' if inner in ours else 'second'}"
        elif not _same(ours[inner], theirs[inner]):
            yield inner, _difference(ours[inner], theirs[inner])


def _same(x: Any, y: Any) -> bool:
    if isinstance(x, np.ndarray) and isinstance(y, np.ndarray):
        return (x.dtype, x.shape) == (y.dtype, y.shape) and x.tobytes() == y.tobytes()
    if isinstance(x, GENERATORS):
        from .checkpoint_tree import generator_state

        x, y = generator_state(x), generator_state(y)
    return repr(x) == repr(y)


def _difference(x: Any, y: Any) -> str:
    if isinstance(x, GENERATORS):
        return "another state"
    if not isinstance(x, np.ndarray) or not isinstance(y, np.ndarray):
        return f"{x!r} | {y!r}"
    if x.shape != y.shape or x.dtype.kind not in "biufcV":
        return "other values"
    wide = np.complex128 if x.dtype.kind == "c" else np.float64
    with np.errstate(invalid="ignore"):
        apart = np.abs(x.astype(wide) - y.astype(wide))
    return (
        f"{np.count_nonzero(apart != 0)} of {x.size} elements differ, by at most {apart.max():.6g}"
    )


def _rename(path: Path, names: list[str], output: Path | None) -> int:
    pairs = [name.partition("=") for name in names]
    if bad := [name for name, (old, _, new) in zip(names, pairs, strict=True) if not (old and new)]:
        raise ValueError(f"{bad[0]!r} is not OLD=NEW")
    rules = {old: new for old, _, new in pairs}
    target = output or path
    with reading(path) as reader:
        source = Source(reader)
        arrays_called = Renaming(rules)
        arrays = {arrays_called(name): source.stored(name) for name in reader.entries}
        if len(arrays) < len(reader.entries):
            fail(path, "two arrays would have one name")
        tree: dict[Any, Any] = {}
        for place, node in source.leaves(rules, None).items() if source.said else ():
            _insert(tree, path, place, _renamed(node, arrays_called))
    sums = {name: checksum(name, array) for name, array in arrays.items()}
    said = {**source.said, "tree": _nested(tree), "checksums": sums}
    write(target, arrays, json.dumps(said) if source.said else None)
    print(f"{target}: {len(arrays)} arrays")
    return 0


def _keys(place: str) -> list[Any]:
    """The keys of a path: `layers[0].w` to `["layers", 0, "w"]`."""
    if "".join(match[0] for match in _TOKEN.finditer(place)) != place:
        raise ValueError(f"{place!r} is no path such as model.layers[0].w")
    return [m[1] if m[1] is not None else ast.literal_eval(m[2]) for m in _TOKEN.finditer(place)]


def _insert(tree: dict[Any, Any], path: Path, place: str, node: Any) -> None:
    *above, last = _keys(place)
    for key in above:
        tree = tree.setdefault(key, {})
        if not isinstance(tree, dict):
            break
    if not isinstance(tree, dict) or last in tree:
        fail(path, f"{place!r} would lie in another array, or be one of two")
    tree[last] = [node]  # in a list, which tells it from what is nested


def _nested(tree: Any) -> Any:
    if isinstance(tree, list):
        return tree[0]
    if list(tree) == list(range(len(tree))) and tree:
        return {"list": [_nested(part) for part in tree.values()]}
    nodes = []
    for key, part in tree.items():
        named = {"tuple": list(key)} if isinstance(key, tuple) else key
        nodes.append([named, _nested(part)])
    return {"dict": nodes}


def _renamed(node: Any, called: Renaming) -> Any:
    """The node with its arrays' new names."""
    if isinstance(node, list):
        return [_renamed(part, called) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: called(part) if key == "array" else _renamed(part, called)
        for key, part in node.items()
    }


def _bytes(size: float) -> str:
    for unit in ("B", "kB", "MB"):
        if size < 1000:
            return f"{size:.4g} {unit}"
        size /= 1000
    return f"{size:.4g} GB"


def _when(said: dict[str, Any]) -> str:
    if not isinstance(said.get("time"), float):
        return "no date"
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(said["time"]))
