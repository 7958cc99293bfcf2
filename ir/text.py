"""The text form of graphs: `print_graph` writes it, `text_parser.parse_graph` reads the same graph back.

    graph softmax(%x: f32[8,64]) -> f32[8,64] {
      %m = max %x axes=[1]                      : f32[8]     # model.py:12
      %b = broadcast %m dims=[0] shape=[8,64]   : f32[8,64]  # model.py:12 in softmax
      %0 = sub %x, %b                           : f32[8,64]
      %y = exp %0                               : f32[8,64]
      return %y
    }

- Values without a name hint are numbered. Regions follow their op's line, in braces, as graphs.
- Attributes: ints, floats (`inf`, `-inf`, `nan`), `true`, `false`, `none`, "strings", dtypes
  (`f32`), types (`f32[2,3]`, `tape`), tuples `[1,[2,3]]`, and arrays: `{1.0, 2.0}` lists the
  elements in C order, complex ones as `(1.0, 2.0)`, and `{base64 "..."}` holds the bytes of a large
  array; the result's type gives shape and dtype.
- A trailing comment `# file:line` or `# file:line in function` is the op's source line, after which
  there may be its column, the path of its scope and its role in a derivative: `# model.py:12 in
  <lambda>, column 9 [encoder], grad of sin`. Any other comment is only a comment.
- Names of values may be paths, `%encoder/h`.

The text means the same graph: value names (made unique), attributes to the bit, and source lines.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .types import TapeType, TensorType, TokenType, dtype_kind, dtype_name, is_small

if TYPE_CHECKING:
    from .graph import Graph, Op, SourceLine, Value

NAME = r"[^\W\d][\w.]*"  # of a graph, that needs no quotes
SCOPE = r"[\w./-]+"  # of a scope, the same
INLINE_ELEMENTS = 64  # larger arrays print as base64
_MAX_COLUMN = 56  # types and comments are aligned up to here
_NOT_IN_NAMES = re.compile(r"[^\w/]")


def print_graph(graph: Graph) -> str:
    """The text of `graph`. Equal texts mean equal graphs, up to names."""
    return "\n".join(_graph_lines(graph)) + "\n"


def _graph_lines(graph: Graph) -> Iterator[str]:
    names = printed_names(graph)
    params = ", ".join(f"{names[v]}: {v.type}" for v in graph.params)
    arrow = f" -> {_types(graph.outputs)}" if graph.outputs else ""
    name = graph.name if re.fullmatch(NAME, graph.name) else json.dumps(graph.name)
    yield f"graph {name}({params}){arrow} {{"
    heads = [_op_head(op, names) for op in graph.ops]
    width = _column(len(head) for head in heads)
    tails = [f" : {_types(op.results)}" if op.results else "" for op in graph.ops]
    comment = _column(len(t) for t, op in zip(tails, graph.ops, strict=True) if op.loc)
    for op, head, tail in zip(graph.ops, heads, tails, strict=True):
        line = f"  {head:<{width}}{tail}" if tail else f"  {head}"
        if op.regions:
            line += " {"
        if op.loc is not None:
            line = f"{line:<{2 + width + comment}}  # {_source(op.loc)}"
        yield line
        for region in op.regions:
            for inner in _graph_lines(region):
                yield "    " + inner
        if op.regions:
            yield "  }"
    yield f"  return {', '.join(names[v] for v in graph.outputs)}".rstrip()
    yield "}"


def _column(widths: Iterator[int]) -> int:
    return max((n for n in widths if n <= _MAX_COLUMN), default=0)


def printed_names(graph: Graph) -> dict[Value, str]:
    """`%name` for each value: hints cleaned and made unique, values without one numbered."""
    hints = {v: _clean(v.name) for v in graph.values()}
    used = set(hints.values())  # so that a suffixed name never takes another value's hint
    suffixes = dict.fromkeys(used, 0)
    names: dict[Value, str] = {}
    numbered = 0
    for value, hint in hints.items():
        if not hint:
            names[value] = f"%{numbered}"
            numbered += 1
            continue
        unique = hint
        while suffixes[hint] and unique in used:
            unique = f"{hint}_{suffixes[hint]}"
            suffixes[hint] += 1
        suffixes[hint] = suffixes[hint] or 1
        used.add(unique)
        names[value] = f"%{unique}"
    return names


def _clean(name: str) -> str:
    name = _NOT_IN_NAMES.sub("_", name)
    return f"_{name}" if name[:1].isdecimal() else name


def _types(values: Sequence[Value]) -> str:
    return ", ".join(str(v.type) for v in values)


def _op_head(op: Op, names: dict[Value, str]) -> str:
    parts = [op.name]
    if op.operands:
        parts.append(", ".join(names[v] for v in op.operands))
    order = [n for n in op.definition.attrs if n in op.attrs]
    for name in order + [n for n in op.attrs if n not in order]:
        parts.append(f"{name}={print_attribute(op.attrs[name])}")
    results = ", ".join(names[v] for v in op.results)
    return f"{results} = {' '.join(parts)}" if results else " ".join(parts)


def _source(loc: SourceLine) -> str:
    text = str(loc)
    if loc.function:
        text += f" in {loc.function}"
    if loc.column:
        text += f", column {loc.column}"
    if loc.scope:
        text += f" [{_scope_text(loc.scope)}]"
    text += f" {{{loc.knobs}}}" if loc.knobs else ""
    return f"{text}, {loc.role}" if loc.role else text


def _scope_text(scope: str) -> str:
    """The path, in quotes where it could be taken for something else."""
    return scope if re.fullmatch(SCOPE, scope) else json.dumps(scope).replace(":", "\\u003a")


def print_attribute(value: Any) -> str:
    """The text of one attribute. Raises TypeError for what cannot stand in a graph."""
    if value is None:
        return "none"
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, float):
        return repr(float(value))
    if isinstance(value, str):
        return json.dumps(value)
    if isinstance(value, tuple):
        return f"[{','.join(map(print_attribute, value))}]"
    if isinstance(value, np.dtype):
        return dtype_name(value)
    if isinstance(value, TensorType | TokenType | TapeType):
        return str(value)
    if isinstance(value, np.ndarray):
        return _print_array(value)
    if callable(value) or hasattr(value, "__record_fields__"):
        # For the eye: a Python function, or a library's loop, cannot be read back.
        return json.dumps(repr(value))
    raise TypeError(f"an attribute of type {type(value).__name__} has no text form")


def _print_array(array: np.ndarray) -> str:
    if array.size > INLINE_ELEMENTS:
        data = np.ascontiguousarray(array)
        if not is_small(data.dtype):
            data = data.astype(data.dtype.newbyteorder("<"), copy=False)
        return f'{{base64 "{base64.b64encode(data.tobytes()).decode("ascii")}"}}'
    return f"{{{', '.join(_print_element(x) for x in array.reshape(-1))}}}"


def _print_element(x: Any) -> str:
    kind = dtype_kind(x.dtype)
    if kind == "b":
        return "true" if x else "false"
    if kind == "c":
        return f"({_print_element(x.real)}, {_print_element(x.imag)})"
    if kind != "f":
        return str(int(x))
    if math.isnan(x):  # NaNs differ in sign and payload: only the plain one is `nan`
        plain = np.array(math.nan, x.dtype)
        return "nan" if plain.tobytes() == x.tobytes() else f"nan:0x{_bits(x):x}"
    short = str(x)
    if "." not in short and "e" not in short and "inf" not in short:
        short += ".0"
    exact = x.dtype.type(float(short)).tobytes() == x.tobytes()
    return short if exact else repr(float(x))


def _bits(x: Any) -> int:
    return int(np.array(x).view(f"u{x.dtype.itemsize}"))
