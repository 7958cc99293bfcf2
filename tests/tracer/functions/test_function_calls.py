"""The table of calls is complete: each public function of arrays, and each method, has one."""

from __future__ import annotations

from function_calls import CALLS, called
from function_operands import CHOICES, OPERANDS

import jitney as jt
from jitney.tracer.arrays.table import FUNCTIONS
from jitney.tracer.core.tracers import Tracer

NAMES = set().union(*map(called, CALLS))
# What a tracer has beside the methods of NumPy's arrays.
OURS = set("assign device element_strides name scalar to_device type value weak writeable".split())
NUMBERS = {"bit_count", "bit_length", "is_integer"}  # methods of numbers, not of arrays
DYNAMIC = {"nonzero"}  # the shape of x.nonzero() is not known while tracing, and it takes no size=


def test_every_function_has_a_call() -> None:
    wanted = {*FUNCTIONS, *(f"special.{n}" for n in vars(jt.special))}
    assert sorted(wanted - NAMES) == []


def test_every_method_has_a_call() -> None:
    methods = {n for n in dir(Tracer) if not n.startswith("_")} - OURS - NUMBERS - DYNAMIC
    assert sorted(m for m in methods if f".{m}" not in NAMES) == []


def test_every_operand_and_choice_is_used() -> None:
    used = {n for call in CALLS for n in (*call.operands, *call.choices)}
    assert sorted({*OPERANDS, *CHOICES} - used) == []
    assert len({call.expression for call in CALLS}) == len(CALLS)
