"""Faults in what runs compiled code: caches, threads, memory."""

from planted import Fault

FAULTS = (
    Fault(
        "key of what is donated",
        "code that overwrites an argument serves calls that keep it",
        "runtime/options.py",
        "return repr(self)",
        "return repr(self.fastmath)",
        "tests/tracer/core/test_donation.py::test_code_for_donated_arguments_is_not_that_of_other_calls",
    ),
    Fault(
        "disk cache key",
        "constants of equal shape share the code of the first",
        "runtime/compile.py",
        "str(value.shape), value.tobytes().hex())",
        "str(value.shape))",
        "tests/runtime/test_runtime_executable.py::test_graph_key",
    ),
    Fault(
        "key of strides",
        "code for one memory order serves another",
        "runtime/compile.py",
        "target.key(), repr(strides), ",
        "target.key(), ",
        "tests/runtime/test_runtime_executable.py::test_compile_and_remember",
    ),
    Fault(
        "recycled memory",
        "an array gets a block of any size that is large enough, however much is wasted",
        "runtime/memory/recycling_ir.py",
        "fits = capacity.uge(wanted) & capacity.ule(most)",
        "fits = capacity.uge(wanted)",
        "tests/runtime/test_runtime.py::test_small_arrays_take_no_large_blocks",
    ),
    Fault(
        "thread partition",
        "the last units of a loop are left out if they are less than a thread's share",
        "runtime/threads/pool_ir.py",
        "f.least(lo + grain, n)",
        "f.select(lo + grain < n, lo + grain, lo)",
        "tests/runtime/test_threads.py::test_every_index_once",
    ),
)
