"""Types of LLVM values, which are LLVM's own texts: `i64`, `<8 x float>`, `ptr addrspace(3)`."""

from __future__ import annotations

from functools import cache


@cache
def vector(lanes: int, element: str) -> str:
    """The type of so many lanes; of one, the element itself."""
    return element if lanes == 1 else f"<{lanes} x {element}>"


@cache
def lanes_of(type: str) -> int:
    """How many lanes a vector type has; a scalar type has one."""
    return int(type[1 : type.index(" ")]) if type[0] == "<" else 1


@cache
def element_of(type: str) -> str:
    """The type of one lane."""
    return type[type.index(" x ") + 3 : -1] if type[0] == "<" else type


@cache
def bits_of(type: str) -> int:
    """How many bits an integer type has."""
    if type[0] != "i":
        raise TypeError(f"{type} is no integer")
    return int(type[1:])


@cache
def bools(type: str) -> str:
    """What a comparison of values of this type gives."""
    return vector(lanes_of(type), "i1")


@cache
def is_float(type: str) -> bool:
    """Whether numbers of this type, or the lanes of a vector, are floating point."""
    return element_of(type) in ("half", "float", "double")


@cache
def bytes_of(type: str) -> int:
    """How many bytes a number has."""
    return {"half": 2, "float": 4, "double": 8}.get(type) or bits_of(type) // 8


@cache
def fields_of(type: str) -> tuple[str, ...]:
    """The types in `{ i32, i1 }`."""
    return tuple(part.strip() for part in type[1:-1].split(","))


@cache
def suffix(type: str) -> str:
    """How intrinsics are overloaded: `f32`, `v16f32`, `v8i64`, `p0`."""
    if type[0] == "<":
        return f"v{lanes_of(type)}{suffix(element_of(type))}"
    return {"half": "f16", "float": "f32", "double": "f64", "ptr": "p0"}.get(type, type)
