"""One table of calls for every public array function, and what may be given to them.

    for call in CALLS:
        call.function(*call.arguments())          # a small example in float64
        jt.jit(call.function)(*call.arguments(np.float32))

A call is an expression. Names in it are operands (`OPERANDS`: arrays, with the sizes of their dims as
letters and the domain of their values) or static arguments (`CHOICES`: the first is the default).
"""

from __future__ import annotations

import ast
from typing import Any

from calls import Call, Operand

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

EXPRESSIONS = """
jt.add(x, 2)
jt.multiply(x, 2.5)
jt.subtract(x, y, out=z)
jt.divide(x, y, where=mask, out=z)
jt.special.polygamma(2, positive)
jt.special.expn(2, positive)
jt.special.bernoulli(4)
jt.special.multigammaln(above, 2)
jt.special.softmax(x, axis=axis)
jt.special.log_softmax(x, axis=axis)
jt.special.logsumexp(x, axis=axes, keepdims=keep)
jt.special.logsumexp(x, axis=axis, b=y, return_sign=True)
jt.isclose(x, y, equal_nan=True)
jt.nan_to_num(x, nan=3.0, posinf=5, neginf=-7)
jt.clip(x, -1, 1)
jt.clip(x, y, z)
jt.clip(x, max=y)
jt.round(x, 1)
jt.around(x)
jt.where(mask, x, y)
jt.where(mask, x, 1)
jt.where(x, y, 2.5)
jt.select([mask, x > 0], [x, y], 3)
jt.choose(indices, [matrix, matrix2, 1, 2.5])
jt.choose(integers, [series, 2, 3], mode=ways)
jt.piecewise(x, [x > 1, x < 0], [lambda a: a * 2, lambda a: a * 3, 0.5])
jt.unwrap(3 * x, axis=one)
jt.interp(x, places, vector)
jt.interp(x, places, vector, left=-1, right=7)
jt.interp(x, distinct, vector, period=3.0)

jt.sum(x, axis=axes, keepdims=keep)
jt.sum(x, dtype=np.float32)
jt.sum(x, axis=axis, where=mask, initial=2)
jt.sum(matrix, axis=0, out=vector)
jt.prod(x, axis=axes, keepdims=keep)
jt.max(x, axis=axes, keepdims=keep)
jt.max(x, where=mask, initial=0)
jt.amax(x, axis=axes)
jt.min(x, axis=axes, keepdims=keep)
jt.amin(x, axis=axes)
jt.any(x, axis=axes, keepdims=keep)
jt.all(x, axis=axes, keepdims=keep)
jt.argmax(x, axis=axis, keepdims=keep)
jt.argmin(x, axis=axis, keepdims=keep)
jt.ptp(x, axis=axes)
jt.mean(x, axis=axes, keepdims=keep)
jt.mean(x, where=mask)
jt.var(x, axis=axes, ddof=ddof)
jt.std(x, axis=axes, keepdims=keep)
jt.std(x, where=mask)
jt.average(matrix, axis=1, weights=weights)
jt.average(x, axis=axis, returned=True)
jt.average(stack, axis=(1, 0), weights=1 + vectors.T ** 2)
jt.count_nonzero(x, axis=axes)
jt.logsumexp(x, axis=axes, keepdims=keep)
jt.nansum(x, axis=axes)
jt.nanprod(x, axis=axes)
jt.nanmax(x, axis=axes, keepdims=keep)
jt.nanmin(x, axis=axes)
jt.nanargmax(x, axis=axis)
jt.nanargmin(x, axis=axis)
jt.nanmean(x, axis=axes)
jt.nanvar(x, axis=axes)
jt.nanstd(x, axis=axes)
jt.median(x, axis=axis, keepdims=keep)
jt.nanmedian(x, axis=axis)
jt.quantile(x, 0.3, axis=axis)
jt.quantile(x, [0.1, 0.8], axis=axis, keepdims=keep)
jt.percentile(x, 40, axis=axis, method="nearest")
jt.nanquantile(x, 0.3, axis=axis)
jt.nanpercentile(x, [20, 60], axis=axis)
jt.quantile(stack, 0.6, axis=(1, 0), weights=1 + vectors.T ** 2, method="inverted_cdf")
jt.quantile(matrix, unit, axis=one)
jt.cov(matrix)
jt.cov(vector, vector2, ddof=ddof)
jt.cov(matrix, aweights=weights)
jt.cov(matrix, fweights=lengths, aweights=weights, ddof=0)
jt.corrcoef(matrix, rowvar=flag)

jt.cumsum(x, axis=axis)
jt.cumsum(x, axis=one, dtype=np.float32)
jt.cumprod(x, axis=axis)
jt.cumulative_sum(x, axis=one, include_initial=flag)
jt.cumulative_prod(x, axis=one, include_initial=flag)
jt.nancumsum(x, axis=axis)
jt.nancumprod(x, axis=axis)
jt.diff(x, axis=one)
jt.diff(x, 2, axis=one, prepend=1)
jt.ediff1d(x, to_begin=1)
jt.gradient(matrix)
jt.gradient(matrix, 2.0, axis=1, edge_order=2)
jt.gradient(vector, places)
jt.gradient(stack, 2.0, axis=axes)
jt.trapezoid(x, axis=one)
jt.trapezoid(matrix, places)
jt.trapezoid(stack, matrix, axis=one)
jt.add.reduce(x, axis=axes)
jt.multiply.reduce(x, axis=one)
jt.maximum.reduce(x, axis=one, keepdims=keep)
jt.logical_or.reduce(x, axis=one)
jt.logical_xor.reduce(x, axis=one)
jt.bitwise_and.reduce(integer, axis=one)
jt.hypot.reduce(x, axis=one)
jt.logaddexp.reduce(x, axis=one)
jt.add.accumulate(x, axis=one)
jt.minimum.accumulate(x, axis=one)
jt.bitwise_or.accumulate(integer, axis=one)
jt.multiply.outer(vector, series)
jt.add.at(vector, index, series)
jt.maximum.at(vector, index, series)
jt.multiply.at(vector, index, 2)

jt.reshape(x, -1)
jt.reshape(x, (-1, 2), order="F")
jt.ravel(x)
jt.ravel(x, order="F")
jt.transpose(x)
jt.transpose(stack, (1, 2, 0))
jt.permute_dims(stack, (2, 0, 1))
jt.matrix_transpose(x)
jt.linalg.matrix_transpose(stack)
jt.swapaxes(x, 0, -1)
jt.moveaxis(stack, 0, -1)
jt.rollaxis(stack, 2)
jt.expand_dims(x, 0)
jt.squeeze(jt.expand_dims(x, (0, -1)))
jt.broadcast_to(x, (2, 3, 4))
jt.broadcast_arrays(matrix, vector)
jt.atleast_1d(x, 2)
jt.atleast_2d(x)
jt.atleast_3d(x)
jt.concatenate([x, y], axis=axis)
jt.concat([x, y, z], axis=axis)
jt.concatenate([x, y], dtype=np.float32)
jt.stack([x, y], axis=one)
jt.vstack([x, y])
jt.hstack([x, y])
jt.dstack([x, y])
jt.column_stack([matrix, jt.matvec(matrix, vector)])
jt.append(x, y, axis=axis)
jt.block([[x, y], [y, z]])
jt.array_split(x, 3, axis=one)
jt.split(x, [1, 3], axis=one)
jt.hsplit(x, 2)
jt.vsplit(x, [1])
jt.dsplit(stack, 2)
jt.unstack(x, axis=one)
jt.flip(x, axis=axes)
jt.fliplr(x)
jt.flipud(x)
jt.rot90(x, shift)
jt.roll(x, shift, axis=axis)
jt.roll(matrix, (1, -2), axis=(0, 1))
jt.repeat(x, 3, axis=axis)
jt.repeat(matrix, [1, 0, 2], axis=0)
jt.repeat(vector, lengths, total_repeat_length=6)
jt.sliding_window_view(series, 3)
jt.sliding_window_view(matrix, (2, 3))
jt.tile(x, 2)
jt.tile(x, (2, 1, 3))
jt.resize(x, (5, 3))
jt.meshgrid(vector, series)
jt.meshgrid(vector, series, indexing="ij", sparse=True)
jt.ix_(index, index)
jt.delete(x, 1, axis=axis)
jt.delete(matrix, [0, 2], axis=0)
jt.insert(x, 1, 5, axis=axis)
jt.insert(vector, [0, 2], vector2[:2])
jt.insert(matrix, index[0] - 3, vector, axis=0)
jt.pad(x, 1, constant_values=5)
jt.pad(matrix, ((1, 2), (2, 1)), mode="reflect")
jt.pad(matrix, ((1, 2), (2, 1)), mode="symmetric")
jt.pad(x, 2, mode="edge")
jt.pad(x, 2, mode="wrap")
jt.diag(x, offset)
jt.diag(vector, offset)
jt.diagflat(x, 1)
jt.diagonal(x, offset)
jt.linalg.diagonal(stack, offset=offset)
jt.trace(x, offset)
jt.linalg.trace(stack, offset=offset)
jt.tril(x, offset)
jt.triu(x, offset)

jt.zeros((2, 3), dtype=np.float32)
jt.zeros_like(x)
jt.ones((2, 3))
jt.ones_like(x, dtype=np.int8)
jt.empty((2, 3)).shape
jt.empty_like(x).shape
jt.full((2, 3), series[0])
jt.full_like(x, 7)
jt.array([x, y])
jt.array(x, dtype=np.float32, ndmin=3)
jt.asarray(x)
jt.ascontiguousarray(x)
jt.asfortranarray(x)
jt.require(x)
jt.asanyarray(x)
jt.asarray_chkfinite(matrix)
jt.copy(x)
jt.astype(x, np.float32)
jt.astype(x, np.int16)
jt.astype(x, np.complex64)
jt.arange(2, 20, 3)
jt.arange(0.0, 1.0, 0.1)
jt.linspace(0, 1, 7)
jt.linspace(x, y, 4, axis=one)
jt.linspace(x, 3, 5, endpoint=False)
jt.logspace(x, y, 3)
jt.geomspace(positive, positive2, 4)
jt.geomspace(positive, positive2, 4, axis=one)
jt.logspace(x, y, 3, axis=one, base=positive)
jt.eye(3, 4, 1)
jt.identity(3)
jt.tri(3, 4, -1)
jt.indices((2, 3))
jt.vander(vector, 3, increasing=flag)
jt.shape(x)
jt.ndim(x)
jt.size(x)
jt.result_type(x, np.float32)
jt.iterable(x)
jt.isscalar(x)
jt.can_cast(np.int32, np.float64)
jt.apply_along_axis(lambda a: a.sum() * a, one, x)
jt.apply_over_axes(jt.sum, x, (0, -1))
jt.fromfunction(lambda i, j: i * 2 + j, (2, 3))
jt.tril_indices(3, offset)
jt.triu_indices(3, offset)
jt.diag_indices(3)
jt.tril_indices_from(square, offset)
jt.triu_indices_from(square, offset)
jt.diag_indices_from(square)
jt.ravel_multi_index((index, index), (3, 6))
jt.unravel_index(index, (2, 3))
jt.packbits(integer, axis=axis)
jt.unpackbits(bytes, axis=axis)
jt.bartlett(5) * vector[0]
jt.blackman(5) * vector[0]
jt.hamming(5) * vector[0]
jt.hanning(5) * vector[0]
jt.kaiser(5, 3.5) * vector[0]

jt.at(matrix)[index].set(2)
jt.at(vector)[index].add(series)
jt.at(vector)[index].multiply(series)
jt.at(vector)[index].max(series)
jt.at(matrix)[:, ::2].min(0)
jt.at(matrix)[1].get()
jt.take(x, index, axis=axis)
jt.take(matrix, index, axis=axis, mode=ways)
jt.take_along_axis(matrix, indices, axis=one)
jt.put_along_axis(matrix, indices, 9, axis=1)
jt.put(x, [0, 2], 5)
jt.put(vector, index, series)
jt.place(x, mask, 2)
jt.place(matrix, mask2, series)
jt.putmask(x, mask, y)
jt.putmask(matrix, mask2, series)
jt.copyto(x, y, where=mask)
jt.fill_diagonal(matrix, 5)
jt.isin(x, y)
jt.isin(integer, [1, 2, 3], invert=flag)
jt.bincount(integers, length=6)
jt.bincount(integers, series, length=7)
jt.dynamic_slice(matrix, (index[0], 1), (2, 2))
jt.dynamic_update_slice(matrix, matrix2[:2, :2], (index[0], -2))

jt.matmul(matrix, factor)
jt.matmul(stack, factors)
jt.matmul(x, y.T)
jt.linalg.matmul(matrix, factor)
jt.vecdot(x, y)
jt.linalg.vecdot(matrix, matrix2)
jt.matvec(matrix, vector)
jt.vecmat(vector, factor)
jt.dot(x, y.T)
jt.dot(stack, factor)
jt.vdot(x, y)
jt.inner(x, y)
jt.outer(x, y)
jt.linalg.outer(vector, series)
jt.tensordot(stack, factor, 1)
jt.tensordot(matrix, matrix2, 2)
jt.linalg.tensordot(matrix, factor, axes=1)
jt.kron(matrix, vector)
jt.cross(triples, triples2)
jt.linalg.cross(triples, triples2)
jt.linalg.multi_dot([matrix, factor, series])
jt.linalg.matrix_power(square, 3)
jt.linalg.matrix_power(squares, -2)
jt.einsum("ij,jk->ki", matrix, factor)
jt.einsum("ii->i", square)
jt.einsum("bij,bjk,k->bi", stack, factors, series)
jt.einsum_path("ij,jk->ki", matrix, factor)
jt.convolve(vector, series, mode)
jt.correlate(vector, series, mode)
jt.conv(images, kernel, padding="SAME")
jt.conv(images, kernel, strides=2, padding=1)
jt.conv_transpose(images, kernel, strides=2)
jt.max_pool(images, 2)
jt.max_pool(images, 3, strides=2, padding="SAME")
jt.avg_pool(images, 3, strides=2, padding="SAME")
jt.reduce_window(matrix, "sum", 2)
jt.reduce_window(matrix, "max", 2, padding="SAME")
jt.image.resize(matrix, (5, 7))
jt.image.resize(matrix, (2, 3), "cubic")
jt.image.resize(matrix, (2, 9), "nearest")
jt.dot_product_attention(heads, heads2, heads3)
jt.dot_product_attention(heads, heads2, heads3, is_causal=True)

jt.linalg.solve(square, matrix)
jt.linalg.solve(squares, stack)
jt.linalg.solve(square, jt.matvec(matrix, vector))
jt.linalg.inv(square)
jt.linalg.tensorsolve(square, jt.matvec(matrix, vector))
jt.linalg.tensorinv(square, 1)
jt.linalg.det(square)
jt.linalg.det(squares)
jt.linalg.slogdet(squares)
jt.linalg.cholesky(spd)
jt.linalg.cholesky(spds, upper=flag)
jt.linalg.eigvalsh(spd, letter)
jt.linalg.eigh(spd, letter)[0]
jt.abs(jt.linalg.eigh(spd)[1])
jt.sort(jt.abs(jt.linalg.eigvals(square)))
jt.abs(jt.linalg.eig(spd)[1]).sum()
jt.linalg.svd(matrix, compute_uv=False)
jt.linalg.svd(matrix, full_matrices=False)[1]
jt.linalg.svdvals(stack)
jt.abs(jt.linalg.qr(matrix)[1])
jt.linalg.qr(square)
jt.linalg.matrix_rank(matrix)
jt.linalg.cond(square)
jt.linalg.pinv(matrix)
jt.linalg.lstsq(matrix, vectors[0])
jt.linalg.solve_triangular(spd, matrix, lower=flag)
jt.linalg.lu(square)
jt.linalg.expm(square)
jt.linalg.cho_solve((jt.linalg.cholesky(spd), True), matrix)
jt.linalg.cho_factor(spd, lower=flag)[0]
jt.linalg.lu_factor(square)
jt.linalg.lu_solve(jt.linalg.lu_factor(square), square, trans=1)
jt.linalg.tridiagonal_solve(vector, 4 + vector, vector, vector)
jt.linalg.polar(square)
jt.linalg.logdet(spd)
jt.linalg.adjoint(matrix)
jt.linalg.band_part(matrix, 1, 0)
jt.linalg.diag_part(matrix)
jt.linalg.set_diag(square, square[0])
jt.linalg.block_diag(matrix, square)
jt.linalg.toeplitz(vector)
jt.linalg.triangular_solve(spd, square, adjoint=True)
jt.linalg.global_norm([matrix, vector])
jt.linalg.norm(x)
jt.linalg.norm(x, axis=one)
jt.linalg.norm(matrix, 1)
jt.linalg.norm(matrix, "nuc")
jt.linalg.norm(stack, 1, axis=(2, 0))
jt.linalg.norm(vector, 3)
jt.linalg.vector_norm(x, axis=axes, keepdims=keep)
jt.linalg.vector_norm(x, ord=1)
jt.linalg.matrix_norm(stack)

jt.fft.fft(spectrum, axis=one, norm=norm)
jt.fft.ifft(spectrum, 7)
jt.fft.rfft(spectrum, axis=one, norm=norm)
jt.fft.irfft(spectrum, norm=norm)
jt.fft.irfft(spectrum, 5)
jt.fft.hfft(spectrum)
jt.fft.ihfft(spectrum)
jt.fft.fftn(spectrum)
jt.fft.ifftn(spectrum)
jt.fft.rfftn(spectrum)
jt.fft.irfftn(spectrum)
jt.fft.fft2(spectrum)
jt.fft.ifft2(spectrum)
jt.fft.rfft2(spectrum)
jt.fft.irfft2(spectrum)
jt.fft.fftshift(x)
jt.fft.ifftshift(x)
jt.fft.fftfreq(5, 0.5)
jt.fft.rfftfreq(5, 0.5)

jt.sort(x, axis=axis)
jt.sort(x, descending=True)
jt.argsort(x, axis=axis, stable=True)
jt.partition(vector, 2)[2]
jt.take_along_axis(matrix, jt.argpartition(matrix, 0, axis=one), one).min(axis=one)
jt.sort_complex(x)
jt.lexsort((vector, vector2))
jt.searchsorted(places, x, side=side)
jt.digitize(x, places, right=flag)
jt.digitize(x, places[::-1], right=flag)
jt.histogram_bin_edges(x, 4)
jt.histogram(x, 4, range=(-2, 2))
jt.histogram(series, [-2, 0, 2], weights=series)
jt.histogramdd(matrix, 2, range=[(-2, 2)] * 4)
jt.histogram2d(vector, vector2, 3, range=[(-2, 2)] * 2)
jt.polyval(vector, x)
jt.polyadd(vector, series)
jt.polysub(vector, series)
jt.polymul(weights, positives)
jt.polydiv(positives, weights)[0]
jt.polyder(series)
jt.polyint(series, 2)
jt.poly(vector)
jt.sort(jt.abs(jt.roots(weights)))
jt.polyfit(places, vector, 2)

jt.nonzero(x, size=5)
jt.flatnonzero(x, size=5, fill_value=7)
jt.argwhere(x, size=5)
jt.where(mask, size=3)
jt.compress(chosen, matrix, axis=1, size=3)
jt.compress([True, False, True], matrix, axis=0)
jt.extract(mask, x, size=4)
jt.unique(x, size=9)
jt.unique(integer, True, True, True, size=9, fill_value=3)
jt.unique_all(integer, size=9)
jt.unique_inverse(integer, size=9)
jt.unique_counts(integer, size=9)
jt.unique_values(integer, size=9)
jt.union1d(vector, series, size=9)
jt.intersect1d(integers, integer, size=5)
jt.setdiff1d(integers, integer, size=5)
jt.setxor1d(integers, integer, size=9)
jt.trim_zeros(integers, size=5)

x.T
x.flat[0]
x.flags.writeable
integer.byteswap()
x.mT
x.real
x.imag
x.all()
x.any(axis=axis)
x.argmax(axis=axis)
x.argmin()
vector[vector.argpartition(2)][2]
x.argsort(axis=one, kind="stable")
x.astype(np.float32)
indices.choose([matrix, matrix2, 1, 0])
x.clip(-1, 1)
matrix.compress([True, False, True], axis=0)
x.conj()
x.conjugate()
x.copy()
x.cumprod(axis=axis)
x.cumsum(axis=axis)
x.diagonal()
x.dot(y.T)
x.fill(3)
x.flatten()
x.item(0)
x.max(axis=axes)
x.mean(axis=axes)
x.min(axis=axes)
(lambda p: (p.partition(0), p[..., 0])[1])(x.copy())
x.prod(axis=axes)
x.put([0, 2], 5)
x.ravel()
x.repeat(2, axis=axis)
x.reshape(-1)
x.round(1)
places.searchsorted(x, side=side)
x.sort(axis=one)
x.squeeze()
x.std(axis=axes)
x.sum(axis=axes)
x.swapaxes(0, -1)
x.take(index, axis=axis)
x.tolist()
x.trace()
x.transpose()
x.var(axis=axes)
x.view()
(x.dtype, x.shape, x.size, x.ndim, x.itemsize, x.nbytes, x.size and x.strides)
"""


CALLS = [
    *(
        Call(f"jt.{name}({operands})", OPERANDS, CHOICES, elementwise=True)
        for operands, names in ELEMENTWISE.items()
        for name in names.split()
    ),
    *(Call(line, OPERANDS, CHOICES) for line in EXPRESSIONS.splitlines() if line),
]


def called(call: Call) -> set[str]:
    """The names of functions and methods in an expression: `linalg.norm`, `sum`, `.sum`."""
    found = set()
    for node in ast.walk(ast.parse(call.expression, mode="eval")):
        if not isinstance(node, ast.Attribute):
            continue
        text = ast.unparse(node)
        found.add(text.removeprefix("jt.") if text.startswith("jt.") else f".{node.attr}")
    return found
