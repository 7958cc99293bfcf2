"""What the calls of `function_calls.py` are made of: operands, and the functions of one or two."""

from __future__ import annotations

from typing import Any

from calls import Operand

OPERANDS = {
    **dict.fromkeys(("x", "y", "z"), Operand("*")),
    **dict.fromkeys(("positive", "positive2"), Operand("*", 0.3, 3)),
    "unit": Operand("*", 0.1, 0.9),
    "above": Operand("*", 1.2, 4),
    "mask": Operand("*", kinds="b"),
    **dict.fromkeys(("integer", "integer2"), Operand("*", -9, 9, "biu")),
    "count": Operand("*", 0, 4, "iu"),
    **dict.fromkeys(("vector", "vector2"), Operand("n")),
    "weights": Operand("n", 0.3, 3, "iuf"),
    "places": Operand("n", -2, 2, "iuf", "sorted"),
    "series": Operand("k"),
    "positives": Operand("k", 0.3, 3, "iuf"),
    "distinct": Operand("n", kinds="f"),
    "lengths": Operand("n", 1, 3, "iu"),
    "index": Operand("k", 0, 3, "i"),
    "indices": Operand("mn", 0, 3, "i"),
    "chosen": Operand("n", kinds="b"),
    **dict.fromkeys(("matrix", "matrix2"), Operand("mn")),
    "mask2": Operand("mn", kinds="b"),
    "factor": Operand("nk"),
    "integers": Operand("k", 0, 6, "biu"),
    "bytes": Operand("mn", 0, 256, "B"),
    "square": Operand("mm", form="regular"),
    "spd": Operand("mm", form="definite"),
    "squares": Operand("bmm", form="regular"),
    "spds": Operand("bmm", form="definite"),
    "stack": Operand("bmn"),
    "factors": Operand("bnk"),
    "vectors": Operand("bm"),
    "triples": Operand("m3"),
    "triples2": Operand("m3"),
    "images": Operand("bk63"),
    "kernel": Operand("2334"),
    "heads": Operand("bk24"),
    "heads2": Operand("bn24"),
    "heads3": Operand("bn23"),
    "spectrum": Operand("mn", kinds="ifc", least=1),
}

CHOICES: dict[str, tuple[Any, ...]] = {
    "axis": (-1, 0, None, 1, -2),
    "one": (-1, 0, 1, -2),  # an axis
    "axes": (None, -1, 0, (0, -1), (), (1, 0), 1),
    "keep": (False, True),
    "flag": (False, True),
    "shift": (1, -2, 0, 7),
    "side": ("left", "right"),
    "norm": (None, "ortho", "forward"),
    "mode": ("full", "same", "valid"),
    "ways": ("wrap", "clip"),
    "ddof": (0, 1),
    "offset": (0, 1, -1, 9),
    "letter": ("L", "U"),
}

# Functions of one element or two, by the operands they take.
ELEMENTWISE = {
    "x": """
    absolute abs fabs arctan atan arcsinh asinh cbrt ceil conjugate conj cos cosh deg2rad degrees
    exp exp2 expm1 floor frexp isfinite isinf isnan logical_not modf negative positive rad2deg
    radians rint sign signbit sin sinh spacing square tan tanh trunc erf sinc real imag angle
    isposinf isneginf isreal iscomplex isrealobj iscomplexobj i0 fix nan_to_num reciprocal
    special.erf special.erfc special.erfcx special.expit special.log_expit special.ndtr
    special.log_ndtr special.i0 special.i0e special.i1 special.i1e special.gammasgn special.dawsn
    special.fresnel special.sici special.j0 special.j1 special.cbrt special.cosm1 special.erfi
    special.exp10 special.exp2 special.expm1 special.exprel special.softplus special.wofz
    """,
    "unit": "arccos acos arcsin asin arctanh atanh erfinv special.erfinv special.logit special.ndtri",
    "positive": """
    log log10 log1p log2 sqrt special.gamma special.gammaln special.digamma special.psi
    special.entr special.erfcinv special.exp1 special.expi special.k0 special.k0e special.k1
    special.k1e special.spence special.y0 special.y1 special.factorial special.log1p
    special.loggamma special.rgamma
    """,
    "above": "arccosh acosh special.zeta special.zetac",
    "x, y": """
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod arctan2 atan2
    copysign equal not_equal greater greater_equal less less_equal fmax fmin maximum minimum
    heaviside hypot logaddexp logaddexp2 logical_and logical_or logical_xor nextafter isclose
    allclose array_equal array_equiv power pow float_power
    """,
    "positive, y": "power pow float_power",
    "positive, positive2": """
    special.beta special.betaln special.xlogy special.xlog1py special.rel_entr special.kl_div
    special.gammainc special.gammaincc special.binom special.boxcox special.boxcox1p special.comb
    special.huber special.inv_boxcox special.inv_boxcox1p special.owens_t special.poch special.powm1
    special.pseudo_huber
    """,
    "above, positive": "special.zeta",
    "positive, positive2, unit": "special.betainc special.betaincc",
    "integer": "invert bitwise_not bitwise_invert bitwise_count",
    "integer, integer2": "bitwise_and bitwise_or bitwise_xor gcd lcm",
    "integer, count": "left_shift right_shift bitwise_left_shift bitwise_right_shift",
    "x, count": "ldexp power",
}
