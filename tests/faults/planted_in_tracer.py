"""Faults in what NumPy code means: dtypes, views, indices, effects, what is read from outside."""

from planted import Fault

FAULTS = (
    Fault(
        "promotion",
        "the largest integer of a dtype is refused: uint8 + 255",
        "tracer/data/promotion.py",
        "return int(info.min) <= value <= int(info.max)",
        "return int(info.min) <= value < int(info.max)",
        "tests/tracer/core/test_promotion.py::test_python_integers_at_the_ends_of_the_range",
    ),
    Fault(
        "views",
        "ravel gives a copy, so that what is written to it is lost",
        "tracer/arrays/movement.py",
        'if is_contiguous(in_order.shape, in_order.element_strides, "C"):',
        "if not in_order.size:",
        "tests/tracer/core/test_views.py::test_writes_show_on_the_other_side_as_in_numpy",
    ),
    Fault(
        "negative indices",
        "an index array that is clipped does not count from the end",
        "tracer/indexing/index_plan.py",
        "value = b.select(negative, b.add(value, b.full_like(value, n)), value)",
        "value = b.select(negative, value, value)",
        "tests/tracer/indexing/test_index_modes.py::test_against_the_definition",
    ),
    Fault(
        "order of effects",
        "ordered callbacks do not wait for one another",
        "tracer/control/callbacks.py",
        'token = order_token() if ordered else builder.op("create_token")',
        'token = builder.op("create_token")',
        "tests/tracer/control/test_callbacks.py::test_each_ordered_effect_waits_for_the_one_before",
    ),
    Fault(
        "guards",
        "a number that a function reads from outside may change",
        "tracer/captures/guards.py",
        'f"(x.__class__ is not {kind.__name__} or x != {value}): return None"',
        'f"x.__class__ is not {kind.__name__}: return None"',
        "tests/tracer/jit/test_guards.py::test_a_changed_value_traces_anew",
    ),
    Fault(
        "fingerprints",
        "a trace is remembered for other default values",
        "tracer/captures/fingerprint.py",
        "        self.value(value.__defaults__)\n",
        "",
        "tests/tracer/jit/test_fingerprints.py::test_values_by_default_count",
    ),
    Fault(
        "counters of random numbers",
        "rows of an array of random numbers are equal",
        "tracer/random/keys.py",
        "wrap(b.reshape(low, shape=shape))",
        "wrap(b.iota(shape=shape, dtype=U32, axis=len(shape) - 1))",
        "tests/tracer/random/test_random.py::test_keys_and_bits_are_those_of_jax",
    ),
)
