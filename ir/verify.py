"""The verifier: what every graph must satisfy, checked between passes in tests and on request.

- SSA: each value is defined once, before it is read; outputs are defined.
- Types: each op's results have the types that its definition infers; parameters know their place.
- Attributes: exactly those that the definition names (or fewer, where `infer` has defaults).
- Constants are read-only arrays.
- Regions capture nothing and agree with their op's operands (the op's `infer` checks signatures).
- Effects: an effectful op takes a token last and gives one last.
- Linearity: each token and each tape is used at most once.

A graph that fails was built by a faulty pass or rule; the message says where: op, position, line.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .graph import Graph, Op, Value
from .opdef import OPS, GraphError
from .types import TOKEN, TensorType, is_linear, is_supported


def verify(graph: Graph) -> None:
    """Raise GraphError, naming the op and its source line, unless `graph` is well formed."""
    _verify(graph, f"graph {graph.name}")


def _verify(graph: Graph, where: str) -> None:
    defined: set[Value] = set()
    spent: set[Value] = set()
    for i, param in enumerate(graph.params):
        if param in defined:
            raise GraphError(f"{where}: parameter {i} is listed twice")
        if param.op is not None or param.index != i:
            raise GraphError(f"{where}: parameter {i} is {param!r}, which is not a parameter {i}")
        defined.add(param)
    for position, op in enumerate(graph.ops):
        problem = _problem(op, defined, spent)
        if problem is not None:
            line = f" ({op.loc})" if op.loc else ""
            raise GraphError(f"{where}: op {position}, {op.name}{line}: {problem}")
        defined.update(op.results)
        for k, region in enumerate(op.regions):
            line = f" ({op.loc})" if op.loc else ""
            _verify(region, f"{where}: op {position}, {op.name}{line}: region {k}")
    for i, output in enumerate(graph.outputs):
        if output not in defined:
            raise GraphError(f"{where}: output {i}, {output!r}, is not defined in the graph")
        if is_linear(output.type):
            if output in spent:
                raise GraphError(f"{where}: output {i} is a {output.type} that was already used")
            spent.add(output)


def _problem(op: Op, defined: set[Value], spent: set[Value]) -> str | None:
    """What is wrong with `op`, given the values defined before it and the tokens used before it."""
    definition = op.definition
    if OPS.get(definition.name) is not definition:
        return "its definition is not the registered one"
    for i, operand in enumerate(op.operands):
        if operand not in defined:
            return f"operand {i}, {operand!r}, is not defined before it"
        if is_linear(operand.type):
            if operand in spent:
                return f"operand {i} is a {operand.type} that was already used"
            spent.add(operand)
    for name, value in op.attrs.items():
        if name not in definition.attrs:
            return f"unknown attribute {name!r}; it has {', '.join(definition.attrs) or 'none'}"
        problem = _attribute_problem(value)
        if problem is not None:
            return f"attribute {name!r}: {problem}"
    ends = [values[-1].type if values else None for values in (op.operands, op.results)]
    if definition.effect and ends != [TOKEN, TOKEN]:
        return "an effectful op takes a token as its last operand and gives one as its last result"
    return _result_problem(op, defined)


def _attribute_problem(value: Any) -> str | None:
    if isinstance(value, np.ndarray):
        if value.flags.writeable:
            return "the array is writeable, so it could change under the graph"
        if not is_supported(value.dtype):
            return f"the array has dtype {value.dtype}"
        return None
    try:
        hash(value)
    except TypeError:
        return f"{value!r} is not hashable"
    return None


def _result_problem(op: Op, defined: set[Value]) -> str | None:
    types = [v.type for v in op.operands]
    try:
        if op.definition.regions:
            inferred = op.definition.infer(*types, regions=op.regions, **op.attrs)
        elif op.regions:
            return "it has regions, but its definition takes none"
        else:
            inferred = op.definition.infer(*types, **op.attrs)
    except GraphError as error:
        return f"operands {_list(types)} are refused: {error}"
    except TypeError as error:  # wrong number of operands, or missing attributes
        return f"operands {_list(types)} and attributes {sorted(op.attrs)} do not fit: {error}"
    inferred = inferred if isinstance(inferred, tuple) else (inferred,)
    actual = tuple(v.type for v in op.results)
    if actual != inferred:
        return f"its results are {_list(actual)}, but its operands give {_list(inferred)}"
    for i, result in enumerate(op.results):
        if result in defined:
            return f"result {i} is defined twice"
        if result.op is not op or result.index != i:
            return f"result {i} is {result!r}, which belongs to another op"
        if isinstance(result.type, TensorType) and not is_supported(result.type.dtype):
            return f"result {i} has dtype {result.type.dtype}"
    return None


def _list(types: Any) -> str:
    return "(" + ", ".join(map(str, types)) + ")"
