"""Calls of SciPy's functions that claim to take arrays of any library, as expressions of traced arrays.

`python scipy_calls.py SHARE MODULE` computes one in so many of those of a module, always the same ones,
with NumPy's arrays and compiled, and prints one line of JSON for each. SciPy asks SCIPY_ARRAY_API when
it is imported, so this is a process of its own; `test_scipy.py` starts it, and keeps
`docs/reference/scipy.md`.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
import warnings
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np

CALLS: dict[str, str] = {
    "special": """
        bdtr(k,9,p) bdtrc(k,9,p) bdtri(k,9,p) betainc(u,v,p) betaincc(u,v,p) betaincinv(u,v,p)
        betaln(u,v) binom(u,v) boxcox(u,p) boxcox1p(u,p) cbrt(x) chdtr(u,v) chdtrc(u,v)
        chdtri(u,p) cosdg(x) cosm1(x) cotdg(u) ellipk(p) ellipkm1(p) entr(u) erf(x) erfc(x)
        erfcx(x) erfinv(p) exp1(u) exp10(x) exp2(x) expi(u) expit(x) expn(3,u) exprel(x)
        fdtr(u,v,p) fdtrc(u,v,p) fdtri(u,v,p) gamma(u) gammainc(u,v) gammaincc(u,v)
        gammainccinv(u,p) gammaincinv(u,p) gammaln(u) gammasgn(x) gdtr(u,v,p) gdtrc(u,v,p)
        huber(u,x) hyp1f1(u,v,x) i0(x) i0e(x) i1(x) i1e(x) inv_boxcox(u,p) inv_boxcox1p(u,p) j0(x)
        j1(x) k0(u) k0e(u) k1(u) k1e(u) kl_div(u,v) log_ndtr(x) log_softmax(m,axis=1) loggamma(u)
        logit(p) logsumexp(m,axis=1) logsumexp(x,b=u) logsumexp(m,axis=0,keepdims=True)
        lpmv(1,2,p) multigammaln(u+3,2) nbdtr(k,9,p) nbdtrc(k,9,p) nbdtri(k,9,p) ndtr(x) ndtri(p)
        pdtr(k,u) pdtrc(k,u) pdtri(k,p) poch(u,v) polygamma(2,u) pseudo_huber(u,x) psi(u)
        radian(x,u,v) rel_entr(u,v) rgamma(u) sinc(x) sindg(x) softmax(m,axis=1) softmax(x)
        spence(u) stdtr(u,x) stdtrit(u,p) tandg(x) xlog1py(x,u) xlogy(x,u) y0(u) y1(u) yn(2,u)
        zeta(u+1.5,v) zetac(u)
    """,
    "stats": """
        alexandergovern(x,y).pvalue ansari(x,y).pvalue bartlett(x,y).pvalue
        bootstrap((x,),mean,rng=gen(0),n_resamples=20,method='percentile').standard_error
        boxcox_llf(0.5,u) brunnermunzel(x,y).pvalue chatterjeexi(x,y).statistic
        chisquare(u,axis=0).pvalue circmean(x) circstd(x) circvar(x) combine_pvalues(p).pvalue
        cramervonmises(p,uniform_cdf).pvalue
        cramervonmises_2samp(x,y,method='asymptotic').statistic describe(m).kurtosis
        describe(x).variance differential_entropy(x) directional_stats(m).mean_direction
        entropy(u) entropy(u,v) epps_singleton_2samp(x,y).pvalue f_oneway(x,y).pvalue
        false_discovery_control(p) fligner(x,y).pvalue friedmanchisquare(x,y,u).pvalue gmean(u)
        gstd(u) gzscore(u) hmean(u) iqr(x) jarque_bera(x).pvalue kruskal(x,y).pvalue
        ks_1samp(p,uniform_cdf,method='asymp').statistic kstat(x,3) kstatvar(x,2) kurtosis(x)
        kurtosis(m,axis=1) kurtosistest(x).pvalue levene(x,y).pvalue lmoment(x)
        mannwhitneyu(x,y,method='asymptotic').pvalue median_abs_deviation(x) mode(k).mode
        moment(x,3) moment(m,order=2,axis=1)
        monte_carlo_test(x,normal_rvs,mean,n_resamples=20).statistic mood(x,y).pvalue
        normaltest(x).pvalue pearsonr(x,y).statistic pearsonr(x,y).pvalue
        permutation_test((x,y),difference,n_resamples=20,vectorized=True,rng=gen(0)).statistic
        pmean(u,2) power(ttest,(normal_rvs,normal_rvs),(9,9)).power power_divergence(u).pvalue
        quantile(x,0.3) rankdata(x) sem(x) sigmaclip(x).clipped skew(x) skew(m,axis=1)
        skewtest(x).pvalue spearmanrho(x,y).statistic tmax(x) tmean(x) tmin(x) trim_mean(x,0.1)
        tsem(x) tstd(x) ttest_1samp(x,0.1).pvalue ttest_ind(x,y).pvalue
        ttest_ind(x,y,equal_var=False).statistic ttest_ind_from_stats(0.1,1.0,9,p[0],1.1,8).pvalue
        ttest_rel(x,y).pvalue tvar(x) variation(u) wilcoxon(x,method='asymptotic').pvalue
        yeojohnson_llf(0.5,x) zmap(x,y) zscore(x) zscore(m,axis=1,ddof=1)
    """,
    "signal": """
        abcd_normalize(m[:3,:3],m[:3,:1],m[:1,:3],m[:1,:1])[0] bessel(3,0.3)[0] besselap(3)[1]
        bilinear(u[:3],v[:3])[0] bilinear_zpk(x[:2],y[:3],2.0,1.0)[1] bode((u[:2],v[:3]),w=u)[1]
        buttap(3)[1] butter(3,0.3)[0] buttord(0.2,0.3,3,40)[1] cheb1ap(3,1)[1]
        cheb1ord(0.2,0.3,3,40)[1] cheb2ap(3,20)[1] cheb2ord(0.2,0.3,3,40)[1] cheby1(3,1,0.3)[0]
        cheby2(3,20,0.3)[0] choose_conv_method(x,y) convolve(x,y) convolve(x,y,method='direct')
        convolve2d(m,m[:2,:2]) correlate(x,y) correlate2d(m,m[:2,:2]) cspline1d(x)
        cspline1d_eval(x,u) deconvolve(x,u[:3])[0] detrend(x) detrend(x,type='constant')
        ellip(3,1,40,0.3)[0] ellipap(3,1,40)[1] ellipord(0.2,0.3,3,40)[1]
        envelope(x,residual=None) fftconvolve(x,y) fftconvolve(m,m,mode='same')
        filtfilt(u[:2],v[:2]+2,x) firls(5,[0,0.3,0.5,1],[1,1,0,0]) firwin(5,0.3)
        firwin2(9,[0,0.5,1],[1,1,0]) freqs(u[:3],v[:3],worN=u)[1]
        freqs_zpk(x[:2],y[:3],2.0,worN=u)[1] freqz(u[:3],v[:3],worN=8)[1] freqz_sos(sos,worN=8)[1]
        freqz_zpk(p[:2],p[2:5],2.0,worN=8)[1] gammatone(440,'fir',fs=16000,order=4,numtaps=9)[0]
        gauss_spline(x,3) get_window('hann',9) group_delay((u[:3],v[:3]),w=8)[1] hilbert(x)
        hilbert2(m) iircomb(0.2,30,fs=2.0)[0] iirdesign(0.2,0.3,3,40)[0]
        iirfilter(3,0.3,btype='low')[0] iirnotch(0.3,30)[0] iirpeak(0.3,30)[0]
        impulse((u[:2],v[:3]))[1] lfilter(u[:2],v[:2],x) lfilter_zi(u[:3],v[:3])
        lfiltic(u[:2],v[:2],x[:1]) lp2bp(u[:2],v[:3])[0] lp2bp_zpk(x[:2],y[:3],2.0)[0]
        lp2bs(u[:2],v[:3])[0] lp2bs_zpk(x[:2],y[:3],2.0)[0] lp2hp(u[:2],v[:3])[0]
        lp2hp_zpk(x[:2],y[:3],2.0)[0] lp2lp(u[:2],v[:3])[0] lp2lp_zpk(x[:2],y[:3],2.0)[0]
        medfilt(x,3) medfilt2d(m,3) minimum_phase(u) normalize(u[:2],v[:3])[0] oaconvolve(x,y)
        order_filter(x,u[:3],1) place_poles(m[:3,:3],m[:3,:1],[-1,-2,-3]).gain_matrix qspline1d(x)
        qspline1d_eval(x,u) remez(5,[0,0.2,0.3,0.5],[1,0]) resample(x,12) resample_poly(x,2,3)
        savgol_coeffs(5,2) savgol_filter(x,5,2) sos2tf(sos)[0] sos2zpk(sos)[2] sosfilt(sos,x)
        sosfilt_zi(sos) sosfiltfilt(sos,x) sosfreqz(sos,worN=8)[1] tf2sos(u[:3],v[:3])
        tf2zpk(u[:3],v[:3])[2] upfirdn(u[:3],x,2) vectorstrength(u,2.0)[0] wiener(m)
        zpk2sos(p[:2],p[2:4],2.0) zpk2tf(p[:2],p[2:4],2.0)[0]
    """,
    "signal.windows": """
        barthann(x.size,xp=xp) bartlett(9,xp=xp) blackman(9,xp=xp) blackmanharris(9,xp=xp)
        bohman(9,xp=xp) boxcar(9,xp=xp) chebwin(9,60,xp=xp) cosine(9,xp=xp) exponential(9,xp=xp)
        flattop(9,xp=xp) gaussian(9,2.0,xp=xp) general_cosine(9,u[:3])
        general_gaussian(9,1.5,2.0,xp=xp) general_hamming(9,0.7,xp=xp) get_window('hann',9,xp=xp)
        hamming(9,xp=xp) hann(9,xp=xp) kaiser(9,4.0,xp=xp) kaiser_bessel_derived(8,4.0,xp=xp)
        lanczos(9,xp=xp) nuttall(9,xp=xp) parzen(9,xp=xp) taylor(9,xp=xp) triang(9,xp=xp)
        tukey(9,xp=xp)
    """,
    "ndimage": """
        affine_transform(m,[0.5,0.7]) binary_closing(b) binary_dilation(b) binary_erosion(b)
        binary_fill_holes(b) binary_hit_or_miss(b) binary_opening(b) binary_propagation(b)
        black_tophat(m,3) center_of_mass(m) convolve(m,m[:3,:3]) convolve1d(m,u[:3])
        correlate(m,m[:3,:3]) correlate1d(m,u[:3]) distance_transform_bf(b)
        distance_transform_cdt(b) distance_transform_edt(b) extrema(m) find_objects(k)
        fourier_ellipsoid(m,2) fourier_gaussian(m,2) fourier_shift(m,2) fourier_uniform(m,2)
        gaussian_filter(m,1.0) gaussian_filter1d(m,1.0) gaussian_gradient_magnitude(m,1.0)
        gaussian_laplace(m,1.0) generic_filter(m,mean,3) grey_closing(m,3) grey_dilation(m,3)
        grey_erosion(m,3) grey_opening(m,3) histogram(m,0,1,4) label(b)[0] laplace(m)
        map_coordinates(m,[[0.5,1.5],[0.5,1]],order=1) maximum(m) maximum_filter(m,3)
        maximum_filter1d(m,3) maximum_position(m) mean(m) median(m) median_filter(m,3) minimum(m)
        minimum_filter(m,3) minimum_filter1d(m,3) minimum_position(m) morphological_gradient(m,3)
        morphological_laplace(m,3) percentile_filter(m,50,3) prewitt(m) rank_filter(m,1,3)
        rotate(m,30) shift(m,0.5) sobel(m) spline_filter(m) spline_filter1d(m)
        standard_deviation(m) sum(m) sum_labels(m) uniform_filter(m,3) uniform_filter1d(m,3)
        value_indices(k) variance(m) white_tophat(m,3) zoom(m,2)
    """,
    "fft": """
        dct(x) dctn(m) dst(x) dstn(m) fft(x) fft2(m) fftn(m) fftshift(x) fht(u,0.1,0.5) hfft(z)
        hfft2(m*z[0]) hfftn(m*z[0]) idct(x) idctn(m) idst(x) idstn(m) ifft(z) ifft2(m) ifftn(m)
        ifftshift(x) ifht(u,0.1,0.5) ihfft(x) ihfft2(m) ihfftn(m) irfft(z) irfft2(m*z[0])
        irfftn(m*z[0]) rfft(x) rfft2(m) rfftn(m) fftfreq(x.size,xp=xp) rfftfreq(9,xp=xp)
    """,
    "integrate": """
        trapezoid(x) trapezoid(m,axis=0) trapezoid(x,u) cumulative_trapezoid(x)
        cumulative_simpson(x,dx=0.1) romb(x[:9]) tanhsinh(square,p,p+1).integral
        nsum(inverse_square,u[:3],u[:3]+9).sum cubature(first,p[:1],p[:1]+1).estimate
        qmc_quad(column,0.0,p[0]).integral
    """,
    "interpolate": """
        Akima1DInterpolator(grid,x)(p) BPoly(m[:,:1],grid[:2])(p) BSpline(grid,x[:21],2)(p)
        CubicHermiteSpline(grid,x,y)(p) CubicSpline(grid,x)(p)
        NdBSpline((grid,),x[:21],2)(p[:,None]) PPoly(m[:,:1],grid[:2])(p)
        PchipInterpolator(grid,x)(p) RBFInterpolator(x[:,None],y)(p[:,None])
        RegularGridInterpolator((grid,),x)(p)
        make_interp_spline(grid,x)(p) make_lsq_spline(grid,x,[-0.1]*4+[0.5]+[1.1]*4)(p)
        make_smoothing_spline(grid,x)(p) make_splrep(grid,x)(p) make_splprep([x,y])[1]
    """,
    "optimize": """
        rosen(x) rosen(m) rosen_der(x) rosen_hess(x) rosen_hess_prod(x,y)
    """,
    "optimize.elementwise": """
        bracket_minimum(parabola,x).bracket bracket_root(cubic,x,x+9).bracket
        find_minimum(parabola,(x-2,x,x+2)).x find_root(cubic,(x-9,x+9)).x
    """,
    "linalg": """
        block_diag(m,m) fiedler(x) orthogonal_procrustes(m,m[::-1])[0]
    """,
    "differentiate": """
        derivative(np.sin,x).df jacobian(rosen,x).df hessian(rosen,x).ddf
    """,
    "constants": """
        convert_temperature(x,'Celsius','Kelvin') lambda2nu(u) nu2lambda(u)
    """,
    "cluster.vq": """
        whiten(m) vq(m,m[:2])[0] kmeans(m,2,rng=gen(0))[0] kmeans2(m,m[:2],minit='matrix')[0]
    """,
    "cluster.hierarchy": """
        linkage(m) single(d) average(d) complete(d) centroid(m) median(m) ward(m) weighted(d)
        cophenet(tree) correspond(tree,d) dendrogram(tree,no_plot=True)['leaves']
        fcluster(tree,2.0) fclusterdata(m,1.0) inconsistent(tree) is_isomorphic(k,k)
        is_monotonic(tree) is_valid_im(tree) is_valid_linkage(tree) leaves_list(tree)
        maxRstat(tree,tree,0) maxdists(tree) maxinconsts(tree,tree) num_obs_linkage(tree)
        optimal_leaf_ordering(tree,d) to_mlab_linkage(tree) to_tree(tree).dist
    """,
}


@functools.cache
def arrays() -> dict[str, Any]:
    """The arguments. Those are traced."""
    from scipy.cluster.hierarchy import linkage
    from scipy.signal import butter

    rng = np.random.default_rng(0)
    m = rng.normal(size=(4, 4))
    return {
        "x": rng.normal(size=24),
        "y": rng.normal(size=24) + 0.2,
        "u": rng.uniform(0.5, 4, 24),
        "v": rng.uniform(0.5, 4, 24),
        "p": rng.uniform(0.05, 0.95, 24),
        "k": rng.integers(0, 5, 24),
        "b": rng.integers(0, 2, (5, 5)).astype(bool),
        "m": m,
        "z": rng.normal(size=12) + 1j * rng.normal(size=12),
        "grid": np.linspace(-0.1, 1.1, 24),
        "sos": butter(4, 0.3, output="sos"),
        "d": rng.uniform(1, 2, 6),
        "tree": linkage(m),
    }


def helpers() -> dict[str, Any]:
    """What the expressions use besides. Functions of arrays are written as SciPy wants them."""
    from scipy import stats
    from scipy.optimize import rosen

    return {
        "gen": np.random.default_rng,
        "mean": lambda x, axis=-1: x.mean(axis=axis),
        "difference": lambda x, y, axis=-1: x.mean(axis=axis) - y.mean(axis=axis),
        "uniform_cdf": lambda x: x,
        "normal_rvs": lambda size: np.random.default_rng(0).normal(size=size),
        "ttest": lambda x, y, axis=-1: stats.ttest_ind(x, y, axis=axis),
        "square": lambda x: x * x,
        "parabola": lambda x: (x - 1) ** 2,
        "cubic": lambda x: x**3 + x - 1,
        "inverse_square": lambda x: 1 / (x * x),
        "first": lambda x: x[:, 0] ** 2,
        "column": lambda x: x[0] ** 2,
        "rosen": rosen,
    }


def expressions(module: str) -> Iterator[str]:
    """The calls of a module. Blanks separate them, but for those inside of parentheses."""
    depth, text = 0, ""
    for c in CALLS[module]:
        depth += (c in "([") - (c in ")]")
        if c.isspace() and not depth:
            if text:
                yield text
            text = ""
        elif not c.isspace():
            text += c


def compute(module: str, text: str, given: dict[str, Any], xp: Any) -> Any:
    """The value of one call."""
    scipy_module = importlib.import_module(f"scipy.{module}")
    names = {"xp": xp, "np": np, **vars(scipy_module), **helpers(), **given}
    return eval(text, names)


def leaves(tree: Any) -> list[Any]:
    if isinstance(tree, (tuple, list)):
        return [leaf for part in tree for leaf in leaves(part)]
    return [np.asarray(tree)]


def outcome(module: str, text: str, backend: str) -> str:
    """ "" if the compiled call gives what SciPy gives for NumPy's arrays, else what is wrong."""
    import jitney as jt

    given = {name: array.copy() for name, array in arrays().items()}
    with np.errstate(all="ignore"):
        want = compute(module, text, given, np)
    used = {n: a for n, a in given.items() if n in compile(text, "", "eval").co_names}
    try:
        with np.errstate(all="ignore"):
            call = lambda arrays: compute(module, text, arrays, jt)  # noqa: E731
            got = jt.jit(call, backend=backend)(used)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    try:
        for a, b in zip(leaves(got), leaves(want), strict=True):
            assert a.shape == b.shape and a.dtype == b.dtype, (
                f"{a.dtype}{a.shape} {b.dtype}{b.shape}"
            )
            np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)
    except (AssertionError, ValueError) as error:
        return "differs: " + " ".join(str(error).split())[:300]
    return ""


REASONS = {  # what the refusal says of SciPy's code
    "asked a traced value for its elements": "it is compiled code, which takes NumPy's arrays",
    "asks for the elements of a traced": "it is compiled code, which takes NumPy's arrays",
    "no truth value yet": "it branches on values",
    "compares traced values": "it branches on values",
    "int() needs a number": "it makes Python numbers of values",
    "asks for a number": "it makes Python numbers of values",
    "whose length is a value": "shapes depend on values",
    "array API compatible nor coercible": "it is compiled code, which takes NumPy's arrays",
    "Multiple namespaces": "it makes NumPy's arrays itself",
    "incompatible with lazy arrays": "SciPy refuses all arrays whose values are not known yet",
    "could not convert b, a, and x": "it is compiled code, which takes NumPy's arrays",
}


def reason(error: str) -> str:
    """Why a call cannot be compiled, in a few words."""
    return next((why for said, why in REASONS.items() if said in error), error)


def main(share: int, modules: list[str]) -> None:
    warnings.simplefilter("ignore")
    for module in modules:
        for i, text in enumerate(expressions(module)):
            if zlib.crc32(text.encode()) % share:
                continue
            # The page says which calls are traced; a sample of the programs is machine code.
            backend = "interpreter" if i % 5 else "native"
            print(json.dumps([module, text, reason(outcome(module, text, backend))]), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
