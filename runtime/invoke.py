"""The native half of a call: check the arguments, gather pointers, run the entry without the GIL.

`jitney_invoke(plan, arrays, outputs, scratch)` is one emitted function for all executables.
`plan` is a block of 64-bit words that describes one of them (see `plan_words`); `arrays` and
`outputs` are Python lists or tuples of ndarrays. It returns, as a Python object,

- None: done;
- an int k >= 0: input k is not a plain ndarray with the declared dtype, shape, strides and
  alignment; nothing has run. -1: `arrays` is no list or tuple of the right length;
- a tuple (site, status0, status1, ...): the entry reported an error;

and it raises what a signal handler raised while the entry ran.

Checking costs a few nanoseconds per array, so that running an executable on wrong arrays is an
exception and never a crash. `native_invoke()` is None where the probe in `layout` did not
recognise ndarrays; `Executable` then does the same through NumPy's Python interface.
"""

from __future__ import annotations

import ctypes
import sysconfig
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from ..codegen.module import PYTHON_ERROR, STATUS_WORDS
from ..ir.types import DTYPE_NAMES, TensorType, dtype_name
from .layout import ALIGNED, NdarrayLayout, ndarray_layout

ANY_STRIDE = -(1 << 63)  # in a plan: this axis has at most one element, its stride says nothing
REPORTED_WORDS = STATUS_WORDS  # status words that come back with an error

# PyObject *jitney_invoke(plan, arrays, outputs, scratch)
Invoke = Callable[[int, Any, Any, int], Any]

_IR = """
@PyList_Type = external global i8
@PyTuple_Type = external global i8
@ndarray_type = external global i8
@none = external global i8
declare i64 @PyList_Size(ptr)
declare i64 @PyTuple_Size(ptr)
declare ptr @PyList_GetItem(ptr, i64)
declare ptr @PyTuple_GetItem(ptr, i64)
declare ptr @PyTuple_New(i64)
declare i32 @PyTuple_SetItem(ptr, i64, ptr)
declare ptr @PyLong_FromLongLong(i64)
declare void @Py_IncRef(ptr)
declare ptr @PyEval_SaveThread()
declare void @PyEval_RestoreThread(ptr)

define internal i64 @word(ptr %base, i64 %i) alwaysinline nounwind {{
  %p = getelementptr i64, ptr %base, i64 %i
  %v = load i64, ptr %p
  ret i64 %v
}}

; The length of a list or tuple, -1 for anything else.
define internal i64 @length(ptr %sequence) nounwind {{
entry:
  %type_at = getelementptr i8, ptr %sequence, i64 {ob_type}
  %type = load ptr, ptr %type_at
  %is_list = icmp eq ptr %type, @PyList_Type
  br i1 %is_list, label %list, label %other
list:
  %list_size = call i64 @PyList_Size(ptr %sequence)
  ret i64 %list_size
other:
  %is_tuple = icmp eq ptr %type, @PyTuple_Type
  br i1 %is_tuple, label %tuple, label %neither
tuple:
  %tuple_size = call i64 @PyTuple_Size(ptr %sequence)
  ret i64 %tuple_size
neither:
  ret i64 -1
}}

define internal ptr @item(ptr %sequence, i64 %i) nounwind {{
entry:
  %type_at = getelementptr i8, ptr %sequence, i64 {ob_type}
  %type = load ptr, ptr %type_at
  %is_list = icmp eq ptr %type, @PyList_Type
  br i1 %is_list, label %list, label %tuple
list:
  %from_list = call ptr @PyList_GetItem(ptr %sequence, i64 %i)
  ret ptr %from_list
tuple:
  %from_tuple = call ptr @PyTuple_GetItem(ptr %sequence, i64 %i)
  ret ptr %from_tuple
}}

; Whether an object is the ndarray that the record says: descr, ndim, dims, strides.
define internal i1 @matches(ptr %array, ptr %record, i64 %ndim) nounwind {{
entry:
  %type_at = getelementptr i8, ptr %array, i64 {ob_type}
  %type = load ptr, ptr %type_at
  %is_array = icmp eq ptr %type, @ndarray_type
  br i1 %is_array, label %head, label %no
head:
  %descr_at = getelementptr i8, ptr %array, i64 {descr}
  %descr = load i64, ptr %descr_at
  %want_descr = call i64 @word(ptr %record, i64 0)
  %same_descr = icmp eq i64 %descr, %want_descr
  %ndim_at = getelementptr i8, ptr %array, i64 {ndim}
  %have_ndim = load i32, ptr %ndim_at
  %ndim_narrow = trunc i64 %ndim to i32
  %same_ndim = icmp eq i32 %have_ndim, %ndim_narrow
  %flags_at = getelementptr i8, ptr %array, i64 {flags}
  %flags = load i32, ptr %flags_at
  %aligned_bit = and i32 %flags, {aligned}
  %aligned = icmp ne i32 %aligned_bit, 0
  %ok1 = and i1 %same_descr, %same_ndim
  %ok2 = and i1 %ok1, %aligned
  br i1 %ok2, label %axes, label %no
axes:
  %dims_at = getelementptr i8, ptr %array, i64 {dims}
  %dims = load ptr, ptr %dims_at
  %strides_at = getelementptr i8, ptr %array, i64 {strides}
  %strides = load ptr, ptr %strides_at
  br label %axis
axis:
  %i = phi i64 [ 0, %axes ], [ %i_next, %stride_ok ]
  %more = icmp slt i64 %i, %ndim
  br i1 %more, label %check, label %yes
check:
  %dim = call i64 @word(ptr %dims, i64 %i)
  %dim_index = add i64 %i, 2
  %want_dim = call i64 @word(ptr %record, i64 %dim_index)
  %same_dim = icmp eq i64 %dim, %want_dim
  br i1 %same_dim, label %stride, label %no
stride:
  %stride_index = add i64 %dim_index, %ndim
  %want_stride = call i64 @word(ptr %record, i64 %stride_index)
  %have_stride = call i64 @word(ptr %strides, i64 %i)
  %same_stride = icmp eq i64 %have_stride, %want_stride
  %any_stride = icmp eq i64 %want_stride, {any_stride}
  %fine = or i1 %same_stride, %any_stride
  br i1 %fine, label %stride_ok, label %no
stride_ok:
  %i_next = add i64 %i, 1
  br label %axis
yes:
  ret i1 true
no:
  ret i1 false
}}

define ptr @jitney_invoke(ptr %plan, ptr %arrays, ptr %outputs, ptr %scratch) {{
entry:
  %entry_word = call i64 @word(ptr %plan, i64 0)
  %function = inttoptr i64 %entry_word to ptr
  %n_in = call i64 @word(ptr %plan, i64 1)
  %n_out = call i64 @word(ptr %plan, i64 2)
  %release = call i64 @word(ptr %plan, i64 3)
  %releases = icmp ne i64 %release, 0
  %status = alloca [{status_words} x i64], align 64
  %n_arrays = add i64 %n_in, %n_out
  %n_pointers = add i64 %n_arrays, 2
  %block = alloca ptr, i64 %n_pointers, align 64
  %have = call i64 @length(ptr %arrays)
  %right_count = icmp eq i64 %have, %n_in
  br i1 %right_count, label %inputs, label %bad_count
bad_count:
  %minus_one = call ptr @PyLong_FromLongLong(i64 -1)
  ret ptr %minus_one
inputs:
  %first_record = getelementptr i64, ptr %plan, i64 4
  br label %input
input:
  %i = phi i64 [ 0, %inputs ], [ %i_next, %accept ]
  %record = phi ptr [ %first_record, %inputs ], [ %next_record, %accept ]
  %more_in = icmp slt i64 %i, %n_in
  br i1 %more_in, label %guard, label %outs
guard:
  %array = call ptr @item(ptr %arrays, i64 %i)
  %ndim = call i64 @word(ptr %record, i64 1)
  %match = call i1 @matches(ptr %array, ptr %record, i64 %ndim)
  br i1 %match, label %accept, label %mismatch
mismatch:
  %which = call ptr @PyLong_FromLongLong(i64 %i)
  ret ptr %which
accept:
  %data_at = getelementptr i8, ptr %array, i64 {data}
  %data = load ptr, ptr %data_at
  %slot = getelementptr ptr, ptr %block, i64 %i
  store ptr %data, ptr %slot
  %i_next = add i64 %i, 1
  %ndim_twice = shl i64 %ndim, 1
  %record_words = add i64 %ndim_twice, 2
  %next_record = getelementptr i64, ptr %record, i64 %record_words
  br label %input
outs:
  %o = phi i64 [ 0, %input ], [ %o_next, %out ]
  %more_out = icmp slt i64 %o, %n_out
  br i1 %more_out, label %out, label %ready
out:
  %out_array = call ptr @item(ptr %outputs, i64 %o)
  %out_data_at = getelementptr i8, ptr %out_array, i64 {data}
  %out_data = load ptr, ptr %out_data_at
  %out_index = add i64 %n_in, %o
  %out_slot = getelementptr ptr, ptr %block, i64 %out_index
  store ptr %out_data, ptr %out_slot
  %o_next = add i64 %o, 1
  br label %outs
ready:
  %scratch_slot = getelementptr ptr, ptr %block, i64 %n_arrays
  store ptr %scratch, ptr %scratch_slot
  %status_index = add i64 %n_arrays, 1
  %status_slot = getelementptr ptr, ptr %block, i64 %status_index
  store ptr %status, ptr %status_slot
  store [{status_words} x i64] zeroinitializer, ptr %status
  br i1 %releases, label %without_gil, label %with_gil
without_gil:
  %thread = call ptr @PyEval_SaveThread()
  %code_released = call i32 %function(ptr %block)
  call void @PyEval_RestoreThread(ptr %thread)
  br label %done
with_gil:
  %code_held = call i32 %function(ptr %block)
  br label %done
done:
  %code = phi i32 [ %code_released, %without_gil ], [ %code_held, %with_gil ]
  %ok = icmp eq i32 %code, 0
  br i1 %ok, label %success, label %failure
success:
  call void @Py_IncRef(ptr @none)
  ret ptr @none
failure:
  %raised = icmp eq i32 %code, {python_error}
  br i1 %raised, label %give_up, label %tell
tell:
  %report = call ptr @PyTuple_New(i64 {report_words})
  %no_memory = icmp eq ptr %report, null
  br i1 %no_memory, label %give_up, label %fill
give_up:
  ret ptr null
fill:
  %code_wide = sext i32 %code to i64
  %code_object = call ptr @PyLong_FromLongLong(i64 %code_wide)
  %set = call i32 @PyTuple_SetItem(ptr %report, i64 0, ptr %code_object)
  br label %words
words:
  %k = phi i64 [ 1, %fill ], [ %k_next, %words ]
  %k_less = sub i64 %k, 1
  %value = call i64 @word(ptr %status, i64 %k_less)
  %value_object = call ptr @PyLong_FromLongLong(i64 %value)
  %set_value = call i32 @PyTuple_SetItem(ptr %report, i64 %k, ptr %value_object)
  %k_next = add i64 %k, 1
  %more_words = icmp slt i64 %k_next, {report_words}
  br i1 %more_words, label %words, label %reported
reported:
  ret ptr %report
}}
"""

_FUNCTIONS = (
    "PyList_Size",
    "PyTuple_Size",
    "PyList_GetItem",
    "PyTuple_GetItem",
    "PyTuple_New",
    "PyTuple_SetItem",
    "PyLong_FromLongLong",
    "Py_IncRef",
    "PyEval_SaveThread",
    "PyEval_RestoreThread",
)


def invoke_ir(layout: NdarrayLayout) -> str:
    """LLVM text of `jitney_invoke` for arrays laid out as `layout` says."""
    return _IR.format(
        ob_type=layout.ob_type,
        data=layout.data,
        ndim=layout.ndim,
        dims=layout.dims,
        strides=layout.strides,
        descr=layout.descr,
        flags=layout.flags,
        aligned=ALIGNED,
        any_stride=ANY_STRIDE,
        status_words=STATUS_WORDS,
        report_words=1 + REPORTED_WORDS,
        python_error=PYTHON_ERROR,
    )


@lru_cache(maxsize=1)
def native_invoke() -> Invoke | None:
    """`jitney_invoke`, callable with a plan's address; None where the layout is unknown."""
    from .engine import host_engine

    layout = ndarray_layout()
    if layout is None or sysconfig.get_config_var("Py_GIL_DISABLED"):
        return None  # borrowed references to list items are only safe under the GIL
    api = ctypes.pythonapi
    imports = {
        name: ctypes.cast(getattr(api, name), ctypes.c_void_p).value or 0 for name in _FUNCTIONS
    }
    imports |= {
        "PyList_Type": id(list),
        "PyTuple_Type": id(tuple),
        "ndarray_type": id(np.ndarray),
        "none": id(None),
    }
    library = host_engine().load(invoke_ir(layout), ["jitney_invoke"], imports).keep()
    prototype = ctypes.PYFUNCTYPE(
        ctypes.py_object, ctypes.c_void_p, ctypes.py_object, ctypes.py_object, ctypes.c_void_p
    )
    return prototype(library.address("jitney_invoke"))


def plan_words(
    entry: int,
    inputs: Sequence[TensorType],
    strides: Sequence[tuple[int, ...]],
    n_outputs: int,
    release_gil: bool,
) -> list[int]:
    """[entry, inputs, outputs, release the GIL?], and per input [descr, ndim, dims, strides]."""
    words = [entry, len(inputs), n_outputs, int(release_gil)]
    for type, steps in zip(inputs, strides, strict=True):
        words += [
            id(native_dtype(type.dtype)),
            type.rank,
            *type.shape,
            *required_strides(type, steps),
        ]
    return words


def native_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """NumPy's own object for a dtype: equal dtypes may be distinct objects (int64, longlong)."""
    return DTYPE_NAMES[dtype_name(dtype)]


def required_strides(type: TensorType, steps: tuple[int, ...]) -> list[int]:
    """Byte strides that an input must have; ANY_STRIDE where no element ever depends on it."""
    return [
        step * type.dtype.itemsize if n > 1 and type.size > 0 else ANY_STRIDE
        for n, step in zip(type.shape, steps, strict=True)
    ]
