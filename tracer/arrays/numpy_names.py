"""NumPy's names that are no array functions: those that `jt` has from NumPy, and why it lacks others.

`docs/reference/numpy_names.md` is made from this and from the table of array functions.
"""

from __future__ import annotations

# Dtypes, constants, printing, files, helpers over shapes and dtypes: as they are.
FROM_NUMPY = frozenset(
    """
    byte ubyte short ushort intc uintc int_ uint intp uintp long ulong longlong ulonglong
    half single double csingle cdouble
    generic number integer signedinteger unsignedinteger inexact floating complexfloating
    dtype dtypes issubdtype promote_types min_scalar_type mintypecode common_type typename
    typecodes sctypeDict ScalarType
    euler_gamma True_ False_ little_endian
    ndarray ufunc exceptions errstate seterr geterr seterrcall geterrcall getbufsize setbufsize
    array_repr array_str array2string printoptions set_printoptions get_printoptions
    format_float_positional format_float_scientific base_repr binary_repr
    load save savez savez_compressed loadtxt savetxt genfromtxt fromfile fromregex fromstring
    frombuffer fromiter memmap
    broadcast_shapes ndindex ndenumerate s_ index_exp mgrid ogrid
    shares_memory may_share_memory isfortran mask_indices typing testing polynomial
    """.split()
)

_VALUES = "what it gives depends on the values, also its dtype"
_OBJECTS = "it works on Python objects, which compiled code does not know"
_DATES = "dates and times are no numbers of compiled code"
_TEXT = "strings are no numbers of compiled code"
_RECORDS = (
    "structured arrays come from `np.zeros(n, dtype)`, from `np.array` of tuples, or from outside"
)
_SUBCLASS = "a subclass of ndarray; jitney knows ndarrays"
_OWN = "it concerns NumPy itself"
_WIDE = "LLVM's targets have no vectors of it"
_LOOP = "it is a Python iterator over elements: use array functions, or jt.map_fn and jt.scan"

ABSENT: dict[str, str] = {
    **dict.fromkeys(("real_if_close",), _VALUES),
    **dict.fromkeys(("emath",), "its functions give complex numbers where values ask for them"),
    **dict.fromkeys(("frompyfunc", "object_"), _OBJECTS),
    **dict.fromkeys(
        "datetime64 timedelta64 datetime_as_string datetime_data isnat busday_count busday_offset "
        "busdaycalendar is_busday".split(),
        _DATES,
    ),
    **dict.fromkeys("str_ bytes_ character char strings".split(), _TEXT),
    **dict.fromkeys("void flexible record recarray rec".split(), _RECORDS),
    **dict.fromkeys("matrix asmatrix bmat ma".split(), _SUBCLASS),
    **dict.fromkeys("longdouble clongdouble float96 float128 complex192 complex256".split(), _WIDE),
    **dict.fromkeys("nditer nested_iters flatiter broadcast".split(), _LOOP),
    **dict.fromkeys(
        "test info show_config show_runtime get_include core lib ctypeslib f2py".split(), _OWN
    ),
    "poly1d": "an object with state; use jt.polyval, jt.polymul and their like on coefficients",
    "row_stack": "NumPy 2 deprecates it: use jt.vstack",
    "in1d": "NumPy 2 deprecates it: use jt.isin",
    "trapz": "NumPy 2 deprecates it: use jt.trapezoid",
}
