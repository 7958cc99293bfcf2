"""Kernels that limits of machines are measured with, as graphs and what they are called with."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..ir.graph import Graph
from ..ir.text_parser import parse_graph

SIDE = 512  # of the matrices
SORTED = 1 << 19  # keys
_CHAIN = 2048  # elements that elementwise functions are computed of


class Yardstick(NamedTuple):
    """`amount`: how much of what is measured a call does."""

    graph: Graph
    arrays: list[np.ndarray[Any, Any]]
    amount: float


def stream(nbytes: int) -> Yardstick:
    """One array read, one written: so many bytes together."""
    n = nbytes // 8
    text = f"""graph stream(%x: f32[{n}]) -> f32[{n}] {{
      %0 = add %x, %x : f32[{n}]
      return %0
    }}"""
    return Yardstick(parse_graph(text), [np.zeros(n, np.float32)], 8 * n)


def product(dtype: str) -> Yardstick:
    """A product of square matrices, in flops."""
    type = f"{dtype}[{SIDE}, {SIDE}]"
    text = f"""graph product(%x: {type}, %y: {type}) -> {type} {{
      %0 = dot %x, %y contract=[[1], [0]] batch=[[], []] : {type}
      return %0
    }}"""
    ones = np.ones((SIDE, SIDE), dtype.replace("f", "float"))
    return Yardstick(parse_graph(text), [ones, ones], 2 * SIDE**3)


def chain(dtype: str) -> Yardstick:
    """Functions of one element, as programs have them, of few elements. The amount is of elements."""
    type = f"{dtype}[{_CHAIN}]"
    text = f"""graph chain(%x: {type}) -> {type} {{
      %0 = tanh %x : {type}
      %1 = neg %x : {type}
      %2 = exp %1 : {type}
      %3 = mul %0, %2 : {type}
      %4 = log %x : {type}
      %5 = sqrt %x : {type}
      %6 = div %4, %5 : {type}
      %7 = add %3, %6 : {type}
      return %7
    }}"""
    x = np.linspace(0.1, 4.0, _CHAIN, dtype=dtype.replace("f", "float"))
    return Yardstick(parse_graph(text), [x], _CHAIN)


def reads(nbytes: int) -> Yardstick:
    """Elements read at random of an array of so many bytes, of more lines than a near cache holds."""
    size = nbytes // 4
    n = min(max(size // 2, 1 << 14), 1 << 19)
    text = f"""graph reads(%x: f32[{size}], %i: i32[{n}]) -> f32[{n}] {{
      %0 = convert %i dtype=i64 : i64[{n}]
      %1 = gather %x, %0 axes=[0] mode="check" names=[0] : f32[{n}]
      return %1
    }}"""
    places = np.random.default_rng(0).integers(0, size, n, np.int32)
    return Yardstick(parse_graph(text), [np.zeros(size, np.float32), places], n)


def sort() -> Yardstick:
    """Keys of four bytes, in bytes times digits of eight bits."""
    type = f"f32[{SORTED}]"
    text = f"""graph sorted(%x: {type}) -> {type} {{
      %0 = sort %x axis=0 stable=true : {type}
      return %0
    }}"""
    keys = np.random.default_rng(0).random(SORTED, np.float32)
    return Yardstick(parse_graph(text), [keys], 4 * 4 * SORTED)
