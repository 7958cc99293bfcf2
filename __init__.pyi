# Made by `python tests/helpers/stubs.py`.
"""The public face, as type checkers see it."""

import builtins
from . import data as data
from . import distributed as distributed
from . import errors as errors
from . import nn as nn
from . import optim as optim
from . import solve as solve
from . import summary as summary
from . import train as train
from .distributed.sharding import shard_map as shard_map
from .ir.version import __version__ as __version__
from .measure.bench import bench as bench
from .nn.variable import Variable as Variable
from .runtime.config import config as config
from .runtime.cuda.array import DeviceArray as DeviceArray
from .runtime.devices import Device as Device
from .runtime.machine_limits import machine_limits as machine_limits
from .runtime.threads.pool import threads as threads
from .tracer import random as random
from .tracer import sparse as sparse
from .tracer.ahead.cost import cost as cost
from .tracer.ahead.export import export as export
from .tracer.ahead.shapes import eval_shape as eval_shape
from .tracer.autograph.recursion.recursive import recursive as recursive
from .tracer.checks import filters as filters
from .tracer.checks.asserts import assert_close as assert_close
from .tracer.checks.asserts import assert_equal as assert_equal
from .tracer.checks.asserts import assert_finite as assert_finite
from .tracer.checks.asserts import assert_greater as assert_greater
from .tracer.checks.asserts import assert_greater_equal as assert_greater_equal
from .tracer.checks.asserts import assert_in_range as assert_in_range
from .tracer.checks.asserts import assert_less as assert_less
from .tracer.checks.asserts import assert_less_equal as assert_less_equal
from .tracer.checks.asserts import assert_negative as assert_negative
from .tracer.checks.asserts import assert_non_negative as assert_non_negative
from .tracer.checks.asserts import assert_non_positive as assert_non_positive
from .tracer.checks.asserts import assert_not_equal as assert_not_equal
from .tracer.checks.asserts import assert_positive as assert_positive
from .tracer.checks.asserts import check as check
from .tracer.checks.shapes import assert_compatible as assert_compatible
from .tracer.checks.shapes import assert_dtype as assert_dtype
from .tracer.checks.shapes import assert_rank as assert_rank
from .tracer.checks.shapes import assert_shape as assert_shape
from .tracer.checks.shapes import assert_shapes as assert_shapes
from .tracer.checks.traced import is_traced as is_traced
from .tracer.compare.compare import compare as compare
from .tracer.control.associative import associative_scan as associative_scan
from .tracer.control.callbacks import io_callback as io_callback
from .tracer.control.callbacks import pure_callback as pure_callback
from .tracer.control.callbacks import py_func as py_func
from .tracer.control.control import case as case
from .tracer.control.control import cond as cond
from .tracer.control.control import fori_loop as fori_loop
from .tracer.control.control import switch as switch
from .tracer.control.control import while_loop as while_loop
from .tracer.control.debugging import breakpoint as breakpoint
from .tracer.control.debugging import debug_callback as debug_callback
from .tracer.control.debugging import debug_print as debug_print
from .tracer.control.prange import prange as prange
from .tracer.control.scans import foldl as foldl
from .tracer.control.scans import foldr as foldr
from .tracer.control.scans import map_fn as map_fn
from .tracer.control.scans import scan as scan
from .tracer.control.tensor_array import TensorArray as TensorArray
from .tracer.core.knobs import materialize as materialize
from .tracer.core.knobs import schedule as schedule
from .tracer.core.naming import name as name
from .tracer.core.naming import name_scope as name_scope
from .tracer.data import tree as tree
from .tracer.data.promotion import finfo as finfo
from .tracer.data.pytree import register_pytree as register_pytree
from .tracer.data.shapes import ShapeDtype as ShapeDtype
from .tracer.devices.devices import device as device
from .tracer.devices.devices import device_put as device_put
from .tracer.devices.devices import devices as devices
from .tracer.export.loaded import load_exported as load_exported
from .tracer.indexing.at import At as _At
from .tracer.indexing.concatenators import c_ as c_
from .tracer.indexing.concatenators import r_ as r_
from .tracer.interop.array_api import __array_namespace_info__ as __array_namespace_info__
from .tracer.interop.array_api import from_dlpack as from_dlpack
from .tracer.interop.array_api import isdtype as isdtype
from .tracer.interop.parsed import parse_graph as parse_graph
from .tracer.jit.asked import disable_jit as disable_jit
from .tracer.jit.capturing import capture as capture
from .tracer.jit.decorator import jit as jit
from .tracer.kernels.guvectorize import guvectorize as guvectorize
from .tracer.kernels.stencil import stencil as stencil
from .tracer.kernels.vectorize import vectorize as vectorize
from .tracer.profiling.profile import profile as profile
from .tracer.transforms.check_grads import check_grads as check_grads
from .tracer.transforms.check_grads import compute_gradient_error as compute_gradient_error
from .tracer.transforms.custom import custom_jvp as custom_jvp
from .tracer.transforms.custom import custom_vjp as custom_vjp
from .tracer.transforms.derivatives import jvp as jvp
from .tracer.transforms.derivatives import stop_gradient as stop_gradient
from .tracer.transforms.derivatives import vjp as vjp
from .tracer.transforms.gradients import grad as grad
from .tracer.transforms.gradients import value_and_grad as value_and_grad
from .tracer.transforms.implicit import implicit as implicit
from .tracer.transforms.jacobians import hessian as hessian
from .tracer.transforms.jacobians import jacfwd as jacfwd
from .tracer.transforms.jacobians import jacrev as jacrev
from .tracer.transforms.linear import hvp as hvp
from .tracer.transforms.linear import linear_transpose as linear_transpose
from .tracer.transforms.linear import linearize as linearize
from .tracer.transforms.named_axes import all_gather as all_gather
from .tracer.transforms.named_axes import all_to_all as all_to_all
from .tracer.transforms.named_axes import axis_index as axis_index
from .tracer.transforms.named_axes import axis_size as axis_size
from .tracer.transforms.named_axes import pbroadcast as pbroadcast
from .tracer.transforms.named_axes import pmax as pmax
from .tracer.transforms.named_axes import pmean as pmean
from .tracer.transforms.named_axes import pmin as pmin
from .tracer.transforms.named_axes import ppermute as ppermute
from .tracer.transforms.named_axes import pshuffle as pshuffle
from .tracer.transforms.named_axes import psum as psum
from .tracer.transforms.named_axes import psum_scatter as psum_scatter
from .tracer.transforms.remat import checkpoint as checkpoint
from .tracer.transforms.remat import checkpoint_name as checkpoint_name
from .tracer.transforms.vmap import vmap as vmap
from .tracer.typed import fft as fft
from .tracer.typed import image as image
from .tracer.typed import linalg as linalg
from .tracer.typed import ops as ops
from .tracer.typed import special as special
from collections.abc import Callable
from collections.abc import Sequence
from ml_dtypes import bfloat16 as bfloat16
from ml_dtypes import float8_e3m4 as float8_e3m4
from ml_dtypes import float8_e4m3 as float8_e4m3
from ml_dtypes import float8_e4m3b11fnuz as float8_e4m3b11fnuz
from ml_dtypes import float8_e4m3fn as float8_e4m3fn
from ml_dtypes import float8_e4m3fnuz as float8_e4m3fnuz
from ml_dtypes import float8_e5m2 as float8_e5m2
from ml_dtypes import float8_e5m2fnuz as float8_e5m2fnuz
from numpy import False_ as False_
from numpy import ScalarType as ScalarType
from numpy import True_ as True_
from numpy import abs as abs
from numpy import absolute as absolute
from numpy import acos as acos
from numpy import acosh as acosh
from numpy import add as add
from numpy import all as all
from numpy import allclose as allclose
from numpy import amax as amax
from numpy import amin as amin
from numpy import angle as angle
from numpy import any as any
from numpy import append as append
from numpy import apply_along_axis as apply_along_axis
from numpy import apply_over_axes as apply_over_axes
from numpy import arange as arange
from numpy import arccos as arccos
from numpy import arccosh as arccosh
from numpy import arcsin as arcsin
from numpy import arcsinh as arcsinh
from numpy import arctan as arctan
from numpy import arctan2 as arctan2
from numpy import arctanh as arctanh
from numpy import argmax as argmax
from numpy import argmin as argmin
from numpy import argpartition as argpartition
from numpy import around as around
from numpy import array as array
from numpy import array2string as array2string
from numpy import array_equal as array_equal
from numpy import array_equiv as array_equiv
from numpy import array_repr as array_repr
from numpy import array_split as array_split
from numpy import array_str as array_str
from numpy import asanyarray as asanyarray
from numpy import asarray_chkfinite as asarray_chkfinite
from numpy import ascontiguousarray as ascontiguousarray
from numpy import asfortranarray as asfortranarray
from numpy import asin as asin
from numpy import asinh as asinh
from numpy import astype as astype
from numpy import atan as atan
from numpy import atan2 as atan2
from numpy import atanh as atanh
from numpy import atleast_1d as atleast_1d
from numpy import atleast_2d as atleast_2d
from numpy import atleast_3d as atleast_3d
from numpy import average as average
from numpy import bartlett as bartlett
from numpy import base_repr as base_repr
from numpy import binary_repr as binary_repr
from numpy import bitwise_and as bitwise_and
from numpy import bitwise_count as bitwise_count
from numpy import bitwise_invert as bitwise_invert
from numpy import bitwise_left_shift as bitwise_left_shift
from numpy import bitwise_not as bitwise_not
from numpy import bitwise_or as bitwise_or
from numpy import bitwise_right_shift as bitwise_right_shift
from numpy import bitwise_xor as bitwise_xor
from numpy import blackman as blackman
from numpy import block as block
from numpy import bool as bool
from numpy import bool_ as bool_
from numpy import broadcast_arrays as broadcast_arrays
from numpy import broadcast_shapes as broadcast_shapes
from numpy import broadcast_to as broadcast_to
from numpy import byte as byte
from numpy import can_cast as can_cast
from numpy import cbrt as cbrt
from numpy import cdouble as cdouble
from numpy import ceil as ceil
from numpy import choose as choose
from numpy import clip as clip
from numpy import column_stack as column_stack
from numpy import common_type as common_type
from numpy import complex128 as complex128
from numpy import complex64 as complex64
from numpy import complexfloating as complexfloating
from numpy import concat as concat
from numpy import concatenate as concatenate
from numpy import conj as conj
from numpy import conjugate as conjugate
from numpy import convolve as convolve
from numpy import copy as copy
from numpy import copysign as copysign
from numpy import copyto as copyto
from numpy import corrcoef as corrcoef
from numpy import correlate as correlate
from numpy import cos as cos
from numpy import cosh as cosh
from numpy import count_nonzero as count_nonzero
from numpy import cov as cov
from numpy import cross as cross
from numpy import csingle as csingle
from numpy import cumprod as cumprod
from numpy import cumsum as cumsum
from numpy import cumulative_prod as cumulative_prod
from numpy import cumulative_sum as cumulative_sum
from numpy import deg2rad as deg2rad
from numpy import degrees as degrees
from numpy import delete as delete
from numpy import diag as diag
from numpy import diag_indices as diag_indices
from numpy import diag_indices_from as diag_indices_from
from numpy import diagflat as diagflat
from numpy import diagonal as diagonal
from numpy import diff as diff
from numpy import digitize as digitize
from numpy import divide as divide
from numpy import divmod as divmod
from numpy import double as double
from numpy import dsplit as dsplit
from numpy import dstack as dstack
from numpy import dtype as dtype
from numpy import dtypes as dtypes
from numpy import e as e
from numpy import ediff1d as ediff1d
from numpy import einsum_path as einsum_path
from numpy import empty as empty
from numpy import empty_like as empty_like
from numpy import equal as equal
from numpy import errstate as errstate
from numpy import euler_gamma as euler_gamma
from numpy import exceptions as exceptions
from numpy import exp as exp
from numpy import exp2 as exp2
from numpy import expand_dims as expand_dims
from numpy import expm1 as expm1
from numpy import eye as eye
from numpy import fabs as fabs
from numpy import fill_diagonal as fill_diagonal
from numpy import fix as fix
from numpy import flip as flip
from numpy import fliplr as fliplr
from numpy import flipud as flipud
from numpy import float16 as float16
from numpy import float32 as float32
from numpy import float64 as float64
from numpy import float_power as float_power
from numpy import floating as floating
from numpy import floor as floor
from numpy import floor_divide as floor_divide
from numpy import fmax as fmax
from numpy import fmin as fmin
from numpy import fmod as fmod
from numpy import format_float_positional as format_float_positional
from numpy import format_float_scientific as format_float_scientific
from numpy import frexp as frexp
from numpy import frombuffer as frombuffer
from numpy import fromfile as fromfile
from numpy import fromfunction as fromfunction
from numpy import fromiter as fromiter
from numpy import fromregex as fromregex
from numpy import fromstring as fromstring
from numpy import full as full
from numpy import full_like as full_like
from numpy import gcd as gcd
from numpy import generic as generic
from numpy import genfromtxt as genfromtxt
from numpy import geomspace as geomspace
from numpy import get_printoptions as get_printoptions
from numpy import getbufsize as getbufsize
from numpy import geterr as geterr
from numpy import geterrcall as geterrcall
from numpy import gradient as gradient
from numpy import greater as greater
from numpy import greater_equal as greater_equal
from numpy import half as half
from numpy import hamming as hamming
from numpy import hanning as hanning
from numpy import heaviside as heaviside
from numpy import histogram as histogram
from numpy import histogram2d as histogram2d
from numpy import histogram_bin_edges as histogram_bin_edges
from numpy import histogramdd as histogramdd
from numpy import hsplit as hsplit
from numpy import hstack as hstack
from numpy import hypot as hypot
from numpy import i0 as i0
from numpy import identity as identity
from numpy import iinfo as iinfo
from numpy import imag as imag
from numpy import index_exp as index_exp
from numpy import indices as indices
from numpy import inexact as inexact
from numpy import inf as inf
from numpy import insert as insert
from numpy import int16 as int16
from numpy import int32 as int32
from numpy import int64 as int64
from numpy import int8 as int8
from numpy import int_ as int_
from numpy import intc as intc
from numpy import integer as integer
from numpy import interp as interp
from numpy import intp as intp
from numpy import invert as invert
from numpy import isclose as isclose
from numpy import iscomplex as iscomplex
from numpy import iscomplexobj as iscomplexobj
from numpy import isfinite as isfinite
from numpy import isfortran as isfortran
from numpy import isin as isin
from numpy import isinf as isinf
from numpy import isnan as isnan
from numpy import isneginf as isneginf
from numpy import isposinf as isposinf
from numpy import isreal as isreal
from numpy import isrealobj as isrealobj
from numpy import isscalar as isscalar
from numpy import issubdtype as issubdtype
from numpy import iterable as iterable
from numpy import ix_ as ix_
from numpy import kaiser as kaiser
from numpy import kron as kron
from numpy import lcm as lcm
from numpy import ldexp as ldexp
from numpy import left_shift as left_shift
from numpy import less as less
from numpy import less_equal as less_equal
from numpy import lexsort as lexsort
from numpy import linspace as linspace
from numpy import little_endian as little_endian
from numpy import load as load
from numpy import loadtxt as loadtxt
from numpy import log as log
from numpy import log10 as log10
from numpy import log1p as log1p
from numpy import log2 as log2
from numpy import logaddexp as logaddexp
from numpy import logaddexp2 as logaddexp2
from numpy import logical_and as logical_and
from numpy import logical_not as logical_not
from numpy import logical_or as logical_or
from numpy import logical_xor as logical_xor
from numpy import logspace as logspace
from numpy import long as long
from numpy import longlong as longlong
from numpy import mask_indices as mask_indices
from numpy import matrix_transpose as matrix_transpose
from numpy import max as max
from numpy import maximum as maximum
from numpy import may_share_memory as may_share_memory
from numpy import mean as mean
from numpy import median as median
from numpy import memmap as memmap
from numpy import meshgrid as meshgrid
from numpy import mgrid as mgrid
from numpy import min as min
from numpy import min_scalar_type as min_scalar_type
from numpy import minimum as minimum
from numpy import mintypecode as mintypecode
from numpy import mod as mod
from numpy import modf as modf
from numpy import moveaxis as moveaxis
from numpy import multiply as multiply
from numpy import nan as nan
from numpy import nan_to_num as nan_to_num
from numpy import nanargmax as nanargmax
from numpy import nanargmin as nanargmin
from numpy import nancumprod as nancumprod
from numpy import nancumsum as nancumsum
from numpy import nanmax as nanmax
from numpy import nanmean as nanmean
from numpy import nanmedian as nanmedian
from numpy import nanmin as nanmin
from numpy import nanpercentile as nanpercentile
from numpy import nanprod as nanprod
from numpy import nanquantile as nanquantile
from numpy import nanstd as nanstd
from numpy import nansum as nansum
from numpy import nanvar as nanvar
from numpy import ndarray as ndarray
from numpy import ndenumerate as ndenumerate
from numpy import ndim as ndim
from numpy import ndindex as ndindex
from numpy import negative as negative
from numpy import newaxis as newaxis
from numpy import nextafter as nextafter
from numpy import not_equal as not_equal
from numpy import number as number
from numpy import ogrid as ogrid
from numpy import ones as ones
from numpy import ones_like as ones_like
from numpy import outer as outer
from numpy import packbits as packbits
from numpy import pad as pad
from numpy import partition as partition
from numpy import percentile as percentile
from numpy import permute_dims as permute_dims
from numpy import pi as pi
from numpy import piecewise as piecewise
from numpy import place as place
from numpy import poly as poly
from numpy import polyadd as polyadd
from numpy import polyder as polyder
from numpy import polydiv as polydiv
from numpy import polyfit as polyfit
from numpy import polyint as polyint
from numpy import polymul as polymul
from numpy import polynomial as polynomial
from numpy import polysub as polysub
from numpy import polyval as polyval
from numpy import positive as positive
from numpy import pow as pow
from numpy import power as power
from numpy import printoptions as printoptions
from numpy import prod as prod
from numpy import promote_types as promote_types
from numpy import ptp as ptp
from numpy import put as put
from numpy import put_along_axis as put_along_axis
from numpy import putmask as putmask
from numpy import quantile as quantile
from numpy import rad2deg as rad2deg
from numpy import radians as radians
from numpy import ravel as ravel
from numpy import ravel_multi_index as ravel_multi_index
from numpy import real as real
from numpy import reciprocal as reciprocal
from numpy import remainder as remainder
from numpy import require as require
from numpy import reshape as reshape
from numpy import resize as resize
from numpy import result_type as result_type
from numpy import right_shift as right_shift
from numpy import rint as rint
from numpy import roll as roll
from numpy import rollaxis as rollaxis
from numpy import roots as roots
from numpy import rot90 as rot90
from numpy import round as round
from numpy import s_ as s_
from numpy import save as save
from numpy import savetxt as savetxt
from numpy import savez as savez
from numpy import savez_compressed as savez_compressed
from numpy import sctypeDict as sctypeDict
from numpy import searchsorted as searchsorted
from numpy import select as select
from numpy import set_printoptions as set_printoptions
from numpy import setbufsize as setbufsize
from numpy import seterr as seterr
from numpy import seterrcall as seterrcall
from numpy import shape as shape
from numpy import shares_memory as shares_memory
from numpy import short as short
from numpy import sign as sign
from numpy import signbit as signbit
from numpy import signedinteger as signedinteger
from numpy import sin as sin
from numpy import sinc as sinc
from numpy import single as single
from numpy import sinh as sinh
from numpy import size as size
from numpy import sort_complex as sort_complex
from numpy import spacing as spacing
from numpy import split as split
from numpy import sqrt as sqrt
from numpy import square as square
from numpy import squeeze as squeeze
from numpy import stack as stack
from numpy import std as std
from numpy import subtract as subtract
from numpy import sum as sum
from numpy import swapaxes as swapaxes
from numpy import take as take
from numpy import take_along_axis as take_along_axis
from numpy import tan as tan
from numpy import tanh as tanh
from numpy import testing as testing
from numpy import tile as tile
from numpy import trace as trace
from numpy import transpose as transpose
from numpy import trapezoid as trapezoid
from numpy import tri as tri
from numpy import tril as tril
from numpy import tril_indices as tril_indices
from numpy import tril_indices_from as tril_indices_from
from numpy import triu as triu
from numpy import triu_indices as triu_indices
from numpy import triu_indices_from as triu_indices_from
from numpy import true_divide as true_divide
from numpy import trunc as trunc
from numpy import typecodes as typecodes
from numpy import typename as typename
from numpy import typing as typing
from numpy import ubyte as ubyte
from numpy import ufunc as ufunc
from numpy import uint as uint
from numpy import uint16 as uint16
from numpy import uint32 as uint32
from numpy import uint64 as uint64
from numpy import uint8 as uint8
from numpy import uintc as uintc
from numpy import uintp as uintp
from numpy import ulong as ulong
from numpy import ulonglong as ulonglong
from numpy import unpackbits as unpackbits
from numpy import unravel_index as unravel_index
from numpy import unsignedinteger as unsignedinteger
from numpy import unstack as unstack
from numpy import unwrap as unwrap
from numpy import ushort as ushort
from numpy import vander as vander
from numpy import var as var
from numpy import vsplit as vsplit
from numpy import vstack as vstack
from numpy import zeros as zeros
from numpy import zeros_like as zeros_like
from numpy.typing import NDArray
from typing import Any

def argsort(
    a: Any, axis: Any = -1, *args: Any, descending: builtins.bool = False, **options: Any
) -> Any: ...
def argwhere(a: Any, *, size: Any = None, fill_value: Any = None) -> NDArray[Any]: ...
def asarray(
    a: Any, dtype: Any = None, order: Any = None, *, device: Any = None, copy: Any = None
) -> Any: ...
def at(x: Any) -> _At: ...
def avg_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = 'VALID',
    *,
    dilation: int | Sequence[int] = 1,
    count_include_pad: builtins.bool = False,
    layout: str | None = None,
) -> NDArray[Any]: ...
def bincount(x: Any, /, weights: Any = None, minlength: int = 0, *, length: Any = None) -> Any: ...
def compress(
    condition: Any,
    a: Any,
    axis: Any = None,
    out: Any = None,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> NDArray[Any]: ...
def conv(
    x: Any,
    kernel: Any,
    strides: int | Sequence[int] = 1,
    padding: Any = 'VALID',
    *,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    kernel_layout: str | None = None,
) -> NDArray[Any]: ...
def conv_transpose(
    x: Any,
    kernel: Any,
    strides: int | Sequence[int] = 1,
    padding: Any = 'SAME',
    *,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
    layout: str | None = None,
    kernel_layout: str | None = None,
) -> NDArray[Any]: ...
def dot(a: Any, b: Any, out: Any = None, *, preferred_element_type: Any = None) -> Any: ...
def dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    scale: float | None = None,
    is_causal: builtins.bool = False,
) -> NDArray[Any]: ...
def dynamic_slice(x: Any, starts: Any, sizes: Any) -> Any: ...
def dynamic_update_slice(x: Any, update: Any, starts: Any) -> Any: ...
def einsum(
    *operands: Any,
    out: Any = None,
    optimize: Any = False,
    dtype: Any = None,
    casting: str = 'safe',
    order: str = 'K',
    preferred_element_type: Any = None,
) -> Any: ...
def erf(x: Any, /) -> Any: ...
def erfinv(x: Any, /) -> Any: ...
def extract(
    condition: Any, arr: Any, *, size: Any = None, fill_value: Any = None
) -> NDArray[Any]: ...
def flatnonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> NDArray[Any]: ...
def inner(a: Any, b: Any, /, *, preferred_element_type: Any = None) -> Any: ...
def intersect1d(
    ar1: Any,
    ar2: Any,
    assume_unique: builtins.bool = False,
    return_indices: builtins.bool = False,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> Any: ...
def logsumexp(a: Any, axis: Any = None, keepdims: Any = False) -> Any: ...
def matmul(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    axes: Any = None,
    axis: Any = None,
    keepdims: builtins.bool = False,
    dtype: Any = None,
    casting: str = 'same_kind',
    order: str = 'K',
    subok: builtins.bool = True,
    signature: Any = None,
    preferred_element_type: Any = None,
) -> Any: ...
def matvec(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    axes: Any = None,
    axis: Any = None,
    keepdims: builtins.bool = False,
    dtype: Any = None,
    casting: str = 'same_kind',
    order: str = 'K',
    subok: builtins.bool = True,
    signature: Any = None,
    preferred_element_type: Any = None,
) -> Any: ...
def max_pool(
    x: Any,
    window: int | Sequence[int],
    strides: int | Sequence[int] | None = None,
    padding: Any = 'VALID',
    *,
    dilation: int | Sequence[int] = 1,
    layout: str | None = None,
) -> NDArray[Any]: ...
def nonzero(a: Any, *, size: Any = None, fill_value: Any = None) -> tuple[NDArray[Any], ...]: ...
def reduce_window(
    x: Any,
    op: str | Callable[..., Any],
    window: int | Sequence[int],
    strides: int | Sequence[int] = 1,
    padding: Any = 'VALID',
    *,
    dilation: int | Sequence[int] = 1,
) -> NDArray[Any]: ...
def repeat(a: Any, repeats: Any, axis: Any = None, *, total_repeat_length: Any = None) -> Any: ...
def setdiff1d(
    ar1: Any,
    ar2: Any,
    assume_unique: builtins.bool = False,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> NDArray[Any]: ...
def setxor1d(
    ar1: Any,
    ar2: Any,
    assume_unique: builtins.bool = False,
    *,
    size: Any = None,
    fill_value: Any = None,
) -> NDArray[Any]: ...
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: Any = False, writeable: Any = False
) -> Any: ...
def sort(
    a: Any, axis: Any = -1, *args: Any, descending: builtins.bool = False, **options: Any
) -> Any: ...
def tensordot(a: Any, b: Any, axes: Any = 2, *, preferred_element_type: Any = None) -> Any: ...
def trim_zeros(
    filt: Any, trim: str = 'fb', axis: Any = None, *, size: Any = None, fill_value: Any = None
) -> NDArray[Any]: ...
def union1d(ar1: Any, ar2: Any, *, size: Any = None, fill_value: Any = None) -> NDArray[Any]: ...
def unique(
    ar: Any,
    return_index: builtins.bool = False,
    return_inverse: builtins.bool = False,
    return_counts: builtins.bool = False,
    axis: Any = None,
    *,
    equal_nan: builtins.bool = True,
    sorted: builtins.bool = True,
    size: Any = None,
    fill_value: Any = None,
) -> Any: ...
def unique_all(x: Any, *, size: Any = None, fill_value: Any = None) -> Any: ...
def unique_counts(x: Any, *, size: Any = None, fill_value: Any = None) -> Any: ...
def unique_inverse(x: Any, *, size: Any = None, fill_value: Any = None) -> Any: ...
def unique_values(x: Any, *, size: Any = None, fill_value: Any = None) -> NDArray[Any]: ...
def vdot(a: Any, b: Any, /, *, preferred_element_type: Any = None) -> Any: ...
def vecdot(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    axes: Any = None,
    axis: Any = None,
    keepdims: builtins.bool = False,
    dtype: Any = None,
    casting: str = 'same_kind',
    order: str = 'K',
    subok: builtins.bool = True,
    signature: Any = None,
    preferred_element_type: Any = None,
) -> Any: ...
def vecmat(
    x1: Any,
    x2: Any,
    /,
    out: Any = None,
    *,
    axes: Any = None,
    axis: Any = None,
    keepdims: builtins.bool = False,
    dtype: Any = None,
    casting: str = 'same_kind',
    order: str = 'K',
    subok: builtins.bool = True,
    signature: Any = None,
    preferred_element_type: Any = None,
) -> Any: ...
def where(*args: Any, size: Any = None, fill_value: Any = None) -> Any: ...
__array_api_version__: str

def load_ipython_extension(shell: Any) -> None: ...
