"""LLVM text of the vectorcall function that runs call programs.

    PyObject *jitney_vectorcall(callee, args, nargsf, kwnames)

tries the programs of the object's chain one after the other. If none takes the arguments, or the
context variable of the chain is set (a trace is going on), it calls a Python function with the
object in front of the arguments. The chain is held if Python code may run before the call is over.

Between two reads of objects that somebody else could change there is no call that runs Python code,
unless what was read before is owned. While the entry runs without the GIL, or calls back into Python,
`Op.HOLD` keeps what the containers of the arguments could drop.
"""

from __future__ import annotations

from ...codegen.llvm.builder import NULL, symbol
from ...codegen.llvm.modules import Function, module_ir
from ...codegen.module import STATUS_WORDS
from ..native.layout import NdarrayLayout
from . import guard_opcodes, work_opcodes  # noqa: F401  # they register the opcodes
from .arrays_ir import SCRATCH, give_scratch, own_array, take_scratch
from .call_fields import CHAIN_HEAD, CHAIN_OBJECT, CHAIN_WORDS, FALLBACK, OBJECTS
from .opcodes_ir import MISS, program_interpreter
from .ranges_ir import sort_pairs


def call_ir(layout: NdarrayLayout, base_size: int, items: int | None) -> str:
    """The LLVM text. The fields follow `base_size` bytes; lists have their `items` there."""
    functions = [
        own_array(layout),
        take_scratch(layout),
        give_scratch(layout),
        sort_pairs(),
        _report_failure(),
        program_interpreter(layout, items),
        _vectorcall(base_size),
    ]
    return module_ir(functions, list(OBJECTS), [SCRATCH])


def _report_failure() -> Function:
    """Call `failed(code, *status)`, which raises."""
    f = Function("void", "report_failure", internal=True, failed="ptr", code="i64", status="ptr")
    failed, code, status = f.args
    give_up, call = f.block("give_up"), f.block("call")
    report = f.call("ptr", "PyTuple_New", 1 + STATUS_WORDS)
    f.require(report.ne(NULL), give_up)
    f.call("i32", "PyTuple_SetItem", report, 0, f.call("ptr", "PyLong_FromLongLong", code))
    with f.each(STATUS_WORDS) as i:
        word = f.call("ptr", "PyLong_FromLongLong", f.load("i64", status, i, "i64"))
        f.call("i32", "PyTuple_SetItem", report, i + 1, word)
    f.jump(call)
    f.at(call)
    result = f.call("ptr", "PyObject_Call", failed, report, NULL)
    f.call("void", "Py_DecRef", report)
    f.call("void", "Py_DecRef", result)
    f.jump(give_up)
    f.at(give_up)
    f.ret()
    return f


def _vectorcall(base_size: int) -> Function:
    f = Function("ptr", "jitney_vectorcall", callee="ptr", args="ptr", nargsf="i64", names="ptr")
    callee, args, nargsf, names = f.args
    context = f.alloca("ptr")
    programs, python, error = f.block("programs"), f.block("python"), f.block("error")
    n = nargsf & (1 << 63) - 1  # without PY_VECTORCALL_ARGUMENTS_OFFSET
    owner, chain, fallback = (
        f.load("ptr", callee, base_size + 8 * k) for k in (CHAIN_OBJECT, CHAIN_WORDS, FALLBACK)
    )
    f.require(owner.ne(NULL), python)
    variable, active, held, count = (f.load("i64", chain, 8 * k) for k in range(CHAIN_HEAD))
    ask = f.block("ask")
    active = f.load("i64", active.to("inttoptr", "ptr"))
    f.branch(active.eq(0), programs, ask, likely=True)

    f.at(ask)
    variable = variable.to("inttoptr", "ptr")
    got = f.call("i32", "PyContextVar_Get", variable, NULL, context)
    f.require(got.eq(0), error)
    value = f.load("ptr", context)
    f.call("void", "Py_DecRef", value)
    f.branch(value.eq(symbol("none")), programs, python, likely=True)

    def hold(change: str) -> None:
        with f.when(held.ne(0)):
            f.call("void", change, owner)

    f.at(programs)
    hold("Py_IncRef")
    with f.each(count) as i:
        program = f.load("ptr", f.offset(chain, 8 * CHAIN_HEAD), i, "i64")
        result = f.call("ptr", "jitney_program", program, args, n, names)
        taken, missed = f.block("taken"), f.block("missed")
        miss = f.literal("i64", MISS).to("inttoptr", "ptr")
        f.branch(result.ne(miss), taken, missed, likely=True)
        f.at(taken)
        hold("Py_DecRef")
        f.ret(result)
        f.at(missed)
    hold("Py_DecRef")
    f.jump(python)

    f.at(python)
    keywords = f.block("keywords")
    counted = f.block("counted", extra="i64")
    none = f.block("none")
    f.branch(names.eq(NULL), none, keywords, likely=True)
    f.at(none)
    f.jump(counted, 0)
    f.at(keywords)
    f.jump(counted, f.call("i64", "PyTuple_Size", names))
    (extra,) = f.at(counted)
    total = n + extra
    block = f.alloca("ptr", total + 1)
    f.store(callee, block)
    after = f.offset(block, 8)
    with f.each(total) as i:
        f.store(f.load("ptr", args, i, "i64"), after, i, "i64")
    f.ret(f.call("ptr", "PyObject_Vectorcall", fallback, block, n + 1, names))

    f.at(error)
    f.ret(NULL)
    return f
